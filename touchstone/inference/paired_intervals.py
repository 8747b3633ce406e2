"""Confidence intervals for paired differences that never contradict the tests beside them.

Both intervals of a pair, its own and the simultaneous one, are `difference_limits` at their confidence. A t interval,
widened or not, and an exact test may disagree on whether 0 is possible. The test decides: where they disagree, a limit
is moved to 0. Cutting at 0 is what intervals compatible with a step-down test do (Guilbaud 2008, Strassburger and Bretz
2008); extending to 0 only makes an interval more conservative.

References: Guilbaud (2008), "Simultaneous confidence regions corresponding to Holm's step-down procedure and other
closed-testing procedures", Biometrical Journal 50(5). Strassburger and Bretz (2008), "Compatible simultaneous lower
confidence bounds for the Holm procedure and other Bonferroni-based closed tests", Statistics in Medicine 27(24).
"""

from dataclasses import dataclass

import numpy as np

from touchstone.inference.difference_limits import Texts, critical_values, difference_limits
from touchstone.inference.paired_moments import PairMoments
from touchstone.inference.paired_units import Booleans, Floats


@dataclass(frozen=True)
class Limits:
    """The limits of one interval per pair, and their methods."""

    low: Floats
    high: Floats
    methods: Texts


def difference_intervals(moments: PairMoments, confidence: float) -> Limits:
    """The intervals of the mean differences."""
    low, high, methods = difference_limits(
        moments.difference, moments.standard_error, moments.degrees, moments.units, moments.evidence, confidence
    )
    methods[moments.clustered] += "-cluster"
    return Limits(low, high, methods)


def widen_to_margins(limits: Limits, moments: PairMoments, margin: float, confidence: float) -> Limits:
    """The intervals, extended to -margin or margin where a true difference of that size cannot be excluded.

    The observed variance is too small to exclude it if few problems differ: 2 flips in 100 problems have a 95%
    interval up to 4.8 points, although a true rate of 5 in 100 gives at most that many flips one time in eight. As in
    a score test, the standard error is that under a difference of the margin, if units differ by as much as those that
    do: a share margin / size of units that differ by `size` has the variance margin * size - margin^2.
    """
    per_problem = moments.units / moments.problems
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.where(moments.absolute > 0, moments.squares * per_problem / moments.absolute, 1.0)
    error = np.sqrt(np.maximum(0.0, margin * size - margin**2) / moments.units)
    half_width = critical_values(moments.degrees, confidence) * np.maximum(moments.standard_error, error)
    # A single unit excludes nothing.
    half_width = np.where(np.isnan(moments.degrees), np.inf, half_width)
    low = np.where(moments.difference - half_width <= -margin, np.minimum(limits.low, -margin), limits.low)
    high = np.where(moments.difference + half_width >= margin, np.maximum(limits.high, margin), limits.high)
    return Limits(low, high, limits.methods)


def consistent_with_test(limits: Limits, difference: Floats, rejected: Booleans) -> Limits:
    """The intervals with 0 outside or at a limit where the test rejects "no difference", else inside.

    >>> limits = Limits(np.array([-0.01, 0.01]), np.array([0.21, 0.21]), np.array(["wilson-bound", "t"]))
    >>> found = consistent_with_test(limits, np.array([0.1, 0.1]), np.array([True, False]))
    >>> found.low.tolist(), found.high.tolist()
    ([0.0, 0.0], [0.21, 0.21])
    """
    positive = difference > 0
    low = np.where(rejected, np.where(positive, np.maximum(limits.low, 0.0), limits.low), np.minimum(limits.low, 0.0))
    high = np.where(rejected, np.where(positive, limits.high, np.minimum(limits.high, 0.0)), np.maximum(limits.high, 0))
    return Limits(low, high, limits.methods)
