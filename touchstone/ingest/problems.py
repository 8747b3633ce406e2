"""The list of problems, from `problems.csv` and from adapters: the denominator of every figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.formats.plain import read_problem_table
from touchstone.ingest.adapters.table import ASKED_COLUMNS, AdapterTable
from touchstone.ingest.cells import (
    InputTable,
    Rule,
    drop_refused,
    find_duplicates,
    identifier,
    read_any_rows,
    read_typed_rows,
)
from touchstone.ingest.csv_rows import LINE, ROW_ERROR, open_table, require_columns, unused_column_name
from touchstone.ingest.quarantine import quarantine_frame
from touchstone.vocabulary import ASKED_DIFFERENTLY, DEFAULT_SUITE, DEFAULT_TIER, MAX_ID_LENGTH, VALIDATION_COLUMNS

NO_PROBLEMS_FILE = "no problems file, so the problems are those that the results name"
_ASKED = ASKED_COLUMNS[0]
_COLUMNS = ("oid", "suite", "cluster", "only_tier", *VALIDATION_COLUMNS)


@dataclass(frozen=True)
class IngestedProblems:
    """The accepted problems, sorted by id, and the quarantined rows."""

    problems: pl.LazyFrame
    quarantine: pl.DataFrame
    rows: int
    notes: tuple[str, ...] = ()


def open_problems(path: Path, key: str = "oid", renames: Mapping[str, str] | None = None) -> InputTable:
    """Open a problems file; raises `InputFileError` if it lacks a column that every problem needs."""
    known = {*_COLUMNS, key} - ({"oid"} if key != "oid" else set())
    table = read_problem_table(path, renames or {}) or open_table(path, renames, known)
    # A problem with its own test command may be about a whole folder.
    require_columns(path, table.columns, key, *(() if "test_command" in table.columns else ("filename",)))
    return table


def read_problems(
    path: Path,
    scratch: Path,
    key: str = "oid",
    renames: Mapping[str, str] | None = None,
    cluster_columns: Sequence[str] = (),
) -> IngestedProblems:
    """Read the problems file; `key` is the column that names the problem. Refuses a file whose key is not unique.

    Of several `cluster_columns`, the outermost level is the cluster.
    """
    table = open_problems(path, key, renames)
    require_columns(path, table.columns, *cluster_columns)
    cluster = next((name for name in ("cluster", "project_name") if name in table.columns), None)
    rules: list[Rule] = [identifier(key)]
    own = {
        "filename": pl.col("filename") if "filename" in table.columns else pl.lit(None, pl.String),
        "suite": pl.col("suite").fill_null(DEFAULT_SUITE) if "suite" in table.columns else pl.lit(DEFAULT_SUITE),
        "cluster": pl.col(cluster) if cluster else pl.lit(None, pl.String),
        "only_tier": pl.col("only_tier") if "only_tier" in table.columns else pl.lit(None, pl.String),
    }
    extras = {name: pl.col(name) for name in table.columns if name not in (*own, "oid", key)}
    levels = list(cluster_columns)
    if key != "oid" and "oid" in table.columns:
        renamed = unused_column_name("oid", table.columns)
        extras[renamed] = pl.col("oid")
        levels = [renamed if name == "oid" else name for name in levels]
    typed = read_typed_rows(table, rules, own | extras, scratch)
    duplicates = find_duplicates(typed.accepted, [key])
    conflict = next((refusal for refusal in duplicates if refusal.kind == "conflict"), None)
    if conflict is not None:
        other = "specific_oid" if key != "specific_oid" and "specific_oid" in table.columns else "a column"
        raise InputFileError(
            f"{path}, line {conflict.line}: two different problems have the same {key}; "
            f"set 'problem_key' in the config to {other} that is unique"
        )
    accepted, notes = drop_refused(typed.accepted, duplicates).drop(LINE), table.notes
    if levels:
        outermost = outermost_level(accepted.select(levels))
        accepted, notes = accepted.with_columns(cluster=outermost), (*notes, f"clusters: the values of '{outermost}'")
    accepted = accepted.rename({key: "oid"}).sort("oid")
    refused = [*typed.refusals, *duplicates]
    if typed.rows == len(refused):
        raise InputFileError(f"{path}: there is no problem in the file; it needs at least one good row")
    return IngestedProblems(accepted, quarantine_frame(table, refused), typed.rows, notes)


def outermost_level(levels: pl.LazyFrame) -> str:
    """The column of the outermost level: the first, or one that is the same wherever that is, and has fewer values.

    >>> outermost_level(pl.LazyFrame({"file": ["a", "b", "c"], "repository": ["x", "x", "y"]}))
    'repository'
    """
    rows, (outermost, *others) = levels.collect(), levels.collect_schema().names()
    for name in others:
        distinct = rows.select(outermost, name).drop_nulls().unique()
        if distinct[name].n_unique() < distinct.height == distinct[outermost].n_unique():
            outermost = name
    return outermost


def problem_ids(path: Path, key: str = "oid") -> frozenset[str]:
    """The ids in a problems file; a row that is refused elsewhere may be among them."""
    table = open_problems(path, key)
    ids = read_any_rows(table, lambda rows: rows.select(key).collect())
    return frozenset(ids[key].drop_nulls())


def derived_problems(tables: Sequence[InputTable], key: str = "oid") -> pl.DataFrame:
    """The problems that results files name, for which there need not be a problems file; `key` names them in a CSV."""
    details = {"suite": pl.String, "cluster": pl.String, "only_tier": pl.String}
    empty = pl.DataFrame(schema={"oid": pl.String, **details, _ASKED: pl.String})
    asked = pl.col(_ASKED).drop_nulls().unique()
    problems = (
        pl.concat([empty, *(_problems_of_records(table, key) for table in tables)])
        .filter(pl.col("oid").str.len_chars() <= MAX_ID_LENGTH)
        .group_by("oid")
        .agg(
            pl.col(*details).min(),
            pl.when(asked.len() > 1).then(pl.lit(ASKED_DIFFERENTLY)).otherwise(asked.first()).alias(_ASKED),
        )
        .select(
            "oid",
            pl.lit(None, pl.String).alias("filename"),
            pl.col("suite").fill_null(DEFAULT_SUITE),
            "cluster",
            "only_tier",
            _ASKED,
        )
        .sort("oid")
    )
    return problems if problems[_ASKED].count() else problems.drop(_ASKED)


def with_derived(listed: pl.LazyFrame, derived: pl.LazyFrame) -> pl.LazyFrame:
    """The problems that a problems file lists, and those of results files that it does not list."""
    return pl.concat([listed, derived.join(listed, on="oid", how="anti")], how="diagonal").sort("oid")


def _problems_of_records(table: InputTable, key: str) -> pl.DataFrame:
    """The problem of every record, with the suite, cluster and tier that the file gives it."""

    def given(name: str) -> pl.Expr:
        return (pl.col(name) if name in table.columns else pl.lit(None, pl.String)).alias(name)

    is_adapted = isinstance(table, AdapterTable)
    oid = pl.col("oid" if is_adapted else key)
    is_bound = isinstance(table, AdapterTable) and table.tier_bound
    column = next((name for name in ASKED_COLUMNS if name in table.columns), None) if is_adapted else None
    asked = (pl.col(column) if column else pl.lit(None, pl.String)).alias(_ASKED)
    tier = given("tier").fill_null(DEFAULT_TIER) if is_bound else given("only_tier")

    def problems(rows: pl.LazyFrame) -> pl.DataFrame:
        named = rows.filter(pl.col(ROW_ERROR).is_null() & oid.is_not_null())
        return (
            named.select(oid.alias("oid"), given("suite"), given("cluster"), tier.alias("only_tier"), asked)
            .unique()
            .collect(engine="streaming")
        )

    return read_any_rows(table, problems)
