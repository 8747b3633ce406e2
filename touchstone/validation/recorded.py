"""Outcomes recorded in the input. An attempt without one stays undecided: it counts neither as passed nor as failed."""

import polars as pl


def recorded_outcomes(attempts: pl.LazyFrame) -> pl.LazyFrame:
    """One outcome per attempt, from the verdict recorded in the input.

    >>> attempts = pl.LazyFrame({"model": ["m"], "tier": ["T0"], "oid": ["a"], "iteration_id": ["1"],
    ...     "passed": [None], "compiled": [None], "tests_passed": [None], "tests_failed": [None],
    ...     "lint_warnings": [None]}, schema_overrides={"passed": pl.Boolean})
    >>> recorded_outcomes(attempts).collect()["status"].item()
    'validator_unavailable'
    """
    decided = pl.col("passed").is_not_null()
    status = (
        pl.when(~decided)
        .then(pl.lit("validator_unavailable"))
        .when("passed")
        .then(pl.lit("passed"))
        .otherwise(pl.lit("failed"))
    )
    return attempts.select(
        "model",
        "tier",
        "oid",
        "iteration_id",
        status=status,
        passed="passed",
        validator=pl.when(decided).then(pl.lit("recorded")),
        validator_version=pl.lit(None, pl.String),
        controlled_tests=pl.lit(None, pl.Int64),
        fidelity=pl.when(decided).then(pl.lit("recorded")),
        sandbox=pl.lit(None, pl.String),
        cached=pl.lit(False),
        duration_seconds=pl.lit(None, pl.Float64),
        diagnostics=pl.lit(None, pl.String),
        changed_judge_files=pl.lit(None, pl.String),
        flagged_files=pl.lit(None, pl.String),
        applied=pl.lit(None, pl.Boolean),
        fixed=pl.lit(None, pl.Boolean),
        introduced_block=pl.lit(None, pl.Int64),
        introduced_file=pl.lit(None, pl.Int64),
        introduced_module=pl.lit(None, pl.Int64),
        introduced_errors=pl.lit(None, pl.Int64),
        block_errors=pl.lit(None, pl.Int64),
        module_errors=pl.lit(None, pl.Int64),
        consistent=pl.lit(None, pl.Boolean),
        compiled="compiled",
        tests_passed="tests_passed",
        tests_failed="tests_failed",
        lint_warnings="lint_warnings",
    )
