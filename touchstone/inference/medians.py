"""Confidence intervals for a median over attempts that lie in units.

Woodruff's: the share of values up to a point is a mean, whose interval is known, and the median lies where that share
is a half. So a point is held to be the median where the share of values up to it is off a half by no more than chance
allows:

- The standard deviation of that share is 1/2 by the root of the effective number of units. That number comes from the
  cluster-robust scatter of the share of values up to the point nearest the median; with hardly a value on one side of
  it, it falls back to the number of units.
- `woodruff`: each unit is one value, so the scatter is known and the normal quantile is used. `woodruff-cluster`:
  units hold several values, the scatter is estimated, and Student's t with its degrees of freedom is
  (`cluster_robust`: one less than units where all hold as many values, fewer where they do not).
- The ends are values of the data, or 0 and 1 where the data ends before chance does.

A median needs six units: that all of five lie on one side of it happens one time in 16, which is more than 5%. With
fewer the interval is [0, 1]. With enough units that all agree on one value x it is [x, x], and not a collapse as for a
mean: less than 5% of samples from a population with another median look so.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.quantiles import z_critical
from touchstone.inference.uncertainty import Interval, UnitHistogram, effective_units, t_critical

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """Values, the unit that each is from, and how many times it stands there; rows in any order."""

    values: Floats
    units: Integers
    counts: Integers
    # Whether a unit holds several problems, and not only several attempts at one.
    shared: bool = False

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
    values, places = np.unique(sample.values, return_inverse=True)
    up_to = np.cumsum(np.bincount(places, weights=sample.counts)) / total
    middle = int(np.argmin(np.abs(up_to - 0.5)))
    units = _share_in_units(sample, places <= middle)
    method = units.method_name("woodruff")
    if not enough_units(units.units, settings.confidence):
        return Interval(0.0, 1.0, method, units.units)
    if len(values) == 1:
        return Interval(float(values[0]), float(values[0]), method, units.units)
    confidence = settings.confidence
    degrees = units.degrees_of_freedom
    reach = t_critical(degrees, confidence) if units.clustered and degrees else z_critical(confidence)
    effective = effective_units(units.mean, units.error, units.units, degrees, confidence)
    least = 0.5 - reach / (2 * math.sqrt(effective))
    if least <= 0:
        return Interval(0.0, 1.0, method, units.units)
    from_on = 1 - np.append(0.0, up_to[:-1])
    low, high = values[up_to >= least][0], values[from_on >= least][-1]
    return Interval(float(low), float(high), method, units.units)


def enough_units(units: int, confidence: float) -> bool:
    """Whether so many units can say anything of a median: all on one side of it is rarer than the confidence allows.

    >>> enough_units(5, 0.95), enough_units(6, 0.95)
    (False, True)
    """
    return units >= min_units(confidence)


def min_units(confidence: float) -> int:
    """How many units a median needs at least.

    >>> min_units(0.95), min_units(0.99)
    (6, 8)
    """
    return math.floor(1 - math.log2(1 - confidence)) + 1


def _share_in_units(sample: Sample, inside: NDArray[np.bool_]) -> UnitHistogram:
    names, codes = np.unique(sample.units, return_inverse=True)
    sums = np.bincount(codes, weights=sample.counts * inside).astype(np.float64)
    sizes = np.bincount(codes, weights=sample.counts).astype(np.int64)
    units = UnitHistogram.of(sums, sizes, np.ones(len(names), dtype=np.int64))
    assert units is not None
    return units
