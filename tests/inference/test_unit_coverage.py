"""Coverage of the intervals over attempts in units: rates, medians, cost of pass, runs, uplift.

As in `test_coverage.py`, 95% intervals must cover the truth in 93% to 97% of runs, plus or minus three standard errors
of the simulation (2.1 points at 1,000 runs). They may cover it more often, never less: medians and their uplift up to
99%, because their limits are values of the data, and always if there are few distinct values; suites of a few problems,
whose variance is hardly known; and anything near an edge.
"""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from tests.inference.test_cluster_coverage import HIGHEST, assert_covered
from tests.inference.test_coverage import with_runs
from touchstone.config import IntervalSettings
from touchstone.inference.medians import Sample, median_interval, uplift_intervals
from touchstone.inference.ratios import cost_of_pass_interval
from touchstone.inference.uncertainty import unit_interval
from touchstone.metrics.suites import overall_interval

Floats = NDArray[np.float64]

RUNS, UPLIFT_RUNS = 1000, 500
SETTINGS = IntervalSettings(replicates=300)


@pytest.mark.nightly
@pytest.mark.parametrize(("easier", "problems"), list(itertools.product([0.0, 1.5], [15, 30, 100])))
def test_rates_of_attempts_where_problems_have_one_to_ten(easier: float, problems: int) -> None:
    generator = np.random.default_rng([problems, int(10 * easier)])
    truth = special.expit(easier + generator.normal(0, 1.5, 400_000)).mean()
    once = np.ones(problems, dtype=np.int64)
    found = []
    for _ in range(RUNS):
        sizes = generator.integers(1, 11, problems)
        passes = generator.binomial(sizes, special.expit(easier + generator.normal(0, 1.5, problems)))
        found.append(unit_interval(passes.astype(float), sizes, once, SETTINGS))
    assert_covered(found, truth)


def composites(generator: np.random.Generator, problems: int, n: int, easier: float = 1.0) -> Floats:
    """Half for passing and half for a judge's score, both after the same difficulty."""
    difficulty = easier + generator.normal(0, 1, (problems, 1))
    passed = generator.random((problems, n)) < special.expit(difficulty)
    return (passed + special.expit(difficulty + generator.normal(0, 0.7, (problems, n)))) / 2


@pytest.mark.parametrize(("problems", "n", "runs"), with_runs([(8, 5)], itertools.product([8, 30, 100], [1, 5, 20])))
def test_medians_of_composite_scores(problems: int, n: int, runs: int) -> None:
    generator = np.random.default_rng([problems, n])
    truth = float(np.median(composites(generator, 400_000, 1)))
    units, once = np.repeat(np.arange(problems), n), np.ones(problems * n, dtype=np.int64)
    found = [
        median_interval(Sample(composites(generator, problems, n).ravel(), units, once), SETTINGS) for _ in range(runs)
    ]
    assert_covered(found, truth, highest=0.99)


@pytest.mark.parametrize(("problems", "runs"), with_runs([(8,)], [(8,), (30,)]))
def test_medians_of_few_values(problems: int, runs: int) -> None:
    generator = np.random.default_rng(problems)
    units, once = np.repeat(np.arange(problems), 5), np.ones(problems * 5, dtype=np.int64)
    drawn = [np.round(4 * composites(generator, problems, 5).ravel()) / 4 for _ in range(runs)]
    assert_covered([median_interval(Sample(values, units, once), SETTINGS) for values in drawn], 0.75, highest=1)


@pytest.mark.nightly
@pytest.mark.parametrize(("problems", "n", "easier"), list(itertools.product([10, 30, 100], [1, 5], [-3, 0, 3])))
def test_cost_of_pass_where_hard_problems_cost_more(problems: int, n: int, easier: int) -> None:
    generator = np.random.default_rng([problems, n, easier + 3])

    def draw(count: int) -> tuple[Floats, Floats]:
        difficulty = generator.normal(0, 1, count)
        costs = np.exp(-0.3 * difficulty[:, None] + generator.normal(0, 0.6, (count, n)))
        return special.expit(easier + difficulty), costs

    chances, costs = draw(300_000)
    truth = costs.mean() / chances.mean()
    sizes = np.full(problems, n)
    found = []
    for _ in range(RUNS):
        chances, costs = draw(problems)
        passes = generator.binomial(n, chances).astype(float)
        found.append(cost_of_pass_interval(costs.sum(axis=1), sizes, passes, sizes, SETTINGS))
    assert_covered(found, truth, highest=HIGHEST if problems > 30 else 1)


SIZES = [[10, 10, 10], [40, 20, 80], [4] * 5, [3, 3, 30], [1, 1, 1, 20, 20]]


@pytest.mark.parametrize(("sizes", "n", "runs"), with_runs([([3, 3, 30], 1)], itertools.product(SIZES, [1, 5])))
def test_overall_scores_of_suites_that_differ(sizes: list[int], n: int, runs: int) -> None:
    generator = np.random.default_rng([*sizes, n])
    levels = np.linspace(-1, 1.5, len(sizes))
    truth = np.mean([special.expit(level + generator.normal(0, 1, 400_000)).mean() for level in levels])
    suites, units = np.repeat(np.arange(len(sizes)), sizes), np.arange(sum(sizes))
    found = []
    for _ in range(runs):
        chances = special.expit(levels[suites] + generator.normal(0, 1, len(units)))
        passes = generator.binomial(n, chances).astype(float)
        found.append(overall_interval(suites, units, passes, np.full(len(units), n), SETTINGS))
    assert_covered(found, float(truth), highest=HIGHEST if min(sizes) >= 10 else 1)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("problems", "others", "n"),
    [(40, 40, 1), (40, 40, 5), (72, 6, 1), (72, 6, 5), (6, 72, 1), (6, 72, 5), (8, 8, 5), (150, 150, 3)],
)
def test_uplift_of_tiers_with_problems_in_common(problems: int, others: int, n: int) -> None:
    generator = np.random.default_rng([problems, others, n])

    def draw(count: int) -> tuple[Floats, Floats]:
        difficulty = generator.normal(0, 1, (count, 1))
        noise = generator.normal(0, 0.7, (2, count, n))
        return special.expit(difficulty + noise[0]), special.expit(difficulty + 0.4 + noise[1])

    before, after = draw(200_000)
    truth = float(np.median(after) / np.median(before) - 1)
    found = []
    for _ in range(UPLIFT_RUNS):
        drawn = zip(draw(max(problems, others)), (problems, others), strict=True)
        sides = [
            Sample(side[:count].ravel(), np.repeat(np.arange(count), n), np.ones(count * n, dtype=np.int64))
            for side, count in drawn
        ]
        found += uplift_intervals(sides[0], sides[1:], SETTINGS)
    assert_covered(found, truth, highest=0.99)
