"""Simulated problems in clusters of given sizes, for measuring the coverage of clustered intervals.

Cluster sizes are fixed. Difficulty, a logit, has a part that the problems of a cluster share (`correlation` is its
share of the variance) and a part of its own. The truth is the mean, median or ratio over the population of clusters.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# 500 problems of twelve repositories: SWE-bench Verified.
SWE_BENCH_VERIFIED = np.array([231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 1])


def lognormal_sizes(clusters: int, sigma: float) -> Integers:
    """Sizes at the quantiles of a lognormal distribution with a median of 5 problems."""
    quantiles = special.ndtri((np.arange(clusters) + 0.5) / clusters)
    return np.maximum(1, np.rint(5 * np.exp(sigma * quantiles))).astype(np.int64)


SIZES = {
    "equal": np.full(12, 20),
    "SWE-bench-like": SWE_BENCH_VERIFIED,
    "lognormal": lognormal_sizes(40, 1.0),
    "one big": np.array([50] + [5] * 10),
}

DRAWN_FOR_TRUTH = 400_000


@dataclass(frozen=True)
class Population:
    """Clusters of these sizes, with `attempts` at each problem."""

    sizes: Integers
    correlation: float
    level: float = 0.5
    attempts: int = 5

    @cached_property
    def clusters(self) -> Integers:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def starts(self) -> Integers:
        return np.append(0, np.cumsum(self.sizes)[:-1])

    def effects(self, generator: np.random.Generator, scale: float) -> Floats:
        """An effect per problem, in part its cluster's."""
        shared = generator.normal(0, 1, len(self.sizes))[self.clusters]
        own = generator.normal(0, 1, len(self.clusters))
        return scale * (np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own)

    def difficulties(self, generator: np.random.Generator) -> Floats:
        return self.level + self.effects(generator, 1.5)

    def rates(self, generator: np.random.Generator, difficulties: Floats) -> Floats:
        return generator.binomial(self.attempts, special.expit(difficulties)) / self.attempts

    def mean_runs(self, runs: int, seed: int) -> Iterator[Floats]:
        """Sums of the problems' pass rates per cluster."""
        generator = np.random.default_rng([seed, *self.sizes])
        for _ in range(runs):
            yield np.add.reduceat(self.rates(generator, self.difficulties(generator)), self.starts)

    def difference_runs(self, runs: int, seed: int) -> Iterator[Floats]:
        """The differences of another model, half a logit better, per problem."""
        generator = np.random.default_rng([seed, *self.sizes])
        for _ in range(runs):
            first = self.difficulties(generator)
            second = first + 0.5 + self.effects(generator, 1.0)
            yield self.rates(generator, second) - self.rates(generator, first)

    def score_runs(self, runs: int, seed: int) -> Iterator[Floats]:
        """One score in [0, 1] per problem: half for passing, half a judge's."""
        generator = np.random.default_rng([seed, *self.sizes])
        for _ in range(runs):
            yield _scores(generator, self.difficulties(generator))

    def cost_runs(self, runs: int, seed: int, log_standard_deviation: float) -> Iterator[tuple[Floats, Floats]]:
        """Cost and pass rate per problem; hard problems cost more."""
        generator = np.random.default_rng([seed, *self.sizes])
        for _ in range(runs):
            difficulties = self.difficulties(generator)
            costs = np.exp(-0.2 * difficulties + self.effects(generator, log_standard_deviation))
            yield costs, self.rates(generator, difficulties)

    @property
    def _many(self) -> Floats:
        return self.level + 1.5 * np.random.default_rng(1).normal(0, 1, DRAWN_FOR_TRUTH)

    @property
    def true_mean(self) -> float:
        return float(special.expit(self._many).mean())

    @property
    def true_difference(self) -> float:
        gaps = 0.5 + np.random.default_rng(2).normal(0, 1, DRAWN_FOR_TRUTH)
        return float((special.expit(self._many + gaps) - special.expit(self._many)).mean())

    @property
    def true_median(self) -> float:
        return float(np.median(_scores(np.random.default_rng(3), self._many)))

    def true_cost_of_pass(self, log_standard_deviation: float) -> float:
        # In closed form, because a simulated mean of a lognormal with a large variance is too imprecise.
        cost = np.exp(-0.2 * self.level + (0.2 * 1.5) ** 2 / 2 + log_standard_deviation**2 / 2)
        return float(cost / self.true_mean)


def _scores(generator: np.random.Generator, difficulties: Floats) -> Floats:
    passed = generator.random(len(difficulties)) < special.expit(difficulties)
    return (passed + special.expit(difficulties + generator.normal(0, 0.7, len(difficulties)))) / 2
