"""Tiers of a model: what each scores and costs, how far it lifts the baseline tier, and how much tiers differ.

A tier's `composite_median`, `grade` and `uplift` follow the medians. Medians of pass rates are often all 1, so the
variance over means is always given beside the one over medians.
"""

import numpy as np
import polars as pl

from touchstone.config import Scoring
from touchstone.metrics.attempts import cost_of_pass, grade
from touchstone.metrics.statistics import population_variance, statistics

METRICS = (
    "pass_rate",
    "impl_rate",
    "composite_score",
    "code_score",
    "accuracy",
    "cost_usd",
    "cost_of_pass",
    "duration_seconds",
    "latency_ms",
    "total_tokens",
)
GROUP = ["model", "tier"]


def tier_statistics(scores: pl.LazyFrame) -> pl.LazyFrame:
    """The eight statistics of every metric, per model and tier."""
    as_numbers = scores.with_columns(pl.col("total_tokens").cast(pl.Float64))
    return statistics(as_numbers, GROUP, METRICS).lazy()


def tiers(described: pl.LazyFrame, scores: pl.LazyFrame, scoring: Scoring) -> pl.LazyFrame:
    """Median composite, grade, pass rate, cost of pass and uplift over the baseline tier."""
    # A mean over the costs that happen to be known says nothing of the tier, so one unknown cost makes it unknown.
    costless = scores.group_by(GROUP).agg(costless=pl.col("cost_usd").is_null().sum())
    per_tier = (
        described.group_by(GROUP)
        .agg(
            composite_median=_of("composite_score", "median"),
            pass_rate=_of("pass_rate", "mean"),
            cost_mean=_of("cost_usd", "mean"),
            attempts=_of("pass_rate", "count"),
        )
        .join(costless, on=GROUP)
        .with_columns(cost_mean=pl.when(pl.col("costless") == 0).then("cost_mean"))
    )
    baselines = per_tier.filter(pl.col("tier") == scoring.baseline_tier).select(
        "model", baseline="composite_median", has_baseline=pl.lit(True)
    )
    compared = per_tier.join(baselines, on="model", how="left")
    score, baseline = pl.col("composite_median"), pl.col("baseline")
    reason = (
        pl.when(pl.col("has_baseline").is_null())
        .then(pl.lit(f"there is no tier {scoring.baseline_tier}"))
        .when(baseline.is_null())
        .then(pl.lit(f"tier {scoring.baseline_tier} has no composite score"))
        .when(baseline == 0)
        .then(pl.lit(f"the composite score of tier {scoring.baseline_tier} is 0"))
        .when(score.is_null())
        .then(pl.lit("the tier has no composite score"))
    )
    return compared.select(
        *GROUP,
        "attempts",
        "composite_median",
        grade=grade(score, scoring),
        pass_rate="pass_rate",
        cost_of_pass=cost_of_pass(pl.col("cost_mean"), pl.col("pass_rate")),
        uplift=uplift(score, baseline),
        uplift_reason=reason,
    ).sort(GROUP)


def uplift(score: pl.Expr, baseline: pl.Expr) -> pl.Expr:
    """How much better than the baseline, as a share of it; null where the baseline is missing or 0."""
    return pl.when(baseline != 0).then((score - baseline) / baseline)


def cross_tier(described: pl.LazyFrame, per_tier: pl.LazyFrame) -> pl.LazyFrame:
    """How much a model's tiers differ in passing, cost and score, and the cheapest tier that passes at all."""
    table = described.collect()
    costs = per_tier.collect()
    rows = [_compare(str(model), table, costs) for model in costs["model"].unique().sort()]
    return pl.LazyFrame(rows, schema=CROSS_TIER_SCHEMA)


CROSS_TIER_SCHEMA = {
    "model": pl.String,
    "tiers": pl.Int64,
    "pass_rate_variance": pl.Float64,
    "pass_rate_variance_of_means": pl.Float64,
    "cost_variance": pl.Float64,
    "cost_variance_of_means": pl.Float64,
    "score_variance": pl.Float64,
    "score_variance_of_means": pl.Float64,
    "cost_delta": pl.Float64,
    "frontier_cost_of_pass": pl.Float64,
    "frontier_tier": pl.String,
}


def _compare(model: str, described: pl.DataFrame, per_tier: pl.DataFrame) -> dict[str, object]:
    own = described.filter(pl.col("model") == model).sort("tier")

    def variance(metric: str, statistic: str) -> float | None:
        values = own.filter(pl.col("metric") == metric)[statistic].drop_nulls()
        return population_variance(values.to_numpy())

    costs = own.filter(pl.col("metric") == "cost_usd")["median"].drop_nulls().to_numpy()
    priced = per_tier.filter(pl.col("model") == model).sort("cost_of_pass", "tier", nulls_last=True)
    cheapest = priced.filter(pl.col("cost_of_pass").is_finite()).head(1)
    return {
        "model": model,
        "tiers": priced.height,
        "pass_rate_variance": variance("pass_rate", "median"),
        "pass_rate_variance_of_means": variance("pass_rate", "mean"),
        "cost_variance": variance("cost_usd", "median"),
        "cost_variance_of_means": variance("cost_usd", "mean"),
        "score_variance": variance("composite_score", "median"),
        "score_variance_of_means": variance("composite_score", "mean"),
        "cost_delta": float(np.max(costs) - np.min(costs)) if len(costs) else None,
        "frontier_cost_of_pass": cheapest["cost_of_pass"].item() if cheapest.height else None,
        "frontier_tier": cheapest["tier"].item() if cheapest.height else None,
    }


def _of(metric: str, statistic: str) -> pl.Expr:
    return pl.col(statistic).filter(pl.col("metric") == metric).first()
