"""Confidence intervals for a paired difference that never contradict the test beside them.

Both intervals of a pair, its own and the simultaneous one, are `uncertainty.difference_interval` at their confidence. A
t interval, widened or not, and an exact test may disagree on whether 0 is possible. The test decides: where they
disagree, a limit is moved to 0. Cutting at 0 is what intervals compatible with a step-down test do (Guilbaud 2008,
Strassburger and Bretz 2008); extending to 0 only makes an interval more conservative.

References: Guilbaud (2008), "Simultaneous confidence regions corresponding to Holm's step-down procedure and other
closed-testing procedures", Biometrical Journal 50(5). Strassburger and Bretz (2008), "Compatible simultaneous lower
confidence bounds for the Holm procedure and other Bonferroni-based closed tests", Statistics in Medicine 27(24).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from touchstone.inference.cluster_robust import ClusterRobustSE
from touchstone.inference.paired_units import PairedOutcomes, PairedUnits
from touchstone.inference.quantiles import t_critical
from touchstone.inference.uncertainty import Interval, UnitHistogram, difference_interval, difference_units


@dataclass(frozen=True)
class PairedDifferences:
    """The differences b - a of a pair, negated if their mean is negative, so that swapping sides mirrors the result."""

    units: UnitHistogram
    negated: bool

    @classmethod
    def of(cls, table: PairedOutcomes, problems: PairedUnits) -> "PairedDifferences":
        """The differences of a pair with at least one problem in common."""
        differences = problems.sums / problems.denominator
        sign = math.fsum(differences * table.weights) or math.fsum(differences**3 * table.weights)
        units = difference_units(-differences + 0.0 if sign < 0 else differences, table.weights, table.cluster_names)
        assert units is not None, "a pair without problems"
        return cls(units, negated=sign < 0)

    @property
    def standard_error(self) -> ClusterRobustSE | None:
        """The standard error of the mean; None for a single unit."""
        degrees = self.units.degrees_of_freedom
        return None if degrees is None else ClusterRobustSE(self.units.standard_error or 0.0, degrees)

    def interval(self, confidence: float) -> Interval:
        """The interval of the mean difference."""
        found = difference_interval(self.units, confidence)
        if not self.negated or found.low is None or found.high is None:
            return found
        return replace(found, low=-found.high, high=-found.low)


def widen_to_margins(
    interval: Interval, units: PairedUnits, robust: ClusterRobustSE | None, margin: float, confidence: float
) -> Interval:
    """The interval, extended to -margin or margin where a true difference of that size cannot be excluded.

    The observed variance is too small to exclude it if few problems differ: 2 flips in 100 problems have a 95%
    interval up to 4.8 points, although a true rate of 5 in 100 gives at most that many flips one time in eight. As in
    a score test, the standard error is that under a difference of the margin, if units differ by as much as those that
    do: a share margin / size of units that differ by `size` has the variance margin * size - margin^2.

    >>> ones, none = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    >>> alike = PairedUnits(none, none, 1, ones, 100 * ones, clustered=False, exact=True)
    >>> widen_to_margins(Interval(-0.02, 0.02, "t", 100), alike, ClusterRobustSE(0.01, 99), 0.03, 0.95)
    Interval(low=-0.03, high=0.03, method='t', units=100)
    """
    if interval.low is None or interval.high is None:
        return interval
    mean, half_width = units.mean(units.sums), math.inf
    if robust is not None:
        per_unit = np.abs(units.sums) / units.denominator * (units.total / units.problems)
        differing = math.fsum(units.counts * per_unit)
        size = math.fsum(units.counts * per_unit**2) / differing if differing else 1.0
        error = math.sqrt(max(0.0, margin * size - margin**2) / units.total)
        half_width = t_critical(robust.degrees_of_freedom, confidence) * max(robust.standard_error, error)
    low = min(interval.low, -margin) if mean - half_width <= -margin else interval.low
    high = max(interval.high, margin) if mean + half_width >= margin else interval.high
    return replace(interval, low=low, high=high)


def consistent_with_test(interval: Interval, difference: float, *, rejected: bool) -> Interval:
    """The interval with 0 outside or at its limit if the test rejects "no difference", else inside.

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
