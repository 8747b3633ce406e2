"""Refused rows, with file, line and reason, so that nothing disappears without a word."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from touchstone.ingest.adapters.common import AdapterTable
from touchstone.ingest.csv_rows import TextTable, raw_rows

SCHEMA = {
    "source_file": pl.String,
    "line": pl.Int64,
    "kind": pl.String,
    "reason": pl.String,
    "raw": pl.String,
}


@dataclass(frozen=True)
class Refusal:
    """One row that was refused, or a whole file where there is no line."""

    line: int | None
    kind: str
    reason: str


def quarantine_frame(table: TextTable | AdapterTable, refusals: Iterable[Refusal]) -> pl.DataFrame:
    """The refusals of one file as rows of the quarantine table, in the order of their lines."""
    ordered = sorted(refusals, key=lambda refusal: (refusal.line or 0, refusal.kind))
    lines = {refusal.line for refusal in ordered if refusal.line is not None}
    raw = table.raw(lines) if isinstance(table, AdapterTable) else raw_rows(table, lines)
    rows = [
        (table.path.name, refusal.line, refusal.kind, refusal.reason, raw.get(refusal.line or 0)) for refusal in ordered
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def refused_file(name: str, reason: str) -> pl.DataFrame:
    """The quarantine row of a file that could not be read at all."""
    return pl.DataFrame([(name, None, "unreadable_file", reason, None)], schema=SCHEMA, orient="row")
