"""Sums of the scores of the attempts at a problem, in each suite and run.

Most tables per model, tier, suite or run need sums over problems, because attempts at one problem are not independent.
They are added up here once, so that those tables read a row per problem instead of one per attempt. Sums are the same
in any order of rows (`inference.exact`).
"""

import polars as pl

from touchstone.inference.exact import exact_sum, exact_total
from touchstone.metrics.keys import SUITE_KEY

_KEY = [*SUITE_KEY, "oid"]


def problem_scores(attempt_scores: pl.LazyFrame) -> pl.LazyFrame:
    """The table `problem_scores`: sums of scores, costs, tokens and latencies per model, tier, run, suite and problem.

    `<name>_count` is the number of attempts in `<name>_sum`.

    >>> from touchstone.tables import TABLES
    >>> attempts = pl.DataFrame({"oid": ["a", "a"], "pass_rate": [1.0, None], "cost_usd": [0.5, 0.25]})
    >>> empty = pl.DataFrame(schema=TABLES["attempt_scores"].dtypes)
    >>> table = problem_scores(pl.concat([empty, attempts], how="diagonal").lazy()).collect()
    >>> table.select("oid", "attempts", "decided", "passes", "cost_sum", "decided_cost_sum").row(0)
    ('a', 2, 1, 1.0, 0.75, 0.5)
    """
    passed, compiled = pl.col("pass_rate"), pl.col("compilation_score")
    tokens = pl.col("total_tokens")
    # A plain sum of 0 and 1 is exact in any order.
    table = attempt_scores.group_by(_KEY).agg(
        pl.len().cast(pl.Int64).alias("attempts"),
        passed.count().cast(pl.Int64).alias("decided"),
        passed.sum().alias("passes"),
        (passed.is_not_null() & pl.col("impl_rate").is_not_null()).sum().cast(pl.Int64).alias("scored"),
        *_plain("accuracy", pl.col("accuracy")),
        *_plain("compilation", compiled),
        *_exact("test", pl.when(compiled.is_not_null()).then("test_score")),
        *_exact("tested", pl.when("ran_tests").then("test_score")),
        *_exact("lint", pl.when("lint_measured").then("lint_score")),
        *_exact("code", pl.col("code_score")),
        pl.col("code_score").max().alias("code_best"),
        *_exact("cost", pl.col("cost_usd")),
        # A cost of pass divides the cost and the passes of the same attempts.
        *_exact("decided_cost", pl.when(passed.is_not_null()).then("cost_usd")),
        pl.col("priced_as").max(),
        tokens.cast(pl.Int128).sum().cast(pl.Int64, strict=False).alias("tokens_sum"),
        tokens.count().cast(pl.Int64).alias("tokens_count"),
        *_exact("latency", pl.col("latency_ms")),
    )
    return table.sort(*_KEY, nulls_last=False)


def mean_score(name: str) -> pl.Expr:
    """The mean over all attempts of a group of rows of `problem_scores`; null without values."""
    count = pl.col(f"{name}_count").sum()
    return pl.when(count > 0).then(exact_total(pl.col(f"{name}_sum")) / count)


def mean_decided_cost() -> pl.Expr:
    """The mean cost of decided attempts; null if any is unknown, because the known ones may not be typical."""
    return pl.when(pl.col("decided_cost_count").sum() == pl.col("decided").sum()).then(mean_score("decided_cost"))


def _plain(name: str, values: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    return values.sum().alias(f"{name}_sum"), values.count().cast(pl.Int64).alias(f"{name}_count")


def _exact(name: str, values: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    return exact_sum(values).alias(f"{name}_sum"), values.count().cast(pl.Int64).alias(f"{name}_count")
