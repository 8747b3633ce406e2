"""The leaderboard and the dot plots like it: what is drawn of a figure, its interval, and of what is undefined."""

import re
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import fewer_examples
from tests.publish.charts.tables import names, pass_at_k, tiers
from tests.publish.charts.test_charts import caption, texts
from touchstone.publish.charts import draw, spec
from touchstone.publish.charts.rendering import svg

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
    shown = texts(svg(draw("leaderboard", table)))
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
