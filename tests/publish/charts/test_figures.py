"""Charts say what their tables say: costs, heat maps, the funnel, verdicts, history and slices."""

import csv
import io
import itertools
import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import fewer_examples, nightly_but
from tests.publish.charts.tables import (
    TABLE_OF,
    budget_curves,
    economics,
    history,
    model_comparison,
    names,
    outcomes,
    pass_at_k,
    problem_statistics,
    slices,
    suite_scores,
    tiers,
    variance_split,
)
from tests.publish.charts.test_charts import caption, texts
from touchstone.publish.charts import CHARTS, NothingToDraw, draw, spec
from touchstone.publish.charts.lines import spread
from touchstone.publish.charts.plan import plan_tradeoff
from touchstone.publish.charts.rendering import svg


def cells(drawn: dict[str, Any]) -> list[dict[str, float]]:
    """The numbers of a grid, which are kept as CSV."""
    (text,) = (text for text in drawn["datasets"].values() if isinstance(text, str))
    return [{name: float(cell) for name, cell in row.items()} for row in csv.DictReader(io.StringIO(text))]


def test_costs_that_no_axis_shows_are_stated() -> None:
    unknown, infinite = pl.Series([None, 0.1, 0.2, 0.0]), pl.Series([None, 1.0, float("inf"), 0.0])
    table = economics(["unpriced", "good", "failing", "free"]).with_columns(
        cost_per_attempt=unknown, cost_of_pass=infinite, pass_rate=pl.Series([0.5, 0.5, 0.0, 0.5])
    )
    drawn = spec("cost_quality", table)
    assert {row["side"] for row in values(drawn)} == {"good", "failing"}
    said = caption(drawn)
    assert "Infinite cost of a pass (nothing passes): failing." in said
    assert "Cost 0, left of any log axis: free." in said
    assert "Not shown, cost unknown: unpriced." in said


def test_without_any_known_cost_there_is_nothing_to_draw() -> None:
    with pytest.raises(NothingToDraw, match="no model of the table 'economics' has a known cost above 0"):
        draw("cost_quality", economics(["m"]).with_columns(cost_per_attempt=pl.lit(None, pl.Float64)))


def test_a_curve_that_is_unknown_is_stated_and_another_resource_can_be_chosen() -> None:
    known, unknown = budget_curves(["good"]), budget_curves(["unpriced"])
    nothing = {name: pl.lit(None, unknown[name].dtype) for name in ("share_solved", "ci_low", "ci_high", "ci_method")}
    table = pl.concat([known, unknown.with_columns(**nothing), known.with_columns(resource=pl.lit("tokens"))])
    assert "Not shown, dollars unknown: unpriced." in caption(spec("budget_curves", table))
    assert spec("budget_curves", table, resource="tokens")["title"]["text"] == "Solved within a budget of tokens"
    with pytest.raises(NothingToDraw, match="no known budget of seconds above 0"):
        spec("budget_curves", table, resource="seconds")


def test_the_baseline_tier_alone_has_no_uplift_to_draw() -> None:
    with pytest.raises(NothingToDraw, match="no tier beside the baseline tier"):
        draw("tier_uplift", tiers(["m"]).filter(pl.col("tier") == "T0"))


def test_a_few_problems_have_a_column_each() -> None:
    table = problem_statistics(["a", "b"], 3)
    drawn = spec("problem_heatmap", table)
    rates = sorted((table["c"] / table["n"]).to_list())
    assert sorted(cell["value"] for cell in cells(drawn)) == pytest.approx(rates)


def test_many_problems_are_averaged_by_difficulty() -> None:
    table = problem_statistics(["a", "b"], 1_000)
    drawn = spec("problem_heatmap", table)
    shown = cells(drawn)
    assert len(shown) == 2 * 100 and {cell["n"] for cell in shown} == {50}
    assert sum(cell["c"] for cell in shown) == table["c"].sum()
    assert "Every column is the mean of 10 problems of like difficulty or fewer." in caption(drawn)
    columns = [sum(cell["value"] for cell in shown if cell["column"] == column) for column in range(100)]
    assert columns == sorted(columns), "hardest on the left"


def test_cells_without_a_decided_attempt_are_counted() -> None:
    table = problem_statistics(["a", "b"], 2).with_columns(n=pl.Series([0, 5, 5, 5]), c=pl.Series([0, 1, 2, 3]))
    assert "1 cell without a decided attempt" in caption(spec("problem_heatmap", table))


def test_runs_of_a_suite_are_pooled() -> None:
    runs = pl.concat([suite_scores(["m"], 1).with_columns(cases=pl.lit(count), passed=pl.lit(2)) for count in (4, 12)])
    drawn = spec("suite_heatmap", runs)
    assert [cell["value"] for cell in cells(drawn)] == [4 / 16]
    assert "Several runs of a model are pooled." in caption(drawn)


def test_classes_of_failure_are_shares_of_all_attempts() -> None:
    table = suite_scores(["m"], 2).with_columns(class_fail=pl.lit(3), class_timeout=pl.lit(1), class_none=pl.lit(1))
    drawn = spec("failure_classes", table)
    assert [cell["value"] for cell in cells(drawn)] == [6 / 20, 2 / 20]
    assert "Without a class, in no column: 2 attempts." in caption(drawn)


def test_the_funnel_keeps_what_is_unknown_apart() -> None:
    drawn = spec("outcome_funnel", outcomes(["a", "b"]))
    reached = {row["label"]: row["attempts"] for row in values(drawn) if row["known"] == "yes"}
    assert reached == {"attempts": 8, "decided": 6, "applied": 4, "compiled": 2, "passed": 2}
    unknown = {row["label"]: row["attempts"] for row in values(drawn) if row["known"] != "yes"}
    assert unknown == {"compiled": 2}
    assert "Undecided: 2, neither passed nor failed." in caption(drawn)


def test_a_stage_that_nothing_records_is_left_out() -> None:
    table = outcomes(["m"]).with_columns(applied=pl.lit(None, pl.Boolean))
    drawn = spec("outcome_funnel", table)
    assert "applied" not in {row["label"] for row in values(drawn)}
    assert "Not recorded for any attempt: applied." in caption(drawn)


def test_the_funnel_of_one_model() -> None:
    assert "n = 4 attempts of b" in caption(spec("outcome_funnel", outcomes(["a", "b"]), model="b"))


def test_verdicts_are_symmetric() -> None:
    drawn = spec("pairwise_verdicts", model_comparison(names(5)))
    verdicts = next(param["value"] for param in drawn["params"] if param["name"] == "pair_verdicts")
    opposite = {"better": "worse", "worse": "better", "inconclusive": "inconclusive"}
    matrix = {(cell["row"], cell["column"]): (verdicts[int(cell["v"])], cell["d"]) for cell in cells(drawn)}
    assert len(matrix) == 5 * 4
    for (row, column), (verdict, difference) in matrix.items():
        assert matrix[column, row] == (opposite[verdict], -difference)
    assert all(row < column for (row, column), (verdict, _) in matrix.items() if verdict == "better"), "best first"


def test_what_was_not_compared_is_said_to_be_blank() -> None:
    pairs = model_comparison(["a", "b", "c"]).head(2)
    assert "Blank: not compared." in caption(spec("pairwise_verdicts", pairs))


def test_history_shows_the_figure_of_every_snapshot_and_the_verdict_of_the_gate() -> None:
    table = history(["a", "b"], 4)
    judged = {"model": ["a"], "tier": ["T0"], "baseline": ["s1"], "verdict": ["worse"]}
    drawn = spec("history", table, verdicts=pl.DataFrame(judged))
    shown = {(row["side"], row["snapshot"]): (row["value"], row["low"], row["high"]) for row in values(drawn)}
    wide = table.pivot("figure", index=["model", "snapshot"], values="value")
    assert shown == {
        (row["model"], row["snapshot"]): (row["pass_at_k"], row["ci_low"], row["ci_high"])
        for row in wide.iter_rows(named=True)
    }
    assert {row["end"] for row in values(drawn)} == {"a (▼ worse)", "b"}
    assert "4 snapshots. n = 8 problems." in caption(drawn) and "against s1" in caption(drawn)


def test_history_of_another_figure_names_it_and_its_n() -> None:
    table = history(["m"]).with_columns(
        table=pl.lit("suite_scores"),
        item=pl.lit("python"),
        figure=pl.col("figure").replace({"pass_at_k": "score", "eligible": "cases"}),
    )
    drawn = spec("history", table, of="suite_scores")
    assert drawn["title"]["text"] == "score of suite_scores, python over snapshots"
    assert "n = 8 attempts." in caption(drawn)


def test_a_figure_that_history_lacks_is_named() -> None:
    with pytest.raises(NothingToDraw, match="no figure 'uplift' of the table 'tiers'"):
        draw("history", history(["m"]), of="tiers", figure="uplift")


def test_points_without_enough_attempts_are_counted() -> None:
    table = pass_at_k(["m"], [1, 5]).with_columns(pass_at_k=pl.Series([0.5, None]))
    assert "1 of 2 points are undefined" in caption(spec("pass_at_k_curves", table))


def test_a_negative_part_of_the_variance_is_explained() -> None:
    table = variance_split(["a", "b"]).with_columns(
        from_problems=pl.Series([-0.1, None]), from_samples=pl.Series([0.2, None])
    )
    said = caption(spec("variance_split", table))
    assert "Left of 0 for 1" in said and "Not separable for 1" in said


def test_slices_show_the_best_models_and_state_the_rest() -> None:
    drawn = spec("slices", slices(names(134)))
    assert len({row["side"] for row in values(drawn)}) == 6
    assert "Shown: the best 6 of 134 models." in caption(drawn)


def test_the_n_of_a_slice_is_the_problems_with_a_decided_attempt() -> None:
    assert "n = 3 problems per point." in caption(spec("slices", slices(["m"]).with_columns(attempted=pl.lit(3))))
    assert "n = 4 problems per point." in caption(spec("slices", slices(["m"])))


def test_labels_keep_their_order_and_distance() -> None:
    places = spread([0.95, 0.94, 0.945, 0.2], 0.1, 0, 1)
    assert sorted(range(4), key=lambda place: -places[place]) == [0, 2, 1, 3]
    in_order = sorted(places)
    assert all(high - low >= 0.0999 for low, high in itertools.pairwise(in_order))
    assert 0 <= min(places) <= max(places) <= 1


def test_names_on_the_pareto_front_do_not_cover_one_another() -> None:
    """Three points of the front within a few pixels of each other, among many that have no name."""
    models = [f"provider-model-{nth}" for nth in range(40)]
    near = [0.001, 0.00101, 0.00102]
    table = economics(models).with_columns(
        cost_per_attempt=pl.Series([*near, *(0.01 + 0.001 * nth for nth in range(37))]),
        pass_rate=pl.Series([0.80, 0.801, 0.802, *(0.2 + 0.01 * nth for nth in range(37))]),
        pareto=pl.Series([True] * 3 + [False] * 37),
    )
    corners = {row["side"]: row["corner"] for row in values(spec("cost_quality", table)) if row["corner"] is not None}
    assert set(corners) <= set(models[:3]) and len(set(corners.values())) == len(corners) >= 2


LEVELS = [name for name, chart in CHARTS.items() if "settings" in chart.beside]


@pytest.mark.parametrize("name", nightly_but(["leaderboard", "pass_hat_k"], LEVELS))
def test_the_caption_states_the_confidence_level_of_the_run(name: str) -> None:
    settings = pl.LazyFrame({"key": ["intervals.confidence"], "value": ["0.9"]})
    assert "90% confidence interval" in caption(spec(name, TABLE_OF[name](["a", "b"]), settings=settings))
    assert "% confidence" not in caption(spec(name, TABLE_OF[name](["a", "b"])))


@pytest.mark.parametrize(("reaches_goal", "said"), [(False, True), (True, False)])
def test_a_plan_that_no_number_of_attempts_reaches_says_so(reaches_goal: bool, said: bool) -> None:
    mixes = pl.LazyFrame({"attempts_per_problem": [1, 20], "problems": 164, "detectable_on_few": [0.148, 0.071]})
    given = {"effect": 0.03, "power": 0.8, "cost_usd": None, "cheapest": False, "reaches_goal": reaches_goal}
    drawn = plan_tradeoff(mixes.with_columns(pl.lit(value).alias(name) for name, value in given.items()))
    assert ("No number of attempts shown is enough" in caption(drawn)) is said


def test_a_series_with_a_single_point_is_seen() -> None:
    """One snapshot of ten models: the four that are grey are points, because a line needs two."""
    drawn = spec("history", history(names(10)).filter(pl.col("made_at") == pl.col("made_at").min()))
    assert [layer["mark"]["type"] for layer in drawn["layer"]].count("point") == 3


SHARES = st.none() | st.floats(0, 1)


def values(drawn: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the chart's largest data set."""
    rows: list[dict[str, Any]] = max(drawn["datasets"].values(), key=len)
    return rows


@fewer_examples
@given(st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=2, max_size=8))
def test_the_figures_are_those_of_the_table(figures: list[tuple[float | None, float | None, float | None]]) -> None:
    columns = dict(zip(("pass_at_k", "ci_low", "ci_high"), map(list, zip(*figures, strict=True)), strict=True))
    table = pass_at_k(names(len(figures)), [1]).with_columns(
        pl.Series(name, column, dtype=pl.Float64) for name, column in columns.items()
    )
    shown = {
        row["side"]: (row["pass_at_k"], row["ci_low"], row["ci_high"]) for row in values(spec("leaderboard", table))
    }
    assert shown == dict(zip(table["model"], figures, strict=True))


def test_best_first_and_undefined_last() -> None:
    table = pass_at_k(["low", "none", "high"], [1]).with_columns(pass_at_k=pl.Series([0.25, None, 0.75]))
    shown = spec("leaderboard", table)
    assert [row["label"] for row in values(shown)] == ["high", "low", "none"]
    assert [row["figure"] for row in values(shown)] == ["0.750", "0.250", "undefined"]
    assert "Undefined for 1: no problem has 1 decided attempt." in caption(shown)


def test_without_any_interval_all_points_are_open() -> None:
    nothing = pl.lit(None)
    table = pass_at_k(["a", "b"], [1]).with_columns(
        ci_low=nothing.cast(pl.Float64), ci_high=nothing.cast(pl.Float64), ci_method=nothing.cast(pl.String)
    )
    drawn = spec("leaderboard", table)
    assert "No confidence interval of pass@1 is defined." in caption(drawn)
    assert not any(row["has_interval"] for row in values(drawn))


def test_a_missing_interval_does_not_move_a_row() -> None:
    table = pass_at_k(["third", "first", "second"], [1]).with_columns(
        pass_at_k=pl.Series([0.2, 0.6, 0.4]), ci_low=pl.Series([None, None, 0.3]), ci_high=pl.Series([None, None, 0.5])
    )
    shown = texts(svg(spec("leaderboard", table)))
    assert re.findall("first|second|third", shown) == ["first", "second", "third"]


def test_some_models_without_an_interval_are_counted() -> None:
    table = pass_at_k(["a", "b"], [1]).with_columns(ci_low=pl.Series([None, 0.1]), ci_high=pl.Series([None, 0.9]))
    assert "open points have none (1 of 2)" in caption(spec("leaderboard", table))


def test_many_models_are_cut_and_the_rest_is_stated() -> None:
    drawn = spec("leaderboard", pass_at_k(names(134)))
    assert len(values(drawn)) == 50
    assert "Shown: the first 50 of 134 models; the other 84 are in the table pass_at_k." in caption(drawn)


def test_names_that_are_cut_alike_stay_apart() -> None:
    table = pass_at_k([f"{'a' * 50}{middle}{'b' * 50}" for middle in "xy"], [1])
    labels = [row["label"] for row in values(spec("leaderboard", table))]
    assert len(set(labels)) == 2 and all("xb" in label or "yb" in label for label in labels), "where they differ"


def test_uplift_leaves_the_baseline_tier_out_and_keeps_infinite_ends() -> None:
    table = tiers(["a", "b", "c"]).with_columns(
        uplift=pl.when(pl.col("model") == "b", pl.col("tier") == "T1").then(None).otherwise("uplift"),
        uplift_reason=pl.when(pl.col("model") == "b").then(pl.lit("no interval: too few")),
        uplift_ci_high=pl.when(pl.col("model") == "c", pl.col("tier") == "T1")
        .then(float("inf"))
        .otherwise("uplift_ci_high"),
    )
    drawn = spec("tier_uplift", table.filter(~((pl.col("model") == "b") & (pl.col("tier") == "T0"))))
    rows = {row["side"]: row for row in values(drawn)}
    assert rows.keys() == {"a · T1", "b · T1", "c · T1"}
    assert rows["b · T1"]["figure"] == "undefined"
    assert rows["c · T1"]["high_text"] == "+inf%" and rows["c · T1"]["bar_high"] > rows["a · T1"]["uplift_ci_high"]
    assert "1 of the bars have no upper end" in caption(drawn) and "against tier T0" in caption(drawn)
