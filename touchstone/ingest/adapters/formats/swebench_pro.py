"""Adapter for `eval_results.json` of SWE-bench Pro: an object that says of each instance whether it was resolved.

The evaluation script writes a failure for an instance whose tests gave no report. One whose container did not start is
only in `infra_errors.json` beside it, with the reason: an undecided attempt, a second one if another patch for the same
instance was judged. Neither file names the model; their folder does.
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import polars as pl

from touchstone.ingest.adapters.adapter import Adapter, Head, NotEvaluatedError
from touchstone.ingest.adapters.folders import beside, is_file, object_beside
from touchstone.ingest.adapters.json_files import identifier_of, inside, raw_values, read_document, text_of
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    RefusedRecordError,
    ReportedFigure,
    fill_records,
    model_of_name,
    table_from_records,
    words,
)
from touchstone.ingest.csv_rows import ROW_ERROR_KIND

_RESULTS, _ERRORS = "eval_results.json", "infra_errors.json"
_COLUMNS = words("oid iteration_id llm_name passed error")
_OUTCOME = r'\s*"(?:[^"\\]|\\.)*"\s*:\s*(?:true|false)\s*'
# Its first outcomes: one value of another kind among them, and it is another file.
_FIRST = re.compile(r"\{" + _OUTCOME + r"(?:," + _OUTCOME + r"){0,20}[,}]")
_FIRST_ERROR = re.compile(r'\{\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:\s*")')
# The instance, which of its attempts, and whether it was resolved or why it was not run.
_Attempt = tuple[str, str, object, str | None]


def read_results(path: Path) -> AdapterTable:
    """Read the verdicts of one file, and the errors beside it, into rows of text cells."""
    named = model_of_name(path, "")
    file, errors = object_beside(path, _ERRORS)

    def attempts(path: Path) -> Iterator[tuple[int, _Attempt]]:
        results = inside(read_document(path, unique_keys=True))
        judged: Iterator[_Attempt] = ((oid, "1", resolved, None) for oid, resolved in results.items())
        others = ((oid, "2" if oid in results else "1", None, text_of(why) or _ERRORS) for oid, why in errors.items())
        return enumerate(chain(judged, others), start=1)

    records = fill_records(attempts(path), _fill, {"llm_name": named.name})
    table = table_from_records(
        path, "swebench-pro", _COLUMNS, records, raw_values(attempts), files=[path, *file] if file else ()
    )
    with table.reading():
        passed = table.rows.filter(pl.col(ROW_ERROR_KIND).is_null()).select((pl.col("passed") == "true").mean())
        # The script prints it and does not write it.
        accuracy = ReportedFigure(named.name, "accuracy", None, passed.collect().item())
    return table.stating([accuracy], notes=[named.note])


def _fill(cells: Cells, attempt: _Attempt) -> None:
    oid, number, resolved, error = attempt
    cells |= {"oid": identifier_of({"instance": oid}, "instance"), "iteration_id": number, "error": error}
    if error is None and not isinstance(resolved, bool):
        raise RefusedRecordError("bad_boolean", f"{(text_of(resolved) or 'null')[:100]!r} is not true or false")
    cells["passed"] = text_of(resolved)


def _recognizes(head: Head) -> bool:
    if _FIRST.match(head.text):
        return head.name == _RESULTS or head.text[1:].lstrip().startswith('"instance_')
    return head.name == _RESULTS and head.text.rstrip() == "{}" and is_file(beside(head.path, _ERRORS))


ADAPTER = Adapter("swebench-pro", "SWE-bench Pro results", _recognizes, lambda path, _: read_results(path))


def _refuse_errors(path: Path) -> AdapterTable:
    if is_file(beside(path, _RESULTS)):
        raise NotEvaluatedError(f"{path}: instances that were not run; they are read with {_RESULTS}", "ignored")
    raise NotEvaluatedError(f"{path}: instances that were not run; put {_RESULTS} of the same run beside it", "unknown")


ERRORS = Adapter(
    "swebench-pro-errors",
    "SWE-bench Pro errors",
    lambda head: head.name == _ERRORS and _FIRST_ERROR.match(head.text) is not None,
    lambda path, _: _refuse_errors(path),
    marks="(an object with a text by instance, called infra_errors.json)",
)
