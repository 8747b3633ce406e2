"""Confidence intervals for paired differences in [-1, 1], for many pairs at once.

Student's t, unless hardly any difference was observed:

- `t`: Student's t with the given standard error and degrees of freedom.
- `t-widened`: the differences add up to about one problem or less, in absolute value and with each cluster counted as
  at most one problem (`evidence`). The interval falls back towards a half-width of h, Wilson's upper limit on the share
  of problems with another difference, given none among `units`. If all differences equal one d (all are 0, say), there
  is no variance to estimate: the other problems may be anywhere in [-1, 1], so the interval goes from d - h (1 + d) to
  d + h (1 - d). Twenty problems without any difference give -0.16 to 0.16.

Both intervals of a pair, its own and the simultaneous one, are such limits at their confidence. They never contradict
the tests beside them. An interval and an exact test may disagree on whether 0 is possible. The test decides: where they
disagree, a limit is moved to 0. Cutting at 0 is what intervals compatible with a step-down test do (Guilbaud 2008,
Strassburger and Bretz 2008); extending to 0 only makes an interval more conservative.

References: Guilbaud (2008), "Simultaneous confidence regions corresponding to Holm's step-down procedure and other
closed-testing procedures", Biometrical Journal 50(5). Strassburger and Bretz (2008), "Compatible simultaneous lower
confidence bounds for the Holm procedure and other Bonferroni-based closed tests", Statistics in Medicine 27(24).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from touchstone.inference.arrays import Booleans, Floats, Integers, Texts
from touchstone.inference.paired_moments import PairMoments
from touchstone.inference.quantiles import t_critical, z_critical
from touchstone.inference.uncertainty import EVIDENCE_SCALE

# A t interval is widened by at least this share, or not at all.
_MIN_WIDENING = 0.01


@dataclass(frozen=True)
class Limits:
    """The limits of one interval per pair, and their methods."""

    low: Floats
    high: Floats
    methods: Texts


def difference_limits(
    mean: Floats, error: Floats, degrees: Floats, units: Integers, evidence: Floats, confidence: float
) -> Limits:
    """Limits for means of differences. `error` is 0 if all units agree, `degrees` NaN for a single unit.

    >>> found = difference_limits(*(np.array([x]) for x in (0.0, 0.0, 19, 20, 0.0)), 0.95)
    >>> found.low.round(3), found.high.round(3), found.methods
    (array([-0.161]), array([0.161]), array(['t-widened'], dtype=object))
    """
    unseen = unseen_share(units, confidence)
    alike = (error == 0) | np.isnan(degrees)
    half_width = np.where(alike, 0.0, critical_values(degrees, confidence) * error)
    wider = half_width + np.exp(-evidence / EVIDENCE_SCALE) * np.maximum(0.0, unseen - half_width)
    widened = wider > half_width * (1 + _MIN_WIDENING)
    reach = np.where(widened, wider, half_width)
    low = np.where(alike, mean - unseen * (1 + mean), mean - reach)
    high = np.where(alike, mean + unseen * (1 - mean), mean + reach)
    # By their places, so that equal texts are one object.
    methods = np.array(["t", "t-widened"], dtype=object)[(alike | widened).astype(np.int64)]
    return Limits(np.maximum(-1.0, low), np.minimum(1.0, high), methods)


def unseen_share(units: Integers, confidence: float) -> Floats:
    """Wilson's upper limit (1927) on a share that was observed in none of the units.

    >>> unseen_share(np.array([20]), 0.95).round(3)
    array([0.161])
    """
    square = z_critical(confidence) ** 2
    return np.asarray(square / (units + square), dtype=np.float64)


def critical_values(degrees: Floats, confidence: float) -> Floats:
    """Two-sided critical values of Student's t; NaN for undefined degrees of freedom."""
    return each_once(lambda freedom: t_critical(freedom, confidence), degrees)


def each_once(function: Callable[..., float], *arguments: NDArray[Any]) -> Floats:
    """The function of each row of arguments, called once for equal rows; NaN if the first argument is.

    >>> each_once(lambda x, y: x / y, np.array([1.0, 1.0, np.nan]), np.array([4, 4, 0]))
    array([0.25, 0.25,  nan])
    """
    known: dict[tuple[Any, ...], float] = {}
    found = np.full(len(arguments[0]), np.nan)
    for place, row in enumerate(zip(*(part.tolist() for part in arguments), strict=True)):
        if row[0] == row[0]:
            if row not in known:
                known[row] = function(*row)
            found[place] = known[row]
    return found


def difference_intervals(moments: PairMoments, confidence: float) -> Limits:
    """The intervals of the mean differences."""
    return difference_limits(
        moments.difference, moments.standard_error, moments.degrees, moments.units, moments.evidence, confidence
    )


def widen_to_margins(limits: Limits, moments: PairMoments, margin: float, confidence: float) -> Limits:
    """The intervals, extended to -margin or margin where a true difference of that size cannot be excluded.

    The observed variance is too small to exclude it if few problems differ: 2 flips in 100 problems have a 95%
    interval up to 4.8 points, although a true rate of 5 in 100 gives at most that many flips one time in eight. As in
    a score test, the standard error is that under a difference of the margin, if a share of units as large as the
    margin changes entirely: margin - margin^2. Units that did not change do not exclude that. The attempts at each
    problem add their own variance.
    """
    mean = (moments.rate_a + moments.rate_b) / 2
    attempts = np.maximum(0.0, mean - moments.product) * (moments.inverse_a + moments.inverse_b)
    error = np.sqrt((margin - margin**2) / moments.units + attempts / moments.problems)
    half_width = critical_values(moments.degrees, confidence) * np.maximum(moments.standard_error, error)
    # A single unit excludes nothing.
    half_width = np.where(np.isnan(moments.degrees), np.inf, half_width)
    low = np.where(moments.difference - half_width <= -margin, np.minimum(limits.low, -margin), limits.low)
    high = np.where(moments.difference + half_width >= margin, np.maximum(limits.high, margin), limits.high)
    return Limits(low, high, limits.methods)


def consistent_with_test(limits: Limits, difference: Floats, rejected: Booleans) -> Limits:
    """The intervals with 0 outside or at a limit where the test rejects "no difference", else inside.

    >>> limits = Limits(np.array([-0.01, 0.01]), np.array([0.21, 0.21]), np.array(["t-widened", "t"]))
    >>> found = consistent_with_test(limits, np.array([0.1, 0.1]), np.array([True, False]))
    >>> found.low.tolist(), found.high.tolist()
    ([0.0, 0.0], [0.21, 0.21])
    """
    positive = difference > 0
    low = np.where(rejected, np.where(positive, np.maximum(limits.low, 0.0), limits.low), np.minimum(limits.low, 0.0))
    high = np.where(rejected, np.where(positive, limits.high, np.minimum(limits.high, 0.0)), np.maximum(limits.high, 0))
    return Limits(low, high, limits.methods)
