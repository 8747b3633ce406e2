"""Tiers of a model: what each scores and costs, how far it lifts the baseline tier, and how much tiers differ.

A tier's `composite_median`, `grade` and `uplift` follow the medians, over the attempts that have a judge's score unless
the configuration counts a missing one as 0; `scored` says how many of the `attempts` have one. Medians of pass rates
are often all 1, so the variance over means is always given beside the one over medians. Every figure of a tier has its
interval, over problems or the clusters that they share: of the median in `medians`, of the cost of pass in `ratios`, of
uplift in `uplift`.
"""

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings, Scoring
from touchstone.inference.medians import Sample, median_interval, min_units
from touchstone.inference.ratios import cost_of_pass_interval
from touchstone.inference.uncertainty import Interval
from touchstone.inference.units import (
    UNIT,
    GroupKey,
    arrays_by_group,
    interval_columns,
    join_intervals,
    mean_intervals,
    unit_sums,
    with_unit_ids,
)
from touchstone.inference.uplift import uplift_intervals
from touchstone.metrics.attempts import cost_of_pass, decided_cost, grade, mean_decided_cost
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


def tiers(
    described: pl.LazyFrame,
    scores: pl.LazyFrame,
    problems: pl.LazyFrame,
    scoring: Scoring,
    intervals: IntervalSettings,
) -> pl.LazyFrame:
    """Median composite, grade, pass rate, cost of pass and uplift over the baseline tier, each with its interval."""
    table = _figures(described, scores, scoring).collect()
    units = unit_sums(scores, problems, GROUP, ["pass_rate", decided_cost()])
    samples = _samples(scores, problems)
    medians = {key: median_interval(sample, intervals) for key, sample in samples.items()}
    found = [
        interval_columns(table, GROUP, medians),
        mean_intervals(units, GROUP, "pass_rate", intervals, "pass_rate_").drop("pass_rate_ci_units"),
        interval_columns(table, GROUP, _costs(units, table, intervals), "cost_of_pass_").drop("cost_of_pass_ci_units"),
        interval_columns(table, GROUP, _uplifts(table, samples, scoring.baseline_tier, intervals), "uplift_").drop(
            "uplift_ci_units"
        ),
    ]
    for columns in found:
        table = join_intervals(table, columns, GROUP)
    table = _with_missing_intervals(table, samples, scoring.baseline_tier, intervals)
    ends = {f"grade_{end}": grade(pl.col(f"ci_{end}"), scoring) for end in ("low", "high")}
    return table.with_columns(**ends).lazy()


def _costs(units: pl.DataFrame, table: pl.DataFrame, settings: IntervalSettings) -> dict[GroupKey, Interval]:
    """The interval of the cost of pass, for every tier that has one."""
    known = table.filter(pl.col("cost_of_pass").is_not_null())
    columns = ["cost_usd", "cost_usd_size", "pass_rate", "pass_rate_size"]
    rows = units.join(known, on=GROUP, how="semi").select(*GROUP, *columns)
    return {
        key: cost_of_pass_interval(costs, attempts, passes, decided, settings)
        for key, (costs, attempts, passes, decided) in arrays_by_group(rows, GROUP)
    }


def _uplifts(
    table: pl.DataFrame, samples: dict[GroupKey, Sample], baseline: str, settings: IntervalSettings
) -> dict[GroupKey, Interval]:
    """The interval of the uplift, for every tier that has one; the baseline's own is 0 and nothing else."""
    known = table.filter(pl.col("uplift").is_not_null() & (pl.col("tier") != baseline))
    found: dict[GroupKey, Interval] = {}
    for model, tiers_of_model in known.group_by("model", maintain_order=True).agg("tier").iter_rows():
        others = [samples[model, tier] for tier in tiers_of_model]
        for tier, interval in zip(
            tiers_of_model, uplift_intervals(samples[model, baseline], others, settings), strict=True
        ):
            found[model, tier] = interval
    return found


def _with_missing_intervals(
    table: pl.DataFrame, samples: dict[GroupKey, Sample], baseline: str, settings: IntervalSettings
) -> pl.DataFrame:
    """The table with the reason where an uplift has no interval: too few units on one side."""
    needed = min_units(settings.confidence)
    counted = [(*key, len(np.unique(sample.units))) for key, sample in samples.items()]
    units = pl.DataFrame(counted, schema={"model": pl.String, "tier": pl.String, "units": pl.Int64}, orient="row")
    baselines = units.filter(pl.col("tier") == baseline).select("model", baseline_units="units")

    def reason(units: str, tier: pl.Expr) -> pl.Expr:
        told = "no interval: {} problems or clusters with a composite score in tier {}, {} are needed"
        return pl.format(told, units, tier, pl.lit(needed))

    missing = pl.col("uplift").is_not_null() & pl.col("uplift_ci_low").is_null() & (pl.col("tier") != baseline)
    why = (
        pl.when(missing & (pl.col("units") < needed))
        .then(reason("units", pl.col("tier")))
        .when(missing & (pl.col("baseline_units") < needed))
        .then(reason("baseline_units", pl.lit(baseline)))
    )
    joined = table.join(units, on=GROUP, how="left", maintain_order="left").join(
        baselines, on="model", how="left", maintain_order="left"
    )
    return joined.with_columns(pl.coalesce("uplift_reason", why)).drop("units", "baseline_units")


def _samples(scores: pl.LazyFrame, problems: pl.LazyFrame) -> dict[GroupKey, Sample]:
    """The composite scores of every tier by unit."""
    scored = scores.select(*GROUP, "oid", "composite_score").drop_nulls("composite_score")
    counted = scored.group_by(*GROUP, "oid", "composite_score").agg(count=pl.len().cast(pl.Int64))
    rows = with_unit_ids(counted.collect(engine="streaming"), problems)
    several = rows.group_by(GROUP).agg(pl.col("oid").n_unique() > pl.col(UNIT).n_unique())
    shared: dict[GroupKey, bool] = {(model, tier): each for model, tier, each in several.iter_rows()}
    columns = rows.select(*GROUP, "composite_score", UNIT, "count")
    return {
        key: Sample(values, units, counts, shared[key])
        for key, (values, units, counts) in arrays_by_group(columns, GROUP)
    }


def _figures(described: pl.LazyFrame, scores: pl.LazyFrame, scoring: Scoring) -> pl.LazyFrame:
    """The tiers' figures without their intervals."""
    per_tier = (
        described.group_by(GROUP)
        .agg(
            composite_median=_of("composite_score", "median"),
            pass_rate=_of("pass_rate", "mean"),
            attempts=_of("pass_rate", "count"),
        )
        .join(scores.group_by(GROUP).agg(cost_mean=mean_decided_cost(), scored=_is_scored().sum()), on=GROUP)
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
        "scored",
        "composite_median",
        grade=grade(score, scoring),
        pass_rate="pass_rate",
        cost_of_pass=cost_of_pass(pl.col("cost_mean"), pl.col("pass_rate")),
        uplift=uplift(score, baseline),
        uplift_reason=reason,
    ).sort(GROUP)


def _is_scored() -> pl.Expr:
    """Whether an attempt has an outcome and a judge's score, which is what a composite score is made of."""
    return pl.col("pass_rate").is_not_null() & pl.col("impl_rate").is_not_null()


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
    "attempts": pl.Int64,
    "scored": pl.Int64,
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
        "attempts": priced["attempts"].sum(),
        "scored": priced["scored"].sum(),
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
