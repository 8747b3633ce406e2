"""A fixes file: the attempts of one model, with the outcomes that the file states or implies."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest import cells
from touchstone.ingest.quarantine import Refusal, quarantine_frame
from touchstone.ingest.staging import find_duplicates, stage, without
from touchstone.ingest.text import LINE, TextTable, open_table, require_columns
from touchstone.vocabulary import DEFAULT_SUITE, DEFAULT_TIER

STATED = ("plausible_fix", "passed")
IMPLIED = ("compiled", "tests_passed", "tests_failed")
FIXES = ("fixed_file", "fixed_block_content", "fixed_code")
COUNTS = ("tests_passed", "tests_failed", "lint_warnings")
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
AMOUNTS = ("cost_usd", "duration_seconds", "latency_ms")
SCORES = ("weighted_score", "impl_rate")
KEY = ["tier", "oid", "iteration_id"]

# Column names of the attempts table that a file cannot fill; an input column of that name is carried along
# under another one.
_RESERVED = ("model", "fix_sha")


@dataclass(frozen=True)
class IngestedFixes:
    """The attempts that were accepted, in the order of their keys, and the rows that were not."""

    attempts: pl.LazyFrame
    quarantine: pl.DataFrame
    rows: int
    accepted: int


def open_fixes(path: Path) -> TextTable:
    """Open a fixes file and refuse it where it lacks what every attempt needs."""
    table = open_table(path)
    require_columns(table, "oid", "iteration_id")
    states = any(name in table.columns for name in (*STATED, *FIXES))
    implies = all(name in table.columns for name in IMPLIED)
    if not states and not implies:
        raise InputFileError(
            f"{path}: no outcome and no fix; it needs a column {' or '.join(STATED)}, the columns "
            f"{', '.join(IMPLIED)}, or a fix in {' or '.join(FIXES)}"
        )
    return table


def rules_for(table: TextTable) -> list[cells.Rule]:
    """The rules for the columns that this file has, in the order in which they are reported."""
    has = set(table.columns)
    rules = [cells.identifier("oid"), cells.identifier("iteration_id")]
    rules += [cells.identifier("tier", DEFAULT_TIER)] if "tier" in has else []
    rules += [cells.boolean(name) for name in (*STATED, "compiled") if name in has]
    rules += [cells.disagreement("passed", "plausible_fix")] if has.issuperset(STATED) else []
    rules += [cells.count(name) for name in (*COUNTS, *TOKENS) if name in has]
    rules += [cells.amount(name, signed=True) for name in SCORES if name in has]
    rules += [cells.outcome_class("classification")] if "classification" in has else []
    rules += [cells.amount(name) for name in AMOUNTS if name in has]
    return rules


def read_fixes(path: Path, model: str, problems: pl.LazyFrame, scratch: Path) -> IngestedFixes:
    """Read `<model>_fixes.csv` against the problems table."""
    table = open_fixes(path)
    rules = rules_for(table)
    ruled = {rule.column for rule in rules}
    carried = {name: pl.col(name) for name in table.columns if name not in ruled and name not in _RESERVED}
    renamed = {f"input_{name}": pl.col(name) for name in _RESERVED if name in table.columns}
    staged = stage(table, rules, carried | renamed, scratch)

    known = problems.select("oid", pl.col("suite").alias("__problem_suite"))
    strangers = [
        Refusal(line, "unknown_oid", f"the oid {oid!r} is not in the problems file")
        for line, oid in staged.accepted.join(known, on="oid", how="anti").select(LINE, "oid").collect().iter_rows()
    ]
    rows = without(staged.accepted, strangers)
    if "tier" not in table.columns:
        rows = rows.with_columns(tier=pl.lit(DEFAULT_TIER))
    duplicates = find_duplicates(rows, KEY)
    rows = without(rows, duplicates)

    refused = [*staged.refusals, *strangers, *duplicates]
    attempts = _as_attempts(rows.join(known, on="oid", how="left"), model)
    return IngestedFixes(attempts, quarantine_frame(table, refused), staged.rows, staged.rows - len(refused))


def outcome(present: set[str]) -> pl.Expr:
    """The outcome that a row states, else the one that its compile and test columns imply."""
    stated = [pl.col(name) for name in STATED if name in present]
    if not present.issuperset(IMPLIED):
        return pl.coalesce(stated) if stated else pl.lit(None, pl.Boolean)
    tested = pl.col("tests_passed").is_not_null() & pl.col("tests_failed").is_not_null()
    implied = (
        pl.when(~pl.col("compiled"))
        .then(False)
        .when(pl.col("compiled") & tested)
        .then((pl.col("tests_passed") > 0) & (pl.col("tests_failed") == 0))
    )
    return pl.coalesce(*stated, implied)


def _as_attempts(rows: pl.LazyFrame, model: str) -> pl.LazyFrame:
    present = set(rows.collect_schema().names())

    def given(name: str, dtype: type[pl.DataType]) -> pl.Expr:
        return pl.col(name) if name in present else pl.lit(None, dtype)

    suite = [pl.col("suite")] if "suite" in present else []
    scores = [pl.col(name) for name in SCORES if name in present]
    typed = {
        "model": pl.lit(model),
        "tier": pl.col("tier"),
        "oid": pl.col("oid"),
        "iteration_id": pl.col("iteration_id"),
        "run_id": given("run_id", pl.String),
        "suite": pl.coalesce(*suite, "__problem_suite", pl.lit(DEFAULT_SUITE)),
        "fix_sha": _fix_sha([name for name in FIXES if name in present]),
        "passed": outcome(present),
        "compiled": given("compiled", pl.Boolean),
        **{name: given(name, pl.Int64) for name in COUNTS},
        "weighted_score": pl.coalesce(scores) if scores else pl.lit(None, pl.Float64),
        "classification": given("classification", pl.String),
        **{name: given(name, pl.Int64) for name in TOKENS},
        **{name: given(name, pl.Float64) for name in AMOUNTS},
    }
    used = {*typed, *STATED, *SCORES, LINE, "__problem_suite"}
    extras = [name for name in rows.collect_schema().names() if name not in used]
    by_number = pl.col("iteration_id").cast(pl.Int64, strict=False)
    return rows.select(**typed, **{name: pl.col(name) for name in extras}).sort(
        "tier", "oid", by_number, "iteration_id", nulls_last=True
    )


def _fix_sha(columns: list[str]) -> pl.Expr:
    if not columns:
        return pl.lit(None, pl.String)

    def digest(texts: pl.Series) -> pl.Series:
        hashed = [None if text is None else hashlib.sha256(text.encode()).hexdigest() for text in texts]
        return pl.Series(texts.name, hashed, dtype=pl.String)

    return pl.coalesce(columns).map_batches(digest, return_dtype=pl.String, is_elementwise=True)
