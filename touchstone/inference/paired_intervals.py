"""Intervals of a paired difference that never contradict the verdict beside them.

Both intervals of a pair, its own and the one that holds for all pairs together, are `uncertainty.paired_interval` at
their confidence. A t interval, let alone a widened one, and an exact test may differ about whether 0 is possible. The
test decides: an end is moved to 0 where they do. Cutting at 0 is what intervals that are compatible with a step-down
test do (Guilbaud 2008, Strassburger and Bretz 2008); extending to 0 only makes an interval more careful.
"""

import math
from dataclasses import replace

import numpy as np

from touchstone.config import IntervalSettings
from touchstone.inference.cluster_robust import robust_error
from touchstone.inference.paired_units import PairTable, Units
from touchstone.inference.uncertainty import Interval, paired_interval, student_reach


def difference_interval(table: PairTable, problems: Units, confidence: float) -> Interval:
    """The interval of the mean difference, made on the side where it is positive so that swapping sides mirrors it."""
    settings = IntervalSettings(confidence=confidence)
    differences, clusters = problems.sums / problems.denominator, table.cluster_names
    lean = math.fsum(differences * table.weights) or math.fsum(differences**3 * table.weights)
    if lean >= 0:
        return paired_interval(differences, table.weights, clusters, settings)
    turned = paired_interval(-differences + 0.0, table.weights, clusters, settings)
    low, high = turned.low, turned.high
    return replace(turned, low=None if high is None else -high, high=None if low is None else -low)


def reaching_margins(interval: Interval, units: Units, margin: float, confidence: float) -> Interval:
    """The interval, extended to -margin or margin where a true difference of that size cannot be excluded.

    The scatter that was seen is too small a measure of that where few problems differ: 2 of 100 that flipped have a 95%
    interval up to 4.8 points, although 5 in 100 would give no more flips than that one time in eight. As in a score
    test, the error is that under a difference of the margin, if units differ by as much as those that do: a share
    margin / size of units that differ by `size` has the variance margin * size - margin^2.

    >>> ones, none = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    >>> alike = Units(none, none, 1, ones, 100 * ones, clustered=False, exact=True)
    >>> reaching_margins(Interval(-0.02, 0.02, "t", 100), alike, 0.03, 0.95)
    Interval(low=-0.03, high=0.03, method='t', units=100)
    """
    if interval.low is None or interval.high is None:
        return interval
    mean, reach = units.mean(units.sums), math.inf
    robust = robust_error(units.sums / units.denominator, units.sizes, units.counts)
    if robust is not None:
        per_unit = np.abs(units.sums) / units.denominator * (units.total / units.problems)
        differing = math.fsum(units.counts * per_unit)
        size = math.fsum(units.counts * per_unit**2) / differing if differing else 1.0
        error = math.sqrt(max(0.0, margin * size - margin**2) / units.total)
        reach = student_reach(robust.degrees, confidence) * max(robust.error, error)
    low = min(interval.low, -margin) if mean - reach <= -margin else interval.low
    high = max(interval.high, margin) if mean + reach >= margin else interval.high
    return replace(interval, low=low, high=high)


def agreeing(interval: Interval, difference: float, *, rejected: bool) -> Interval:
    """The interval with 0 outside or at its end where the test rejects "no difference", else inside.

    >>> agreeing(Interval(-0.01, 0.21, "wilson-bound", 30), 0.1, rejected=True)
    Interval(low=0.0, high=0.21, method='wilson-bound', units=30)
    >>> agreeing(Interval(0.01, 0.21, "t", 5), 0.1, rejected=False)
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
