"""pass@1 in slices: each is a small benchmark of its own, and together they are the whole."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.config import IntervalSettings, SliceSettings
from touchstone.ingest.slice_values import problem_slices
from touchstone.metrics.checks import slices_add_up
from touchstone.metrics.pass_at_k import pass_at_k, problem_pass_at_k
from touchstone.metrics.slices import slices
from touchstone.tables import TABLES

SETTINGS = IntervalSettings(replicates=200)
NO_SOURCES = pl.LazyFrame(schema=TABLES["sources"].dtypes)
Outcomes = Sequence[tuple[str, str, str, Sequence[bool | None]]]


def problems(rows: Mapping[str, Mapping[str, str | None]]) -> pl.DataFrame:
    """Problems with any columns by oid."""
    names = {"cluster", "only_tier", *(name for row in rows.values() for name in row)}
    return pl.DataFrame(
        {"oid": list(rows), **{name: [row.get(name) for row in rows.values()] for name in sorted(names)}},
        schema_overrides=dict.fromkeys(names, pl.String),
    )


def tables(outcomes: Outcomes, listed: pl.DataFrame, *configured: SliceSettings) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables `slices` and `pass_at_k`, from the outcomes by model, tier and problem."""
    rows = [
        {"model": model, "tier": tier, "oid": oid, "passed": passed}
        for model, tier, oid, attempts in outcomes
        for passed in attempts
    ]
    schema = {"model": pl.String, "tier": pl.String, "oid": pl.String, "passed": pl.Boolean}
    by_problem = problem_pass_at_k(pl.LazyFrame(rows, schema=schema), [1])
    members = problem_slices(listed, configured).lazy()
    whole = pass_at_k(by_problem, listed.lazy(), NO_SOURCES, [1], SETTINGS).collect()
    return slices(by_problem, listed.lazy(), members, SETTINGS).collect(), whole


def row(table: pl.DataFrame, **key: str) -> dict[str, Any]:
    return table.row(by_predicate=pl.all_horizontal(pl.col(name) == value for name, value in key.items()), named=True)


DIFFICULTY = SliceSettings(column="difficulty")
LISTED = problems(
    {
        "a": {"difficulty": "easy"},
        "b": {"difficulty": "easy"},
        "c": {"difficulty": "hard"},
        "d": {"difficulty": None},
        "e": {"difficulty": "hard"},
    }
)


def test_a_worked_example() -> None:
    outcomes = [("m", "T0", "a", [True, True]), ("m", "T0", "b", [True, False]), ("m", "T0", "c", [False, None])]
    table, _ = tables(outcomes, LISTED, DIFFICULTY)
    assert table["value"].to_list() == ["easy", "hard", "(missing)"]
    easy, hard, missing = table.iter_rows(named=True)
    assert (easy["problems"], easy["attempted"], easy["attempts"], easy["pass_at_1"]) == (2, 2, 4, 0.75)
    assert (hard["problems"], hard["attempted"], hard["attempts"], hard["pass_at_1"]) == (2, 1, 1, 0.0)
    assert hard["ci_method"] == "wilson" and hard["ci_low"] == 0 and hard["ci_high"] > 0.7, "one problem says little"
    assert (missing["problems"], missing["attempted"], missing["pass_at_1"]) == (1, 0, None), "never dropped"
    assert (missing["ci_low"], missing["ci_high"], missing["ci_method"], missing["ci_units"]) == (None, None, None, 0)


def test_no_slices_make_no_rows() -> None:
    assert tables([("m", "T0", "a", [True])], LISTED)[0].is_empty()


def test_a_slice_of_everything_is_the_whole() -> None:
    outcomes = [(m, "T0", oid, [n % 3 > 0, n % 2 > 0]) for m in "mn" for n, oid in enumerate("abcde")]
    table, whole = tables(outcomes, LISTED.with_columns(all=pl.lit("yes")), SliceSettings(column="all"))
    same = ["model", "tier", "problems", "attempted", "ci_low", "ci_high", "ci_method", "ci_units"]
    assert table.select(*same, "pass_at_1").rows() == whole.select(*same, "pass_at_k").rows()


def test_clusters_within_a_slice_are_units() -> None:
    listed = problems(
        {f"p{n}": {"cluster": f"c{n % 3}" if n < 9 else None, "half": "low" if n < 9 else "high"} for n in range(18)}
    )
    outcomes = [("m", "T0", f"p{n}", [n % 5 > 0]) for n in range(18)]
    table, _ = tables(outcomes, listed, SliceSettings(column="half"))
    low, high = row(table, value="low"), row(table, value="high")
    assert (low["ci_units"], low["ci_method"]) == (3, "wilson-t")
    assert (high["ci_units"], high["ci_method"]) == (9, "wilson")


def test_problems_of_one_tier_count_for_that_tier() -> None:
    listed = problems({"a": {"x": "v", "only_tier": "T1"}, "b": {"x": "v"}})
    outcomes = [("m", "T0", "b", [True]), ("m", "T1", "a", [True]), ("m", "T1", "b", [False])]
    table, whole = tables(outcomes, listed, SliceSettings(column="x"))
    assert table.select("tier", "problems").rows() == [("T0", 1), ("T1", 2)]
    assert slices_add_up(table.lazy(), whole.lazy()).passed


def test_each_model_is_cut_at_its_own_date_and_one_without_a_cutoff_is_left_out() -> None:
    listed = problems({"a": {"day": "2024-06-01"}, "b": {"day": "2025-06-01"}, "c": {}})
    cut = SliceSettings.model_validate({"column": "day", "cutoff": {"new": "2026-01-01", "old": "2025-01-01"}})
    outcomes = [(model, "T0", oid, [oid == "a"]) for model in ("new", "none", "old") for oid in "abc"]
    table, whole = tables(outcomes, listed, cut)
    found = {(model, value): rate for model, value, rate in table.select("model", "value", "pass_at_1").iter_rows()}
    assert found == {
        ("new", "before cutoff"): 0.5,
        ("new", "no date"): 0.0,
        ("old", "before cutoff"): 1.0,
        ("old", "after cutoff"): 0.0,
        ("old", "no date"): 0.0,
    }
    assert slices_add_up(table.lazy(), whole.lazy()).passed


def test_problems_that_do_not_add_up_are_an_error() -> None:
    table, whole = tables([("m", "T0", "a", [True])], LISTED, DIFFICULTY)
    result = slices_add_up(table.head(2).lazy(), whole.lazy())
    assert not result.passed and result.error and result.message == "the problems of 1 slice do not add up"


@st.composite
def evaluations(draw: st.DrawFn) -> tuple[Outcomes, pl.DataFrame]:
    oids = [f"p{n}" for n in range(draw(st.integers(1, 8)))]
    value, attempts = st.sampled_from(["x", "y", None]), st.lists(st.sampled_from([True, False, None]), max_size=3)
    listed = problems({oid: {"v": draw(value), "cluster": draw(st.sampled_from(["c", None]))} for oid in oids})
    return [(model, "T0", oid, draw(attempts)) for model in "mn" for oid in oids], listed


@given(evaluations())
def test_every_figure_is_that_of_its_problems_alone(made: tuple[Outcomes, pl.DataFrame]) -> None:
    outcomes, listed = made
    table, whole = tables(outcomes, listed, SliceSettings(column="v"))
    for found in table.iter_rows(named=True):
        value = None if found["value"] == "(missing)" else found["value"]
        inside = listed.filter(pl.col("v").eq_missing(pl.lit(value, pl.String)))
        own = [one for one in outcomes if one[0] == found["model"] and one[2] in inside["oid"]]
        decided = [[passed for passed in attempts if passed is not None] for *_, attempts in own]
        rates = [sum(each) / len(each) for each in decided if each]
        assert found["problems"] == inside.height
        assert found["attempts"] == sum(map(len, decided)) and found["attempted"] == len(rates)
        assert found["pass_at_1"] == (pytest.approx(sum(rates) / len(rates)) if rates else None)
        assert (found["ci_low"] is None) == (not rates) and found["ci_units"] <= len(rates)
    assert slices_add_up(table.lazy(), whole.lazy()).passed
