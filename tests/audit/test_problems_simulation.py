"""Benchmarks whose labels are wrong for a few problems: are these found, and is nothing else called suspect?

Models have a strength and problems a difficulty, and in half of the benchmarks a slope of their own (Rasch, and the
two-parameter logistic model); families of models that fail alike are added at night.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.audit.test_problems import audited, counts_of
from tests.conftest import nightly_but
from touchstone.inference.arrays import Integers

FLIPS = 8


@dataclass(frozen=True)
class Benchmark:
    """How its outcomes are drawn: `spread` of strengths, `family`: how much models of one family have in common."""

    models: int = 134
    problems: int = 800
    attempts: int = 1
    spread: float = 1.2
    slopes: bool = False
    family: float = 0.0

    def draw(self, rng: np.random.Generator) -> Integers:
        strengths = rng.normal(0, self.spread, self.models)
        difficulties = rng.normal(0, 1.3, self.problems)
        slopes = np.exp(rng.normal(0, 0.4, self.problems)) if self.slopes else 1.0
        logits = slopes * (strengths[:, None] - difficulties)
        families = rng.integers(0, max(2, self.models // 7), self.models)
        logits += self.family * rng.normal(0, 1, (families.max() + 1, self.problems))[families]
        return rng.binomial(self.attempts, 1 / (1 + np.exp(-logits)))

    def flip(self, passed: Integers, rng: np.random.Generator, low: float, high: float) -> tuple[Integers, set[str]]:
        """The outcomes with the labels of some problems turned around, of those with pass rates between the limits."""
        rates = passed.mean(axis=0) / self.attempts
        chosen = rng.choice(np.flatnonzero((rates > low) & (rates < high)), FLIPS, replace=False)
        passed = passed.copy()
        passed[:, chosen] = self.attempts - passed[:, chosen]
        return passed, {f"p{place:03}" for place in chosen}


def suspects(passed: Integers, attempts: int) -> tuple[set[str], set[str]]:
    """The ten most suspect problems, and those that are called suspect."""
    rows = audited(counts_of(passed, attempts))
    most = rows.sort("p_value", nulls_last=True).head(10)
    return set(most["oid"]), set(rows.filter(verdict="suspect")["oid"])


LARGE = [
    Benchmark(attempts=attempts, spread=spread, slopes=slopes, family=family)
    for attempts, spread in ((1, 1.2), (1, 2.0), (5, 0.6), (5, 1.2))
    for slopes in (False, True)
    for family in (0.0, 0.7)
]
MIDDLING = Benchmark(models=80, problems=400)
RANGES = {"any": (0.1, 0.9), "easy": (0.75, 0.95), "hard": (0.05, 0.25)}


@pytest.mark.parametrize(
    ("benchmark", "flipped"),
    nightly_but([(MIDDLING, "any")], [(benchmark, flipped) for benchmark in (MIDDLING, *LARGE) for flipped in RANGES]),
)
def test_flipped_problems_are_the_most_suspect(benchmark: Benchmark, flipped: str) -> None:
    for seed in range(2):
        rng = np.random.default_rng([seed, *map(ord, flipped)])
        passed, wrong = benchmark.flip(benchmark.draw(rng), rng, *RANGES[flipped])
        most, called = suspects(passed, benchmark.attempts)
        print(
            f"{benchmark} {flipped}: {len(most & wrong)} in ten",
            *(len(part) for part in (called & wrong, called - wrong)),
        )
        assert len(most & wrong) >= 7
        assert len(called - wrong) <= 2


SMALL = [
    Benchmark(models=models, problems=200, attempts=attempts, spread=spread, slopes=slopes)
    for models in (10, 20)
    for attempts in (1, 5)
    for spread in (0.0, 0.3, 1.2)
    for slopes in (False, True)
]
NARROW = [
    Benchmark(attempts=attempts, spread=spread, family=family)
    for attempts in (1, 5)
    for spread in (0.0, 0.2)
    for family in (0.0, 0.7, 1.5)
] + [Benchmark(60, 300, attempts=5, spread=0.0, family=1.5)]


@pytest.mark.parametrize(
    ("benchmark",), nightly_but([(SMALL[0],), (NARROW[-1],)], [(each,) for each in (*LARGE, *SMALL, *NARROW)])
)
def test_hardly_any_sound_problem_is_called_suspect(benchmark: Benchmark) -> None:
    """At equal strengths the level of the test is all that keeps them from it; families make it look significant."""
    for seed in range(3):
        _, called = suspects(benchmark.draw(np.random.default_rng([seed, 9])), benchmark.attempts)
        print(f"{benchmark}: {len(called)} called")
        assert len(called) <= 0.01 * benchmark.problems
