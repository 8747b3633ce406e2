"""The score of a case from its attempts: each method, the choice per model and tier, and its parts."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.comparison.test_regressions import share
from touchstone.comparison.regressions import ScoreMethod, case_scores, compare_cases
from touchstone.errors import TouchstoneError
from touchstone.metrics.keys import PROBLEM_KEY

ATTEMPTS = {
    **dict.fromkeys([*PROBLEM_KEY, "iteration_id"], pl.String),
    **dict.fromkeys(
        ["pass_rate", "composite_score", "code_score", "compilation_score", "test_score", "lint_score"], pl.Float64
    ),
    "ran_tests": pl.Boolean,
    "lint_measured": pl.Boolean,
}


def attempts(*rows: dict[str, object]) -> pl.LazyFrame:
    usual = {
        **dict.fromkeys(ATTEMPTS),
        "model": "m",
        "tier": "T0",
        "oid": "a",
        "test_score": 0.0,
        "lint_score": 1.0,
        "ran_tests": False,
        "lint_measured": False,
    }
    return pl.LazyFrame([{**usual, "iteration_id": str(place), **row} for place, row in enumerate(rows)], ATTEMPTS)


def score(frame: pl.LazyFrame, method: ScoreMethod, other_side: pl.LazyFrame | None = None) -> object:
    return case_scores(frame, method, other_side).collect()["score"].item()


def test_each_way_to_score_a_case() -> None:
    frame = attempts(
        {"code_score": 1.0, "composite_score": 0.6, "pass_rate": 1.0},
        {"code_score": 0.5, "composite_score": 0.2, "pass_rate": 0.0},
        {"pass_rate": 0.0},
        {},
    )
    assert score(frame, "best") == 1.0
    assert score(frame, "mean") == 0.75
    assert score(frame, "code") == 0.75
    assert score(frame, "composite") == pytest.approx(0.4)
    assert score(frame, "pass_rate") == pytest.approx(1 / 3)
    assert case_scores(frame, "best").collect()["outcome"].item() == pytest.approx(1 / 3)


@pytest.mark.parametrize("method", ["best", "mean"])
def test_the_choice_of_score_is_one_per_model_and_tier(method: ScoreMethod) -> None:
    frame = attempts(
        {"oid": "a", "code_score": 0.5, "pass_rate": 1.0},
        {"oid": "b", "pass_rate": 1.0},
        {"tier": "T1", "composite_score": 0.25, "pass_rate": 1.0},
        {"tier": "T2", "pass_rate": 1.0},
        {"tier": "T3"},
    )
    assert case_scores(frame, method).select("tier", "oid", "score", "basis").collect().rows() == [
        ("T0", "a", 0.5, "code_score"),
        ("T0", "b", None, "code_score"),
        ("T1", "a", 0.25, "composite_score"),
        ("T2", "a", 1.0, "pass_rate"),
        ("T3", "a", None, None),
    ]


def test_beside_another_side_a_score_that_both_have_goes_first() -> None:
    both = attempts({"code_score": 0.5, "composite_score": 0.9, "pass_rate": 1.0})
    other = attempts({"composite_score": 0.2, "pass_rate": 0.0})
    assert score(both, "best", other_side=other) == 0.9
    assert score(other, "best", other_side=both) == 0.2


def test_beside_a_side_without_scores_cases_fall_back_to_the_pass_rate() -> None:
    rich = attempts({"code_score": 0.5, "pass_rate": 1.0}, {"model": "alone", "code_score": 0.5, "pass_rate": 1.0})
    poor = attempts({"pass_rate": 0.0}, {"pass_rate": 1.0})
    rows = compare_cases(rich, poor, "best")
    told = rows.select("model", "kind", "baseline_score", "current_score", "basis", "fallback").rows()
    assert told == [
        ("m", "regression", 1.0, 0.5, "pass_rate", True),
        ("alone", "removed", 0.5, None, "code_score", False),
    ]
    assert compare_cases(attempts({"code_score": 0.5}), poor)["kind"].to_list() == ["lost"]


def test_the_parts_are_those_of_the_best_attempt_or_means() -> None:
    frame = attempts(
        {"code_score": 0.0, "compilation_score": 0.0, "test_score": 0.0, "lint_score": 1.0},
        {"code_score": 0.8, "compilation_score": 1.0, "test_score": 0.8, "lint_score": 0.0},
    )
    parts = ["compilation", "tests", "lint", "outcome"]
    assert case_scores(frame, "best").select(parts).collect().row(0) == (1.0, 0.8, 0.0, None)
    assert case_scores(frame, "mean").select(parts).collect().row(0) == (0.5, 0.4, 0.5, None)


def test_parts_that_nobody_looked_at_are_null() -> None:
    only_passed = case_scores(attempts({"pass_rate": 1.0}), "best").collect()
    assert only_passed.select("compilation", "tests", "lint", "outcome").row(0) == (None, None, None, 1.0)
    tested = attempts({"pass_rate": 1.0, "ran_tests": True, "test_score": 0.5, "lint_measured": True})
    assert case_scores(tested, "best").select("tests", "lint").collect().row(0) == (0.5, 1.0)


def test_an_unknown_score_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="unknown score 'worst'; choose one of auto, best"):
        case_scores(attempts(), "worst")  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.sampled_from("ab"), share, share, share), min_size=1, max_size=12), st.data())
def test_the_order_of_attempts_does_not_show(made: list[tuple[object, ...]], data: st.DataObject) -> None:
    names = ["oid", "code_score", "pass_rate", "test_score"]
    rows = [dict(zip(names, row, strict=True)) for row in made]
    shuffled = data.draw(st.permutations(rows))
    methods: list[ScoreMethod] = ["best", "mean", "pass_rate"]
    for method in methods:
        assert case_scores(attempts(*rows), method).collect().equals(case_scores(attempts(*shuffled), method).collect())


def test_the_best_of_more_attempts_is_not_compared_with_a_single_one() -> None:
    """One pass in five attempts is worse than a pass in the only attempt, although the best of each is a pass."""
    once = attempts({"oid": "a", "pass_rate": 1.0}, {"oid": "b", "pass_rate": 0.0}, {"oid": "c", "pass_rate": 1.0})
    five = [{"oid": oid, "pass_rate": float(place == 0)} for oid in "ab" for place in range(5)]
    often = attempts(*five, {"oid": "c", "pass_rate": 1.0})

    def compared(method: ScoreMethod) -> dict[str, list[object]]:
        rows = compare_cases(once, often, method)
        columns = ("baseline_score", "current_score", "kind", "baseline_attempts", "current_attempts")
        return {oid: values for oid, *values in rows.select("oid", *columns).sort("oid").iter_rows()}

    assert compared("auto") == {
        "a": [1.0, 0.2, "regression", 1, 5],
        "b": [0.0, 0.2, "improvement", 1, 5],
        "c": [1.0, 1.0, "unchanged", 1, 1],
    }
    assert [row[2] for row in compared("best").values()] == ["unchanged", "improvement", "unchanged"]


def test_an_undecided_attempt_does_not_make_the_numbers_unequal() -> None:
    """Else a failure of the infrastructure would change how a case is compared."""
    before = attempts(*({"pass_rate": rate} for rate in (1.0, 0.0)))
    after = attempts({"pass_rate": 1.0}, {})
    assert compare_cases(before, after)["current_score"].to_list() == [1.0]


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.lists(st.booleans(), min_size=1, max_size=6))
def test_unequal_numbers_of_attempts_are_compared_by_their_means(old: list[bool], new: list[bool]) -> None:
    sides = [attempts(*({"pass_rate": float(each)} for each in side)) for side in (old, new)]
    method: ScoreMethod = "best" if len(old) == len(new) else "mean"
    columns = ["baseline_score", "current_score", "kind", "chance_of_regression"]
    assert compare_cases(*sides, "auto").select(columns).equals(compare_cases(*sides, method).select(columns))
