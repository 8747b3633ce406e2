"""Intervals of the cost of pass: the equation of the limits, and edge cases. Coverage is in test_unit_coverage.py."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from touchstone.config import IntervalSettings
from touchstone.inference.ratios import cost_of_pass_interval, lognormal_upper_limit
from touchstone.inference.uncertainty import Interval

SETTINGS = IntervalSettings()


def interval_of(*units: tuple[float, int, float, int]) -> Interval:
    """Units as (cost, attempts, passes, decided attempts)."""
    columns = [np.array(column) for column in zip(*units, strict=True)] or [np.array([], dtype=np.int64)] * 4
    costs, attempts, passes, decided = columns
    return cost_of_pass_interval(costs.astype(float), attempts, passes.astype(float), decided, SETTINGS)


def score(rate: float, units: int, reach: float) -> list[float]:
    """The ends of a score interval, as the roots of (rate - p)^2 = reach^2 p (1 - p) / units."""
    return sorted(np.roots([1 + reach**2 / units, -2 * rate - reach**2 / units, rate**2]).real.tolist())


@pytest.mark.parametrize("passes", [7, 20, 10])
def test_a_cost_that_is_always_the_same_is_divided_by_the_ends_of_the_pass_rate(passes: int) -> None:
    found = interval_of(*[(3.0, 1, float(place < passes), 1) for place in range(20)])
    # Twenty plain outcomes scatter by 20 / 19 of p (1 - p), unless all agree; Student's t has 19 degrees of freedom.
    effective = 20 if passes == 20 else 19 + 1e-9
    low, high = score(passes / 20, effective, special.stdtrit(19, 0.975))
    assert (found.method, found.units) == ("fieller", 20)
    assert (found.low, found.high) == pytest.approx((3 / high, 3 / low), rel=1e-4)


def test_the_ends_are_where_the_difference_is_just_significant() -> None:
    units = [(2.0, 2, 2.0, 2), (3.0, 2, 0.0, 2), (2.4, 2, 1.0, 2), (2.2, 2, 2.0, 2), (3.5, 2, 0.0, 2), (2.8, 2, 1.0, 2)]
    found = interval_of(*units)
    costs, _, passes, _ = np.array(units).T
    cost, rate = costs.sum() / 12, passes.sum() / 12
    over, above = (costs - 2 * cost) / 12, (passes - 2 * rate) / 12
    seen = 6 / 5 * np.sum(above**2)
    believed = seen + np.exp(-6 * rate / 0.75) * (rate * (1 - rate) / 6 - seen)
    effective = rate * (1 - rate) / believed
    assert found.method == "fieller"
    for ratio in (found.low, found.high):
        implied = cost / ratio
        variance = 6 / 5 * np.sum(over**2) - 2 * ratio * 6 / 5 * np.sum(over * above)
        variance += ratio**2 * implied * (1 - implied) / effective
        assert abs(cost - ratio * rate) == pytest.approx(special.stdtrit(5, 0.975) * np.sqrt(variance))


def test_where_nothing_passes_the_low_end_is_finite() -> None:
    found = interval_of(*[(2.0, 1, 0.0, 1)] * 20)
    reach = special.stdtrit(19, 0.975)
    assert found.low == pytest.approx(2 * (20 + reach**2) / reach**2)
    assert found.high == math.inf


def test_where_all_pass_at_one_cost_the_high_end_is_above_it() -> None:
    found = interval_of(*[(2.0, 1, 1.0, 1)] * 20)
    assert found.low == pytest.approx(2.0)
    assert found.high > 2.2


def test_what_costs_nothing_costs_nothing() -> None:
    assert interval_of(*[(0.0, 1, 1.0, 1)] * 8) == Interval(0.0, 0.0, "fieller", 8)
    assert interval_of(*[(0.0, 1, 0.0, 1)] * 8) == Interval(0.0, math.inf, "fieller", 8)


def test_one_problem_does_not_tell_how_far_costs_scatter() -> None:
    assert interval_of((10.0, 10, 10.0, 10)) == Interval(None, None, None, 1)


def test_two_problems_are_wide() -> None:
    found = interval_of((10.0, 10, 10.0, 10), (12.0, 10, 9.0, 10))
    assert (found.method, found.units) == ("fieller", 2)
    assert found.high > 4 * found.low


def skewed(count: int, passes: int) -> list[tuple[float, int, float, int]]:
    costs = np.exp(np.random.default_rng(count).normal(0, 1.5, count))
    return [(float(cost), 1, float(place < passes), 1) for place, cost in enumerate(costs)]


def test_skewed_costs_have_an_interval_of_their_own() -> None:
    found = interval_of(*skewed(30, 15))
    assert (found.method, found.units) == ("bootstrap-t-log", 30)
    assert found.low > 0 and found.high < math.inf


def test_equal_clusters_hide_skew_and_unequal_ones_are_wide_already() -> None:
    """With a log standard deviation of 0.5 over equal clusters, Fieller's interval covers 90% in simulation."""
    costs = np.exp(np.linspace(-0.8, 0.8, 12))
    equal = [(20 * float(cost), 20, 10.0, 20) for cost in costs]
    unequal = [(size * float(cost), size, size / 2, size) for cost, size in zip(costs, [60, *[10] * 11], strict=True)]
    assert interval_of(*equal).method == "bootstrap-t-log"
    assert interval_of(*unequal).method == "fieller"


@pytest.mark.parametrize(("count", "passes"), [(5, 3), (30, 1)])
def test_few_units_or_passes_leave_only_the_upper_end_to_be_raised(count: int, passes: int) -> None:
    found = interval_of(*skewed(count, passes))
    assert found.method == "fieller-widened"
    assert interval_of(*skewed(count, 0)).high == math.inf


def test_the_upper_end_is_that_of_a_lognormal_mean_where_it_is_the_higher() -> None:
    # Symmetric logs, so that the spread above the median is that of all; every attempt passes.
    logs = np.array([-2.0, -1.5, -1.0, 0.0, 1.0, 1.5, 2.0])
    found = lognormal_upper_limit(np.exp(logs), np.ones(7, dtype=np.int64), np.ones(7), 6, SETTINGS)
    variance = float(np.var(logs, ddof=1))
    centre = max(variance / 2, math.log(np.exp(logs).mean()))
    of_mean = special.stdtrit(6, 0.975) ** 2 * variance / 7
    of_spread = (variance / 2 * (6 / special.chdtri(6, 0.975) - 1)) ** 2
    assert found == pytest.approx(math.exp(centre + math.sqrt(of_mean + of_spread)))


def test_costs_of_nothing_at_all_do_not_break_the_log() -> None:
    found = interval_of(*[(0.0, 1, 1.0, 1)] * 4, *skewed(20, 10))
    assert found.method == "bootstrap-t-log"
    assert found.low <= sum(row[0] for row in skewed(20, 10)) / 14 <= found.high


def test_undecided_attempts_have_a_cost_and_no_outcome() -> None:
    found = interval_of(*[(4.0, 2, float(place % 2), 1) for place in range(30)])
    assert found.low < 4.0 < found.high


def test_no_attempts_have_no_interval() -> None:
    assert interval_of() == Interval(None, None, None, 0)
    assert interval_of((1.0, 1, 0.0, 0)).method is None


units = st.tuples(st.floats(0.01, 10), st.integers(1, 5)).flatmap(
    lambda unit: st.tuples(st.just(unit[0]), st.just(unit[1]), st.integers(0, unit[1]), st.just(unit[1]))
)


@given(st.lists(units, min_size=2, max_size=20).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_the_interval_holds_the_ratio_in_any_order(
    orders: tuple[list[tuple[float, int, int, int]], list[tuple[float, int, int, int]]],
) -> None:
    found = interval_of(*orders[0])
    assert interval_of(*orders[1]) == found
    cost, passes = sum(row[0] for row in orders[0]), sum(row[2] for row in orders[0])
    assert found.low is not None and found.high is not None
    assert 0 <= found.low < math.inf
    assert (found.high == math.inf) == (passes == 0)
    if passes:
        assert found.low <= cost / passes * (1 + 1e-9) and cost / passes <= found.high * (1 + 1e-9)
