"""Moments of many pairs at once: equal to exact arithmetic and to the formulas for one mean, whatever else is there."""

from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inference.scalar_intervals import difference_interval, difference_units
from touchstone.inference import paired_moments
from touchstone.inference.paired_intervals import difference_intervals
from touchstone.inference.paired_moments import (
    OutcomeMatrix,
    PairMoments,
    joined,
    outcome_matrix,
    pair_chunk,
    pair_chunks,
    pair_moments,
)
from touchstone.inference.uncertainty import cluster_robust_se

Cell = tuple[int, int]
# Attempts and passes; 0 attempts is nothing decided. 97 and 89 have no small common denominator with others.
CELLS = st.sampled_from([0, 1, 2, 5, 10, 89, 97]).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
PROBLEMS = st.lists(st.tuples(CELLS, CELLS, st.sampled_from([0, 0, 1, 2, 3])), min_size=1, max_size=30)


def matrix_of(problems: list[tuple[Cell, Cell, int]]) -> OutcomeMatrix:
    counts = np.array([[a, b] for a, b, _ in problems]).transpose(2, 1, 0)
    return outcome_matrix(counts[0], counts[1], np.array([cluster for _, _, cluster in problems]))


def moments_of(matrix: OutcomeMatrix) -> PairMoments:
    return pair_moments(pair_chunk(matrix, np.array([0]), np.array([1])))


def shared(problems: list[tuple[Cell, Cell, int]]) -> list[tuple[Fraction, Fraction, int]]:
    return [(Fraction(a[1], a[0]), Fraction(b[1], b[0]), cluster) for a, b, cluster in problems if a[0] and b[0]]


@given(PROBLEMS)
def test_integers_of_64_bits_give_the_figures_of_integers_of_any_size(problems: list[tuple[Cell, Cell, int]]) -> None:
    if not shared(problems):
        return
    small = moments_of(matrix_of(problems))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paired_moments, "_sized", lambda values, chunk: values.astype(object))
        large = moments_of(matrix_of(problems))
    for field in fields(PairMoments):
        assert np.array_equal(getattr(small, field.name), getattr(large, field.name), equal_nan=True)


@given(PROBLEMS)
def test_one_pair_has_the_figures_of_one_mean(problems: list[tuple[Cell, Cell, int]]) -> None:
    """The scalar formulas for clustered means, on differences in floats."""
    rates = shared(problems)
    if not rates:
        return
    moments = moments_of(matrix_of(problems))
    differences = np.array([float(b - a) for a, b, _ in rates])
    clusters = [str(cluster) if cluster else None for _, _, cluster in rates]
    units = difference_units(differences, np.ones(len(rates), dtype=np.int64), clusters)
    assert units is not None
    assert (moments.problems[0], moments.units[0]) == (units.total, units.units)
    assert moments.difference[0] == pytest.approx(units.mean, rel=1e-12, abs=1e-15)
    assert moments.standard_error[0] == pytest.approx(units.standard_error or 0.0, rel=1e-12, abs=1e-14)
    if units.degrees_of_freedom is not None:
        assert moments.degrees[0] == pytest.approx(units.degrees_of_freedom, rel=1e-12)
    limits, scalar = difference_intervals(moments, 0.95), difference_interval(units, 0.95)
    assert (limits.low[0], limits.high[0]) == pytest.approx((scalar.low, scalar.high), rel=1e-11, abs=1e-12)


@given(PROBLEMS)
def test_sums_over_problems_are_exact(problems: list[tuple[Cell, Cell, int]]) -> None:
    rates = shared(problems)
    if not rates:
        return
    moments, count = moments_of(matrix_of(problems)), len(rates)
    mean = sum(b - a for a, b, _ in rates) / count
    expected = {
        "rate_a": sum(a for a, _, _ in rates) / count,
        "rate_b": sum(b for _, b, _ in rates) / count,
        "product": sum(a * b for a, b, _ in rates) / count,
        "problem_scatter": sum((b - a - mean) ** 2 for a, b, _ in rates),
    }
    for name, value in expected.items():
        assert getattr(moments, name)[0] == pytest.approx(float(value), rel=1e-15, abs=1e-15)
    assert (moments.wins[0], moments.losses[0]) == (sum(b > a for a, b, _ in rates), sum(b < a for a, b, _ in rates))


@pytest.mark.parametrize("attempts", [(10, 10), (18, 20), (88, 99)], ids=str)
@pytest.mark.parametrize("clusters", [0, 7])
def test_a_pair_has_the_same_figures_alone_and_among_others(
    attempts: tuple[int, int], clusters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In chunks of three pairs; 88 to 99 attempts have no common denominator."""
    generator = np.random.default_rng(5)
    n = generator.integers(attempts[0], attempts[1] + 1, (6, 40)) * (generator.random((6, 40)) < 0.9)
    c = generator.binomial(n, generator.beta(1, 1, 40))
    inside = generator.integers(0, clusters + 1, 40)
    first, second = np.triu_indices(6, 1)
    monkeypatch.setattr(paired_moments, "_CHUNK", 120)
    parts = [pair_moments(chunk) for chunk in pair_chunks(outcome_matrix(n, c, inside), first, second)]
    assert [len(part.problems) for part in parts] == [3] * 5
    together = joined(parts)
    for place, (a, b) in enumerate(zip(first, second, strict=True)):
        alone = moments_of(outcome_matrix(n[[a, b]], c[[a, b]], inside))
        for field in fields(PairMoments):
            assert getattr(together, field.name)[place] == getattr(alone, field.name)[0], field.name


def test_hardly_any_scatter_around_a_large_difference_keeps_its_digits() -> None:
    """The differences of squares would cancel in floats."""
    c = np.zeros((2, 1000), dtype=np.int64)
    c[1] = 9_999_999
    c[1, 0] = 10_000_000
    moments = moments_of(outcome_matrix(np.full((2, 1000), 10_000_000), c, np.zeros(1000, dtype=np.int64)))
    scatter = Fraction(1, 10_000_000) ** 2 * Fraction(999, 1000)
    assert moments.problem_scatter[0] == pytest.approx(float(scatter), rel=1e-15)
    assert moments.standard_error[0] == pytest.approx(float(scatter / 999 / 1000) ** 0.5, rel=1e-15)
    robust = cluster_robust_se(c[1] / 1e7, np.ones(1000, dtype=np.int64), np.ones(1000, dtype=np.int64))
    assert robust is not None and robust.standard_error == pytest.approx(moments.standard_error[0], rel=1e-6)
