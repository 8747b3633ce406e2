"""Models and problems: the aggregates of a scoring report."""

import math

import polars as pl
import pytest

from touchstone.metrics import aggregates as metric

SCORES = {
    "model": pl.String, "tier": pl.String, "oid": pl.String, "iteration_id": pl.String, "compilation_score": pl.Float64,
    "test_score": pl.Float64, "ran_tests": pl.Boolean, "lint_score": pl.Float64, "lint_measured": pl.Boolean,
    "code_score": pl.Float64, "cost_usd": pl.Float64, "total_tokens": pl.Int64, "latency_ms": pl.Float64,
}  # fmt: skip


def scores(*rows: dict[str, object]) -> pl.LazyFrame:
    defaults: dict[str, object] = {
        "model": "m", "tier": "T0", "oid": "a", "compilation_score": 1.0, "test_score": 1.0, "ran_tests": True,
        "lint_score": 1.0, "lint_measured": True, "code_score": 1.0, "cost_usd": 1.0, "total_tokens": 10,
        "latency_ms": 5.0,
    }  # fmt: skip
    return pl.LazyFrame([defaults | {"iteration_id": str(i)} | row for i, row in enumerate(rows)], schema=SCORES)


def figures(*rows: tuple[str, str, int, int]) -> pl.LazyFrame:
    """(model, oid, n, c) at k = 1."""
    made = [{"model": m, "tier": "T0", "oid": o, "k": 1, "n": n, "c": c, "pass_at_k": c / n} for m, o, n, c in rows]
    return pl.LazyFrame(made)


def model(*rows: dict[str, object]) -> dict[str, object]:
    per_model = pl.LazyFrame({"model": ["m"], "tier": ["T0"], "k": [1], "pass_at_k": [0.5]})
    return metric.model_statistics(scores(*rows), per_model, [1]).collect().row(0, named=True)


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


def problems(*rows: tuple[str, str, int, int], **score: object) -> dict[tuple[str, str], dict[str, object]]:
    made = scores(*({"model": m, "oid": o} | score for m, o, n, _ in rows for _ in range(n)))
    table = metric.problem_statistics(made, figures(*rows), [1]).collect()
    return {(row["model"], row["oid"]): row for row in table.iter_rows(named=True)}


def test_problems_that_only_one_model_solves() -> None:
    table = problems(("m", "a", 2, 1), ("n", "a", 2, 0), ("m", "b", 2, 1), ("n", "b", 2, 2), ("n", "c", 1, 0))
    assert [key for key, row in table.items() if row["only_solver"]] == [("m", "a")]
    assert {key[1]: row["models_solving"] for key, row in table.items()} == {"a": 1, "b": 2, "c": 0}


def test_cost_of_pass_per_problem() -> None:
    table = problems(("m", "a", 4, 1), ("m", "b", 2, 0))
    assert (table["m", "a"]["cost_of_pass"], table["m", "b"]["cost_of_pass"]) == (4.0, math.inf)
    assert problems(("m", "a", 1, 1), cost_usd=None)["m", "a"]["cost_of_pass"] is None


def test_average_and_best_score() -> None:
    made = scores({"code_score": 0.5}, {"code_score": 0.9})
    row = metric.problem_statistics(made, figures(("m", "a", 2, 1)), [1]).collect().row(0, named=True)
    assert (row["avg_score"], row["best_score"], row["pass_at_1"]) == (pytest.approx(0.7), 0.9, 0.5)


def test_the_cheapest_model_per_problem() -> None:
    rows = [("m", "a", 2, 1), ("n", "a", 2, 2), ("m", "b", 1, 0)]
    made = scores(*({"model": m, "oid": o} for m, o, n, _ in rows for _ in range(n)))
    frontier = metric.problem_frontier(metric.problem_statistics(made, figures(*rows), [1])).collect()
    assert frontier.select("oid", "model", "cost_of_pass").rows() == [("a", "n", 1.0), ("b", None, None)]
    assert frontier["mean_pass_rate"].to_list() == [0.75, 0.0]
