"""Small charts as pictures inside Markdown, which the Dagster UI shows at once."""

import re
from urllib.parse import unquote
from xml.etree import ElementTree

import polars as pl
import pytest

from tests.publish.charts.tables import HOSTILE, TABLE_OF, names, pass_at_k
from touchstone.publish.charts import CHARTS
from touchstone.publish.previews import INLINE, inline_chart
from touchstone.tables import TABLES

ALL = pytest.mark.parametrize("table", INLINE)
SVG = "{http://www.w3.org/2000/svg}"


def drawn(table: str, frame: pl.DataFrame) -> tuple[ElementTree.Element, str]:
    """The picture of a table, which is well-formed XML, and its caption."""
    found = inline_chart(table, frame.lazy()) or ""
    assert len(found) < 1000, "the UI would hide it behind a link"
    picture, caption = re.fullmatch(r"!\[.*\]\(<data:image/svg\+xml,([^<>]*)>\)\n\n(.*)", found).groups()  # type: ignore[union-attr]
    return ElementTree.fromstring(unquote(picture)), caption


def texts(picture: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in picture.iter(f"{SVG}text")]


@ALL
def test_every_chart_belongs_to_a_table_and_names_a_larger_one_of_it(table: str) -> None:
    assert table in TABLES and CHARTS[INLINE[table].larger].table == table


@ALL
@pytest.mark.parametrize("models", [["model-a", "model-b"], [HOSTILE, "=cmd()", "日本語"], names(134)])
def test_a_picture_has_a_line_for_each_row_that_fits(table: str, models: list[str]) -> None:
    picture, caption = drawn(table, TABLE_OF[INLINE[table].larger](models))
    zero, bars, points = (path.get("d", "") for path in picture.iter(f"{SVG}path"))
    assert zero.count("M") == 1 and bars.count("M") == points.count("M") == len(texts(picture)) >= 1
    assert not {"\x1b", "\u202e"} & set("".join(texts(picture))) and not list(picture.iter(f"{SVG}script"))
    assert f"touchstone chart {INLINE[table].larger}" in caption or len(models) < 134


def test_points_and_intervals_stand_where_the_scale_says_and_the_best_is_on_top() -> None:
    ends = {"pass_at_k": [0.0, 0.5, 1.0], "ci_low": [0.0, None, 0.5], "ci_high": [0.5, None, 1.0]}
    table = pass_at_k(["none", "half", "all"], [1]).with_columns(pl.Series(*each) for each in ends.items())
    picture, caption = drawn("pass_at_k", table)
    assert caption == "pass@1, from 0 to 1"
    assert [text.split()[0] for text in texts(picture)] == ["all", "half", "none"]
    zero, bars, points = (path.get("d", "") for path in picture.iter(f"{SVG}path"))
    assert (zero, points) == ("M205 0V48", "M365 8h0M285 24h0M205 40h0")
    assert bars == "M285 8H365M285 24H285M205 40H285"


def test_what_is_undefined_is_left_out_and_an_unbounded_interval_ends_with_the_scale() -> None:
    table = pass_at_k(["a", "b"], [1]).with_columns(
        pass_at_k=pl.Series([0.5, None]), ci_high=pl.Series([float("inf"), 1.0])
    )
    picture, _ = drawn("pass_at_k", table.with_columns(ci_low=0.25))
    assert len(texts(picture)) == 1
    assert [path.get("d") for path in picture.iter(f"{SVG}path")][1] == "M285 8H365"


@pytest.mark.parametrize("table", ["pass_at_k", "problems"])
def test_a_table_without_rows_or_without_a_chart_has_no_picture(table: str) -> None:
    assert inline_chart(table, pl.LazyFrame(schema=TABLES[table].dtypes)) is None
