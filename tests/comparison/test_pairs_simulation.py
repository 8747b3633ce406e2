"""Verdicts in simulation: false alarms, of many models and in clusters, and wrong claims of no relevant difference."""

import math

import numpy as np
import polars as pl
import pytest

from tests.comparison.test_pairs import compare_pair
from touchstone.comparison.pairs import ComparisonSettings, compare_counts

SETTINGS = ComparisonSettings(permutations=2000)


def drawn(chances_a: np.ndarray, chances_b: np.ndarray, attempts: int, seed: int) -> list[pl.DataFrame]:
    """One table of counts per row of chances."""
    generator = np.random.default_rng(seed)
    passed = [generator.binomial(attempts, chances) for chances in (chances_a, chances_b)]
    names = [str(problem) for problem in range(chances_a.shape[1])]
    fixed = pl.DataFrame({"oid": names}).with_columns(n_a=attempts, n_b=attempts, cluster=pl.lit(None, pl.String))
    return [fixed.with_columns(c_a=pl.Series(a), c_b=pl.Series(b)) for a, b in zip(*passed, strict=True)]


def share_of(words: set[str], tables: list[pl.DataFrame]) -> float:
    return sum(compare_pair(table, SETTINGS).verdict in words for table in tables) / len(tables)


def false_families(attempts: list[int], problems: int, runs: int, difficulty: tuple[float, float]) -> float:
    """Share of runs in which any pair of equal models, with so many attempts each, is called better or worse."""
    generator = np.random.default_rng([*attempts, problems])
    names = [str(problem) for problem in range(problems)]
    clusters = pl.LazyFrame({"oid": names}).with_columns(cluster=pl.lit(None, pl.String))
    models = pl.DataFrame({"model": [f"m{place:02}" for place in range(len(attempts))], "n": attempts})
    keys = models.join(pl.DataFrame({"oid": names}), how="cross").with_columns(tier=pl.lit("T0"))
    alarms = 0
    for _ in range(runs):
        passed = generator.binomial(keys["n"].to_numpy(), np.tile(generator.beta(*difficulty, problems), len(attempts)))
        table = compare_counts(keys.with_columns(c=pl.Series(passed)).lazy(), clusters, SETTINGS)
        assert table.height == math.comb(len(attempts), 2)
        alarms += bool(set(table["verdict"]) & {"better", "worse"})
    print(f"{attempts} attempts, {difficulty}: any pair {alarms / runs:.3f}")
    return alarms / runs


@pytest.mark.nightly
@pytest.mark.parametrize("attempts", [[5] * 6, [1, 1, 1, 3, 3, 5, 10, 10, 20, 20]], ids=str)
@pytest.mark.parametrize("difficulty", [(0.8, 0.6), (8, 1)], ids=str)
@pytest.mark.parametrize("problems", [20, 60])
def test_many_models_raise_no_more_false_alarms_than_two(
    problems: int, difficulty: tuple[float, float], attempts: list[int]
) -> None:
    runs = 400
    share = false_families(attempts, problems, runs, difficulty)
    assert share <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.nightly
@pytest.mark.parametrize("attempts", [1, 5])
@pytest.mark.parametrize("problems", [100, 400])
@pytest.mark.parametrize("kind", ["all pass", "half pass", "mixed"])
def test_a_relevant_loss_is_rarely_called_irrelevant(kind: str, problems: int, attempts: int) -> None:
    """Current is worse by exactly the margin, over problems that all pass, that pass or fail, and of all kinds."""
    runs = 1000
    generator = np.random.default_rng([problems, attempts])
    before = {
        "all pass": np.ones((runs, problems)),
        "half pass": np.tile(np.arange(problems) % 2, (runs, 1)).astype(float),
        "mixed": generator.beta(0.3, 0.3, (runs, problems)),
    }[kind]
    after = before * (1 - SETTINGS.relevant / before.mean())
    wrong = share_of({"no relevant difference"}, drawn(before, after, attempts, problems))
    print(f"{kind}, {problems} x {attempts}: {wrong:.4f}")
    assert wrong <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.nightly
@pytest.mark.parametrize("attempts", [5, 20, 100])
@pytest.mark.parametrize("problems", [40, 75, 150, 400])
@pytest.mark.parametrize("kind", ["all pass", "mixed", "polar"])
def test_a_relevant_loss_on_few_problems_is_rarely_called_irrelevant(kind: str, problems: int, attempts: int) -> None:
    """Each problem breaks with such a probability that the margin is lost; the others do not change."""
    runs = 1000
    generator = np.random.default_rng([problems, attempts, len(kind)])
    law = {"all pass": (1e9, 1e-9), "mixed": (2, 1), "polar": (0.4, 0.2)}[kind]
    before = generator.beta(*law, (runs, problems))
    broken = generator.random((runs, problems)) < SETTINGS.relevant / (law[0] / sum(law))
    wrong = share_of({"no relevant difference"}, drawn(before, np.where(broken, 0, before), attempts, problems))
    print(f"{kind}, {problems} x {attempts}: {wrong:.4f}")
    assert wrong <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / runs)


@pytest.mark.nightly
@pytest.mark.parametrize("apart", [False, True])
def test_clusters_raise_no_false_alarms(apart: bool) -> None:
    """Thirty clusters of four problems, at which both sides are alike, or each good or bad by its own luck."""
    runs, clusters, size = 500, 30, 4
    generator = np.random.default_rng(29 + apart)
    own = generator.normal(0, 1, (runs, clusters * size))
    shifts = [np.repeat(generator.normal(0, 1.5, (runs, clusters)), size, axis=1) for _ in range(2)]
    chances = [1 / (1 + np.exp(-own - (shift if apart else shifts[0]))) for shift in shifts]
    tables = drawn(chances[0], chances[1], attempts=5, seed=31 + apart)
    named = pl.Series([f"k{place // size}" for place in range(clusters * size)])
    alarms = share_of({"better", "worse"}, [table.with_columns(cluster=named) for table in tables])
    print(f"clusters {'apart' if apart else 'alike'}: {alarms:.3f}")
    assert alarms <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
    if apart:
        assert share_of({"better", "worse"}, tables) > 0.15
