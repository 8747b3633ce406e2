"""Text cells to typed rows: applies the rules of `cells` to a file, and finds duplicate rows.

The rows are kept in a scratch Parquet file, so that the input is parsed only once. Which rules apply to a file belongs
in `problems` and `attempts`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import polars as pl

from touchstone.ingest import cells
from touchstone.ingest.adapters.table import AdapterTable
from touchstone.ingest.csv_rows import LINE, ROW_ERROR, ROW_ERROR_KIND, SCRATCH_FORMAT, TextTable, read_rows
from touchstone.ingest.quarantine import Refusal
from touchstone.storage.files import replacing

_REFUSAL_COLUMNS = (ROW_ERROR_KIND, ROW_ERROR, cells.REFUSED_BY, cells.REFUSED_CELL)
_COUNT = "__count"

InputTable = TextTable | AdapterTable
Result = TypeVar("Result")


@dataclass(frozen=True)
class TypedRows:
    """The rows of one file: those that every rule accepts, and the refusals of the rest."""

    accepted: pl.LazyFrame
    refusals: list[Refusal]
    rows: int
    # Assumptions about cells.
    notes: tuple[str, ...] = ()


def read_typed_rows(
    table: InputTable, rules: list[cells.Rule], extras: Mapping[str, pl.Expr], scratch: Path
) -> TypedRows:
    """Read the file once through the rules into `scratch`; `extras` are further columns computed from the cells."""
    columns = {rule.column: rule.value for rule in rules} | dict(extras)
    assumed = {f"__assumed_{rule.column}": rule for rule in rules if rule.assumed is not None}
    named = [expression.alias(name) for name, expression in columns.items()]
    named += [rule.assumed.alias(name) for name, rule in assumed.items() if rule.assumed is not None]

    def sink(rows: pl.LazyFrame) -> None:
        typed = rows.select(LINE, ROW_ERROR_KIND, ROW_ERROR, *cells.first_refusal(rules), *named)
        # A file of its own for each reader: when a query fails, Polars may still write to its file for a while.
        with replacing(scratch) as own:
            typed.sink_parquet(own, **SCRATCH_FORMAT)

    read_any_rows(table, sink)
    written = pl.scan_parquet(scratch, glob=False)
    is_accepted = pl.col(ROW_ERROR).is_null() & (pl.col(cells.REFUSED_BY) == 0)
    refused = written.filter(~is_accepted).select(LINE, *_REFUSAL_COLUMNS).collect()
    refusals = [
        Refusal(line, kind, error)
        if error is not None
        else Refusal(line, rules[rule - 1].kind, rules[rule - 1].explain(cell or ""))
        for line, kind, error, rule, cell in refused.iter_rows()
    ]
    rows = written.select(pl.len()).collect().item()
    accepted = written.filter(is_accepted)
    found = accepted.select(pl.col(name).any() for name in assumed).collect()
    notes = tuple(assumed[name].assumption for name in assumed if found[name].item())
    return TypedRows(accepted.drop(*_REFUSAL_COLUMNS, *assumed), refusals, rows, notes)


def read_any_rows(table: InputTable, consume: Callable[[pl.LazyFrame], Result]) -> Result:
    """Pass the rows of a table to `consume`, whichever reader it comes from."""
    if isinstance(table, TextTable):
        return read_rows(table, consume)
    with table.reading():
        return consume(table.rows)


def drop_refused(rows: pl.LazyFrame, refusals: Sequence[Refusal]) -> pl.LazyFrame:
    """The rows without those that were refused."""
    if not refusals:
        return rows
    lines = pl.LazyFrame({LINE: [refusal.line for refusal in refusals]}, schema={LINE: pl.Int64})
    return rows.join(lines, on=LINE, how="anti")


def find_duplicates(rows: pl.LazyFrame, key: list[str]) -> list[Refusal]:
    """Refusals for rows that share a key: all but the first of equal rows, and every one of rows that differ."""
    counted = rows.group_by(key).agg(pl.len().alias(_COUNT)).filter(pl.col(_COUNT) > 1)
    repeated = counted.select(key).collect(engine="streaming")
    if repeated.is_empty():
        return []
    candidates = rows.join(repeated.lazy(), on=key, how="semi").collect().sort(LINE)
    content = [name for name in candidates.columns if name != LINE]
    versions = pl.struct(content).n_unique().alias(_COUNT)
    groups = candidates.group_by(key, maintain_order=True).agg(LINE, versions)
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
