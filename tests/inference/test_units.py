"""From attempts to units: which attempts belong together, and sums that do not depend on the order of rows."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.config import IntervalSettings
from touchstone.inference.uncertainty import wilson
from touchstone.inference.units import join_intervals, mean_intervals, unit_sums, with_unit_ids

GROUP = ["model", "run_id"]


def attempts(*rows: tuple[str, str | None, str, float | None]) -> pl.LazyFrame:
    schema = {"model": pl.String, "run_id": pl.String, "oid": pl.String, "score": pl.Float64}
    return pl.LazyFrame(rows, schema=schema, orient="row")


def problems(clusters: dict[str, str | None]) -> pl.LazyFrame:
    return pl.LazyFrame(
        {"oid": list(clusters), "cluster": list(clusters.values())}, schema={"oid": pl.String, "cluster": pl.String}
    )


def test_a_cluster_counts_only_where_problems_share_it() -> None:
    rows = pl.LazyFrame({"oid": ["d", "c", "b", "a", "a"]})
    found = with_unit_ids(rows, problems({"a": "x", "b": "lonely", "c": "x", "d": None})).collect()
    assert found["unit"].to_list() == [3, 0, 1, 0, 0]


def test_a_problem_named_like_a_cluster_is_not_in_it() -> None:
    found = with_unit_ids(pl.LazyFrame({"oid": ["a", "b", "x"]}), problems({"a": "x", "b": "x", "x": None})).collect()
    assert found["unit"].to_list() == [0, 0, 2]


def test_a_problem_that_is_not_listed_stands_alone() -> None:
    assert with_unit_ids(pl.LazyFrame({"oid": ["b", "a"]}), problems({})).collect()["unit"].to_list() == [1, 0]


def test_sums_and_sizes_per_unit_leave_out_what_has_no_value() -> None:
    made = attempts(("m", None, "a", 1.0), ("m", None, "a", None), ("m", None, "b", 0.5), ("m", "r", "c", None))
    found = unit_sums(made, problems({"a": "x", "b": "x", "c": None}), GROUP, ["score"])
    assert found.sort("run_id").select("run_id", "score", "score_size").rows() == [(None, 1.5, 2), ("r", 0.0, 0)]


def test_intervals_stand_beside_their_group_even_without_a_run() -> None:
    made = attempts(("m", None, "a", 1.0), ("m", None, "b", 0.0), ("m", "r", "a", None))
    sums = unit_sums(made, problems({"a": None, "b": None}), GROUP, ["score"])
    table = pl.DataFrame({"model": ["m"] * 3, "run_id": [None, "r", "other"]})
    found = join_intervals(table, mean_intervals(sums, GROUP, "score", IntervalSettings(), "score_"), GROUP)
    low, high = wilson(0.5, 2, 0.95)
    assert found.rows() == [
        ("m", None, low, high, "wilson", 2),
        ("m", "r", None, None, None, 0),
        ("m", "other", None, None, None, 0),
    ]


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.floats(0, 1)), min_size=1, max_size=60).flatmap(
        lambda rows: st.tuples(st.just(rows), st.permutations(rows))
    )
)
def test_the_order_of_rows_does_not_show(orders: tuple[list[tuple[str, float]], list[tuple[str, float]]]) -> None:
    listed = problems({"a": "x", "b": None, "c": "x", "d": None, "e": "x"})
    one, other = (
        unit_sums(attempts(*(("m", None, oid, score) for oid, score in rows)), listed, GROUP, ["score"]).sort("unit")
        for rows in orders
    )
    assert one.rows() == other.rows()
    settings = IntervalSettings()
    assert (
        mean_intervals(one, GROUP, "score", settings).rows() == mean_intervals(other, GROUP, "score", settings).rows()
    )
    assert one["score"].sum() == pytest.approx(sum(score for _, score in orders[0]))
