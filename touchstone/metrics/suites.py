"""Suites and runs: the mean accuracy of a suite, and the plain mean of suites for a run.

`score` divides by all cases of the suite, so a case without a class or outcome counts as not passed; `decided_score`
leaves such cases out. A class that is not known scores 0 like any failure. A suite without any decided case has no row.

A large suite counts no more than a small one. Weighted suites, credit per class and a latency score are configured
extras: they stand beside the plain scores and never replace them.

The suites of a run are taken as given and not as a sample of suites, so the interval of an overall score speaks of
other problems in the same suites. It is made by linearisation: what a unit adds to the mean of suites is the sum over
suites of its CR2 residual there (`cluster_robust`) by the number of suites. Degrees of freedom are Bell-McCaffrey's
within each suite, put together by Satterthwaite's rule. A suite of one unit shows no scatter, so it counts with the
most that a share can have, a standard deviation of one half.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings, SuiteSettings
from touchstone.inference.cluster_robust import adjusted_residuals, degrees_of_freedom
from touchstone.inference.exact import exact_mean, exact_sum
from touchstone.inference.uncertainty import Interval, score_interval, unit_interval
from touchstone.inference.units import UNIT, group_intervals, join_intervals, mean_intervals, unit_sums
from touchstone.vocabulary import CLASSES, PASS_CLASS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RUN = ["model", "tier", "run_id"]
SUITE = [*RUN, "suite"]
# Units that scatter by less are the same, but for rounding.
_SAME = 1e-12
# Of a share: half of all cases 0 and half 1.
_LARGEST_VARIANCE = 0.25


def suite_scores(
    scores: pl.LazyFrame, problems: pl.LazyFrame, settings: SuiteSettings, interval_settings: IntervalSettings
) -> pl.LazyFrame:
    """Cases, passes, scores with their intervals and class counts per model, tier, run and suite."""
    units = unit_sums(scores, problems, SUITE, [_worth().alias("score"), pl.col("accuracy").alias("decided_score")])
    found = [
        mean_intervals(units, SUITE, "score", interval_settings),
        mean_intervals(units, SUITE, "decided_score", interval_settings, "decided_score_").drop(
            "decided_score_ci_units"
        ),
        _other_classes(scores),
    ]
    table = _suites(scores, settings).collect()
    for columns in found:
        table = join_intervals(table, columns, SUITE)
    return table.lazy()


def _worth() -> pl.Expr:
    """What a case adds to the score of its suite: an undecided one adds nothing and still counts."""
    return pl.col("accuracy").fill_null(0.0)


def _suites(scores: pl.LazyFrame, settings: SuiteSettings) -> pl.LazyFrame:
    """The suites' figures without their intervals."""
    name = pl.col("classification")
    classes = {f"class_{known}": (name == known).sum().cast(pl.Int64) for known in CLASSES}
    # A case is worth 0 or 1, so its plain sum is exact in any order; credits and latencies are not.
    passed = pl.col("accuracy").sum()
    return (
        scores.with_columns(__credit=credit(settings), __latency=latency_score(settings), __weight=weight(settings))
        .group_by(SUITE)
        .agg(
            cases=pl.len().cast(pl.Int64),
            decided=pl.col("accuracy").count().cast(pl.Int64),
            passed=passed.cast(pl.Int64),
            score=passed / pl.len(),
            decided_score=passed / pl.col("accuracy").count(),
            weighted_score=exact_mean(pl.col("__credit")),
            latency_score=exact_mean(pl.col("__latency")),
            suite_weight=pl.col("__weight").first(),
            **classes,
            class_other=_is_other().sum().cast(pl.Int64),
            class_none=name.is_null().sum().cast(pl.Int64),
        )
        .filter(pl.col("decided") > 0)
        .sort(SUITE, nulls_last=False)
    )


def _is_other() -> pl.Expr:
    name = pl.col("classification")
    return name.is_not_null() & ~name.is_in(CLASSES)


def _other_classes(scores: pl.LazyFrame) -> pl.DataFrame:
    """Per suite the classes that are not known, by name with their counts, as text."""
    counted = scores.filter(_is_other()).group_by(*SUITE, "classification").len().sort(*SUITE, "classification")
    told = counted.with_columns(other_classes=pl.format("{} {}", "classification", "len"))
    return told.group_by(SUITE, maintain_order=True).agg(pl.col("other_classes").str.join(", ")).collect()


def run_scores(
    suites: pl.LazyFrame, scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings
) -> pl.LazyFrame:
    """The overall score of a run, the plain mean of its suites' scores, and the pass rate over all its cases."""
    figures = [_worth().alias("score"), pl.col("accuracy").alias("decided")]
    in_suites = suites.select(SUITE).collect()
    units = unit_sums(scores, problems, SUITE, figures).join(in_suites, on=SUITE, how="semi", nulls_equal=True)
    parts = units.select(*RUN, pl.col("suite").rank("dense"), UNIT, "score", "score_size")
    overall = group_intervals(parts, RUN, partial(overall_interval, settings=settings))
    pooled = units.group_by(*RUN, UNIT).agg(pl.col("decided", "decided_size").sum())
    rates = mean_intervals(pooled, RUN, "decided", settings, "pass_rate_").drop("pass_rate_ci_units")
    return join_intervals(join_intervals(_runs(suites).collect(), overall, RUN), rates, RUN).lazy()


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
    order = np.lexsort((units, suites))
    suites, units, sums, sizes = suites[order], units[order], sums[order], sizes[order]
    parts_by_suite = [_SuiteEstimate.of(*part) for part in _split(suites, sums, sizes)]
    count = len(parts_by_suite)
    overall = math.fsum(part.mean for part in parts_by_suite) / count
    owners, unit = np.unique(units, return_inverse=True)
    parts = np.concatenate([part.residuals for part in parts_by_suite]) / count
    unseen = [part.unseen / count**2 for part in parts_by_suite]
    variance = math.fsum([*(np.bincount(unit, weights=parts) ** 2).tolist(), *unseen])
    clustered = int(sizes.sum()) > len(owners)
    error = None if overall in (0, 1) or len(owners) == 1 or math.sqrt(variance) <= _SAME else math.sqrt(variance)
    degrees = max(1.0, min(len(owners) - 1, _satterthwaite(parts_by_suite)))
    found = score_interval(overall, error, len(owners), degrees, settings)
    return replace(found, method=f"{found.method}-cluster" if clustered else found.method)


@dataclass(frozen=True)
class _SuiteEstimate:
    """What one suite adds: its mean, the residuals of its units, and the variance where one unit shows none."""

    mean: float
    residuals: Floats
    unseen: float
    degrees_of_freedom: float

    @classmethod
    def of(cls, sums: Floats, sizes: Integers) -> "_SuiteEstimate":
        mean = math.fsum(sums) / int(sizes.sum())
        if len(sums) == 1:
            return cls(mean, np.zeros(1), _LARGEST_VARIANCE, 1)
        degrees = degrees_of_freedom(sizes, np.ones(len(sizes), dtype=np.int64))
        return cls(mean, adjusted_residuals(sums, sizes), 0.0, degrees)


def _satterthwaite(parts: Sequence[_SuiteEstimate]) -> float:
    """Degrees of freedom of a sum of independent variances; infinite where all of them are 0."""
    variances = [math.fsum(part.residuals**2) + part.unseen for part in parts]
    spread = math.fsum(variance**2 / part.degrees_of_freedom for variance, part in zip(variances, parts, strict=True))
    return math.fsum(variances) ** 2 / spread if spread > 0 else math.inf


def _split(suites: Integers, *columns: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """The columns of each suite's rows, which stand together."""
    starts = np.flatnonzero(np.diff(suites, prepend=suites[0]))
    return zip(*(np.split(column, starts) for column in columns), strict=True)


def _runs(suites: pl.LazyFrame) -> pl.LazyFrame:
    """The runs' figures without their intervals."""
    weights = pl.col("suite_weight")
    return (
        suites.group_by(RUN)
        .agg(
            suites=pl.len().cast(pl.Int64),
            cases=pl.col("cases").sum(),
            decided=pl.col("decided").sum(),
            passed=pl.col("passed").sum(),
            overall_score=exact_mean(pl.col("score")),
            overall_decided_score=exact_mean(pl.col("decided_score")),
            overall_weighted_score=pl.when(weights.sum() > 0).then(
                exact_sum(pl.col("weighted_score") * weights) / exact_sum(weights)
            ),
            pass_rate=pl.col("passed").sum() / pl.col("decided").sum(),
        )
        .sort(RUN, nulls_last=False)
    )


def empty_suites(problems: pl.LazyFrame, suites: pl.LazyFrame) -> pl.LazyFrame:
    """The suites of the problems file in which no model has a decided case: left out, and reported."""
    return problems.select("suite").unique().join(suites.select("suite"), on="suite", how="anti").sort("suite")


def credit(settings: SuiteSettings) -> pl.Expr:
    """What a case is worth: 1 for a pass, what the configuration gives its class, else 0."""
    worth = _worth()
    for name, value in settings.class_credit.items():
        if name != PASS_CLASS:
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
