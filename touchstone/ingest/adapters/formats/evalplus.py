"""Adapter for evalplus results (`*_eval_results.json`): the verdicts of base and plus tests on every sample of a task.

An attempt has two verdicts, so it becomes two rows: `base/<task>` in the suite `base` and `plus/<task>` in the suite
`plus`, both in the cluster `<task>`. As in evalplus's own figure, an attempt passes plus only if it passes base too.
Statuses are `pass`, `fail` and `timeout`; the layout of 2023 has `success`, `failed` and `timed out` in lists of
`[status, details]`, and no solutions; a fork numbers several such runs of a task. The list's order is the attempt.
Model, backend and temperature are in the file's name, `/` written as `--`:
`acme--fixer-7b_openai_temp_0.8_eval_results.json`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head
from touchstone.ingest.adapters.exported import KEY, exported_model, restore
from touchstone.ingest.adapters.json_files import (
    inside,
    number_of,
    object_of,
    raw_values,
    shown_json,
    skim_document,
    stated_settings,
    text_of,
)
from touchstone.ingest.adapters.json_stream import Keep, Members, Shape
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    NamedModel,
    RefusedRecordError,
    ReportedFigure,
    fill_records,
    model_of_name,
    table_from_records,
    words,
)
from touchstone.ingest.adapters.tool_figures import counts_of_table, pass_at_k_figures
from touchstone.ingest.compressed import uncompressed_name
from touchstone.ingest.csv_rows import LINE

FORMAT = "evalplus"
COLUMNS = words(
    "oid iteration_id llm_name suite cluster passed classification fixed_code base_status plus_status backend "
    "temperature date hash"
)
BASE, PLUS = "base", "plus"
_CLASSES = {
    "pass": "pass",
    "success": "pass",
    "fail": "fail",
    "failed": "fail",
    "timeout": "timeout",
    "timed out": "timeout",
}
_KS = (1, 10, 100)
_SHAPE: Shape = {"eval": Members(Keep()), "pass_at_k": Keep(), KEY: Keep()}
_ENDING = re.compile(r"[_.]?eval_results\.json$|\.json$")
_BACKENDS = "vllm|hf|openai|anthropic|google|bedrock|ollama|gptqmodel|mindie|tgi"
_SETTINGS = re.compile(rf"(?:_(?P<backend>{_BACKENDS}))?_temp_(?P<temperature>\d+(?:\.\d+)?)(?P<rest>.*)$")
_LEFT_OUT = "the inputs of failed tests were left out"
_BASE_ONLY = "the file has base verdicts only (evalplus ran with --base-only)"


class _Row(NamedTuple):
    """One verdict on one sample; `sample` is what the file has for it."""

    task_id: str
    attempt: int
    suite: str
    sample: object


def read_evalplus(path: Path) -> AdapterTable:
    """Read the verdicts of one results file into rows of text cells."""
    named, settings = model_and_settings(path)
    shared: Cells = {"llm_name": named.name, **settings}
    document: dict[str, object] = {}
    has_plus = False

    def rows() -> Iterator[_Row]:
        nonlocal has_plus, named
        for row in _rows(path, document):
            has_plus = has_plus or inside(row.sample).get("plus_status") is not None
            yield row
        if exported := exported_model(document):
            named = NamedModel(exported, "")
            shared.update(dict.fromkeys(settings), llm_name=exported)
        shared.update(date=text_of(document.get("date")), hash=text_of(document.get("hash")))

    records = fill_records(enumerate(rows(), start=1), _fill)
    table = table_from_records(path, FORMAT, COLUMNS, records, raw_values(partial(_samples, 2)), shared=shared)
    if not has_plus:
        base = table.rows.filter(pl.col(LINE) % 2 == 1).with_columns((pl.col(LINE) + 1) // 2)
        table = replace(table, rows=base, raw_reader=raw_values(partial(_samples, 1)))
    figures = [
        figure for suite in (BASE, PLUS) for figure in _figures(named.name, suite, table, document.get("pass_at_k"))
    ]
    notes = [*filter(None, [named.note]), _LEFT_OUT, *([] if has_plus else [_BASE_ONLY])]
    # The hash is that of the problems and their tests.
    judged = stated_settings(named.name, "validator", document, "hash")
    return table.stating(figures, judged, notes)


def model_and_settings(path: Path) -> tuple[NamedModel, Cells]:
    """The model, backend and temperature in a results file's or samples file's name, or in its folder's.

    >>> model, settings = model_and_settings(Path("acme--fixer-7b_openai_temp_0.8_eval_results.json"))
    >>> model.name, settings
    ('acme/fixer-7b', {'backend': 'openai', 'temperature': '0.8'})
    """
    named = model_of_name(path, _ENDING.sub("", uncompressed_name(path)).removesuffix(".jsonl"))
    found = _SETTINGS.search(named.name)
    model = named.name.replace("--", "/")
    settings: Cells = {}
    if found is not None and found.start() > 0:
        # The rest after the temperature tells two files of a model apart: `-sanitized`.
        model = named.name[: found.start()].replace("--", "/") + found["rest"]
        settings = {"backend": found["backend"], "temperature": found["temperature"]}
    return NamedModel(model, named.note.replace(named.name, model)), settings


def _recognizes(head: Head) -> bool:
    marks = {"base_status", "plus_status", "nfiles"}
    return ("eval",) in head.key_paths and (
        head.has_keys("hash", "date") or any(path[0] == "eval" and path[-1] in marks for path in head.key_paths)
    )


ADAPTER = Adapter(FORMAT, "evalplus results", _recognizes, lambda path, _: read_evalplus(path))


def _samples(suites: int, path: Path) -> Iterator[tuple[int, object]]:
    """The sample of every row, of which each has one per suite."""
    rows = (row.sample for row in _rows(path, {}) if row.suite == BASE)
    return enumerate((sample for sample in rows for _ in range(suites)), start=1)


def _rows(path: Path, document: dict[str, object]) -> Iterator[_Row]:
    """Two rows for each sample, as if the file had plus verdicts; then the rest of the file is in `document`."""
    for name, part in skim_document(path, _SHAPE, ["eval"]):
        if name is None:
            if not isinstance(part, dict) or not isinstance(part.get("eval"), dict):
                raise InputFileError(f"{path}: evalplus results need an object 'eval' with the samples of each task")
            document |= part
        else:
            assert isinstance(part, tuple)
            task, value = part
            for attempt, sample in enumerate(_samples_of(value), start=1):
                yield from (_Row(task, attempt, suite, sample) for suite in (BASE, PLUS))


def _samples_of(value: object) -> list[object]:
    """The samples of a task in today's form, whichever layout the file has."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict) or not isinstance(value.get(BASE), list):
        runs = list(inside(value).values())
        is_repeated = runs and all(isinstance(inside(each).get(BASE), list) for each in runs)
        return [sample for each in runs for sample in _samples_of(each)] if is_repeated else [value]
    base, plus = value[BASE], value.get(PLUS)
    plus = plus if isinstance(plus, list) else []
    return [
        {"base_status": _status(base, place), "plus_status": _status(plus, place)}
        for place in range(max(len(base), len(plus)))
    ]


def _status(pairs: list[object], place: int) -> object:
    """The status in a pair of status and details."""
    pair = pairs[place] if place < len(pairs) else None
    return pair[0] if isinstance(pair, list) and pair else pair


def _fill(cells: Cells, row: _Row) -> None:
    sample = object_of(row.sample, f"sample of {row.task_id[:100]}")
    named = sample.get("task_id", row.task_id)
    if named != row.task_id:
        other = f"it is listed under {row.task_id[:100]!r} but its task_id is {shown_json(named)[:100]}"
        raise RefusedRecordError("contradiction", other)
    outcome = _class(sample, row.suite)
    cells |= {
        "oid": f"{row.suite}/{row.task_id}",
        "iteration_id": str(row.attempt),
        "suite": row.suite,
        "cluster": row.task_id,
        "passed": None if outcome is None else text_of(outcome == "pass"),
        "classification": outcome,
        "fixed_code": text_of(sample.get("solution")),
        "base_status": text_of(sample.get("base_status")),
        "plus_status": text_of(sample.get("plus_status")),
    }
    restore(cells, inside(sample, KEY, row.suite))


def _class(sample: Mapping[str, object], suite: str) -> str | None:
    """The class of an attempt in a suite; null if the file has no verdict. A failure in base is one in plus."""
    base = _class_of_status(sample, BASE)
    if suite == BASE or base not in ("pass", None):
        return base
    plus = _class_of_status(sample, PLUS)
    return None if base is None and plus == "pass" else plus


def _class_of_status(sample: Mapping[str, object], suite: str) -> str | None:
    status = text_of(sample.get(f"{suite}_status"))
    if status is None:
        return None
    if status not in _CLASSES:
        raise RefusedRecordError("bad_boolean", f"{suite}_status: {status[:100]!r} is not pass, fail or timeout")
    return _CLASSES[status]


def _figures(model: str, suite: str, table: AdapterTable, stated: object) -> list[ReportedFigure]:
    known = {key: number_of(value) for key, value in inside(stated, suite).items()}
    return pass_at_k_figures(model, counts_of_table(table, suite), _KS, known, suite)
