"""Coverage of the intervals of means and differences, by simulation with a fixed seed per cell.

The truth is the mean over the population that the problems are sampled from. 95% intervals must cover it in 93% to 97%
of runs, plus or minus three standard errors of the simulation: 1.7 points at 1,500 runs, and 3.3 at the 400 that some
cells have by day. If the truth is beyond 0.93 or below 0.07, or two models hardly differ, they may cover it more often,
because thirty problems that all pass cannot tell "always" from "almost always"; never less often.

Medians, ratios and the intervals of tiers and runs are in `test_unit_coverage.py`.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from tests.conftest import nightly_but
from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Floats
from touchstone.inference.paired_intervals import difference_limits
from touchstone.inference.uncertainty import BOOTSTRAP_FROM, Interval, mean_interval
from touchstone.metrics.pass_at_k import pass_at_k_of_counts

Ends = tuple[Floats, Floats]

LOWEST, HIGHEST, ERRORS = 0.93, 0.97, 3
QUICK_RUNS, RUNS = 400, 1500
# The bootstrap takes longer: fewer runs, and fewer replicates.
BOOTSTRAP_RUNS = 150
SETTINGS = IntervalSettings(replicates=300)


@dataclass(frozen=True)
class Difficulty:
    """Pass rates from Beta(a, b), except for a share of impossible problems."""

    a: float
    b: float
    impossible: float = 0.0

    def draw(self, generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
        return generator.beta(self.a, self.b, shape) * (generator.random(shape) >= self.impossible)

    def truth(self, k: int) -> float:
        failing = np.exp(special.betaln(self.a, self.b + k) - special.betaln(self.a, self.b))
        return float((1 - self.impossible) * (1 - failing))


DIFFICULTIES = {
    "uniform": Difficulty(1, 1),
    "all or nothing": Difficulty(0.5, 0.5),
    "hard": Difficulty(2, 5),
    "easy": Difficulty(8, 1),
    "a third impossible": Difficulty(2, 2, impossible=0.3),
}


# Attempts and k: a single attempt tells pass@1 only.
SAMPLES = [(1, 1), *itertools.product([5, 20, 50], [1, 5])]
CELLS = [(name, problems, *pair) for name, problems, pair in itertools.product(DIFFICULTIES, [30, 100, 500], SAMPLES)]
LARGE = [
    (name, problems, n, k)
    for name, problems, n, k in CELLS
    if problems >= BOOTSTRAP_FROM and n > 1 and (name != "easy" or k == 1)
]


SMALL = [cell for cell in CELLS if cell not in LARGE]
# Every difficulty once, single attempts, and every size: what a change to the formula shows in.
QUICK = [*((name, 30, 5, 5) for name in DIFFICULTIES), ("hard", 30, 1, 1), ("easy", 100, 20, 5), ("uniform", 500, 1, 1)]


def with_runs(quick: Iterable[tuple[Any, ...]], every: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Some cells by day with few runs, and all of them nightly with many."""
    by_day = [(*cell, QUICK_RUNS) for cell in quick]
    return nightly_but(by_day, [*by_day, *((*cell, RUNS) for cell in every)])


@pytest.mark.parametrize(("name", "problems", "n", "k", "runs"), with_runs(QUICK[-4:], SMALL))
def test_means(name: str, problems: int, n: int, k: int, runs: int) -> None:
    truth = DIFFICULTIES[name].truth(k)
    low, high = _mean_ends(_passes(name, problems, n, k, runs))
    _assert_covered((low <= truth) & (truth <= high), edge=not 0.07 <= truth <= 0.93)


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param(LARGE, id="all", marks=pytest.mark.nightly),
        pytest.param([cell for cell in LARGE if cell[2:] == (5, 1)], id="few"),
    ],
)
def test_means_of_large_suites(cells: list[tuple[str, int, int, int]]) -> None:
    """Few runs a cell can only show what is grossly wrong there: all cells together are held to the full measure."""
    held = []
    for name, problems, n, k in cells:
        truth = DIFFICULTIES[name].truth(k)
        low, high = _mean_ends(_passes(name, problems, n, k, BOOTSTRAP_RUNS))
        held.append((low <= truth) & (truth <= high))
        _assert_covered(held[-1])
    _assert_covered(np.concatenate(held))


@pytest.mark.parametrize(
    ("share", "problems", "k", "runs"),
    with_runs([(0.03, 30, 5)], itertools.product([0.01, 0.03, 0.1], [30, 100], [1, 5])),
)
def test_easy_suites_with_a_few_impossible_problems(share: float, problems: int, k: int, runs: int) -> None:
    """What scatter alone gets wrong in up to two of three suites: those that happen to hold none of the few."""
    n, difficulty = 20, Difficulty(8, 1, impossible=share)
    generator = np.random.default_rng([problems, n, k, int(share * 100)])
    figures = _per_count(n, k)[generator.binomial(n, difficulty.draw(generator, (runs, problems)))]
    # At least 92% here: thirty problems of which one in thirty is impossible is the worst case.
    low, high = _mean_ends(figures)
    _assert_covered((low <= difficulty.truth(k)) & (difficulty.truth(k) <= high), edge=True, lowest=0.92)


@pytest.mark.parametrize(("name", "problems", "n", "k", "runs"), with_runs(QUICK[2::2], CELLS))
def test_paired_differences(name: str, problems: int, n: int, k: int, runs: int) -> None:
    differences, truth, typical = _gaps(name, problems, n, k, runs)
    low, high = _difference_ends(differences)
    _assert_covered((low <= truth) & (truth <= high), edge=problems * typical < 3)


@pytest.mark.parametrize(
    ("clusters", "easier", "paired", "runs"),
    with_runs(
        [(10, 1.5, False), (30, 1.5, True)],
        itertools.product([10, 30, 60], [0.0, 1.5], [False, True]),
    ),
)
def test_clusters_of_four_problems(clusters: int, easier: float, paired: bool, runs: int) -> None:
    """Half the variance of difficulty (a logit) is shared by the cluster, and half of the other model's noise.

    Few clusters are conservative: with ten, 96% to 99% of the intervals cover the truth.
    """
    generator = np.random.default_rng([clusters, int(easier * 10), paired])

    def draw(shape: tuple[int, ...], scale: float) -> Floats:
        return scale * (generator.normal(0, 1, (*shape[:-1], 1)) + generator.normal(0, 1, shape))

    def figures(shape: tuple[int, ...], n: int | None) -> Floats:
        difficulty = easier + draw(shape, 1)
        sides = [difficulty, difficulty + 0.5 + draw(shape, 0.5**0.5)] if paired else [difficulty]
        chances = [special.expit(side) for side in sides]
        rates = chances if n is None else [generator.binomial(n, chance) / n for chance in chances]
        return rates[-1] - (rates[0] if paired else 0)

    truth = figures((200_000, 4), None).mean()
    per_problem = figures((runs, clusters, 4), 5)
    if paired:
        low, high = _difference_ends(per_problem.mean(axis=2), size=4)
    else:
        once, codes = np.ones(4 * clusters, dtype=np.int64), np.repeat(np.arange(clusters), 4)
        found = [mean_interval(run.ravel(), once, codes, SETTINGS) for run in per_problem]
        assert {interval.units for interval in found} == {clusters}
        low, high = _ends(found)
    _assert_covered((low <= truth) & (truth <= high), edge=clusters == 10)


def _passes(name: str, problems: int, n: int, k: int, runs: int) -> Floats:
    generator = np.random.default_rng([problems, n, k, *name.encode()])
    return _per_count(n, k)[generator.binomial(n, DIFFICULTIES[name].draw(generator, (runs, problems)))]


def _gaps(name: str, problems: int, n: int, k: int, runs: int) -> tuple[Floats, float, float]:
    """Differences per run and problem, their true mean and their true mean size.

    The other model is better by half a logit, with a standard deviation of one logit per problem.
    """
    generator = np.random.default_rng([problems, n, k, *name.encode()])

    def chances(shape: tuple[int, int]) -> tuple[Floats, Floats]:
        first = DIFFICULTIES[name].draw(generator, shape)
        with np.errstate(divide="ignore"):
            return first, special.expit(special.logit(first) + generator.normal(0.5, 1, shape))

    one, other = chances((1, 200_000))
    gaps = (1 - one) ** k - (1 - other) ** k
    one, other = chances((runs, problems))
    values = _per_count(n, k)
    differences = values[generator.binomial(n, other)] - values[generator.binomial(n, one)]
    return differences, float(gaps.mean()), float(np.abs(gaps).mean())


def _per_count(n: int, k: int) -> Floats:
    return pass_at_k_of_counts(np.full(n + 1, n), np.arange(n + 1), k)


def _assert_covered(held: NDArray[np.bool_], *, edge: bool = False, lowest: float = LOWEST) -> None:
    slack = ERRORS * np.sqrt(0.95 * 0.05 / len(held))
    assert lowest - slack <= held.mean() <= (1 if edge else HIGHEST + slack)


def _mean_ends(figures: Floats) -> Ends:
    """Both limits per run of the mean over problems."""
    histograms = (np.unique(run, return_counts=True) for run in figures)
    return _ends(mean_interval(values, counts, [None] * len(values), SETTINGS) for values, counts in histograms)


def _ends(found: Iterable[Interval]) -> Ends:
    low, high = np.array([(interval.low, interval.high) for interval in found]).T
    return low, high


def _difference_ends(differences: Floats, size: int = 1) -> Ends:
    """Both limits per run, from the mean differences of units that hold `size` problems each."""
    runs, units = differences.shape
    alike = np.ptp(differences, axis=1) <= 1e-12
    error = np.where(alike, 0.0, differences.std(axis=1, ddof=1) / np.sqrt(units))
    evidence = np.minimum(1, size * np.abs(differences)).sum(axis=1)
    degrees, many = np.full(runs, units - 1.0), np.full(runs, units)
    found = difference_limits(differences.mean(axis=1), error, degrees, many, evidence, 0.95)
    return found.low, found.high
