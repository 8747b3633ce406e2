"""Adapters for EleutherAI's lm-eval: the samples files, one line per document and filter, and the results file.

A file is named `samples_<task>_<time>.jsonl` and is in the model's folder beside `results_<time>.json`, or
`<name>_<time>.json` with `--output_path <name>.json`, which names the model and has the aggregates. That file has no
attempts, so alone it is not evaluated. The aggregate of a metric is its mean over the documents, unless the task says
otherwise; then it is not recomputed here. The task is the suite, the problem is `<task>/<doc_id>`, and each time is a
run with one attempt. The responses of one run to one document are judged together, so they are one attempt.

A line has a value per metric. One metric under one filter is the verdict: the one that `score` names ("acc",
"exact_match,strict-match"), else the first filter of the file and the first metric whose values are all 0 or 1. A
metric with fractions says nothing about single attempts, so its rows are undecided, also where the value is 0 or 1:
otherwise the pass rate would be that of the extreme cases. So are those of a metric of which less is better. `pass@k`
for k > 1 is about k attempts and is only read when `score` names it. Null and NaN are unscored, and undecided.
"""

import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head, NotEvaluatedError, ReadOptions, not_evaluated
from touchstone.ingest.adapters.exported import KEY, exported_model, restore
from touchstone.ingest.adapters.folders import beside, bounded_document, files_in, is_file
from touchstone.ingest.adapters.json_files import (
    GENERATION,
    Number,
    inside,
    line_records,
    number_of,
    objects_of,
    raw_lines,
    stated_settings,
    text_of,
)
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    settle,
    table_from_records,
    words,
)
from touchstone.ingest.adapters.tool_figures import mean
from touchstone.ingest.compressed import uncompressed_name
from touchstone.ingest.csv_rows import ROW_ERROR_KIND
from touchstone.storage.files import name_of_key
from touchstone.vocabulary import PASS_CLASS

# lm-eval aggregates these over the whole corpus if the task does not say otherwise.
_NOT_MEANS = {"f1", "mcc", "bleu", "chrf", "ter", "perplexity", "brier_score"}
_NOT_MEANS |= {"word_perplexity", "byte_perplexity", "bits_per_byte"}
# Of a results file with hundreds of tasks; a larger one is something else.
_MAX_BYTES = 64 << 20
FORMAT = "lm-eval"
COLUMNS = words(
    "oid iteration_id llm_name suite run_id passed weighted_score metric filter responses doc_hash prompt_hash "
    "target_hash"
)
_LEFT_OUT = ("doc", "target", "arguments", "resps", "filtered_resps")
_NOT_METRICS = {"doc_id", "filter", "metrics", "doc_hash", "prompt_hash", "target_hash", *_LEFT_OUT}
# Rows that Touchstone wrote.
_EXPORTED = "__exported"
_HASHES = ("doc_hash", "prompt_hash", "target_hash")
_NAME = re.compile(r"samples_(.+?)(?:_(\d{4}-\d\d-\d\dT[\d:.-]+))?")
_SEVERAL_ATTEMPTS = re.compile(r"pass(@|\^|_at_|_hat_)0*([2-9]|[1-9]\d+)", re.IGNORECASE)
_SHARE = re.compile(r"pass(@|_at_)0*1$", re.IGNORECASE)
_NO_FILTER = "none"
_NOT_SCORED = ("nan", "NaN", "-nan")
_NO_VERDICT = "is not a verdict on one attempt: the rows are undecided and have it as their score"
# More metrics or filters than any task has; each is a column, or named in a message.
_MAX_METRICS = 200
_NAMED = 10


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
        cells = {name: text_of(inside(self.results, key).get(task)) for name, key in named.items()}
        return cells | {"lm_eval_version": text_of(self.results.get("lm_eval_version"))}


def run_of(samples: Path, time: str | None) -> Run:
    """The run that a samples file belongs to; without a usable results file, the model is the folder's name."""
    folder = samples.absolute().parent.name
    file = beside(samples, f"results_{time}.json")
    if time is not None and not is_file(file):
        file = next(iter(files_in(samples.parent, f"_{time}.json")), file)
    if time is None or not is_file(file):
        return Run(folder, notes=(f"no results file of the same time: the model is the folder's name, {folder}",))
    try:
        results = _read_results(file)
    except InputFileError as error:
        return Run(folder, notes=(f"the model is the folder's name, {folder}: {error}",))
    name = text_of(results.get("model_name")) or _from_arguments(results)
    if name is None or not name.strip():
        note = f"{file.name} names no model: it is the folder's name, {folder}"
        return Run(folder, results, (file,), (note,))
    return Run(name, results, (file,))


def figures_of(run: Run, task: str, scores: "_Scores") -> list[ReportedFigure]:
    """Every aggregate of the task that lm-eval reports, and its mean over the samples."""
    figures = []
    for name, value in inside(run.results, "results", task).items():
        metric, comma, chosen = name.partition(",")
        if not comma or metric.endswith("_stderr") or not isinstance(value, Number):
            continue
        rule, numbers = _aggregation(run, task, metric), scores.numbers.get((metric, chosen), array("d"))
        is_mean = rule == "mean" and len(numbers) == scores.samples[chosen]
        note = None if rule == "mean" else f"{metric} is aggregated by {rule}, which is not recomputed"
        recomputed = mean(numbers) if is_mean else None
        figures.append(ReportedFigure(run.model, name, number_of(value), recomputed, task, note))
    return figures


def settings_of(run: Run, task: str, score: Cells) -> list[StatedSetting]:
    """How the model was run and scored, and by which template it was asked."""
    if exported_model(run.results):
        return []
    config, shared = inside(run.results, "configs", task), inside(run.results, "config")
    # The text of a function may be its address.
    templates = {name: value for name, value in config.items() if " at 0x" not in str(value)}
    given = {"gen_kwargs": shared["gen_kwargs"]} if isinstance(shared.get("gen_kwargs"), str) else {}
    generation = {**inside(config, "generation_kwargs"), **inside(shared, "gen_kwargs"), **given}
    generation |= {"repeats": config.get("repeats"), "n_shot": run.settings(task)["n_shot"]}
    return [
        *stated_settings(run.model, "problems", templates, "doc_to_text description", task),
        *stated_settings(run.model, "task_version", run.settings(task), "task_version", task),
        *stated_settings(run.model, "generation", generation, f"{GENERATION} gen_kwargs until repeats n_shot", task),
        *stated_settings(run.model, "generation", shared, "fewshot_seed", task),
        *stated_settings(run.model, "scorer", score, "metric filter", task),
    ]


def _aggregation(run: Run, task: str, metric: str) -> str:
    stated = _declared(run, task, metric).get("aggregation")
    return str(stated or ("its own rule" if metric in _NOT_MEANS else "mean"))[:50]


def _declared(run: Run, task: str, metric: str) -> Mapping[str, object]:
    """The task's own entry for a metric."""
    metrics = objects_of(inside(run.results, "configs", task).get("metric_list"))
    return next((each for each in metrics if each.get("metric") == metric), {})


def _from_arguments(results: Mapping[str, object]) -> str | None:
    """The model in `config.model_args`, which older versions wrote as `pretrained=NAME,dtype=...`."""
    arguments = inside(results, "config").get("model_args")
    if isinstance(arguments, str):
        pairs = (part.partition("=") for part in arguments.split(","))
        arguments = {key.strip(): value for key, _, value in pairs}
    given = arguments if isinstance(arguments, dict) else {}
    return next((text_of(given[key]) for key in ("pretrained", "model") if given.get(key)), None)


def _read_results(path: Path) -> dict[str, object]:
    value = bounded_document(path, _MAX_BYTES)
    if not isinstance(value, dict):
        raise InputFileError(f"{path}: not an object")
    return value


def _recognizes_results(head: Head) -> bool:
    if ("results", LIST) in head.key_paths or not head.has_keys("results"):
        return False
    # Until version 0.4, a file had one config.
    versioned = head.has_keys("versions") and (head.has_keys("configs") or head.has_keys("config"))
    tasks = head.has_keys("configs") or head.has_keys("group_subtasks")
    return versioned or (tasks and head.name.startswith("results_"))


RESULTS = not_evaluated(
    "lm-eval-results",
    "lm-eval aggregates",
    _recognizes_results,
    "aggregates of lm-eval; the attempts are in the samples_*.jsonl files beside it",
    "ignored",
)


class _Scores:
    """The numbers of each metric under each filter, in the order of their first use, and the samples by filter."""

    def __init__(self) -> None:
        self.samples: Counter[str] = Counter()
        self.numbers: dict[tuple[str, str], array[float]] = {}
        # Filters with several responses to a document, and pairs with values that no float can hold.
        self.several: set[str] = set()
        self.unusable: set[tuple[str, str]] = set()
        # Metrics of which less is better.
        self.inverse: set[str] = set()

    def add(self, chosen: str, values: Mapping[str, str | None], responses: str | None) -> None:
        """Add the values of one sample; None is not scored."""
        self.samples[chosen] += 1
        if responses not in (None, "1"):
            self.several.add(chosen)
        for name, value in values.items():
            if value is not None:
                numbers = self.numbers.setdefault((name, chosen), array("d"))
                if (number := number_of(value)) is not None:
                    numbers.append(number)
                else:
                    self.unusable.add((name, chosen))


def read_lm_eval(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read the samples of one task into rows of text cells."""
    task, time = _task_and_time(path)
    run, scores = run_of(path, time), _Scores()
    common = {"iteration_id": "1", "suite": task, "run_id": time} | run.settings(task)
    samples = line_records(path, "sample", partial(_fill, task, common, scores), {"llm_name": run.model})
    table = table_from_records(path, FORMAT, (*COLUMNS, _EXPORTED), samples, raw_lines, files=(path, *run.files))
    names = (name for name, _ in scores.numbers)
    scores.inverse = {name for name in names if _declared(run, task, name).get("higher_is_better") is False}
    metric, chosen = _choose(path, scores, (options or ReadOptions()).score)
    decisive = _judges_one(scores, metric, chosen)
    own = (*words(f"metric passed weighted_score {_EXPORTED}"), f"metric_{metric}")
    exported = ("classification",) if "classification" in table.columns else ()
    table = settle(table, (*own, *exported), partial(_judge, metric, decisive=decisive))
    kept = table.rows.filter(pl.col(ROW_ERROR_KIND).is_not_null() | (pl.col("filter") == chosen)).drop(_EXPORTED)
    table = replace(table, rows=kept, columns=tuple(name for name in table.columns if name != _EXPORTED))
    figures, notes = figures_of(run, task, scores), [*run.notes, *_notes(scores, metric, chosen)]
    if not decisive:
        notes.append(f"{metric} {_NO_VERDICT}")
        figures = [
            replace(each, note=f"{metric} {_NO_VERDICT}") if each.name == f"{metric},{chosen}" else each
            for each in figures
        ]
    return table.stating(figures, settings_of(run, task, {"metric": metric, "filter": chosen}), notes)


def _recognizes(head: Head) -> bool:
    named = head.name.startswith("samples_") or head.has_keys("resps") or head.has_keys("filtered_resps")
    return named and head.has_keys("doc_id", "doc")


ADAPTER = Adapter(FORMAT, "lm-eval samples", _recognizes, read_lm_eval)


def _task_and_time(path: Path) -> tuple[str, str | None]:
    """The task and the time in the file's name; without the usual form, the task is the whole name."""
    stem = Path(uncompressed_name(path)).stem
    match = _NAME.fullmatch(stem)
    return (name_of_key(match[1]), match[2]) if match else (stem, None)


def _fill(task: str, common: Cells, scores: _Scores, cells: Cells, sample: Mapping[str, object]) -> None:
    doc_id = text_of(sample.get("doc_id"))
    if doc_id is None or isinstance(sample["doc_id"], dict | list):
        raise RefusedRecordError("bad_id", "the doc_id is missing")
    chosen, responses = text_of(sample.get("filter")) or _NO_FILTER, _responses(sample.get("resps"))
    values = {name: _value(name, sample[name]) for name in _metrics(sample) if name in sample}
    cells |= {"oid": f"{task}/{doc_id}", "responses": responses}
    cells |= {name: text_of(sample.get(name)) for name in _HASHES}
    cells |= {f"metric_{name}": value for name, value in values.items()} | common | {"filter": chosen}
    scores.add(chosen, values, responses)
    exported = inside(sample, KEY)
    if "oid" in exported:
        restore(cells, exported)
        # Kept if it agrees with the verdict, which is not known yet.
        cells |= {"classification": text_of(exported.get("classification")), _EXPORTED: "true"}


def _metrics(sample: Mapping[str, object]) -> list[str]:
    """The names of the metrics: as listed, or every key that is nothing else in files from before they were."""
    listed = sample.get("metrics")
    names = listed if isinstance(listed, list) else [name for name in sample if name not in _NOT_METRICS]
    found = [name for name in names if isinstance(name, str) and text_of(name) == name]
    if len(found) > _MAX_METRICS:
        raise RefusedRecordError("ragged", f"{len(found)} metrics; at most {_MAX_METRICS} are read")
    return found


def _value(name: str, value: object) -> str | None:
    """A number or a boolean as text; other values, such as the parts of a perplexity, are not scores."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, Number):
        return None if value in _NOT_SCORED else str(value)
    if value is None or isinstance(value, list | dict):
        return None
    raise RefusedRecordError("bad_number", f"{name}: {text_of(value)!r} is not a number")


def _responses(resps: object) -> str | None:
    """How many responses were generated for the document."""
    first = resps[0] if isinstance(resps, list) and resps else None
    return str(len(first)) if isinstance(first, list) else None


def _choose(path: Path, scores: _Scores, score: str | None) -> tuple[str, str]:
    """The metric and the filter whose values are read."""
    filters, metrics = list(scores.samples), list(dict.fromkeys(metric for metric, _ in scores.numbers))
    if score is None:
        if not metrics and filters:
            why = "no metric has a number for a document, as for perplexity; the results file has the aggregates"
            raise NotEvaluatedError(f"{path}: {why}", "ignored")
        if not metrics:
            raise InputFileError(f"{path}: no sample can be read")
        numbers = [name for name in metrics if (name, filters[0]) in scores.numbers]
        single = (name for name in numbers if not _SEVERAL_ATTEMPTS.match(name))
        verdicts = [name for name in single if _judges_one(scores, name, filters[0])]
        return next(iter([*verdicts, *numbers, *metrics])), filters[0]
    metric, _, named = score.rpartition(",")
    pair = (metric, named) if named in filters and metric in metrics else (score, filters[0] if filters else "")
    if pair[0] not in metrics:
        listed = [f"{metric},{each}" for each in filters for metric in metrics]
        raise InputFileError(f"{path}: no score '{score}'; there are: {_listed(listed)}")
    return pair


def _judges_one(scores: _Scores, name: str, chosen: str) -> bool:
    """Whether a metric is a verdict: always 0 or 1, and not the share of several responses, which may happen to be."""
    shares = _SHARE.match(name) and chosen in scores.several
    usable = name not in scores.inverse and (name, chosen) not in scores.unusable
    numbers = scores.numbers.get((name, chosen), ())
    return not shares and usable and all(number in (0.0, 1.0) for number in numbers)


def _judge(metric: str, rows: pl.DataFrame, *, decisive: bool) -> pl.DataFrame:
    """Set verdict and score of the rows by the metric; the score that an exported row has stays."""
    value = pl.col(f"metric_{metric}")
    number, is_own = value.cast(pl.Float64, strict=False), pl.col(_EXPORTED).is_not_null()
    score = pl.when(is_own).then("weighted_score").when(number.is_between(0, 1)).then(value)
    passed = pl.when(value.is_not_null() & decisive).then((number == 1).cast(pl.String))
    accepted = pl.col(ROW_ERROR_KIND).is_null()
    rows = rows.with_columns(
        passed=passed, weighted_score=score, metric=pl.when(accepted).then(pl.lit(metric, pl.String))
    )
    if "classification" in rows.columns:
        is_pass = pl.col("classification") == PASS_CLASS
        agrees = is_pass == (pl.col("passed") == "true")
        rows = rows.with_columns(pl.when(agrees).then("classification").alias("classification"))
    return rows


def _notes(scores: _Scores, metric: str, chosen: str) -> list[str]:
    others = [f"{name},{each}" for name, each in scores.numbers if (name, each) != (metric, chosen)]
    notes = [f"left out: {', '.join(_LEFT_OUT)}"]
    if others:
        notes.insert(0, f"the score is {metric},{chosen}; others can be chosen: {_listed(others)}")
    if _SEVERAL_ATTEMPTS.match(metric):
        notes.append(f"{metric} is about several attempts: each row stands for all of them")
    return notes


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
