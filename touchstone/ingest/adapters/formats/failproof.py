"""Adapter for FailProof `RunResult` files: the result of one case in one run, as one JSON object per line, as elements
of a JSON list, as rows of a CSV file, or in the table `run_results` of FailProof's SQLite file.

FailProof has runs, not attempts: the runs of a model at a case, in order of time, are its iterations. A result passes
if its class is `pass`; it is refused if the recorded accuracy contradicts that, and undecided without a class. The
response and the details of the classification are kept as text. All four forms give the same rows.
"""

import ast
import hashlib
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head
from touchstone.ingest.adapters.json_files import (
    DECODER,
    Number,
    identifier_of,
    list_of,
    numbered_lines,
    object_of,
    parse_line,
    raw_lines,
    raw_values,
    read_document,
    section_of,
    text_of,
    unmapped_cells,
)
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    RawReader,
    RefusedRecordError,
    fill_records,
    first_line,
    number_attempts,
    table_from_records,
    words,
)
from touchstone.ingest.csv_rows import LINE, ROW_ERROR, ROW_ERROR_KIND, open_table, raw_rows, read_rows, readable
from touchstone.ingest.limits import limits

FORMAT = "failproof"
REQUIRED = ("case_id", "model_id")
# One of them tells a result from other records of a case and a model; the first comes with the classifier only.
_MARKS = ("classification", "scores", "timestamp_utc")
_NATIVE = {"oid", "iteration_id"}
_SQLITE, _TABLE = b"SQLite format 3\0", "run_results"
# A damaged or hostile database must not keep a reader busy: steps of its virtual machine per row that is read.
_MAX_STEPS_A_ROW = 1_000_000
COLUMNS = words(
    "oid iteration_id llm_name suite run_id classification passed latency_ms error raw_response timestamp_utc "
    "recorded_accuracy"
)
# Keys that are columns of the same name.
_SAME = ("run_id", "latency_ms", "error", "raw_response", "timestamp_utc")
_MAPPED = ("case_id", "suite_id", "model_id", *_SAME)
# Keys of nested objects that have a column of their own; the others are kept as `<section>_<key>`.
_SECTIONS = {"classification": ("primary",), "scores": ("accuracy",)}


def read_failproof(path: Path) -> AdapterTable:
    """Read the results of one or more runs into rows of text cells."""
    times: dict[int, datetime] = {}
    first_lines: dict[bytes, int] = {}
    results, raw_reader = _form_of(path)

    def fill(cells: Cells, result: tuple[int, partial[dict[str, object]]]) -> None:
        line, parse = result
        content = parse()
        times[line] = _fill(cells, content)
        _refuse_repetition(line, text_of(content) or "", first_lines)

    records = list(fill_records(((line, (line, parse)) for line, parse in results(path)), fill))
    if not records:
        raise InputFileError(f"{path}: the file is empty")
    accepted = [record for record in records if record.kind is None]
    # The runs of a model at a case by time, run and line.
    number_attempts(sorted(accepted, key=lambda each: (times[each.line], each.cells["run_id"] or "", each.line)))
    return table_from_records(path, FORMAT, COLUMNS, records, raw_reader)


def _recognizes(head: Head) -> bool:
    if head.data.startswith(_SQLITE):
        # The schema is at the start of the file.
        return _TABLE.encode() in head.data
    if head.text[:1] == "[":
        return _are_of_a_result({path[1] for path in head.key_paths if path[0] == LIST and len(path) == 2})
    return _are_of_a_result(head.first_record if head.text[:1] == "{" else head.csv_header)


def _are_of_a_result(names: Collection[str]) -> bool:
    """Whether a record with these keys is a result. With native ids it is native, whatever else it kept."""
    sections = {name.replace(".", "_").partition("_")[0] for name in names} | set(names)
    marked = not sections.isdisjoint(_MARKS)
    return all(name in names for name in REQUIRED) and marked and not _NATIVE.issubset(names)


# A result that is parsed only when it is its turn, so that one that cannot be is refused with its place.
_Results = Iterator[tuple[int, partial[dict[str, object]]]]


def _form_of(path: Path) -> tuple[Callable[[Path], _Results], RawReader]:
    """How results are read from the file, and how the text of refused ones is found again."""
    head = Head(path)
    if head.data.startswith(_SQLITE):
        return _rows_of_database, raw_values(lambda path: _parsed(_rows_of_database(path)))
    if head.text[:1] == "[":
        return _elements, raw_values(lambda path: enumerate(list_of(read_document(path)), start=1))
    if head.text[:1] == "{":
        return _lines, raw_lines
    return _rows_of_csv, lambda path, lines: raw_rows(open_table(path), lines)


def _lines(path: Path) -> _Results:
    return ((line, partial(parse_line, text)) for line, text in numbered_lines(path))


def _elements(path: Path) -> _Results:
    """The elements of a JSON list, counted from 1."""
    elements = enumerate(list_of(read_document(path)), start=1)
    return ((place, partial(object_of, value, "result")) for place, value in elements)


def _rows_of_csv(path: Path) -> _Results:
    """The rows of a CSV file, in which `classification` and `scores` are JSON, words, or columns of their own."""
    rows = read_rows(open_table(path), lambda rows: rows.collect())
    for row in rows.iter_rows(named=True):
        yield row[LINE], partial(_result_of_row, row)


def _result_of_row(row: Mapping[str, str | int | None]) -> dict[str, object]:
    kind, reason = row.get(ROW_ERROR_KIND), row.get(ROW_ERROR)
    if kind is not None:
        raise RefusedRecordError(str(kind), str(reason))
    result: dict[str, object] = {name: cell for name, cell in row.items() if not name.startswith("__")}
    for section, main in (("classification", "primary"), ("scores", "accuracy")):
        nested = _section_of_cell(section, result.pop(section, None), main)
        for name in [name for name in result if name.startswith((f"{section}.", f"{section}_"))]:
            nested[name[len(section) + 1 :]] = result.pop(name)
        if nested.get(main) is None and main in result:
            nested[main] = result.pop(main)
        result[section] = {key: value for key, value in nested.items() if value is not None} or None
    return result


def _section_of_cell(section: str, cell: object, main: str) -> dict[str, object]:
    """The nested object in a cell: JSON, the same as Python writes it, or the text of its main value alone."""
    text = str(cell or "").strip()
    if not text.startswith("{"):
        return {main: text if text not in ("", "null") else None}
    try:
        return object_of(DECODER.decode(text), section)
    except (ValueError, RecursionError):
        pass
    try:
        return object_of(ast.literal_eval(text), section)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise RefusedRecordError("ragged", f"the {section} is neither JSON nor a word: {text[:100]!r}") from None


def _rows_of_database(path: Path) -> _Results:
    """The rows of FailProof's table, in their order; nothing else in the file is used."""
    if (wal := path.with_name(f"{path.name}-wal")).exists() and wal.stat().st_size:
        raise InputFileError(
            f"{path}: {wal.name} beside it has changes that are not in the file; close FailProof first"
        )
    with readable(path):
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            yield from _selected(path, database)
    # Names and messages that are not UTF-8 cannot be decoded, whatever `text_factory` says.
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputFileError(f"{path}: cannot be read as SQLite ({first_line(error)})") from None


def _selected(path: Path, database: sqlite3.Connection) -> _Results:
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits().cell_bytes)
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    steps = 0

    def is_stuck() -> bool:
        nonlocal steps
        steps += 1
        return steps > 1

    database.set_progress_handler(is_stuck, _MAX_STEPS_A_ROW)
    found = database.execute("SELECT type FROM sqlite_master WHERE name = ?", (_TABLE,)).fetchone()
    if found != ("table",):
        raise InputFileError(f"{path}: there is no table {_TABLE}")
    rows = database.execute(f"SELECT * FROM {_TABLE} ORDER BY rowid")
    names = [column[0] for column in rows.description]
    for place, row in enumerate(rows, start=1):
        steps = 0
        values = dict(zip(names, (None if cell is None else _text_of_cell(cell) for cell in row), strict=True))
        yield place, partial(_result_of_row, values)


def _text_of_cell(cell: object) -> str:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)


def _parsed(results: _Results) -> Iterator[tuple[int, object]]:
    for place, parse in results:
        try:
            yield place, parse()
        except RefusedRecordError:
            yield place, parse.args[0]


ADAPTER = Adapter(FORMAT, "FailProof results", _recognizes, lambda path, _: read_failproof(path))


def _fill(cells: Cells, result: Mapping[str, object]) -> datetime:
    """Fill the cells of a record; returns the time of the run."""
    cells["llm_name"] = identifier_of(result, "model_id")
    primary = text_of((section_of(result, "classification") or {}).get("primary"))
    primary = (primary or "").strip().lower() or None
    accuracy = text_of((section_of(result, "scores") or {}).get("accuracy"))
    cells |= {
        "oid": identifier_of(result, "case_id"),
        "suite": text_of(result.get("suite_id")),
        "classification": primary,
        "passed": None if primary is None else text_of(primary == "pass"),
        "recorded_accuracy": accuracy,
        **{name: text_of(result.get(name)) for name in _SAME},
        **unmapped_cells(result, _MAPPED, _SECTIONS, COLUMNS),
    }
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
