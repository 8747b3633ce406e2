"""Adapter for the samples files of EleutherAI's lm-eval: one line per document and filter.

A file is named `samples_<task>_<time>.jsonl` and lies in the model's folder beside `results_<time>.json`, which names
the model and has the aggregates (see `results`). The task is the suite, the problem is `<task>/<doc_id>`, and
the files of one task in a folder are its attempts in order of time. The responses of one run to one document are judged
together, so they are one attempt.

A line has a value per metric. One metric under one filter is the verdict: the one that `score` names ("acc",
"exact_match,strict-match"), else the first filter of the file and the first metric whose values are all 0 or 1. A
metric with fractions says nothing about single attempts, so its rows are undecided, also where the value is 0 or 1:
otherwise the pass rate would be that of the extreme cases. `pass@k` for k > 1 is about k attempts and is only read when
`score` names it. Null and NaN are unscored, and undecided.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, ReadOptions
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.json_files import numbered_lines, parse_line, raw_lines
from touchstone.ingest.adapters.json_values import text_of
from touchstone.ingest.adapters.lm_eval.results import figures_of, run_of
from touchstone.ingest.adapters.lossless_json import Number
from touchstone.ingest.adapters.table import AdapterTable, Record, RefusedRecordError, table_from_records

FORMAT = "lm-eval"
COLUMNS = (
    "oid",
    "iteration_id",
    "llm_name",
    "suite",
    "run_id",
    "passed",
    "weighted_score",
    "metric",
    "filter",
    "responses",
    "doc_hash",
    "prompt_hash",
    "target_hash",
)
_LEFT_OUT = ("doc", "target", "arguments", "resps", "filtered_resps")
_NOT_METRICS = {"doc_id", "filter", "metrics", "doc_hash", "prompt_hash", "target_hash", *_LEFT_OUT}
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


@dataclass
class Row:
    """One line: its document, its filter, and the value of every metric as text (None: not scored)."""

    record: Record
    filter: str = _NO_FILTER
    values: dict[str, str | None] = field(default_factory=dict)


def read_lm_eval(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read the samples of one task into rows of text cells."""
    task, time = _task_and_time(path)
    run = run_of(path, time)
    rows = [_row(line, text, task) for line, text in numbered_lines(path)]
    if not rows:
        raise InputFileError(f"{path}: the file is empty")
    read = [row for row in rows if row.record.kind is None]
    metric, chosen = _choose(path, read, (options or ReadOptions()).score)
    kept = [row for row in rows if row.record.kind is not None or row.filter == chosen]
    notes = [*run.notes, *_notes(read, metric, chosen)]
    decisive = _judges_one(read, metric, chosen)
    figures = figures_of(run, task, [(row.filter, row.values) for row in read])
    if not decisive:
        notes.append(f"{metric} {_NO_VERDICT}")
        figures = [replace(each, note=_NO_VERDICT) if each.name == f"{metric},{chosen}" else each for each in figures]
    common = {"iteration_id": _attempt(path, task, time), "llm_name": run.model, "suite": task, "run_id": time}
    for row in kept:
        if row.record.kind is None:
            _judge(row, metric, decisive=decisive)
            row.record.cells |= common | run.settings(task) | {"metric": metric, "filter": row.filter}
        else:
            row.record.cells["llm_name"] = run.model
    records = [row.record for row in kept]
    return table_from_records(
        path, FORMAT, COLUMNS, records, raw_lines, files=(path, *run.files), figures=figures, notes=notes
    )


def _recognizes(head: Head) -> bool:
    named = head.path.name.startswith("samples_") or head.has_keys("resps") or head.has_keys("filtered_resps")
    return named and head.has_keys("doc_id", "doc")


ADAPTER = Adapter(FORMAT, "lm-eval samples", _recognizes, read_lm_eval)


def _task_and_time(path: Path) -> tuple[str, str | None]:
    """The task and the time in the file's name; without the usual form, the task is the whole name."""
    match = _NAME.fullmatch(path.stem)
    return (match[1], match[2]) if match else (path.stem, None)


def _attempt(path: Path, task: str, time: str | None) -> str:
    """The place of this file among those of its task in the folder, in order of time, from 1."""
    if time is None:
        return "1"
    beside = (_task_and_time(each) for each in path.parent.glob("samples_*.jsonl"))
    times = sorted({other for name, other in beside if name == task and other is not None} | {time})
    return str(times.index(time) + 1)


def _row(line: int, text: str, task: str) -> Row:
    row = Row(Record(line))
    try:
        sample = parse_line(text, "sample")
        doc_id = text_of(sample.get("doc_id"))
        if doc_id is None or isinstance(sample["doc_id"], dict | list):
            raise RefusedRecordError("bad_id", "the doc_id is missing")
        row.filter = text_of(sample.get("filter")) or _NO_FILTER
        row.values = {name: _value(name, sample[name]) for name in _metrics(sample) if name in sample}
        cells = row.record.cells
        cells |= {"oid": f"{task}/{doc_id}", "responses": _responses(sample.get("resps"))}
        cells |= {name: text_of(sample.get(name)) for name in _HASHES}
        cells |= {f"metric_{name}": value for name, value in row.values.items()}
    except RefusedRecordError as refusal:
        row.record.kind, row.record.reason = refusal.kind, refusal.reason
    return row


def _metrics(sample: Mapping[str, object]) -> list[str]:
    """The names of the metrics: as listed, or every key that is nothing else in files from before they were."""
    listed = sample.get("metrics")
    names = listed if isinstance(listed, list) else [name for name in sample if name not in _NOT_METRICS]
    found = [name for name in names if isinstance(name, str) and text_of(name) == name]
    if len(found) > _MAX_METRICS:
        raise RefusedRecordError("ragged", f"{len(found)} metrics; at most {_MAX_METRICS} are read")
    return found


def _value(name: str, value: object) -> str | None:
    """A number or a boolean as text; other values, such as the parts of a perplexity, are no score."""
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


def _choose(path: Path, rows: Sequence[Row], score: str | None) -> tuple[str, str]:
    """The metric and the filter whose values are read."""
    filters = list(dict.fromkeys(row.filter for row in rows))
    metrics = list(dict.fromkeys(name for row in rows for name, value in row.values.items() if value is not None))
    if score is None:
        if not metrics:
            raise InputFileError(f"{path}: no metric has a number; there is nothing to evaluate")
        verdicts = [name for name in metrics if _is_default(rows, name, filters[0])]
        numbers = [name for name in metrics if any(row.values.get(name) for row in rows if row.filter == filters[0])]
        return next(iter([*verdicts, *numbers, *metrics])), filters[0]
    metric, _, named = score.rpartition(",")
    pair = (metric, named) if named in filters and metric in metrics else (score, filters[0] if filters else "")
    if pair[0] not in metrics:
        listed = [f"{metric},{each}" for each in filters for metric in metrics]
        raise InputFileError(f"{path}: no score '{score}'; there are: {_listed(listed)}")
    return pair


def _is_default(rows: Sequence[Row], name: str, chosen: str) -> bool:
    scored = any(row.values.get(name) is not None for row in rows if row.filter == chosen)
    return scored and not _SEVERAL_ATTEMPTS.match(name) and _judges_one(rows, name, chosen)


def _judges_one(rows: Sequence[Row], name: str, chosen: str) -> bool:
    """Whether a metric is a verdict: always 0 or 1, and not the share of several responses, which may happen to be."""
    of_filter = [row for row in rows if row.filter == chosen]
    shares = _SHARE.match(name) and any(row.record.cells["responses"] not in (None, "1") for row in of_filter)
    return not shares and all(_is_verdict(row.values.get(name)) for row in of_filter)


def _is_verdict(value: str | None) -> bool:
    return value is None or _number(value) in (0.0, 1.0)


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


def _judge(row: Row, metric: str, *, decisive: bool) -> None:
    value = row.values.get(metric)
    number = math.nan if value is None else _number(value)
    row.record.cells["passed"] = None if value is None or not decisive else text_of(number == 1)
    row.record.cells["weighted_score"] = value if 0 <= number <= 1 else None


def _notes(rows: Sequence[Row], metric: str, chosen: str) -> list[str]:
    pairs = dict.fromkeys(f"{name},{row.filter}" for row in rows for name, value in row.values.items() if value)
    others = [pair for pair in pairs if pair != f"{metric},{chosen}"]
    notes = [f"left out: {', '.join(_LEFT_OUT)}"]
    if others:
        notes.insert(0, f"the score is {metric},{chosen}; others can be chosen: {_listed(others)}")
    if _SEVERAL_ATTEMPTS.match(metric):
        notes.append(f"{metric} is about several attempts: each row stands for all of them")
    return notes


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
