"""Confidence intervals for a cost of pass where costs are skewed: a few units cost many times what the others do.

Fieller's interval (`ratios`) rests on means that scatter symmetrically. Costs that are lognormal with a log spread (the
standard deviation of the logs of units' mean costs) of 1 make it hold the truth in 91% of cases, of 1.5 in 78% to 87%,
of 2 in 63% to 75%, because the upper end is too low. So where the spread exceeds `SKEWED_FROM`:

- `bootstrap-t-log`: the studentised bootstrap (Hall 1988) of the log of the ratio, over units drawn with replacement.
  It follows the skewness that was seen.
- The upper end also allows for the dear units that were not met: it is at least the upper limit of the mean of a
  lognormal distribution, with the limits of its two parts put together as by Zou, Taleban and Huo (2009). The spread
  is that of the units above the median, where these spread less than all, so that many cheap units do not raise it.
- `fieller-widened`: below `MIN_UNITS` units or with next to no pass there is nothing to draw from, and only the
  upper end of Fieller's interval is raised.

In simulation (10 to 100 units) these hold the truth in 93% to 96% of cases for lognormal costs with a spread up to 2,
and in 96% to 99% for gamma costs. What no method can do is to foresee a kind of problem that was not met: where one
problem in ten costs twelve times the others, ten problems hold the truth in 76% of cases, a hundred in 95%.
"""

import math

import numpy as np
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.bootstrap import MIN_UNITS, bootstrap_sums, resampling_groups
from touchstone.inference.cluster_robust import adjusted_residuals
from touchstone.inference.uncertainty import t_critical

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Below the 1 from which Fieller's interval falls short: the spread seen in a few units is itself uncertain.
SKEWED_FROM = 0.7
# The tails of so many replicates are known well enough, and there is an interval for every model and tier.
_MAX_REPLICATES = 2000


def log_standard_deviation(costs: Floats, attempts: Integers) -> float:
    """Standard deviation of the logs of units' mean costs; 0 below three units that cost anything.

    >>> round(log_standard_deviation(np.array([1.0, 10.0, 100.0]), np.array([1, 1, 1])), 3)
    2.303
    """
    logs = _logs(costs, attempts)
    return float(np.std(logs, ddof=1)) if len(logs) > 2 else 0.0


def bootstrap_t(costs: Floats, passes: Floats, settings: IntervalSettings) -> tuple[float, float] | None:
    """Ends of the studentised bootstrap of cost by passes; None with too few units or passes to draw from.

    Draws are of the units in their order, which must not depend on that of any rows.
    """
    if len(costs) < MIN_UNITS or not passes.any():
        return None
    # Many units are drawn in groups.
    groups = resampling_groups(np.arange(len(costs)), settings)
    cost, passed = (np.bincount(groups, weights=each).astype(np.float64) for each in (costs, passes))
    error = math.sqrt(float(_variance(*_moments(cost, passed).sum(axis=0)[:, None]).item()))
    ratio = math.log(math.fsum(cost) / math.fsum(passed))
    fewer = settings.model_copy(update={"replicates": min(_MAX_REPLICATES, settings.replicates)})
    pieces = [piece.T for piece in bootstrap_sums(_moments(cost, passed), fewer)]
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = np.concatenate([(np.log(each[0] / each[1]) - ratio) / np.sqrt(_variance(*each)) for each in pieces])
    never = np.concatenate([each[1] == 0 for each in pieces])
    tail = (1 - settings.confidence) / 2
    if never.mean() > tail:
        return None
    pivots = np.sort(np.where(never, math.inf, np.nan_to_num(pivots, nan=0.0, posinf=math.inf, neginf=-math.inf)))
    beyond = math.floor((len(pivots) - 1) * tail)
    low, high = (ratio - error * float(pivots[place]) for place in (len(pivots) - 1 - beyond, beyond))
    return math.exp(low), math.exp(high)


def lognormal_upper_limit(
    costs: Floats, attempts: Integers, passes: Floats, degrees: float, settings: IntervalSettings
) -> float:
    """Upper limit of the cost of pass if units' mean costs are lognormal; infinity where nothing passes."""
    # Imported here: it takes longer than most of what is done with it.
    from scipy.special import chdtri  # type: ignore[import-untyped]

    rate = math.fsum(passes) / int(attempts.sum())
    if rate == 0:
        return math.inf
    dear = costs > 0
    logs, sizes, passed = _logs(costs, attempts), attempts[dear], passes[dear]
    units, middle = len(logs), float(np.median(logs))
    above = logs[logs > middle] - middle
    spread = min(math.fsum(above**2) / max(1, len(above)) * units / (units - 1), float(np.var(logs, ddof=1)))
    # A unit moves the mean of logs and the log of the pass rate together.
    residuals = adjusted_residuals(logs * sizes - passed / rate, sizes)
    of_centre = (t_critical(degrees, settings.confidence) ** 2) * math.fsum(residuals**2)
    chi_squared = float(chdtri(units - 1, (1 + settings.confidence) / 2))
    of_spread = (spread / 2 * ((units - 1) / chi_squared - 1)) ** 2
    share = int(sizes.sum()) / int(attempts.sum())
    typical = math.fsum(logs * sizes) / int(sizes.sum()) + spread / 2 + math.log(share)
    centre = max(typical, math.log(math.fsum(costs) / int(attempts.sum())))
    return math.exp(centre - math.log(rate) + math.sqrt(of_centre + of_spread))


def _logs(costs: Floats, attempts: Integers) -> Floats:
    dear = costs > 0
    logs: Floats = np.log(costs[dear] / attempts[dear])
    return logs


def _moments(cost: Floats, passed: Floats) -> Floats:
    """What the log of a ratio of sums and its variance are made of, a row per unit."""
    once = np.ones(len(cost))
    return np.stack([cost, passed, cost**2, cost * passed, passed**2, once], axis=1)


def _variance(cost: Floats, passed: Floats, costs: Floats, both: Floats, passes: Floats, units: Floats) -> Floats:
    """Of the log of the ratio, by linearisation: a unit adds its share of all cost less its share of all passes."""
    squares = costs / cost**2 - 2 * both / (cost * passed) + passes / passed**2
    return np.maximum(0.0, squares) * units / (units - 1)
