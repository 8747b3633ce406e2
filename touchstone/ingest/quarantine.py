"""Refused rows, with file, line and reason: nothing is dropped silently. The readers decide which rows are refused."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from touchstone.ingest.adapters.json_files import LINES_SUFFIXES, unended_line
from touchstone.ingest.adapters.table import MODEL, AdapterTable
from touchstone.ingest.compressed import STILL_WRITTEN, data_suffix
from touchstone.ingest.csv_rows import LINE, MAX_RAW_LENGTH, ROW_ERROR, ROW_ERROR_KIND, TextTable, raw_rows
from touchstone.text import counted

SCHEMA = {"source_file": pl.String, "line": pl.Int64, "kind": pl.String, "reason": pl.String, "raw": pl.String}


@dataclass(frozen=True)
class Refusal:
    """A refused row, or a refused file if there is no line."""

    line: int | None
    kind: str
    reason: str


def quarantine_frame(table: TextTable | AdapterTable, refusals: Iterable[Refusal]) -> pl.DataFrame:
    """The refusals of one file as rows of the table `quarantine`, sorted by line."""
    ordered = sorted(refusals, key=lambda refusal: (refusal.line or 0, refusal.kind))
    lines = {refusal.line for refusal in ordered if refusal.line is not None}
    raw = table.raw(lines) if isinstance(table, AdapterTable) else raw_rows(table, lines)
    unended = _unended_line(table, raw)
    rows = [
        (
            table.path.name,
            refusal.line,
            refusal.kind,
            refusal.reason + (f"; the line has no end: {STILL_WRITTEN}" if refusal.line == unended else ""),
            raw.get(refusal.line or 0),
        )
        for refusal in ordered
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _unended_line(table: TextTable | AdapterTable, raw: Mapping[int, str]) -> int | None:
    """The line of the last row if it is among these and may be half of what will be written; else None."""
    if not raw:
        return None
    last = max(raw)
    if isinstance(table, TextTable):
        ends_file = last + raw[last].count("\n") == table.lines or len(raw[last]) >= MAX_RAW_LENGTH
        return last if not table.complete and ends_file else None
    return last if data_suffix(table.path) in LINES_SUFFIXES and unended_line(table.path) == last else None


def rows_without_model(table: AdapterTable) -> pl.DataFrame:
    """The quarantine rows of records that name no usable model, and so belong to no model's part of the table."""
    refused = table.rows.filter(pl.col(MODEL).is_null()).select(LINE, ROW_ERROR_KIND, ROW_ERROR)
    with table.reading():
        rows = refused.collect(engine="streaming")
    return quarantine_frame(table, [Refusal(line, kind, reason) for line, kind, reason in rows.iter_rows()])


def refused_file(name: str, reason: str) -> pl.DataFrame:
    """The quarantine row of a file that cannot be read at all."""
    return pl.DataFrame([(name, None, "unreadable_file", reason, None)], schema=SCHEMA, orient="row")


def explain_refusals(quarantine: Iterable[pl.DataFrame]) -> list[str]:
    """One line per file with refused rows: how many, and the reason of the first.

    >>> explain_refusals([refused_file("m_fixes.csv", "not UTF-8")])
    ['m_fixes.csv: 1 row was refused; not UTF-8']
    """
    lines = []
    for refused in quarantine:
        if refused.is_empty():
            continue
        first = refused.row(0, named=True)
        rows = counted(refused.height, "row was", "rows were")
        where = "" if first["line"] is None else f"line {first['line']}: "
        lines.append(f"{first['source_file']}: {rows} refused; {where}{first['reason']}")
    return lines
