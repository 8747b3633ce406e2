"""Intervals of a paired difference: consistent with the test, mirrored, and careful about the margin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from touchstone.inference.paired_intervals import PairedDifferences, consistent_with_test, widen_to_margins
from touchstone.inference.paired_units import PairedOutcomes, independent_units, outcome_matrix
from touchstone.inference.uncertainty import Interval

ENDS = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted)


def flipped(wins: int, losses: int, problems: int) -> PairedOutcomes:
    passed = np.zeros((2, problems), dtype=np.int64)
    passed[1, :wins], passed[0, wins : wins + losses] = 1, 1
    return outcome_matrix(np.ones_like(passed), passed, np.zeros(problems, dtype=np.int64)).pair(0, 1)


def within(table: PairedOutcomes, margin: float, confidence: float = 0.95) -> bool:
    problems = table.problem_units()
    differences = PairedDifferences.of(table, problems)
    units = independent_units(table, problems)
    found = widen_to_margins(differences.interval(confidence), units, differences.standard_error, margin, confidence)
    assert found.low is not None and found.high is not None
    return -margin < found.low and found.high < margin


@given(ENDS, st.booleans(), st.sampled_from([-1, 1]))
def test_zero_is_inside_exactly_where_the_test_does_not_reject(ends: list[float], rejected: bool, side: int) -> None:
    low, high = ends
    difference = side * max(abs(low), abs(high), 0.1)
    found = consistent_with_test(
        Interval(min(low, difference), max(high, difference), "t", 9), difference, rejected=rejected
    )
    assert found.low is not None and found.high is not None
    assert found.low <= difference <= found.high
    assert (found.low >= 0 or found.high <= 0) if rejected else found.low <= 0 <= found.high


def test_an_undefined_interval_stays_so() -> None:
    nothing = Interval(None, None, None, 0)
    assert consistent_with_test(nothing, 0.0, rejected=False) is nothing


def test_few_flips_are_no_proof_of_equality() -> None:
    """With a true loss of 5 in 100, 2 flips or fewer of 100 come up one time in eight."""
    table = flipped(0, 2, 100)
    shown = PairedDifferences.of(table, table.problem_units()).interval(0.95)
    assert shown.low is not None and shown.low > -0.05
    assert not within(table, 0.05)
    assert within(flipped(0, 2, 400), 0.05)


@pytest.mark.parametrize("problems", [60, 100, 400, 1000])
def test_a_loss_of_the_margin_is_rarely_called_irrelevant_however_few_problems_flip(problems: int) -> None:
    """All problems pass at first, and each is lost with the chance of the margin: exactly, over the number lost."""
    wrong = math.fsum(
        float(stats.binom.pmf(lost, problems, 0.05))
        for lost in range(int(0.05 * problems) + 1)
        if within(flipped(0, lost, problems), 0.05)
    )
    print(f"{problems} problems: {wrong:.4f}")
    assert wrong <= 0.03


def test_one_problem_proves_nothing() -> None:
    assert not within(flipped(0, 0, 1), 0.9)
