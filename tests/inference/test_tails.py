"""Exact tails by convolution: equal to sums over all combinations and to the Fourier transform."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import more_examples
from touchstone.inference import tails
from touchstone.inference.tails import DiscreteTerms, exact_tail, lattice_tail

# The step, the relative probabilities of 0, 1, ... steps, and how many variables there are of the kind.
KIND = st.tuples(st.integers(1, 9), st.lists(st.integers(0, 5), min_size=1, max_size=4), st.integers(1, 2))


def terms_of(kinds: list[tuple[int, list[int], int]]) -> DiscreteTerms:
    # The largest value of every kind is possible.
    weights = [[*some, 1] for _, some, _ in kinds]
    width = max(len(some) for some in weights)
    probabilities = np.array([some + [0] * (width - len(some)) for some in weights], dtype=np.float64)
    steps, counts = (np.array([kind[place] for kind in kinds], dtype=np.int64) for place in (0, 2))
    return DiscreteTerms(steps, probabilities / probabilities.sum(axis=1, keepdims=True), counts)


def over_all_combinations(terms: DiscreteTerms, observed: int) -> float:
    rows = zip(terms.steps.tolist(), terms.probabilities.tolist(), terms.counts.tolist(), strict=True)
    variables = [
        [(step * place, probability) for place, probability in enumerate(row) if probability]
        for step, row, count in rows
        for _ in range(count)
    ]
    return math.fsum(
        math.prod(probability for _, probability in way)
        for way in product(*variables)
        if sum(value for value, _ in way) >= observed
    )


@given(st.lists(KIND, min_size=1, max_size=4), st.floats(-0.1, 1.1))
@more_examples
def test_the_tail_is_the_sum_over_all_combinations(kinds: list[tuple[int, list[int], int]], share: float) -> None:
    terms = terms_of(kinds)
    observed = round(share * terms.total)
    assert exact_tail(terms, observed) == pytest.approx(over_all_combinations(terms, observed), rel=1e-13)


def random_terms(kinds: int, width: int, largest: int, seed: int) -> DiscreteTerms:
    generator = np.random.default_rng(seed)
    probabilities = generator.dirichlet(np.ones(width), kinds)
    return DiscreteTerms(generator.integers(1, largest + 1, kinds), probabilities, generator.integers(1, 4, kinds))


@pytest.mark.parametrize(("kinds", "width", "largest"), [(1, 40, 1), (12, 5, 3), (20, 6, 40), (30, 9, 6)])
def test_as_precise_as_the_fourier_transform_in_both_tails(kinds: int, width: int, largest: int) -> None:
    terms = random_terms(kinds, width, largest, 5)
    for share in (0.05, 0.3, 0.5, 0.7, 0.9, 0.99):
        observed = int(share * terms.total)
        assert exact_tail(terms, observed) == pytest.approx(lattice_tail(terms, observed), rel=1e-10)


def test_probabilities_with_gaps_are_convolved_value_by_value() -> None:
    gaps = np.zeros((6, 60))
    gaps[:, [0, 7, 31, 59]] = np.random.default_rng(1).dirichlet(np.ones(4), 6)
    terms = DiscreteTerms(np.ones(6, dtype=np.int64), gaps, np.full(6, 2))
    for observed in (100, 350, 600, 700):
        assert exact_tail(terms, observed) == pytest.approx(lattice_tail(terms, observed), rel=1e-10)


def test_a_tail_of_which_the_distribution_is_too_large_is_transformed(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = random_terms(12, 5, 30, 2)
    observed = int(0.6 * terms.total)
    near = exact_tail(terms, observed)
    monkeypatch.setattr(tails, "_WORK", 0)
    assert exact_tail(terms, observed) == lattice_tail(terms, observed) == pytest.approx(near, rel=1e-10)
