"""Unequal attempts: the within-problem test against brute force and scipy, its approximations, and false alarms."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.conftest import more_examples
from touchstone.inference import hypergeometric as module
from touchstone.inference.hypergeometric import fisher_p, hypergeometric_test
from touchstone.inference.paired_moments import PairChunk, PairedOutcomes, outcome_matrix, pair_chunk
from touchstone.inference.paired_tests import paired_tests, sign_permutation_test
from touchstone.vocabulary import TESTS

Integers = NDArray[np.int64]
Row = tuple[int, int, int, int]


def pair_of(n: Integers, c: Integers, clusters: Integers | None = None) -> PairChunk:
    clusters = np.zeros(n.shape[1], dtype=np.int64) if clusters is None else clusters
    return pair_chunk(outcome_matrix(n, c, clusters), np.array([0]), np.array([1]))


def pair_of_rows(rows: list[Row]) -> PairChunk:
    """Rows of n_a, c_a, n_b, c_b; a difference towards b is the one that is tested."""
    n_a, c_a, n_b, c_b = np.array(rows).T
    return pair_of(np.stack([n_a, n_b]), np.stack([c_a, c_b]))


def table_of(rows: list[Row]) -> PairedOutcomes:
    return pair_of_rows(rows).matrix.pair(0, 1)


def p_of(pair: PairChunk, seed: int = 1) -> tuple[str, float]:
    tests = paired_tests(pair, None, 1000, seed)
    return str(tests.names[0]), float(tests.p_values[0])


COUNTS = st.integers(1, 4).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
ROWS = st.tuples(COUNTS, COUNTS).map(lambda sides: (*sides[0], *sides[1]))


@given(ROWS)
@more_examples
def test_one_problem_alone_is_fishers_test(row: Row) -> None:
    n_a, c_a, n_b, c_b = row
    theirs = scipy.stats.fisher_exact([[c_b, n_b - c_b], [c_a, n_a - c_a]], alternative="greater")
    assert fisher_p(*row) == pytest.approx(theirs.pvalue, rel=1e-9)


def brute_force(rows: list[Row]) -> float:
    """Twice the upper tail, over all ways to share each problem's passes between the sides."""
    observed = sum(Fraction(c_b, n_b) - Fraction(c_a, n_a) for n_a, c_a, n_b, c_b in rows)
    tail, ways = 0, 1
    shares = []
    for n_a, c_a, n_b, c_b in rows:
        passed = c_a + c_b
        possible = range(max(0, passed - n_a), min(n_b, passed) + 1)
        shares.append(
            [
                (Fraction(c, n_b) - Fraction(passed - c, n_a), math.comb(n_b, c) * math.comb(n_a, passed - c))
                for c in possible
            ]
        )
        ways *= math.comb(n_a + n_b, passed)
    for way in product(*shares):
        if sum(difference for difference, _ in way) >= observed:
            tail += math.prod(count for _, count in way)
    return min(1.0, 2 * tail / ways)


@given(st.lists(ROWS, min_size=1, max_size=5))
@more_examples
def test_it_is_brute_force(rows: list[Row]) -> None:
    computed, p = hypergeometric_test(table_of(rows))
    assert computed == "exact"
    assert p == pytest.approx(brute_force(rows), rel=1e-10)


def test_precise_however_small() -> None:
    _, p = hypergeometric_test(table_of([(20, 2, 5, 5)] * 40))
    assert p == pytest.approx(2 * math.prod([scipy.stats.hypergeom(25, 7, 5).pmf(5)] * 40), rel=1e-9)
    assert 0 < p < 1e-100


@given(st.lists(ROWS, min_size=1, max_size=12), st.randoms(use_true_random=False))
@more_examples
def test_neither_the_sides_nor_the_order_of_rows_show(rows: list[Row], random: object) -> None:
    swapped = [(n_b, c_b, n_a, c_a) for n_a, c_a, n_b, c_b in rows]
    random.shuffle(swapped)  # type: ignore[attr-defined]
    assert p_of(pair_of_rows(rows)) == p_of(pair_of_rows(swapped))


def test_the_larger_p_value_counts_and_is_named() -> None:
    """One attempt against 20 at easy problems: all differences are small and positive, which says nothing."""
    pair = pair_of_rows([(20, 19, 1, 1)] * 20)
    _, by_signs = sign_permutation_test(pair.units(0), 1000, 1)
    _, by_attempts = hypergeometric_test(pair.matrix.pair(0, 1))
    assert by_signs == pytest.approx(2 / 2**20) and by_attempts == pytest.approx(2 * (20 / 21) ** 20)
    assert p_of(pair) == ("permutation-hypergeometric", by_attempts)


def test_a_difference_that_depends_on_the_problem_is_left_to_the_signs() -> None:
    """Each side is much better at its own half of the problems: attempts within a problem are no guide to the mean."""
    rows = [(10, 9, 11, 0)] * 12 + [(10, 0, 11, 11)] * 18
    assert hypergeometric_test(table_of(rows))[1] < 1e-6
    assert p_of(pair_of_rows(rows))[1] == sign_permutation_test(pair_of_rows(rows).units(0), 1000, 1)[1] > 0.05


def test_as_many_attempts_need_no_second_test() -> None:
    assert p_of(pair_of_rows([(5, 1, 5, 3), (7, 2, 7, 4), (2, 0, 2, 2)]))[0] == "permutation-exact"
    assert p_of(pair_of_rows([(1, 0, 1, 1), (1, 0, 1, 1)]))[0] == "mcnemar"


def some_pair(generator: np.random.Generator, problems: int, low: int, high: int, lift: float) -> PairChunk:
    n = generator.integers(low, high + 1, (2, problems))
    rates = generator.beta(1, 1, problems)
    c = generator.binomial(n, np.stack([rates, rates + lift * (1 - rates)]))
    return pair_of(n, c)


def some_table(generator: np.random.Generator, problems: int, low: int, high: int, lift: float) -> PairedOutcomes:
    return some_pair(generator, problems, low, high, lift).matrix.pair(0, 1)


@pytest.mark.parametrize("lift", [0.1, 0.2, 0.5])
@pytest.mark.parametrize(("problems", "name"), [(12, "rounded"), (40, "rounded"), (150, "saddlepoint")])
def test_what_is_not_exact_is_near(problems: int, name: str, lift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng([problems, int(10 * lift)])
    tables = [some_table(generator, problems, 4, 6, lift) for _ in range(5)]
    monkeypatch.setattr(module, "_WORK", 0)
    monkeypatch.setattr(module, "MIN_VARIANCE", 0 if name == "saddlepoint" else math.inf)
    near = [hypergeometric_test(table) for table in tables]
    monkeypatch.setattr(module, "_WORK", 2**30)
    exact = [hypergeometric_test(table)[1] for table in tables]
    assert {computed for computed, _ in near} == {name}
    for p, (_, approximate) in zip(exact, near, strict=True):
        print(f"{p:.3g} {approximate / p:.3f}")
        # Far out in the tail half a pass less is a larger factor.
        assert 0.85 * p <= approximate <= 1.15 * p**0.98


def test_many_attempts_are_put_into_few_values_where_memory_would_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    table = some_table(np.random.default_rng(4), 40, 3000, 5000, 0.01)
    name, p = hypergeometric_test(table)
    monkeypatch.setattr(module, "_MAX_PROBABILITIES", 0)
    assert name == "saddlepoint" and 1e-30 < p < 0.9
    assert hypergeometric_test(table)[1] == pytest.approx(p, rel=0.15)


@pytest.mark.parametrize(("low", "high"), [(1, 3), (15, 20), (400, 900)])
def test_the_name_is_one_of_those_that_the_contract_knows(low: int, high: int) -> None:
    generator = np.random.default_rng(low)
    names = {p_of(some_pair(generator, problems, low, high, 0.0))[0] for problems in (3, 30, 300)}
    assert names <= set(TESTS) and all("hypergeometric" in name for name in names)


# False alarms of a model against itself


def false_alarms(
    attempts: tuple[int, int], problems: int, difficulty: tuple[float, float], runs: int, cluster: int = 1
) -> Integers:
    """p-values of so many comparisons of a model with itself; `cluster` problems share their difficulty."""
    generator = np.random.default_rng([*attempts, problems, int(10 * difficulty[0]), int(10 * difficulty[1]), cluster])
    n = np.repeat(np.array(attempts)[:, None], problems, axis=1)
    clusters = np.arange(problems) // cluster + 1 if cluster > 1 else np.zeros(problems, dtype=np.int64)
    found = []
    for _ in range(runs):
        rates = np.repeat(generator.beta(*difficulty, -(-problems // cluster)), cluster)[:problems]
        found.append(p_of(pair_of(n, generator.binomial(n, rates), clusters))[1])
    return np.array(found)


def assert_rare(p_values: Integers, levels: tuple[float, ...]) -> None:
    for level in levels:
        allowed = level + 3 * math.sqrt(level / len(p_values))
        print(f"p <= {level:g}: {np.mean(p_values <= level):.4f}", end="  ")
        assert np.mean(p_values <= level) <= allowed
    print()


@pytest.mark.nightly
@pytest.mark.parametrize("cluster", [1, 5])
@pytest.mark.parametrize("difficulty", [(1, 1), (8, 1), (30, 1), (0.5, 0.5), (1, 8)], ids=str)
@pytest.mark.parametrize("problems", [20, 100])
@pytest.mark.parametrize("attempts", [(1, 20), (1, 10), (3, 10)], ids=str)
def test_unequal_attempts_raise_no_false_alarms(
    attempts: tuple[int, int], problems: int, difficulty: tuple[float, float], cluster: int
) -> None:
    assert_rare(false_alarms(attempts, problems, difficulty, 2000, cluster), (0.05, 0.01, 0.001, 0.0005))
