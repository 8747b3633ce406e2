"""Adapter for forgetest reports: one JSON object whose list `results` has one element per attempt.

The suite is the id of the report's eval set. Compiler errors, test failures and anything else in a result are kept as
text, nested values as JSON. The report's own scores and aggregates are not read: they follow from the results.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head
from touchstone.ingest.adapters.json_files import (
    identifier_of,
    inside,
    list_elements,
    object_records,
    raw_values,
    section_of,
    text_of,
    unmapped_cells,
    whole_number,
)
from touchstone.ingest.adapters.json_stream import Each, Keep, Shape
from touchstone.ingest.adapters.table import AdapterTable, Cells, table_from_records, words

FORMAT = "forgetest"
COLUMNS = words(
    "oid iteration_id llm_name suite provider passed compiled tests_passed tests_failed tests_ignored lint_warnings "
    "latency_ms duration_seconds input_tokens output_tokens cost_usd compile_errors compile_warnings"
)
# The columns of keys in nested objects; other keys are kept as `<section>_<key>`.
_SECTIONS = {
    "compilation": {"success": "compiled"},
    "test_execution": {"passed": "tests_passed", "failed": "tests_failed", "ignored": "tests_ignored"},
    "clippy": {"warning_count": "lint_warnings"},
    "timing": {"llm_request_ms": "latency_ms", "total_ms": "duration_seconds"},
    "token_usage": {
        "prompt_tokens": "input_tokens",
        "completion_tokens": "output_tokens",
        "estimated_cost_usd": "cost_usd",
    },
}
_MAPPED = ("case_id", "attempt", "model", "provider")
_SHAPE: Shape = {"results": Each(Keep()), "eval_set": Keep()}


def read_forgetest(path: Path) -> AdapterTable:
    """Read a report into rows of text cells."""
    shared: Cells = {"suite": None}
    records = object_records(_results(path, shared), "result", _fill)
    return table_from_records(path, FORMAT, COLUMNS, records, raw_values(_results), shared=shared)


def _recognizes(head: Head) -> bool:
    own = {("results", LIST, "case_id"), ("results", LIST, "compilation")}
    return ("results", LIST) in head.key_paths and (head.has_keys("eval_set") or own <= head.key_paths)


ADAPTER = Adapter(FORMAT, "a forgetest report", _recognizes, lambda path, _: read_forgetest(path))


def _results(path: Path, shared: Cells | None = None) -> Iterator[tuple[int, object]]:
    """The elements of the results list; then the id of the eval set, which is their suite, is in `shared`."""
    around: dict[str, object] = {}
    yield from list_elements(path, _SHAPE, around)
    if not isinstance(around.get("results"), list):
        raise InputFileError(f"{path}: no results list; a forgetest report is an object with a list 'results'")
    if shared is not None:
        shared["suite"] = text_of(inside(around, "eval_set").get("id"))


def _fill(cells: Cells, result: Mapping[str, object]) -> None:
    cells["llm_name"] = identifier_of(result, "model")
    sections = {name: section_of(result, name) for name in _SECTIONS}
    built = sections["compilation"] or {}
    nested = {
        column: text_of((sections[name] or {}).get(key))
        for name, columns in _SECTIONS.items()
        for key, column in columns.items()
    }
    cells |= nested | {
        "oid": identifier_of(result, "case_id"),
        "iteration_id": identifier_of(result, "attempt"),
        "provider": text_of(result.get("provider")),
        "passed": _passed(built.get("success"), sections["test_execution"]),
        "duration_seconds": _seconds(nested["duration_seconds"]),
        "compile_errors": _length(built.get("errors")),
        "compile_warnings": _length(built.get("warnings")),
        **unmapped_cells(result, _MAPPED, _SECTIONS, COLUMNS),
    }


def _passed(compiled: object, tests: Mapping[str, object] | None) -> str | None:
    """Passed means compiled, at least one test, and none failed; null if the report does not say."""
    if not isinstance(compiled, bool):
        return None
    if not compiled or tests is None:
        return "false"
    passed, failed = whole_number(tests.get("passed")), whole_number(tests.get("failed"))
    if passed is None or failed is None:
        return None
    return "true" if passed > 0 and failed == 0 else "false"


def _length(value: object) -> str | None:
    return str(len(value)) if isinstance(value, list) else text_of(value)


def _seconds(milliseconds: str | None) -> str | None:
    """Milliseconds as seconds without rounding; anything but a number is left to the rules, which refuse it."""
    if milliseconds is None:
        return None
    try:
        return str(Decimal(milliseconds).scaleb(-3))
    except ArithmeticError:
        return milliseconds
