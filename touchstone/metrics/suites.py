"""Scores of suites and runs: the mean accuracy of a suite, and the unweighted mean over the suites of a run.

`score` divides by all cases of the suite, so a case without a class or outcome counts as failed; `decided_score` leaves
such cases out. An unknown class scores 0 like any failure. A suite without a decided case has no row.

Every suite has the same weight, whatever its size. Weights of suites, credit per class and the latency score are
configurable extras that never replace the plain scores.

The suites of a run are fixed, not a sample of suites, so the interval of an overall score refers to other problems in
the same suites. A unit's contribution to the mean of suites is the sum of its CR2 residuals over suites
(`uncertainty`), divided by the number of suites. A suite of a few problems often shows no variation at all, so each
suite adds what it cannot show: with a weight that fades as passes, failures and units grow, its variance is at least
that of the overall score, as far as the suite's own Wilson interval allows that rate. Wilson's interval for strata
(Yan and Su 2010) has the effective number of units of the sum, and Student's t in place of the normal quantile, with
Satterthwaite's degrees of freedom (1946), at most those of the effective units.

References: Yan and Su (2010), "Stratified Wilson and Newcombe confidence intervals for multiple binomial proportions",
Statistics in Biopharmaceutical Research 2(3). Satterthwaite (1946), "An approximate distribution of estimates of
variance components", Biometrics Bulletin 2(6).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.config.scoring import SuiteSettings
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.exact import exact_mean, exact_sum, from_fixed_point, to_fixed_point
from touchstone.inference.uncertainty import (
    Interval,
    adjusted_residuals,
    degrees_of_freedom,
    fallback_weight,
    unit_interval,
    wilson,
    wilson_t,
)
from touchstone.inference.units import UNIT, group_intervals, join_intervals, mean_intervals, sums_by_unit
from touchstone.metrics.keys import RUN_KEY, SUITE_KEY, counting_problems
from touchstone.vocabulary import CLASSES, PASS_CLASS

# Smaller standard errors are rounding errors.
_ROUNDING = 1e-12
# What a suite cannot show has a weight of exp(-half its degrees of freedom) at most, and twice its units as degrees.
_FADING_DEGREES, _UNSEEN_DEGREES = 2, 2


def suite_scores(
    attempt_scores: pl.LazyFrame,
    problem_scores: pl.LazyFrame,
    problems: pl.LazyFrame,
    settings: SuiteSettings,
    interval_settings: IntervalSettings,
) -> pl.LazyFrame:
    """The table `suite_scores`: cases, passes, scores with intervals and counts per class."""
    units = sums_by_unit(problem_scores, problems, SUITE_KEY, {"score": _SCORE, "decided_score": _DECIDED_SCORE})
    plain = settings.latency_limit_ms is None and not _has_classes(attempt_scores)
    by_class = _unclassified(problem_scores) if plain else _by_class(attempt_scores, settings)
    by_class = by_class.with_columns(suite_weight=weight(settings))
    found = [
        mean_intervals(units, SUITE_KEY, "score", interval_settings),
        mean_intervals(units, SUITE_KEY, "decided_score", interval_settings, "decided_score_").drop(
            "decided_score_ci_units"
        ),
        _other_classes(by_class),
    ]
    table = _suites(by_class)
    for columns in found:
        table = join_intervals(table, columns, SUITE_KEY)
    return table.lazy()


# Sum and number of values by problem: an undecided case contributes 0 to the score of its suite.
_SCORE, _DECIDED_SCORE = ("accuracy_sum", "attempts"), ("accuracy_sum", "accuracy_count")


def _has_classes(attempt_scores: pl.LazyFrame) -> bool:
    return bool(attempt_scores.select(pl.col("classification").count()).collect(engine="streaming").item())


def _unclassified(problem_scores: pl.LazyFrame) -> pl.DataFrame:
    """The result of `_by_class` for attempts without any class or latency score, without reading them."""
    passed = pl.col("accuracy_sum")
    sums = problem_scores.group_by(SUITE_KEY).agg(
        cases=pl.col("attempts").sum(),
        decided=pl.col("accuracy_count").sum(),
        passed=passed.sum(),
        credit=to_fixed_point(passed).sum(),
    )
    none = {
        "classification": pl.lit(None, pl.String),
        "latency": pl.lit(0, pl.Int128),
        "measured": pl.lit(0, pl.UInt32),
    }
    return sums.with_columns(**none).collect()


def _by_class(attempt_scores: pl.LazyFrame, settings: SuiteSettings) -> pl.DataFrame:
    """Counts and sums over the cases of each class in each suite, which are few."""
    latency = latency_score(settings)
    return (
        attempt_scores.with_columns(__credit=to_fixed_point(credit(settings)), __latency=to_fixed_point(latency))
        .group_by(*SUITE_KEY, "classification")
        .agg(
            cases=pl.len().cast(pl.Int64),
            decided=pl.col("accuracy").count().cast(pl.Int64),
            # A plain sum of 0 and 1 is exact in any order; sums of credits and latencies are not.
            passed=pl.col("accuracy").sum(),
            credit=pl.col("__credit").sum(),
            latency=pl.col("__latency").sum(),
            measured=pl.col("__latency").count(),
        )
        .collect(engine="streaming")
    )


def _suites(by_class: pl.DataFrame) -> pl.DataFrame:
    """The figures of the suites, without intervals."""
    name, cases = pl.col("classification"), pl.col("cases")
    classes = {f"class_{known}": cases.filter(name == known).sum() for known in CLASSES}
    passed, measured = pl.col("passed").sum(), pl.col("measured").sum()
    return (
        by_class.group_by(SUITE_KEY)
        .agg(
            cases=cases.sum(),
            decided=pl.col("decided").sum(),
            passed=passed.cast(pl.Int64),
            score=passed / cases.sum(),
            decided_score=passed / pl.col("decided").sum(),
            weighted_score=from_fixed_point(pl.col("credit").sum()) / cases.sum(),
            latency_score=pl.when(measured > 0).then(from_fixed_point(pl.col("latency").sum()) / measured),
            suite_weight=pl.col("suite_weight").first(),
            **classes,
            class_other=cases.filter(_is_other()).sum(),
            class_none=cases.filter(name.is_null()).sum(),
        )
        .filter(pl.col("decided") > 0)
        .sort(SUITE_KEY, nulls_last=False)
    )


def _is_other() -> pl.Expr:
    name = pl.col("classification")
    return name.is_not_null() & ~name.is_in(CLASSES)


def _other_classes(by_class: pl.DataFrame) -> pl.DataFrame:
    """The unknown classes of each suite with their counts, as text."""
    counted = by_class.filter(_is_other()).sort(*SUITE_KEY, "classification")
    described = counted.with_columns(other_classes=pl.format("{} {}", "classification", "cases"))
    return described.group_by(SUITE_KEY, maintain_order=True).agg(pl.col("other_classes").str.join(", "))


def run_scores(
    suite_scores: pl.LazyFrame, problem_scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings
) -> pl.LazyFrame:
    """The table `run_scores`: the unweighted mean of the scores of a run's suites, and the pass rate over its cases."""
    in_suites = suite_scores.select(SUITE_KEY).collect()
    figures = {"score": _SCORE, "decided": _DECIDED_SCORE}
    units = sums_by_unit(problem_scores, problems, SUITE_KEY, figures).join(
        in_suites, on=SUITE_KEY, how="semi", nulls_equal=True
    )
    parts = units.select(*RUN_KEY, pl.col("suite").rank("dense"), UNIT, "score", "score_size")
    overall = group_intervals(parts, RUN_KEY, partial(overall_interval, settings=settings))
    pooled = units.group_by(*RUN_KEY, UNIT).agg(pl.col("decided", "decided_size").sum())
    rates = mean_intervals(pooled, RUN_KEY, "decided", settings, "pass_rate_").drop("pass_rate_ci_units")
    return join_intervals(join_intervals(_runs(suite_scores).collect(), overall, RUN_KEY), rates, RUN_KEY).lazy()


def overall_interval(
    suites: Integers, units: Integers, sums: Floats, sizes: Integers, settings: IntervalSettings
) -> Interval:
    """Interval for the unweighted mean of the suites' means, from the sum and size of each unit in each suite.

    >>> once = np.ones(4, dtype=np.int64)
    >>> overall_interval(np.array([1, 1, 2, 2]), np.arange(4), np.array([0.0, 1, 1, 1]), once, IntervalSettings()).units
    4
    """
    if (suites == suites[0]).all():
        return unit_interval(sums, sizes, np.ones(len(units), dtype=np.int64), settings)
    # Sorted, so that the order of rows does not affect the sums.
    order = np.lexsort((units, suites))
    suites, units, sums, sizes = suites[order], units[order], sums[order], sizes[order]
    estimates = [_SuiteEstimate.of(*part) for part in _split(suites, sums, sizes)]
    count = len(estimates)
    overall = math.fsum(each.mean for each in estimates) / count
    distinct, unit = np.unique(units, return_inverse=True)
    if len(distinct) == 1:
        return Interval(*wilson(overall, 1, settings.confidence), "wilson", 1)
    residuals = np.concatenate([each.residuals for each in estimates])
    seen = math.fsum(np.bincount(unit, weights=residuals) ** 2)
    unseen = [each.unseen_variance(overall, settings.confidence) for each in estimates]
    if math.sqrt(seen) <= _ROUNDING:
        effective = count**2 / math.fsum(1 / len(each.residuals) for each in estimates)
        degrees = effective - 1
    else:
        effective = count**2 * overall * (1 - overall) / math.fsum([seen, *unseen])
        degrees = min(effective - 1, _satterthwaite(estimates, unseen))
    low, high = wilson_t(overall, effective, max(1.0, degrees), settings.confidence)
    return Interval(low, high, "wilson-t", len(distinct))


@dataclass(frozen=True)
class _SuiteEstimate:
    """The mean of a suite, its units' residuals, and the degrees of freedom of their variance: 0 for one unit."""

    mean: float
    residuals: Floats
    degrees_of_freedom: float

    @classmethod
    def of(cls, sums: Floats, sizes: Integers) -> "_SuiteEstimate":
        mean = math.fsum(sums) / int(sizes.sum())
        if len(sums) == 1:
            return cls(mean, np.zeros(1), 0)
        degrees = degrees_of_freedom(sizes, np.ones(len(sizes), dtype=np.int64))
        return cls(mean, adjusted_residuals(sums, sizes), degrees)

    @property
    def variance(self) -> float:
        return math.fsum(self.residuals**2)

    def unseen_variance(self, overall: float, confidence: float) -> float:
        """An addition to the variance for passes and failures that so few units need not show."""
        units = len(self.residuals)
        low, high = wilson(self.mean, units, confidence)
        rate = min(max(overall, low), high)
        evidence = units * min(self.mean, 1 - self.mean)
        weight = max(fallback_weight(evidence), math.exp(-self.degrees_of_freedom / _FADING_DEGREES))
        return weight * max(0.0, rate * (1 - rate) / units - self.variance)


def _satterthwaite(parts: Sequence[_SuiteEstimate], unseen: Sequence[float]) -> float:
    """Satterthwaite's degrees of freedom (1946) of a sum of independent variances."""
    spread = [part.variance**2 / max(1.0, part.degrees_of_freedom) for part in parts]
    spread += [more**2 / (_UNSEEN_DEGREES * len(part.residuals)) for part, more in zip(parts, unseen, strict=True)]
    return math.fsum([*(part.variance for part in parts), *unseen]) ** 2 / math.fsum(spread)


def _split(suites: Integers, *columns: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """The columns of each suite's rows, which must be adjacent."""
    starts = np.flatnonzero(np.diff(suites, prepend=suites[0]))
    return zip(*(np.split(column, starts) for column in columns), strict=True)


def _runs(suite_scores: pl.LazyFrame) -> pl.LazyFrame:
    """The figures of the runs, without intervals."""
    weights = pl.col("suite_weight")
    return (
        suite_scores.group_by(RUN_KEY)
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
        .sort(RUN_KEY, nulls_last=False)
    )


def empty_suites(problems: pl.LazyFrame, suite_scores: pl.LazyFrame) -> pl.LazyFrame:
    """The suites of the problems that count without a decided case of any model, which `suite_scores` leaves out."""
    return (
        counting_problems(problems)
        .select("suite")
        .unique()
        .join(suite_scores.select("suite"), on="suite", how="anti")
        .sort("suite")
    )


def credit(settings: SuiteSettings) -> pl.Expr:
    """The credit of a case: 1 for a pass, the configured credit of its class, otherwise 0."""
    worth = pl.col("accuracy").fill_null(0.0)
    for name, value in settings.class_credit.items():
        if name != PASS_CLASS:
            worth = pl.when(pl.col("classification") == name).then(value).otherwise(worth)
    return worth


def weight(settings: SuiteSettings) -> pl.Expr:
    """The weight of the case's suite in the overall weighted score: as configured, otherwise 1."""
    chosen = pl.lit(1.0)
    for suite, value in settings.weights.items():
        chosen = pl.when(pl.col("suite") == suite).then(value).otherwise(chosen)
    return chosen


def latency_score(settings: SuiteSettings) -> pl.Expr:
    """Linear from 1 at no latency to 0 at the limit and above; null without a limit or a measurement."""
    if settings.latency_limit_ms is None:
        return pl.lit(None, pl.Float64)
    return (1 - pl.col("latency_ms") / settings.latency_limit_ms).clip(0, 1)
