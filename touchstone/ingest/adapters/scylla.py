"""Adapter for ProjectScylla's `runs.csv`: one row per run of a subtest by a model at a tier.

An experiment is one task; the subtests of a tier are configurations in which the model attempts it, and subtest 01 of
one tier is unrelated to subtest 01 of another. So a problem is (experiment, tier, subtest), belongs to that tier only,
and has the experiment as its cluster: runs of one task are not independent, and tiers are compared task by task.

Columns are renamed to the native ones; only the columns that identify a run are checked here. ProjectScylla's own
grade and score are kept as text; its other tables (judges, criteria, subtests) are not read: `scylla_raw` reads what
they were made of.
"""

import csv
import io
from pathlib import Path

import polars as pl

from touchstone.ingest.adapters.adapter import Adapter
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.table import AdapterTable, adapter_table, carried_name
from touchstone.ingest.csv_rows import (
    LINE,
    ROW_ERROR,
    ROW_ERROR_KIND,
    TextTable,
    open_table,
    raw_rows,
    read_rows,
    require_columns,
)
from touchstone.vocabulary import DEFAULT_TIER

FORMAT = "scylla"
REQUIRED = ("experiment", "agent_model", "tier", "subtest", "run_number", "passed")

_NATIVE = {"oid", "iteration_id"}
_IDENTIFYING = ("experiment", "subtest", "agent_model", "run_number")
_MAPPED = ("experiment", "agent_model", "tier", "run_number")
_NUMERIC = ("score", "impl_rate", "cost_usd", "duration_seconds")
# How ProjectScylla writes an unknown number, which is null here.
_UNKNOWN = r"(?i)^\s*[+-]?(nan|inf|infinity)\s*$"


def read_scylla(path: Path) -> AdapterTable:
    """Read a runs file into rows of text cells."""
    table = open_table(path)
    require_columns(path, table.columns, *REQUIRED)
    cells = _cells(table)
    rows = read_rows(table, lambda rows: rows.collect()).with_columns(_oid().alias("__oid"))
    frame = rows.select(LINE, *_refusal(), **cells)
    return adapter_table(path, FORMAT, tuple(cells), frame, _raw, tier_bound=True)


def _recognizes(head: Head) -> bool:
    if head.text[:1] in ("", "{", "["):
        return False
    try:
        header = {name.strip() for name in next(csv.reader(io.StringIO(head.text, newline="")), [])}
    except csv.Error:
        return False
    # A file with native ids is native, whichever columns of another system it kept.
    return header.issuperset(REQUIRED) and not header.issuperset(_NATIVE)


ADAPTER = Adapter(FORMAT, "a ProjectScylla runs.csv", _recognizes, lambda path, _: read_scylla(path))


def _raw(path: Path, lines: set[int]) -> dict[int, str]:
    return raw_rows(open_table(path), lines)


def _oid() -> pl.Expr:
    return pl.concat_str("experiment", pl.col("tier").fill_null(DEFAULT_TIER), "subtest", separator="/")


def _cells(table: TextTable) -> dict[str, pl.Expr]:
    cells = {
        "oid": _oid(),
        "iteration_id": pl.col("run_number"),
        "tier": pl.col("tier"),
        "suite": pl.col("experiment"),
        "cluster": pl.col("experiment"),
        "llm_name": pl.col("agent_model"),
    }
    if "cache_creation_tokens" in table.columns:
        cells["cache_write_tokens"] = _cell("cache_creation_tokens")
    taken = tuple(cells)
    others = [name for name in table.columns if name not in (*_MAPPED, "cache_creation_tokens")]
    return cells | {carried_name(name, taken): _cell(name) for name in others}


def _cell(name: str) -> pl.Expr:
    cell = pl.col(name)
    if name in _NUMERIC or name.endswith("_tokens"):
        return pl.when(~cell.str.contains(_UNKNOWN)).then(cell)
    return cell


def _refusal() -> list[pl.Expr]:
    """Why a row is refused: it is ragged, or does not identify its run."""
    missing = [
        pl.when(pl.col(name).is_null() | (pl.col(name).str.strip_chars() == "")).then(pl.lit(f"the {name} is missing"))
        for name in _IDENTIFYING
    ]
    # Experiment "a/b" with subtest "c" and "a" with "b/c" would become the same problem.
    parts = pl.struct("experiment", pl.col("tier").fill_null(DEFAULT_TIER), "subtest")
    ambiguous = (parts.n_unique().over("__oid") > 1) & pl.col("__oid").is_not_null()
    two = pl.format("the oid '{}' stands for different experiments, tiers and subtests", "__oid")
    reason = pl.coalesce(ROW_ERROR, *missing, pl.when(ambiguous).then(two))
    kind = (
        pl.when(pl.col(ROW_ERROR).is_not_null()).then(ROW_ERROR_KIND).when(reason.is_not_null()).then(pl.lit("bad_id"))
    )
    return [kind.alias(ROW_ERROR_KIND), reason.alias(ROW_ERROR)]
