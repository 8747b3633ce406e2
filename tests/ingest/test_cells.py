"""Cells of text to typed values: each rule's readings, its refusals and the words for them."""

import polars as pl
import pytest

from touchstone.ingest import cells
from touchstone.vocabulary import MAX_AMOUNT, MAX_COUNT


def read(rule: cells.Rule, *texts: str | None) -> list[object]:
    """The values of the cells, or "refused"."""
    column = pl.Series(rule.column, texts, pl.String)
    table = pl.DataFrame(column).select(value=rule.value, refused=rule.refused)
    return ["refused" if refused else value for value, refused in table.iter_rows()]


@pytest.mark.parametrize("rule", [cells.score("x"), cells.amount("x"), cells.count("x")])
def test_what_is_no_finite_number_is_refused_and_what_is_empty_is_null(rule: cells.Rule) -> None:
    assert read(rule, "nan", "inf", "-inf", "1,5", "0x10", "one") == ["refused"] * 6
    assert read(rule, None, "", " ") == [None] * 3
    assert read(rule, " 12 ") == [12]


def test_only_scores_may_be_negative() -> None:
    assert read(cells.score("x"), "-0.5", "1e-3") == [-0.5, 0.001]
    assert read(cells.amount("x"), "-0.5", "0", "0.25") == ["refused", 0, 0.25]
    assert "of at least 0" in cells.amount("x").explain("-0.5")


def test_amounts_and_counts_have_a_limit() -> None:
    assert read(cells.amount("x"), str(MAX_AMOUNT), str(2 * MAX_AMOUNT)) == [MAX_AMOUNT, "refused"]
    assert read(cells.count("x"), "12.0", "12.5", str(2 * MAX_COUNT)) == [12, "refused", "refused"]
    assert "is too large" in cells.count("x").explain(str(2 * MAX_COUNT))
    assert "is not a whole number" in cells.count("x").explain("12.5")


def test_moments_are_seconds_since_1970_in_utc_unless_an_offset_says_otherwise() -> None:
    rule = cells.timestamp("at")
    assert read(rule, "90", "1970-01-01T00:01:30Z", "1970-01-01 00:01:30", "1970-01-01T01:01:30.5+01:00") == [
        90, 90, 90, 90.5,
    ]  # fmt: skip
    assert read(rule, None, "yesterday", "nan", "1970-13-01T00:00:00") == [None, "refused", "refused", "refused"]
