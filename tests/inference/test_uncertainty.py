"""Intervals of means and differences: known values and edge cases. Their coverage is in test_coverage.py."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from tests.inference.scalar_intervals import paired_interval
from touchstone.config import IntervalSettings
from touchstone.inference.uncertainty import BOOTSTRAP_FROM, MAX_BINS, Interval, mean_interval, unit_interval, wilson

SETTINGS = IntervalSettings(replicates=2000)

Measure = Callable[..., Interval]


def interval_of(values: list[float], clusters: list[str | None] | None = None, settings: IntervalSettings = SETTINGS):  # type: ignore[no-untyped-def]
    if clusters is None:
        distinct, weights = np.unique(np.array(values, dtype=float), return_counts=True)
        return mean_interval(distinct, weights, [None] * len(distinct), settings)
    return mean_interval(np.array(values, dtype=float), np.ones(len(values), dtype=np.int64), clusters, settings)


def paired_of(values: list[float], settings: IntervalSettings = SETTINGS):  # type: ignore[no-untyped-def]
    distinct, weights = np.unique(np.array(values, dtype=float), return_counts=True)
    return paired_interval(distinct, weights, [None] * len(distinct), settings)


def test_wilson_is_symmetric() -> None:
    low, high = wilson(0.3, 40, 0.95)
    mirrored = wilson(0.7, 40, 0.95)
    assert (low, high) == pytest.approx((1 - mirrored[1], 1 - mirrored[0]))


def test_no_values_have_no_interval() -> None:
    nothing = mean_interval(np.array([]), np.array([], dtype=np.int64), [], SETTINGS)
    assert (nothing.low, nothing.high, nothing.method, nothing.units) == (None, None, None, 0)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.4])
def test_problems_that_all_agree_do_not_collapse_to_a_point(value: float) -> None:
    interval = interval_of([value] * 20)
    assert interval.method == "wilson"
    assert interval.high - interval.low > 0.1


def test_plain_rates_use_wilson() -> None:
    interval = interval_of([1.0] * 7 + [0.0] * 3)
    assert (interval.low, interval.high) == wilson(0.7, 10, 0.95)
    assert (interval.method, interval.units) == ("wilson", 10)


def test_small_suites_use_wilson_on_the_effective_number_of_problems() -> None:
    values = [0.1, 0.5, 0.6, 0.9]
    mean, variance = np.mean(values), np.var(values, ddof=1)
    # Near two passes and two failures: the scatter seen is believed but for a few percent.
    believed = variance + np.exp(-4 * (1 - mean) / 0.75) * (mean * (1 - mean) - variance)
    effective, reach = 4 * mean * (1 - mean) / believed, special.stdtrit(3, 0.975)
    # The ends are where the mean is just `reach` standard errors of the end itself away.
    interval = interval_of(values)
    assert interval.method == "wilson-t"
    for end in (interval.low, interval.high):
        assert abs(mean - end) == pytest.approx(reach * np.sqrt(end * (1 - end) / effective))


def test_small_suites_away_from_the_edges_come_near_student() -> None:
    values = list(np.linspace(0.3, 0.7, 60))
    reach = special.stdtrit(59, 0.975) * np.std(values, ddof=1) / np.sqrt(60)
    interval = interval_of(values)
    assert (interval.low, interval.high) == pytest.approx((0.5 - reach, 0.5 + reach), abs=1e-4)


def test_almost_perfect_suites_are_not_surer_than_perfect_ones() -> None:
    almost, perfect = interval_of([1.0] * 29 + [0.9999]), interval_of([1.0] * 30)
    assert almost.method == "wilson-t"
    assert almost.low < perfect.low


def test_large_suites_near_an_edge_do_not_use_the_bootstrap() -> None:
    passes = [1.0] * 990 + [0.1, 0.9] * 5
    assert interval_of(passes).method == "wilson-t"
    assert interval_of([1 - value for value in passes]).method == "wilson-t"


def test_large_suites_use_the_bootstrap_and_it_is_seeded() -> None:
    values = list(np.random.default_rng(1).random(BOOTSTRAP_FROM))
    first, second = interval_of(values), interval_of(values)
    assert first.method == "bootstrap"
    assert first == second
    assert first != interval_of(values, settings=IntervalSettings(replicates=2000, seed=8))


def test_bootstrap_agrees_with_resampling_problems_one_by_one() -> None:
    values = np.round(np.random.default_rng(2).beta(0.5, 0.8, 400), 1)
    generator = np.random.default_rng(3)
    means = generator.choice(values, size=(20_000, len(values))).mean(axis=1)
    interval = interval_of(list(values), settings=IntervalSettings(replicates=20_000))
    assert interval.low == pytest.approx(np.quantile(means, 0.025), abs=0.002)
    assert interval.high == pytest.approx(np.quantile(means, 0.975), abs=0.002)


def test_more_values_than_bins_keep_mean_and_scatter() -> None:
    values = np.random.default_rng(4).beta(2, 3, 5000)
    error = values.std() / np.sqrt(len(values))
    interval = interval_of(list(values), settings=IntervalSettings(replicates=5_000))
    assert len(set(values.tolist())) > MAX_BINS
    assert (interval.low + interval.high) / 2 == pytest.approx(values.mean(), abs=0.05 * error)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * error, rel=0.03)


def test_an_outlier_does_not_hide_the_scatter_inside_a_bin() -> None:
    # All but one of eight million problems share two of the 256 bins.
    values, weights = np.append(0.3, np.linspace(0.5, 0.501, 400)), np.append(1, np.full(400, 20_000))
    interval = mean_interval(values, weights, [None] * 401, SETTINGS)
    mean = np.average(values, weights=weights)
    error = np.sqrt(np.average((values - mean) ** 2, weights=weights) / weights.sum())
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * error, rel=0.1)


@pytest.mark.parametrize("measure", [mean_interval, paired_interval])
@pytest.mark.parametrize("problems", [2, 5, 60, 400])
def test_clusters_of_one_problem_change_nothing(problems: int, measure: Measure) -> None:
    values = np.random.default_rng(problems).integers(0, 11, problems) / 10
    plain = measure(*np.unique(values, return_counts=True), [None] * len(set(values.tolist())), SETTINGS)
    names = [f"cluster {place}" for place in range(problems)]
    clustered = measure(values, np.ones(problems, dtype=np.int64), names, SETTINGS)
    assert clustered == plain


@pytest.mark.parametrize("measure", [mean_interval, paired_interval])
@pytest.mark.parametrize("problems", [40, 400])
@pytest.mark.parametrize("clusters", [None, 25])
def test_neither_order_nor_grouping_of_rows_shows(problems: int, clusters: int | None, measure: Measure) -> None:
    generator = np.random.default_rng(problems)
    values = generator.integers(0, 8, problems) / 7
    names = [None if clusters is None else f"cluster {place % clusters}" for place in range(problems)]
    order = generator.permutation(problems)
    once = np.ones(problems, dtype=np.int64)
    straight = measure(values, once, names, SETTINGS)
    assert measure(values[order], once, [names[place] for place in order], SETTINGS) == straight
    if clusters is None:
        distinct, weights = np.unique(values, return_counts=True)
        assert measure(distinct, weights, [None] * len(distinct), SETTINGS) == straight


def test_problems_that_share_a_cluster_widen_the_interval() -> None:
    values = [0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.5, 0.5, 0.5, 0.2, 0.2, 0.2]
    clusters: list[str | None] = [name for name in "abcd" for _ in range(3)]
    plain, clustered = interval_of(values), interval_of(values, clusters)
    assert clustered.units == 4
    assert clustered.high - clustered.low > 1.5 * (plain.high - plain.low)


def test_one_cluster_says_almost_nothing() -> None:
    interval = interval_of([0.2, 0.8, 0.5], ["a", "a", "a"])
    assert interval == Interval(*wilson(0.5, 1, 0.95), "wilson", 1) and interval.high - interval.low > 0.7


def units_of(*units: tuple[float, int], settings: IntervalSettings = SETTINGS) -> Interval:
    """Units as (sum, size)."""
    sums, sizes = np.array([total for total, _ in units], dtype=float), np.array([size for _, size in units])
    return unit_interval(sums, sizes, np.ones(len(units), dtype=np.int64), settings)


def test_worked_example_of_attempts_in_three_problems() -> None:
    # 2 of 4, 3 of 4 and 8 of 8 passed: 13 of 16, with residuals of -1.25, -0.25 and 1.5, which keep 3/4, 3/4 and 1/2
    # of their variance. With b = 16/12, 16/12 and 64/8 there are 256 / (96 + 10.67^2 - 67.56) degrees of freedom.
    interval = units_of((2, 4), (3, 4), (8, 8))
    mean, error = 13 / 16, np.sqrt((1.25**2 + 0.25**2) / 0.75 + 1.5**2 / 0.5) / 16
    degrees = 256 / (96 + (32 / 3) ** 2 - (64 + 2 * 16 / 9))
    most, reach = mean * (1 - mean), special.stdtrit(degrees, 0.975)
    unseen = most * (special.stdtrit(2, 0.975) / reach) ** 2
    variance = 3 * error**2 + np.exp(-3 * (1 - mean) / 0.75) * max(0, unseen - 3 * error**2)
    effective = 3 * most / variance
    assert (interval.method, interval.units) == ("wilson-t", 3)
    for end in (interval.low, interval.high):
        assert abs(mean - end) == pytest.approx(reach * np.sqrt(end * (1 - end) / effective))


def test_attempts_do_not_count_as_problems() -> None:
    once, often = units_of((1, 1), (0, 1), (1, 1), (0, 1)), units_of((99, 99), (0, 99), (99, 99), (0, 99))
    assert (once.method, often.method, often.units) == ("wilson", "wilson-t", 4)
    assert often.low < once.low and once.high < often.high


@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
def test_units_that_all_agree_are_counted_and_not_their_attempts(rate: float) -> None:
    interval = units_of(*[(rate * size, size) for size in range(2, 22, 2)])
    assert (interval.low, interval.high) == wilson(rate, 10, 0.95)
    assert (interval.method, interval.units) == ("wilson", 10)


def test_units_without_a_value_are_no_units() -> None:
    assert units_of((0, 0), (1, 1), (0, 1)) == units_of((1, 1), (0, 1))
    assert units_of((0, 0)) == Interval(None, None, None, 0)


@pytest.mark.parametrize("problems", [2, 40, 400])
def test_units_of_one_value_are_what_a_mean_over_problems_is(problems: int) -> None:
    values = np.random.default_rng(problems).integers(0, 11, problems) / 10
    assert units_of(*[(value, 1) for value in values]) == interval_of(list(values))


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 4)), min_size=1, max_size=30).flatmap(
        lambda units: st.tuples(st.just(units), st.permutations(units))
    )
)
def test_neither_order_nor_grouping_of_units_shows(orders: tuple[list[tuple[int, int]], list[tuple[int, int]]]) -> None:
    one, other = ([(share / 20 * size, size) for share, size in units] for units in orders)
    straight = units_of(*one)
    assert units_of(*other) == straight
    distinct = sorted(set(one))
    sums, sizes = np.array([total for total, _ in distinct]), np.array([size for _, size in distinct])
    assert unit_interval(sums, sizes, np.array([one.count(unit) for unit in distinct]), SETTINGS) == straight
    assert 0 <= straight.low < straight.high <= 1


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40))
def test_the_interval_lies_in_bounds_and_holds_the_mean(values: list[float]) -> None:
    interval = interval_of(values)
    assert 0 <= interval.low <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= interval.high <= 1


@pytest.mark.parametrize("same", [0.0, 0.5, 1.0])
def test_models_that_always_differ_by_the_same_may_differ_otherwise_elsewhere(same: float) -> None:
    interval = paired_of([same] * 20)
    assert (interval.method, interval.units) == ("t-widened", 20)
    ends = (same - 0.1611 * (1 + same), same + 0.1611 * (1 - same))
    assert (interval.low, interval.high) == pytest.approx(ends, abs=5e-4)


def test_models_that_hardly_differ_are_not_surer_than_those_that_never_do() -> None:
    hardly, never = paired_of([0.0] * 29 + [0.0001]), paired_of([0.0] * 30)
    assert hardly.method == "t-widened"
    assert hardly.high - hardly.low == pytest.approx(never.high - never.low, rel=0.01)
