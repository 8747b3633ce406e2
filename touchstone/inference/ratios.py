"""Confidence intervals for a ratio of two means over the same units: what a pass costs.

`fieller`: a ratio r is held where mean cost - r * mean pass rate is off 0 by no more than Student's t allows. The
variance of the cost, its covariance with passing and the degrees of freedom come from the residuals of units
(`cluster_robust`: CR2 and Bell-McCaffrey). The variance of the pass rate is that of a rate of mean cost / r over the
effective number of units, as in a score interval, and not that of the rate seen: where all pass, or none does, the rate
seen has no variance at all. So a cost that is always the same gives that cost by the ends of the score interval of the
pass rate, and the upper end is infinite just where nothing passes. `fieller-cluster` where units hold several attempts.

Costs that are skewed need another interval, `bootstrap-t-log` or `fieller-widened`: see `skewed_costs`.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.cluster_robust import adjusted_residuals
from touchstone.inference.skewed_costs import SKEWED_FROM, bootstrap_t, log_standard_deviation, lognormal_upper_limit
from touchstone.inference.uncertainty import Interval, UnitHistogram, effective_units, t_critical

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def cost_of_pass_interval(
    costs: Floats, attempts: Integers, passes: Floats, decided: Integers, settings: IntervalSettings
) -> Interval:
    """Interval for mean cost by mean pass rate, from what each unit cost and how many of its attempts passed.

    A single unit does not show how far costs scatter: it has none. Skewed costs have the interval of `skewed_costs`.

    >>> ones = np.ones(20, dtype=np.int64)
    >>> found = cost_of_pass_interval(ones * 3.0, ones, ones * 1.0, ones, IntervalSettings())
    >>> round(found.low, 2), round(found.high, 2), found.method
    (3.0, 3.66, 'fieller')
    """
    # In one order, so that neither a last digit nor a draw depends on that of the rows.
    order = np.lexsort((decided, attempts, passes, costs))
    costs, attempts, passes, decided = costs[order], attempts[order], passes[order], decided[order]
    once = np.ones(len(costs), dtype=np.int64)
    spending, passing = UnitHistogram.of(costs, attempts, once), UnitHistogram.of(passes, decided, once)
    units = int(((attempts > 0) | (decided > 0)).sum())
    if spending is None or passing is None or spending.degrees_of_freedom is None or passing.degrees_of_freedom is None:
        return Interval(None, None, None, units)
    cost, rate = spending.mean, passing.mean
    over, above = adjusted_residuals(costs, attempts), adjusted_residuals(passes, decided)
    of_cost, together = math.fsum(over**2), math.fsum(over * above)
    degrees = min(spending.degrees_of_freedom, passing.degrees_of_freedom)
    reach = t_critical(degrees, settings.confidence)
    of_one = cost / effective_units(rate, passing.error, passing.units, degrees, settings.confidence)
    low, high = _fieller(cost, rate, of_cost, together, of_one, reach)
    # Where all cost the same and all pass, a rounding would leave the ratio itself outside.
    ratio = cost / rate if rate > 0 else math.inf
    plain = Interval(min(low, ratio), max(high, ratio), passing.method_name("fieller"), units)
    if log_standard_deviation(costs, attempts) <= SKEWED_FROM:
        return plain
    highest = max(high, ratio, lognormal_upper_limit(costs, attempts, passes, degrees, settings))
    drawn = bootstrap_t(costs, passes, settings) if np.array_equal(attempts, decided) else None
    if drawn is None:
        return replace(plain, high=highest, method=passing.method_name("fieller-widened"))
    # A few large units that are drawn again do not show how far down they could have been.
    lowest = min(drawn[0], ratio, low) if degrees < units - 1 else min(drawn[0], ratio)
    return Interval(lowest, max(drawn[1], highest), passing.method_name("bootstrap-t-log"), units)


def _fieller(
    cost: float, rate: float, of_cost: float, together: float, of_one: float, reach: float
) -> tuple[float, float]:
    # Squared and sorted by powers of r: the ratios held lie between the roots of a parabola.
    square, half = rate * rate, cost * rate + reach**2 * (of_one / 2 - together)
    rest = cost * cost + reach**2 * (cost * of_one - of_cost)
    root = math.sqrt(max(0.0, half * half - square * rest))
    # The smaller root in the form that does not divide by a pass rate of 0.
    low = max(0.0, rest / (half + root)) if half + root > 0 else 0.0
    return low, (half + root) / square if square > 0 else math.inf
