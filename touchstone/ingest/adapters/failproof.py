"""Adapter for FailProof `RunResult` files: one JSON object per line, the result of one case in one run.

FailProof has runs, not attempts: the runs of a model at a case, in order of time, are its iterations. A result passes
if its class is `pass`; it is refused if the recorded accuracy contradicts that. The response and the details of the
classification are kept as text.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.json_files import numbered_lines, parse_line, raw_lines
from touchstone.ingest.adapters.json_values import identifier_of, section_of, text_of, unmapped_cells
from touchstone.ingest.adapters.lossless_json import Number
from touchstone.ingest.adapters.table import AdapterTable, Cells, Record, RefusedRecordError, table_from_records

FORMAT = "failproof"
REQUIRED = ("case_id", "model_id", "classification")
COLUMNS = (
    "oid",
    "iteration_id",
    "llm_name",
    "suite",
    "run_id",
    "classification",
    "passed",
    "latency_ms",
    "error",
    "raw_response",
    "timestamp_utc",
    "recorded_accuracy",
)
_MAPPED = (
    "case_id",
    "suite_id",
    "run_id",
    "model_id",
    "timestamp_utc",
    "raw_response",
    "error",
    "latency_ms",
)
# Keys of nested objects that have a column of their own; the others are kept as `<section>_<key>`.
_SECTIONS = {"classification": ("primary",), "scores": ("accuracy",)}


def read_failproof(path: Path) -> AdapterTable:
    """Read the results of one or more runs into rows of text cells."""
    records: list[Record] = []
    times: dict[int, datetime] = {}
    first_lines: dict[bytes, int] = {}
    for line, text in numbered_lines(path):
        record = Record(line)
        try:
            times[line] = _fill(record, parse_line(text))
            _refuse_repetition(line, text, first_lines)
        except RefusedRecordError as refusal:
            record.kind, record.reason = refusal.kind, refusal.reason
        records.append(record)
    if not records:
        raise InputFileError(f"{path}: the file is empty")
    _number([record for record in records if record.kind is None], times)
    return table_from_records(path, FORMAT, COLUMNS, records, raw_lines)


def _recognizes(head: Head) -> bool:
    return all(name in head.first_record for name in REQUIRED)


ADAPTER = Adapter(FORMAT, "FailProof results", _recognizes, lambda path, _: read_failproof(path))


def _fill(record: Record, result: Mapping[str, object]) -> datetime:
    """Fill the cells of the record; returns the time of the run."""
    record.cells["llm_name"] = identifier_of(result, "model_id")
    primary = text_of((section_of(result, "classification") or {}).get("primary"))
    primary = (primary or "").strip().lower() or None
    accuracy = text_of((section_of(result, "scores") or {}).get("accuracy"))
    cells: Cells = {
        "oid": identifier_of(result, "case_id"),
        "suite": text_of(result.get("suite_id")),
        "run_id": text_of(result.get("run_id")),
        "classification": primary,
        "passed": None if primary is None else text_of(primary == "pass"),
        "latency_ms": text_of(result.get("latency_ms")),
        "error": text_of(result.get("error")),
        "raw_response": text_of(result.get("raw_response")),
        "timestamp_utc": text_of(result.get("timestamp_utc")),
        "recorded_accuracy": accuracy,
    }
    record.cells |= cells | unmapped_cells(result, _MAPPED, _SECTIONS, COLUMNS)
    _refuse_contradiction(primary, accuracy)
    return _time(result.get("timestamp_utc"))


def _refuse_contradiction(primary: str | None, accuracy: str | None) -> None:
    """The accuracy is 1 for the class `pass` and 0 for any other."""
    if accuracy is None:
        return
    try:
        recorded = float(accuracy)
    except ValueError:
        raise RefusedRecordError("bad_number", f"accuracy: {accuracy!r} is not a number") from None
    if primary is not None and recorded != (primary == "pass"):
        raise RefusedRecordError("contradiction", f"accuracy is {accuracy} but the class is {primary!r}")


def _time(value: object) -> datetime:
    """An ISO 8601 time; without an offset it is UTC, as the name of the key says."""
    if value is None or value == "":
        raise RefusedRecordError("bad_time", "the timestamp_utc is missing")
    try:
        # A bare number is ambiguous: seconds, or a date such as 20260101.
        if not isinstance(value, str) or isinstance(value, Number):
            raise ValueError
        time = datetime.fromisoformat(value.strip())
    except ValueError:
        raise RefusedRecordError("bad_time", f"timestamp_utc: {text_of(value)!r} is not an ISO 8601 time") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _refuse_repetition(line: int, text: str, first_lines: dict[bytes, int]) -> None:
    """Refuse a repeated line: it is the same result, and would be numbered as another attempt."""
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    first = first_lines.setdefault(digest, line)
    if first != line:
        raise RefusedRecordError("duplicate", f"repeats line {first}")


def _number(records: list[Record], times: Mapping[int, datetime]) -> None:
    """Number the runs of each model at each case from 1, ordered by time, run and line."""
    counts: dict[tuple[str | None, str | None], int] = {}
    for record in sorted(records, key=lambda each: (times[each.line], each.cells["run_id"] or "", each.line)):
        key = (record.cells["llm_name"], record.cells["oid"])
        counts[key] = counts.get(key, 0) + 1
        record.cells["iteration_id"] = str(counts[key])
