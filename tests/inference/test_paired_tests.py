"""Tests of no difference: against scipy, against brute force, and invariances."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import more_examples, nightly_but
from touchstone.inference import paired_tests, tails
from touchstone.inference.arrays import Integers
from touchstone.inference.paired_moments import PairChunk, PairedUnits, outcome_matrix, pair_chunk
from touchstone.inference.paired_tests import (
    MAX_LATTICE_SUM,
    exact_permutation_p,
    mcnemar,
    monte_carlo_p,
    sign_exact_p,
    sign_permutation_test,
)
from touchstone.inference.tails import DiscreteTerms, lattice_tail, two_sided

NONZERO = st.integers(-12, 12).filter(bool)


def units(differences: list[int] | Integers, *, exact: bool = True) -> PairedUnits:
    sums = np.asarray(differences, dtype=np.int64)
    return PairedUnits(sums, np.ones_like(sums), len(sums), exact)


def p_of(differences: list[int] | Integers) -> float:
    name, p = sign_permutation_test(units(differences), draws=1000, seed=1)
    assert name == "permutation-exact"
    return p


# McNemar


@pytest.mark.parametrize(
    ("wins", "losses"),
    [(0, 0), (1, 0), (3, 3), (7, 3), (30, 14), (600, 401), (5200, 5000), (50_400, 49_600), (501_500, 498_500)],
)
def test_mcnemar_is_the_binomial_test_of_scipy(wins: int, losses: int) -> None:
    expected = scipy.stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    p, q = mcnemar(np.array([wins, losses]), np.array([losses, wins]))
    assert p == q == pytest.approx(expected, rel=1e-9)


def test_mcnemar_is_never_zero() -> None:
    assert 0 < mcnemar(np.array([5000]), np.array([0]))[0] < 1e-300


# Exact


def whole_tail(differences: Integers) -> float:
    """The exact tail in whole numbers, one unit after the other."""
    ways = {0: 1}
    for size in np.abs(differences).tolist():
        spread: dict[int, int] = {}
        for total, count in ways.items():
            for end in (total + size, total - size):
                spread[end] = spread.get(end, 0) + count
        ways = spread
    observed = abs(int(differences.sum()))
    return sum(count for total, count in ways.items() if abs(total) >= observed) / 2 ** len(differences)


@pytest.mark.parametrize("count", [7, 400, 20_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_with_one_size_it_is_mcnemar(count: int) -> None:
    for share in (0, 0.3, 1, 3):
        losses = max(0, int(count / 2 - share * math.sqrt(count)))
        reach = count - 2 * losses
        p = exact_permutation_p(np.array([1]), np.array([count]), reach)
        assert p == pytest.approx(mcnemar(np.array([count - losses]), np.array([losses]))[0], rel=1e-6)


def test_never_zero_even_where_no_float_is_so_small() -> None:
    assert 0 < p_of(np.full(2000, 3)) < 1e-300
    assert 0 < p_of(np.array([3] * 4000 + [-3])) < 1e-300


def test_a_distribution_beyond_the_smallest_float_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand problems of a hundred sizes, all but four of the same sign: a sum that few others exceed."""
    sizes, counts = np.arange(1, 100), np.full(99, 100)
    monkeypatch.setattr(tails, "_distribution", lambda _: pytest.fail("a million frequencies of a hundred sizes"))
    assert exact_permutation_p(sizes, counts, int((sizes * counts).sum()) - 8) == tails.SMALLEST_P


def test_the_largest_lattice_is_used_and_one_more_is_not() -> None:
    sizes = np.array([MAX_LATTICE_SUM - 5, 3, 2])
    assert sign_permutation_test(units(sizes), 1000, 1) == ("permutation-exact", 0.25)
    name, p = sign_permutation_test(units(np.append(sizes, 1)), 10_000, 1)
    assert name == "permutation" and p == pytest.approx(0.125, abs=0.02)


@given(st.lists(NONZERO, min_size=1, max_size=40), st.integers(1, 50), st.randoms(use_true_random=False))
@more_examples
def test_sides_scale_zeros_and_order_do_not_matter(differences: list[int], scale: int, random: object) -> None:
    p = p_of(differences)
    shuffled = list(differences)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert p == p_of([-d for d in differences]) == p_of(shuffled) == p_of([*differences, 0, 0])
    assert p == p_of([scale * d for d in differences])
    assert 2 * 0.5 ** len(differences) <= p * (1 + 1e-12) and p <= 1


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.data()), min_size=1, max_size=8))
@more_examples
def test_rates_become_whole_numbers_without_loss(rows: list[tuple[int, int, st.DataObject]]) -> None:
    n = np.array([[one for one, _, _ in rows], [other for _, other, _ in rows]])
    c = np.array(
        [[data.draw(st.integers(0, int(side[place]))) for place, (_, _, data) in enumerate(rows)] for side in n]
    )
    pair = first_pair(n, c)
    assert pair.exact.all()
    assert pair.differences[0] / pair.denominator == pytest.approx(c[1] / n[1] - c[0] / n[0], abs=1e-15)
    assert pair.a is pair.problem_a and pair.b is pair.problem_b


def first_pair(n: Integers, c: Integers) -> PairChunk:
    matrix = outcome_matrix(n, c, np.zeros(n.shape[1], dtype=np.int64))
    return pair_chunk(matrix, np.array([0]), np.array([1]))


# Many rows at once

DIFFERENCES = st.lists(st.integers(-9, 9) | st.sampled_from([-60, 24, 61]), max_size=40)


def p_of_rows(*rows: Integers | list[int]) -> list[float]:
    width = max(len(row) for row in rows)
    differences = np.array([np.pad(np.asarray(row, dtype=np.int64), (0, width - len(row))) for row in rows])
    return sign_exact_p(np.abs(differences), np.abs(differences.sum(axis=1))).tolist()


def by_fourier_transform(differences: Integers) -> float:
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    total, observed = int((sizes * counts).sum()), abs(int(differences.sum()))
    terms = DiscreteTerms(sizes, np.full((len(sizes), 2), 0.5), counts)
    return two_sided(lattice_tail(terms, (total + observed) // 2))


@given(st.lists(DIFFERENCES, min_size=1, max_size=6))
@more_examples
def test_every_row_is_the_exact_tail(rows: list[list[int]]) -> None:
    assert p_of_rows(*rows) == [
        pytest.approx(min(1.0, whole_tail(np.array(row, dtype=np.int64))), rel=1e-14) for row in rows
    ]


@given(st.lists(DIFFERENCES, min_size=1, max_size=12), st.sampled_from([1, 40, 300, 2**14]))
@more_examples
def test_other_rows_and_the_size_of_blocks_do_not_change_the_last_digit(rows: list[list[int]], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paired_tests, "_BLOCK", block)
        together = p_of_rows(*rows)
    assert together == [p_of_rows(row)[0] for row in rows]


@pytest.mark.parametrize(
    ("units", "largest"),
    nightly_but([(60, 1), (99, 10)], [(60, 1), (99, 10), (99, 100), (400, 10), (1000, 1), (1000, 2)]),
)
@pytest.mark.parametrize("lean", [0, 0.1, 0.3])
def test_as_precise_as_the_fourier_transform(units: int, largest: int, lean: float) -> None:
    generator = np.random.default_rng([units, largest])
    sizes = generator.integers(1, largest + 1, units)
    differences = np.where(generator.random(units) < 0.5 + lean, sizes, -sizes)
    p = p_of(differences)
    assert [p] == p_of_rows(differences)
    assert p == pytest.approx(by_fourier_transform(differences), rel=1e-9)
    assert p == pytest.approx(whole_tail(differences), rel=1e-12)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([], 1.0),
        ([0, 0, 0], 1.0),
        ([5], 1.0),
        ([0, -5, 0], 1.0),
        ([4, 4], 0.5),
        ([3, -3], 1.0),
        ([1, 1, 1, 1, 1, -1], 7 / 32),
        ([1] * 5, 1 / 16),
        ([1] * 6, 1 / 32),
        ([7] * 1000, 2.0**-999),
    ],
)
def test_worked_examples(differences: list[int], p: float) -> None:
    assert p_of_rows(differences) == [p]


def test_a_p_value_at_the_level_itself_is_not_above_it() -> None:
    """Of 2^9 signs, 10 are as extreme as these: p is 10 / 512 to the last digit, and rejects at that level."""
    assert p_of_rows([1] * 8 + [-1])[0] * 512 == 20
    assert p_of_rows([2] * 8 + [-2], [1] * 8 + [-1])[0] * 512 == 20


def test_more_than_it_can_count_is_left_to_others() -> None:
    generator = np.random.default_rng(1)
    many, large = generator.choice([-1, 1], 1001), generator.choice([-1, 1], 900) * generator.integers(1, 99, 900)
    few, huge = np.array([1, 2, 2]), np.append(2**50 + np.arange(500), 5 - 2**50 - np.arange(400))
    found = p_of_rows(many, few, large, huge)
    assert np.isnan(found).tolist() == [True, False, True, True]


def test_no_rows() -> None:
    assert sign_exact_p(np.zeros((0, 5), dtype=np.int64), np.zeros(0, dtype=np.int64)).tolist() == []


# Beyond the lattice


def test_draws_are_near_the_exact_tail() -> None:
    sizes, counts = np.arange(1, 9), np.arange(8, 0, -1) * 3
    for reach in (62, 90, 120):
        exact = exact_permutation_p(sizes, counts, reach)
        assert 0.0005 < exact < 0.2
        assert monte_carlo_p(sizes, counts, reach, 50_000, 3) == pytest.approx(exact, abs=4 * math.sqrt(exact / 50_000))


def test_unequal_attempts_without_a_common_denominator_are_drawn_and_rounded_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(8)
    n = generator.integers(60, 100, (2, 80))
    c = generator.binomial(n, generator.beta(2, 2, 80) * np.array([[1.0], [0.94]]))
    pair = first_pair(n, c).units(0)
    assert not pair.exact
    name, drawn = sign_permutation_test(pair, 40_000, 1)
    assert name == "permutation"
    monkeypatch.setattr(paired_tests, "_MAX_DRAWS", 0)
    name, rounded = sign_permutation_test(pair, 40_000, 1)
    assert name == "permutation-rounded"
    assert rounded == pytest.approx(drawn, abs=4 * math.sqrt(drawn / 40_000) + 0.01 * drawn)
    assert sign_permutation_test(pair, 40_000, 2) == (name, rounded)


@pytest.mark.parametrize("seed", range(5))
def test_rounding_hardly_moves_p(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.random.default_rng(seed).integers(-500, 700, 60)
    exact = p_of(differences)
    monkeypatch.setattr(paired_tests, "_MAX_DRAWS", 0)
    name, rounded = sign_permutation_test(units(differences, exact=False), 1000, 1)
    assert name == "permutation-rounded" and rounded == pytest.approx(exact, rel=0.05)
