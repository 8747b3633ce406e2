"""Adapter for forgetest reports: one JSON object whose list `results` has one element per attempt.

The suite is the id of the report's eval set. Compiler errors, test failures and anything else in a result are kept as
text, nested values as JSON. The report's own scores and aggregates are not read: they follow from the results.

A result is identified by the line it starts on. If two results share a line (a report without line breaks), every
result of the file is identified by its position in the list instead, from 1, so that the number is unique.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter
from touchstone.ingest.adapters.head import LIST, Head
from touchstone.ingest.adapters.json_files import read_text
from touchstone.ingest.adapters.json_values import identifier_of, object_of, section_of, text_of, unmapped_cells
from touchstone.ingest.adapters.lossless_json import DECODER, Number
from touchstone.ingest.adapters.table import AdapterTable, Cells, Record, RefusedRecordError, table_from_records
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH

FORMAT = "forgetest"
COLUMNS = (
    "oid",
    "iteration_id",
    "llm_name",
    "suite",
    "provider",
    "passed",
    "compiled",
    "tests_passed",
    "tests_failed",
    "tests_ignored",
    "lint_warnings",
    "latency_ms",
    "duration_seconds",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "compile_errors",
    "compile_warnings",
)
# Keys of nested objects that have a column of their own; the others are kept as `<section>_<key>`.
_SECTIONS = {
    "compilation": ("success",),
    "test_execution": ("passed", "failed", "ignored"),
    "clippy": ("warning_count",),
    "timing": ("llm_request_ms", "total_ms"),
    "token_usage": ("prompt_tokens", "completion_tokens", "estimated_cost_usd"),
}
_MAPPED = ("case_id", "attempt", "model", "provider")
_SPACE = re.compile(r"[ \t\n\r]*")
_COUNT = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class _Element:
    """One element of the results list and its position in the text."""

    value: object
    start: int
    end: int


def read_forgetest(path: Path) -> AdapterTable:
    """Read a report into rows of text cells."""
    text = read_text(path)
    elements, suite = _results(path, text)
    places = _places(text, elements)
    records = [_record(place, element.value, suite) for place, element in zip(places, elements, strict=True)]
    return table_from_records(path, FORMAT, COLUMNS, records, _raw)


def _recognizes(head: Head) -> bool:
    return ("results", LIST) in head.key_paths


ADAPTER = Adapter(FORMAT, "a forgetest report", _recognizes, lambda path, _: read_forgetest(path))


def _raw(path: Path, lines: set[int]) -> dict[int, str]:
    text = read_text(path)
    elements, _ = _results(path, text)
    return {
        place: text[element.start : element.end][:MAX_RAW_LENGTH]
        for place, element in zip(_places(text, elements), elements, strict=True)
        if place in lines
    }


def _places(text: str, elements: list[_Element]) -> list[int]:
    lines: list[int] = []
    line, seen = 1, 0
    for element in elements:
        line += text.count("\n", seen, element.start)
        seen = element.start
        lines.append(line)
    return lines if len(set(lines)) == len(lines) else list(range(1, len(lines) + 1))


def _record(place: int, value: object, suite: str | None) -> Record:
    record = Record(place)
    try:
        result = object_of(value, "result")
        record.cells["llm_name"] = identifier_of(result, "model")
        record.cells |= {"suite": suite} | _cells(result)
    except RefusedRecordError as refusal:
        record.kind, record.reason = refusal.kind, refusal.reason
    return record


def _cells(result: Mapping[str, object]) -> Cells:
    compilation = section_of(result, "compilation")
    tests = section_of(result, "test_execution")
    clippy = section_of(result, "clippy") or {}
    timing = section_of(result, "timing") or {}
    tokens = section_of(result, "token_usage") or {}
    built, tested = compilation or {}, tests or {}
    return {
        "oid": identifier_of(result, "case_id"),
        "iteration_id": identifier_of(result, "attempt"),
        "provider": text_of(result.get("provider")),
        "passed": _passed(built.get("success"), tests),
        "compiled": text_of(built.get("success")),
        "tests_passed": text_of(tested.get("passed")),
        "tests_failed": text_of(tested.get("failed")),
        "tests_ignored": text_of(tested.get("ignored")),
        "lint_warnings": text_of(clippy.get("warning_count")),
        "latency_ms": text_of(timing.get("llm_request_ms")),
        "duration_seconds": _seconds(text_of(timing.get("total_ms"))),
        "input_tokens": text_of(tokens.get("prompt_tokens")),
        "output_tokens": text_of(tokens.get("completion_tokens")),
        "cost_usd": text_of(tokens.get("estimated_cost_usd")),
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
    passed, failed = _count(tests.get("passed")), _count(tests.get("failed"))
    if passed is None or failed is None:
        return None
    return "true" if passed > 0 and failed == 0 else "false"


def _count(value: object) -> int | None:
    # No count of tests has ten digits, and int() raises ValueError for thousands of digits.
    fits = isinstance(value, Number) and len(value) < 10 and _COUNT.fullmatch(value)
    return int(str(value)) if fits else None


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


def _results(path: Path, text: str) -> tuple[list[_Element], str | None]:
    """The elements of the results list and the id of the eval set, which is their suite."""
    try:
        found, eval_set = _find_results(text)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno} column {error.colno}"
        raise InputFileError(f"{path}: broken JSON at {at} ({error.msg})") from None
    except RecursionError:
        raise InputFileError(f"{path}: the JSON is nested too deeply") from None
    if found is None:
        raise InputFileError(f"{path}: no results list; a forgetest report is an object with a list 'results'")
    return found, text_of(eval_set.get("id")) if isinstance(eval_set, dict) else None


def _find_results(text: str) -> tuple[list[_Element] | None, object]:
    """Parse the top level by hand, because the decoder does not report where an element starts."""
    if not _at(text, 0, "{"):
        _only(text, _value(text, 0)[1])
        return None, None
    found: list[_Element] | None = None
    eval_set: object = None
    at = _after(text, 0, "{")
    while not _at(text, at, "}"):
        if not _at(text, at, '"'):
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, _skip(text, at))
        key, at = _value(text, at)
        at = _after(text, at, ":")
        if key == "results":
            found, at = _elements(text, at) if _at(text, at, "[") else (None, _value(text, at)[1])
        else:
            value, at = _value(text, at)
            eval_set = value if key == "eval_set" else eval_set
        at = _next(text, at, "}")
    _only(text, _after(text, at, "}"))
    return found, eval_set


def _elements(text: str, at: int) -> tuple[list[_Element], int]:
    elements: list[_Element] = []
    at = _after(text, at, "[")
    while not _at(text, at, "]"):
        start = _skip(text, at)
        value, at = _value(text, start)
        elements.append(_Element(value, start, at))
        at = _next(text, at, "]")
    return elements, _after(text, at, "]")


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _at(text: str, at: int, mark: str) -> bool:
    return text.startswith(mark, _skip(text, at))


def _after(text: str, at: int, mark: str) -> int:
    at = _skip(text, at)
    if not text.startswith(mark, at):
        raise json.JSONDecodeError(f"Expecting '{mark}'", text, at)
    return at + 1


def _next(text: str, at: int, closing: str) -> int:
    """The position of the next member: after the comma, or at the closing bracket."""
    if _at(text, at, closing):
        return at
    at = _after(text, at, ",")
    if _at(text, at, closing):
        raise json.JSONDecodeError("Illegal trailing comma", text, at - 1)
    return at


def _value(text: str, at: int) -> tuple[object, int]:
    return DECODER.raw_decode(text, _skip(text, at))


def _only(text: str, at: int) -> None:
    if _skip(text, at) != len(text):
        raise json.JSONDecodeError("Extra data", text, _skip(text, at))
