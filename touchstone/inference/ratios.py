"""Confidence intervals for a ratio of two means: the cost of a pass, and the share of a variance that is a part of it.

`fieller` (Fieller 1954): the interval consists of the ratios r for which mean cost - r * mean pass rate differs from 0
by no more than Student's t allows. The variance of the cost, its covariance with passing and the degrees of freedom
come from the units' residuals (`cluster_robust`: CR2 and Bell-McCaffrey). The variance of the pass rate is that of a
rate of mean cost / r over the effective number of units, as in a score interval, and not that of the observed rate,
which has no variance if all or none pass. So a constant cost gives that cost divided by the score interval of the pass
rate, and the upper limit is infinite exactly if nothing passes. `fieller-cluster` if units hold several attempts.

Skewed costs get another interval, `bootstrap-t-log` or `fieller-widened`: see `skewed_costs`.

`mover`: a part and its whole, each with an interval of its own; see `share_interval`.

References: Fieller (1954), "Some problems in interval estimation", Journal of the Royal Statistical Society B 16(2).
Donner and Zou (2012), "Closed-form confidence intervals for functions of the normal mean and standard deviation",
Statistical Methods in Medical Research 21(4). Newcombe (2016), "MOVER-R confidence intervals for ratios and products
of two independently estimated quantities", Statistical Methods in Medical Research 25(5).
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.cluster_robust import adjusted_residuals
from touchstone.inference.quantiles import t_critical
from touchstone.inference.skewed_costs import (
    SKEWED_FROM,
    SKEWED_FROM_IF_EQUAL,
    bootstrap_t,
    log_standard_deviation,
    lognormal_upper_limit,
)
from touchstone.inference.uncertainty import Interval, UnitHistogram, effective_units

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def cost_of_pass_interval(
    costs: Floats, attempts: Integers, passes: Floats, decided: Integers, settings: IntervalSettings
) -> Interval:
    """Interval for mean cost over mean pass rate, from each unit's cost, attempts, passes and decided attempts.

    Undefined for a single unit, whose cost shows no variation. Skewed costs have the interval of `skewed_costs`.

    >>> ones = np.ones(20, dtype=np.int64)
    >>> found = cost_of_pass_interval(ones * 3.0, ones, ones * 1.0, ones, IntervalSettings())
    >>> round(found.low, 2), round(found.high, 2), found.method
    (3.0, 3.66, 'fieller')
    """
    # A fixed order, so that neither the last digit nor a resample depends on the order of rows.
    order = np.lexsort((decided, attempts, passes, costs))
    costs, attempts, passes, decided = costs[order], attempts[order], passes[order], decided[order]
    once = np.ones(len(costs), dtype=np.int64)
    spending, passing = UnitHistogram.of(costs, attempts, once), UnitHistogram.of(passes, decided, once)
    units = int(((attempts > 0) | (decided > 0)).sum())
    if spending is None or passing is None or spending.degrees_of_freedom is None or passing.degrees_of_freedom is None:
        return Interval(None, None, None, units)
    cost, rate = spending.mean, passing.mean
    cost_residuals, pass_residuals = adjusted_residuals(costs, attempts), adjusted_residuals(passes, decided)
    cost_variance, covariance = math.fsum(cost_residuals**2), math.fsum(cost_residuals * pass_residuals)
    degrees = min(spending.degrees_of_freedom, passing.degrees_of_freedom)
    critical = t_critical(degrees, settings.confidence)
    cost_per_unit = cost / effective_units(rate, passing.standard_error, passing.units, degrees, settings.confidence)
    low, high = _fieller_limits(cost, rate, cost_variance, covariance, cost_per_unit, critical)
    # If all cost the same and all pass, rounding could exclude the ratio itself.
    ratio = cost / rate if rate > 0 else math.inf
    plain = Interval(min(low, ratio), max(high, ratio), passing.method_name("fieller"), units)
    skewed_from = SKEWED_FROM if degrees < units - 1 else SKEWED_FROM_IF_EQUAL
    if log_standard_deviation(costs, attempts) <= skewed_from:
        return plain
    highest = max(high, ratio, lognormal_upper_limit(costs, attempts, passes, degrees, settings))
    limits = bootstrap_t(costs, passes, settings) if np.array_equal(attempts, decided) else None
    if limits is None:
        return replace(plain, high=highest, method=passing.method_name("fieller-widened"))
    # Resampling a few large units does not show how low their costs could have been.
    lowest = min(limits[0], ratio, low) if degrees < units - 1 else min(limits[0], ratio)
    return Interval(lowest, max(limits[1], highest), passing.method_name("bootstrap-t-log"), units)


def _fieller_limits(
    cost: float, rate: float, cost_variance: float, covariance: float, cost_per_unit: float, critical: float
) -> tuple[float, float]:
    # Squared and sorted by powers of r, the ratios of the interval lie between the roots of a parabola.
    square, half = rate * rate, cost * rate + critical**2 * (cost_per_unit / 2 - covariance)
    rest = cost * cost + critical**2 * (cost * cost_per_unit - cost_variance)
    root = math.sqrt(max(0.0, half * half - square * rest))
    # The smaller root in the form that does not divide by a pass rate of 0.
    low = max(0.0, rest / (half + root)) if half + root > 0 else 0.0
    return low, (half + root) / square if square > 0 else math.inf


def share_interval(part: float, part_interval: Interval, whole: float, whole_interval: Interval) -> Interval:
    """Interval for part / whole, cut at 1, from intervals for both: MOVER-R (Donner and Zou 2012, Newcombe 2016).

    Each limit recovers the variances from the distances between the estimates and the limits of their intervals, which
    may be asymmetric. Part and whole are taken as independent. If they grow together, it is too wide rather than too
    narrow. Undefined if the whole is 0. The units are those of the part.

    >>> found = share_interval(0.1, Interval(0.05, 0.2, "wilson-t", 40), 0.4, Interval(0.3, 0.5, "wilson-t", 40))
    >>> round(found.low, 3), round(found.high, 3), found.method
    (0.121, 0.533, 'mover')
    """
    low, high, least, most = part_interval.low, part_interval.high, whole_interval.low, whole_interval.high
    if low is None or high is None or least is None or most is None or whole == 0:
        return Interval(None, None, None, part_interval.units)
    product = part * whole
    # Both limits are roots of a parabola; the lower one in the form that does not divide by nearly 0.
    root = math.sqrt(max(0.0, product**2 - low * (2 * part - low) * most * (2 * whole - most)))
    lowest = low * (2 * part - low) / (product + root) if product + root > 0 else 0.0
    square = least * (2 * whole - least)
    root = math.sqrt(max(0.0, product**2 - high * (2 * part - high) * square))
    highest = (product + root) / square if square > 0 else math.inf
    clustered = any(str(one.method).endswith("-cluster") for one in (part_interval, whole_interval))
    share = min(1.0, part / whole)
    method = "mover-cluster" if clustered else "mover"
    return Interval(max(0.0, min(lowest, share)), max(share, min(1.0, highest)), method, part_interval.units)
