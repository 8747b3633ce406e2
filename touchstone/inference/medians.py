"""Woodruff's confidence interval for a median over attempts that are grouped in units.

The share of values at or below a point is a mean, whose interval is known, and the median is where that share crosses
one half (Woodruff 1952). So the interval consists of the points whose share differs from a half by no more than its
sampling error:

- The standard deviation of the share is 1/2 over the root of the effective number of units. That number comes from the
  cluster-robust variance of the share at the point nearest the median; with almost no value on one side of that point,
  it falls back to the number of units.
- `woodruff`: each unit is one value, so the variance is known and the normal quantile applies. `woodruff-cluster`:
  units hold several values, the variance is estimated, and Student's t applies, with the degrees of freedom of
  `cluster_robust`.
- The limits are values of the data, or 0 and 1 where the data end before the sampling error does.

A median needs six units at 95%: five values all lie on one side of it with probability 1/16, which exceeds 5%. With
fewer units the interval is [0, 1]. If enough units agree on one value x it is [x, x]: fewer than 5% of samples from a
population with another median look like that.

Reference: Woodruff (1952), "Confidence intervals for medians and other position measures", Journal of the American
Statistical Association 47(260).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.quantiles import t_critical, z_critical
from touchstone.inference.uncertainty import Interval, UnitHistogram, effective_units

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """Values, the unit that each belongs to, and how often it occurs there; rows in any order."""

    values: Floats
    units: Integers
    counts: Integers
    # Whether some unit is a cluster of several problems, and not only several attempts at one.
    has_clusters: bool = False

    @property
    def repeated(self) -> bool:
        """Whether a unit holds several values."""
        return int(self.counts.sum()) > len(np.unique(self.units))


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
    method = units.method_name("woodruff")
    if not enough_units(units.units, settings.confidence):
        return Interval(0.0, 1.0, method, units.units)
    if len(values) == 1:
        return Interval(float(values[0]), float(values[0]), method, units.units)
    confidence = settings.confidence
    degrees = units.degrees_of_freedom
    critical = t_critical(degrees, confidence) if units.clustered and degrees else z_critical(confidence)
    effective = effective_units(units.mean, units.standard_error, units.units, degrees, confidence)
    least = 0.5 - critical / (2 * math.sqrt(effective))
    if least <= 0:
        return Interval(0.0, 1.0, method, units.units)
    share_from = 1 - np.append(0.0, share_up_to[:-1])
    low, high = values[share_up_to >= least][0], values[share_from >= least][-1]
    return Interval(float(low), float(high), method, units.units)


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
