"""Tiers of a model: statistics, score, grade and cost of each, its uplift over the baseline tier, and how they differ.

`composite_median`, `grade` and `uplift` are based on medians over attempts with a judge's score, unless a missing score
is configured to count as 0; `scored` is the number of `attempts` that have one. Medians of pass rates are often all 1,
so the variance of means is reported beside that of medians. Every figure has an interval over problems or clusters:
those of medians and uplift are in `inference.medians`, that of the cost of pass in `inference.ratios`.

Descriptive statistics describe the attempts at hand, so standard deviation and variance are those of a population
(divided by n). Without values they are null and the count is 0. With an infinite value the mean is infinite and the
variance is null. All are computed from the histogram of values, which is small if values repeat and the same in any
order of rows.
"""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings
from touchstone.config.scoring import Scoring
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.medians import Sample, median_interval, min_units, uplift_intervals
from touchstone.inference.ratios import cost_of_pass_interval
from touchstone.inference.uncertainty import Interval
from touchstone.inference.units import (
    UNIT,
    GroupKey,
    arrays_by_group,
    interval_columns,
    join_intervals,
    mean_intervals,
    sums_by_unit,
    with_unit_ids,
)
from touchstone.metrics.attempts import cost_of_pass, grade
from touchstone.metrics.keys import MODEL_TIER
from touchstone.metrics.problem_scores import mean_decided_cost
from touchstone.tables import TABLES

MODE_DECIMALS = 6
STATISTICS = {
    name: dtype for name, dtype in TABLES["tier_statistics"].dtypes.items() if name not in TABLES["tier_statistics"].key
}
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


def tier_statistics(attempt_scores: pl.LazyFrame) -> pl.LazyFrame:
    """The table `tier_statistics`: descriptive statistics of every metric per model and tier."""
    as_numbers = attempt_scores.with_columns(pl.col("total_tokens").cast(pl.Float64))
    return statistics(as_numbers, MODEL_TIER, METRICS).lazy()


def statistics(frame: pl.LazyFrame, group: Sequence[str], metrics: Sequence[str]) -> pl.DataFrame:
    """One row per group and metric, sorted.

    >>> runs = pl.LazyFrame({"tier": ["T0"] * 4, "cost": [1.0, 1.0, 2.0, 2.0]})
    >>> statistics(runs, ["tier"], ["cost"]).select("median", "mode", "std_dev").row(0)
    (1.5, 1.0, 0.5)
    """
    counts = frame.select(pl.col(metrics).count()).collect(engine="streaming").row(0, named=True)
    # A metric without values need not be read again; but one histogram is needed for the groups.
    read = [metric for metric in metrics if counts[metric]] or metrics[:1]
    described = {}
    for metric in read:
        histogram = _histogram(frame, group, metric)
        for key, (values, times) in arrays_by_group(histogram.drop_nulls(metric), group):
            described[metric, key] = describe(values, times)
    # Any of them has all groups, those without a value too.
    groups = histogram.select(group).unique()
    nothing = describe(np.zeros(0), np.zeros(0, dtype=np.int64))
    keys = groups.join(pl.DataFrame({"metric": metrics}), how="cross").sort(*group, "metric")
    rows = [described.get((metric, tuple(key)), nothing) for *key, metric in keys.iter_rows()]
    return keys.hstack(pl.DataFrame(rows, schema=STATISTICS))


def describe(values: Floats, counts: Integers) -> dict[str, float | int | None]:
    """The statistics of distinct, sorted values that occur `counts` times each."""
    total = int(counts.sum())
    if total == 0:
        return dict.fromkeys(STATISTICS) | {"count": 0}
    variance = population_variance(values, counts)
    up_to = np.cumsum(counts)
    middle = values[np.searchsorted(up_to, [(total - 1) // 2, total // 2], side="right")]
    return {
        "median": float(middle[0]) if middle[0] == middle[1] else float(middle.sum() / 2),
        "mean": math.fsum(values * counts) / total if np.isfinite(values).all() else math.inf,
        "mode": _mode(values, counts),
        "min": float(values[0]),
        "max": float(values[-1]),
        "std_dev": None if variance is None else math.sqrt(variance),
        "variance": variance,
        "count": total,
    }


def population_variance(values: Floats, counts: Integers | None = None) -> float | None:
    """The mean squared deviation from the mean; None without values or with an infinite one.

    >>> round(population_variance(np.array([0.70, 0.80, 0.85, 0.90])), 5)
    0.00547
    """
    times = np.ones(len(values), dtype=np.int64) if counts is None else counts
    total = int(times.sum())
    if total == 0 or not np.isfinite(values).all():
        return None
    mean = math.fsum(values * times) / total
    return math.fsum(times * (values - mean) ** 2) / total


def _mode(values: Floats, counts: Integers) -> float:
    """The most frequent rounded value; the smallest of them on a tie."""
    rounded, codes = np.unique(values.round(MODE_DECIMALS), return_inverse=True)
    return float(rounded[np.argmax(np.bincount(codes, weights=counts))])


def _histogram(frame: pl.LazyFrame, group: Sequence[str], metric: str) -> pl.DataFrame:
    """How often each value occurs in each group; null is one of them."""
    counted = frame.group_by(*group, metric).agg(pl.len().cast(pl.Int64).alias("__count"))
    return counted.collect(engine="streaming").sort(*group, metric)


def tiers(
    tier_statistics: pl.LazyFrame,
    attempt_scores: pl.LazyFrame,
    problem_scores: pl.LazyFrame,
    problems: pl.LazyFrame,
    scoring: Scoring,
    intervals: IntervalSettings,
) -> pl.LazyFrame:
    """The table `tiers`: median composite score, grade, pass rate, cost of pass and uplift, with intervals."""
    table = _figures(tier_statistics, problem_scores, scoring).collect()
    units = sums_by_unit(
        problem_scores,
        problems,
        MODEL_TIER,
        {"pass_rate": ("passes", "decided"), "cost_usd": ("decided_cost_sum", "decided_cost_count")},
    )
    samples = _samples(attempt_scores, problems)
    medians = {key: median_interval(sample, intervals) for key, sample in samples.items()}
    found = [
        interval_columns(table, MODEL_TIER, medians),
        mean_intervals(units, MODEL_TIER, "pass_rate", intervals, "pass_rate_").drop("pass_rate_ci_units"),
        interval_columns(table, MODEL_TIER, _costs(units, table, intervals), "cost_of_pass_").drop(
            "cost_of_pass_ci_units"
        ),
        interval_columns(table, MODEL_TIER, _uplifts(table, samples, scoring.baseline_tier, intervals), "uplift_").drop(
            "uplift_ci_units"
        ),
    ]
    for columns in found:
        table = join_intervals(table, columns, MODEL_TIER)
    table = _with_uplift_reasons(table, samples, scoring.baseline_tier, intervals)
    table = table.with_columns(_cliffs_deltas(table, samples, scoring.baseline_tier))
    ends = {f"grade_{end}": grade(pl.col(f"ci_{end}"), scoring) for end in ("low", "high")}
    return table.with_columns(**ends).lazy()


def _costs(units: pl.DataFrame, table: pl.DataFrame, settings: IntervalSettings) -> dict[GroupKey, Interval]:
    """The interval of the cost of pass of every tier that has one."""
    known = table.filter(pl.col("cost_of_pass").is_not_null())
    columns = ["cost_usd", "cost_usd_size", "pass_rate", "pass_rate_size"]
    rows = units.join(known, on=MODEL_TIER, how="semi").select(*MODEL_TIER, *columns)
    return {
        key: cost_of_pass_interval(costs, attempts, passes, decided, settings)
        for key, (costs, attempts, passes, decided) in arrays_by_group(rows, MODEL_TIER)
    }


def _uplifts(
    table: pl.DataFrame, samples: dict[GroupKey, Sample], baseline: str, settings: IntervalSettings
) -> dict[GroupKey, Interval]:
    """The interval of the uplift of every tier that has one; the baseline's own uplift is always 0."""
    known = table.filter(pl.col("uplift").is_not_null() & (pl.col("tier") != baseline))
    found: dict[GroupKey, Interval] = {}
    for model, tiers_of_model in known.group_by("model", maintain_order=True).agg("tier").iter_rows():
        others = [samples[model, tier] for tier in tiers_of_model]
        for tier, interval in zip(
            tiers_of_model, uplift_intervals(samples[model, baseline], others, settings), strict=True
        ):
            found[model, tier] = interval
    return found


def _cliffs_deltas(table: pl.DataFrame, samples: dict[GroupKey, Sample], baseline: str) -> pl.Series:
    """Cliff's delta of every tier against the baseline tier of its model."""
    deltas = [
        cliffs_delta(samples[model, tier], samples[model, baseline])
        if (model, tier) in samples and (model, baseline) in samples
        else None
        for model, tier in table.select(MODEL_TIER).iter_rows()
    ]
    return pl.Series("cliffs_delta", deltas, pl.Float64)


def cliffs_delta(sample: Sample, baseline: Sample) -> float:
    """How much more often a value of the sample is above one of the baseline than below (Cliff 1993), from -1 to 1.

    >>> values, units = np.array([0.5, 1.0]), np.array([0, 1])
    >>> low, high = (Sample(values, units, np.array(counts)) for counts in ([3, 1], [1, 3]))
    >>> cliffs_delta(high, low), cliffs_delta(low, high), cliffs_delta(low, low)
    (0.5, -0.5, 0.0)
    """
    order = np.argsort(baseline.values, kind="stable")
    values, totals = baseline.values[order], np.concatenate([[0], np.cumsum(baseline.counts[order])])
    below, up_to = (totals[np.searchsorted(values, sample.values, side)] for side in ("left", "right"))
    # Whole numbers: the same in any order of rows.
    wins = int(np.sum(sample.counts * (below + up_to - totals[-1])))
    return wins / (int(sample.counts.sum()) * int(totals[-1]))


def _with_uplift_reasons(
    table: pl.DataFrame, samples: dict[GroupKey, Sample], baseline: str, settings: IntervalSettings
) -> pl.DataFrame:
    """The table with the reason why an uplift has no interval: too few units on one side."""
    needed = min_units(settings.confidence)
    unit_counts = [(*key, len(np.unique(sample.units))) for key, sample in samples.items()]
    units = pl.DataFrame(unit_counts, schema={"model": pl.String, "tier": pl.String, "units": pl.Int64}, orient="row")
    baselines = units.filter(pl.col("tier") == baseline).select("model", baseline_units="units")

    def reason(units: str, tier: pl.Expr) -> pl.Expr:
        template = "no interval: {} problems or clusters with a composite score in tier {}, {} are needed"
        return pl.format(template, units, tier, pl.lit(needed))

    missing = pl.col("uplift").is_not_null() & pl.col("uplift_ci_low").is_null() & (pl.col("tier") != baseline)
    why = (
        pl.when(missing & (pl.col("units") < needed))
        .then(reason("units", pl.col("tier")))
        .when(missing & (pl.col("baseline_units") < needed))
        .then(reason("baseline_units", pl.lit(baseline)))
    )
    joined = table.join(units, on=MODEL_TIER, how="left", maintain_order="left").join(
        baselines, on="model", how="left", maintain_order="left"
    )
    return joined.with_columns(pl.coalesce("uplift_reason", why)).drop("units", "baseline_units")


def _samples(attempt_scores: pl.LazyFrame, problems: pl.LazyFrame) -> dict[GroupKey, Sample]:
    """The composite scores of every model and tier, by unit."""
    scored = attempt_scores.select(*MODEL_TIER, "oid", "composite_score").drop_nulls("composite_score")
    counted = scored.group_by(*MODEL_TIER, "oid", "composite_score").agg(count=pl.len().cast(pl.Int64))
    columns = with_unit_ids(counted, problems).select(*MODEL_TIER, "composite_score", UNIT, "count")
    rows = columns.collect(engine="streaming")
    return {key: Sample(*arrays) for key, arrays in arrays_by_group(rows, MODEL_TIER)}


def _figures(tier_statistics: pl.LazyFrame, problem_scores: pl.LazyFrame, scoring: Scoring) -> pl.LazyFrame:
    """The figures of the tiers, without intervals."""
    per_tier = (
        tier_statistics.group_by(MODEL_TIER)
        .agg(
            composite_median=_of("composite_score", "median"),
            pass_rate=_of("pass_rate", "mean"),
            attempts=_of("pass_rate", "count"),
        )
        .join(
            problem_scores.group_by(MODEL_TIER).agg(pl.col("scored").sum(), cost_mean=mean_decided_cost()),
            on=MODEL_TIER,
        )
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
        *MODEL_TIER,
        "attempts",
        "scored",
        "composite_median",
        grade=grade(score, scoring),
        pass_rate="pass_rate",
        cost_of_pass=cost_of_pass(pl.col("cost_mean"), pl.col("pass_rate")),
        uplift=uplift(score, baseline),
        uplift_reason=reason,
    ).sort(MODEL_TIER)


def uplift(score: pl.Expr, baseline: pl.Expr) -> pl.Expr:
    """The relative difference from the baseline; null if that is missing or 0."""
    return pl.when(baseline != 0).then((score - baseline) / baseline)


def cross_tier(tier_statistics: pl.LazyFrame, tiers: pl.LazyFrame) -> pl.LazyFrame:
    """The table `cross_tier`: variance of pass rate, cost and score between a model's tiers, and the cheapest tier."""
    values = [
        pl.col(statistic).filter(pl.col("metric") == metric).drop_nulls().alias(name)
        for name, (metric, statistic) in _CROSS_TIER_VARIANCES.items()
    ]
    finite = pl.col("cost_of_pass").is_finite()
    compared = (
        tiers.sort("cost_of_pass", "tier", nulls_last=True)
        .group_by("model", maintain_order=True)
        .agg(
            tiers=pl.len().cast(pl.Int64),
            attempts=pl.col("attempts").sum(),
            scored=pl.col("scored").sum(),
            frontier_cost_of_pass=pl.col("cost_of_pass").filter(finite).first(),
            frontier_tier=pl.col("tier").filter(finite).first(),
        )
        .join(tier_statistics.group_by("model").agg(values), on="model", how="left")
        .with_columns(cost_delta=pl.col("cost_variance").list.max() - pl.col("cost_variance").list.min())
        .sort("model")
        .collect()
    )
    variances = [
        pl.Series(name, [population_variance(np.array(each or [])) for each in compared[name].to_list()], pl.Float64)
        for name in _CROSS_TIER_VARIANCES
    ]
    return compared.with_columns(variances).lazy()


# The metric and the statistic of each tier whose variance over the tiers is a column.
_CROSS_TIER_VARIANCES = {
    "pass_rate_variance": ("pass_rate", "median"),
    "pass_rate_variance_of_means": ("pass_rate", "mean"),
    "cost_variance": ("cost_usd", "median"),
    "cost_variance_of_means": ("cost_usd", "mean"),
    "score_variance": ("composite_score", "median"),
    "score_variance_of_means": ("composite_score", "mean"),
}


def _of(metric: str, statistic: str) -> pl.Expr:
    return pl.col(statistic).filter(pl.col("metric") == metric).first()
