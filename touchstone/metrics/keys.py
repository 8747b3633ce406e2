"""The columns that figures are grouped by, each list named once, and what counts: all but what a ruling excludes.

In tables of an earlier version nothing is excluded.
"""

import polars as pl

MODEL_TIER = ["model", "tier"]
PROBLEM_KEY = [*MODEL_TIER, "oid"]
ATTEMPT_KEY = [*PROBLEM_KEY, "iteration_id"]
RUN_KEY = [*MODEL_TIER, "run_id"]
SUITE_KEY = [*RUN_KEY, "suite"]

ModelTier = tuple[str, str]


def without_excluded(outcomes: pl.LazyFrame) -> pl.LazyFrame:
    """The outcomes without excluded ones, as if there had been no such attempts."""
    if "ruling" not in outcomes.collect_schema():
        return outcomes
    return outcomes.filter(pl.col("ruling").ne_missing(pl.lit("exclude")))


def counting_problems(problems: pl.LazyFrame) -> pl.LazyFrame:
    """The problems without excluded ones."""
    if "excluded" not in problems.collect_schema():
        return problems
    return problems.filter(~pl.col("excluded").fill_null(False))
