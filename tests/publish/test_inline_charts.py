"""Charts as pictures inside Markdown."""

import base64
import re
from xml.etree import ElementTree

import polars as pl
import pytest

from tests.publish.charts.tables import HOSTILE, TABLE_OF, model_comparison, names, pass_at_k
from touchstone.publish import inline_charts
from touchstone.publish.charts import CHARTS
from touchstone.publish.inline_charts import INLINE, inline_chart
from touchstone.tables import TABLES

ALL = pytest.mark.parametrize("table", INLINE)


def drawn(table: str, frame: pl.DataFrame) -> ElementTree.Element:
    """The picture of a table, which is well-formed XML."""
    found = inline_chart(table, frame) or ""
    start, _, data = found.partition("](data:image/svg+xml;base64,")
    assert start.startswith("!["), found
    return ElementTree.fromstring(base64.b64decode(data.removesuffix(")")))


def texts(picture: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in picture.iter("{http://www.w3.org/2000/svg}text")]


def marks(picture: ElementTree.Element) -> str:
    """All paths of the picture."""
    return " ".join(each.get("d", "") for each in picture.iter("{http://www.w3.org/2000/svg}path"))


def test_every_chart_belongs_to_a_table_that_is_made() -> None:
    assert {table: CHARTS[name].table for table, name in INLINE.items()} == {table: table for table in INLINE}
    assert INLINE.keys() <= TABLES.keys()


@ALL
def test_the_picture_has_the_title_the_caption_and_the_names(table: str) -> None:
    picture = drawn(table, TABLE_OF[INLINE[table]](["model-a", "model-b", "model-c"]))
    words = " ".join(texts(picture))
    assert CHARTS[INLINE[table]].title in words and "n = " in words and "nterval" in words
    assert set(re.findall(r"model-\w", words)) == {"model-a", "model-b", "model-c"}
    assert (picture.get("aria-label") or "").startswith(CHARTS[INLINE[table]].title)
    assert "nan" not in marks(picture) and len(marks(picture)) > 100


@ALL
@pytest.mark.parametrize("models", [[HOSTILE, "=cmd()", "日本語"], names(134)], ids=["hostile", "many"])
def test_hostile_names_are_text_and_many_models_fit(table: str, models: list[str]) -> None:
    picture = drawn(table, TABLE_OF[INLINE[table]](models))
    assert not {"\x1b", "\u202e"} & set("".join(texts(picture)))
    assert not list(picture.iter("{http://www.w3.org/2000/svg}script"))


def test_figures_stand_where_the_axis_says() -> None:
    """The bars of three models end at gridlines of the axis: 0, 0.5 and 1."""
    ends = {"pass_at_k": [0.0, 0.5, 1.0], "ci_low": [0.0, 0.5, 0.5], "ci_high": [0.5, 0.5, 1.0]}
    table = pass_at_k(["none", "half", "all"], [1]).with_columns(pl.Series(*each) for each in ends.items())
    picture = drawn("pass_at_k", table)
    paths = [each.get("d", "") for each in picture.iter("{http://www.w3.org/2000/svg}path")]
    grid = [float(place) for place in re.findall(r"M([\d.]+),0v", paths[0])]
    ticks = dict(zip([text for text in texts(picture) if re.fullmatch(r"\d\.\d\d", text)], grid, strict=True))
    bars = [(float(low), float(high)) for low, high in re.findall(r"M([\d.]+),[\d.]+L([\d.]+),", paths[2])]
    want = [(0.5, 1.0), (0.5, 0.5), (0.0, 0.5)]
    assert bars == [(ticks[f"{low:.2f}"], ticks[f"{high:.2f}"]) for low, high in want], "the best model is on top"


def test_what_is_undefined_or_without_an_interval_can_be_told() -> None:
    table = pass_at_k(["a", "b", "c"], [1]).with_columns(
        pass_at_k=pl.Series([0.5, None, 0.7]), ci_low=pl.Series([None, None, 0.6]), ci_high=pl.Series([None, None, 0.8])
    )
    picture = drawn("pass_at_k", table)
    assert "undefined" in texts(picture)
    fills = [each.get("fill") for each in picture.iter("{http://www.w3.org/2000/svg}path")]
    assert fills.count("#FFFFFF") == 1, "an open point"


def test_the_best_of_many_models_are_shown_and_the_rest_is_counted() -> None:
    words = " ".join(texts(drawn("pass_at_k", pass_at_k(names(134)))))
    assert len(set(re.findall(r"model-\d+", words))) == 30 and "Shown: the first 30 of 134 models" in words
    cells = marks(drawn("model_comparison", model_comparison(names(134))))
    assert cells.count("h24v24h-24z") == 20 * 19


def test_a_table_without_rows_has_no_picture() -> None:
    assert inline_chart("pass_at_k", pl.DataFrame(schema=TABLES["pass_at_k"].dtypes)) is None


def test_a_picture_that_fails_or_is_too_large_leaves_a_note() -> None:
    assert (inline_chart("pass_at_k", None) or "").startswith("not drawn: ")  # type: ignore[arg-type]
    assert inline_charts._picture("A", "x" * 60_000, "touchstone chart a") == "larger than 60 kB; touchstone chart a"


def test_a_table_that_takes_long_to_draw_is_not_drawn() -> None:
    pairs = pl.DataFrame({"model_a": ["a"] * 50_001})
    assert inline_chart("model_comparison", pairs) == "larger than 60 kB; touchstone chart pairwise_verdicts"


def test_no_control_character_is_in_a_picture() -> None:
    picture = inline_charts._picture("A [b]", "a\x1b\u202eb", "")
    title, _, data = picture.partition("](data:image/svg+xml;base64,")
    assert (title, base64.b64decode(data.removesuffix(")")).decode()) == (r"![A \[b\]", "a\ufffd\ufffdb")
