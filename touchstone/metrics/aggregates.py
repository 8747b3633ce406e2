"""Statistics per model and per problem: pass rates, compilation, tests, lint, cost, tokens and latency."""

from collections.abc import Sequence

import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.exact import exact_mean, exact_total
from touchstone.inference.units import join_intervals, mean_intervals, sums_by_unit
from touchstone.metrics.attempts import cost_of_pass
from touchstone.metrics.keys import MODEL_TIER, PROBLEM_KEY
from touchstone.metrics.problem_scores import mean_decided_cost, mean_score


def model_statistics(
    problem_scores: pl.LazyFrame,
    pass_at_k: pl.LazyFrame,
    problems: pl.LazyFrame,
    k_values: Sequence[int],
    intervals: IntervalSettings,
) -> pl.LazyFrame:
    """The table `model_statistics`: pass@k, compilation, tests, lint, cost, tokens and latency per model and tier.

    The intervals of pass@k are copied from its table; `ci_low` and `ci_high` are those of the smallest k.
    """
    averages = {
        "avg_compilation_rate": ("compilation_sum", "compilation_count"),
        "avg_test_pass_rate": ("tested_sum", "tested_count"),
        "avg_lint_score": ("lint_sum", "lint_count"),
        "avg_code_score": ("code_sum", "code_count"),
    }
    units = sums_by_unit(problem_scores, problems, MODEL_TIER, averages)
    table = overall(problem_scores).join(_pass_columns(pass_at_k, k_values), on=MODEL_TIER, how="left").sort(MODEL_TIER)
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


def overall(problem_scores: pl.LazyFrame) -> pl.LazyFrame:
    """The figures of `model_statistics` over attempts, without pass@k and without intervals."""
    unpriced, tokens = pl.col("attempts").sum() - pl.col("cost_count").sum(), pl.col("tokens_sum")
    return problem_scores.group_by(MODEL_TIER).agg(
        attempts=pl.col("attempts").sum(),
        avg_compilation_rate=mean_score("compilation"),
        avg_test_pass_rate=mean_score("tested"),
        avg_test_pass_rate_all=mean_score("test"),
        tested_attempts=pl.col("tested_count").sum(),
        avg_lint_score=mean_score("lint"),
        avg_code_score=mean_score("code"),
        # A missing price is not a price of 0.
        total_cost_usd=pl.when(unpriced == 0).then(exact_total(pl.col("cost_sum"))),
        priced_as=pl.col("priced_as").max(),
        unpriced_attempts=unpriced,
        total_tokens=pl.when((pl.col("tokens_count").sum() > 0) & tokens.is_not_null().all()).then(
            tokens.cast(pl.Int128).sum().cast(pl.Int64, strict=False)
        ),
        avg_latency_ms=mean_score("latency"),
    )


def problem_statistics(
    problem_scores: pl.LazyFrame, problem_pass_at_k: pl.LazyFrame, k_values: Sequence[int]
) -> pl.LazyFrame:
    """The table `problem_statistics`: pass@k, code scores, cost of pass and solvers per model, tier and problem."""
    rows = _own_statistics(problem_scores, problem_pass_at_k, k_values)
    solvers = rows.filter("solved").group_by("oid").agg(models_solving=pl.col("model").n_unique().cast(pl.Int64))
    return (
        rows.join(solvers, on="oid", how="left")
        .with_columns(pl.col("models_solving").fill_null(0))
        .with_columns(only_solver=pl.col("solved") & (pl.col("models_solving") == 1))
        .sort(PROBLEM_KEY)
    )


def _own_statistics(
    problem_scores: pl.LazyFrame, problem_pass_at_k: pl.LazyFrame, k_values: Sequence[int]
) -> pl.LazyFrame:
    """The columns that depend on the model alone."""
    scored = problem_scores.group_by(PROBLEM_KEY).agg(
        avg_score=mean_score("code"), best_score=pl.col("code_best").max(), cost_mean=mean_decided_cost()
    )
    return (
        _wide(problem_pass_at_k, k_values)
        .join(scored, on=PROBLEM_KEY, how="left")
        .with_columns(cost_of_pass=cost_of_pass(pl.col("cost_mean"), _rate()), solved=pl.col("c") > 0)
        .drop("cost_mean")
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
    """A row per model, tier and problem, with n, c and a column per k."""
    # There is one row per k. Its maximum takes half as long as the first of a filter.
    of_k = {pass_column(k): pl.when(pl.col("k") == k).then("pass_at_k").max() for k in k_values}
    return problem_pass_at_k.group_by(PROBLEM_KEY).agg(pl.col("n", "c").first(), **of_k)
