"""A file's rows, typed and judged one by one, kept in a scratch Parquet file so that the CSV is parsed once.

What concerns a single row is decided here by the rules of `cells`. What concerns several rows (duplicates) is
decided by `find_duplicates` on the staged rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from touchstone.ingest import cells
from touchstone.ingest.adapters.common import KIND, ForeignTable
from touchstone.ingest.quarantine import Refusal
from touchstone.ingest.text import BROKEN, LINE, TextTable, careful_rows, plain_rows

_OWN = (LINE, KIND, BROKEN, cells.REFUSED, cells.OFFENDER)

_COUNT = "__count"

AnyTable = TextTable | ForeignTable


@dataclass(frozen=True)
class Staged:
    """The rows of one file: those that every rule accepts, and the refusals of the rest."""

    accepted: pl.LazyFrame
    refusals: list[Refusal]
    rows: int


def stage(table: AnyTable, rules: list[cells.Rule], also: Mapping[str, pl.Expr], scratch: Path) -> Staged:
    """Read the file once through the rules into `scratch`; `also` are further columns, computed from the cells."""
    columns = {rule.column: rule.value for rule in rules} | dict(also)
    named = [expression.alias(name) for name, expression in columns.items()]

    def sink(rows: pl.LazyFrame) -> None:
        typed = rows.select(LINE, KIND, BROKEN, *cells.verdict(rules), *named)
        typed.sink_parquet(scratch, compression="lz4", statistics=False)

    if isinstance(table, ForeignTable):
        sink(table.frame.lazy())
    elif table.plain:
        try:
            sink(_ragged(plain_rows(table)))
        except pl.exceptions.PolarsError:
            sink(_ragged(careful_rows(table)))
    else:
        sink(_ragged(careful_rows(table)))

    staged = pl.scan_parquet(scratch, glob=False)
    fine = pl.col(BROKEN).is_null() & (pl.col(cells.REFUSED) == 0)
    refusals = [
        Refusal(line, kind, broken)
        if broken is not None
        else Refusal(line, rules[refused - 1].kind, rules[refused - 1].explain(offender or ""))
        for line, kind, broken, refused, offender in staged.filter(~fine).select(_OWN).collect().iter_rows()
    ]
    rows = staged.select(pl.len()).collect().item()
    accepted = staged.filter(fine).drop(KIND, BROKEN, cells.REFUSED, cells.OFFENDER)
    return Staged(accepted, refusals, rows)


def _ragged(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The rows of a CSV file: whatever is broken there is ragged."""
    return rows.with_columns(pl.lit("ragged").alias(KIND))


def without(rows: pl.LazyFrame, refusals: Sequence[Refusal]) -> pl.LazyFrame:
    """The rows less those that were refused."""
    if not refusals:
        return rows
    lines = pl.LazyFrame({LINE: [refusal.line for refusal in refusals]}, schema={LINE: pl.Int64})
    return rows.join(lines, on=LINE, how="anti")


def find_duplicates(rows: pl.LazyFrame, key: list[str]) -> list[Refusal]:
    """Rows that share a key: of equal rows the first stays, of rows that differ all go."""
    counted = rows.group_by(key).agg(pl.len().alias(_COUNT)).filter(pl.col(_COUNT) > 1)
    repeated = counted.select(key).collect(engine="streaming")
    if repeated.is_empty():
        return []
    suspects = rows.join(repeated.lazy(), on=key, how="semi").collect().sort(LINE)
    content = [name for name in suspects.columns if name != LINE]
    versions = pl.struct(content).n_unique().alias(_COUNT)
    groups = suspects.group_by(key, maintain_order=True).agg(LINE, versions)
    names = ", ".join(key)
    refusals = []
    for lines, different in groups.select(LINE, _COUNT).iter_rows():
        if different == 1:
            refusals += [Refusal(line, "duplicate", f"repeats line {lines[0]}") for line in lines[1:]]
            continue
        for line in lines:
            other = lines[0] if line != lines[0] else lines[1]
            reason = f"same ({names}) as line {other} but different content; all {len(lines)} rows are refused"
            refusals.append(Refusal(line, "conflict", reason))
    return refusals
