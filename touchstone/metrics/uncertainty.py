"""Confidence intervals for a mean over problems. The problem is the unit, or the cluster where problems share one.

The samples of one problem are never taken as independent: they only make that problem's own figure. Which
method is used at which size was chosen by coverage in simulation and is named with every interval:

- `wilson`: every problem's figure is 0 or 1, so the mean is a plain rate. Also where all agree, where other
  methods collapse to a point.
- `t`: Student's t on problem means, below `BOOTSTRAP_FROM` problems, where the percentile bootstrap is too
  narrow.
- `bootstrap`: percentile bootstrap over problems, drawn as a multinomial over the histogram of figures, so that a
  million problems cost what a thousand do.
- `t-cluster`, `wilson-cluster`: the same on clusters, with the small-sample factor G / (G - 1) and G - 1 degrees
  of freedom for G clusters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.metrics.quantiles import normal_reach, student_reach

BOOTSTRAP_FROM = 200

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Interval:
    """A confidence interval, how it was made, and from how many independent units. Undefined: null ends."""

    low: float | None
    high: float | None
    method: str | None
    units: int


def mean_interval(
    values: Floats, weights: Integers, clusters: Sequence[str | None], settings: IntervalSettings
) -> Interval:
    """Interval for the mean of `values` in [0, 1], each standing `weights` times, in the given order.

    `clusters` names the cluster of each value; null is a problem that stands alone.
    """
    units = int(weights.sum())
    if units == 0:
        return Interval(None, None, None, 0)
    mean = math.fsum(values * weights) / units
    if any(cluster is not None for cluster in clusters):
        return _clustered(values, weights, clusters, mean, settings)
    if units == 1 or bool(np.all((values == 0) | (values == 1))) or len(set(values.tolist())) == 1:
        low, high = wilson(mean, units, settings.confidence)
        return Interval(low, high, "wilson", units)
    if units < BOOTSTRAP_FROM:
        variance = math.fsum(weights * (values - mean) ** 2) / (units - 1)
        low, high = _t(mean, math.sqrt(variance / units), units - 1, settings.confidence)
        return Interval(low, high, "t", units)
    low, high = _bootstrap(values, weights, settings)
    return Interval(low, high, "bootstrap", units)


def wilson(rate: float, units: int, confidence: float) -> tuple[float, float]:
    """Wilson's score interval for a rate.

    >>> [round(end, 3) for end in wilson(1.0, 20, 0.95)]
    [0.839, 1.0]
    """
    z = normal_reach(confidence)
    centre = (rate + z * z / (2 * units)) / (1 + z * z / units)
    spread = z / (1 + z * z / units) * math.sqrt(rate * (1 - rate) / units + z * z / (4 * units * units))
    low = 0.0 if rate == 0 else max(0.0, centre - spread)
    high = 1.0 if rate == 1 else min(1.0, centre + spread)
    return low, high


def _clustered(
    values: Floats, weights: Integers, clusters: Sequence[str | None], mean: float, settings: IntervalSettings
) -> Interval:
    """Cluster-robust interval: residuals are summed within clusters before they are squared."""
    residuals: dict[str, list[float]] = {}
    squares: list[float] = []
    alone = 0
    for value, weight, cluster in zip(values.tolist(), weights.tolist(), clusters, strict=True):
        if cluster is None:
            squares.append(weight * (value - mean) ** 2)
            alone += weight
        else:
            residuals.setdefault(cluster, []).append(weight * (value - mean))
    squares += [math.fsum(parts) ** 2 for parts in residuals.values()]
    units = alone + len(residuals)
    scatter = math.fsum(squares)
    if units == 1 or scatter == 0:
        low, high = wilson(mean, units, settings.confidence)
        return Interval(low, high, "wilson-cluster", units)
    error = math.sqrt(units / (units - 1) * scatter) / int(weights.sum())
    low, high = _t(mean, error, units - 1, settings.confidence)
    return Interval(low, high, "t-cluster", units)


def _t(mean: float, error: float, degrees: int, confidence: float) -> tuple[float, float]:
    reach = student_reach(degrees, confidence) * error
    return max(0.0, mean - reach), min(1.0, mean + reach)


def _bootstrap(values: Floats, weights: Integers, settings: IntervalSettings) -> tuple[float, float]:
    units = int(weights.sum())
    draws = _resampled(tuple(weights.tolist()), settings.replicates, settings.seed)
    means = draws @ values / units
    tail = (1 - settings.confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return max(0.0, float(low)), min(1.0, float(high))


@lru_cache(maxsize=1)
def _resampled(weights: tuple[int, ...], replicates: int, seed: int) -> Floats:
    """How often each value stands in each replicate. Drawing is what costs, and the next k asks for the same."""
    shares = np.array(weights) / sum(weights)
    return np.random.default_rng(seed).multinomial(sum(weights), shares, size=replicates).astype(np.float64)
