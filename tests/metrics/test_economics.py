"""Cost of pass: worked by hand, against brute force, and at the edges."""

import math
import random

import numpy as np
import polars as pl
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.frames import problem_scores
from touchstone.config import IntervalSettings
from touchstone.config.scoring import Scoring
from touchstone.inference.bootstrap import bootstrap_sums
from touchstone.metrics import economics as metric
from touchstone.metrics.routing import routing
from touchstone.metrics.tiers import METRICS, tier_statistics, tiers
from touchstone.tables import TABLES, conform, violations

SETTINGS = IntervalSettings(replicates=500)

SCORES = {
    "model": pl.String, "tier": pl.String, "oid": pl.String, "iteration_id": pl.String, "suite": pl.String,
    "pass_rate": pl.Float64, "cost_usd": pl.Float64,
}  # fmt: skip

Attempt = tuple[str, str, float | None, float | None]
Row = dict[str, object]


def scores(attempts: list[Attempt]) -> pl.LazyFrame:
    """(model, oid, pass rate, cost); the suite is the first letter of the problem."""
    rows = [(model, "T0", oid, str(i), oid[0], rate, cost) for i, (model, oid, rate, cost) in enumerate(attempts)]
    return pl.LazyFrame(rows, schema=SCORES, orient="row")


def problems(attempts: list[Attempt], clusters: dict[str, str] | None = None) -> pl.LazyFrame:
    oids = sorted({attempt[1] for attempt in attempts})
    rows = [(oid, oid[0], (clusters or {}).get(oid)) for oid in oids]
    return pl.LazyFrame(rows, schema={"oid": pl.String, "suite": pl.String, "cluster": pl.String}, orient="row")


def economics(attempts: list[Attempt], clusters: dict[str, str] | None = None) -> dict[str, Row]:
    table = metric.economics(problem_scores(scores(attempts)), problems(attempts, clusters), SETTINGS)
    agreed = conform(table, TABLES["economics"])
    assert violations(agreed, TABLES["economics"]) == {}
    return {row["model"]: row for row in agreed.collect().iter_rows(named=True)}


def solid(model: str, rates: list[float], cost: float, prefix: str = "p") -> list[Attempt]:
    return [(model, f"{prefix}{i:02}", rate, cost) for i, rate in enumerate(rates)]


# Problem p1 has two attempts of each, the others one: m passes 1/2, 1, 0 at 2, 1, 3; n passes 1, 1, 1 at 4 each.
BY_HAND: list[Attempt] = [
    ("m", "p1", 1.0, 1.0), ("m", "p1", 0.0, 3.0), ("m", "p2", 1.0, 1.0), ("m", "p3", 0.0, 3.0),
    ("n", "p1", 1.0, 4.0), ("n", "p1", 1.0, 4.0), ("n", "p2", 1.0, 4.0), ("n", "p3", 1.0, 4.0),
]  # fmt: skip


def test_two_models_on_three_problems_by_hand() -> None:
    m, n = (economics(BY_HAND)[name] for name in "mn")
    assert (m["problems"], m["pass_rate"], m["cost_per_attempt"], m["cost_of_pass"]) == (3, 0.5, 2.0, 4.0)
    assert (n["problems"], n["pass_rate"], n["cost_per_attempt"], n["cost_of_pass"]) == (3, 1.0, 4.0, 4.0)
    assert m["on_frontier"] and n["on_frontier"], "a tie"
    assert m["pareto"] and n["pareto"], "one is cheaper, the other better"


# Ten attempts, most of them at a problem that is dear and hard.
UNBALANCED: list[Attempt] = [
    *[("m", "p1", float(place < 3), 0.9) for place in range(7)], ("m", "p2", 1.0, 0.2), ("m", "p2", 1.0, 0.3),
    ("m", "p3", 0.0, 0.4), ("m", "p3", None, 99.0), ("m", "p4", None, None),
]  # fmt: skip


def test_cost_of_pass_is_the_same_figure_in_every_table() -> None:
    row = economics(UNBALANCED)["m"]
    attempts = scores(UNBALANCED).with_columns(
        pl.lit(None, pl.Float64).alias(name) for name in METRICS if name not in ("pass_rate", "cost_usd")
    )
    described = tier_statistics(attempts)
    sums = problem_scores(attempts)
    table = tiers(described, attempts, sums, problems(UNBALANCED), Scoring(), SETTINGS)
    tier = table.collect().row(0, named=True)
    # What ten decided attempts cost by what passed: 7 * 0.9 + 0.2 + 0.3 + 0.4 dollars for 5 passes.
    assert row["cost_of_pass"] == pytest.approx(7.2 / 5)
    assert (row["pass_rate"], row["cost_per_attempt"]) == (0.5, pytest.approx(0.72))
    assert tier["cost_of_pass"] == pytest.approx(row["cost_of_pass"], rel=1e-12)
    assert tier["pass_rate"] == row["pass_rate"]
    for end in ("ci_low", "ci_high"):
        assert tier[f"cost_of_pass_{end}"] == pytest.approx(row[end], rel=1e-12)
    suite = routing(problem_scores(scores(UNBALANCED)), problems(UNBALANCED), SETTINGS).collect().row(0, named=True)
    assert (suite["pass_rate"], suite["cost_of_pass"]) == (0.5, pytest.approx(7.2 / 5))


def test_the_lowest_cost_of_pass_is_the_frontier() -> None:
    table = economics([*solid("m", [1.0, 0.0] * 10, 1.0), *solid("n", [1.0] * 20, 1.5)])
    assert (table["m"]["cost_of_pass"], table["n"]["cost_of_pass"]) == (2.0, 1.5)
    assert (table["m"]["on_frontier"], table["n"]["on_frontier"]) == (False, True)
    # m is ahead where it passes more than two in three: 14 or more of 20 in plain draws, which are too sure of it.
    # By the logs of costs of pass with their standard error, Student's t is more open.
    ahead = sum(math.comb(20, k) for k in range(14, 21)) / 2**20
    error = math.sqrt((1 - 0.5) / (0.5 * 19))
    assert ahead < table["m"]["frontier_probability"] < scipy.stats.t.sf(math.log(2 / 1.5) / error, 19)
    assert table["m"]["frontier_probability"] + table["n"]["frontier_probability"] == pytest.approx(1)


@pytest.mark.nightly
def test_few_problems_give_no_certainty() -> None:
    """Of two equal models one is surely the cheapest, at 97.5%, in a twentieth of cases, and not in a seventh."""
    generator, sure, runs = np.random.default_rng(1), 0, 300
    for _ in range(runs):
        difficulty = generator.normal(0, 1, 6)
        attempts = [
            (model, f"p{i}", float(generator.random() < 1 / (1 + np.exp(-1 - each))), float(np.exp(generator.normal())))
            for model in "mn"
            for i, each in enumerate(difficulty)
        ]
        sure += any(row["frontier_probability"] > 0.975 for row in economics(attempts).values())
    assert sure / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_a_model_with_few_problems_does_not_affect_the_probabilities_of_others() -> None:
    rest = [*solid("m", [1.0, 0.0] * 10, 1.0), *solid("n", [1.0] * 20, 1.5)]
    table = economics([*rest, ("o", "p00", 1.0, 0.01), ("o", "p01", 1.0, 0.01)])
    assert (table["o"]["on_frontier"], table["o"]["frontier_probability"]) == (True, None)
    assert [table[name]["frontier_probability"] for name in "mn"] == [
        economics(rest)[name]["frontier_probability"] for name in "mn"
    ]


def test_a_dominated_model_is_not_on_the_pareto_front() -> None:
    table = economics([*solid("m", [1.0] * 8, 1.0), *solid("n", [1.0, 0.0] * 4, 1.0), *solid("o", [0.0] * 8, 0.5)])
    assert [table[name]["pareto"] for name in "mno"] == [True, False, True]
    assert table["m"]["pareto_probability"] == table["o"]["pareto_probability"] == 1
    # n draws level with m only where all eight draws are of the half that it passes.
    assert table["n"]["pareto_probability"] == pytest.approx(1 / 256, abs=0.01)


def test_clusters_are_resampled_whole() -> None:
    attempts = solid("m", [1.0, 1.0, 0.0, 0.0] * 10, 1.0)
    paired = {f"p{i:02}": f"c{i // 2}" for i in range(40)}
    alone, together = economics(attempts)["m"], economics(attempts, paired)["m"]
    assert (together["ci_method"], together["ci_units"]) == ("fieller", 20)
    assert alone["cost_of_pass"] == together["cost_of_pass"]
    assert together["ci_high"] - together["ci_low"] > alone["ci_high"] - alone["ci_low"]


def test_many_problems_in_few_clusters_have_no_probabilities() -> None:
    row = economics(solid("m", [1.0, 0.0] * 10, 1.0), {f"p{i:02}": f"c{i % 5}" for i in range(20)})["m"]
    assert (row["ci_units"], row["ci_method"], row["pareto_probability"]) == (5, "fieller", None)


def test_a_cluster_of_one_problem_is_a_problem() -> None:
    attempts = solid("m", [1.0, 0.0] * 10, 1.0)
    assert economics(attempts, {f"p{i:02}": f"c{i}" for i in range(20)}) == economics(attempts)


def test_where_nothing_passes_the_cost_of_pass_is_infinite_and_still_has_a_lower_end() -> None:
    row = economics(solid("m", [0.0] * 20, 1.0))["m"]
    assert (row["cost_of_pass"], row["ci_high"], row["ci_method"]) == (math.inf, math.inf, "fieller")
    assert row["ci_low"] == pytest.approx(1 / 0.161, rel=0.15), "one pass in 20 problems would not surprise"
    assert (row["on_frontier"], row["frontier_probability"], row["pareto"]) == (False, 0.0, True)


def test_an_unknown_cost_leaves_the_model_out() -> None:
    table = economics([*solid("m", [1.0] * 8, 0.1), ("m", "p00", 0.0, None), *solid("n", [1.0] * 8, 1.0)])
    figures = ["cost_per_attempt", "cost_of_pass", "ci_low", "ci_high", "ci_method", "on_frontier", "pareto"]
    assert [table["m"][name] for name in figures] == [None] * len(figures)
    assert (table["m"]["frontier_probability"], table["m"]["pareto_probability"]) == (None, None)
    assert table["m"]["pass_rate"] == pytest.approx(8 / 9)
    assert (table["n"]["on_frontier"], table["n"]["frontier_probability"], table["n"]["pareto"]) == (True, 1.0, True)


def test_an_undecided_attempt_counts_for_nothing() -> None:
    decided = solid("m", [1.0, 0.0] * 4, 1.0)
    table = economics([*decided, ("m", "p00", None, None), ("m", "p01", None, 100.0), ("m", "p99", None, 1.0)])
    assert table == economics(decided)


def test_a_model_without_a_decided_attempt_keeps_its_row() -> None:
    table = economics([*solid("m", [1.0] * 8, 1.0), ("n", "p00", None, 1.0)])
    assert (table["n"]["problems"], table["n"]["pass_rate"], table["n"]["cost_of_pass"]) == (0, None, None)
    assert (table["n"]["on_frontier"], table["n"]["ci_units"]) == (None, 0)


def test_one_problem_has_figures_and_no_probabilities() -> None:
    row = economics([("m", "p1", 1.0, 2.0)])["m"]
    assert (row["cost_of_pass"], row["on_frontier"], row["pareto"], row["ci_units"]) == (2.0, True, True, 1)
    assert (row["ci_low"], row["ci_high"], row["ci_method"], row["frontier_probability"]) == (None,) * 4


def test_what_is_free_costs_nothing() -> None:
    table = economics([*solid("m", [1.0, 0.0] * 5, 0.0), *solid("n", [0.0] * 10, 0.0), *solid("o", [1.0] * 10, 1.0)])
    assert (table["m"]["cost_of_pass"], table["m"]["ci_low"], table["m"]["on_frontier"]) == (0.0, 0.0, True)
    assert (table["n"]["cost_of_pass"], table["n"]["on_frontier"], table["n"]["pareto"]) == (math.inf, False, False)


def test_each_model_is_judged_on_its_own_problems() -> None:
    table = economics([*solid("m", [1.0] * 10, 1.0), *solid("n", [1.0, 0.0] * 5, 1.0, prefix="q")])
    assert (table["m"]["ci_units"], table["n"]["ci_units"]) == (10, 10)
    assert (table["m"]["cost_of_pass"], table["n"]["cost_of_pass"]) == (1.0, 2.0)
    assert table["n"]["ci_low"] < 2.0 < table["n"]["ci_high"]


def test_equal_models_share_the_frontier_in_every_replicate() -> None:
    generator = np.random.default_rng(2)
    attempts = [(f"p{i:02}", float(generator.random() < 0.6), float(generator.random())) for i in range(50)]
    table = economics([(f"m{j}", *attempt) for j in range(7) for attempt in attempts])
    assert {row["frontier_probability"] for row in table.values()} == {1.0}
    assert {row["pareto_probability"] for row in table.values()} == {1.0}


ATTEMPTS = st.lists(
    st.tuples(
        st.sampled_from("mno"),
        st.sampled_from([f"p{i}" for i in range(9)]),
        st.sampled_from([0.0, 1.0, 1.0, None]),
        st.one_of(st.none(), st.floats(0, 10)) | st.floats(0.1, 0.3) | st.floats(0.1, 0.3),
    ),
    max_size=60,
)


@given(ATTEMPTS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_show(attempts: list[Attempt], chance: random.Random) -> None:
    numbered = scores(attempts).collect()
    order = list(range(len(attempts)))
    chance.shuffle(order)
    own = problems(attempts, {"p1": "c", "p2": "c"})
    before = metric.economics(problem_scores(numbered.lazy()), own, SETTINGS).collect()
    after = metric.economics(problem_scores(numbered[order].lazy()), own.reverse(), SETTINGS).collect()
    assert before.equals(after, null_equal=True)
    assert violations(conform(before.lazy(), TABLES["economics"]), TABLES["economics"]) == {}


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=8, max_size=30))
def test_somebody_is_on_the_frontier_wherever_somebody_passes(costs: list[tuple[int, ...]]) -> None:
    attempts = [(f"m{j}", f"p{i:02}", 1.0, float(cost)) for i, row in enumerate(costs) for j, cost in enumerate(row)]
    table = economics(attempts).values()
    assert sum(float(str(row["frontier_probability"])) for row in table) >= 1 - 1e-9
    assert any(row["on_frontier"] for row in table)
    assert all(row["pareto"] for row in table if row["on_frontier"])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), max_size=12))
def test_the_pareto_front_by_brute_force(points: list[tuple[int, int, bool]]) -> None:
    cost = np.array([cost / 7 if known else math.nan for cost, _, known in points])
    rate = np.array([rate / 7 if known else math.nan for _, rate, known in points])
    expected = [
        known and not any(c <= a and r >= b and (c < a or r > b) for c, r, other in points if other)
        for a, b, known in points
    ]
    assert metric.pareto_optimal(cost, rate).tolist() == expected
    # In replicates, and off by rounding.
    noise = 1 + np.random.default_rng(3).choice([0, 1e-15], size=(3, len(points)))
    assert metric.pareto_optimal(cost * noise, rate * noise).tolist() == [expected] * 3


def test_bootstrap_counts_are_multinomial() -> None:
    sums = np.eye(5)
    drawn = np.concatenate(list(bootstrap_sums(sums, IntervalSettings(replicates=20_000))))
    assert (drawn.sum(axis=1) == 5).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(5), abs=0.03)
    assert drawn.var(axis=0) == pytest.approx(np.full(5, 0.8), abs=0.04)
