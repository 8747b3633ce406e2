"""The exact sign test of many pairs at once: equal to whole numbers and to the Fourier transform, row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import more_examples, nightly_but
from tests.inference.test_paired_tests import whole_tail
from touchstone.inference import paired_tests
from touchstone.inference.arrays import Integers
from touchstone.inference.paired_tests import sign_exact_p
from touchstone.inference.tails import DiscreteTerms, lattice_tail, two_sided

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
    (p,) = p_of_rows(differences)
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
