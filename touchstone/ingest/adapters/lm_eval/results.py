"""lm-eval's `results_<time>.json`: the model, its settings and the aggregates of the samples files beside it.

The file has no attempts, so alone it is recognized and not evaluated. The aggregate of a metric is its mean over the
documents, unless the task says otherwise; then it is not recomputed here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, NotEvaluatedError, ReadOptions
from touchstone.ingest.adapters.head import LIST, Head
from touchstone.ingest.adapters.json_files import read_document
from touchstone.ingest.adapters.json_values import text_of
from touchstone.ingest.adapters.lossless_json import Number
from touchstone.ingest.adapters.table import Cells, ReportedFigure

FORMAT = "lm-eval-results"
# lm-eval aggregates these over the whole corpus if the task does not say otherwise.
_NOT_MEANS = {"f1", "mcc", "bleu", "chrf", "ter", "perplexity", "brier_score"}
_NOT_MEANS |= {"word_perplexity", "byte_perplexity", "bits_per_byte"}
# Of a results file with hundreds of tasks; a larger one is something else.
_MAX_BYTES = 64 << 20

# The filter of a row and the values of its metrics.
Values = tuple[str, Mapping[str, str | None]]


@dataclass(frozen=True)
class Run:
    """The model of a samples file, and what the results file says about it."""

    model: str
    results: Mapping[str, object] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    def settings(self, task: str) -> Cells:
        """The settings of a task, by which runs may be grouped."""
        named = {"n_shot": "n-shot", "task_version": "versions"}
        cells = {name: text_of(_inside(self.results, key).get(task)) for name, key in named.items()}
        return cells | {"lm_eval_version": text_of(self.results.get("lm_eval_version"))}


def run_of(samples: Path, time: str | None) -> Run:
    """The run that a samples file belongs to; without a usable results file, the model is the folder's name."""
    folder = samples.absolute().parent.name
    beside = samples.parent / f"results_{time}.json"
    if time is None or not beside.is_file():
        return Run(folder, notes=(f"no results file of the same time: the model is the folder's name, {folder}",))
    try:
        results = _read(beside)
    except InputFileError as error:
        return Run(folder, notes=(f"the model is the folder's name, {folder}: {error}",))
    name = text_of(results.get("model_name")) or _from_arguments(results)
    if name is None or not name.strip():
        note = f"{beside.name} names no model: it is the folder's name, {folder}"
        return Run(folder, results, (beside,), (note,))
    return Run(name, results, (beside,))


def figures_of(run: Run, task: str, rows: Sequence[Values]) -> list[ReportedFigure]:
    """Every aggregate of the task that lm-eval reports, and its mean over the rows."""
    figures = []
    for name, value in _inside(_inside(run.results, "results"), task).items():
        metric, comma, chosen = name.partition(",")
        if not comma or metric.endswith("_stderr") or not isinstance(value, Number):
            continue
        rule = _aggregation(run, task, metric)
        scored = [values.get(metric) for each, values in rows if each == chosen]
        numbers = [float(each) for each in scored if each is not None and _is_number(each)]
        is_mean = rule == "mean" and numbers and len(numbers) == len(scored)
        note = None if rule == "mean" else f"{metric} is aggregated by {rule}, which is not recomputed"
        mean = math.fsum(numbers) / len(numbers) if is_mean else None
        figures.append(ReportedFigure(run.model, name, _reported(value), mean, task, note))
    return figures


def _reported(value: Number) -> float | None:
    return float(value) if _is_number(value) else None


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _aggregation(run: Run, task: str, metric: str) -> str:
    listed = _inside(_inside(run.results, "configs"), task).get("metric_list")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and each.get("metric") == metric and each.get("aggregation") is not None:
            return str(each["aggregation"])[:50]
    return "its own rule" if metric in _NOT_MEANS else "mean"


def _from_arguments(results: Mapping[str, object]) -> str | None:
    """The model in `config.model_args`, which older versions wrote as `pretrained=NAME,dtype=...`."""
    arguments = _inside(results, "config").get("model_args")
    if isinstance(arguments, str):
        pairs = (part.partition("=") for part in arguments.split(","))
        arguments = {key.strip(): value for key, _, value in pairs}
    given = arguments if isinstance(arguments, dict) else {}
    return next((text_of(given[key]) for key in ("pretrained", "model") if given.get(key)), None)


def _read(path: Path) -> dict[str, object]:
    size = path.stat().st_size
    if size > _MAX_BYTES:
        raise InputFileError(f"{path}: {size:,} bytes are too many for a results file (at most {_MAX_BYTES:,})")
    value = read_document(path)
    if not isinstance(value, dict):
        raise InputFileError(f"{path}: not an object")
    return value


def _inside(value: Mapping[str, object], key: str) -> dict[str, object]:
    """The object under a key; empty if there is none."""
    inside = value.get(key)
    return inside if isinstance(inside, dict) else {}


def _recognizes(head: Head) -> bool:
    if ("results", LIST) in head.key_paths or not head.has_keys("results"):
        return False
    return head.has_keys("configs", "versions") or (
        head.path.name.startswith("results_") and (head.has_keys("configs") or head.has_keys("group_subtasks"))
    )


def _refuse(path: Path, _: ReadOptions) -> NoReturn:
    reason = "aggregates of lm-eval; the attempts are in the samples_*.jsonl files beside it"
    raise NotEvaluatedError(f"{path}: {reason}", "ignored")


ADAPTER = Adapter(FORMAT, "lm-eval aggregates", _recognizes, _refuse)
