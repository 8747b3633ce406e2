"""A planned design finds the difference it was planned for with the power it was planned for.

The simulation draws new problems with the assumed moments, changes one model's pass rates by exactly the difference,
and takes the verdict of the project's own paired test. Marginal pass rates are Beta distributed; the second model's
equal the first's with probability `correlation`, else are drawn anew, which gives the assumed covariance. A problem
of a cluster has the cluster's pair of rates with probability sqrt(cluster_share), else its own.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import nightly_but
from tests.inference.test_detectable import changed, judged
from touchstone.errors import TouchstoneError
from touchstone.inference.planning import (
    Costs,
    Goal,
    assumed_population,
    attempts_needed,
    detectable,
    detectable_at_best,
    mixes,
    problems_needed,
)

Floats = NDArray[np.float64]

QUICK_RUNS, NIGHTLY_RUNS = 60, 1000


def pairs_of_rates(generator: np.random.Generator, rate: float, icc: float, correlation: float, many: int) -> Floats:
    concentration = 1 / icc - 1
    first, second = generator.beta(rate * concentration, (1 - rate) * concentration, (2, many))
    return np.stack([first, np.where(generator.random(many) < correlation, first, second)])


def share_found(
    rate: float, icc: float, correlation: float, effect: float, problems: int, attempts: int, runs: int,
    clusters: int | None = None, cluster_share: float = 0.0, zipf: bool = False,
) -> dict[str, float]:  # fmt: skip
    """How often a drop and a rise of that size are found."""
    generator = np.random.default_rng([problems, attempts, int(100 * rate), int(100 * icc), int(100 * correlation)])
    inside = None if clusters is None else np.arange(problems) % clusters
    if zipf and clusters is not None:
        shares = 1 / np.arange(1, clusters + 1)
        inside = np.searchsorted(np.cumsum(shares) / shares.sum(), (np.arange(problems) + 0.5) / problems)
    found = {}
    for words in ("worse", "better"):
        if changed(np.array([rate]), rate, effect, words) is None:
            continue
        hits = 0
        for _ in range(runs):
            rates = pairs_of_rates(generator, rate, icc, correlation, problems)
            if inside is not None and clusters is not None:
                common = pairs_of_rates(generator, rate, icc, correlation, clusters)[:, inside]
                rates = np.where(generator.random(problems) < math.sqrt(cluster_share), common, rates)
            rates[1] = changed(rates[1], rate, effect, words)
            passed = [generator.binomial(attempts, side) for side in rates]
            hits += judged(attempts, passed, None if inside is None else inside + 1).verdict == words
        found[words] = hits / runs
    return found


# Rate, icc, correlation and difference: rates near 0 and 1, little and much variance between problems, and differences
# so large that few problems are enough.
POPULATIONS = [
    (0.6, 0.4, 0.5, 0.1),
    (0.6, 0.4, 0.9, 0.1),
    (0.6, 0.8, 0.9, 0.1),
    (0.95, 0.4, 0.7, 0.05),
    (0.97, 0.1, 0.5, 0.05),
    (0.05, 0.3, 0.7, 0.06),
    (0.6, 0.95, 0.95, 0.1),
    (0.6, 0.4, 0.9, 0.3),
    (0.5, 0.1, 0.5, 0.4),
]


def assert_power(found: dict[str, float], runs: int) -> None:
    """The direction that is harder to find has the planned power of 0.8, give or take the formula's error."""
    slack = 3 * math.sqrt(0.8 * 0.2 / runs)
    assert 0.75 - slack <= min(found.values()) <= 0.87 + slack, found


@pytest.mark.parametrize(
    ("population", "attempts"), nightly_but([(POPULATIONS[4], 5)], itertools.product(POPULATIONS, [1, 5, 20])), ids=str
)
def test_a_planned_design_has_the_planned_power(
    population: tuple[float, float, float, float], attempts: int, request: pytest.FixtureRequest
) -> None:
    rate, icc, correlation, effect = population
    runs = NIGHTLY_RUNS if request.node.get_closest_marker("nightly") else QUICK_RUNS
    (problems,) = problems_needed(assumed_population(rate, icc, correlation), [attempts], Goal(effect))
    assert problems is not None
    found = share_found(rate, icc, correlation, effect, problems, attempts, runs)
    print(population, f"{problems} x {attempts}:", found)
    if problems <= 10:
        # A permutation test of so few problems has few possible p-values; the plan says so.
        assert min(found.values()) >= 0.7
    else:
        assert_power(found, runs)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("clusters", "share", "effect", "zipf"),
    [(12, 0.2, 0.15, False), (40, 0.3, 0.1, False), (40, 0.3, 0.15, True), (100, 0.2, 0.1, True)],
)
@pytest.mark.parametrize("attempts", [1, 5])
def test_so_has_one_in_clusters(clusters: int, share: float, effect: float, zipf: bool, attempts: int) -> None:
    """With sizes by Zipf's law, of differences planned for equal sizes, 62% to 70% are found."""
    sizes = 1 / np.arange(1, clusters + 1)
    cv = float(sizes.std() / sizes.mean()) if zipf else 0.0
    (problems,) = problems_needed(assumed_population(0.6, 0.4, 0.5, clusters, share, cv), [attempts], Goal(effect))
    assert problems is not None
    found = share_found(0.6, 0.4, 0.5, effect, problems, attempts, 500, clusters, share, zipf=zipf)
    print(f"{clusters} clusters, {problems} x {attempts}:", found)
    assert_power(found, 500)


def test_unequal_clusters_take_more_problems() -> None:
    equal, unequal = (assumed_population(0.6, 0.4, 0.5, 40, 0.2, cv) for cv in (0.0, 1.5))
    assert problems_needed(equal, [5], Goal(0.12))[0] < problems_needed(unequal, [5], Goal(0.12))[0]  # type: ignore[operator]
    # Kish: a hundred problems in ten clusters of 10, and as if in clusters of 10 (1 + 1.5^2).
    moments = [each.design(np.array([400]), np.array([5])) for each in (equal, unequal)]
    within = 2 * 0.24 * 0.6 / 5
    effects = [(400 * float(each.standard_error[0]) ** 2 - within) / equal.between for each in moments]
    assert effects == pytest.approx([1 + 9 * 0.2, 1 + (10 * 3.25 - 1) * 0.2])


def test_the_variance_is_the_textbooks() -> None:
    """Many problems, where t is normal and a drop of this size hardly changes the variance."""
    population, goal = assumed_population(0.5, 0.5, 0.5), Goal(0.02)
    between, within = 2 * 0.25 * 0.5 * 0.5, 2 * 0.25 * 0.5
    for attempts, problems in zip((1, 5, 20), problems_needed(population, (1, 5, 20), goal), strict=True):
        textbook = (1.959964 + 0.841621) ** 2 * (between + within / attempts) / 0.02**2
        assert problems == pytest.approx(textbook, rel=0.06)


def test_more_of_anything_finds_less_and_never_more() -> None:
    population, goal = assumed_population(0.6, 0.4, 0.7), Goal(0.05)
    problems, attempts = (part.ravel() for part in np.meshgrid([20, 50, 200, 1000], [1, 2, 5, 20]))
    effects = detectable(population, problems, attempts, goal).reshape(4, 4)
    assert (np.diff(effects, axis=0) < 0).all() and (np.diff(effects, axis=1) < 0).all()


@pytest.mark.services
def test_a_difference_on_few_problems_takes_more_of_them() -> None:
    population, goal = assumed_population(0.6, 0.4, 0.7), Goal(0.05)
    both, even = (problems_needed(population, (1, 5, 20), goal, on_few=few) for few in (True, False))
    assert all(more > fewer for more, fewer in zip(both[1:], even[1:], strict=True)) and both[0] >= even[0]
    found = mixes(population, (1, 5, 20), goal, Costs((0.1, 0.1), 1.0))
    assert [(mix.problems, mix.problems_if_even) for mix in found] == list(zip(both, even, strict=True))
    assert all(mix.reaches_goal and mix.detectable <= mix.detectable_on_few <= goal.effect for mix in found)
    assert attempts_needed(population, 500, goal, on_few=True) > attempts_needed(population, 500, goal)


def test_what_is_needed_is_just_enough() -> None:
    population, goal = assumed_population(0.6, 0.4, 0.7), Goal(0.05)
    for attempts, problems in zip((1, 5), problems_needed(population, (1, 5), goal), strict=True):
        assert problems is not None
        above, below = detectable(population, np.array([problems - 1, problems]), np.array([attempts] * 2), goal)
        assert below <= goal.effect < above


def test_attempts_alone_reach_only_so_far() -> None:
    population, goal = assumed_population(0.6, 0.4, 0.7), Goal(0.05)
    limit = detectable_at_best(population, 100, goal)
    assert limit is not None and limit > goal.effect and attempts_needed(population, 100, goal) is None
    few = attempts_needed(population, 100, Goal(limit * 1.2))
    assert few is not None and detectable(population, np.array([100]), np.array([few]), goal)[0] <= limit * 1.2


def test_problems_in_the_same_clusters_reach_only_so_far() -> None:
    population = assumed_population(0.6, 0.4, 0.5, clusters=12, cluster_share=0.3)
    assert problems_needed(population, [1, 20], Goal(0.03)) == [None, None]
    assert None not in problems_needed(assumed_population(0.6, 0.4, 0.5, 12, 0.0), [1, 20], Goal(0.03))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Goal(0), "a difference of 0 cannot"),
        (lambda: Goal(1.5), "a difference of 1.5 cannot"),
        (lambda: Goal(math.nan), "a difference of nan cannot"),
        (lambda: Goal(0.1, power=1), "a power of 1 is not possible"),
        (lambda: Goal(0.1, power=0.01), "a power of 0.01 is not possible"),
        (lambda: Goal(0.1, alpha=0), "a level of 0 is not usable"),
        (lambda: Goal(0.7).require_possible(0.6), "a difference of 0.7 is not possible"),
        (lambda: assumed_population(0, 0.4, 0.5), "a pass rate of 0 leaves nothing to vary"),
        (lambda: assumed_population(1, 0.4, 0.5), "a pass rate of 1 leaves nothing to vary"),
        (lambda: assumed_population(0.5, 1.4, 0.5), "the icc cannot be 1.4"),
        (lambda: assumed_population(0.5, 0.4, -2), "the correlation cannot be -2"),
        (lambda: assumed_population(0.5, 0.4, 0.5, clusters=1), "at least 2 clusters"),
    ],
)
def test_what_cannot_be_planned_is_one_line(wrong: Callable[[], object], words: str) -> None:
    with pytest.raises(TouchstoneError, match=words) as error:
        wrong()
    assert "\n" not in str(error.value)
