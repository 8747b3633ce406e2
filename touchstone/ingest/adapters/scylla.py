"""A ProjectScylla `runs.csv`: one row per run of a subtest by a model at a tier.

An experiment is one task, and a tier's subtests are configurations in which the model attempts it; subtest 01 of one
tier has nothing to do with subtest 01 of another. So the problem is experiment, tier and subtest, it belongs to its
tier only, and the experiment is the cluster: runs of one task are not independent, and tiers are compared task by task.

The columns are renamed to native ones and nothing is judged beyond what names a run. That system's own grade and
score travel along as text; its other tables (judges, criteria, subtests) are not read.
"""

from pathlib import Path

import polars as pl

from touchstone.ingest.adapters.common import ROW_ERROR_KIND, AdapterTable, adapter_table, carried_name
from touchstone.ingest.csv_rows import (
    LINE,
    ROW_ERROR,
    TextTable,
    careful_rows,
    open_table,
    plain_rows,
    raw_rows,
    require_columns,
)
from touchstone.vocabulary import DEFAULT_TIER

FORMAT = "scylla"
REQUIRED = ("experiment", "agent_model", "tier", "subtest", "run_number", "passed")

_NAMING = ("experiment", "subtest", "agent_model", "run_number")
_MAPPED = ("experiment", "agent_model", "tier", "run_number")
_NUMERIC = ("score", "impl_rate", "cost_usd", "duration_seconds")
# Written by that system for "not known", which is null here.
_UNKNOWN = r"(?i)^\s*[+-]?(nan|inf|infinity)\s*$"


def read_scylla(path: Path) -> AdapterTable:
    """Read a runs file into rows of text cells."""
    table = open_table(path)
    require_columns(path, table.columns, *REQUIRED)
    cells = _cells(table)
    rows = _rows(table).with_columns(_oid().alias("__oid"))
    frame = rows.select(LINE, *_verdict(), **cells)
    return adapter_table(path, FORMAT, tuple(cells), frame, _raw, tier_bound=True)


def _raw(path: Path, lines: set[int]) -> dict[int, str]:
    return raw_rows(open_table(path), lines)


def _rows(table: TextTable) -> pl.DataFrame:
    if table.plain:
        try:
            return plain_rows(table).collect()
        except pl.exceptions.PolarsError:
            return careful_rows(table).collect()
    return careful_rows(table).collect()


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


def _verdict() -> list[pl.Expr]:
    """Why a row is refused: it does not fit the header, or it does not say which run it is."""
    missing = [
        pl.when(pl.col(name).is_null() | (pl.col(name).str.strip_chars() == "")).then(pl.lit(f"the {name} is missing"))
        for name in _NAMING
    ]
    # "a/b" with "c" and "a" with "b/c" would be counted as one problem.
    parts = pl.struct("experiment", pl.col("tier").fill_null(DEFAULT_TIER), "subtest")
    ambiguous = (parts.n_unique().over("__oid") > 1) & pl.col("__oid").is_not_null()
    two = pl.format("the oid '{}' stands for different experiments, tiers and subtests", "__oid")
    reason = pl.coalesce(ROW_ERROR, *missing, pl.when(ambiguous).then(two))
    kind = (
        pl.when(pl.col(ROW_ERROR).is_not_null())
        .then(pl.lit("ragged"))
        .when(reason.is_not_null())
        .then(pl.lit("bad_id"))
    )
    return [kind.alias(ROW_ERROR_KIND), reason.alias(ROW_ERROR)]
