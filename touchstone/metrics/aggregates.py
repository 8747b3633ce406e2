"""What a model does overall, and what each problem does to each model: the aggregates of a scoring report."""

from collections.abc import Sequence

import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.exact import exact_mean, exact_sum
from touchstone.inference.units import join_intervals, mean_intervals, unit_sums
from touchstone.metrics.attempts import cost_of_pass, mean_decided_cost
from touchstone.metrics.pass_at_k import problem_counts

GROUP = ["model", "tier"]


def model_statistics(
    scores: pl.LazyFrame,
    pass_at_k: pl.LazyFrame,
    problems: pl.LazyFrame,
    k_values: Sequence[int],
    intervals: IntervalSettings,
) -> pl.LazyFrame:
    """Per model and tier: pass@k, compilation, tests, lint, cost, tokens and latency, with the intervals of shares.

    Those of pass@k are copied from its table: `ci_low` and the like are of the smallest k.
    """
    averages = {
        "avg_compilation_rate": pl.col("compilation_score"),
        "avg_test_pass_rate": pl.when("ran_tests").then("test_score"),
        "avg_lint_score": pl.when("lint_measured").then("lint_score"),
        "avg_code_score": pl.col("code_score"),
    }
    units = unit_sums(scores, problems, GROUP, [figure.alias(name) for name, figure in averages.items()])
    table = _overall(scores).join(_pass_columns(pass_at_k, k_values), on=GROUP, how="left").sort(GROUP)
    found = table.with_columns(pl.col("ci_units").fill_null(0)).collect()
    for name in averages:
        found = join_intervals(found, mean_intervals(units, GROUP, name, intervals, f"{name}_"), GROUP)
    return found.lazy()


def _pass_columns(pass_at_k: pl.LazyFrame, k_values: Sequence[int]) -> pl.LazyFrame:
    """The interval of the smallest k, then every pass@k and the ends of its interval."""
    ends = ["ci_low", "ci_high", "ci_method", "ci_units"]
    smallest = pass_at_k.filter(pl.col("k") == min(k_values)).select(*GROUP, *ends)
    columns = [
        pl.col(name).filter(pl.col("k") == k).first().alias(pass_column(k) + suffix)
        for k in k_values
        for name, suffix in (("pass_at_k", ""), ("ci_low", "_ci_low"), ("ci_high", "_ci_high"))
    ]
    return smallest.join(pass_at_k.group_by(GROUP).agg(columns), on=GROUP)


def _overall(scores: pl.LazyFrame) -> pl.LazyFrame:
    """The figures over attempts, without their intervals."""
    tested = pl.col("ran_tests")
    return scores.group_by(GROUP).agg(
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


def problem_statistics(scores: pl.LazyFrame, problem_figures: pl.LazyFrame, k_values: Sequence[int]) -> pl.LazyFrame:
    """Per model, tier and problem: pass@k, mean and best code score, cost of pass, and who solves it."""
    key = ["model", "tier", "oid"]
    scored = scores.group_by(key).agg(
        avg_score=exact_mean(pl.col("code_score")),
        best_score=pl.col("code_score").max(),
        cost_mean=mean_decided_cost(),
    )
    counts = problem_counts(problem_figures)
    solved = pl.col("c") > 0
    return (
        counts.join(_wide(problem_figures, key, k_values), on=key)
        .join(scored, on=key, how="left")
        .with_columns(
            cost_of_pass=cost_of_pass(pl.col("cost_mean"), _rate()),
            solved=solved,
            models_solving=pl.col("model").filter(solved).n_unique().over("oid").cast(pl.Int64),
        )
        .with_columns(only_solver=solved & (pl.col("models_solving") == 1))
        .drop("cost_mean")
        .sort(key)
    )


def problem_frontier(per_problem: pl.LazyFrame) -> pl.LazyFrame:
    """Per problem the model and tier with the lowest finite cost of pass; null where nobody passes at a known cost."""
    cheapest = (
        per_problem.filter(pl.col("cost_of_pass").is_finite())
        .sort("oid", "cost_of_pass", "model", "tier")
        .group_by("oid", maintain_order=True)
        .agg(pl.col("cost_of_pass", "model", "tier").first())
    )
    hardness = per_problem.group_by("oid").agg(
        mean_pass_rate=exact_mean(_rate()), models_solving=pl.col("models_solving").max()
    )
    return hardness.join(cheapest, on="oid", how="left").sort("oid")


def pass_column(k: int) -> str:
    """The column of pass@k in a wide table.

    >>> pass_column(5)
    'pass_at_5'
    """
    return f"pass_at_{k}"


def _rate() -> pl.Expr:
    """Passed by decided attempts; null where none is decided."""
    return pl.when(pl.col("n") > 0).then(pl.col("c") / pl.col("n"))


def _wide(figures: pl.LazyFrame, key: list[str], k_values: Sequence[int]) -> pl.LazyFrame:
    return figures.group_by(key).agg(
        pl.col("pass_at_k").filter(pl.col("k") == k).first().alias(pass_column(k)) for k in k_values
    )


def _total(column: str) -> pl.Expr:
    """The sum, or null where a part of it is unknown: a missing price is not a price of 0."""
    return pl.when(pl.col(column).is_not_null().all()).then(exact_sum(pl.col(column)))
