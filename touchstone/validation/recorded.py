"""Outcomes recorded in the input. An attempt without one stays undecided: it counts neither as passed nor as failed."""

import polars as pl

from touchstone.tables import TABLES
from touchstone.vocabulary import MAX_DIAGNOSTICS

# Columns of the input that say why an attempt failed.
REASONS = ("error",)


def recorded_outcomes(attempts: pl.LazyFrame) -> pl.LazyFrame:
    """One outcome per attempt, from the verdict recorded in the input.

    >>> attempts = pl.LazyFrame({"model": ["m"], "tier": ["T0"], "oid": ["a"], "iteration_id": ["1"],
    ...     "passed": [None], "compiled": [None], "tests_passed": [None], "tests_failed": [None],
    ...     "lint_warnings": [None]}, schema_overrides={"passed": pl.Boolean})
    >>> recorded_outcomes(attempts).collect()["status"].item()
    'validator_unavailable'
    """
    decided = pl.col("passed").is_not_null()
    status = pl.when("passed").then(pl.lit("passed")).otherwise(pl.lit("failed"))
    given = {
        **{name: pl.col(name) for name in (*TABLES["attempts"].key, "passed", "compiled", "lint_warnings")},
        **{name: pl.col(name) for name in ("tests_passed", "tests_failed")},
        "measured": pl.col("passed"),
        "status": pl.when(decided).then(status).otherwise(pl.lit("validator_unavailable")),
        "validator": pl.when(decided).then(pl.lit("recorded")),
        "fidelity": pl.when(decided).then(pl.lit("recorded")),
        "cached": pl.lit(False),
    }
    said = [pl.col(name).str.slice(0, MAX_DIAGNOSTICS) for name in REASONS if name in attempts.collect_schema()]
    if "classification" in attempts.collect_schema():
        classes = pl.col("classification")
        said.append(pl.when(~classes.str.to_lowercase().is_in(["pass", "fail"])).then(classes))
    if said:
        given["diagnostics"] = pl.when(~pl.col("passed")).then(pl.coalesce(said))
    columns = TABLES["outcomes"].dtypes.items()
    return attempts.select(given.get(name, pl.lit(None, dtype)).alias(name) for name, dtype in columns)
