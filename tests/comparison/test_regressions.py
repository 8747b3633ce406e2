"""Regressions between two evaluations: the seed's examples by name, the edges, and properties."""

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.comparison.inputs import open_input
from touchstone.comparison.regressions import CATEGORIES, KINDS, case_scores, regressions
from touchstone.errors import TouchstoneError
from touchstone.metrics.keys import PROBLEM_KEY

COLUMNS = ["model", "tier", "oid", "baseline_score", "current_score", "delta", "category", "kind", "basis", "fallback"]
CASES = {
    **dict.fromkeys(PROBLEM_KEY, pl.String),
    **dict.fromkeys(["score", "compilation", "tests", "lint", "outcome"], pl.Float64),
}
# The seed's examples, from its own reports


def result(case: str, passed: int, failed: int, *, model: str = "m", success: bool = True, attempt: int = 1) -> object:
    return {
        "case_id": case,
        "model": model,
        "attempt": attempt,
        "compilation": {"success": success, "errors": [], "warnings": []},
        "test_execution": {"passed": passed, "failed": failed, "ignored": 0} if success else None,
        "clippy": {"warning_count": 0},
    }


def compare(tmp_path: Path, before: list[object], after: list[object], threshold: float = 0.05) -> pl.DataFrame:
    sides = []
    for name, results in (("before.json", before), ("after.json", after)):
        path = tmp_path / name
        path.write_text(json.dumps({"id": "r", "results": results}, indent=1))
        sides.append(case_scores(open_input(str(path)).attempt_scores, "best"))
    return regressions(*sides, threshold).collect()


def kinds(rows: pl.DataFrame) -> dict[str, str]:
    return dict(rows.select("oid", "kind").iter_rows())


def test_the_seeds_examples(tmp_path: Path) -> None:
    """Tests that fail, code that no longer compiles, more tests that pass, equal reports, and cases of one side."""
    before = {
        "tests": (3, 0),
        "compiling": (3, 0),
        "better": (1, 2),
        "same": (3, 0),
        "as before": (1, 2),
        "old": (3, 0),
    }
    after = {"tests": (1, 2), "compiling": None, "better": (3, 0), "same": (3, 0), "as before": (1, 2), "new": (3, 0)}
    rows = compare(
        tmp_path,
        *(
            [result(case, *(counts or (0, 0)), success=counts is not None) for case, counts in side.items()]
            for side in (before, after)
        ),
    )
    assert rows.columns == COLUMNS
    found = {
        row["oid"]: (row["kind"], row["category"], row["baseline_score"], row["current_score"])
        for row in rows.to_dicts()
    }
    some = pytest.approx(0.5 + 0.5 / 3)
    assert found == {
        "tests": ("regression", "tests", 1.0, some),
        "compiling": ("regression", "compilation", 1.0, 0.0),
        "better": ("improvement", "tests", some, 1.0),
        "same": ("unchanged", None, 1.0, 1.0),
        "as before": ("unchanged", None, some, some),
        "old": ("removed", None, 1.0, None),
        "new": ("new", None, None, 1.0),
    }
    deltas = dict(rows.select("oid", "delta").iter_rows())
    third = pytest.approx(1 / 3)
    assert (deltas["better"], -deltas["tests"], deltas["compiling"], deltas["same"]) == (third, third, -1.0, 0.0)
    assert deltas["old"] is None and deltas["new"] is None


def test_seed_example_of_two_models_exactly_one_regresses(tmp_path: Path) -> None:
    before = [result("a", 3, 0, model="one"), result("a", 3, 0, model="two")]
    after = [result("a", 3, 0, model="one"), result("a", 1, 2, model="two")]
    rows = compare(tmp_path, before, after)
    assert rows.select("model", "kind").rows() == [("two", "regression"), ("one", "unchanged")]


def test_seed_example_a_drop_of_exactly_the_threshold_is_none(tmp_path: Path) -> None:
    rows = compare(tmp_path, [result("a", 9, 1)], [result("a", 8, 2)], 0.05)
    assert (rows["delta"].item(), rows["kind"].item()) == (pytest.approx(-0.05), "unchanged")
    assert compare(tmp_path, [result("a", 9, 1)], [result("a", 8, 2)], 0.01)["kind"].item() == "regression"


# Two sides


def cases(*rows: tuple[object, ...]) -> pl.LazyFrame:
    """Rows of oid, score, compilation, tests, lint, outcome; what is left out is null."""
    full = [("m", "T0", *row, *[None] * (6 - len(row))) for row in rows]
    return pl.LazyFrame(full, schema=CASES, orient="row")


@pytest.mark.parametrize(
    ("before", "after", "category"),
    [
        ((1, 1, 1, 1), (0, 0, 0, 0), "compilation"),
        ((1, 1, 1, 1), (1, 0.5, 0.5, 0), "tests"),
        ((1, 1, 1, 1), (1, 1, 0.5, 0), "lint"),
        ((None, None, None, 1), (None, None, None, 0), "outcome"),
        ((None, None, None, None), (None, None, None, None), "score"),
        ((1, 1, 1, 1), (1, 1, 1, 1), "score"),
        ((0.5, 1, 1, 1), (0.6, 0.1, 1, 1), "tests"),  # what got better did not make it worse
        ((1, 1, None, 1), (None, 1, 0.2, 0), "outcome"),  # a part that one side lacks says nothing
        ((1, 1, 1, 1), (1 - 1e-12, 0.9, 1, 1), "tests"),  # noise says nothing either
    ],
)
def test_the_category_is_the_most_basic_part_that_went_along(
    before: tuple[float | None, ...], after: tuple[float | None, ...], category: str
) -> None:
    fell = regressions(cases(("a", 1.0, *before)), cases(("a", 0.5, *after))).collect()
    rose = regressions(cases(("a", 0.5, *after)), cases(("a", 1.0, *before))).collect()
    assert fell.select("kind", "category").row(0) == ("regression", category)
    assert rose.select("kind", "category").row(0) == ("improvement", category)


def test_a_case_without_a_score_is_lost_or_was_never_scored() -> None:
    before = cases(("a", None), ("b", 1.0), ("c", None), ("d", float("nan")), ("gone", None))
    after = cases(("a", 1.0), ("b", None), ("c", None), ("d", 1.0), ("here", None))
    rows = regressions(before, after).collect()
    assert kinds(rows) == {**dict.fromkeys("acd", "unscored"), "b": "lost", "gone": "removed", "here": "new"}
    assert rows["delta"].null_count() == rows.height


def test_scores_of_different_things_are_not_compared() -> None:
    before = cases(("a", 1.0)).with_columns(basis=pl.lit("code_score"))
    after = cases(("a", 0.0)).with_columns(basis=pl.lit("pass_rate"))
    row = regressions(before, after).collect().row(0, named=True)
    assert (row["kind"], row["delta"]) == ("lost", None)
    assert regressions(before, cases(("a", 0.0))).collect()["kind"].item() == "regression"


def rate(oid: str, score: float | None, outcome: float | None) -> tuple[object, ...]:
    return (oid, score, None, None, None, outcome)


def test_where_a_side_lacks_the_score_both_are_compared_by_pass_rate() -> None:
    before = cases(rate("a", 0.9, 1.0), rate("b", None, 0.0), rate("c", None, 0.5), rate("d", 0.9, 1.0))
    after = cases(rate("a", None, 0.0), rate("b", 0.9, 1.0), rate("c", None, 0.5), rate("d", 0.8, 1.0))
    rows = regressions(before, after).sort("oid").collect()
    told = rows.select("oid", "kind", "baseline_score", "current_score", "fallback").rows()
    assert told == [
        ("a", "regression", 1.0, 0.0, True),
        ("b", "improvement", 0.0, 1.0, True),
        ("c", "unchanged", 0.5, 0.5, True),
        ("d", "regression", 0.9, 0.8, False),
    ]
    assert rows.filter("fallback")["basis"].unique().to_list() == ["pass_rate"]


def test_where_some_attempts_lack_the_score_lost_passes_count_and_else_the_scores() -> None:
    before = cases(rate("a", 0.9, 1.0), rate("b", 0.9, 1.0), rate("c", 0.9, 0.5))
    after = cases(rate("a", 0.9, 1 / 3), rate("b", 0.7, 1.0), rate("c", 0.9, 0.5))
    partly = after.with_columns(complete=pl.lit(False))
    for old, new in ((before, partly), (before.with_columns(complete=pl.lit(False)), after)):
        rows = regressions(old, new).sort("oid").collect()
        assert rows.select("kind", "fallback").rows() == [
            ("regression", True),
            ("regression", False),
            ("unchanged", False),
        ]
    whole = regressions(before, after).sort("oid").collect()
    assert whole["kind"].to_list() == ["unchanged", "regression", "unchanged"] and not whole["fallback"].any()


def test_a_score_is_never_compared_with_a_pass_rate() -> None:
    """One side has a score but no outcome, the other an outcome but no score."""
    rows = regressions(cases(rate("a", 0.5, None)), cases(rate("a", None, 1.0))).collect()
    assert rows.select("kind", "delta", "fallback").row(0) == ("lost", None, False)


def test_a_missing_case_is_lost_where_its_problem_is_still_listed_and_the_model_was_run() -> None:
    before = cases(("a", 1.0), ("b", 1.0), ("c", None), ("d", 1.0))
    listed = pl.LazyFrame({"oid": ["a", "b", "c"]})
    rows = regressions(before, cases(("a", 1.0)), listed=listed).collect()
    assert kinds(rows) == {"a": "unchanged", "b": "lost", "c": "removed", "d": "removed"}
    elsewhere = cases(("a", 1.0)).with_columns(tier=pl.lit("T1"))
    rows = regressions(before, elsewhere, listed=listed).collect()
    assert set(rows.filter(pl.col("tier") == "T0")["kind"]) == {"removed"}


def test_the_order_is_kind_then_largest_drop_then_names() -> None:
    before = cases(("c", 1.0), ("b", 1.0), ("a", 1.0), ("up", 0.0), ("up2", 0.0), ("gone", 1.0), ("same", 1.0), ("u",))
    after = cases(("c", 0.5), ("b", 0.5), ("a", 0.8), ("up", 0.4), ("up2", 0.3), ("here", 1.0), ("same", 1.0), ("u",))
    rows = regressions(before, after).collect()
    assert rows["oid"].to_list() == ["b", "c", "a", "up2", "up", "here", "gone", "same", "u"]


def test_a_threshold_of_0_takes_every_drop_and_no_noise() -> None:
    rows = regressions(cases(("a", 0.3), ("b", 0.3)), cases(("a", 0.1 + 0.2), ("b", 0.3 - 1e-6)), 0).collect()
    assert kinds(rows) == {"a": "unchanged", "b": "regression"}


@pytest.mark.parametrize("threshold", [-0.1, float("nan"), float("inf")])
def test_a_threshold_that_makes_no_sense_is_refused(threshold: float) -> None:
    with pytest.raises(TouchstoneError, match="threshold must be a finite number of at least 0"):
        regressions(cases(), cases(), threshold)


def test_two_empty_sides_have_no_cases() -> None:
    rows = regressions(cases(), cases()).collect()
    assert rows.is_empty()
    assert rows.columns == COLUMNS


def test_a_hundred_thousand_cases() -> None:
    count = 100_000
    made = pl.select(place=pl.int_range(count)).lazy()
    parts = dict.fromkeys(["compilation", "tests", "lint", "outcome"], pl.lit(1.0))
    before = made.select(
        model=pl.format("m{}", pl.col("place") % 4),
        tier=pl.lit("T0"),
        oid=pl.format("case-{}", "place"),
        score=pl.lit(1.0),
        **parts,
    )
    worse = pl.col("oid").str.ends_with("7")
    after = before.with_columns(
        score=pl.when(worse).then(0.5).otherwise(1.0), tests=pl.when(worse).then(0.0).otherwise(1)
    )
    rows = regressions(before, after).collect()
    assert dict(rows["kind"].value_counts().iter_rows()) == {"regression": count // 10, "unchanged": count * 9 // 10}


# Properties

share = st.none() | st.sampled_from([0.0, 0.1, 0.5, 0.55, 0.6, 1.0]) | st.floats(0, 1)
key = st.tuples(st.sampled_from("mn"), st.sampled_from(["T0", "T1"]), st.sampled_from("abcdef"))
side = st.dictionaries(key, st.tuples(share, share, share, share, share), max_size=12)
Cases = dict[tuple[str, str, str], tuple[float | None, ...]]


def frame_of(made: Cases, order: Sequence[int] | None = None) -> pl.LazyFrame:
    rows = [(*names, *values) for names, values in made.items()]
    placed = rows if order is None else [rows[place] for place in order]
    return pl.LazyFrame(placed, schema=CASES, orient="row")


@given(side, side, st.sampled_from([0.0, 0.05, 0.5]))
def test_swapping_the_sides_turns_regressions_into_improvements(before: Cases, after: Cases, threshold: float) -> None:
    swapped = {"regression": "improvement", "improvement": "regression", "new": "removed", "removed": "new"}
    # Whether a case that cannot be compared is lost depends on the side that lacks it.
    swapped |= dict.fromkeys(["lost", "unscored"], "not compared")
    there = regressions(frame_of(before), frame_of(after), threshold).drop("basis").collect()
    back = regressions(frame_of(after), frame_of(before), threshold).drop("basis").collect()
    expected = {
        (m, t, o): (b, a, -d if d is not None else None, category, swapped.get(kind, kind), fallback)
        for m, t, o, a, b, d, category, kind, fallback in there.iter_rows()
    }
    uncompared = pl.col("kind").replace(["lost", "unscored"], "not compared")
    assert {row[:3]: row[3:] for row in back.with_columns(uncompared).iter_rows()} == expected


@given(side, side)
def test_every_case_is_in_exactly_one_row_and_the_counts_add_up(before: Cases, after: Cases) -> None:
    rows = regressions(frame_of(before), frame_of(after)).collect()
    assert sorted(rows.select(PROBLEM_KEY).rows()) == sorted(before.keys() | after.keys())
    assert rows["kind"].is_in(KINDS).all()
    counts = dict(rows["kind"].value_counts().iter_rows())
    assert counts.get("new", 0) == len(after.keys() - before.keys())
    assert counts.get("removed", 0) == len(before.keys() - after.keys())
    changed = rows.filter(pl.col("kind").is_in(["regression", "improvement"]))
    assert changed["category"].is_in(CATEGORIES).all()
    assert rows["category"].count() == changed.height


@given(side, side, st.data())
def test_the_order_of_rows_does_not_show(before: Cases, after: Cases, data: st.DataObject) -> None:
    first = data.draw(st.permutations(range(len(before))))
    second = data.draw(st.permutations(range(len(after))))
    plain = regressions(frame_of(before), frame_of(after)).collect()
    assert regressions(frame_of(before, first), frame_of(after, second)).collect().equals(plain)
