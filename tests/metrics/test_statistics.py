"""The eight statistics: the seed's ten runs, the edges, and agreement with the standard library."""

import math
import statistics as standard

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.metrics.tiers import STATISTICS, statistics

TEN_RUNS = [1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]


def described(values: list[float | None]) -> dict[str, float]:
    frame = pl.LazyFrame({"tier": ["T0"] * len(values), "x": values}, schema={"tier": pl.String, "x": pl.Float64})
    return statistics(frame, ["tier"], ["x"]).row(0, named=True)


def test_seed_example_ten_runs() -> None:
    found = described(TEN_RUNS)
    assert (found["median"], found["mean"], found["mode"], found["min"], found["max"]) == (1.0, 0.8, 1.0, 0.0, 1.0)
    assert (found["std_dev"], found["count"]) == (pytest.approx(0.4), 10)


def test_the_smallest_of_several_modes() -> None:
    assert described([1, 1, 2, 2])["mode"] == 1
    assert described([2, 2, 1, 1, 3])["mode"] == 1


def test_modes_are_rounded_to_six_places() -> None:
    assert described([0.1 + 0.2, 0.3, 0.5])["mode"] == 0.3


def test_of_nothing_all_is_null_and_the_count_is_0() -> None:
    found = described([None, None])
    assert found["count"] == 0
    assert [found[name] for name in STATISTICS if name != "count"] == [None] * 7


def test_nulls_are_left_out() -> None:
    assert (described([1, None, 3])["mean"], described([1, None, 3])["count"]) == (2, 2)


def test_a_group_without_a_value_is_listed() -> None:
    frame = pl.LazyFrame({"tier": ["T0", "T1", "T2"], "x": [None, 1.0, None], "y": [None, 2.0, 3.0]})
    found = statistics(frame, ["tier"], ["y", "x"])
    assert found.select("tier", "metric", "count").rows() == [
        (tier, metric, count)
        for tier, counts in {"T0": (0, 0), "T1": (1, 1), "T2": (0, 1)}.items()
        for metric, count in zip("xy", counts, strict=True)
    ]


def test_an_infinite_value_leaves_the_spread_undefined() -> None:
    found = described([1, math.inf, 2])
    assert (found["median"], found["mean"], found["max"]) == (2, math.inf, math.inf)
    assert (found["std_dev"], found["variance"]) == (None, None)
    assert described([1, math.inf])["median"] == math.inf


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_agrees_with_the_standard_library(values: list[float]) -> None:
    found = described(list(values))
    assert found["median"] == pytest.approx(standard.median(values), abs=1e-9)
    assert found["mean"] == pytest.approx(standard.fmean(values), abs=1e-9)
    assert found["variance"] == pytest.approx(standard.pvariance(values), rel=1e-6, abs=1e-6)
    assert (found["min"], found["max"], found["count"]) == (min(values), max(values), len(values))


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7]), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_show(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert described(list(values)) == described(list(shuffled))
