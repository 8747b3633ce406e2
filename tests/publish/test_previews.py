"""The first rows of tables as pages show them."""

import math

import polars as pl
import pytest

from touchstone.publish import previews
from touchstone.publish.previews import preview
from touchstone.tables import TABLES


def test_no_figures_at_all() -> None:
    assert preview(pl.LazyFrame(schema=TABLES["pass_at_k"].dtypes), "pass_at_k").rows == []


def test_cells_are_short_text_without_control_characters() -> None:
    row = {"text": "a\nb\u202e\x1b[31m", "long": "x" * 100, "flag": True, "cost": math.inf, "n": 12345}
    shown = preview(pl.LazyFrame([row]))
    assert shown.rows == [["a b\\u202e\\x1b[31m", "x" * 79 + "…", "true", "inf", "12345"]]
    assert preview(pl.LazyFrame({"a\u202eb": [1]})).columns == ["a\\u202eb"]


def test_columns_without_any_value_are_left_out() -> None:
    shown = preview(pl.LazyFrame({"model": ["m", "n"], "empty": [None, None], "some": [None, 1]}))
    assert (shown.columns, shown.rows) == (["model", "some"], [["m", "-"], ["n", "1"]])


def test_as_many_rows_as_fit_are_shown_and_all_of_them_where_fewer_than_two_do() -> None:
    shown = preview(pl.LazyFrame({"n": [1, 2, 3]}))
    whole = "| n |\n| --- |\n| 1 |\n| 2 |\n| 3 |"
    assert shown.markdown() == shown.markdown(len(whole) + 1) == whole
    assert shown.markdown(len(whole)) == whole.removesuffix("\n| 3 |")
    assert shown.markdown(20) == whole


def test_an_interval_stands_with_its_figure_and_no_other() -> None:
    row = {"attempts": 3, "ci_low": 0.1, "ci_high": 0.2, "rate": 0.5, "rate_ci_low": None, "rate_ci_high": 1.0}
    shown = preview(pl.LazyFrame([row], schema_overrides={"rate_ci_low": pl.Float64}))
    assert dict(zip(shown.columns, shown.rows[0], strict=True)) == {
        "attempts": "3",
        "ci_low": "0.1",
        "ci_high": "0.2",
        "rate": "0.5 […, 1]",
    }


@pytest.mark.parametrize("table", sorted(previews._ORDER.keys() & TABLES.keys()))
def test_tables_are_sorted_by_columns_that_they_have(table: str) -> None:
    columns = TABLES[table].fields
    assert [key for key in previews._ORDER[table] if key.removeprefix("-") not in columns] == []
