"""Budget curves: worked by hand, against brute force, and at the edges."""

import math
import random
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.config import IntervalSettings
from touchstone.metrics import budgets as metric
from touchstone.tables import TABLES, conform, violations

SCHEMA = {
    "model": pl.String, "tier": pl.String, "oid": pl.String, "iteration_id": pl.String, "pass_rate": pl.Float64,
    "cost_usd": pl.Float64, "total_tokens": pl.Int64, "duration_seconds": pl.Float64,
}  # fmt: skip

# Model, problem, number of the attempt, whether it passed, and its cost.
Attempt = tuple[str, str, int, float | None, float | None]


def scores(attempts: Sequence[Attempt]) -> pl.LazyFrame:
    rows = [(model, "T0", oid, str(nth), passed, cost, None, None) for model, oid, nth, passed, cost in attempts]
    return pl.LazyFrame(rows, schema=SCHEMA, orient="row")


def problems(frame: pl.LazyFrame, clusters: dict[str, str] | None = None) -> pl.LazyFrame:
    oids = frame.select("oid").unique().sort("oid").collect()["oid"].to_list()
    rows = [(oid, (clusters or {}).get(oid)) for oid in oids]
    return pl.LazyFrame(rows, schema={"oid": pl.String, "cluster": pl.String}, orient="row")


def table(frame: pl.LazyFrame, clusters: dict[str, str] | None = None) -> pl.DataFrame:
    made = conform(metric.budget_curves(frame, problems(frame, clusters), IntervalSettings()), TABLES["budget_curves"])
    assert violations(made, TABLES["budget_curves"]) == {}
    return made.collect()


def curve(attempts: Sequence[Attempt], model: str = "m") -> dict[float, float | None]:
    rows = table(scores(attempts)).filter(pl.col("model") == model)
    return dict(rows.select("budget", "share_solved").iter_rows())


def test_a_curve_by_hand() -> None:
    """x fails at 2 and passes at 3: from the first attempt on a pass takes 5, from the second 3. y passes at 1."""
    attempts: list[Attempt] = [("m", "x", 1, 0.0, 2.0), ("m", "x", 2, 1.0, 3.0), ("m", "y", 1, 1.0, 1.0)]
    assert curve(attempts) == {1.0: 0.5, 3.0: 0.75, 5.0: 1.0}


def test_the_order_is_that_of_numbers_and_starts_again_after_the_last_attempt() -> None:
    """Attempts 2 (fails, 1), 9 (passes, 4), 10 (passes, 0.5), 11 (fails, 2): from 11 on the pass takes 2 + 1 + 4."""
    attempts: list[Attempt] = [("m", "x", 10, 1.0, 0.5), ("m", "x", 11, 0.0, 2.0), ("m", "x", 2, 0.0, 1.0)]
    assert curve([*attempts, ("m", "x", 9, 1.0, 4.0)]) == {0.5: 0.25, 4.0: 0.5, 5.0: 0.75, 7.0: 1.0}


def test_an_undecided_attempt_neither_costs_nor_counts() -> None:
    attempts: list[Attempt] = [("m", "x", 1, None, 8.0), ("m", "x", 2, 1.0, 1.0), ("m", "y", 1, None, None)]
    assert curve(attempts) == {1.0: 1.0}


def test_one_unknown_cost_makes_the_curve_unknown_and_nothing_else() -> None:
    attempts: list[Attempt] = [("m", "x", 1, 1.0, None), ("m", "y", 1, 1.0, 1.0), ("n", "x", 1, 1.0, 2.0)]
    assert (curve(attempts), curve(attempts, "n")) == ({2.0: None}, {2.0: 1.0})


def test_without_any_known_cost_or_any_pass_there_is_no_curve() -> None:
    assert curve([("m", "x", 1, 1.0, None)]) == curve([("m", "x", 1, 0.0, 1.0)]) == curve([]) == {}


def test_a_problem_that_is_never_solved_counts_and_what_is_free_is_solved_at_once() -> None:
    assert curve([("m", "x", 1, 0.0, 1.0), ("m", "y", 1, 1.0, 0.0)]) == {0.0: 0.5}


def test_every_resource_has_its_own_budgets() -> None:
    rows = [("m", "T0", "x", "1", 1.0, 0.5, 10**12, 3.5), ("m", "T0", "x", "2", 1.0, 0.5, 10**12, 3.5)]
    made = table(pl.LazyFrame(rows, schema=SCHEMA, orient="row"))
    assert made.select("resource", "budget").rows() == [("dollars", 0.5), ("tokens", 1e12), ("seconds", 3.5)]


def test_the_band_treats_a_cluster_as_one_unit() -> None:
    attempts: list[Attempt] = [("m", f"p{nth}", 1, float(nth < 6), 1.0) for nth in range(12)]
    alone = table(scores(attempts)).row(0, named=True)
    paired = table(scores(attempts), {f"p{nth}": f"c{nth // 2}" for nth in range(12)}).row(0, named=True)
    assert (alone["share_solved"], alone["ci_units"], paired["ci_units"]) == (0.5, 12, 6)
    assert paired["ci_low"] < alone["ci_low"] < 0.5 < alone["ci_high"] < paired["ci_high"]


def test_a_grid_has_few_budgets_that_reach_the_dearest_pass_and_every_entry() -> None:
    made = table(
        scores([("m", f"p{nth:03}", 1, 1.0, 1.0 + nth / 777) for nth in range(500)] + [("n", "p0", 1, 1.0, 90.0)])
    )
    budgets = made["budget"].unique().sort().to_list()
    assert 20 < len(budgets) <= 40 and budgets[-1] == 90.0 and budgets[0] == 1.0
    assert all(budget == float(f"{budget:.3g}") for budget in budgets)


ATTEMPTS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("wxyz"), st.sampled_from([0.0, 1.0, None]),
              st.sampled_from([0.1, 0.2, 0.3, 0.7])), max_size=25,
)  # fmt: skip


@given(ATTEMPTS, st.randoms())
def test_any_curve_is_that_of_brute_force(
    drawn: list[tuple[str, str, float | None, float]], order: random.Random
) -> None:
    attempts = [(model, oid, nth, passed, cost) for nth, (model, oid, passed, cost) in enumerate(drawn)]
    made = table(scores(order.sample(attempts, len(attempts))))
    for model, rows in made.group_by("model"):
        shares = rows.sort("budget")["share_solved"].to_list()
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(
            mean(any(passed for passed, _ in each) for each in by_problem(attempts, model[0]))
        )
        for budget, share in rows.select("budget", "share_solved").iter_rows():
            assert share == pytest.approx(mean(share_within(each, budget) for each in by_problem(attempts, model[0])))


def by_problem(attempts: Sequence[Any], model: object) -> list[list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for name, oid, _, passed, cost in attempts:
        if name == model and passed is not None:
            found.setdefault(oid, []).append((passed, cost))
    return list(found.values())


def share_within(attempts: list[tuple[float, float]], budget: float) -> float:
    return mean(cost_of_first_pass(attempts[nth:] + attempts[:nth]) <= budget for nth in range(len(attempts)))


def cost_of_first_pass(attempts: list[tuple[float, float]]) -> float:
    total = 0.0
    for passed, cost in attempts:
        total += cost
        if passed:
            return round(total, 9)
    return math.inf


def mean(values: Any) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def curves(shares: dict[str, list[float]], width: float) -> pl.DataFrame:
    """Curves with bands of a width, at budgets of 1, 2 and so on."""
    return pl.DataFrame(
        [
            {"model": model, "tier": "T0", "resource": "dollars", "budget": float(nth), "share_solved": share}
            | {"ci_low": share - width, "ci_high": share + width}
            for model, values in shares.items()
            for nth, share in enumerate(values, 1)
        ]
    )


CROSSING = {"cheap": [0.3, 0.4, 0.5, 0.5], "dear": [0.0, 0.4, 0.6, 0.9]}
SIDES = [("dear", "T0"), ("cheap", "T0")]


def test_where_curves_cross_is_said_only_if_their_bands_are_apart_on_both_sides() -> None:
    found = "cheap solves more problems than dear within $1, but fewer within $4."
    assert metric.crossing_sentences(curves(CROSSING, 0.1), SIDES) == [found]
    untold = "Whether these curves cross cannot be told, because their intervals overlap: dear and cheap (dollars)."
    assert metric.crossing_sentences(curves(CROSSING, 0.18), SIDES) == [untold]
    assert metric.crossing_sentences(curves({**CROSSING, "dear": [0.3, 0.6, 0.7, 0.9]}, 0.1), SIDES) == []


def test_a_name_in_a_sentence_is_escaped() -> None:
    (said,) = metric.crossing_sentences(
        curves({"a\x1b": [0.0, 1.0], "b": [1.0, 0.0]}, 0.1), [("a\x1b", "T0"), ("b", "T0")]
    )
    assert said == "b solves more problems than a\\x1b within $1, but fewer within $2."
