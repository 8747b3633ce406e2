"""Intervals: known values, the edges, and that they hold what they promise in simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from touchstone.config import IntervalSettings
from touchstone.metrics.pass_at_k import pass_at_k_of_pairs
from touchstone.metrics.uncertainty import BOOTSTRAP_FROM, mean_interval, wilson

SETTINGS = IntervalSettings(replicates=2000)


def interval_of(values: list[float], clusters: list[str | None] | None = None, settings: IntervalSettings = SETTINGS):  # type: ignore[no-untyped-def]
    if clusters is None:
        distinct, weights = np.unique(np.array(values, dtype=float), return_counts=True)
        return mean_interval(distinct, weights, [None] * len(distinct), settings)
    return mean_interval(np.array(values, dtype=float), np.ones(len(values), dtype=np.int64), clusters, settings)


def test_wilson_for_twenty_of_twenty() -> None:
    low, high = wilson(1.0, 20, 0.95)
    assert low == pytest.approx(0.839, abs=5e-4)
    assert high == 1.0


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


def test_small_suites_use_student_on_problem_means() -> None:
    values = [0.1, 0.5, 0.6, 0.9]
    mean, error = np.mean(values), np.std(values, ddof=1) / 2
    reach = special.stdtrit(3, 0.975) * error
    interval = interval_of(values)
    assert interval.method == "t"
    assert interval.low == pytest.approx(max(0, mean - reach))
    assert interval.high == pytest.approx(min(1, mean + reach))


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


def test_clusters_of_one_problem_change_nothing_but_the_name() -> None:
    values = [0.1, 0.5, 0.6, 0.9, 1.0]
    plain, clustered = interval_of(values), interval_of(values, ["a", "b", "c", "d", "e"])
    assert (clustered.low, clustered.high) == pytest.approx((plain.low, plain.high))
    assert (clustered.method, clustered.units) == ("t-cluster", 5)


def test_problems_that_share_a_cluster_widen_the_interval() -> None:
    values = [0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.5, 0.5, 0.5, 0.2, 0.2, 0.2]
    clusters: list[str | None] = [name for name in "abcd" for _ in range(3)]
    plain, clustered = interval_of(values), interval_of(values, clusters)
    assert clustered.units == 4
    assert clustered.high - clustered.low > 1.5 * (plain.high - plain.low)


def test_one_cluster_says_almost_nothing() -> None:
    interval = interval_of([0.2, 0.8, 0.5], ["a", "a", "a"])
    assert (interval.method, interval.units) == ("wilson-cluster", 1)
    assert interval.high - interval.low > 0.7


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40))
def test_the_interval_lies_in_bounds_and_holds_the_mean(values: list[float]) -> None:
    interval = interval_of(values)
    assert 0 <= interval.low <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= interval.high <= 1


@pytest.mark.parametrize("problems", [30, 100, 300])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (10, 1), (10, 5)])
def test_intervals_hold_the_truth_as_often_as_they_say(problems: int, n: int, k: int) -> None:
    a, b, runs = 0.5, 0.8, 800
    truth = 1 - np.exp(special.betaln(a, b + k) - special.betaln(a, b))
    generator = np.random.default_rng(problems * 100 + n * 10 + k)
    held = 0
    for _ in range(runs):
        passes = generator.binomial(n, generator.beta(a, b, problems))
        distinct, weights = np.unique(passes, return_counts=True)
        values = pass_at_k_of_pairs(np.full(len(distinct), n), distinct, k)
        interval = mean_interval(values, weights, [None] * len(distinct), IntervalSettings(replicates=500))
        held += interval.low <= truth <= interval.high
    # Three standard errors of the simulation itself.
    assert held / runs == pytest.approx(0.95, abs=0.023)
