"""Confidence intervals for a ratio of two means: the cost of a pass, and the share of a variance that is a part of it.

`fieller` (Fieller 1954): the interval consists of the ratios r for which mean cost - r * mean pass rate differs from 0
by no more than Student's t allows. The variance of the cost, its covariance with passing and the degrees of freedom
come from the units' residuals (`uncertainty`: CR2 and Bell-McCaffrey). The variance of the pass rate is that of a
rate of mean cost / r over the effective number of units, as in a score interval, and not that of the observed rate,
which has no variance if all or none pass. So a constant cost gives that cost divided by the score interval of the pass
rate, and the upper limit is infinite exactly if nothing passes.

Skewed costs: a few units cost many times as much as the others. Fieller's interval assumes means with a symmetric
distribution. With lognormal costs whose log standard deviation (over the logs of the units' mean costs) is 1 it covers
the truth in 91% of cases, with 1.5 in 78% to 87%, with 2 in 63% to 75%, because the upper limit is too low. So above
`SKEWED_FROM` or `SKEWED_FROM_IF_EQUAL`:

- `bootstrap-t-log`: the studentised bootstrap (Hall 1988) of the log of the ratio, which follows the observed skewness.
- The upper limit also allows for expensive units that were not observed: it is at least the upper limit of the mean of
  a lognormal distribution, combined from the limits of its two parameters (MOVER: Zou, Taleban and Huo 2009). The
  variance is that of the units above the median if they vary less than all units, so that many cheap units do not
  raise it, or that of units weighted by size if smaller, so that many small units do not raise it.
- `fieller-widened`: with fewer than `MIN_UNITS` units or almost no pass there is nothing to resample, and only the
  upper limit of Fieller's interval is raised.

In simulation (10 to 100 units) these cover the truth in 93% to 97% of cases for lognormal costs with a log standard
deviation up to 2, in clusters up to 1.5. No method can foresee a kind of problem that was never observed:
if one problem in ten costs twelve times the others, ten problems cover the truth in 76% of cases, a hundred in 95%.

`mover`: a part and its whole, each with an interval of its own; see `share_interval`.

References: Fieller (1954), "Some problems in interval estimation", Journal of the Royal Statistical Society B 16(2).
Donner and Zou (2012), "Closed-form confidence intervals for functions of the normal mean and standard deviation",
Statistical Methods in Medical Research 21(4). Newcombe (2016), "MOVER-R confidence intervals for ratios and products
of two independently estimated quantities", Statistical Methods in Medical Research 25(5). Hall (1988), "Theoretical
comparison of bootstrap confidence intervals", Annals of Statistics 16(3). Zou, Taleban and Huo (2009), "Confidence
interval estimation for lognormal data with application to health economics", Computational Statistics & Data Analysis
53(11).
"""

import math
from dataclasses import replace

import numpy as np

from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.bootstrap import MIN_UNITS, bootstrap_sums, resampling_groups
from touchstone.inference.quantiles import t_critical
from touchstone.inference.uncertainty import Interval, UnitHistogram, adjusted_residuals, effective_units

# Below the 1 from which Fieller's interval falls short, because the estimate from a few units is itself uncertain.
SKEWED_FROM = 0.7
# Lower for units of equal size: a mean over a cluster hides most of the spread of its problems, and Fieller's interval
# is not widened by fewer degrees of freedom as it is for units of unequal size.
SKEWED_FROM_IF_EQUAL = 0.3
# Enough replicates for the tails, since every model and tier has an interval.
_MAX_REPLICATES = 2000


def cost_of_pass_interval(
    costs: Floats, attempts: Integers, passes: Floats, decided: Integers, settings: IntervalSettings
) -> Interval:
    """Interval for mean cost over mean pass rate, from each unit's cost, attempts, passes and decided attempts.

    Undefined for a single unit, whose cost shows no variation.

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
    plain = Interval(min(low, ratio), max(high, ratio), "fieller", units)
    skewed_from = SKEWED_FROM if degrees < units - 1 else SKEWED_FROM_IF_EQUAL
    if log_standard_deviation(costs, attempts) <= skewed_from:
        return plain
    highest = max(high, ratio, lognormal_upper_limit(costs, attempts, passes, degrees, settings))
    limits = bootstrap_t(costs, passes, settings) if np.array_equal(attempts, decided) else None
    if limits is None:
        return replace(plain, high=highest, method="fieller-widened")
    # Resampling a few large units does not show how low their costs could have been.
    lowest = min(limits[0], ratio, low) if degrees < units - 1 else min(limits[0], ratio)
    return Interval(lowest, max(limits[1], highest), "bootstrap-t-log", units)


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


def log_standard_deviation(costs: Floats, attempts: Integers) -> float:
    """Standard deviation of the logs of the units' mean costs; 0 for fewer than three units with a cost above 0.

    >>> round(log_standard_deviation(np.array([1.0, 10.0, 100.0]), np.array([1, 1, 1])), 3)
    2.303
    """
    logs = _log_mean_costs(costs, attempts)
    return float(np.std(logs, ddof=1)) if len(logs) > 2 else 0.0


def bootstrap_t(costs: Floats, passes: Floats, settings: IntervalSettings) -> tuple[float, float] | None:
    """Studentised bootstrap limits (Hall 1988) of cost over passes; None with too few units or passes to resample.

    Units are resampled in their order, which must not depend on the order of rows.
    """
    if len(costs) < MIN_UNITS or not passes.any():
        return None
    groups = resampling_groups(np.arange(len(costs)), settings)
    cost, passed = (np.bincount(groups, weights=each).astype(np.float64) for each in (costs, passes))
    error = math.sqrt(float(_log_ratio_variance(*_moments(cost, passed).sum(axis=0)[:, None]).item()))
    ratio = math.log(math.fsum(cost) / math.fsum(passed))
    fewer = settings.model_copy(update={"replicates": min(_MAX_REPLICATES, settings.replicates)})
    chunks = [chunk.T for chunk in bootstrap_sums(_moments(cost, passed), fewer)]
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = np.concatenate(
            [(np.log(each[0] / each[1]) - ratio) / np.sqrt(_log_ratio_variance(*each)) for each in chunks]
        )
    never = np.concatenate([each[1] == 0 for each in chunks])
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
    """Upper limit of the cost of pass if the units' mean costs are lognormal (Zou et al. 2009); inf if none pass."""
    # Imported here because it takes longer than most of what uses it.
    from scipy.special import chdtri  # type: ignore[import-untyped]

    rate = math.fsum(passes) / int(attempts.sum())
    if rate == 0:
        return math.inf
    paid = costs > 0
    logs, sizes, passed = _log_mean_costs(costs, attempts), attempts[paid], passes[paid]
    units, middle = len(logs), float(np.median(logs))
    above = logs[logs > middle] - middle
    upper_half = math.fsum(above**2) / max(1, len(above)) * units / (units - 1)
    variance = min(upper_half, float(np.var(logs, ddof=1)), _weighted_variance(logs, sizes))
    # A unit moves the mean of the logs and the log of the pass rate together.
    residuals = adjusted_residuals(logs * sizes - passed / rate, sizes)
    mean_margin = (t_critical(degrees, settings.confidence) ** 2) * math.fsum(residuals**2)
    chi_squared = float(chdtri(units - 1, (1 + settings.confidence) / 2))
    variance_margin = (variance / 2 * ((units - 1) / chi_squared - 1)) ** 2
    share = int(sizes.sum()) / int(attempts.sum())
    lognormal_mean = math.fsum(logs * sizes) / int(sizes.sum()) + variance / 2 + math.log(share)
    centre = max(lognormal_mean, math.log(math.fsum(costs) / int(attempts.sum())))
    return math.exp(centre - math.log(rate) + math.sqrt(mean_margin + variance_margin))


def _weighted_variance(values: Floats, weights: Integers) -> float:
    """Variance with weights, unbiased for values of equal variance; for equal weights the ordinary one."""
    total = int(weights.sum())
    mean = math.fsum(values * weights) / total
    return math.fsum(weights * (values - mean) ** 2) / (total - math.fsum(weights.astype(np.float64) ** 2) / total)


def _log_mean_costs(costs: Floats, attempts: Integers) -> Floats:
    paid = costs > 0
    logs: Floats = np.log(costs[paid] / attempts[paid])
    return logs


def _moments(cost: Floats, passed: Floats) -> Floats:
    """The sums that make up the log of the ratio and its variance, a row per unit."""
    once = np.ones(len(cost))
    return np.stack([cost, passed, cost**2, cost * passed, passed**2, once], axis=1)


def _log_ratio_variance(
    cost: Floats, passed: Floats, cost_squares: Floats, products: Floats, pass_squares: Floats, units: Floats
) -> Floats:
    """Variance of the log of the ratio by the delta method: a unit adds its share of all cost minus that of passes."""
    squares = cost_squares / cost**2 - 2 * products / (cost * passed) + pass_squares / passed**2
    return np.maximum(0.0, squares) * units / (units - 1)


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
    share = min(1.0, part / whole)
    return Interval(max(0.0, min(lowest, share)), max(share, min(1.0, highest)), "mover", part_interval.units)
