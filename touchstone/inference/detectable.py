"""Minimum detectable effect: the true difference that a repetition with new attempts would find with the given power.

A difference changes the scatter that it has to stand out from: problems that are passed more often have more to lose,
and attempts vary most where passing is a toss-up. So the effect solves an equation, its error being that under the
alternative: the observed one and what a drop in proportion to each problem's pass rate adds to it, or a rise in
proportion to what is missing. The larger of the two effects is told; a drop below 0 or a rise above 1 cannot be, and
leaves the other. It is null where neither could be seen. What decided is told with it:

- `t`: that equation, with t quantiles for the level and the power, CR2 errors and Bell-McCaffrey degrees of freedom.
- `wilson`: no unit deviates from the mean, or fewer units differ than a rejection takes, and the error has a floor. The
  share of units that differ is replaced by its upper Wilson bound, their size by an average with one unit that
  differs entirely.
- `flips`: no test of signs can reject on fewer than 1 + log2(1 / alpha) units (6 at 0.05), which must each differ by
  an attempt at least.

In simulation (30, 100 and 500 problems, 1, 5 and 20 attempts, Beta(1, 1), (2, 5), (8, 1) and (0.5, 0.5) difficulties,
800 runs each) 76% to 87% find it with a power of 0.8, and at least 99% find twice as much. A single direction has
73% (30 easy problems, 20 attempts) to 95%. Where next to nothing fails, it errs to the safe side: 77% to 100%.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from touchstone.inference.cluster_robust import ClusterRobustError
from touchstone.inference.paired_units import Floats, PairedUnits
from touchstone.inference.uncertainty import t_critical, wilson

_BISECTIONS = 40
# A scatter per problem below this is rounding: all units agree.
_NO_SCATTER = 1e-24


@dataclass(frozen=True)
class PassRateMoments:
    """What is known of the problems' pass rates p, taking both sides together.

    `mean` is E p and `square` E p^2. `shared` is the variance between units of their sums of p, per problem: E p^2 -
    (E p)^2 where problems stand alone. Products of one side's rates with the other's have no bias from the luck of
    few attempts, not even of one. `luck` is the mean of 1 / n on the side with fewer attempts.
    """

    mean: float
    square: float
    shared: float
    luck: float

    def turned(self) -> "PassRateMoments":
        """The same of failing."""
        return PassRateMoments(1 - self.mean, 1 - 2 * self.mean + self.square, self.shared, self.luck)

    def added(self) -> tuple[float, float]:
        """What a drop in proportion adds to the variance of a problem's difference, per drop squared and per drop.

        Losing the share f of each rate makes it vary by f^2 between problems, and turns E p (1 - p) into
        (1 - f) E p - (1 - f)^2 E p^2; the drop is f E p.
        """
        squared = (self.shared - self.square * self.luck) / self.mean**2
        return squared, (2 * self.square - self.mean) * self.luck / self.mean


def pass_rate_moments(problems: PairedUnits, units: PairedUnits, luck: float) -> PassRateMoments:
    """Pass rates seen through both sides: `problems` are the units before they are put together in clusters."""
    mean_a, mean_b = problems.mean(problems.a), problems.mean(problems.b)
    mean = (mean_a + mean_b) / 2
    parts = problems.a / problems.denominator * (problems.b / problems.denominator)
    square = math.fsum(parts * problems.counts) / problems.problems
    off_a = units.a / units.denominator - mean_a * units.sizes
    off_b = units.b / units.denominator - mean_b * units.sizes
    shared = math.fsum(off_a * off_b * units.counts) / units.problems
    return PassRateMoments(mean, max(square, mean**2), max(0.0, shared), luck)


def residual_sum_of_squares(units: PairedUnits, mean: float) -> float:
    """Sum of the units' squared residuals; 0 where they are only roundings."""
    scatter = math.fsum(units.counts * (units.sums / units.denominator - mean * units.sizes) ** 2)
    return scatter if scatter > _NO_SCATTER * units.problems else 0.0


def units_needed(alpha: float) -> int:
    """How many units a test of signs needs to reject at this level, where all differ in the same direction.

    >>> units_needed(0.05), units_needed(0.05 / 3)
    (6, 7)
    """
    return math.ceil(1 - math.log2(alpha))


def minimum_detectable_effect(
    units: PairedUnits,
    robust: ClusterRobustError,
    chances: PassRateMoments,
    step: float,
    alpha: float,
    power: float,
    confidence: float,
) -> tuple[float | None, str | None]:
    """Minimum detectable effect at this level, and what decided it. `step` is the worth of one attempt."""
    needed = units_needed(alpha)
    if needed > units.total:
        return None, None
    reach = _required_standard_errors(robust.degrees_of_freedom, units.total, alpha, power)
    error, floor = robust.error, _error_floor(units, needed, confidence)
    found = [_solve_effect(side, error, floor, reach, step, units.problems) for side in (chances, chances.turned())]
    effect = max((one for one in found if one is not None), default=None)
    if effect is None:
        return None, None
    least = _required_share(units.total, needed, power) * step * units.total / units.problems
    if least > effect:
        return (least, "flips") if least <= 1 else (None, None)
    floored = step / units.problems + reach * floor
    return effect, "wilson" if math.isclose(effect, floored, rel_tol=1e-9) else "t"


def _required_standard_errors(degrees: float, units: int, alpha: float, power: float) -> float:
    """How many standard errors, as estimated here, an effect must have to be found with this power.

    The textbook's sum of two t quantiles takes the estimate for the truth. With few units it is not: averaged over
    estimates that are too small and too large, the power would fall short (to 70% where 80% was meant, for 8 clusters).
    So the sum is increased by what that takes for units of equal size.
    """
    tails = [t_critical(freedom, 1 - alpha) for freedom in (degrees, units - 1)]
    powers = [math.copysign(t_critical(freedom, abs(2 * power - 1)), power - 0.5) for freedom in (degrees, units - 1)]
    return (tails[0] + powers[0]) * _corrected_multiple(units - 1, tails[1], power) / (tails[1] + powers[1])


def _corrected_multiple(degrees: int, critical: float, power: float) -> float:
    """The x for which P(Z > critical * s - x * s') is the power: s the error of the test, s' the estimate from before.

    Both are chi variables over the root of their degrees of freedom, with mean c and variance 1 - c^2, and the
    difference is taken to be normal: (x - critical) c = z sqrt(1 + (1 - c^2) (critical^2 + x^2)).
    """
    c = math.sqrt(2 / degrees) * math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2))
    z, variance = NormalDist().inv_cdf(power), 1 - c * c
    leading = c * c - z * z * variance
    if leading <= 0:
        return math.inf
    constant = (c * critical) ** 2 - z * z * (1 + variance * critical**2)
    root = math.sqrt(max(0.0, (c * c * critical) ** 2 - leading * constant))
    return (c * c * critical + math.copysign(root, z)) / leading


def _solve_effect(
    chances: PassRateMoments, error: float, floor: float, reach: float, step: float, problems: int
) -> float | None:
    """The drop in proportion that stands out from the error it has itself; null where no rate is so high.

    The test counts ties as extreme, which costs it half of the distance between two possible sums.
    """
    low, high = 0.0, chances.mean
    if high == 0:
        return None
    squared, plain = (part / problems for part in chances.added())

    def short(effect: float) -> bool:
        added = max(0.0, (squared * effect + plain) * effect)
        return step / problems + reach * max(floor, math.sqrt(error * error + added)) > effect

    if short(high):
        return None
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if short(middle) else (low, middle)
    return high


def _error_floor(units: PairedUnits, needed: int, confidence: float) -> float:
    """The least standard error to be believed: from Wilson's upper bound where too little differs, else 0."""
    total, problems, sums = units.total, units.problems, units.sums
    mean = units.mean(sums)
    scatter = residual_sum_of_squares(units, mean)
    differing = int(units.counts[sums != 0].sum())
    if scatter > 0 and differing >= needed:
        return 0.0
    if scatter == 0:
        moment = wilson(0.0, total, confidence)[1] * (1 + abs(mean)) ** 2
    else:
        scaled: Floats = sums / units.denominator * total / problems
        size = (math.fsum(units.counts * scaled**2) + 1) / (differing + 1)
        moment = wilson(differing / total, total, confidence)[1] * size
    return math.sqrt(moment / total)


@lru_cache(maxsize=1024)
def _required_share(total: int, needed: int, power: float) -> float:
    """The chance that each of `total` units must have for `needed` of them to come about with the given power."""
    ways = [math.log(math.comb(total, some)) for some in range(needed)]

    def missed(share: float) -> float:
        hit, miss = math.log(share), math.log1p(-share)
        return math.fsum(math.exp(way + some * hit + (total - some) * miss) for some, way in enumerate(ways))

    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if missed(middle) > 1 - power else (low, middle)
    return high
