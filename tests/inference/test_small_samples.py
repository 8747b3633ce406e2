"""Intervals of few problems, near 0 and 1, and of heavy tails: what holds, and the limits that the docs state.

At least 93% of 95% intervals must cover the truth, less three standard errors of the simulation, except where
`docs/statistics.md` says that they do not.
"""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from tests.inference.test_cluster_coverage import assert_covered
from touchstone.config import IntervalSettings
from touchstone.inference.medians import Sample, uplift_intervals
from touchstone.inference.ratios import cost_of_pass_interval
from touchstone.inference.uncertainty import unit_interval, wilson
from touchstone.metrics.suites import overall_interval

Floats = NDArray[np.float64]

RUNS = 1000
SETTINGS = IntervalSettings(replicates=300)


def passes(generator: np.random.Generator, rates: Floats, attempts: int, icc: float) -> Floats:
    """Passes per problem, of which each has this mean pass rate; one attempt has no variance within the problem."""
    each = rates if attempts == 1 else generator.beta(rates * (1 / icc - 1), (1 - rates) * (1 / icc - 1))
    return generator.binomial(attempts, each).astype(np.float64)


@pytest.mark.nightly
@pytest.mark.parametrize("attempts", [1, 5])
@pytest.mark.parametrize(
    ("sizes", "rates"),
    [
        *itertools.product([(2, 2, 200), (2, 200), (3, 3, 3), (4, 4, 100), (5, 200)], [(0.95,), (0.5,), (0.99,)]),
        ((2, 200), (0.3, 0.02)),
        ((2, 2, 200), (0.7, 0.7, 0.95)),
        ((4, 4, 100), (0.1, 0.99, 0.5)),
        ((10, 10, 10), (0.3, 0.8, 0.5)),
    ],
)
def test_runs_with_suites_of_a_few_problems(sizes: tuple[int, ...], rates: tuple[float, ...], attempts: int) -> None:
    generator = np.random.default_rng([*sizes, attempts, int(1000 * rates[0])])
    suites, units = np.repeat(np.arange(len(sizes)), sizes), np.arange(sum(sizes))
    means = np.broadcast_to(rates, len(sizes))
    tried = np.full(len(units), attempts)
    drawn = (passes(generator, means[suites], attempts, 0.5) for _ in range(RUNS))
    found = (overall_interval(suites, units, sums, tried, SETTINGS) for sums in drawn)
    assert_covered(found, float(means.mean()), highest=1)


@pytest.mark.nightly
@pytest.mark.parametrize("problems", [6, 9, 15, 40])
@pytest.mark.parametrize(("before", "after"), [(0.45, 0.55), (0.55, 0.45), (0.3, 0.7)])
def test_uplift_where_scores_are_near_0_and_1(before: float, after: float, problems: int, runs: int = 300) -> None:
    """One attempt per problem, and nearly half of the scores on either side: the median is on the edge of a gap."""
    generator = np.random.default_rng([problems, int(100 * before)])

    def scores(share: float, difficulty: Floats) -> Floats:
        good = special.ndtr((difficulty + generator.normal(0, 1, len(difficulty))) / np.sqrt(2)) < share
        return np.where(good, 0.95, 0.05) + generator.normal(0, 0.01, len(difficulty))

    many = generator.normal(0, 1, 300_000)
    truth = np.median(scores(after, many)) / np.median(scores(before, many)) - 1
    found = []
    for _ in range(runs):
        difficulty = generator.normal(0, 1, problems)
        one, other = (
            Sample(scores(share, difficulty), np.arange(problems), np.ones(problems, dtype=np.int64))
            for share in (before, after)
        )
        found += uplift_intervals(one, [other], SETTINGS)
    assert_covered(found, float(truth), highest=1)


# The known limits of `docs/statistics.md`: at least so often is the truth inside.


@pytest.mark.parametrize(("problems", "rate", "least"), [(12, 0.01, 0.88), (12, 0.99, 0.88), (8, 0.02, 0.85)])
def test_known_limit_of_rates_next_to_0_and_1(problems: int, rate: float, least: float) -> None:
    """Exact: where hardly a fifth of a pass or failure is expected, a single one moves Wilson's interval off."""
    passed = np.arange(problems + 1)
    ends = np.array([wilson(float(each), problems, 0.95) for each in passed / problems])
    held = (ends[:, 0] <= rate) & (rate <= ends[:, 1])
    chances = special.comb(problems, passed) * rate**passed * (1 - rate) ** (problems - passed)
    assert least <= chances[held].sum() < 0.93


def pareto(generator: np.random.Generator, problems: int) -> Floats:
    return 1 + generator.pareto(1.5, problems)


def half_free(generator: np.random.Generator, problems: int) -> Floats:
    return generator.lognormal(0, 1.5, problems) * (generator.random(problems) < 0.5)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("draw", "mean", "problems", "least"),
    [(pareto, 3.0, 30, 0.89), (pareto, 3.0, 300, 0.89), (half_free, np.exp(1.5**2 / 2) / 2, 30, 0.92)],
)
def test_known_limit_of_costs(
    draw: Callable[[np.random.Generator, int], Floats], mean: float, problems: int, least: float
) -> None:
    generator = np.random.default_rng(problems)
    once = np.ones(problems, dtype=np.int64)
    found = []
    for _ in range(RUNS):
        passed = (generator.random(problems) < 0.6).astype(np.float64)
        found.append(cost_of_pass_interval(draw(generator, problems), once, passed, once, SETTINGS))
    assert_covered(found, mean / 0.6, highest=1, lowest=least)


@pytest.mark.nightly
def test_known_limit_of_many_clusters_by_zipfs_law() -> None:
    """All problems of a cluster pass or fail together."""
    generator = np.random.default_rng(200)
    sizes = np.ceil(1000 / np.arange(1, 201)).astype(np.int64)
    once = np.ones(len(sizes), dtype=np.int64)
    drawn = (sizes * (generator.random(len(sizes)) < 0.8) for _ in range(RUNS))
    found = (unit_interval(sums.astype(np.float64), sizes, once, SETTINGS) for sums in drawn)
    assert_covered(found, 0.8, highest=1, lowest=0.88)
