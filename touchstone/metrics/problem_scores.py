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
    figures = _figures()
    has_values = attempt_scores.select(values.count().alias(name) for name, values in figures.items())
    counts = has_values.collect(engine="streaming").row(0, named=True)
    # Most runs record few of these, and the others need not be added up.
    present = [column for name, values in figures.items() if counts[name] for column in _aggregates(name, values)]
    absent = [column for name, values in figures.items() if not counts[name] for column in _aggregates(name, values)]
    passed = pl.col("pass_rate")
    return (
        attempt_scores.group_by(_KEY)
        .agg(
            pl.len().cast(pl.Int64).alias("attempts"),
            passed.count().cast(pl.Int64).alias("decided"),
            # A plain sum of 0 and 1 is exact in any order.
            passed.sum().alias("passes"),
            *present,
        )
        .sort(*_KEY, nulls_last=False)
        .with_columns(_without_values(column.meta.output_name()) for column in absent)
    )


def _figures() -> dict[str, pl.Expr]:
    """The figures that are added up, each null for the attempts that do not count."""
    decided, compiled = pl.col("pass_rate").is_not_null(), pl.col("compilation_score")
    return {
        "scored": pl.when(decided).then("impl_rate"),
        "accuracy": pl.col("accuracy"),
        "compilation": compiled,
        "test": pl.when(compiled.is_not_null()).then("test_score"),
        "tested": pl.when("ran_tests").then("test_score"),
        "lint": pl.when("lint_measured").then("lint_score"),
        "code": pl.col("code_score"),
        "cost": pl.col("cost_usd"),
        # A cost of pass divides the cost and the passes of the same attempts.
        "decided_cost": pl.when(decided).then("cost_usd"),
        "priced_as": pl.col("priced_as"),
        "tokens": pl.col("total_tokens"),
        "latency": pl.col("latency_ms"),
    }


def _aggregates(name: str, values: pl.Expr) -> list[pl.Expr]:
    """The columns of a figure."""
    count = values.count().cast(pl.Int64)
    match name:
        case "scored":
            return [count.alias(name)]
        case "priced_as":
            return [values.max().alias(name)]
        case "tokens":
            total = values.cast(pl.Int128).sum().cast(pl.Int64, strict=False)
        case _:
            total = exact_sum(values)
    best = [values.max().alias("code_best")] if name == "code" else []
    return [total.alias(f"{name}_sum"), count.alias(f"{name}_count"), *best]


def _without_values(column: str) -> pl.Expr:
    """A column of a figure that no attempt has."""
    return pl.lit(None if column in ("priced_as", "code_best") else 0).alias(column)


def mean_score(name: str) -> pl.Expr:
    """The mean over all attempts of a group of rows of `problem_scores`; null without values."""
    count = pl.col(f"{name}_count").sum()
    return pl.when(count > 0).then(exact_total(pl.col(f"{name}_sum")) / count)


def mean_decided_cost() -> pl.Expr:
    """The mean cost of decided attempts; null if any is unknown, because the known ones may not be typical."""
    return pl.when(pl.col("decided_cost_count").sum() == pl.col("decided").sum()).then(mean_score("decided_cost"))
