"""Confidence intervals for a mean over problems. The problem is the unit, or the cluster where problems share one.

The samples of one problem are never taken as independent: they only make that problem's own figure. Which
method is used at which size was chosen by coverage in simulation (`tests/metrics/test_coverage.py` repeats it) and
is named with every interval:

- `wilson`: every problem's figure is 0 or 1, so the mean is a plain rate. Also where all agree, where other
  methods collapse to a point.
- `wilson-t`: Wilson's score interval with Student's t for the normal quantile and with the effective number of
  problems, mean (1 - mean) / variance of the mean. Below `BOOTSTRAP_FROM` problems, and near 0 and 1 at any size:
  with less than `BOOTSTRAP_EVIDENCE` passes or failures. With hardly one of them, the scatter seen says nothing of
  the rare problem not yet met, so the effective number falls back to the number of problems.
- `bootstrap`: percentile bootstrap over problems elsewhere, drawn as a multinomial over the histogram of figures,
  so that a million problems cost what a thousand do.
- `t`: Student's t, for differences, which have no edge that the mean comes near.
- `wilson-bound`: all differences are the same; see `paired_interval`.
- `...-cluster`: the same on clusters, with the small-sample factor G / (G - 1) and G - 1 degrees of freedom for G
  clusters. A cluster of one problem is a problem that stands alone.
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
# So many passes and failures, or problems' worth of differences: with fewer the percentile bootstrap is too narrow.
BOOTSTRAP_EVIDENCE = 20
MOST_BINS = 256

# How fast the scatter seen is believed: with this many failures (or passes) it counts for 63%, with thrice for 95%.
_BELIEF = 0.75
# Figures that differ by less are the same, but for rounding.
_SAME = 1e-12

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_student_reach = lru_cache(maxsize=256)(student_reach)


@dataclass(frozen=True)
class Interval:
    """A confidence interval, how it was made, and from how many independent units. Undefined: null ends."""

    low: float | None
    high: float | None
    method: str | None
    units: int


@dataclass(frozen=True)
class _Figures:
    """Figures as a histogram: sorted and distinct, so that neither the order nor the grouping of rows shows."""

    values: Floats
    weights: Integers
    mean: float
    problems: int
    units: int
    # Standard error of the mean from the scatter of units; None where there is no scatter to see.
    error: float | None
    clustered: bool

    def named(self, method: str) -> str:
        return f"{method}-cluster" if self.clustered else method


def mean_interval(
    values: Floats, weights: Integers, clusters: Sequence[str | None], settings: IntervalSettings
) -> Interval:
    """Interval for the mean of `values` in [0, 1], each standing `weights` times, in any order.

    `clusters` names the cluster of each value; null is a problem that stands alone.
    """
    figures = _figures(values, weights, clusters)
    if figures is None:
        return Interval(None, None, None, 0)
    mean, units, error = figures.mean, figures.units, figures.error
    plain = not figures.clustered and bool(np.all((figures.values == 0) | (figures.values == 1)))
    if error is None or plain:
        low, high = wilson(mean, units, settings.confidence)
        return Interval(low, high, figures.named("wilson"), units)
    evidence = units * min(mean, 1 - mean)
    if _bootstraps(figures, evidence):
        low, high = _bootstrap(figures, settings)
        return Interval(max(0.0, low), min(1.0, high), "bootstrap", units)
    most = mean * (1 - mean)
    variance = units * error**2
    variance += _doubt(evidence) * max(0.0, most - variance)
    low, high = _score(mean, units * most / variance, _student_reach(units - 1, settings.confidence))
    return Interval(low, high, figures.named("wilson-t"), units)


def paired_interval(
    differences: Floats, weights: Integers, clusters: Sequence[str | None], settings: IntervalSettings
) -> Interval:
    """Interval for the mean of per-problem differences in [-1, 1], each standing `weights` times, in any order.

    Student's t on the differences of small suites and of suites that hardly differ, the bootstrap elsewhere.
    Where all differences are equal (all 0, say) there is no scatter to go by, and the interval is not a point:
    `wilson-bound` takes Wilson's upper limit h on the share of problems whose difference is another one, after none
    in `units` was, and lets those lie anywhere in [-1, 1]. From the common d this reaches down to d - h (1 + d) and
    up to d + h (1 - d): twenty problems without any difference say -0.16 to 0.16. Where the differences add up to
    hardly one problem, t falls back towards the reach of h.
    """
    figures = _figures(differences, weights, clusters)
    if figures is None:
        return Interval(None, None, None, 0)
    mean, units, error = figures.mean, figures.units, figures.error
    _, unseen = wilson(0.0, units, settings.confidence)
    if error is None:
        low, high = mean - unseen * (1 + mean), mean + unseen * (1 - mean)
        return Interval(max(-1.0, low), min(1.0, high), figures.named("wilson-bound"), units)
    evidence = units * math.fsum(np.abs(figures.values) * figures.weights) / figures.problems
    if _bootstraps(figures, evidence):
        low, high = _bootstrap(figures, settings)
        return Interval(max(-1.0, low), min(1.0, high), "bootstrap", units)
    reach = _student_reach(units - 1, settings.confidence) * error
    reach += _doubt(evidence) * max(0.0, unseen - reach)
    return Interval(max(-1.0, mean - reach), min(1.0, mean + reach), figures.named("t"), units)


def wilson(rate: float, units: int, confidence: float) -> tuple[float, float]:
    """Wilson's score interval for a rate.

    >>> [round(end, 3) for end in wilson(1.0, 20, 0.95)]
    [0.839, 1.0]
    """
    return _score(rate, units, normal_reach(confidence))


def _score(rate: float, units: float, z: float) -> tuple[float, float]:
    centre = (rate + z * z / (2 * units)) / (1 + z * z / units)
    spread = z / (1 + z * z / units) * math.sqrt(rate * (1 - rate) / units + z * z / (4 * units * units))
    low = 0.0 if rate == 0 else max(0.0, centre - spread)
    high = 1.0 if rate == 1 else min(1.0, centre + spread)
    return low, high


def _doubt(evidence: float) -> float:
    """How little the scatter seen is to be believed, from 1 where nothing was seen to 0."""
    return math.exp(-evidence / _BELIEF)


def _figures(values: Floats, weights: Integers, clusters: Sequence[str | None]) -> _Figures | None:
    problems = int(weights.sum())
    if problems == 0:
        return None
    distinct, places = np.unique(values, return_inverse=True)
    counts = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(counts, places, weights)
    distinct, places, counts = distinct[counts > 0], (np.cumsum(counts > 0) - 1)[places], counts[counts > 0]
    mean = math.fsum(distinct * counts) / problems
    shared = _shared_clusters(weights, clusters)
    units, squares = problems, counts * (distinct - mean) ** 2
    if shared:
        # Residuals are summed within clusters before they are squared.
        residuals: dict[str, list[float]] = {cluster: [] for cluster in shared}
        alone = counts.copy()
        for place, value, weight, cluster in zip(
            places.tolist(), values.tolist(), weights.tolist(), clusters, strict=True
        ):
            if cluster in residuals:
                residuals[cluster].append(weight * (value - mean))
                alone[place] -= weight
        units = int(alone.sum()) + len(residuals)
        within = [math.fsum(parts) ** 2 for parts in residuals.values()]
        squares = np.array([*(alone * (distinct - mean) ** 2).tolist(), *within])
    error = None
    if units > 1 and distinct[-1] - distinct[0] > _SAME:
        scatter = math.sqrt(units / (units - 1) * math.fsum(squares)) / problems
        error = scatter if scatter > _SAME else None
    return _Figures(distinct, counts, mean, problems, units, error, bool(shared))


def _shared_clusters(weights: Integers, clusters: Sequence[str | None]) -> set[str]:
    """The clusters of more than one problem."""
    if all(cluster is None for cluster in clusters):
        return set()
    sizes: dict[str, int] = {}
    for weight, cluster in zip(weights.tolist(), clusters, strict=True):
        if cluster is not None:
            sizes[cluster] = sizes.get(cluster, 0) + weight
    return {cluster for cluster, size in sizes.items() if size > 1}


def _bootstraps(figures: _Figures, evidence: float) -> bool:
    return not figures.clustered and figures.units >= BOOTSTRAP_FROM and evidence >= BOOTSTRAP_EVIDENCE


def _bootstrap(figures: _Figures, settings: IntervalSettings) -> tuple[float, float]:
    values, weights = _binned(figures.values, figures.weights)
    generator = np.random.default_rng(settings.seed)
    draws = generator.multinomial(figures.problems, weights / figures.problems, size=settings.replicates)
    means = draws @ values / figures.problems
    if len(values) < len(figures.values):
        # What scatter the bins hide inside them is given back.
        seen, kept = (_scatter(figures.mean, *pair) for pair in ((figures.values, figures.weights), (values, weights)))
        means = figures.mean + (means - figures.mean) * math.sqrt(seen / kept)
    tail = (1 - settings.confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def _binned(values: Floats, weights: Integers) -> tuple[Floats, Integers]:
    """The histogram in at most `MOST_BINS` bins of equal width, each standing at the mean of what lies in it."""
    if len(values) <= MOST_BINS:
        return values, weights
    width = (values[-1] - values[0]) / MOST_BINS
    places = np.minimum((values - values[0]) / width, MOST_BINS - 1).astype(np.int64)
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    counts = np.add.reduceat(weights, starts)
    return np.add.reduceat(values * weights, starts) / counts, counts


def _scatter(mean: float, values: Floats, weights: Integers) -> float:
    return math.fsum(weights * (values - mean) ** 2)
