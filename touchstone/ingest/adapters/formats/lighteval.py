"""Adapter for lighteval's details: `details/<model>/<time>/details_<task>_<time>.parquet`.

A sample is a problem of its task. It has a row per way of sampling: the metrics of one generation, of several and of
log-probabilities follow each other as blocks, in the same order of samples. The metric that decides is the first of the
task that is 0 or 1; one of several generations, such as `pass@1` with 16 samples, is a share and decides nothing.
`results_<time>.json` names the model and states the figures; without it the model is what the folders are called.
"""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions, not_evaluated
from touchstone.ingest.adapters.folders import object_beside
from touchstone.ingest.adapters.json_files import (
    DECODER,
    GENERATION,
    digest_of,
    inside,
    list_of,
    number_of,
    stated_settings,
    text_of,
    whole_number,
)
from touchstone.ingest.adapters.parquet_files import MAGIC, raw_parquet, scan_parquet_text, schema_names
from touchstone.ingest.adapters.table import AdapterTable, Cells, Record
from touchstone.ingest.adapters.tool_figures import Sample, is_of_one, scored_table

FORMAT = "lighteval"
# Of today, and until 2025.
_COLUMNS = ({"doc", "metric", "model_response"}, {"full_prompt", "metrics", "predictions"})
# A copy of the file has more after the time.
_NAME = re.compile(r"details_(?P<task>.+?)_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(\.\d+)?)")
_MAX_TEXT = 1_000_000
# `ast.literal_eval` refuses these. It reads an empty tuple, which is not a number either.
_NOT_A_NUMBER = re.compile(r"-?\b(nan|inf)\b")
_OF_ONE = re.compile(r".*\bn=1\b")


def read_lighteval(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the details of one task into rows of text cells."""
    found = _NAME.match(path.name)
    task, time = (found["task"], found["time"]) if found else (path.stem.removeprefix("details_"), None)
    folders = path.absolute().parent.parts[: -1 if path.absolute().parent.name == time else None]
    start = max((place + 1 for place, part in enumerate(folders) if part == "details"), default=len(folders) - 1)
    name = f"results_{time}.json"
    file, stated = object_beside(Path(*folders[: start - 1], "results", *folders[start:], name), name)
    if not stated:
        file, stated = object_beside(Path(*folders, name), name)
    general, configs = inside(stated, "config_general"), inside(stated, "config_tasks")
    # Until 2025 the name of a task had no number of shots there.
    config = inside(configs, task) or inside(configs, task.rpartition("|")[0])
    model = text_of(general.get("model_name")) or "/".join(folders[start:]) or "unnamed"
    aggregations, better = _by_metric(config, "corpus_level_fn"), _by_metric(config, "higher_is_better")
    figures = inside(stated, "results", task)
    generation = inside(general, "model_config", "generation_parameters") or inside(general, "generation_parameters")
    run: Cells = {"llm_name": model, "run_id": time, "suite": task}
    docs, seeds = (whole_number(each) for each in (config.get("effective_num_docs"), general.get("num_fewshot_seeds")))
    samples, generations = _samples(path, run, docs, seeds)

    def decides(metric: str) -> bool:
        # LiveCodeBench's `codegen_pass@1:16` may be of one generation.
        one = bool(generations and "pass@1:" in metric) or is_of_one(metric)
        return better.get(metric) is not False and (one if generations <= 1 else bool(_OF_ONE.match(metric)))

    return scored_table(
        path,
        FORMAT,
        samples,
        raw_parquet,
        options.score,
        # Some versions sort the metrics of the details.
        preferred=list(better),
        stated={(task, name): number_of(value) for name, value in figures.items() if aggregations.get(name) == "mean"},
        settings=[
            *stated_settings(model, "generation", generation, f"{GENERATION} max_new_tokens", task),
            *stated_settings(
                model,
                "task_version",
                {**config, "task_version": config.get("version")},
                "task_version hf_revision",
                task,
            ),
            *stated_settings(model, "problems", config, "num_fewshots hf_repo hf_subset", task),
        ],
        notes=[] if stated else [f"no results file of the same time: the model is the folders' name, {model}"],
        files=(path, *file),
        decides=decides,
    )


def _recognizes(head: Head) -> bool:
    try:
        return head.data.startswith(MAGIC) and any(each.issubset(schema_names(head.path)) for each in _COLUMNS)
    except InputFileError:
        return False


ADAPTER = Adapter(FORMAT, "lighteval details", _recognizes, read_lighteval)
RESULTS = not_evaluated(
    "lighteval-results",
    "lighteval aggregates",
    lambda head: head.has_keys("config_general", "results"),
    "aggregates of lighteval; the attempts are in the details_*.parquet files that `--save-details` writes",
    "ignored",
)


def _rows(path: Path) -> Iterator[dict[str, object]]:
    names = schema_names(path)
    known = [name for name in names if name in ("doc", "metric", "full_prompt", "metrics")]
    return scan_parquet_text(path, names).select(known).collect().iter_rows(named=True)


def _by_metric(config: dict[str, object], key: str) -> dict[str, object]:
    """A property of each metric of a task; some metrics are configured together."""
    values: dict[str, object] = {}
    for each in map(inside, list_of(config.get("metrics") or config.get("metric"))):
        names, value = each.get("metric_name"), each.get(key)
        for name in names if isinstance(names, list) else [names]:
            values[str(name)] = value.get(str(name)) if isinstance(value, dict) else value
    return values


def _parsed(value: object) -> dict[str, object]:
    """A nested value of a row, which some versions wrote as Python prints it."""
    text = str(value)
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        if text.startswith('{"'):
            return inside(DECODER.decode(text))
        return inside(ast.literal_eval(text) if len(text) < _MAX_TEXT else None)
    return {}


def _samples(path: Path, run: Cells, docs: int | None, seeds: int | None) -> tuple[list[Sample], float]:
    """The samples, and how many generations each has; 0 if the details do not say it."""
    samples: list[Sample] = []
    attempts: dict[tuple[str, int], Sample] = {}
    contents: dict[str, list[int]] = {}
    generations, place, block = 0.0, -1, set[str]()
    for line, row in enumerate(_rows(path), start=1):
        doc, written = _parsed(row.get("doc")), str(row.get("metric") or row.get("metrics") or {})
        parsed = _parsed(_NOT_A_NUMBER.sub("()", written))
        metrics = {name: value for name, value in parsed.items() if value is not None}
        if metrics and block and block.isdisjoint(metrics):
            place, block = -1, set()
        place, block = place + 1, block | metrics.keys()
        if number := text_of(doc.get("id")):
            # Every split of a data set counts from 0.
            seed, known = 0, contents.setdefault(number, [])
            content = hash((text_of(doc.get("query")), text_of(doc.get("choices"))))
            known += [content] if content not in known else []
            number += f"#{known.index(content) + 1}" if content != known[0] else ""
        else:
            # All samples follow each other once more for each seed of the few-shot examples: another attempt.
            seed, problem = divmod(place, docs) if docs else (0, place)
            seed, number = min(seed, (seeds or 1) - 1), str(problem)
        asked = text_of(doc.get("query") or row.get("full_prompt"))
        cells: Cells = {**run, "oid": f"{run['suite']}/{number}", "iteration_id": str(seed + 1)}
        cells["asked_sha"] = digest_of(asked) if asked else None
        generations = max(generations, number_of(doc.get("num_samples")) or 0)
        pairs = ((name, float(value) if isinstance(value, bool) else value) for name, value in metrics.items())
        values = {name: number_of(value) for name, value in pairs}
        sample = attempts.get((number, seed))
        broken = not parsed and written != "{}"
        if sample is None or broken or not values.keys().isdisjoint(sample.values):
            reason = ("ragged", "the metrics cannot be read") if broken else (None, None)
            sample = Sample(Record(line, cells, *reason), {})
            samples.append(sample)
            attempts[number, seed] = sample
        sample.values.update(values)
    return samples, generations
