"""Intervals of a paired difference that never contradict the verdict beside them.

Both intervals of a pair, its own and the one that holds for all pairs together, are `uncertainty.difference_interval`
at their confidence. A t interval, let alone a widened one, and an exact test may differ about whether 0 is possible.
The test decides: an end is moved to 0 where they do. Cutting at 0 is what intervals that are compatible with a
step-down test do (Guilbaud 2008, Strassburger and Bretz 2008); extending to 0 only makes an interval more careful.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from touchstone.inference.cluster_robust import ClusterRobustError
from touchstone.inference.paired_units import PairedOutcomes, PairedUnits
from touchstone.inference.uncertainty import Interval, UnitHistogram, difference_interval, difference_units, t_critical


@dataclass(frozen=True)
class PairedDifferences:
    """The differences of a pair, turned to the side where their mean is positive so that swapping sides mirrors it."""

    units: UnitHistogram
    turned: bool

    @classmethod
    def of(cls, table: PairedOutcomes, problems: PairedUnits) -> "PairedDifferences":
        """Those of a table with problems."""
        differences = problems.sums / problems.denominator
        lean = math.fsum(differences * table.weights) or math.fsum(differences**3 * table.weights)
        units = difference_units(-differences + 0.0 if lean < 0 else differences, table.weights, table.cluster_names)
        assert units is not None, "a pair without problems"
        return cls(units, turned=lean < 0)

    @property
    def error(self) -> ClusterRobustError | None:
        """The standard error of the mean; null of one unit."""
        degrees = self.units.degrees_of_freedom
        return None if degrees is None else ClusterRobustError(self.units.error or 0.0, degrees)

    def interval(self, confidence: float) -> Interval:
        """The interval of the mean difference."""
        found = difference_interval(self.units, confidence)
        if not self.turned or found.low is None or found.high is None:
            return found
        return replace(found, low=-found.high, high=-found.low)


def widen_to_margins(
    interval: Interval, units: PairedUnits, robust: ClusterRobustError | None, margin: float, confidence: float
) -> Interval:
    """The interval, extended to -margin or margin where a true difference of that size cannot be excluded.

    The scatter that was seen is too small a measure of that where few problems differ: 2 of 100 that flipped have a 95%
    interval up to 4.8 points, although 5 in 100 would give no more flips than that one time in eight. As in a score
    test, the error is that under a difference of the margin, if units differ by as much as those that do: a share
    margin / size of units that differ by `size` has the variance margin * size - margin^2.

    >>> ones, none = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    >>> alike = PairedUnits(none, none, 1, ones, 100 * ones, clustered=False, exact=True)
    >>> widen_to_margins(Interval(-0.02, 0.02, "t", 100), alike, ClusterRobustError(0.01, 99), 0.03, 0.95)
    Interval(low=-0.03, high=0.03, method='t', units=100)
    """
    if interval.low is None or interval.high is None:
        return interval
    mean, reach = units.mean(units.sums), math.inf
    if robust is not None:
        per_unit = np.abs(units.sums) / units.denominator * (units.total / units.problems)
        differing = math.fsum(units.counts * per_unit)
        size = math.fsum(units.counts * per_unit**2) / differing if differing else 1.0
        error = math.sqrt(max(0.0, margin * size - margin**2) / units.total)
        reach = t_critical(robust.degrees_of_freedom, confidence) * max(robust.error, error)
    low = min(interval.low, -margin) if mean - reach <= -margin else interval.low
    high = max(interval.high, margin) if mean + reach >= margin else interval.high
    return replace(interval, low=low, high=high)


def consistent_with_test(interval: Interval, difference: float, *, rejected: bool) -> Interval:
    """The interval with 0 outside or at its end where the test rejects "no difference", else inside.

    >>> consistent_with_test(Interval(-0.01, 0.21, "wilson-bound", 30), 0.1, rejected=True)
    Interval(low=0.0, high=0.21, method='wilson-bound', units=30)
    >>> consistent_with_test(Interval(0.01, 0.21, "t", 5), 0.1, rejected=False)
    Interval(low=0.0, high=0.21, method='t', units=5)
    """
    low, high = interval.low, interval.high
    if low is None or high is None:
        return interval
    if not rejected:
        low, high = min(low, 0.0), max(high, 0.0)
    elif difference > 0:
        low = max(low, 0.0)
    else:
        high = min(high, 0.0)
    return replace(interval, low=low, high=high)
