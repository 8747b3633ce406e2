"""Statistics per model and per problem."""

import math

import numpy as np
import polars as pl
import pytest

from tests.metrics.frames import problem_scores
from touchstone.config import IntervalSettings
from touchstone.inference.uncertainty import unit_interval, wilson
from touchstone.metrics import aggregates as metric
from touchstone.tables import TABLES, conform, violations

INTERVALS = IntervalSettings()
NO_PROBLEMS = pl.LazyFrame(schema={"oid": pl.String, "pass_rate": pl.Float64, "cluster": pl.String})
SCORES = {
    "model": pl.String, "tier": pl.String, "oid": pl.String, "iteration_id": pl.String, "pass_rate": pl.Float64,
    "compilation_score": pl.Float64, "test_score": pl.Float64, "ran_tests": pl.Boolean,
    "lint_score": pl.Float64, "lint_measured": pl.Boolean,
    "code_score": pl.Float64, "cost_usd": pl.Float64, "total_tokens": pl.Int64, "latency_ms": pl.Float64,
    "priced_as": pl.String,
}  # fmt: skip


def scores(*rows: dict[str, object]) -> pl.LazyFrame:
    defaults: dict[str, object] = {
        "model": "m", "tier": "T0", "oid": "a", "pass_rate": 1.0, "compilation_score": 1.0, "test_score": 1.0,
        "ran_tests": True, "lint_score": 1.0, "lint_measured": True, "code_score": 1.0, "cost_usd": 1.0,
        "total_tokens": 10, "latency_ms": 5.0,
    }  # fmt: skip
    return pl.LazyFrame([defaults | {"iteration_id": str(i)} | row for i, row in enumerate(rows)], schema=SCORES)


def figures(*rows: tuple[str, str, int, int]) -> pl.LazyFrame:
    """(model, oid, n, c) at k = 1."""
    made = [{"model": m, "tier": "T0", "oid": o, "k": 1, "n": n, "c": c, "pass_at_k": c / n} for m, o, n, c in rows]
    return pl.LazyFrame(made)


PASS_AT_K = pl.LazyFrame(
    [("m", "T0", 2, 0.75, 0.6, 0.9, "bootstrap", 300), ("m", "T0", 1, 0.5, 0.25, 0.625, "wilson", 12)],
    schema=["model", "tier", "k", "pass_at_k", "ci_low", "ci_high", "ci_method", "ci_units"],
    orient="row",
)


def models(*rows: dict[str, object], problems: pl.LazyFrame = NO_PROBLEMS) -> pl.LazyFrame:
    return metric.model_statistics(problem_scores(scores(*rows)), PASS_AT_K, problems, [1, 2], INTERVALS)


def model(*rows: dict[str, object], problems: pl.LazyFrame = NO_PROBLEMS) -> dict[str, object]:
    return models(*rows, problems=problems).collect().row(0, named=True)


def test_test_pass_rate_over_tested_attempts_and_over_all() -> None:
    row = model({"test_score": 0.5}, {"test_score": 0.0, "ran_tests": False})
    assert (row["avg_test_pass_rate"], row["avg_test_pass_rate_all"], row["tested_attempts"]) == (0.5, 0.25, 1)


def test_rates_cost_tokens_and_latency() -> None:
    row = model({"compilation_score": 0.0, "cost_usd": 0.25}, {"cost_usd": 0.5, "latency_ms": 15.0})
    assert (row["avg_compilation_rate"], row["total_cost_usd"], row["total_tokens"]) == (0.5, 0.75, 20)
    assert (row["avg_latency_ms"], row["pass_at_1"], row["attempts"]) == (10.0, 0.5, 2)


def test_an_unknown_cost_makes_the_total_unknown() -> None:
    row = model({}, {"cost_usd": None})
    assert (row["total_cost_usd"], row["unpriced_attempts"]) == (None, 1)


def test_the_intervals_of_pass_at_k_are_copied() -> None:
    row = model({})
    assert (row["ci_low"], row["ci_high"], row["ci_method"], row["ci_units"]) == (0.25, 0.625, "wilson", 12)
    assert (row["pass_at_1_ci_low"], row["pass_at_1_ci_high"]) == (0.25, 0.625)
    assert (row["pass_at_2"], row["pass_at_2_ci_low"], row["pass_at_2_ci_high"]) == (0.75, 0.6, 0.9)


def test_a_tier_without_a_pass_at_k_has_no_interval_of_it() -> None:
    row = model({"tier": "T1"})
    assert (row["pass_at_1"], row["ci_low"], row["ci_method"], row["ci_units"]) == (None, None, None, 0)


def test_averages_have_intervals_over_problems() -> None:
    made = [
        {"oid": oid, "code_score": score, "compilation_score": float(oid == "a")} for oid in "ab" for score in (0, 0.5)
    ]
    row = model(*made, {"oid": "c", "code_score": 1.0})
    expected = unit_interval(np.array([0.5, 0.5, 1.0]), np.array([2, 2, 1]), np.array([1, 1, 1]), INTERVALS)
    assert (row["avg_code_score_ci_low"], row["avg_code_score_ci_high"]) == (expected.low, expected.high)
    assert (row["avg_code_score_ci_method"], row["avg_code_score_ci_units"]) == ("wilson-t", 3)
    assert row["avg_compilation_rate_ci_low"] < row["avg_compilation_rate"] < row["avg_compilation_rate_ci_high"]


def test_only_attempts_that_count_make_an_interval() -> None:
    untested = {"oid": "b", "ran_tests": False, "test_score": 0.0, "lint_measured": False}
    row = model({"test_score": 0.5}, untested)
    for name, mean in (("avg_test_pass_rate", 0.5), ("avg_lint_score", 1.0)):
        assert row[f"{name}_ci_units"] == 1
        assert (row[f"{name}_ci_low"], row[f"{name}_ci_high"]) == wilson(mean, 1, 0.95)
    nothing = model(untested)
    assert (nothing["avg_lint_score_ci_low"], nothing["avg_lint_score_ci_method"]) == (None, None)
    assert nothing["avg_lint_score_ci_units"] == 0


def test_problems_that_share_a_cluster_are_one_unit() -> None:
    shared = pl.LazyFrame({"oid": ["a", "b", "c"], "cluster": ["x", "x", "y"]})
    made = [{"oid": oid, "code_score": score} for oid, score in (("a", 0.25), ("b", 0.75), ("c", 1.0))]
    row = model(*made, problems=shared)
    assert (row["avg_code_score_ci_method"], row["avg_code_score_ci_units"]) == ("wilson-t", 2)


def test_the_contract_of_model_statistics_holds() -> None:
    made = [{"oid": f"p{place % 7}", "code_score": place / 50, "tier": f"T{place % 2}"} for place in range(50)]
    table = models(*made)
    assert violations(conform(table, TABLES["model_statistics"]), TABLES["model_statistics"]) == {}
    turned = metric.model_statistics(
        problem_scores(scores(*made).collect().reverse().lazy()),
        PASS_AT_K.collect().reverse().lazy(),
        NO_PROBLEMS,
        [1, 2],
        INTERVALS,
    )
    assert turned.collect().equals(table.collect())


def problems(*rows: tuple[str, str, int, int], **score: object) -> dict[tuple[str, str], dict[str, object]]:
    made = scores(*({"model": m, "oid": o} | score for m, o, n, _ in rows for _ in range(n)))
    table = metric.problem_statistics(problem_scores(made), figures(*rows), [1]).collect()
    return {(row["model"], row["oid"]): row for row in table.iter_rows(named=True)}


def test_problems_that_only_one_model_solves() -> None:
    table = problems(("m", "a", 2, 1), ("n", "a", 2, 0), ("m", "b", 2, 1), ("n", "b", 2, 2), ("n", "c", 1, 0))
    assert [key for key, row in table.items() if row["only_solver"]] == [("m", "a")]
    assert {key[1]: row["models_solving"] for key, row in table.items()} == {"a": 1, "b": 2, "c": 0}


def test_cost_of_pass_per_problem() -> None:
    table = problems(("m", "a", 4, 1), ("m", "b", 2, 0))
    assert (table["m", "a"]["cost_of_pass"], table["m", "b"]["cost_of_pass"]) == (4.0, math.inf)
    assert problems(("m", "a", 1, 1), cost_usd=None)["m", "a"]["cost_of_pass"] is None


def test_an_undecided_attempt_does_not_count_in_the_cost_of_pass() -> None:
    made = scores({"cost_usd": 1.0}, {"cost_usd": 3.0}, {"pass_rate": None, "cost_usd": None}, {"pass_rate": None})
    row = metric.problem_statistics(problem_scores(made), figures(("m", "a", 2, 1)), [1]).collect().row(0, named=True)
    assert row["cost_of_pass"] == 4.0


def test_average_and_best_score() -> None:
    made = scores({"code_score": 0.5}, {"code_score": 0.9})
    row = metric.problem_statistics(problem_scores(made), figures(("m", "a", 2, 1)), [1]).collect().row(0, named=True)
    assert (row["avg_score"], row["best_score"], row["pass_at_1"]) == (pytest.approx(0.7), 0.9, 0.5)


def test_the_cheapest_model_per_problem() -> None:
    rows = [("m", "a", 2, 1), ("n", "a", 2, 2), ("m", "b", 1, 0)]
    made = scores(*({"model": m, "oid": o} for m, o, n, _ in rows for _ in range(n)))
    frontier = metric.problem_frontier(metric.problem_statistics(problem_scores(made), figures(*rows), [1])).collect()
    assert frontier.select("oid", "model", "cost_of_pass").rows() == [("a", "n", 1.0), ("b", None, None)]
    assert frontier["mean_pass_rate"].to_list() == [0.75, 0.0]
