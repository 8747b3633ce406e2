"""Query results as CSV, JSON, LaTeX, Markdown or Parquet, and as cells for a table on the terminal.

Running a query belongs in `touchstone.publish.query`, file name suffixes in `touchstone.publish.formats`.
"""

import json
import re
from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from touchstone.errors import TouchstoneError
from touchstone.publish.formats import saving
from touchstone.publish.views import one_line
from touchstone.storage.files import spreadsheet_safe
from touchstone.tables.presentation import latex_table
from touchstone.text import json_number, markdown_text, significant

ColumnKind = Literal["name", "number", "text"]

FORMATS = ("csv", "json", "latex", "markdown", "parquet")

_BATCH_ROWS = 20_000
_ROW_GROUP_BYTES = 64 * 2**20
_QUOTED = re.compile(r'[,"\r\n]')


# A whole result, or one that is read batch by batch, once.
Result: TypeAlias = "pa.Table | pa.RecordBatchReader"


def iter_rows(table: Result) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as Python values, one batch at a time."""
    return chain.from_iterable(map(_rows, _batches(table)))


def _batches(table: Result) -> Iterator[pa.RecordBatch]:
    yield from table.to_batches(max_chunksize=_BATCH_ROWS) if isinstance(table, pa.Table) else table


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*map(_values, batch.schema.names, batch.columns), strict=True)


def terminal_cells(table: Result, most: int) -> tuple[list[tuple[str, ColumnKind]], list[list[str]], int]:
    """Columns with their kinds, at most so many rows of text with figures rounded, and the number of all rows."""
    rows: list[list[str]] = []
    count = 0
    for batch in _batches(table):
        rows += (
            [significant(value) if isinstance(value, float) else _cell(value) for value in row]
            for row in _rows(batch.slice(0, most - len(rows)))
        )
        count += batch.num_rows
    kinds: list[ColumnKind] = []
    for place, field in enumerate(table.schema):
        is_name = not any(re.search(r"\s", row[place]) for row in rows)
        kinds.append("number" if _is_number(field.type) else "name" if is_name else "text")
    return list(zip(table.schema.names, kinds, strict=True)), rows, count


def format_result(table: Result, fmt: str) -> str:
    """The result as csv, json (an array of records), latex or markdown."""
    return "".join(result_text(table, fmt))


def result_text(table: Result, fmt: str) -> Iterator[str]:
    """The same in pieces, for results that are larger than memory; LaTeX in one."""
    if fmt == "csv":
        return _csv(table)
    if fmt == "json":
        return _json(table)
    if fmt == "latex":
        return iter([_latex(table)])
    if fmt == "markdown":
        return _markdown(table)
    if fmt == "parquet":
        raise TouchstoneError("parquet is not text; save it to a file")
    raise TouchstoneError(f"there is no format '{fmt}'; choose one of {', '.join(FORMATS)}")


def save_result(table: Result, fmt: str, path: Path) -> None:
    """Write the result to a file atomically."""
    text = None if fmt == "parquet" else result_text(table, fmt)
    try:
        with saving(path) as scratch:
            if text is None:
                _write_parquet(table, scratch)
            else:
                with scratch.open("w", encoding="utf-8", newline="") as file:
                    file.writelines(text)
    except pa.ArrowException as error:
        raise TouchstoneError(f"{path}: {one_line(str(error))}") from error


def _write_parquet(table: Result, path: Path) -> None:
    waiting: list[pa.RecordBatch] = []
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for batch in chain(_batches(table), [None]):
            if batch is not None:
                waiting.append(batch)
            if batch is None or sum(each.nbytes for each in waiting) > _ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(waiting, table.schema))
                waiting.clear()


def _values(name: str, column: pa.Array) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        # DuckDB has a wider range of dates than Python, and infinite ones.
        raise TouchstoneError(f"column '{name}' has times out of range; cast it to VARCHAR in the query") from None
    return values


def _csv(table: Result) -> Iterator[str]:
    header = [tuple(map(_csv_text, table.schema.names))]
    cells = (zip(*map(_csv_cells, batch.schema, batch.columns), strict=True) for batch in _batches(table))
    for rows in chain([header], cells):
        # A single empty cell is quoted, because readers skip empty lines.
        yield "".join([(",".join(row) or '""') + "\n" for row in rows])


def _csv_cells(field: pa.Field, column: pa.Array) -> list[str]:
    """The cells of a column. Plain numbers, which are most of them, need no further look."""
    values = _values(field.name, column)
    if pa.types.is_integer(field.type):
        return ["" if value is None else str(value) for value in values]
    if pa.types.is_floating(field.type):
        return ["" if value is None else repr(value) for value in values]
    return list(map(_csv_text, values))


def _csv_text(value: Any) -> str:
    # Not the csv module: before Python 3.13 it leaves a carriage return unquoted, which ends the row for readers.
    text = spreadsheet_safe(value) if isinstance(value, str) else _cell(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _json(table: Result) -> Iterator[str]:
    names, before = table.schema.names, "[\n"
    for rows in map(_rows, _batches(table)):
        records = (dict(zip(names, map(_plain, row), strict=True)) for row in rows)
        if lines := ",\n".join(json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records):
            yield before + lines
            before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _markdown(table: Result) -> Iterator[str]:
    rules = ["---:" if _is_number(field.type) else "---" for field in table.schema]
    header = [[_markdown_text(name) for name in table.schema.names], rules]
    cells = (([_markdown_text(_cell(value)) for value in row] for row in _rows(batch)) for batch in _batches(table))
    for lines in chain([header], cells):
        yield "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _latex(table: Result) -> str:
    rows = ([value if isinstance(value, float | int) else _cell(value) for value in row] for row in iter_rows(table))
    return latex_table(table.schema.names, rows, [_is_number(field.type) for field in table.schema])


def _markdown_text(text: str) -> str:
    return "<br>".join(map(markdown_text, re.split(r"\r\n|\r|\n", text)))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cell(value: Any) -> str:
    """The value as the text of a cell; null is empty."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case float():
            return repr(value)
        case list() | dict():
            return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
    return str(_plain(value))


def _plain(value: Any) -> Any:
    """Convert the value to JSON's types."""
    match value:
        case float():
            return json_number(value)
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case pa.MonthDayNano(months=months, days=days, nanoseconds=nanoseconds):
            return f"P{months}M{days}DT{Decimal(nanoseconds) / 10**9:f}S"
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case None | bool() | int() | str():
            return value
    return str(value)
