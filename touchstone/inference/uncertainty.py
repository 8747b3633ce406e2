"""Confidence intervals for a mean over units. The unit is the problem, or the cluster where problems share one.

The samples of one problem are never taken as independent: they only make that problem's own figure. A unit is
known by the sum and the number of its values; the mean is all sums by all numbers, and its standard error and degrees
of freedom come from the units' residuals (`cluster_robust`: CR2 and Bell-McCaffrey, which for G units of equal size are
the factor G / (G - 1) and G - 1). Which method is used at which size was chosen by coverage in simulation
(`tests/inference/test_coverage.py` and `test_cluster_coverage.py` repeat it) and is named with every interval:

- `wilson`: every unit is one 0 or 1, so the mean is a plain rate. Also where all units agree, where other methods
  collapse to a point: then on the number of units.
- `wilson-t`: Wilson's score interval with Student's t for the normal quantile and with the effective number of
  units, mean (1 - mean) / variance of the mean. Below `BOOTSTRAP_FROM` units, and near 0 and 1 at any size:
  with less than `BOOTSTRAP_EVIDENCE` passes or failures. With hardly one of them, the scatter seen says nothing of
  the rare problem not yet met, so the effective number falls back to the number of units.
- `bootstrap`: percentile bootstrap over units of one value elsewhere, drawn as a multinomial over the histogram of
  values, so that a million problems cost what a thousand do.
- `t`: Student's t, for differences, which have no edge that the mean comes near.
- `t-widened`: the same, widened because hardly any difference was seen; `wilson-bound`: all differences are the same.
  See `paired_interval`.
- `...-cluster`: the same where units hold several values: several problems, or several attempts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.cluster_robust import robust_error
from touchstone.inference.quantiles import t_critical as _student_reach
from touchstone.inference.quantiles import z_critical

BOOTSTRAP_FROM = 200
# So many passes and failures: with fewer the percentile bootstrap is too narrow.
BOOTSTRAP_EVIDENCE = 20
MAX_BINS = 256

# How fast the scatter seen is believed: with this many failures (or passes) it counts for 63%, with thrice for 95%.
_BELIEF = 0.75
# A t interval is widened by this share at least, or not at all: then it is called `t`.
_MIN_WIDENING = 0.01
# Figures that differ by less are the same, but for rounding.
_SAME = 1e-12

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

t_critical = lru_cache(maxsize=4096)(_student_reach)


@dataclass(frozen=True)
class Interval:
    """A confidence interval, how it was made, and from how many independent units. Undefined: null ends."""

    low: float | None
    high: float | None
    method: str | None
    units: int


@dataclass(frozen=True)
class UnitHistogram:
    """Units as a histogram: sorted and distinct, so that neither the order nor the grouping of rows shows."""

    sums: Floats
    sizes: Integers
    counts: Integers
    mean: float
    total: int
    units: int
    # Standard error of the mean from the scatter of units; None where there is no scatter to see.
    error: float | None
    # Degrees of freedom behind the error; None of one unit.
    degrees_of_freedom: float | None

    @classmethod
    def of(cls, sums: Floats, sizes: Integers, counts: Integers) -> "UnitHistogram | None":
        """From units with these sums and sizes, `counts` of each kind; None if there is no value."""
        present = np.flatnonzero(sizes * counts)
        if len(present) == 0:
            return None
        order = present[np.lexsort((sizes[present], sums[present]))]
        sums, sizes, counts = sums[order], sizes[order], counts[order]
        starts = np.flatnonzero(np.append(True, (np.diff(sums) != 0) | (np.diff(sizes) != 0)))
        sums, sizes, counts = sums[starts], sizes[starts], np.add.reduceat(counts, starts)
        total, units = int((sizes * counts).sum()), int(counts.sum())
        mean = math.fsum(sums * counts) / total
        robust = robust_error(sums, sizes, counts)
        error = robust.error if robust and robust.error > _SAME else None
        return cls(sums, sizes, counts, mean, total, units, error, robust.degrees_of_freedom if robust else None)

    @property
    def clustered(self) -> bool:
        """Whether a unit holds several values."""
        return self.total > self.units

    def method_name(self, method: str) -> str:
        """The name of the method on these units."""
        return f"{method}-cluster" if self.clustered else method


def mean_interval(
    values: Floats, weights: Integers, clusters: Sequence[str | None], settings: IntervalSettings
) -> Interval:
    """Interval for the mean of `values` in [0, 1], each standing `weights` times, in any order.

    `clusters` names the cluster of each value; null is a problem that stands alone.
    """
    return unit_interval(*_sums_by_unit(values, weights, clusters), settings)


def unit_interval(sums: Floats, sizes: Integers, counts: Integers, settings: IntervalSettings) -> Interval:
    """Interval for the mean of values in [0, 1] that lie in units, known by the sum and number of their values.

    Each unit stands `counts` times, in any order. Three problems with 2 of 4, 3 of 4 and 8 of 8 attempts passed:

    >>> unit_interval(np.array([2.0, 3, 8]), np.array([4, 4, 8]), np.array([1, 1, 1]), IntervalSettings()).method
    'wilson-t-cluster'
    """
    units = UnitHistogram.of(sums, sizes, counts)
    if units is None:
        return Interval(None, None, None, 0)
    if not units.clustered and bool(np.all((units.sums == 0) | (units.sums == 1))):
        low, high = wilson(units.mean, units.units, settings.confidence)
        return Interval(low, high, "wilson", units.units)
    if units.error is not None and _uses_bootstrap(units):
        low, high = _bootstrap(units, settings)
        return Interval(max(0.0, low), min(1.0, high), "bootstrap", units.units)
    found = score_interval(units.mean, units.error, units.units, units.degrees_of_freedom, settings)
    return replace(found, method=units.method_name(str(found.method)))


def score_interval(
    mean: float, error: float | None, units: int, degrees: float | None, settings: IntervalSettings
) -> Interval:
    """Interval for a mean in [0, 1] with this standard error and its degrees of freedom; None: units do not scatter.

    >>> score_interval(1.0, None, 20, 19, IntervalSettings()).method
    'wilson'
    """
    if error is None or degrees is None:
        low, high = wilson(mean, units, settings.confidence)
        return Interval(low, high, "wilson", units)
    reach = t_critical(degrees, settings.confidence)
    low, high = _wilson_bounds(mean, effective_units(mean, error, units, degrees, settings.confidence), reach)
    return Interval(low, high, "wilson-t", units)


def effective_units(share: float, error: float | None, units: int, degrees: float | None, confidence: float) -> float:
    """How many independent values of 0 or 1 would scatter as much as the units do; without scatter, their number.

    >>> effective_units(0.5, 0.125, 40, 39, 0.95), effective_units(1.0, None, 40, 39, 0.95)
    (16.0, 40)
    """
    most = share * (1 - share)
    if error is None or degrees is None or most <= 0:
        return units
    # Unequal units leave few degrees of freedom to what was seen. What was not seen has those of all units.
    unseen = (t_critical(units - 1, confidence) / t_critical(degrees, confidence)) ** 2
    variance = units * error**2
    variance += _doubt(units * min(share, 1 - share)) * max(0.0, most * unseen - variance)
    return units * most / variance


def paired_interval(
    differences: Floats, weights: Integers, clusters: Sequence[str | None], settings: IntervalSettings
) -> Interval:
    """Interval to show for the mean of differences in [-1, 1], each standing `weights` times, in any order."""
    units = difference_units(differences, weights, clusters)
    return Interval(None, None, None, 0) if units is None else difference_interval(units, settings.confidence)


def difference_interval(units: UnitHistogram, confidence: float) -> Interval:
    """The same for differences in units.

    Student's t on the units' differences, at every size (`t_interval`), unless hardly any difference was seen:

    - `wilson-bound`: all differences are equal (all 0, say), so there is no scatter to go by. The interval is not a
      point: it takes Wilson's upper limit h on the share of problems whose difference is another one, after none in
      `units` was, and lets those lie anywhere in [-1, 1]. From the common d this reaches down to d - h (1 + d) and up
      to d + h (1 - d): twenty problems without any difference say -0.16 to 0.16.
    - `t-widened`: the differences add up to hardly one problem, or in hardly one cluster to a problem or more. The
      interval falls back towards a reach of h to either side.
    """
    mean = units.mean
    _, unseen = wilson(0.0, units.units, confidence)
    if units.error is None or units.degrees_of_freedom is None:
        low, high = mean - unseen * (1 + mean), mean + unseen * (1 - mean)
        return Interval(max(-1.0, low), min(1.0, high), units.method_name("wilson-bound"), units.units)
    reach = t_critical(units.degrees_of_freedom, confidence) * units.error
    evidence = math.fsum(np.minimum(np.abs(units.sums), 1) * units.counts)
    wider = reach + _doubt(evidence) * max(0.0, unseen - reach)
    if wider <= reach * (1 + _MIN_WIDENING):
        return t_interval(units, confidence)
    return Interval(max(-1.0, mean - wider), min(1.0, mean + wider), units.method_name("t-widened"), units.units)


def t_interval(units: UnitHistogram, confidence: float) -> Interval:
    """Student's t interval for a mean of differences in [-1, 1], never widened; undefined where there is no scatter.

    >>> ones = np.ones(4, dtype=np.int64)
    >>> found = t_interval(difference_units(np.array([0.0, 0.5, 0.5, 1.0]), ones, [None] * 4), 0.9)
    >>> round(found.low, 3), round(found.high, 3), found.method
    (0.02, 0.98, 't')
    """
    if units.error is None or units.degrees_of_freedom is None:
        return Interval(None, None, None, units.units)
    reach = t_critical(units.degrees_of_freedom, confidence) * units.error
    return Interval(max(-1.0, units.mean - reach), min(1.0, units.mean + reach), units.method_name("t"), units.units)


def difference_units(differences: Floats, weights: Integers, clusters: Sequence[str | None]) -> UnitHistogram | None:
    """Differences added up by cluster; one without a cluster is a unit of its own. None where there is none."""
    return UnitHistogram.of(*_sums_by_unit(differences, weights, clusters))


def wilson(rate: float, units: int, confidence: float) -> tuple[float, float]:
    """Wilson's score interval for a rate.

    >>> [round(end, 3) for end in wilson(1.0, 20, 0.95)]
    [0.839, 1.0]
    """
    return _wilson_bounds(rate, units, z_critical(confidence))


def _wilson_bounds(rate: float, units: float, z: float) -> tuple[float, float]:
    centre = (rate + z * z / (2 * units)) / (1 + z * z / units)
    spread = z / (1 + z * z / units) * math.sqrt(rate * (1 - rate) / units + z * z / (4 * units * units))
    low = 0.0 if rate == 0 else max(0.0, centre - spread)
    high = 1.0 if rate == 1 else min(1.0, centre + spread)
    return low, high


def _doubt(evidence: float) -> float:
    """How little the scatter seen is to be believed, from 1 where nothing was seen to 0."""
    return math.exp(-evidence / _BELIEF)


def _sums_by_unit(
    values: Floats, weights: Integers, clusters: Sequence[str | None]
) -> tuple[Floats, Integers, Integers]:
    """Sums, sizes and counts of units: a value without a cluster is a unit, and so is a cluster."""
    if all(cluster is None for cluster in clusters):
        return values, np.ones(len(values), dtype=np.int64), weights
    places: dict[str | None, int] = {None: -1}
    codes = np.fromiter((places.setdefault(cluster, len(places) - 1) for cluster in clusters), np.int64, len(values))
    alone = codes < 0
    # Equal values are put together and the rest sorted before they are added up, so that no order of rows shows.
    order = np.lexsort((values, codes))
    order = order[~alone[order]]
    inside, codes, times = values[order], codes[order], weights[order]
    starts = np.flatnonzero(np.append(True, (np.diff(inside) != 0) | (np.diff(codes) != 0)))
    sums = np.bincount(codes[starts], weights=inside[starts] * np.add.reduceat(times, starts))
    sizes = np.bincount(codes, weights=times).astype(np.int64)
    return (
        np.append(values[alone], sums),
        np.append(np.ones(int(alone.sum()), dtype=np.int64), sizes),
        np.append(weights[alone], np.ones(len(sums), dtype=np.int64)),
    )


def _uses_bootstrap(units: UnitHistogram) -> bool:
    evidence = units.units * min(units.mean, 1 - units.mean)
    return not units.clustered and units.units >= BOOTSTRAP_FROM and evidence >= BOOTSTRAP_EVIDENCE


def _bootstrap(units: UnitHistogram, settings: IntervalSettings) -> tuple[float, float]:
    values, weights = _binned(units.sums, units.counts)
    generator = np.random.default_rng(settings.seed)
    draws = generator.multinomial(units.units, weights / units.units, size=settings.replicates)
    means = draws @ values / units.units
    if len(values) < len(units.sums):
        # What scatter the bins hide inside them is given back.
        seen, kept = (_scatter(units.mean, *pair) for pair in ((units.sums, units.counts), (values, weights)))
        means = units.mean + (means - units.mean) * math.sqrt(seen / kept)
    tail = (1 - settings.confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def _binned(values: Floats, weights: Integers) -> tuple[Floats, Integers]:
    """The histogram in at most `MAX_BINS` bins of equal width, each standing at the mean of what lies in it."""
    if len(values) <= MAX_BINS:
        return values, weights
    width = (values[-1] - values[0]) / MAX_BINS
    places = np.minimum((values - values[0]) / width, MAX_BINS - 1).astype(np.int64)
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    counts = np.add.reduceat(weights, starts)
    return np.add.reduceat(values * weights, starts) / counts, counts


def _scatter(mean: float, values: Floats, weights: Integers) -> float:
    return math.fsum(weights * (values - mean) ** 2)
