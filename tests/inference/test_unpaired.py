"""The difference between two sets of problems: published examples, what cannot be judged, and coverage."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import nightly_but
from touchstone.config import IntervalSettings
from touchstone.inference.unpaired import MIN_UNITS, Sample, UnpairedDifference, unpaired_difference

SETTINGS = IntervalSettings()


def shares(passed: int, total: int, first_unit: int = 0) -> Sample:
    """So many problems with one attempt each, of which some passed."""
    return Sample(np.array([1.0] * passed + [0.0] * (total - passed)), np.arange(first_unit, first_unit + total))


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        # Newcombe (1998), table II, method 10.
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_the_published_examples(first: tuple[int, int], second: tuple[int, int], low: float, high: float) -> None:
    found = unpaired_difference(shares(*first), shares(*second, first_unit=1000), SETTINGS)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_too_few_units_have_no_interval() -> None:
    found = unpaired_difference(shares(3, MIN_UNITS - 1), shares(1, 50, 100), SETTINGS)
    assert found == UnpairedDifference(0.75 - 0.02)
    many_of_one_cluster = Sample(np.ones(50), np.zeros(50, dtype=np.int64))
    assert unpaired_difference(many_of_one_cluster, shares(1, 50, 100), SETTINGS).p_value is None
    assert unpaired_difference(shares(0, 0), shares(1, 50), SETTINGS) == UnpairedDifference(None)


def test_a_cluster_counts_once_and_one_on_both_sides_cancels() -> None:
    rng = np.random.default_rng(1)
    of_cluster = np.repeat(rng.beta(0.5, 0.5, 20), 5)
    values = [rng.binomial(5, of_cluster) / 5 for _ in range(2)]
    units = np.repeat(np.arange(20), 5)
    alone = unpaired_difference(Sample(values[0], np.arange(100)), Sample(values[1], np.arange(100, 200)), SETTINGS)
    apart = unpaired_difference(Sample(values[0], units), Sample(values[1], units + 20), SETTINGS)
    shared = unpaired_difference(Sample(values[0], units), Sample(values[1], units), SETTINGS)
    assert width(shared) < width(alone) < width(apart)


def width(found: UnpairedDifference) -> float:
    assert found.low is not None and found.high is not None
    return found.high - found.low


SAMPLES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=12, max_size=40)


@given(SAMPLES, SAMPLES)
def test_order_sides_and_test_agree(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    def sample(rows: list[tuple[int, int]]) -> Sample:
        return Sample(np.array([value / 4 for value, _ in rows]), np.array([unit for _, unit in rows]))

    found = unpaired_difference(sample(first), sample(second), SETTINGS)
    turned = unpaired_difference(sample(second[::-1]), sample(first[::-1]), SETTINGS)
    assert found == unpaired_difference(sample(first[::-1]), sample(second[::-1]), SETTINGS)
    if found.low is not None and found.high is not None and found.p_value is not None and found.difference is not None:
        assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))
        assert found.low <= found.difference <= found.high
        if abs(found.p_value - 0.05) > 1e-6:
            assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0)


@dataclass(frozen=True)
class Shape:
    """Problems on each side, attempts at each, and clusters, half of whose problems are equally hard."""

    before: int
    after: int
    attempts: int
    clusters: int | None = None


SHAPES = [
    Shape(20, 20, 1),
    Shape(20, 20, 5),
    Shape(20, 100, 3),
    Shape(100, 100, 1),
    Shape(100, 60, 3),
    Shape(40, 40, 1, 8),
    Shape(100, 60, 1, 12),
    Shape(30, 120, 3, 12),
    Shape(100, 60, 3, 30),
]
# The mean difficulty before and after; the second pair is contaminated.
MEANS = [(0.5, 0.5), (0.7, 0.4)]


def simulated(shape: Shape, means: tuple[float, float], runs: int) -> Iterator[UnpairedDifference]:
    before, after, attempts, clusters = shape.before, shape.after, shape.attempts, shape.clusters
    rng = np.random.default_rng([before, after, attempts, clusters or 0, round(100 * means[0])])
    for _ in range(runs):
        # The same difficulties on both sides, scaled to the side's mean.
        common = rng.beta(1, 1, clusters or 1)
        sides = []
        for place, (count, mean) in enumerate(zip((before, after), means, strict=True)):
            units = rng.integers(0, clusters, count) if clusters else np.arange(count) + place * before
            easy = rng.beta(1, 1, count)
            if clusters:
                easy = np.where(rng.random(count) < 0.5, common[units], easy)
            chance = 2 * mean * easy if mean <= 0.5 else 1 - 2 * (1 - mean) * easy
            sides.append(Sample(rng.binomial(attempts, chance) / attempts, units))
        yield unpaired_difference(*sides, SETTINGS)


@pytest.mark.parametrize("means", MEANS, ids=str)
@pytest.mark.parametrize("shape", nightly_but([SHAPES[0]], SHAPES), ids=str)
def test_intervals_cover_the_truth_and_false_alarms_are_rare(shape: Shape, means: tuple[float, float]) -> None:
    runs = 200 if shape == SHAPES[0] else 1000
    truth = means[0] - means[1]
    found = [each for each in simulated(shape, means, runs) if each.low is not None and each.high is not None]
    covered = np.mean([each.low <= truth <= each.high for each in found])  # type: ignore[operator]
    significant = np.mean([each.p_value is not None and each.p_value <= 0.05 for each in found])
    error = 3 * np.sqrt(0.95 * 0.05 / len(found))
    print(f"{shape} {means}: coverage {covered:.3f}, significant {significant:.3f}")
    assert len(found) == runs and 0.93 - error <= covered <= 0.97 + error
    assert significant <= 0.07 + error if truth == 0 else significant > 0.1
