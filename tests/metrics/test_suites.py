"""Suites and runs: the seed's worked examples, macro against micro, the configured extras, and the intervals."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from tests.conftest import fewer_examples
from tests.metrics.frames import problem_scores
from touchstone.config import IntervalSettings
from touchstone.config.scoring import SuiteSettings
from touchstone.inference.uncertainty import unit_interval, wilson, wilson_t
from touchstone.metrics import suites as metric
from touchstone.tables import TABLES, conform, violations
from touchstone.vocabulary import CLASSES

PLAIN = SuiteSettings()
INTERVALS = IntervalSettings()
NO_PROBLEMS = pl.LazyFrame(schema={"oid": pl.String, "cluster": pl.String})


def cases(*suites: tuple[str, int, int], run: str | None = None, failure: str | None = "fail") -> pl.LazyFrame:
    """(suite, cases, passed), the failures of one class."""
    rows = [
        ("m", "T0", run, suite, f"{suite} {place}", "pass" if place < passed else failure, float(place < passed), 100.0)
        for suite, total, passed in suites
        for place in range(total)
    ]
    columns = ["model", "tier", "run_id", "suite", "oid", "classification", "accuracy", "latency_ms"]
    schema = dict.fromkeys(columns, pl.String) | {"accuracy": pl.Float64, "latency_ms": pl.Float64}
    return pl.LazyFrame(rows, schema=schema, orient="row")


def suites_of(
    scores: pl.LazyFrame, settings: SuiteSettings = PLAIN, problems: pl.LazyFrame = NO_PROBLEMS
) -> pl.LazyFrame:
    return metric.suite_scores(scores, problem_scores(scores), problems, settings, INTERVALS)


def runs_of(
    scores: pl.LazyFrame, settings: SuiteSettings = PLAIN, problems: pl.LazyFrame = NO_PROBLEMS
) -> pl.LazyFrame:
    return metric.run_scores(suites_of(scores, settings, problems), problem_scores(scores), problems, INTERVALS)


def overall(scores: pl.LazyFrame, settings: SuiteSettings = PLAIN) -> dict[str, float]:
    return runs_of(scores, settings).collect().row(0, named=True)


def test_seed_example_a_single_suite() -> None:
    row = suites_of(cases(("json_api", 10, 7))).collect().row(0, named=True)
    assert (row["score"], row["cases"], row["passed"]) == (0.7, 10, 7)


def test_cases_without_a_class_score_the_same_whether_their_attempts_are_read_or_not() -> None:
    """Only latencies and classes need the attempts; otherwise the sums by problem are enough."""
    unclassified = cases(("s", 10, 7), ("t", 4, 0)).with_columns(classification=pl.lit(None, pl.String))
    read = suites_of(unclassified, SuiteSettings(latency_limit_ms=1000)).collect()
    assert read["latency_score"].to_list() == pytest.approx([0.9, 0.9])
    assert suites_of(unclassified).collect().drop("latency_score").equals(read.drop("latency_score"))


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
    runs = runs_of(both).collect()
    assert dict(runs.select("run_id", "overall_score").iter_rows()) == {"r1": 1.0, "r2": 0.0}


def test_an_unknown_class_scores_0_and_keeps_its_name_in_the_counts() -> None:
    classes = ["pass"] * 70 + ["fail"] * 26 + ["hallucination"] * 3 + ["babble"]
    scores = cases(("s", 100, 70)).with_columns(classification=pl.Series(classes))
    row = suites_of(scores).collect().row(0, named=True)
    assert (row["cases"], row["passed"], row["score"]) == (100, 70, 0.7)
    assert (row["class_pass"], row["class_fail"], row["class_other"]) == (70, 26, 4)
    assert row["other_classes"] == "babble 1, hallucination 3"


def test_a_case_without_a_class_counts_in_the_denominator_and_the_decided_score_leaves_it_out() -> None:
    undecided = pl.int_range(pl.len()) >= 8
    scores = cases(("s", 10, 6)).with_columns(
        accuracy=pl.when(~undecided).then("accuracy"), classification=pl.when(~undecided).then("classification")
    )
    row = suites_of(scores).collect().row(0, named=True)
    assert (row["cases"], row["decided"], row["passed"]) == (10, 8, 6)
    assert (row["score"], row["decided_score"]) == (0.6, 0.75)
    assert (row["ci_low"], row["ci_high"]) == wilson(0.6, 10, 0.95)
    assert (row["decided_score_ci_low"], row["decided_score_ci_high"]) == wilson(0.75, 8, 0.95)
    assert row["class_none"] == 2
    run = overall(scores)
    assert (run["cases"], run["decided"], run["overall_score"], run["overall_decided_score"]) == (10, 8, 0.6, 0.75)
    assert run["pass_rate"] == 0.75, "as everywhere: of the decided attempts"
    assert (run["ci_low"], run["ci_high"]) == wilson(0.6, 10, 0.95)


def test_a_suite_without_a_decided_case_is_left_out_and_reported() -> None:
    suites = suites_of(pl.concat([cases(("s", 2, 1)), cases(("t", 2, 0)).with_columns(accuracy=pl.lit(None, float))]))
    assert suites.collect()["suite"].to_list() == ["s"]
    problems = pl.LazyFrame({"suite": ["s", "t", "u"], "excluded": [False, False, True]})
    assert metric.empty_suites(problems, suites).collect()["suite"].to_list() == ["t"]


def test_extras_stand_beside_the_plain_scores() -> None:
    settings = SuiteSettings(weights={"a": 3}, class_credit={"refusal": 0.5}, latency_limit_ms=400)
    scores = cases(("a", 4, 2), ("b", 4, 4), failure="refusal")
    suites = {row["suite"]: row for row in suites_of(scores, settings).collect().iter_rows(named=True)}
    assert (suites["a"]["score"], suites["a"]["weighted_score"], suites["a"]["latency_score"]) == (0.5, 0.75, 0.75)
    run = overall(scores, settings)
    assert (run["overall_score"], run["overall_weighted_score"]) == (0.75, pytest.approx((3 * 0.75 + 1) / 4))
    plain = overall(scores)
    assert plain["overall_weighted_score"] == plain["overall_score"] == 0.75


def test_weights_that_leave_nothing_give_no_weighted_score() -> None:
    assert overall(cases(("a", 2, 1)), SuiteSettings(weights={"a": 0}))["overall_weighted_score"] is None


@given(st.lists(st.sampled_from([*CLASSES, "hallucination", "babble", None]), min_size=1, max_size=50))
def test_class_counts_add_up_to_the_cases(classes: list[str | None]) -> None:
    scores = cases(("s", len(classes), 0)).with_columns(classification=pl.Series(classes, dtype=pl.String))
    row = suites_of(scores).collect().row(0, named=True)
    assert sum(count for name, count in row.items() if name.startswith("class_")) == row["cases"] == len(classes)


@given(st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1)), min_size=1, max_size=5))
@fewer_examples
def test_overall_score_lies_between_the_suites(suites: list[tuple[int, float]]) -> None:
    made = [(f"s{place}", total, round(total * rate)) for place, (total, rate) in enumerate(suites)]
    parts = [passed / total for _, total, passed in made]
    assert min(parts) - 1e-12 <= overall(cases(*made))["overall_score"] <= max(parts) + 1e-12


def attempts(*rows: tuple[str, str, int, int]) -> pl.LazyFrame:
    """(suite, oid, cases, passed)."""
    made = [(suite, oid, float(place < passed)) for suite, oid, total, passed in rows for place in range(total)]
    schema = {"suite": pl.String, "oid": pl.String, "accuracy": pl.Float64}
    return pl.LazyFrame(made, schema=schema, orient="row").with_columns(
        model=pl.lit("m"),
        tier=pl.lit("T0"),
        run_id=pl.lit(None, pl.String),
        classification=pl.lit(None, pl.String),
        latency_ms=pl.lit(None, pl.Float64),
    )


def test_attempts_at_one_problem_are_one_unit() -> None:
    made = attempts(("s", "a", 4, 2), ("s", "b", 4, 3), ("s", "c", 8, 8), ("t", "d", 2, 1))
    first, second = suites_of(made).collect().rows(named=True)
    expected = unit_interval(np.array([2.0, 3, 8]), np.array([4, 4, 8]), np.array([1, 1, 1]), INTERVALS)
    assert (first["ci_low"], first["ci_high"], first["ci_units"]) == (expected.low, expected.high, 3)
    assert (second["ci_method"], second["ci_units"]) == ("wilson", 1)


def test_worked_example_of_an_overall_interval() -> None:
    made = attempts(("s", "a", 1, 1), ("s", "b", 1, 0), ("s", "c", 1, 1), ("t", "d", 2, 2), ("t", "e", 2, 1))
    row = runs_of(made).collect().row(0, named=True)
    # Residuals of 1/3, -2/3 and 1/3 over 3 cases with the factor 3/2; of 1/2 and -1/2 over 4 with the factor 2.
    seen = np.array([3 / 2 * (1 / 9 + 4 / 9 + 1 / 9) / 9, 2 * (1 / 4 + 1 / 4) / 16])
    mean = (2 / 3 + 3 / 4) / 2
    most = mean * (1 - mean)
    # At least the variance at the overall score, with the weight that 2 and 1 degrees of freedom leave.
    weights = np.exp(-np.array([2, 1]) / 2)
    unseen = weights * np.maximum(0, most / np.array([3, 2]) - seen)
    variance = (seen + unseen).sum()
    degrees = variance**2 / (seen**2 / [2, 1] + unseen**2 / [6, 4]).sum()
    effective = 4 * most / variance
    reach = special.stdtrit(min(degrees, effective - 1), 0.975)
    assert (row["ci_method"], row["ci_units"]) == ("wilson-t", 5)
    for end in (row["ci_low"], row["ci_high"]):
        assert abs(mean - end) == pytest.approx(reach * np.sqrt(end * (1 - end) / effective))


def test_a_run_of_one_suite_has_the_interval_of_the_suite() -> None:
    made = attempts(("s", "a", 4, 2), ("s", "b", 4, 3), ("s", "c", 8, 8))
    ends = ["ci_low", "ci_high", "ci_method", "ci_units"]
    run = runs_of(made).collect()
    assert run.select(ends).equals(suites_of(made).collect().select(ends))
    assert run.select(f"pass_rate_{end}" for end in ends[:3]).rows() == run.select(ends[:3]).rows()


@pytest.mark.parametrize("passed", [0, 1])
def test_a_run_in_which_all_or_none_pass_has_a_real_interval(passed: int) -> None:
    run = overall(cases(("a", 8, 8 * passed), ("b", 12, 12 * passed)))
    assert (run["ci_low"], run["ci_high"]) == pytest.approx(wilson_t(passed, 4 / (1 / 8 + 1 / 12), 18.2, 0.95))
    assert (run["pass_rate_ci_low"], run["pass_rate_ci_high"]) == wilson(float(passed), 20, 0.95)


@pytest.mark.parametrize(("few", "least"), [(1, 0.5), (2, 0.4), (4, 0.2)])
def test_suites_of_a_few_problems_are_not_taken_as_certain(few: int, least: float) -> None:
    """They pass all, so they show no variance of their own."""
    run = overall(cases(("a", few, few), ("b", 200, 190)))
    assert run["ci_low"] < run["overall_score"] - least < run["overall_score"] < run["ci_high"]


def test_a_cluster_that_reaches_over_suites_is_one_unit() -> None:
    rows = [(suite, f"{suite}{place}", 1, int(place < 6)) for suite in "st" for place in range(12)]
    names = [oid for _, oid, _, _ in rows]
    shared = pl.LazyFrame({"oid": names, "cluster": [oid[1:] for oid in names]})
    apart, together = (runs_of(attempts(*rows), problems=which).collect() for which in (NO_PROBLEMS, shared))
    assert (apart["ci_units"].item(), together["ci_units"].item()) == (24, 12)
    width = [(table["ci_high"] - table["ci_low"]).item() for table in (apart, together)]
    assert width[1] > 1.3 * width[0]
    one = pl.LazyFrame({"oid": names, "cluster": ["c"] * len(names)})
    assert runs_of(attempts(*rows), problems=one).collect()["ci_units"].item() == 1


def test_clusters_of_one_problem_change_nothing() -> None:
    made = attempts(("s", "a", 4, 2), ("s", "b", 4, 3), ("t", "c", 8, 8), ("t", "d", 3, 1))
    alone = pl.LazyFrame({"oid": list("abcd"), "cluster": list("wxyz")})
    assert suites_of(made, problems=alone).collect().equals(suites_of(made).collect())
    assert runs_of(made, problems=alone).collect().equals(runs_of(made).collect())


def test_the_contracts_hold_with_and_without_runs() -> None:
    for run in (None, "r"):
        scores = pl.concat([cases(("a", 7, 5), ("b", 3, 0), run=run), cases(("a", 2, 2), run="other")])
        for name, table in (("suite_scores", suites_of(scores)), ("run_scores", runs_of(scores))):
            assert violations(conform(table, TABLES[name]), TABLES[name]) == {}
            assert conform(table, TABLES[name]).collect()["ci_low"].null_count() == 0


def test_no_decided_case_has_no_row() -> None:
    nothing = cases(("a", 3, 1)).with_columns(accuracy=pl.lit(None, pl.Float64))
    assert (suites_of(nothing).collect().height, runs_of(nothing).collect().height) == (0, 0)


@given(
    st.lists(
        st.tuples(st.sampled_from("st"), st.sampled_from("abcdef"), st.integers(0, 1)), min_size=1, max_size=40
    ).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows)))
)
@fewer_examples
def test_the_order_of_rows_does_not_show(orders: tuple[list[tuple[str, str, int]], list[tuple[str, str, int]]]) -> None:
    shared = pl.LazyFrame({"oid": list("abcdef"), "cluster": ["x", None, "x", "y", "y", "z"]})
    one, other = (attempts(*((suite, oid, 1, passed) for suite, oid, passed in rows)) for rows in orders)
    assert suites_of(one, problems=shared).collect().equals(suites_of(other, problems=shared).collect())
    assert runs_of(one, problems=shared).collect().equals(runs_of(other, problems=shared).collect())
