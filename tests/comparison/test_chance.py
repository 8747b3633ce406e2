"""How many regressions chance alone gives: by enumeration where that is possible, and by simulation of no change."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.comparison.test_case_scores import attempts
from tests.conftest import nightly_but
from touchstone.comparison.regressions import TOLERANCE, ScoreMethod, compare_cases

THRESHOLD = 0.05


def chance(old: list[dict[str, object]], new: list[dict[str, object]], method: ScoreMethod) -> float:
    rows = compare_cases(attempts(*old), attempts(*new), method, THRESHOLD)
    return float(rows["chance_of_regression"].item())


def enumerated(old: list[float], new: list[float], method: ScoreMethod) -> float:
    """The share of all assignments of the pooled attempts to the two sides that make the case regress."""
    pooled = [*old, *new]
    places = range(len(pooled))
    drops = []
    for chosen in combinations(places, len(old)):
        sides = [[pooled[place] for place in places if (place in chosen) == first] for first in (True, False)]
        was, now = ((max(side) if method == "best" else sum(side) / len(side)) for side in sides)
        drops.append(now - was < -THRESHOLD - TOLERANCE)
    return sum(drops) / len(drops)


score = st.sampled_from([0.0, 0.3, 0.34, 0.36, 0.9, 1.0])
some_scores = st.lists(score, min_size=1, max_size=4)
some_outcomes = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=5)


@given(some_scores, some_scores)
def test_the_best_score_by_enumeration(old: list[float], new: list[float]) -> None:
    sides = [[{"code_score": value, "pass_rate": 1.0} for value in side] for side in (old, new)]
    assert chance(*sides, "best") == pytest.approx(enumerated(old, new, "best"), abs=1e-12)


@pytest.mark.parametrize("method", ["best", "mean", "pass_rate"])
@given(old=some_outcomes, new=some_outcomes)
def test_passing_by_enumeration(method: ScoreMethod, old: list[float], new: list[float]) -> None:
    sides = [[{"pass_rate": value} for value in side] for side in (old, new)]
    assert chance(*sides, method) == pytest.approx(enumerated(old, new, method), abs=1e-12)


@given(old=some_outcomes, new=some_outcomes)
def test_where_the_score_is_missing_the_pass_rate_counts(old: list[float], new: list[float]) -> None:
    before: list[dict[str, object]] = [{"pass_rate": value, "composite_score": 0.9} for value in old]
    after: list[dict[str, object]] = [{"pass_rate": value} for value in new]
    assert chance(before, after, "best") == pytest.approx(enumerated(old, new, "pass_rate"), abs=1e-12)


def test_cases_that_are_not_compared_have_no_chance() -> None:
    rows = compare_cases(attempts({"oid": "a", "pass_rate": 1.0}), attempts({"oid": "b", "pass_rate": 1.0}))
    assert rows["chance_of_regression"].null_count() == 2


CASES = 4_000


def unchanged_cases(n_old: int, n_new: int, scored: bool) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Two evaluations of cases that did not change, each case with its own difficulty."""
    generator = np.random.default_rng(7)
    difficulty = generator.beta(0.6, 0.6, CASES)

    def side(n: int) -> pl.LazyFrame:
        passed = (generator.random((CASES, n)) < difficulty[:, None]).ravel().astype(float)
        noise = 0.4 * generator.random(CASES * n)
        frame = pl.LazyFrame({"oid": np.repeat(np.arange(CASES), n), "pass_rate": passed, "noise": noise})
        quality = pl.when(pl.col("pass_rate") == 1).then(1 - pl.col("noise")).otherwise("noise")
        return frame.with_columns(
            pl.col("oid").cast(pl.String),
            model=pl.lit("m"),
            tier=pl.lit("T0"),
            code_score=quality if scored else pl.lit(None, pl.Float64),
            **dict.fromkeys(["composite_score", "compilation_score"], pl.lit(None, pl.Float64)),
            **dict.fromkeys(["test_score", "lint_score"], pl.lit(0.0)),
            **dict.fromkeys(["ran_tests", "lint_measured"], pl.lit(False)),
        )

    return side(n_old), side(n_new)


@pytest.mark.parametrize(
    ("n_old", "n_new", "scored", "method"),
    nightly_but(
        [(1, 1, False, "best"), (1, 5, True, "best"), (5, 1, False, "mean"), (3, 3, True, "mean")],
        [
            (*attempts, scored, how)
            for attempts in [(1, 1), (1, 5), (5, 1), (3, 3), (10, 10)]
            for scored in (False, True)
            for how in ("best", "mean")
        ],
    ),
)
def test_without_any_change_as_many_cases_regress_as_were_expected(
    method: ScoreMethod, scored: bool, n_old: int, n_new: int
) -> None:
    rows = compare_cases(*unchanged_cases(n_old, n_new, scored), method, THRESHOLD)
    found = rows.filter(pl.col("kind") == "regression").height
    expected = rows["chance_of_regression"].sum()
    assert found > 0
    # Four standard deviations of the count, and for means of scores what the normal approximation is off by.
    allowed = 4 * found**0.5 + (0.05 * found if scored and method == "mean" else 0)
    assert abs(found - expected) < allowed, (found, expected)
