"""Routing: the cheapest model per suite, and the cross-validated saving of each policy."""

import random
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import fewer_examples
from tests.metrics.frames import problem_scores
from tests.metrics.test_economics import SCORES
from touchstone.config import IntervalSettings
from touchstone.metrics import economics
from touchstone.metrics import routing as metric
from touchstone.storage.batches import batches
from touchstone.tables import TABLES, conform, violations

SETTINGS = IntervalSettings(replicates=500)

Row = dict[str, object]
# (model, oid) to what its attempts did, in order, and the cost of each; the suite is the first letter of the problem.
Attempts = dict[tuple[str, str], tuple[list[float | None], float | None]]


def scores(attempts: Attempts) -> pl.DataFrame:
    rows = [
        (model, "T0", oid, f"{i:02}", oid[0], rate, cost)
        for (model, oid), (rates, cost) in attempts.items()
        for i, rate in enumerate(rates)
    ]
    return pl.DataFrame(rows, schema=SCORES, orient="row")


def problems(attempts: Attempts, clusters: dict[str, str] | None = None) -> pl.LazyFrame:
    rows = [(oid, oid[0], (clusters or {}).get(oid)) for oid in sorted({oid for _, oid in attempts})]
    return pl.LazyFrame(rows, schema={"oid": pl.String, "suite": pl.String, "cluster": pl.String}, orient="row")


def routing(attempts: Attempts, clusters: dict[str, str] | None = None) -> dict[str, Row]:
    table = metric.routing(problem_scores(scores(attempts).lazy()), problems(attempts, clusters), SETTINGS)
    return {str(row["suite"]): row for row in agreed(table, "routing")}


def policies(attempts: Attempts, clusters: dict[str, str] | None = None) -> dict[str, Row]:
    made = scores(attempts).lazy()
    table = metric.routing_policies(made, problem_scores(made), problems(attempts, clusters), SETTINGS)
    rows = agreed(table, "routing_policies")
    assert [row["policy"] for row in rows] == ["single", "suite", "problem"]
    return {str(row["policy"]): row for row in rows}


def agreed(table: pl.LazyFrame, name: str) -> list[Row]:
    conformed = conform(table, TABLES[name])
    assert violations(conformed, TABLES[name]) == {}
    return conformed.collect().to_dicts()


BY_HAND: Attempts = {
    ("m", "a1"): ([1, 1], 1.0), ("m", "a2"): ([1, 1], 1.0), ("m", "b1"): ([0, 1], 1.0),
    ("n", "a1"): ([1, 1], 2.0), ("n", "a2"): ([1, 1], 2.0), ("n", "b1"): ([1, 1], 1.5),
}  # fmt: skip


def specialists(count: int) -> Attempts:
    """m solves one suite and n the other, at the same cost."""
    return {
        (model, f"{suite}{i:02}"): ([float(good)] * 2, 1.0)
        for model, suite, good in (("m", "a", 1), ("m", "b", 0), ("n", "a", 0), ("n", "b", 1))
        for i in range(count)
    }


def test_the_cheapest_model_of_each_suite_by_hand() -> None:
    table = routing(BY_HAND)
    names = ["problems", "model", "tier", "pass_rate", "cost_of_pass", "second_model", "second_cost_of_pass"]
    assert [table["a"][name] for name in names] == [2, "m", "T0", 1.0, 1.0, "n", 2.0]
    assert [table["b"][name] for name in names] == [1, "n", "T0", 1.0, 1.5, "m", 2.0]
    assert table["a"]["probability"] is None, "two problems say nothing of others"


def test_the_policies_by_hand() -> None:
    # Half 0: m is cheapest of all (3 by 2) and of suite a; only n passes b1. Half 1: m is cheapest everywhere.
    # Single: m, m, m and m, m, m: passes 3 and 2 of 3, at 1 each.
    # Suite: m, m, n on half 1 passes 3 of 3 at 3.5, and m, m, m on half 0 passes 2 of 3 at 3.
    table = policies(BY_HAND)
    assert table["single"]["pass_rate"] == pytest.approx(5 / 6)
    assert table["single"]["cost_of_pass"] == pytest.approx(6 / 5)
    assert (table["single"]["saving"], table["single"]["ci_low"], table["single"]["ci_method"]) == (0.0, None, None)
    for policy in ("suite", "problem"):
        row = table[policy]
        assert (row["problems"], row["pass_rate"]) == (3, pytest.approx(5 / 6))
        assert (row["cost_per_attempt"], row["cost_of_pass"]) == (pytest.approx(6.5 / 6), pytest.approx(1.3))
        assert row["saving"] == pytest.approx(1 - 1.3 / 1.2)
        assert (row["ci_low"], row["ci_units"]) == (None, 3)


def test_specialists_are_worth_routing_to() -> None:
    table, choice = policies(specialists(10)), routing(specialists(10))
    assert (table["single"]["cost_of_pass"], table["suite"]["cost_of_pass"]) == (2.0, 1.0)
    assert table["suite"]["saving"] == table["problem"]["saving"] == 0.5
    assert (table["suite"]["ci_method"], table["suite"]["ci_units"]) == ("bootstrap", 20)
    assert 0 < table["suite"]["ci_low"] < 0.5 < table["suite"]["ci_high"] < 1
    assert [(row["model"], row["probability"], row["second_model"]) for row in choice.values()] == [
        ("m", 1.0, None),
        ("n", 1.0, None),
    ]


def test_clusters_are_resampled_whole() -> None:
    alone = policies(specialists(12))["suite"]
    together = policies(specialists(12), {f"{s}{i:02}": f"{s}{i // 2}" for s in "ab" for i in range(12)})["suite"]
    assert (together["ci_method"], together["ci_units"]) == ("bootstrap", 12)
    assert together["saving"] == alone["saving"]
    assert together["ci_high"] - together["ci_low"] > alone["ci_high"] - alone["ci_low"]  # type: ignore[operator]


def test_the_same_choice_has_no_interval() -> None:
    attempts: Attempts = {("m", f"a{i}"): ([i % 2, 1], 1.0) for i in range(8)}
    table = policies(attempts)
    assert [table[name]["saving"] for name in metric.POLICIES] == [0.0] * 3
    assert [table[name]["ci_method"] for name in metric.POLICIES] == [None] * 3


def test_the_chance_of_being_cheapest() -> None:
    # m is cheaper where it passes more than half of 7 draws of problems that it passes with chance 3/7: never tied.
    attempts: Attempts = {("m", f"a{i}"): ([float(i < 3)], 1.0) for i in range(7)}
    attempts |= {("n", f"a{i}"): ([1.0], 2.0) for i in range(7)}
    row = routing(attempts)["a"]
    ahead = sum(_binomial(7, k, 3 / 7) for k in range(4))
    assert (row["model"], row["second_model"]) == ("n", "m")
    assert row["probability"] == pytest.approx(ahead, abs=0.06)


def _binomial(count: int, hits: int, chance: float) -> float:
    ways = np.prod([(count - i) / (i + 1) for i in range(hits)])
    return float(ways * chance**hits * (1 - chance) ** (count - hits))


def test_ties_go_by_name() -> None:
    attempts: Attempts = {(model, f"a{i}"): ([1.0, 1.0], 0.1) for model in "nm" for i in range(6)}
    row = routing(attempts)["a"]
    assert (row["model"], row["second_model"], row["probability"]) == ("m", "n", 1.0)


def test_a_suite_that_nobody_passes_has_no_choice() -> None:
    row = routing({("m", "a1"): ([0, 0], 1.0), ("n", "a1"): ([1, 1], None)})["a"]
    assert (row["model"], row["problems"], row["cost_of_pass"], row["second_model"]) == (None, 0, None, None)


def test_a_suite_without_attempts_keeps_its_row() -> None:
    attempts: Attempts = {("m", "a1"): ([1], 1.0), ("m", "b1"): ([], 1.0)}
    assert [(suite, row["model"]) for suite, row in routing(attempts).items()] == [("a", "m"), ("b", None)]


def test_the_suite_is_that_of_the_attempts() -> None:
    own = problems(BY_HAND).with_columns(suite=pl.lit("default"))
    table = metric.routing(problem_scores(scores(BY_HAND).lazy()), own, SETTINGS).collect()
    assert table["suite"].to_list() == ["a", "b"]


def test_where_nobody_passes_a_problem_the_suite_decides_and_then_the_single_choice() -> None:
    # Nobody passes a1, where n would be cheap. Suite a is m's, suite b is nobody's; over all n is the cheapest.
    attempts: Attempts = {
        ("m", "a1"): ([0, 0], 9.0), ("m", "a2"): ([1, 1], 1.0), ("m", "b1"): ([0, 0], 9.0), ("m", "c1"): ([1, 1], 5.0),
        ("n", "a1"): ([0, 0], 1.0), ("n", "a2"): ([0, 0], 1.0), ("n", "b1"): ([0, 0], 3.0), ("n", "c1"): ([1, 1], 1.0),
    }  # fmt: skip
    table = policies(attempts)
    assert table["single"]["cost_per_attempt"] == pytest.approx((1 + 1 + 3 + 1) / 4)
    assert table["suite"]["cost_per_attempt"] == pytest.approx((9 + 1 + 3 + 1) / 4)
    assert table["problem"]["cost_per_attempt"] == pytest.approx((9 + 1 + 3 + 1) / 4)


def test_attempts_are_dealt_in_the_order_of_their_ids() -> None:
    # Odd attempts pass: one half has all the passes, and so the other half has nothing to choose by.
    assert policies({("m", "a1"): ([1, 0, 1, 0], 1.0)})["single"]["pass_rate"] is None
    assert policies({("m", "a1"): ([1, 1, 0, 0], 1.0)})["single"]["pass_rate"] == 0.5
    # An undecided attempt is not dealt.
    assert policies({("m", "a1"): ([1, None, 1, 0, 0], 1.0)})["single"]["pass_rate"] == 0.5


def test_where_nothing_passes_all_figures_are_null() -> None:
    table = policies({("m", "a1"): ([0, 0], 1.0), ("n", "a1"): ([0, 0], 1.0)})
    assert [(row["problems"], row["pass_rate"], row["saving"]) for row in table.values()] == [(1, None, None)] * 3


@pytest.mark.parametrize("attempts", [{}, {("m", "a1"): ([1], 1.0)}, {("m", "a1"): ([1, 1], None)}])
def test_without_two_attempts_at_a_known_cost_there_is_nothing_to_tell(attempts: Attempts) -> None:
    table = policies(attempts)
    assert [(row["problems"], row["saving"], row["ci_units"]) for row in table.values()] == [(0, None, 0)] * 3


def test_what_is_free_saves_nothing() -> None:
    table = policies({("m", f"a{i}"): ([1, 1], 0.0) for i in range(8)})
    assert [(row["cost_of_pass"], row["saving"]) for row in table.values()] == [(0.0, None)] * 3


def test_an_unknown_cost_is_no_candidate() -> None:
    free: Attempts = {("z", "a1"): ([1, 1], 0.0), ("z", "b1"): ([1, 1], None)}
    assert policies(BY_HAND | free) == policies(BY_HAND)
    assert routing(BY_HAND | free) == routing(BY_HAND)


def test_only_problems_that_all_attempted_twice_count() -> None:
    more: Attempts = {("m", "a3"): ([1, 1], 1.0), ("m", "a4"): ([1, 1], 1.0), ("n", "a4"): ([1], 1.0)}
    assert policies(BY_HAND | more) == policies(BY_HAND)


def test_whoever_shares_no_problem_is_left_out() -> None:
    stranger: Attempts = {("a", "z1"): ([1, 1], 0.1), ("b", "z2"): ([1], 0.1)}
    assert policies(BY_HAND | stranger) == policies(BY_HAND)


def test_equal_models_save_nothing_though_it_would_seem_so() -> None:
    """Five models with the same chance and cost: the attempts that choose flatter the choice, the others do not."""
    generator = np.random.default_rng(11)
    runs, count, models, tries = 12, 200, 5, 4
    seeming, honest = [], []
    for _ in range(runs):
        chances = generator.uniform(0.2, 0.8, count)
        passed = (generator.random((models, tries, count)) < chances).transpose(0, 2, 1).astype(float)
        attempts: Attempts = {
            (f"m{j}", f"{'ab'[i % 2]}{i:03}"): (passed[j, i].tolist(), 1.0) for j in range(models) for i in range(count)
        }
        rates = passed.mean(axis=2)
        seeming.append(1 - rates.mean(axis=1).max() / rates.max(axis=0).mean())
        table = policies(attempts)
        honest.append([float(str(table[policy]["saving"])) for policy in ("suite", "problem")])
    error = np.std(honest, axis=0) / np.sqrt(runs)
    assert np.mean(seeming) > 0.25
    assert (np.abs(np.mean(honest, axis=0)) < 3 * error).all()
    assert (error < 0.02).all(), "else nearness to 0 would say nothing"


@pytest.mark.nightly
def test_the_interval_of_equal_models_holds_zero() -> None:
    generator = np.random.default_rng(4)
    held = 0
    for _ in range(60):
        chances = generator.uniform(0.2, 0.8, 40)
        attempts: Attempts = {
            (model, f"a{i:02}"): ((generator.random(6) < chances[i]).astype(float).tolist(), 1.0)
            for model in "mno"
            for i in range(40)
        }
        row = policies(attempts)["problem"]
        held += row["ci_low"] <= 0 <= row["ci_high"]  # type: ignore[operator]
    assert held >= 52


RATES = st.lists(st.sampled_from([0.0, 1.0, 1.0, None]), max_size=5)
COSTS = st.floats(0, 10) | st.floats(0.1, 0.3) | st.floats(0.1, 0.3)
KEYS = st.tuples(st.sampled_from("mno"), st.sampled_from([f"{suite}{i}" for suite in "ab" for i in range(5)]))


@given(st.dictionaries(KEYS, st.tuples(RATES, COSTS), max_size=30), st.randoms(use_true_random=False))
@fewer_examples
def test_the_order_of_rows_does_not_show(attempts: Attempts, chance: random.Random) -> None:
    rows = scores(attempts)
    order = list(range(rows.height))
    chance.shuffle(order)
    own = problems(attempts, {"a1": "c", "a2": "c"})
    before, after = rows.lazy(), rows[order].lazy()
    sums = problem_scores(before), problem_scores(after)
    choice = metric.routing(sums[0], own, SETTINGS)
    assert metric.routing(sums[1], own.reverse(), SETTINGS).collect().equals(choice.collect(), null_equal=True)
    policy = metric.routing_policies(before, sums[0], own, SETTINGS)
    shuffled = metric.routing_policies(after, sums[1], own.reverse(), SETTINGS)
    assert shuffled.collect().equals(policy.collect(), null_equal=True)
    agreed(choice, "routing")
    agreed(policy, "routing_policies")


def test_models_are_split_into_halves_in_batches_of_attempts() -> None:
    entries = pl.DataFrame({"model": ["m", "m", "n", "o"], "tier": ["T0", "T1", "T0", "T0"], "decided": [9, 1, 3, 4]})
    whole = policies(BY_HAND)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(economics, "batches", partial(batches, limit=10))
        assert list(economics.model_batches(entries)) == [["m"], ["n", "o"]]
        patch.setattr(economics, "batches", partial(batches, limit=1))
        assert policies(BY_HAND) == whole
