"""Adapter for lighteval's details: `details/<model>/<time>/details_<task>_<time>.parquet`, a row per sample.

A sample is a problem of its task. The metric that decides is the first that is 0 or 1; one of several generations, such
as `pass@1` with 16 samples, is a share and decides nothing. `results_<time>.json` names the model and states the
figures; without it the model is what the folders are called.
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
)
from touchstone.ingest.adapters.parquet_files import MAGIC, raw_parquet, scan_parquet_text, schema_names
from touchstone.ingest.adapters.table import AdapterTable, Cells, Record
from touchstone.ingest.adapters.tool_figures import Sample, scored_table
from touchstone.ingest.compressed import uncompressed_name

FORMAT = "lighteval"
# Of today, and until 2025.
_COLUMNS = ({"doc", "metric", "model_response"}, {"full_prompt", "metrics", "predictions"})
_NAME = re.compile(r"details_(?P<task>.+?)_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+)\.parquet")
_MAX_TEXT = 10_000


def read_lighteval(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the details of one task into rows of text cells."""
    found = _NAME.fullmatch(uncompressed_name(path))
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
    metrics = [inside(each) for each in list_of(config.get("metrics") or config.get("metric"))]
    means = [text_of(each.get("metric_name")) for each in metrics if each.get("corpus_level_fn") == "mean"]
    figures = inside(stated, "results", task)
    generation = inside(general, "model_config", "generation_parameters")
    run: Cells = {"llm_name": model, "run_id": time, "suite": task, "iteration_id": "1"}
    return scored_table(
        path,
        FORMAT,
        [_sample(line, row, run) for line, row in enumerate(_rows(path), start=1)],
        raw_parquet,
        options.score,
        stated={(task, name): number_of(value) for name, value in figures.items() if name in means},
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
        graded=[text_of(each.get("metric_name")) for each in metrics if each.get("higher_is_better") is False],
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


def _parsed(value: object) -> dict[str, object]:
    """A nested value of a row, which some versions wrote as Python prints it."""
    text = str(value)
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return inside(DECODER.decode(text) if text.startswith('{"') else ast.literal_eval(text[:_MAX_TEXT]))
    return {}


def _sample(line: int, row: dict[str, object], run: Cells) -> Sample:
    doc, metrics = _parsed(row.get("doc")), _parsed(row.get("metric") or row.get("metrics"))
    asked = text_of(doc.get("query") or row.get("full_prompt"))
    oid = f"{run['suite']}/{text_of(doc.get('id')) or line - 1}"
    cells: Cells = {**run, "oid": oid, "asked_sha": digest_of(asked) if asked else None}
    pairs = ((str(name), float(value) if isinstance(value, bool) else value) for name, value in metrics.items())
    return Sample(Record(line, cells), {name: number_of(value) for name, value in pairs})
