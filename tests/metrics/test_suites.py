"""Suites and runs: the seed's worked examples, macro against micro, and the configured extras beside them."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.config import SuiteSettings
from touchstone.metrics import suites as metric
from touchstone.vocabulary import CLASSES

PLAIN = SuiteSettings()


def cases(*suites: tuple[str, int, int], run: str | None = None, failure: str | None = "fail") -> pl.LazyFrame:
    """(suite, cases, passed), the failures of one class."""
    rows = [
        ("m", "T0", run, suite, "pass" if place < passed else failure, float(place < passed), 100.0)
        for suite, total, passed in suites
        for place in range(total)
    ]
    columns = ["model", "tier", "run_id", "suite", "classification", "accuracy", "latency_ms"]
    schema = dict.fromkeys(columns, pl.String) | {"accuracy": pl.Float64, "latency_ms": pl.Float64}
    return pl.LazyFrame(rows, schema=schema, orient="row")


def overall(scores: pl.LazyFrame, settings: SuiteSettings = PLAIN) -> dict[str, float]:
    return metric.run_scores(metric.suite_scores(scores, settings)).collect().row(0, named=True)


def test_seed_example_a_single_suite() -> None:
    row = metric.suite_scores(cases(("json_api", 10, 7)), PLAIN).collect().row(0, named=True)
    assert (row["score"], row["cases"], row["passed"]) == (0.7, 10, 7)


def test_seed_example_overall_is_the_mean_of_suites_and_not_of_cases() -> None:
    run = overall(cases(("injection", 20, 18), ("contradictions", 10, 8)))
    assert run["overall_score"] == pytest.approx(0.85)
    assert run["pass_rate"] == pytest.approx(0.8667, abs=5e-5)


def test_macro_against_micro() -> None:
    run = overall(cases(("a", 100, 95), ("b", 50, 48), ("c", 75, 68), ("d", 20, 18), ("e", 30, 29)))
    assert run["overall_score"] == pytest.approx(0.936667, abs=5e-7)
    assert run["pass_rate"] == pytest.approx(0.938182, abs=5e-7)


def test_runs_are_kept_apart() -> None:
    both = pl.concat([cases(("s", 2, 2), run="r1"), cases(("s", 2, 0), run="r2")])
    runs = metric.run_scores(metric.suite_scores(both, PLAIN)).collect()
    assert dict(runs.select("run_id", "overall_score").iter_rows()) == {"r1": 1.0, "r2": 0.0}


def test_undecided_cases_do_not_count_and_an_empty_suite_is_left_out_and_reported() -> None:
    scores = cases(("s", 2, 1)).with_columns(accuracy=pl.when(pl.col("accuracy") == 1).then(1.0))
    suites = metric.suite_scores(scores, PLAIN)
    assert suites.collect()["cases"].to_list() == [1]
    problems = pl.LazyFrame({"suite": ["s", "empty"]})
    assert metric.empty_suites(problems, suites).collect()["suite"].to_list() == ["empty"]


def test_extras_stand_beside_the_plain_scores() -> None:
    settings = SuiteSettings(weights={"a": 3}, class_credit={"refusal": 0.5}, latency_limit_ms=400)
    scores = cases(("a", 4, 2), ("b", 4, 4), failure="refusal")
    suites = {row["suite"]: row for row in metric.suite_scores(scores, settings).collect().iter_rows(named=True)}
    assert (suites["a"]["score"], suites["a"]["weighted_score"], suites["a"]["latency_score"]) == (0.5, 0.75, 0.75)
    run = overall(scores, settings)
    assert (run["overall_score"], run["overall_weighted_score"]) == (0.75, pytest.approx((3 * 0.75 + 1) / 4))
    plain = overall(scores)
    assert plain["overall_weighted_score"] == plain["overall_score"] == 0.75


def test_weights_that_leave_nothing_give_no_weighted_score() -> None:
    assert overall(cases(("a", 2, 1)), SuiteSettings(weights={"a": 0}))["overall_weighted_score"] is None


@given(st.lists(st.sampled_from([*CLASSES, None]), min_size=1, max_size=50))
def test_class_counts_add_up_to_the_cases(classes: list[str | None]) -> None:
    scores = cases(("s", len(classes), 0)).with_columns(classification=pl.Series(classes, dtype=pl.String))
    row = metric.suite_scores(scores, PLAIN).collect().row(0, named=True)
    assert sum(count for name, count in row.items() if name.startswith("class_")) == row["cases"] == len(classes)


@given(st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1)), min_size=1, max_size=5))
def test_overall_score_lies_between_the_suites(suites: list[tuple[int, float]]) -> None:
    made = [(f"s{place}", total, round(total * rate)) for place, (total, rate) in enumerate(suites)]
    parts = [passed / total for _, total, passed in made]
    assert min(parts) - 1e-12 <= overall(cases(*made))["overall_score"] <= max(parts) + 1e-12
