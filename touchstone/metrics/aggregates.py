"""Statistics per model and per problem: pass rates, compilation, tests, lint, cost, tokens and latency."""

from collections.abc import Sequence

import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.exact import exact_mean, exact_sum
from touchstone.inference.units import join_intervals, mean_intervals, unit_sums
from touchstone.metrics.attempts import cost_of_pass, mean_decided_cost
from touchstone.metrics.keys import MODEL_TIER, PROBLEM_KEY
from touchstone.metrics.pass_at_k import problem_counts


def model_statistics(
    attempt_scores: pl.LazyFrame,
    pass_at_k: pl.LazyFrame,
    problems: pl.LazyFrame,
    k_values: Sequence[int],
    intervals: IntervalSettings,
) -> pl.LazyFrame:
    """The table `model_statistics`: pass@k, compilation, tests, lint, cost, tokens and latency per model and tier.

    The intervals of pass@k are copied from its table; `ci_low` and `ci_high` are those of the smallest k.
    """
    averages = {
        "avg_compilation_rate": pl.col("compilation_score"),
        "avg_test_pass_rate": pl.when("ran_tests").then("test_score"),
        "avg_lint_score": pl.when("lint_measured").then("lint_score"),
        "avg_code_score": pl.col("code_score"),
    }
    units = unit_sums(attempt_scores, problems, MODEL_TIER, [figure.alias(name) for name, figure in averages.items()])
    table = (
        _overall(attempt_scores).join(_pass_columns(pass_at_k, k_values), on=MODEL_TIER, how="left").sort(MODEL_TIER)
    )
    found = table.with_columns(pl.col("ci_units").fill_null(0)).collect()
    for name in averages:
        found = join_intervals(found, mean_intervals(units, MODEL_TIER, name, intervals, f"{name}_"), MODEL_TIER)
    return found.lazy()


def _pass_columns(pass_at_k: pl.LazyFrame, k_values: Sequence[int]) -> pl.LazyFrame:
    """The interval of the smallest k, then every pass@k and the limits of its interval."""
    ends = ["ci_low", "ci_high", "ci_method", "ci_units"]
    smallest = pass_at_k.filter(pl.col("k") == min(k_values)).select(*MODEL_TIER, *ends)
    columns = [
        pl.col(name).filter(pl.col("k") == k).first().alias(pass_column(k) + suffix)
        for k in k_values
        for name, suffix in (("pass_at_k", ""), ("ci_low", "_ci_low"), ("ci_high", "_ci_high"))
    ]
    return smallest.join(pass_at_k.group_by(MODEL_TIER).agg(columns), on=MODEL_TIER)


def _overall(attempt_scores: pl.LazyFrame) -> pl.LazyFrame:
    """The figures over attempts, without intervals."""
    tested = pl.col("ran_tests")
    return attempt_scores.group_by(MODEL_TIER).agg(
        attempts=pl.len().cast(pl.Int64),
        avg_compilation_rate=exact_mean(pl.col("compilation_score")),
        avg_test_pass_rate=exact_mean(pl.col("test_score").filter(tested)),
        avg_test_pass_rate_all=exact_mean(pl.col("test_score").filter(pl.col("compilation_score").is_not_null())),
        tested_attempts=tested.sum().cast(pl.Int64),
        avg_lint_score=exact_mean(pl.col("lint_score").filter("lint_measured")),
        avg_code_score=exact_mean(pl.col("code_score")),
        total_cost_usd=_total("cost_usd"),
        priced_as=pl.col("priced_as").max(),
        unpriced_attempts=pl.col("cost_usd").is_null().sum().cast(pl.Int64),
        total_tokens=pl.when(pl.col("total_tokens").count() > 0).then(
            pl.col("total_tokens").cast(pl.Int128).sum().cast(pl.Int64, strict=False)
        ),
        avg_latency_ms=exact_mean(pl.col("latency_ms")),
    )


def problem_statistics(
    attempt_scores: pl.LazyFrame, problem_pass_at_k: pl.LazyFrame, k_values: Sequence[int]
) -> pl.LazyFrame:
    """The table `problem_statistics`: pass@k, code scores, cost of pass and solvers per model, tier and problem."""
    scored = attempt_scores.group_by(PROBLEM_KEY).agg(
        avg_score=exact_mean(pl.col("code_score")),
        best_score=pl.col("code_score").max(),
        cost_mean=mean_decided_cost(),
    )
    counts = problem_counts(problem_pass_at_k)
    solved = pl.col("c") > 0
    return (
        counts.join(_wide(problem_pass_at_k, k_values), on=PROBLEM_KEY)
        .join(scored, on=PROBLEM_KEY, how="left")
        .with_columns(
            cost_of_pass=cost_of_pass(pl.col("cost_mean"), _rate()),
            solved=solved,
            models_solving=pl.col("model").filter(solved).n_unique().over("oid").cast(pl.Int64),
        )
        .with_columns(only_solver=solved & (pl.col("models_solving") == 1))
        .drop("cost_mean")
        .sort(PROBLEM_KEY)
    )


def problem_frontier(problem_statistics: pl.LazyFrame) -> pl.LazyFrame:
    """The table `problem_frontier`: per problem the model and tier with the lowest finite cost of pass, if any."""
    cheapest = (
        problem_statistics.filter(pl.col("cost_of_pass").is_finite())
        .sort("oid", "cost_of_pass", "model", "tier")
        .group_by("oid", maintain_order=True)
        .agg(pl.col("cost_of_pass", "model", "tier").first())
    )
    difficulty = problem_statistics.group_by("oid").agg(
        mean_pass_rate=exact_mean(_rate()), models_solving=pl.col("models_solving").max()
    )
    return difficulty.join(cheapest, on="oid", how="left").sort("oid")


def pass_column(k: int) -> str:
    """The name of the column of pass@k in a wide table.

    >>> pass_column(5)
    'pass_at_5'
    """
    return f"pass_at_{k}"


def _rate() -> pl.Expr:
    """Passed over decided attempts; null if none is decided."""
    return pl.when(pl.col("n") > 0).then(pl.col("c") / pl.col("n"))


def _wide(problem_pass_at_k: pl.LazyFrame, k_values: Sequence[int]) -> pl.LazyFrame:
    return problem_pass_at_k.group_by(PROBLEM_KEY).agg(
        pl.col("pass_at_k").filter(pl.col("k") == k).first().alias(pass_column(k)) for k in k_values
    )


def _total(column: str) -> pl.Expr:
    """The sum; null if any value is unknown, because a missing price is not a price of 0."""
    return pl.when(pl.col(column).is_not_null().all()).then(exact_sum(pl.col(column)))
