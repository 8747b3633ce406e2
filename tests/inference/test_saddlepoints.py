"""Saddlepoint p-values: within 1% of the exact transform where a decision could turn on them, and where refused."""

import numpy as np
import pytest

from tests.conftest import nightly_but
from touchstone.comparison.families import ComparisonSettings, PairList, compare_family
from touchstone.inference import paired_tests as module
from touchstone.inference.arrays import Integers
from touchstone.inference.hypergeometric import hypergeometric_test
from touchstone.inference.paired_moments import PairChunk, outcome_matrix, pair_chunk
from touchstone.inference.paired_tests import exact_permutation_p, exact_tests, paired_tests
from touchstone.inference.saddlepoints import (
    MIN_DIFFERING_UNITS,
    attempt_kinds,
    hypergeometric_saddlepoint_p,
    sign_saddlepoint_p,
)

ALL_EXACT = np.array([True])


def exact_p(differences: Integers) -> float:
    sums = differences // max(1, int(np.gcd.reduce(differences)))
    sizes, counts = np.unique(np.abs(sums), return_counts=True)
    return exact_permutation_p(sizes[sizes > 0], counts[sizes > 0], abs(int(sums.sum())))


def differences_of(units: int, attempts: int, drop: float, seed: int) -> Integers:
    """Of pass counts; those that are equal do not count towards the units."""
    generator = np.random.default_rng([units, attempts, int(1000 * drop), seed])
    rates = generator.beta(1, 1, 20 * units)
    a, b = generator.binomial(attempts, np.stack([rates, rates * (1 - drop)]))
    return np.asarray((b - a)[b != a][:units])


@pytest.mark.parametrize("attempts", nightly_but([2, 400], [2, 5, 10, 20, 60, 100, 400]))
@pytest.mark.parametrize("units", [100, 300])
def test_signs_are_within_one_percent_of_the_exact_test(units: int, attempts: int) -> None:
    drops = (0.0, 0.03, 0.1, 0.2, 0.3)
    cases = [differences_of(units, attempts, drop, seed) for drop in drops for seed in range(4)]
    near = sign_saddlepoint_p(np.stack(cases), np.ones(len(cases), dtype=bool))
    exact = [exact_p(case) for case in cases]
    assert min(exact) < 1e-5 and max(exact) > 0.1
    for p, q in zip(exact, near.tolist(), strict=True):
        # No verdict turns on a p-value far below any corrected level; none at all may be left to the exact test.
        assert q == pytest.approx(p, rel=0.01 if p > 1e-12 else 0.5, nan_ok=False) or (np.isnan(q) and p < 1e-8)


def test_fewer_units_are_left_to_the_exact_test() -> None:
    case = differences_of(MIN_DIFFERING_UNITS - 1, 10, 0.1, 1)
    assert np.isnan(sign_saddlepoint_p(case[None], ALL_EXACT)).all()
    padded = np.append(case, np.zeros(50, dtype=np.int64))
    assert np.isnan(sign_saddlepoint_p(padded[None], ALL_EXACT)).all()


def test_a_lattice_of_which_a_few_units_are_no_part_is_left_to_the_exact_test() -> None:
    """118 of 120 differences are multiples of 10, so half a step is 5 and not 0.5."""
    case = np.array([10] * 75 + [-10] * 43 + [1, 1])
    assert np.isnan(sign_saddlepoint_p(case[None], ALL_EXACT)).all()
    assert sign_saddlepoint_p(case[None, :118], ALL_EXACT)[0] == pytest.approx(exact_p(case[:118]), rel=0.01)


def test_the_ends_of_the_distribution_are_exact() -> None:
    ones = np.ones(120, dtype=np.int64)
    balanced = np.append(ones[:60], -ones[:60])
    assert sign_saddlepoint_p(np.stack([3 * ones, balanced]), np.array([True, True])).tolist() == [2.0**-119, 1.0]
    assert sign_saddlepoint_p(np.ones((1, 3000), dtype=np.int64), ALL_EXACT)[0] > 0


def unequal(problems: int, low: int, high: int, drop: float, seed: int) -> PairChunk:
    generator = np.random.default_rng([problems, low, high, int(1000 * drop), seed])
    n = generator.integers(low, high + 1, (2, problems))
    rates = generator.beta(1, 1, problems)
    c = generator.binomial(n, np.stack([rates, rates * (1 - drop)]))
    return pair_chunk(outcome_matrix(n, c, np.zeros(problems, dtype=np.int64)), np.array([0]), np.array([1]))


@pytest.mark.parametrize(("low", "high"), [(18, 20), (13, 16)])
@pytest.mark.parametrize("drop", nightly_but([0.03], [0.0, 0.03, 0.1, 0.2]))
def test_attempts_within_problems_are_as_for_a_single_pair(low: int, high: int, drop: float) -> None:
    for seed in range(3):
        pair = unequal(400, low, high, drop, seed)
        known = attempt_kinds(pair.matrix)
        assert known is not None
        table = pair.matrix.pair(0, 1)
        computed, p = hypergeometric_test(table.swapped() if pair.differences.sum() < 0 else table)
        assert computed == "saddlepoint"
        assert hypergeometric_saddlepoint_p(known, pair, np.array([0]))[0] == pytest.approx(p, rel=0.001)


def test_one_number_of_attempts_on_each_side_is_a_lattice() -> None:
    generator = np.random.default_rng(3)
    n = np.repeat([[4], [8]], 500, axis=1)
    rates = generator.beta(1, 1, 500)
    for lift in (0.0, 0.05, 0.1):
        c = generator.binomial(n, np.stack([rates, rates + lift * (1 - rates)]))
        pair = pair_chunk(outcome_matrix(n, c, np.zeros(500, dtype=np.int64)), np.array([0]), np.array([1]))
        known, table = attempt_kinds(pair.matrix), pair.matrix.pair(0, 1)
        assert known is not None
        computed, p = hypergeometric_test(table.swapped() if pair.differences.sum() < 0 else table)
        assert computed == "exact"
        assert hypergeometric_saddlepoint_p(known, pair, np.array([0]))[0] == pytest.approx(p, rel=0.01)


@pytest.mark.parametrize(("low", "high"), [(10, 10), (18, 20), (3, 5)])
def test_the_bound_on_the_error_holds(low: int, high: int) -> None:
    for seed in range(0, 6, 2):
        pair = unequal(400, low, high, 0.02 * seed, seed)
        found = paired_tests(pair, attempt_kinds(pair.matrix), 1000, 1)
        assert "saddlepoint" in found.names[0] and found.error[0] > 0
        _, (p,) = exact_tests(pair, np.array([0]), 1000, 1)
        if p > 1e-8:
            assert found.p_values[0] == pytest.approx(p, rel=found.error[0])


def test_the_exact_test_decides_near_the_level() -> None:
    """With alpha at the p-value of each pair in turn, that pair is exact, and the verdicts are those of exact tests."""
    generator = np.random.default_rng(9)
    rates = generator.beta(1, 1, 300) * np.linspace(1, 0.9, 6)[:, None]
    matrix = outcome_matrix(np.full((6, 300), 8), generator.binomial(8, rates), np.zeros(300, dtype=np.int64))
    pairs = PairList(matrix, *np.triu_indices(6, 1))
    exact = [
        float(exact_tests(pair_chunk(matrix, *(x[None] for x in ab)), np.array([0]), 1000, 1)[1][0])
        for ab in zip(pairs.first, pairs.second, strict=True)
    ]
    order = np.argsort(exact)
    for rank, place in enumerate(order.tolist()):
        alpha = exact[place] * (len(order) - rank)
        if alpha < 0.5:
            found = compare_family([pairs], ComparisonSettings(alpha=alpha))
            assert found["test"][place] == "permutation-exact" and found["p_value"][place] == exact[place]
            assert found["p_adjusted"][place] >= alpha
            rest = np.array(exact) * (1 + 0.1) < alpha / len(order)
            assert (found["p_adjusted"].filter(rest) <= alpha).all()


def test_a_p_value_does_not_depend_on_the_other_pairs_unless_it_is_near_their_level(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_ERROR", 1e-9)
    generator = np.random.default_rng(4)
    c = generator.binomial(8, generator.beta(1, 1, 300), (4, 300))
    matrix = outcome_matrix(np.full(c.shape, 8), c, np.zeros(300, dtype=np.int64))
    first, second = np.triu_indices(4, 1)
    together = compare_family([PairList(matrix, first, second)], ComparisonSettings())["p_value"]
    alone = [
        compare_family([PairList(matrix, first[[place]], second[[place]])], ComparisonSettings())["p_value"][0]
        for place in range(len(first))
    ]
    assert together.to_list() == alone
