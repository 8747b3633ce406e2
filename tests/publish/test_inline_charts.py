"""Charts as pictures inside Markdown."""

import base64

import polars as pl

from touchstone.publish import inline_charts
from touchstone.publish.charts import CHARTS
from touchstone.publish.inline_charts import INLINE, inline_chart
from touchstone.tables import TABLES


def test_every_chart_belongs_to_a_table_that_is_made() -> None:
    assert {table: CHARTS[name].table for table, name in INLINE.items()} == {table: table for table in INLINE}
    assert INLINE.keys() <= TABLES.keys()


def test_a_table_without_rows_has_no_picture() -> None:
    assert inline_chart("pass_at_k", pl.DataFrame(schema=TABLES["pass_at_k"].dtypes)) is None


def test_a_picture_that_fails_or_is_too_large_leaves_a_note() -> None:
    assert (inline_chart("pass_at_k", None) or "").startswith("not drawn: ")  # type: ignore[arg-type]
    assert inline_charts._picture("A", "x" * 60_000, "touchstone chart a") == "larger than 60 kB; touchstone chart a"


def test_a_chart_that_would_be_too_large_is_not_drawn() -> None:
    pairs = pl.DataFrame({"model_a": ["a"] * 8_911})
    assert inline_chart("model_comparison", pairs) == "larger than 60 kB; touchstone chart pairwise_verdicts"


def test_no_control_character_is_in_a_picture() -> None:
    picture = inline_charts._picture("A [b]", "a\x1b\u202eb", "")
    title, _, data = picture.partition("](data:image/svg+xml;base64,")
    assert (title, base64.b64decode(data.removesuffix(")")).decode()) == (r"![A \[b\]", "a\ufffd\ufffdb")
