"""Intervals of a paired difference: consistent with the test, mirrored, and careful about the margin."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from touchstone.inference.paired_intervals import Limits, consistent_with_test, difference_intervals, widen_to_margins
from touchstone.inference.paired_moments import PairMoments, outcome_matrix, pair_chunk, pair_moments

ENDS = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted)


def flipped(wins: int, losses: int, problems: int) -> PairMoments:
    passed = np.zeros((2, problems), dtype=np.int64)
    passed[1, :wins], passed[0, wins : wins + losses] = 1, 1
    matrix = outcome_matrix(np.ones_like(passed), passed, np.zeros(problems, dtype=np.int64))
    return pair_moments(pair_chunk(matrix, np.array([0]), np.array([1])))


def within(pair: PairMoments, margin: float, confidence: float = 0.95) -> bool:
    found = widen_to_margins(difference_intervals(pair, confidence), pair, margin, confidence)
    return bool(-margin < found.low[0] and found.high[0] < margin)


@given(ENDS, st.booleans(), st.sampled_from([-1, 1]))
def test_zero_is_inside_exactly_where_the_test_does_not_reject(ends: list[float], rejected: bool, side: int) -> None:
    low, high = ends
    difference = side * max(abs(low), abs(high), 0.1)
    limits = Limits(np.array([min(low, difference)]), np.array([max(high, difference)]), np.array(["t"]))
    found = consistent_with_test(limits, np.array([difference]), np.array([rejected]))
    low, high = found.low[0], found.high[0]
    assert low <= difference <= high
    assert (low >= 0 or high <= 0) if rejected else low <= 0 <= high


def test_few_flips_are_no_proof_of_equality() -> None:
    """With a true loss of 5 in 100, 2 flips or fewer of 100 come up one time in eight."""
    pair = flipped(0, 2, 100)
    assert difference_intervals(pair, 0.95).low[0] > -0.05
    assert not within(pair, 0.05)
    assert within(flipped(0, 2, 400), 0.05)


@pytest.mark.parametrize("problems", [60, 100, 400, 1000])
def test_a_loss_of_the_margin_is_rarely_called_irrelevant_however_few_problems_flip(problems: int) -> None:
    """All problems pass at first, and each is lost with the chance of the margin: exactly, over the number lost."""
    wrong = math.fsum(
        float(scipy.stats.binom.pmf(lost, problems, 0.05))
        for lost in range(int(0.05 * problems) + 1)
        if within(flipped(0, lost, problems), 0.05)
    )
    print(f"{problems} problems: {wrong:.4f}")
    assert wrong <= 0.03


def test_one_problem_proves_nothing() -> None:
    assert not within(flipped(0, 0, 1), 0.9)
