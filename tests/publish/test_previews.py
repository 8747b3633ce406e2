"""The first rows of tables as pages show them."""

import math

import polars as pl
import pytest

from touchstone.publish import previews
from touchstone.publish.previews import leaderboard, preview
from touchstone.tables import TABLES


def figures(*rows: tuple[str, str, int, float | None, float | None, float | None]) -> pl.DataFrame:
    names = ["model", "tier", "k", "pass_at_k", "ci_low", "ci_high"]
    types = {"pass_at_k": pl.Float64, "ci_low": pl.Float64, "ci_high": pl.Float64}
    frame = pl.DataFrame(rows, schema=names, schema_overrides=types, orient="row")
    return frame.with_columns(attempted=3, problems=4)


def test_the_leaderboard_has_the_best_first_and_what_is_unknown_last() -> None:
    board = leaderboard(
        figures(
            ("b", "T0", 5, 1.0, 1.0, 1.0),
            ("a", "T0", 5, None, None, None),
            ("a", "T0", 1, 1 / 3, 0.1, 0.6),
            ("b", "T0", 1, 2 / 3, None, 0.9),
            ("c", "T0", 1, None, None, None),
            ("c", "T0", 5, None, None, None),
        )
    )
    assert board.columns == ["model", "tier", "pass@1", "pass@5", "attempted"]
    assert board.rows == [
        ["b", "T0", "0.667 […, 0.900]", "1.000 [1.000, 1.000]", "3/4"],
        ["a", "T0", "0.333 [0.100, 0.600]", "-", "3/4"],
        ["c", "T0", "-", "-", "3/4"],
    ]


def test_a_long_leaderboard_is_cut_and_says_so() -> None:
    many = figures(*((f"m{number:03}", "T0", 1, number / 300, None, None) for number in range(300)))
    board = leaderboard(many)
    assert (len(board.rows), board.total, board.is_cut) == (200, 300, True)
    assert [board.rows[0][0], board.rows[-1][0]] == ["m299", "m100"]


def test_no_figures_at_all() -> None:
    assert leaderboard(figures().clear()).rows == []
    assert preview(figures().clear().lazy(), "pass_at_k").rows == []


def test_cells_are_short_text_without_control_characters() -> None:
    row = {"text": "a\nb\u202e\x1b[31m", "long": "x" * 100, "flag": True, "none": None, "cost": math.inf, "n": 12345}
    shown = preview(pl.LazyFrame([row]))
    assert shown.rows == [["a b\\u202e\\x1b[31m", "x" * 79 + "…", "true", "-", "inf", "12345"]]
    assert preview(pl.LazyFrame({"a\u202eb": [1]})).columns == ["a\\u202eb"]


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
