"""Intervals of medians: worked examples and edge cases. Their coverage is in test_unit_coverage.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from touchstone.config import IntervalSettings
from touchstone.inference.medians import Sample, median_interval
from touchstone.inference.uncertainty import Interval

SETTINGS = IntervalSettings()


def interval_of(*units: list[float], settings: IntervalSettings = SETTINGS) -> Interval:
    values = np.array([value for unit in units for value in unit])
    codes = np.array([place for place, unit in enumerate(units) for _ in unit], dtype=np.int64)
    return median_interval(Sample(values, codes, np.ones(len(values), dtype=np.int64)), settings)


def test_worked_example_of_a_hundred_problems() -> None:
    # The share up to the median may be off a half by 1.96 * 0.5 / 10, so the ends are the 41st from either side.
    found = interval_of(*([value / 100] for value in range(100)))
    assert found == Interval(0.40, 0.59, "woodruff", 100)


def test_worked_example_of_ten_attempts_at_each_of_ten_problems() -> None:
    # Problems at which all attempts score alike count as one value each, but with Student's t for the normal quantile.
    found = interval_of(*([place / 10] * 10 for place in range(10)))
    least = 0.5 - special.stdtrit(9, 0.975) / (2 * np.sqrt(9))
    assert 0.1 < least < 0.2
    assert found == Interval(0.1, 0.8, "woodruff", 10)


def test_attempts_that_differ_within_problems_say_more_than_such_that_do_not() -> None:
    generator = np.random.default_rng(1)
    scattered = interval_of(*generator.random((30, 20)).tolist())
    alike = interval_of(*([value] * 20 for value in generator.random(30)))
    assert scattered.units == alike.units == 30
    assert scattered.high - scattered.low < 0.5 * (alike.high - alike.low)


@pytest.mark.parametrize(("units", "ends"), [(1, (0.0, 1.0)), (5, (0.0, 1.0)), (6, (0.75, 0.75)), (40, (0.75, 0.75))])
@pytest.mark.parametrize("attempts", [1, 7])
def test_units_that_all_agree_need_to_be_six(units: int, attempts: int, ends: tuple[float, float]) -> None:
    found = interval_of(*([0.75] * attempts for _ in range(units)))
    assert (found.low, found.high, found.units) == (*ends, units)


def test_more_confidence_needs_more_units() -> None:
    sure = IntervalSettings(confidence=0.99)
    assert interval_of(*([0.5] for _ in range(7)), settings=sure).high == 1.0
    assert interval_of(*([0.5] for _ in range(8)), settings=sure).high == 0.5


def test_a_median_between_two_values_includes_both() -> None:
    found = interval_of(*[[0.0]] * 49, *[[1.0]] * 51)
    assert (found.low, found.high) == (0.0, 1.0)
    assert interval_of(*[[0.0]] * 30, *[[1.0]] * 70).low == 1.0


def test_nothing_has_no_median() -> None:
    assert interval_of() == Interval(None, None, None, 0)


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=40).flatmap(
        lambda rows: st.tuples(st.just(rows), st.permutations(rows))
    )
)
def test_the_order_of_rows_does_not_show_and_the_median_is_held(
    orders: tuple[list[tuple[int, int]], list[tuple[int, int]]],
) -> None:
    one, other = (
        median_interval(
            Sample(
                np.array([score / 4 for _, score in rows]),
                np.array([unit for unit, _ in rows]),
                np.ones(len(rows), dtype=np.int64),
            ),
            SETTINGS,
        )
        for rows in orders
    )
    assert one == other
    values = sorted(score / 4 for _, score in orders[0])
    assert one.low is not None and one.high is not None
    assert 0 <= one.low <= values[(len(values) - 1) // 2]
    assert values[len(values) // 2] <= one.high <= 1
