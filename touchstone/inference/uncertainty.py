"""Confidence intervals for a mean over independent units: problems, or clusters where problems share one.

Attempts at one problem are never independent: they only determine that problem's own figure. A unit is given by the sum
and the number of its values. The mean is the sum of all sums over the sum of all numbers, and its standard error and
degrees of freedom come from the units' residuals (CR2 and Bell-McCaffrey, below). The method for each case was chosen
by coverage in simulation (repeated in `tests/inference/test_coverage.py` and `test_cluster_coverage.py`) and is
reported with every interval:

- `wilson` (Wilson 1927): every unit is a single 0 or 1, so the mean is a proportion. Also if all units agree, where
  other methods collapse to a point; then n is the number of units.
- `wilson-t`: Wilson's interval with Student's t in place of the normal quantile and with the effective number of units,
  mean (1 - mean) / variance of the mean. Below `BOOTSTRAP_FROM` units, and near 0 and 1 at any size: with less than
  `BOOTSTRAP_EVIDENCE` passes or failures. With hardly any of those, the observed variance says nothing about rare
  problems not yet seen, so the effective number falls back to the number of units.
- `bootstrap`: percentile bootstrap (Efron and Tibshirani 1993) over units of one value otherwise, with the same
  resamples for all models, k and metrics with as many units (`bootstrap.resampled_means`), so that the cost grows
  neither with the number of problems nor with that of the figures.

Intervals of differences are in `paired_intervals`.

The standard error of a mean over clusters of values is cluster-robust: CR2 variance with Bell-McCaffrey degrees of
freedom, in closed form. A cluster's residual is the sum of its values minus the mean times their number. Residuals are
too small because the mean was fitted to them, more so for larger clusters: for independent values of equal variance,
the residual of a cluster with s of N values keeps the share 1 - s / N of its variance. CR2 divides by the root of that
share, which makes the variance estimate unbiased under that model for any cluster sizes. The degrees of freedom follow
from Satterthwaite's approximation under the same model:

    variance of the mean = sum over g of (e_g / sqrt(1 - s_g / N))^2 / N^2
    degrees of freedom   = N^2 / (sum s^2 + (sum b)^2 - sum b^2),  b = s^2 / (N - s)

For G clusters of equal size these are the classic factor G / (G - 1) and G - 1 degrees of freedom. A single cluster
with most of the values leaves little more than 1 degree of freedom, but never less.

References: Wilson (1927), "Probable inference, the law of succession, and statistical inference", Journal of the
American Statistical Association 22(158). Efron and Tibshirani (1993), "An Introduction to the Bootstrap". Bell and
McCaffrey (2002), "Bias reduction in standard errors for linear regression with multi-stage samples", Survey Methodology
28(2). Pustejovsky and Tipton (2018), "Small-sample methods for cluster-robust variance estimation and hypothesis
testing in fixed effects models", Journal of Business & Economic Statistics 36(4).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.bootstrap import resampled_means
from touchstone.inference.quantiles import t_critical, z_critical

BOOTSTRAP_FROM = 200
# The percentile bootstrap is too narrow with fewer passes or failures.
BOOTSTRAP_EVIDENCE = 20
MAX_BINS = 256
# The weight of the observed variance is 1 - exp(-evidence / this): 63% at this many failures or passes, 95% at thrice.
EVIDENCE_SCALE = 0.75

# Smaller standard errors are rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Interval:
    """A confidence interval, its method and the number of independent units. Undefined limits are null."""

    low: float | None
    high: float | None
    method: str | None
    units: int

    def columns(self, prefix: str = "") -> dict[str, object]:
        """The interval as the columns `<prefix>ci_low`, `_high`, `_method` and `_units` of a table."""
        return {f"{prefix}ci_{name}": value for name, value in vars(self).items()}


@dataclass(frozen=True)
class UnitHistogram:
    """Sorted, distinct kinds of units with their counts, so that the order of rows cannot affect a result."""

    sums: Floats
    sizes: Integers
    counts: Integers
    mean: float
    total: int
    units: int
    # None if all units agree.
    standard_error: float | None
    # None for a single unit.
    degrees_of_freedom: float | None

    @classmethod
    def of(cls, sums: Floats, sizes: Integers, counts: Integers) -> "UnitHistogram | None":
        """From `counts` units each with a sum over `sizes` values; None if there is no value."""
        present = np.flatnonzero(sizes * counts)
        if len(present) == 0:
            return None
        order = present[np.lexsort((sizes[present], sums[present]))]
        sums, sizes, counts = sums[order], sizes[order], counts[order]
        starts = np.flatnonzero(np.append(True, (np.diff(sums) != 0) | (np.diff(sizes) != 0)))
        sums, sizes, counts = sums[starts], sizes[starts], np.add.reduceat(counts, starts)
        total, units = int((sizes * counts).sum()), int(counts.sum())
        mean = math.fsum(sums * counts) / total
        robust = cluster_robust_se(sums, sizes, counts)
        error = robust.standard_error if robust and robust.standard_error > _ROUNDING else None
        return cls(sums, sizes, counts, mean, total, units, error, robust.degrees_of_freedom if robust else None)

    @property
    def clustered(self) -> bool:
        """Whether a unit holds several values."""
        return self.total > self.units


def mean_interval(
    values: Floats, weights: Integers, clusters: Sequence[str | None] | Integers, settings: IntervalSettings
) -> Interval:
    """Interval for the mean of `values` in [0, 1], each occurring `weights` times, in any order.

    `clusters` has the name or the number of each value's cluster; null or -1 if it is a unit of its own.
    """
    return unit_interval(*_sums_by_unit(values, weights, clusters), settings)


def unit_interval(sums: Floats, sizes: Integers, counts: Integers, settings: IntervalSettings) -> Interval:
    """Interval for the mean of values in [0, 1] that are grouped in units, given by their sums and sizes.

    Each unit occurs `counts` times, in any order. Three problems with 2 of 4, 3 of 4 and 8 of 8 attempts passed:

    >>> unit_interval(np.array([2.0, 3, 8]), np.array([4, 4, 8]), np.array([1, 1, 1]), IntervalSettings()).method
    'wilson-t'
    """
    units = UnitHistogram.of(sums, sizes, counts)
    if units is None:
        return Interval(None, None, None, 0)
    if not units.clustered and bool(np.all((units.sums == 0) | (units.sums == 1))):
        low, high = wilson(units.mean, units.units, settings.confidence)
        return Interval(low, high, "wilson", units.units)
    if units.standard_error is not None and _uses_bootstrap(units):
        low, high = _bootstrap_limits(units, settings)
        return Interval(max(0.0, low), min(1.0, high), "bootstrap", units.units)
    return score_interval(units.mean, units.standard_error, units.units, units.degrees_of_freedom, settings)


def score_interval(
    mean: float, error: float | None, units: int, degrees: float | None, settings: IntervalSettings
) -> Interval:
    """Wilson's interval for a mean in [0, 1] with this standard error, which is None if all units agree.

    >>> score_interval(1.0, None, 20, 19, IntervalSettings()).method
    'wilson'
    """
    if error is None or degrees is None:
        low, high = wilson(mean, units, settings.confidence)
        return Interval(low, high, "wilson", units)
    effective = effective_units(mean, error, units, degrees, settings.confidence)
    return Interval(*wilson_t(mean, effective, degrees, settings.confidence), "wilson-t", units)


def effective_units(share: float, error: float | None, units: int, degrees: float | None, confidence: float) -> float:
    """How many independent values of 0 or 1 would give this standard error; if it is None, the number of units.

    >>> effective_units(0.5, 0.125, 40, 39, 0.95), effective_units(1.0, None, 40, 39, 0.95)
    (16.0, 40)
    """
    largest_variance = share * (1 - share)
    if error is None or degrees is None or largest_variance <= 0:
        return units
    # The observed variance of unequal units has few degrees of freedom, the unobserved one those of all units.
    unobserved = (t_critical(units - 1, confidence) / t_critical(degrees, confidence)) ** 2
    variance = units * error**2
    variance += fallback_weight(units * min(share, 1 - share)) * max(0.0, largest_variance * unobserved - variance)
    return units * largest_variance / variance


def wilson(rate: float, units: int, confidence: float) -> tuple[float, float]:
    """Wilson's score interval (1927) for a proportion.

    >>> [round(end, 3) for end in wilson(1.0, 20, 0.95)]
    [0.839, 1.0]
    """
    return _wilson_bounds(rate, units, z_critical(confidence))


def wilson_t(mean: float, effective: float, degrees: float, confidence: float) -> tuple[float, float]:
    """Wilson's interval with Student's t, for a mean that varies like a proportion of so many units.

    >>> [round(end, 3) for end in wilson_t(1.0, 20, 19, 0.95)]
    [0.82, 1.0]
    """
    return _wilson_bounds(mean, effective, t_critical(degrees, confidence))


def _wilson_bounds(rate: float, units: float, z: float) -> tuple[float, float]:
    centre = (rate + z * z / (2 * units)) / (1 + z * z / units)
    half_width = z / (1 + z * z / units) * math.sqrt(rate * (1 - rate) / units + z * z / (4 * units * units))
    low = 0.0 if rate == 0 else max(0.0, centre - half_width)
    high = 1.0 if rate == 1 else min(1.0, centre + half_width)
    return low, high


def fallback_weight(evidence: float) -> float:
    """The weight of the fallback against the observed variance: from 1 without any evidence down to 0."""
    return math.exp(-evidence / EVIDENCE_SCALE)


def _sums_by_unit(
    values: Floats, weights: Integers, clusters: Sequence[str | None] | Integers
) -> tuple[Floats, Integers, Integers]:
    """Sums, sizes and counts of units: each cluster is one, and each value without a cluster."""
    codes = clusters if isinstance(clusters, np.ndarray) else _cluster_codes(clusters)
    alone = codes < 0
    if alone.all():
        return values, np.ones(len(values), dtype=np.int64), weights
    # Merged and sorted before they are added, so that the order of rows cannot affect the sums.
    order = np.lexsort((values, codes))
    order = order[~alone[order]]
    inside, codes, times = values[order], codes[order], weights[order]
    codes = np.cumsum(np.diff(codes, prepend=codes[0]) != 0)
    starts = np.flatnonzero(np.append(True, (np.diff(inside) != 0) | (np.diff(codes) != 0)))
    sums = np.bincount(codes[starts], weights=inside[starts] * np.add.reduceat(times, starts))
    sizes = np.bincount(codes, weights=times).astype(np.int64)
    return (
        np.append(values[alone], sums),
        np.append(np.ones(int(alone.sum()), dtype=np.int64), sizes),
        np.append(weights[alone], np.ones(len(sums), dtype=np.int64)),
    )


def _cluster_codes(clusters: Sequence[str | None]) -> Integers:
    """The clusters numbered from 0; -1 for none."""
    numbers: dict[str | None, int] = {None: -1}
    return np.fromiter((numbers.setdefault(name, len(numbers) - 1) for name in clusters), np.int64, len(clusters))


def _uses_bootstrap(units: UnitHistogram) -> bool:
    evidence = units.units * min(units.mean, 1 - units.mean)
    return not units.clustered and units.units >= BOOTSTRAP_FROM and evidence >= BOOTSTRAP_EVIDENCE


def _bootstrap_limits(units: UnitHistogram, settings: IntervalSettings) -> tuple[float, float]:
    values, weights = _binned(units.sums, units.counts)
    means = resampled_means(values, weights, settings)
    if len(values) < len(units.sums):
        # Restore the variance within bins.
        full, binned = (_sum_of_squares(units.mean, *pair) for pair in ((units.sums, units.counts), (values, weights)))
        means = units.mean + (means - units.mean) * math.sqrt(full / binned)
    tail = (1 - settings.confidence) / 2
    return _two_quantiles(means, tail, 1 - tail)


def _two_quantiles(values: Floats, low: float, high: float) -> tuple[float, float]:
    """Two quantiles, interpolated like those of `numpy.quantile`, whose overhead is several times the work."""
    # Three times as fast as `numpy.partition` at several places.
    ordered = np.sort(values)
    return _at(ordered, low * (len(values) - 1)), _at(ordered, high * (len(values) - 1))


def _at(ordered: Floats, place: float) -> float:
    low, high, share = float(ordered[math.floor(place)]), float(ordered[math.ceil(place)]), place % 1
    # From the nearer end, which is exact at both.
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1 - share)


def _binned(values: Floats, weights: Integers) -> tuple[Floats, Integers]:
    """The histogram in at most `MAX_BINS` bins of equal width, each at the mean of its values."""
    if len(values) <= MAX_BINS:
        return values, weights
    width = (values[-1] - values[0]) / MAX_BINS
    bins = np.minimum((values - values[0]) / width, MAX_BINS - 1).astype(np.int64)
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    counts = np.add.reduceat(weights, starts)
    return np.add.reduceat(values * weights, starts) / counts, counts


def _sum_of_squares(mean: float, values: Floats, weights: Integers) -> float:
    return math.fsum(weights * (values - mean) ** 2)


# The cluster-robust standard error of a mean


@dataclass(frozen=True)
class ClusterRobustSE:
    """Standard error of a mean and its degrees of freedom, which may be fractional."""

    standard_error: float
    degrees_of_freedom: float


def cluster_robust_se(sums: Floats, sizes: Integers, counts: Integers) -> ClusterRobustSE | None:
    """CR2 standard error of the mean over all values, from the sum and the size of each cluster.

    There are `counts` clusters of each kind. None for fewer than two clusters, because one shows no variation.
    Independent of the order of rows.

    >>> cluster_robust_se(np.array([1.0, 2.0, 3.0]), np.array([4, 4, 4]), np.array([1, 1, 1]))
    ClusterRobustSE(standard_error=0.14433756729740643, degrees_of_freedom=2)
    >>> unequal = cluster_robust_se(np.array([40.0, 1.0, 0.0]), np.array([80, 2, 2]), np.array([1, 4, 6]))
    >>> round(unequal.degrees_of_freedom, 2)
    1.49
    """
    if int(counts[sizes > 0].sum()) < 2:
        return None
    variance = math.fsum(counts * adjusted_residuals(sums, sizes, counts) ** 2)
    return ClusterRobustSE(math.sqrt(variance), degrees_of_freedom(sizes, counts))


def adjusted_residuals(sums: Floats, sizes: Integers, counts: Integers | int = 1) -> Floats:
    """CR2 residuals of two or more clusters, divided by the number of values: their squares add up to the variance."""
    total = int((sizes * counts).sum())
    mean = math.fsum(sums * counts) / total
    residuals: Floats = (sums - mean * sizes) / np.sqrt(1 - sizes / total) / total
    return residuals


def degrees_of_freedom(sizes: Integers, counts: Integers) -> float:
    """Bell-McCaffrey degrees of freedom of the mean over G >= 2 clusters; G - 1 if they are of equal size.

    >>> degrees_of_freedom(np.array([7]), np.array([30]))
    29
    >>> swe_bench_verified = np.array([231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 1])
    >>> round(degrees_of_freedom(swe_bench_verified, np.ones(12, dtype=np.int64)), 2)
    3.33
    """
    if sizes[0] and (sizes == sizes[0]).all():
        return int(counts.sum()) - 1
    total = int((sizes * counts).sum())
    b = sizes.astype(np.float64) ** 2 / (total - sizes)
    spread = math.fsum(counts * sizes.astype(np.float64) ** 2) + math.fsum(counts * b) ** 2 - math.fsum(counts * b**2)
    degrees = total**2 / spread
    whole = round(degrees)
    # Undo rounding errors where the result is a whole number.
    return whole if math.isclose(degrees, whole, rel_tol=1e-12) else degrees
