"""Intervals of medians and of uplift: worked examples and edge cases. Their coverage is in test_unit_coverage.py."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from touchstone.config import IntervalSettings
from touchstone.inference import bootstrap, medians
from touchstone.inference.medians import Sample, median_interval, uplift_intervals
from touchstone.inference.uncertainty import Interval

SETTINGS = IntervalSettings()
REPLICATES = IntervalSettings(replicates=2000)


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


# The paired bootstrap of uplift


def sample(values: object, units: object | None = None) -> Sample:
    scores = np.asarray(values, dtype=float)
    codes = np.arange(len(scores)) if units is None else np.asarray(units, dtype=np.int64)
    return Sample(scores, codes, np.ones(len(scores), dtype=np.int64))


def uplift_of(baseline: Sample, tier: Sample, settings: IntervalSettings = REPLICATES) -> Interval:
    return uplift_intervals(baseline, [tier], settings)[0]


def attempts(seed: int, units: int, n: int, easier: float = 0.0, steps: int = 20) -> tuple[Sample, Sample]:
    """Two tiers at the same problems, the second easier."""
    generator = np.random.default_rng(seed)
    difficulty = generator.beta(2, 2, (units, 1))
    noise = generator.normal(0, 0.1, (2, units, n))
    scores = np.round(np.clip(difficulty + noise + [[[0.0]], [[easier]]], 0.05, 1) * steps) / steps
    codes = np.repeat(np.arange(units), n)
    return sample(scores[0].ravel(), codes), sample(scores[1].ravel(), codes)


def test_agrees_with_resampling_problems_one_by_one() -> None:
    baseline, tier = attempts(1, 40, 3, easier=0.1)
    generator = np.random.default_rng(2)
    before, after = baseline.values.reshape(40, 3), tier.values.reshape(40, 3)
    drawn = generator.integers(0, 40, (20_000, 40))
    drawn_medians = [np.median(side[drawn].reshape(len(drawn), -1), axis=1) for side in (before, after)]
    expected = np.quantile(drawn_medians[1] / drawn_medians[0] - 1, [0.025, 0.975])
    found = uplift_of(baseline, tier, IntervalSettings(replicates=20_000))
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=0.01)
    assert (found.method, found.units) == ("bootstrap", 40)


@pytest.mark.parametrize(("units", "values"), [(7, 3), (20, 1), (50, 40), (164, 900), (30, 2)])
def test_medians_of_replicates_are_medians(units: int, values: int) -> None:
    generator = np.random.default_rng(units)
    codes = np.repeat(np.arange(units), generator.integers(0, 9, units))
    scores = generator.integers(0, values, len(codes)) / values
    draws = bootstrap.bootstrap_counts(units, 200, 7)
    found = medians._bootstrap_medians(sample(scores, codes), codes, draws)
    for times, median in zip(draws, found, strict=True):
        drawn = np.repeat(scores, times[codes].astype(int))
        assert median == np.median(drawn) if len(drawn) else np.isnan(median)


def test_what_is_hard_for_both_tiers_cancels_out() -> None:
    baseline, tier = attempts(3, 60, 2, easier=0.1)
    apart = uplift_of(baseline, sample(tier.values, tier.units + 60))
    paired = uplift_of(baseline, tier)
    assert paired.high - paired.low < 0.7 * (apart.high - apart.low)


def test_a_tier_that_is_the_baseline_again_has_no_uplift_at_all() -> None:
    baseline, _ = attempts(4, 30, 2)
    found = uplift_of(baseline, baseline)
    assert (found.low, found.high) == (0.0, 0.0)


def test_few_units_say_nothing() -> None:
    assert uplift_of(sample([0.5] * 5), sample([0.6] * 5)) == Interval(None, None, None, 5)
    assert uplift_of(sample([0.5] * 6), sample([0.6] * 6)).low == pytest.approx(0.2)


def test_each_side_needs_enough_units_of_its_own() -> None:
    many, few, enough = sample([0.5, 0.6] * 36), sample([0.7, 0.8, 0.9]), sample([0.7, 0.8, 0.9] * 2)
    for sides in ((many, few), (few, many)):
        assert uplift_of(*sides) == Interval(None, None, None, 72)
    assert uplift_of(many, enough).low is not None


def test_an_infinite_end_is_infinite_and_not_unknown() -> None:
    # Nearly half of the baseline's problems score 0, so in many replicates the median does.
    found = uplift_of(sample([0.0] * 9 + [0.5] * 11), sample([1.0] * 20))
    assert (found.low, found.high) == (1.0, math.inf)


def test_a_gap_at_the_median_widens_the_interval_to_both_of_its_sides() -> None:
    low, high = sample([0.1] * 5 + [0.8] * 3), sample([0.1] * 3 + [0.8] * 5)
    found = uplift_of(low, high)
    # Each median may be on the other side of its gap: from 0.1 against 0.8 to 0.8 against 0.1.
    assert (found.low, found.high, found.method) == (pytest.approx(-0.875), pytest.approx(7.0), "woodruff")
    evenly = [sample(np.linspace(start, 0.9, 20)) for start in (0.3, 0.4)]
    assert uplift_of(*evenly).method == "bootstrap"


def test_replicates_of_nothing_by_nothing_are_left_out() -> None:
    both = sample([0.0] * 9 + [0.5] * 11)
    assert uplift_of(both, both) == Interval(0.0, 0.0, "bootstrap", 20)
    assert uplift_of(sample([0.0] * 9), sample([0.0] * 9)) == Interval(None, None, None, 9)


def test_tiers_are_compared_as_if_each_were_alone() -> None:
    baseline, tier = attempts(5, 50, 3, easier=0.1)
    _, other = attempts(6, 50, 3)
    assert uplift_intervals(baseline, [other, tier], REPLICATES) == [
        uplift_of(baseline, other),
        uplift_of(baseline, tier),
    ]


def test_seeded() -> None:
    baseline, tier = attempts(7, 40, 2, easier=0.1, steps=1000)
    assert uplift_of(baseline, tier) == uplift_of(baseline, tier)
    assert uplift_of(baseline, tier) != uplift_of(baseline, tier, IntervalSettings(replicates=2000, seed=8))


@given(st.randoms(use_true_random=False))
def test_neither_order_nor_grouping_of_rows_shows_in_an_uplift(random: object) -> None:
    settings = IntervalSettings(replicates=100)
    sides = attempts(8, 15, 4, easier=0.1, steps=5)
    straight = uplift_of(*sides, settings)
    shuffled = []
    for side in sides:
        rows = list(zip(side.values.tolist(), side.units.tolist(), strict=True))
        random.shuffle(rows)  # type: ignore[attr-defined]
        shuffled.append(sample([value for value, _ in rows], [unit for _, unit in rows]))
    assert uplift_of(*shuffled, settings) == straight
    counted = []
    for side in sides:
        rows, counts = np.unique(np.stack([side.values, side.units]), axis=1, return_counts=True)
        counted.append(Sample(rows[0], rows[1].astype(np.int64), counts))
    assert uplift_of(*counted, settings) == straight


def test_groups_and_bins_change_little() -> None:
    baseline, tier = attempts(9, 600, 5, easier=0.1, steps=100_000)
    exact = uplift_of(baseline, tier)
    with patch.object(bootstrap, "MAX_GROUPS", 200), patch.object(medians, "MAX_VALUES", 300):
        rough = uplift_of(baseline, tier)
    assert (rough.low, rough.high) == pytest.approx((exact.low, exact.high), abs=0.02)
    assert rough.units == 600


def test_working_in_pieces_changes_nothing() -> None:
    baseline, tier = attempts(11, 40, 3, easier=0.1)
    with patch.object(medians, "_CHUNK", 40 * 7):
        pieces = uplift_of(baseline, tier)
    assert pieces == uplift_of(baseline, tier)


def test_counts_too_large_for_single_precision_are_exact() -> None:
    baseline, tier = attempts(10, 20, 3, easier=0.1, steps=5)
    many = [Sample(side.values, side.units, side.counts * 1_000_001) for side in (baseline, tier)]
    assert uplift_of(*many) == uplift_of(baseline, tier)
