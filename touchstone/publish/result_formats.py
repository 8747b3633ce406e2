"""Query results as CSV, JSON, LaTeX, Markdown or Parquet, and as cells for a table on the terminal.

Running a query belongs in `touchstone.publish.query`, file name suffixes in `touchstone.publish.formats`.
"""

import json
import re
from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from touchstone.errors import TouchstoneError
from touchstone.publish.latex import latex_table
from touchstone.publish.views import one_line
from touchstone.storage.files import replacing, spreadsheet_safe
from touchstone.text import json_number, markdown_text, significant

ColumnKind = Literal["name", "number", "text"]

FORMATS = ("csv", "json", "latex", "markdown", "parquet")

_BATCH_ROWS = 20_000


def iter_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as Python values, one batch at a time."""
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        yield from zip(*map(_values, batch.schema.names, batch.columns), strict=True)


def terminal_cells(table: pa.Table) -> tuple[list[tuple[str, ColumnKind]], list[list[str]]]:
    """Columns with their kinds, and rows of text with figures rounded, for a table on the terminal."""
    rows = [
        [significant(value) if isinstance(value, float) else _cell(value) for value in row] for row in iter_rows(table)
    ]
    kinds: list[ColumnKind] = []
    for place, field in enumerate(table.schema):
        is_name = not any(re.search(r"\s", row[place]) for row in rows)
        kinds.append("number" if _is_number(field.type) else "name" if is_name else "text")
    return list(zip(table.column_names, kinds, strict=True)), rows


def format_result(table: pa.Table, fmt: str) -> str:
    """The result as csv, json (an array of records), latex or markdown."""
    if fmt == "csv":
        return _csv(table)
    if fmt == "json":
        return _json(table)
    if fmt == "latex":
        return _latex(table)
    if fmt == "markdown":
        return _markdown(table)
    if fmt == "parquet":
        raise TouchstoneError("parquet is not text; save it to a file")
    raise TouchstoneError(f"there is no format '{fmt}'; choose one of {', '.join(FORMATS)}")


def save_result(table: pa.Table, fmt: str, path: Path) -> None:
    """Write the result to a file atomically."""
    text = None if fmt == "parquet" else format_result(table, fmt)
    if path.exists() and not path.is_file():
        raise TouchstoneError(f"{path}: not a file")
    try:
        with replacing(path) as scratch:
            if text is None:
                pq.write_table(table, scratch, compression="zstd")
            else:
                scratch.write_text(text, encoding="utf-8", newline="")
    except pa.ArrowException as error:
        raise TouchstoneError(f"{path}: {one_line(str(error))}") from error
    except OSError as error:
        raise TouchstoneError(f"{path}: {error.strerror or error}") from error


def _values(name: str, column: pa.Array) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        # DuckDB has a wider range of dates than Python, and infinite ones.
        raise TouchstoneError(f"column '{name}' has times out of range; cast it to VARCHAR in the query") from None
    return values


def _csv(table: pa.Table) -> str:
    rows = ([_csv_text(value) for value in row] for row in iter_rows(table))
    lines = [[_csv_text(name) for name in table.column_names], *rows]
    # A single empty cell is quoted, because readers skip empty lines.
    return "".join((",".join(line) or '""') + "\n" for line in lines)


def _csv_text(value: Any) -> str:
    # Not the csv module: before Python 3.13 it leaves a carriage return unquoted, which ends the row for readers.
    text = spreadsheet_safe(value) if isinstance(value, str) else _cell(value)
    return '"' + text.replace('"', '""') + '"' if re.search(r'[,"\r\n]', text) else text


def _json(table: pa.Table) -> str:
    records = (dict(zip(table.column_names, map(_plain, row), strict=True)) for row in iter_rows(table))
    lines = ",\n".join(json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records)
    return f"[\n{lines}\n]\n" if lines else "[]\n"


def _markdown(table: pa.Table) -> str:
    rules = ["---:" if _is_number(field.type) else "---" for field in table.schema]
    rows = ([_markdown_text(_cell(value)) for value in row] for row in iter_rows(table))
    lines = [[_markdown_text(name) for name in table.column_names], rules, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _latex(table: pa.Table) -> str:
    rows = ([value if isinstance(value, float | int) else _cell(value) for value in row] for row in iter_rows(table))
    return latex_table(table.column_names, rows, [_is_number(field.type) for field in table.schema])


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
