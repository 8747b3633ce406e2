"""What a model does overall, and what each problem does to each model: the aggregates of a scoring report."""

from collections.abc import Sequence

import polars as pl

from touchstone.metrics.attempts import cost_of_pass
from touchstone.metrics.statistics import steady_mean


def model_statistics(scores: pl.LazyFrame, pass_at_k: pl.LazyFrame, k_values: Sequence[int]) -> pl.LazyFrame:
    """Per model and tier: pass@k, compilation, tests, lint, cost, tokens and latency."""
    tested = pl.col("ran_tests")
    overall = (
        scores.sort("model", "tier", "oid", "iteration_id")
        .group_by("model", "tier", maintain_order=True)
        .agg(
            attempts=pl.len().cast(pl.Int64),
            avg_compilation_rate=pl.col("compilation_score").mean(),
            avg_test_pass_rate=pl.col("test_score").filter(tested).mean(),
            avg_test_pass_rate_all=pl.col("test_score").filter(pl.col("compilation_score").is_not_null()).mean(),
            tested_attempts=tested.sum().cast(pl.Int64),
            avg_lint_score=pl.col("lint_score").filter("lint_measured").mean(),
            avg_code_score=pl.col("code_score").mean(),
            total_cost_usd=_total("cost_usd"),
            unpriced_attempts=pl.col("cost_usd").is_null().sum().cast(pl.Int64),
            total_tokens=pl.when(pl.col("total_tokens").count() > 0).then(pl.col("total_tokens").sum()),
            avg_latency_ms=pl.col("latency_ms").mean(),
        )
    )
    return overall.join(_wide(pass_at_k, ["model", "tier"], k_values), on=["model", "tier"], how="left").sort(
        "model", "tier"
    )


def problem_statistics(scores: pl.LazyFrame, problem_figures: pl.LazyFrame, k_values: Sequence[int]) -> pl.LazyFrame:
    """Per model, tier and problem: pass@k, mean and best code score, cost of pass, and who solves it."""
    key = ["model", "tier", "oid"]
    scored = (
        scores.sort(*key, "iteration_id")
        .group_by(key, maintain_order=True)
        .agg(
            avg_score=pl.col("code_score").mean(),
            best_score=pl.col("code_score").max(),
            cost_mean=pl.when(pl.col("cost_usd").is_null().any()).then(None).otherwise(pl.col("cost_usd").mean()),
        )
    )
    counts = problem_figures.filter(pl.col("k") == min(k_values)).select(*key, "n", "c")
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
        mean_pass_rate=steady_mean(_rate()), models_solving=pl.col("models_solving").max()
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
    return pl.when(pl.col(column).is_null().any()).then(None).otherwise(pl.col(column).sum())
