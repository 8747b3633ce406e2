"""Suites and runs: the mean accuracy of a suite, and the plain mean of suites for a run.

A large suite counts no more than a small one. Weighted suites, credit per class and a latency score are configured
extras: they stand beside the plain scores and never replace them.

The suites of a run are taken as given and not as a sample of suites, so the interval of an overall score speaks of
other problems in the same suites. It is made by linearisation: what a unit adds to the mean of suites is the sum over
suites of its residual, (sum - mean of the suite * cases) / (suites * cases of the suite), with the small-sample factor
G / (G - 1) for the G units in the suite and Satterthwaite's degrees of freedom. A suite of one unit shows no scatter,
so it counts with the most that a share can have, a standard deviation of one half.
"""

import math
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings, SuiteSettings
from touchstone.inference.exact import exact_mean, exact_sum
from touchstone.inference.uncertainty import Interval, score_interval, unit_interval
from touchstone.inference.units import UNIT, beside, intervals, mean_intervals, unit_sums
from touchstone.vocabulary import CLASSES

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RUN = ["model", "tier", "run_id"]
# Units that scatter by less are the same, but for rounding.
_SAME = 1e-12


def suite_scores(
    scores: pl.LazyFrame, problems: pl.LazyFrame, settings: SuiteSettings, interval_settings: IntervalSettings
) -> pl.LazyFrame:
    """Cases, passes, score with its interval and class counts per model, tier, run and suite."""
    group = [*RUN, "suite"]
    units = unit_sums(scores, problems, group, ["accuracy"])
    found = mean_intervals(units, group, "accuracy", interval_settings)
    return beside(_suites(scores, settings).collect(), found, group).lazy()


def _suites(scores: pl.LazyFrame, settings: SuiteSettings) -> pl.LazyFrame:
    """The suites' figures without their interval. Only decided cases count."""
    decided = scores.filter(pl.col("accuracy").is_not_null())
    classes = {f"class_{name}": (pl.col("classification") == name).sum().cast(pl.Int64) for name in CLASSES}
    # A case is worth 0 or 1, so its plain sum is exact in any order; credits and latencies are not.
    return (
        decided.with_columns(__credit=credit(settings), __latency=latency_score(settings), __weight=weight(settings))
        .group_by(*RUN, "suite")
        .agg(
            cases=pl.len().cast(pl.Int64),
            passed=pl.col("accuracy").sum().cast(pl.Int64),
            score=pl.col("accuracy").sum() / pl.len(),
            weighted_score=exact_mean(pl.col("__credit")),
            latency_score=exact_mean(pl.col("__latency")),
            suite_weight=pl.col("__weight").first(),
            **classes,
            class_none=pl.col("classification").is_null().sum().cast(pl.Int64),
        )
        .sort(*RUN, "suite", nulls_last=False)
    )


def run_scores(
    suites: pl.LazyFrame, scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings
) -> pl.LazyFrame:
    """The overall score of a run, the plain mean of its suites' scores, and the pass rate over all its cases."""
    units = unit_sums(scores, problems, [*RUN, "suite"], ["accuracy"])
    decided = units.filter(pl.col("accuracy_size") > 0)
    parts = decided.select(*RUN, pl.col("suite").rank("dense"), UNIT, "accuracy", "accuracy_size")
    overall = intervals(parts, RUN, partial(overall_interval, settings=settings))
    pooled = decided.group_by(*RUN, UNIT).agg(pl.col("accuracy", "accuracy_size").sum())
    rates = mean_intervals(pooled, RUN, "accuracy", settings, "pass_rate_").drop("pass_rate_ci_units")
    return beside(beside(_runs(suites).collect(), overall, RUN), rates, RUN).lazy()


def overall_interval(
    suites: Integers, units: Integers, sums: Floats, sizes: Integers, settings: IntervalSettings
) -> Interval:
    """Interval for the plain mean of the suites' means, from the sum and number of cases of each unit in each suite.

    >>> once = np.ones(4, dtype=np.int64)
    >>> overall_interval(np.array([1, 1, 2, 2]), np.arange(4), np.array([0.0, 1, 1, 1]), once, IntervalSettings()).units
    4
    """
    if len(np.unique(suites)) == 1:
        return unit_interval(sums, sizes, np.ones(len(units), dtype=np.int64), settings)
    # Sorted, so that a unit's parts are added up in the same order whatever that of the rows.
    order = np.lexsort((suites, units))
    suites, units, sums, sizes = suites[order], units[order], sums[order], sizes[order]
    names, suite = np.unique(suites, return_inverse=True)
    owners, unit = np.unique(units, return_inverse=True)
    cases, held = np.bincount(suite, weights=sizes), np.bincount(suite)
    means = np.bincount(suite, weights=sums) / cases
    overall = math.fsum(means) / len(names)
    factors = np.sqrt(held / np.maximum(1, held - 1)) / (len(names) * cases)
    parts = factors[suite] * (sums - means[suite] * sizes)
    unseen = np.where(held == 1, (0.5 / len(names)) ** 2, 0.0)
    variance = math.fsum([*(np.bincount(unit, weights=parts) ** 2).tolist(), *unseen.tolist()])
    clustered = int(sizes.sum()) > len(owners)
    if overall in (0, 1) or len(owners) == 1 or math.sqrt(variance) <= _SAME:
        return score_interval(overall, None, len(owners), settings, clustered=clustered)
    per_suite = np.bincount(suite, weights=parts**2) + unseen
    degrees = math.fsum(per_suite) ** 2 / math.fsum(per_suite**2 / np.maximum(1, held - 1))
    degrees = max(1, min(len(owners) - 1, math.floor(degrees + _SAME)))
    return score_interval(overall, math.sqrt(variance), len(owners), settings, degrees=degrees, clustered=clustered)


def _runs(suites: pl.LazyFrame) -> pl.LazyFrame:
    """The runs' figures without their intervals."""
    weights = pl.col("suite_weight")
    return (
        suites.group_by(RUN)
        .agg(
            suites=pl.len().cast(pl.Int64),
            cases=pl.col("cases").sum(),
            passed=pl.col("passed").sum(),
            overall_score=exact_mean(pl.col("score")),
            overall_weighted_score=pl.when(weights.sum() > 0).then(
                exact_sum(pl.col("weighted_score") * weights) / exact_sum(weights)
            ),
            pass_rate=pl.col("passed").sum() / pl.col("cases").sum(),
        )
        .sort(RUN, nulls_last=False)
    )


def empty_suites(problems: pl.LazyFrame, suites: pl.LazyFrame) -> pl.LazyFrame:
    """The suites of the problems file in which no model has a decided case: left out, and reported."""
    return problems.select("suite").unique().join(suites.select("suite"), on="suite", how="anti").sort("suite")


def credit(settings: SuiteSettings) -> pl.Expr:
    """What a case is worth: 1 for a pass, what the configuration gives its class, else 0."""
    worth = pl.col("accuracy")
    for name, value in settings.class_credit.items():
        if name != "pass":
            worth = pl.when(pl.col("classification") == name).then(value).otherwise(worth)
    return worth


def weight(settings: SuiteSettings) -> pl.Expr:
    """How much the case's suite counts in the overall weighted score: as configured, else 1."""
    chosen = pl.lit(1.0)
    for suite, value in settings.weights.items():
        chosen = pl.when(pl.col("suite") == suite).then(value).otherwise(chosen)
    return chosen


def latency_score(settings: SuiteSettings) -> pl.Expr:
    """1 at no latency, 0 at the limit and above, straight in between; null without a limit or a measurement."""
    if settings.latency_limit_ms is None:
        return pl.lit(None, pl.Float64)
    return (1 - pl.col("latency_ms") / settings.latency_limit_ms).clip(0, 1)
