"""Confidence intervals for a median over attempts that are grouped in units, and for its uplift over a baseline.

`woodruff`, for a median: the share of values at or below a point is a mean, whose interval is known, and the median is
where that share crosses one half (Woodruff 1952). So the interval consists of the points whose share differs from a
half by no more than its sampling error:

- The standard deviation of the share is 1/2 over the root of the effective number of units. That number comes from the
  cluster-robust variance of the share at the point nearest the median; with almost no value on one side of that point,
  it falls back to the number of units.
- If each unit is one value, the variance is known and the normal quantile applies. If units hold several values, the
  variance is estimated, and Student's t applies, with the degrees of freedom of `uncertainty`.
- The limits are values of the data, or 0 and 1 where the data end before the sampling error does.

A median needs six units at 95%: five values all lie on one side of it with probability 1/16, which exceeds 5%. With
fewer units the interval is [0, 1]. If enough units agree on one value x it is [x, x]: fewer than 5% of samples from a
population with another median look like that.

`bootstrap`, for an uplift (Efron and Tibshirani 1993): all tiers of a model share the same resamples of units, so that
a problem's difficulty cancels out. A resample is a row of counts per unit, and a tier is a matrix of how many values
each unit has up to each point. Their product is the cumulative histogram of every replicate, in integers, so the result
is the same on every machine and in any order of rows. The cost does not grow with the number of problems: random groups
of units are resampled if there are many (`bootstrap.resampling_groups`), and more than `MAX_VALUES` distinct values are
put into that many bins of equal count.

`woodruff`, for an uplift too, if half of a median's interval or more is a gap between two values: scores near 0 and 1
of which about half are high. Resamples of a few such scores rarely reach the other side of the gap, so the limits are
then at least the ratios of opposite ends of both medians' intervals. The replicates covered the truth in 69% of cases
with 6 problems and in 86% with 15, these limits in 96% to 100%.

References: Woodruff (1952), "Confidence intervals for medians and other position measures", Journal of the American
Statistical Association 47(260). Efron and Tibshirani (1993), "An Introduction to the Bootstrap".
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.bootstrap import bootstrap_counts, expanded_percentiles, resampling_groups
from touchstone.inference.quantiles import t_critical, z_critical
from touchstone.inference.uncertainty import Interval, UnitHistogram, effective_units

MAX_VALUES = 1000
# Single precision represents every integer up to here.
_EXACT = 2**24
# Counts per chunk of work: 16 MB.
_CHUNK = 4_000_000

Counts = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Sample:
    """Values, the unit that each belongs to, and how often it occurs there; rows in any order."""

    values: Floats
    units: Integers
    counts: Integers


def median_interval(sample: Sample, settings: IntervalSettings) -> Interval:
    """Interval for the median of values in [0, 1].

    >>> once = np.ones(20, dtype=np.int64)
    >>> found = median_interval(Sample(np.arange(20) / 20, np.arange(20), once), IntervalSettings())
    >>> found.low, found.high, found.method
    (0.25, 0.7, 'woodruff')
    """
    total = int(sample.counts.sum())
    if total == 0:
        return Interval(None, None, None, 0)
    values, ranks = np.unique(sample.values, return_inverse=True)
    share_up_to = np.cumsum(np.bincount(ranks, weights=sample.counts)) / total
    middle = int(np.argmin(np.abs(share_up_to - 0.5)))
    units = _share_by_unit(sample, ranks <= middle)
    if not enough_units(units.units, settings.confidence):
        return Interval(0.0, 1.0, "woodruff", units.units)
    if len(values) == 1:
        return Interval(float(values[0]), float(values[0]), "woodruff", units.units)
    confidence = settings.confidence
    degrees = units.degrees_of_freedom
    critical = t_critical(degrees, confidence) if units.clustered and degrees else z_critical(confidence)
    effective = effective_units(units.mean, units.standard_error, units.units, degrees, confidence)
    least = 0.5 - critical / (2 * math.sqrt(effective))
    if least <= 0:
        return Interval(0.0, 1.0, "woodruff", units.units)
    share_from = 1 - np.append(0.0, share_up_to[:-1])
    low, high = values[share_up_to >= least][0], values[share_from >= least][-1]
    return Interval(float(low), float(high), "woodruff", units.units)


def enough_units(units: int, confidence: float) -> bool:
    """Whether this many units can bound a median.

    >>> enough_units(5, 0.95), enough_units(6, 0.95)
    (False, True)
    """
    return units >= min_units(confidence)


def min_units(confidence: float) -> int:
    """The fewest units that bound a median: all of them are on one side of it with probability below 1 - confidence.

    >>> min_units(0.95), min_units(0.99)
    (6, 8)
    """
    return math.floor(1 - math.log2(1 - confidence)) + 1


def _share_by_unit(sample: Sample, inside: NDArray[np.bool_]) -> UnitHistogram:
    names, codes = np.unique(sample.units, return_inverse=True)
    sums = np.bincount(codes, weights=sample.counts * inside).astype(np.float64)
    sizes = np.bincount(codes, weights=sample.counts).astype(np.int64)
    units = UnitHistogram.of(sums, sizes, np.ones(len(names), dtype=np.int64))
    assert units is not None
    return units


# Uplift


def uplift_intervals(baseline: Sample, tiers: Sequence[Sample], settings: IntervalSettings) -> list[Interval]:
    """Interval for (median of a tier - median of the baseline) / median of the baseline, for each of the tiers.

    The limits are expanded percentiles of the replicates (`bootstrap.expanded_percentiles`, for the side with fewer
    units), or of the medians' own intervals if one of these spans a gap. A replicate whose baseline median is 0
    has an infinite uplift, so a limit may be infinite; an undefined uplift (0 / 0, or an empty resample) is left out.

    Each side needs enough units for a median of its own (six at 95%), otherwise both limits are null: in simulation,
    three problems against 72 covered the truth in 81% to 87% of cases, six in 93% to 98%.

    >>> once = np.ones(8, dtype=np.int64)
    >>> half, whole = (Sample(value * once, np.arange(8), once) for value in (0.5, 1.0))
    >>> uplift_intervals(half, [whole], IntervalSettings())[0]
    Interval(low=1.0, high=1.0, method='bootstrap', units=8)
    """
    samples = [baseline, *tiers]
    ids, codes = np.unique(np.concatenate([sample.units for sample in samples]), return_inverse=True)
    groups = resampling_groups(np.arange(len(ids)), settings)
    parts = np.split(groups[codes], np.cumsum([len(sample.units) for sample in samples])[:-1])
    resamples = bootstrap_counts(int(groups.max(initial=-1)) + 1, settings.replicates, settings.seed)
    before, *after = (_bootstrap_medians(sample, part, resamples) for sample, part in zip(samples, parts, strict=True))
    return [_interval(baseline, tier, before, each, settings) for tier, each in zip(tiers, after, strict=True)]


def _interval(baseline: Sample, tier: Sample, before: Floats, after: Floats, settings: IntervalSettings) -> Interval:
    units = len(np.union1d(baseline.units, tier.units))
    fewer = min(len(np.unique(side.units)) for side in (baseline, tier))
    with np.errstate(divide="ignore", invalid="ignore"):
        uplifts = (after - before) / before
    uplifts = uplifts[~np.isnan(uplifts)]
    if len(uplifts) == 0 or not enough_units(fewer, settings.confidence):
        return Interval(None, None, None, units)
    low, high = expanded_percentiles(uplifts, fewer, settings.confidence)
    before_range, after_range = (median_interval(side, settings) for side in (baseline, tier))
    # If all replicates are equal, both sides have the same scores, and no gap matters.
    if low < high and (_spans_gap(baseline, before_range) or _spans_gap(tier, after_range)):
        (lowest_before, highest_before), (lowest_after, highest_after) = _ends(before_range), _ends(after_range)
        highest = (highest_after - lowest_before) / lowest_before if lowest_before > 0 else math.inf
        lowest = (lowest_after - highest_before) / highest_before
        return Interval(min(low, lowest), max(high, highest), "woodruff", units)
    return Interval(low, high, "bootstrap", units)


def _ends(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None and interval.high is not None
    return interval.low, interval.high


def _spans_gap(sample: Sample, interval: Interval) -> bool:
    """Whether two neighbouring values are apart by half of the median's interval or more."""
    low, high = _ends(interval)
    gaps = np.diff(np.unique(np.append(np.clip(sample.values, low, high), [low, high])))
    return len(gaps) > 0 and bool(2 * gaps.max() >= high - low)


def _bootstrap_medians(sample: Sample, groups: Integers, resamples: NDArray[np.uint8]) -> Floats:
    """The median of every replicate; NaN if its resample is empty."""
    values, bins = _binned(sample.values, sample.counts)
    shape = (resamples.shape[1], len(values))
    table = np.bincount(groups * shape[1] + bins, weights=sample.counts, minlength=shape[0] * shape[1])
    up_to: Counts = np.cumsum(table.reshape(shape), axis=1)
    if table.sum() * resamples.max() < _EXACT:
        up_to = up_to.astype(np.float32)
    rows = max(1, _CHUNK // shape[0])
    chunks = (resamples[start : start + rows].astype(up_to.dtype) for start in range(0, len(resamples), rows))
    return np.concatenate([_chunk_medians(values, up_to, chunk) for chunk in chunks])


def _chunk_medians(values: Floats, up_to: Counts, resamples: Counts) -> Floats:
    totals = resamples @ np.ascontiguousarray(up_to[:, -1])
    lower, reached = _order_statistics(np.floor((totals - 1) / 2), up_to, resamples)
    # The upper of the two middle values usually equals the lower one.
    rest = np.flatnonzero((reached <= np.floor(totals / 2)) & (totals > 0))
    upper = lower.copy()
    upper[rest], _ = _order_statistics(np.floor(totals[rest] / 2), up_to, resamples[rest])
    middle = np.where(lower == upper, values[lower], (values[lower] + values[upper]) / 2)
    return np.where(totals > 0, middle, np.nan)


def _order_statistics(ranks: Counts, up_to: Counts, resamples: Counts) -> tuple[Integers, Counts]:
    """The index of the value with the given rank (from 0) in every replicate, and how many values there are up to it.

    Searched among a few columns that are far apart first, then among the columns between two of them, which is a
    fraction of the work of comparing all columns for all replicates.
    """
    width = math.isqrt(up_to.shape[1]) + 1
    stretch = (resamples @ np.ascontiguousarray(up_to[:, width - 1 :: width]) <= ranks[:, None]).sum(axis=1)
    found, reached = np.zeros(len(resamples), dtype=np.int64), np.zeros_like(ranks)
    for place, rows in _split(stretch):
        start = place * width
        counted = resamples[rows] @ up_to[:, start : start + width]
        within = (counted <= ranks[rows, None]).sum(axis=1)
        found[rows], reached[rows] = start + within, counted[np.arange(len(rows)), within]
    return found, reached


def _split(codes: Integers) -> Iterator[tuple[int, Integers]]:
    """The rows that have each code."""
    order = np.argsort(codes, kind="stable")
    distinct, starts = np.unique(codes[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts)[1:], strict=True)


def _binned(values: Floats, counts: Integers) -> tuple[Floats, Integers]:
    """The sorted distinct values, in at most `MAX_VALUES` bins of equal count, and the bin of each given value.

    A bin is represented by the mean of its values.
    """
    distinct, ranks = np.unique(values, return_inverse=True)
    if len(distinct) <= MAX_VALUES:
        return distinct, ranks
    weights = np.bincount(ranks, weights=counts)
    before = np.cumsum(weights) - weights
    bins = np.unique((before * MAX_VALUES / weights.sum()).astype(np.int64), return_inverse=True)[1]
    means = np.bincount(bins, weights=distinct * weights) / np.bincount(bins, weights=weights)
    return means, bins[ranks]
