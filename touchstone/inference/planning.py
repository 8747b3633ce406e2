"""How many problems and attempts a paired comparison needs: the design whose minimum detectable effect is small enough.

A design has P problems, which both models attempt m times each. The variance of the mean difference is

    (B d + W / m) / P

B is the variance between problems of the true difference, W the sum over both models of the mean variance of an
attempt, E p (1 - p), and d the design effect of clusters, 1 + (s - 1) c for s problems per cluster, of whose variance
the share c belongs to the cluster. More attempts shrink only the second term. What such a design can detect follows
from the same equation as the minimum detectable effect of a finished comparison, `detectable`: only the moments are
those of the design instead of the data. Estimating them from data belongs in `touchstone.comparison.planning`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from touchstone.errors import TouchstoneError
from touchstone.inference.arrays import Booleans, Floats, Integers
from touchstone.inference.detectable import minimum_detectable_effects, units_needed
from touchstone.inference.paired_moments import PairMoments

# With fewer problems, or clusters of them, a permutation test has too few possible p-values for the formula to hold.
FEWEST_UNITS = 10
MOST_PROBLEMS = 10_000_000
MOST_ATTEMPTS = 10_000


@dataclass(frozen=True)
class Population:
    """The problems and the two models that a comparison is about.

    `rate` is the mean pass rate of both. `between` is B, and `covariance` that of the two models' rates over problems.
    `between` and `unit_covariance`, the covariance between clusters per problem, include what the problems of a cluster
    share. `attempt_variance` is W; None if B includes it, because each problem has one attempt.
    `unit_size` is the number of problems per degree of freedom, `cluster_size` that per cluster. In `clusters` of a
    fixed number, more problems are more problems per cluster. `estimated_from` so many units; infinitely many if all
    this is assumed.
    """

    rate: float
    between: float
    covariance: float
    attempt_variance: float | None
    unit_covariance: float | None = None
    unit_size: float = 1.0
    cluster_size: float = 1.0
    clusters: int | None = None
    cluster_share: float = 0.0
    estimated_from: float = math.inf

    def design(self, problems: Integers, attempts: Integers) -> PairMoments:
        """The moments that are expected of these designs."""
        size: Floats = np.full(len(problems), self.cluster_size)
        effect: Floats = np.ones(len(problems))
        if self.clusters is not None:
            size = np.maximum(1.0, problems / self.clusters)
            effect = 1 + (size - 1) * self.cluster_share
        units = np.maximum(1, np.rint(problems / size)).astype(np.int64)
        degrees = units - 1.0 if self.clusters is not None else np.minimum(problems / self.unit_size, units) - 1
        variance = self.between * effect + (self.attempt_variance or 0.0) / attempts
        nothing = np.zeros(len(problems))
        rates = np.full(len(problems), self.rate)
        return PairMoments(
            problems=problems,
            units=units,
            wins=units,
            losses=units,
            rate_a=rates,
            rate_b=rates,
            difference=nothing,
            standard_error=np.sqrt(variance / problems),
            degrees=np.where(degrees > 0, degrees, np.nan),
            evidence=nothing,
            absolute=nothing,
            squares=nothing,
            differing=units,
            scatter=problems.astype(np.float64),
            problem_scatter=problems.astype(np.float64),
            product=rates**2 + self.covariance,
            between_units=(self.covariance if self.unit_covariance is None else self.unit_covariance) * effect,
            inverse_a=1 / attempts,
            inverse_b=1 / attempts,
            step=1 / attempts,
        )


@dataclass(frozen=True)
class Goal:
    """The true difference in pass@1 to be found, with which probability, by a test at which level."""

    effect: float
    power: float = 0.8
    alpha: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.effect < 1:
            raise TouchstoneError(f"a difference of {self.effect:g} cannot be planned for; give one between 0 and 1")
        if not 0 < self.alpha < 0.5:
            raise TouchstoneError(f"a level of {self.alpha:g} is not usable; give one between 0 and 0.5, such as 0.05")
        if not self.alpha < self.power < 1:
            raise TouchstoneError(
                f"a power of {self.power:g} is not possible; give one between the level ({self.alpha:g}) and 1"
            )

    def require_possible(self, rate: float) -> None:
        """Refuse a difference that no model could have."""
        if self.effect > max(rate, 1 - rate):
            raise TouchstoneError(
                f"a difference of {self.effect:g} is not possible: from a pass rate of {rate:.3g} it would leave 0 to 1"
            )


def assumed_population(
    rate: float, icc: float, correlation: float, clusters: int | None = None, cluster_share: float = 0.0
) -> Population:
    """Two models with the same mean pass rate, about which only assumptions exist.

    `icc` is the intraclass correlation of attempts at a problem: the share of the variance of an attempt that is
    between problems. `correlation` is that of the two models' pass rates over problems.

    >>> assumed_population(0.6, 0.4, 0.5).between, round(assumed_population(0.6, 0.4, 0.5).attempt_variance, 3)
    (0.096, 0.288)
    """
    if not 0 < rate < 1:
        raise TouchstoneError(f"a pass rate of {rate:g} leaves nothing to vary; give one between 0 and 1")
    for name, value, lowest in (("icc", icc, 0), ("correlation", correlation, -1), ("cluster share", cluster_share, 0)):
        if not lowest <= value <= 1:
            raise TouchstoneError(f"the {name} cannot be {value:g}; give a number from {lowest} to 1")
    if clusters is not None and clusters < 2:
        raise TouchstoneError("a comparison needs at least 2 clusters")
    whole = rate * (1 - rate)
    return Population(
        rate,
        between=2 * whole * icc * (1 - correlation),
        covariance=whole * icc * correlation,
        attempt_variance=2 * whole * (1 - icc),
        clusters=clusters,
        cluster_share=cluster_share,
    )


def detectable(
    population: Population, problems: Integers, attempts: Integers, goal: Goal, *, on_few: bool = False
) -> Floats:
    """The smallest difference that each design finds with the goal's power, spread evenly or also `on_few` problems.

    NaN if there is none.
    """
    moments = population.design(problems, attempts)
    settings = (goal.alpha, goal.power, 1 - goal.alpha, population.estimated_from)
    effects, _ = minimum_detectable_effects(moments, *settings)
    return np.maximum(effects, minimum_detectable_effects(moments, *settings, on_few=True)[0]) if on_few else effects


def problems_needed(
    population: Population, attempts: Sequence[int], goal: Goal, *, on_few: bool = False
) -> list[int | None]:
    """The fewest problems with which each number of attempts per problem reaches the goal; None if no number does."""
    m = np.asarray(attempts, dtype=np.int64)
    fewest = max(units_needed(goal.alpha), math.ceil(FEWEST_UNITS * population.cluster_size))
    low, high = np.full(len(m), fewest - 1), np.full(len(m), MOST_PROBLEMS)
    return _fewest(low, high, lambda problems: detectable(population, problems, m, goal, on_few=on_few), goal)


def attempts_needed(population: Population, problems: int, goal: Goal, *, on_few: bool = False) -> int | None:
    """The fewest attempts per problem with which so many problems reach the goal; None if no number does."""
    low, high = np.array([0]), np.array([MOST_ATTEMPTS])
    many = np.array([problems])
    return _fewest(low, high, lambda m: detectable(population, many, m, goal, on_few=on_few), goal)[0]


def detectable_at_best(population: Population, problems: int, goal: Goal, *, on_few: bool = False) -> float | None:
    """The difference that so many problems detect with unlimited attempts; None if there is none."""
    return _known(detectable(population, np.array([problems]), np.array([MOST_ATTEMPTS]), goal, on_few=on_few))


def _known(effects: Floats) -> float | None:
    return None if math.isnan(effects[0]) else float(effects[0])


@dataclass(frozen=True)
class Costs:
    """Dollars for an attempt by each of the two models, and for a problem that is new; None if not known."""

    attempts: tuple[float, float] | None = None
    problem: float = 0.0

    def of(self, problems: int, attempts: int) -> float | None:
        """The cost of a design.

        >>> Costs((0.25, 0.5), problem=2.0).of(problems=100, attempts=5)
        575.0
        """
        return None if self.attempts is None else problems * (self.problem + attempts * math.fsum(self.attempts))


@dataclass(frozen=True)
class Mix:
    """A number of attempts per problem and model, and the problems that it takes; None if no number is enough.

    They are enough for a difference on few problems, too; `problems_if_even` only if it is spread evenly.
    `total_attempts` are those of both models together. `detectable` is what the design finds with the goal's power if
    it is spread evenly, `detectable_on_few` wherever it is.
    """

    attempts_per_problem: int
    problems: int | None
    total_attempts: int | None = None
    cost_usd: float | None = None
    detectable: float | None = None
    reaches_goal: bool = False
    cheapest: bool = False
    problems_if_even: int | None = None
    detectable_on_few: float | None = None


def mixes(
    population: Population, attempts: Sequence[int], goal: Goal, costs: Costs, problems: int | None = None
) -> list[Mix]:
    """Each number of attempts per problem with the problems that it takes, or with a fixed number of problems."""
    many, even = (
        problems_needed(population, attempts, goal, on_few=on_few) if problems is None else [problems] * len(attempts)
        for on_few in (True, False)
    )
    found = [
        replace(_mix(population, each, m, goal, costs), problems_if_even=fewer)
        for m, each, fewer in zip(attempts, many, even, strict=True)
    ]
    priced = [mix for mix in found if mix.reaches_goal and mix.cost_usd is not None]
    best = min(priced, key=lambda mix: (mix.cost_usd, mix.total_attempts), default=None)
    return [replace(mix, cheapest=mix is best) for mix in found]


def _mix(population: Population, problems: int | None, attempts: int, goal: Goal, costs: Costs) -> Mix:
    if problems is None:
        return Mix(attempts, None)
    even, on_few = (
        _known(detectable(population, np.array([problems]), np.array([attempts]), goal, on_few=on_few))
        for on_few in (False, True)
    )
    reaches = on_few is not None and on_few <= goal.effect
    total, cost = 2 * problems * attempts, costs.of(problems, attempts)
    return Mix(attempts, problems, total, cost, even, reaches, detectable_on_few=on_few)


def _fewest(low: Integers, high: Integers, effects: Callable[[Integers], Floats], goal: Goal) -> list[int | None]:
    """The least numbers above `low` that reach the goal, by bisection; None if `high` does not."""

    def reached(numbers: Integers) -> Booleans:
        with np.errstate(invalid="ignore"):
            return np.asarray(effects(numbers) <= goal.effect)

    possible = reached(high)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        enough = reached(np.maximum(middle, 1))
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return [int(number) if can else None for number, can in zip(high, possible, strict=True)]
