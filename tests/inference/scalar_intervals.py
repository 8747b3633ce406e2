"""Intervals of one mean of differences, by way of its units: what the intervals of all pairs at once must equal."""

import math
from collections.abc import Sequence

import numpy as np

from touchstone.config import IntervalSettings
from touchstone.inference import uncertainty
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.paired_intervals import difference_limits
from touchstone.inference.uncertainty import Interval, UnitHistogram


def paired_interval(
    differences: Floats, weights: Integers, clusters: Sequence[str | None], settings: IntervalSettings
) -> Interval:
    """Interval for the mean of differences in [-1, 1], each occurring `weights` times, in any order."""
    units = difference_units(differences, weights, clusters)
    return Interval(None, None, None, 0) if units is None else difference_interval(units, settings.confidence)


def difference_interval(units: UnitHistogram, confidence: float) -> Interval:
    """Interval for the mean of differences that are grouped in units; see `difference_limits`."""
    found = difference_limits(
        np.array([units.mean]),
        np.array([units.standard_error or 0.0]),
        np.array([units.degrees_of_freedom or math.nan]),
        np.array([units.units]),
        np.array([math.fsum(np.minimum(np.abs(units.sums), 1) * units.counts)]),
        confidence,
    )
    return Interval(float(found.low[0]), float(found.high[0]), str(found.methods[0]), units.units)


def difference_units(differences: Floats, weights: Integers, clusters: Sequence[str | None]) -> UnitHistogram | None:
    """Differences summed by cluster; one without a cluster is a unit of its own. None if there are none."""
    return UnitHistogram.of(*uncertainty._sums_by_unit(differences, weights, clusters))
