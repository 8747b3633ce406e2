"""The difference between the means of two sets of problems: its confidence interval and its test.

Each mean has its score interval (`uncertainty`: Wilson's, with Student's t for values other than 0 and 1 and for
clusters), and the two are combined by MOVER, which for proportions is Newcombe's hybrid score interval:

    low  = d - sqrt((a - a_low)^2 + (b_high - b)^2 - 2 r (a - a_low) (b_high - b)),  d = a - b

and likewise for the upper end. r is the correlation between the two means, from the residuals of the units that have
values on both sides: 0 if none does. Student's t has the degrees of freedom of the difference: Welch's, or the fewest
of a side if the sides share units. The p-value is 1 - the highest confidence at which the interval excludes 0, so that
test and interval never disagree. `tests/inference/test_unpaired.py` simulates the coverage.

References: Newcombe (1998), "Interval estimation for the difference between independent proportions", Statistics in
Medicine 17(8). Zou and Donner (2008), "Construction of confidence limits about effect measures: a general approach",
Statistics in Medicine 27(10).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.quantiles import z_critical
from touchstone.inference.uncertainty import Interval, UnitHistogram, adjusted_residuals, score_interval, wilson

# Below so many units on a side, no interval of a difference holds its coverage.
MIN_UNITS = 5
# p-values from 1e-12.
_SMALLEST_Z, _LARGEST_Z = 1e-6, 7.0
_MAX_STEPS, _TOLERANCE = 20, 1e-9


@dataclass(frozen=True)
class Sample:
    """Values in [0, 1] and the number of each one's unit: its problem, or the cluster that problems share."""

    values: Floats
    units: Integers


@dataclass(frozen=True)
class UnpairedDifference:
    """The mean of the first sample minus that of the second. Null if there are too few units."""

    difference: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class _Side:
    """The units of a sample, in order of their numbers."""

    numbers: Integers
    sums: Floats
    sizes: Integers
    histogram: UnitHistogram

    @classmethod
    def of(cls, sample: Sample) -> "_Side | None":
        # Sorted by value too, so that the order of rows cannot affect the sums.
        order = np.lexsort((sample.values, sample.units))
        numbers, places, sizes = np.unique(sample.units[order], return_inverse=True, return_counts=True)
        sums: Floats = np.bincount(places, weights=sample.values[order], minlength=len(numbers)).astype(np.float64)
        histogram = UnitHistogram.of(sums, sizes, np.ones(len(sums), dtype=np.int64))
        return None if histogram is None else cls(numbers, sums, sizes, histogram)

    def interval(self, degrees: float | None, settings: IntervalSettings) -> Interval:
        units = self.histogram
        if not units.clustered and bool(np.all((units.sums == 0) | (units.sums == 1))):
            return Interval(*wilson(units.mean, units.units, settings.confidence), "wilson", units.units)
        return score_interval(units.mean, units.standard_error, units.units, degrees, settings)


def unpaired_difference(first: Sample, second: Sample, settings: IntervalSettings) -> UnpairedDifference:
    """The difference of the means of two samples, with its interval and two-sided p-value.

    >>> half, most = np.array([0.0, 1] * 10), np.array([0.0] + [1] * 19)
    >>> found = unpaired_difference(Sample(most, np.arange(20)), Sample(half, np.arange(20, 40)), IntervalSettings())
    >>> [round(figure, 3) for figure in (found.difference, found.low, found.high, found.p_value)]
    [0.45, 0.176, 0.655, 0.002]
    """
    one, other = _Side.of(first), _Side.of(second)
    if one is None or other is None:
        return UnpairedDifference(None)
    difference = one.histogram.mean - other.histogram.mean
    if min(one.histogram.units, other.histogram.units) < MIN_UNITS:
        return UnpairedDifference(difference)
    correlation, degrees = _correlation(one, other), _degrees(one, other)

    def reach(confidence: float) -> tuple[float, float]:
        """How far the interval extends below and above the difference."""
        at = settings.model_copy(update={"confidence": confidence})
        a, b = one.interval(degrees, at), other.interval(degrees, at)
        assert a.low is not None and a.high is not None and b.low is not None and b.high is not None
        below = _combined(one.histogram.mean - a.low, b.high - other.histogram.mean, correlation)
        return below, _combined(a.high - one.histogram.mean, other.histogram.mean - b.low, correlation)

    ends = reach(settings.confidence)
    limits = max(-1.0, difference - ends[0]), min(1.0, difference + ends[1])
    towards_zero = 0 if difference > 0 else 1
    p_value = _p_value(abs(difference), lambda confidence: reach(confidence)[towards_zero], settings.confidence)
    return UnpairedDifference(difference, *limits, p_value)


def _combined(towards: float, away: float, correlation: float) -> float:
    return math.sqrt(max(0.0, towards**2 + away**2 - 2 * correlation * towards * away))


def _degrees(one: _Side, other: _Side) -> float | None:
    """Welch's degrees of freedom of the difference (Satterthwaite); the fewest of a side if the sides share units."""
    sides = [(side.histogram.standard_error, side.histogram.degrees_of_freedom) for side in (one, other)]
    varying = [(error**2, degrees) for error, degrees in sides if error is not None and degrees is not None]
    if not varying:
        return None
    if len(np.intersect1d(one.numbers, other.numbers)):
        return min(degrees for _, degrees in varying)
    total = math.fsum(variance for variance, _ in varying)
    return total**2 / math.fsum(variance**2 / degrees for variance, degrees in varying)


def _correlation(one: _Side, other: _Side) -> float:
    """The correlation between the two means, from the residuals of the units on both sides."""
    _, places, others = np.intersect1d(one.numbers, other.numbers, assume_unique=True, return_indices=True)
    errors = one.histogram.standard_error, other.histogram.standard_error
    if len(places) == 0 or errors[0] is None or errors[1] is None:
        return 0.0
    residuals = adjusted_residuals(one.sums, one.sizes)[places] * adjusted_residuals(other.sums, other.sizes)[others]
    return max(-1.0, min(1.0, math.fsum(residuals) / (errors[0] * errors[1])))


def _p_value(distance: float, reach: Callable[[float], float], confidence: float) -> float:
    """1 - the confidence at which the interval just reaches 0.

    Found by the secant method on the normal quantile, in which the reach of an interval is nearly linear.
    """
    if distance == 0:
        return 1.0
    before, at = 0.0, z_critical(confidence)
    missing_before, missing = -distance, reach(confidence) - distance
    for _ in range(_MAX_STEPS):
        if abs(missing) < _TOLERANCE or missing == missing_before:
            break
        following = at - missing * (at - before) / (missing - missing_before)
        before, missing_before = at, missing
        at = min(max(following, _SMALLEST_Z), _LARGEST_Z)
        missing = reach(math.erf(at / math.sqrt(2))) - distance
    return math.erfc(at / math.sqrt(2))
