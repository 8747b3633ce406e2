"""Confidence limits for means of differences in [-1, 1], for many means at once.

Student's t, unless hardly any difference was observed. The limits and their method, for each mean:

- `t`: Student's t with the given standard error and degrees of freedom.
- `wilson-bound`: all differences are equal (all 0, say), so there is no variance to estimate. The interval takes
  Wilson's upper limit h on the share of problems with another difference, given none among `units`, and lets those be
  anywhere in [-1, 1]. From the common d it goes from d - h (1 + d) to d + h (1 - d): twenty problems without any
  difference give -0.16 to 0.16.
- `t-widened`: the differences add up to about one problem or less, in absolute value and with each cluster counted as
  at most one problem (`evidence`). The interval falls back towards a half-width of h.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from touchstone.inference.quantiles import t_critical, z_critical

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Texts = NDArray[np.object_]

# The weight of the observed variance is 1 - exp(-evidence / this): 63% at this many failures or passes, 95% at thrice.
EVIDENCE_SCALE = 0.75
# A t interval is widened by at least this share, or not at all.
_MIN_WIDENING = 0.01


def difference_limits(
    mean: Floats, error: Floats, degrees: Floats, units: Integers, evidence: Floats, confidence: float
) -> tuple[Floats, Floats, Texts]:
    """Lower and upper limits and the methods. `error` is 0 if all units agree, `degrees` NaN for a single unit.

    >>> low, high, method = difference_limits(*(np.array([x]) for x in (0.0, 0.0, 19, 20, 0.0)), 0.95)
    >>> low.round(3), high.round(3), method
    (array([-0.161]), array([0.161]), array(['wilson-bound'], dtype=object))
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
    methods = np.array(["t", "t-widened", "wilson-bound"], dtype=object)[np.where(alike, 2, widened)]
    return np.maximum(-1.0, low), np.minimum(1.0, high), methods


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
