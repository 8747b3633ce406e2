"""Sums are the same in any order of rows and cannot overflow."""

import math
import random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.inference.exact import LARGEST, exact_mean, exact_sum


def total(values: list[float | None]) -> float | None:
    return pl.DataFrame({"x": values}, schema={"x": pl.Float64}).select(exact_sum(pl.col("x"))).item()


@given(st.lists(st.floats(-1e9, 1e9), max_size=50), st.randoms())
def test_a_sum_is_that_of_exact_arithmetic_in_any_order(values: list[float], chance: random.Random) -> None:
    shuffled = chance.sample(values, len(values))
    assert total(list(values)) == total(list(shuffled)) == pytest.approx(math.fsum(values), rel=1e-15, abs=1e-17)


def test_the_largest_values_add_up() -> None:
    assert total([LARGEST] * 1000) == LARGEST * 1000


@pytest.mark.parametrize("values", [[1e19], [1e18] * 20, [1.0, -1e18], [math.nan, 1.0], [math.inf]])
def test_values_beyond_the_limit_have_no_sum_rather_than_a_wrong_one(values: list[float]) -> None:
    assert total(list(values)) is None
    frame = pl.DataFrame({"group": ["big"] * len(values) + ["small"], "x": [*values, 0.5]})
    sums = frame.group_by("group").agg(
        pl.col("x").pipe(exact_sum).alias("sum"), pl.col("x").pipe(exact_mean).alias("mean")
    )
    assert sorted(sums.rows()) == [("big", None, None), ("small", 0.5, 0.5)]
