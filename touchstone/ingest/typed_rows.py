"""A file's rows, typed and judged one by one, kept in a scratch Parquet file so that the CSV is parsed once.

What concerns a single row is decided here by the rules of `cells`. What concerns several rows (duplicates) is
decided by `find_duplicates` on the typed rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from touchstone.ingest import cells
from touchstone.ingest.adapters.common import ROW_ERROR_KIND, AdapterTable
from touchstone.ingest.csv_rows import LINE, ROW_ERROR, TextTable, careful_rows, plain_rows
from touchstone.ingest.quarantine import Refusal

_OWN = (LINE, ROW_ERROR_KIND, ROW_ERROR, cells.REFUSED_BY, cells.REFUSED_CELL)

_COUNT = "__count"

InputTable = TextTable | AdapterTable


@dataclass(frozen=True)
class TypedRows:
    """The rows of one file: those that every rule accepts, and the refusals of the rest."""

    accepted: pl.LazyFrame
    refusals: list[Refusal]
    rows: int


def read_typed_rows(
    table: InputTable, rules: list[cells.Rule], also: Mapping[str, pl.Expr], scratch: Path
) -> TypedRows:
    """Read the file once through the rules into `scratch`; `also` are further columns, computed from the cells."""
    columns = {rule.column: rule.value for rule in rules} | dict(also)
    named = [expression.alias(name) for name, expression in columns.items()]

    def sink(rows: pl.LazyFrame) -> None:
        typed = rows.select(LINE, ROW_ERROR_KIND, ROW_ERROR, *cells.first_refusal(rules), *named)
        typed.sink_parquet(scratch, compression="lz4", statistics=False)

    if isinstance(table, AdapterTable):
        sink(table.frame.lazy())
    elif table.plain:
        try:
            sink(_ragged(plain_rows(table)))
        except pl.exceptions.PolarsError:
            sink(_ragged(careful_rows(table)))
    else:
        sink(_ragged(careful_rows(table)))

    typed = pl.scan_parquet(scratch, glob=False)
    fine = pl.col(ROW_ERROR).is_null() & (pl.col(cells.REFUSED_BY) == 0)
    refusals = [
        Refusal(line, kind, broken)
        if broken is not None
        else Refusal(line, rules[refused - 1].kind, rules[refused - 1].explain(offender or ""))
        for line, kind, broken, refused, offender in typed.filter(~fine).select(_OWN).collect().iter_rows()
    ]
    rows = typed.select(pl.len()).collect().item()
    accepted = typed.filter(fine).drop(ROW_ERROR_KIND, ROW_ERROR, cells.REFUSED_BY, cells.REFUSED_CELL)
    return TypedRows(accepted, refusals, rows)


def _ragged(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The rows of a CSV file: whatever is broken there is ragged."""
    return rows.with_columns(pl.lit("ragged").alias(ROW_ERROR_KIND))


def drop_refused(rows: pl.LazyFrame, refusals: Sequence[Refusal]) -> pl.LazyFrame:
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
