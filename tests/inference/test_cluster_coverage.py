"""Coverage of intervals over clusters of unequal size.

95% intervals must cover the truth in 93% to 97% of runs, plus or minus three standard errors of the simulation. If the
problems of a cluster are uncorrelated, up to 97.5% is allowed: with clusters of very unequal size that is the coverage
of Bell and McCaffrey's degrees of freedom themselves, with normal data (97.1% for the sizes of SWE-bench Verified,
97.5% for one big cluster; a correlation of 0.05 brings both below 96%). `make test-nightly` runs the whole table; the
quick suite has cells that failed with the classic factor G / (G - 1) and G - 1 degrees of freedom, and with
Fieller's interval for skewed costs.
"""

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from tests.conftest import nightly_but
from tests.inference.cluster_simulation import SIZES, Population
from tests.inference.scalar_intervals import difference_interval
from touchstone.config import IntervalSettings
from touchstone.inference.medians import Sample, median_interval
from touchstone.inference.ratios import cost_of_pass_interval
from touchstone.inference.uncertainty import Interval, UnitHistogram, unit_interval

SETTINGS = IntervalSettings(replicates=300)
QUICK_RUNS, NIGHTLY_RUNS = 400, 4000
LOWEST, HIGHEST, HIGHEST_UNCORRELATED, ERRORS = 0.93, 0.97, 0.975, 3

CORRELATIONS = [0.0, 0.3, 1.0]


def runs_of(request: pytest.FixtureRequest) -> int:
    return NIGHTLY_RUNS if request.node.get_closest_marker("nightly") else QUICK_RUNS


def coverage(found: Iterable[Interval], truth: float) -> tuple[float, int]:
    covered = [each.low is not None and each.high is not None and each.low <= truth <= each.high for each in found]
    return float(np.mean(covered)), len(covered)


def assert_covered(found: Iterable[Interval], truth: float, highest: float = HIGHEST, lowest: float = LOWEST) -> None:
    share, runs = coverage(found, truth)
    slack = ERRORS * np.sqrt(0.95 * 0.05 / runs)
    print(f"coverage {share:.3f} in {runs} runs")
    assert lowest - slack <= share <= highest + slack


def means(population: Population, runs: int) -> Iterator[Interval]:
    once = np.ones(len(population.sizes), dtype=np.int64)
    for sums in population.mean_runs(runs, 1):
        yield unit_interval(sums, population.sizes, once, SETTINGS)


def differences(population: Population, runs: int) -> Iterator[Interval]:
    once = np.ones(len(population.sizes), dtype=np.int64)
    for each in population.difference_runs(runs, 2):
        units = UnitHistogram.of(np.add.reduceat(each, population.starts), population.sizes, once)
        assert units is not None
        yield difference_interval(units, 0.95)


def medians(population: Population, runs: int) -> Iterator[Interval]:
    once = np.ones(len(population.clusters), dtype=np.int64)
    for scores in population.score_runs(runs, 3):
        yield median_interval(Sample(scores, population.clusters, once), SETTINGS)


def costs(population: Population, runs: int, log_standard_deviation: float) -> Iterator[Interval]:
    sizes, starts = population.sizes, population.starts
    for spent, rates in population.cost_runs(runs, 4, log_standard_deviation):
        cost, passes = np.add.reduceat(spent, starts), np.add.reduceat(rates, starts)
        yield cost_of_pass_interval(cost, sizes, passes, sizes, SETTINGS)


def test_one_cluster_with_most_of_the_problems_makes_the_interval_wide() -> None:
    """Four of five problems in one cluster: the classic formula covers 16% to 36% and is 0.1 wide."""
    population = Population(np.array([200] + [1] * 50), correlation=0.3)
    found = list(differences(population, QUICK_RUNS))
    assert_covered(found, population.true_difference, highest=1)
    assert np.median([each.high - each.low for each in found]) > 0.2  # type: ignore[operator]


FIGURES = {
    "mean": (means, "true_mean"),
    "difference": (differences, "true_difference"),
    "median": (medians, "true_median"),
}


@pytest.mark.parametrize(
    ("name", "correlation"), nightly_but([("SWE-bench-like", 0.3)], itertools.product(SIZES, CORRELATIONS))
)
@pytest.mark.parametrize("figure", FIGURES)
def test_coverage(figure: str, name: str, correlation: float, request: pytest.FixtureRequest) -> None:
    population = Population(SIZES[name], correlation)
    intervals, truth = FIGURES[figure]
    highest = HIGHEST if correlation else HIGHEST_UNCORRELATED
    assert_covered(intervals(population, runs_of(request)), getattr(population, truth), highest)


@pytest.mark.parametrize(
    ("name", "correlation", "log_standard_deviation"),
    nightly_but([("SWE-bench-like", 0.3, 0.5)], itertools.product(SIZES, CORRELATIONS, [0.5, 1.0, 1.5])),
)
def test_coverage_of_costs(
    name: str, correlation: float, log_standard_deviation: float, request: pytest.FixtureRequest
) -> None:
    population = Population(SIZES[name], correlation)
    found = costs(population, runs_of(request) // 2, log_standard_deviation)
    highest = HIGHEST if correlation else HIGHEST_UNCORRELATED
    assert_covered(found, population.true_cost_of_pass(log_standard_deviation), highest)


@pytest.mark.parametrize(
    ("problems", "log_standard_deviation"),
    nightly_but([(15, 2.0)], itertools.product([10, 15, 30, 100], [0.5, 1.0, 1.5, 2.0])),
)
def test_coverage_of_costs_without_clusters(
    problems: int, log_standard_deviation: float, request: pytest.FixtureRequest
) -> None:
    """Fieller's interval covers 82% of skewed costs with 30 problems, 87% with 100, 67% with 15."""
    population = Population(np.ones(problems, dtype=np.int64), correlation=0.0)
    found = costs(population, runs_of(request) // 2, log_standard_deviation)
    assert_covered(found, population.true_cost_of_pass(log_standard_deviation))
