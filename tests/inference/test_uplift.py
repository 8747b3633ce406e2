"""The paired bootstrap of uplift: against resampling problems one by one, edge cases, and invariances."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.config import IntervalSettings
from touchstone.inference import bootstrap, medians
from touchstone.inference.medians import Sample, uplift_intervals
from touchstone.inference.uncertainty import Interval

SETTINGS = IntervalSettings(replicates=2000)


def sample(values: object, units: object | None = None) -> Sample:
    scores = np.asarray(values, dtype=float)
    codes = np.arange(len(scores)) if units is None else np.asarray(units, dtype=np.int64)
    return Sample(scores, codes, np.ones(len(scores), dtype=np.int64))


def uplift_of(baseline: Sample, tier: Sample, settings: IntervalSettings = SETTINGS) -> Interval:
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


def test_replicates_of_nothing_by_nothing_are_left_out() -> None:
    both = sample([0.0] * 9 + [0.5] * 11)
    assert uplift_of(both, both) == Interval(0.0, 0.0, "bootstrap", 20)
    assert uplift_of(sample([0.0] * 9), sample([0.0] * 9)) == Interval(None, None, None, 9)


def test_tiers_are_compared_as_if_each_were_alone() -> None:
    baseline, tier = attempts(5, 50, 3, easier=0.1)
    _, other = attempts(6, 50, 3)
    assert uplift_intervals(baseline, [other, tier], SETTINGS) == [
        uplift_of(baseline, other),
        uplift_of(baseline, tier),
    ]


def test_seeded() -> None:
    baseline, tier = attempts(7, 40, 2, easier=0.1, steps=1000)
    assert uplift_of(baseline, tier) == uplift_of(baseline, tier)
    assert uplift_of(baseline, tier) != uplift_of(baseline, tier, IntervalSettings(replicates=2000, seed=8))


@given(st.randoms(use_true_random=False))
def test_neither_order_nor_grouping_of_rows_shows(random: object) -> None:
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
