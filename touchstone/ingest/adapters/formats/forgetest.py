"""Adapter for forgetest reports: one JSON object whose list `results` has one element per attempt.

The suite is the id of the report's eval set. Compiler errors, test failures and anything else in a result are kept as
text, nested values as JSON. The report's own scores and aggregates are not read: they follow from the results.

A result is identified by the line it starts on. If two results share a line (a report without line breaks), every
result of the file is identified by its position in the list instead, from 1, so that the number is unique.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head
from touchstone.ingest.adapters.json_files import (
    DECODER,
    identifier_of,
    inside,
    object_records,
    parse_document,
    read_text,
    section_of,
    shown_json,
    text_of,
    unmapped_cells,
    whole_number,
)
from touchstone.ingest.adapters.table import AdapterTable, Cells, table_from_records, words
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH

FORMAT = "forgetest"
COLUMNS = words(
    "oid iteration_id llm_name suite provider passed compiled tests_passed tests_failed tests_ignored lint_warnings "
    "latency_ms duration_seconds input_tokens output_tokens cost_usd compile_errors compile_warnings"
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
_LIST = re.compile(r'"results"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")


def read_forgetest(path: Path) -> AdapterTable:
    """Read a report into rows of text cells."""
    text = read_text(path)
    results, suite = _results(path, text)
    places = _places(text, _spans(text, results), len(results))
    records = object_records(zip(places, results, strict=True), "result", _fill, {"suite": suite})
    return table_from_records(path, FORMAT, COLUMNS, records, _raw)


def _recognizes(head: Head) -> bool:
    own = {("results", LIST, "case_id"), ("results", LIST, "compilation")}
    return ("results", LIST) in head.key_paths and (head.has_keys("eval_set") or own <= head.key_paths)


ADAPTER = Adapter(FORMAT, "a forgetest report", _recognizes, lambda path, _: read_forgetest(path))


def _results(path: Path, text: str) -> tuple[list[object], str | None]:
    """The elements of the results list and the id of the eval set, which is their suite."""
    document = inside(parse_document(path, text))
    results = document.get("results")
    if not isinstance(results, list):
        raise InputFileError(f"{path}: no results list; a forgetest report is an object with a list 'results'")
    return results, text_of(inside(document, "eval_set").get("id"))


def _raw(path: Path, lines: set[int]) -> dict[int, str]:
    text = read_text(path)
    results, _ = _results(path, text)
    spans = _spans(text, results)
    shown = [text[start:end] for start, end in spans] or map(shown_json, results)
    places = _places(text, spans, len(results))
    return {place: each[:MAX_RAW_LENGTH] for place, each in zip(places, shown, strict=True) if place in lines}


def _spans(text: str, results: Sequence[object]) -> list[tuple[int, int]]:
    """The start and end of each result in the text; none if the list cannot be found there."""
    for key in _LIST.finditer(text):
        spans: list[tuple[int, int]] = []
        with suppress(json.JSONDecodeError):
            for value in results:
                between = _BETWEEN.match(text, spans[-1][1] if spans else key.end())
                start = between.end() if between else len(text)
                found, end = DECODER.raw_decode(text, start)
                if found != value:
                    break
                spans.append((start, end))
            else:
                return spans
    return []


def _places(text: str, spans: Sequence[tuple[int, int]], count: int) -> list[int]:
    lines: list[int] = []
    line, seen = 1, 0
    for start, _ in spans:
        line += text.count("\n", seen, start)
        seen = start
        lines.append(line)
    return lines if len(set(lines)) == count else list(range(1, count + 1))


def _fill(cells: Cells, result: Mapping[str, object]) -> None:
    cells["llm_name"] = identifier_of(result, "model")
    compilation = section_of(result, "compilation")
    tests = section_of(result, "test_execution")
    clippy = section_of(result, "clippy") or {}
    timing = section_of(result, "timing") or {}
    tokens = section_of(result, "token_usage") or {}
    built, tested = compilation or {}, tests or {}
    cells |= {
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
