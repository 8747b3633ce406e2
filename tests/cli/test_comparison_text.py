"""The report of `touchstone compare` as text: what it says, at any width, and that no name can steer a terminal."""

import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from tests.comparison.test_report import EVERYTHING, SAME, SCHEMA, Row, comparison, row
from touchstone.cli.compare import comparison_text, show_comparison
from touchstone.comparison.report import ComparisonReport


def drawn(report: ComparisonReport, width: int, colour: bool = False) -> str:
    out = io.StringIO()
    show_comparison(report, Console(file=out, width=width, force_terminal=colour, highlight=False))
    return out.getvalue()


def columns_of(seen: str) -> list[str]:
    """The cells of each column of the first table, put together from the lines that they were wrapped onto."""
    lines = [line.strip("│").split("│") for line in seen.partition("└")[0].splitlines() if line.startswith("│")]
    return ["".join(cell.strip() for cell in column) for column in zip(*lines, strict=True)]


def test_text_in_full() -> None:
    assert comparison_text(EVERYTHING) == (
        """It got worse.
1 regression (1.8 expected by chance alone), 1 improvement, 1 unchanged, 1 new, 1 removed, 1 lost, 1 unscored
old → new, best score, threshold 0.05
1 case lost: judged in the baseline, no decided attempt now

Regressions
┏━━━━━━━┳━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━┓
┃ case  ┃ model ┃ baseline ┃ current ┃  delta ┃
┡━━━━━━━╇━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━┩
│ worse │ m     │    1.000 │   0.667 │ -0.333 │
└───────┴───────┴──────────┴─────────┴────────┘

Lost cases
┏━━━━━━┳━━━━━━━┳━━━━━━━━━━┓
┃ case ┃ model ┃ baseline ┃
┡━━━━━━╇━━━━━━━╇━━━━━━━━━━┩
│ lost │ m     │    0.700 │
└──────┴───────┴──────────┘

Improvements
┏━━━━━━━━┳━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━┓
┃ case   ┃ model ┃ baseline ┃ current ┃  delta ┃
┡━━━━━━━━╇━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━┩
│ better │ m     │    0.000 │   0.900 │ +0.900 │
└────────┴───────┴──────────┴─────────┴────────┘

New cases
┏━━━━━━━┳━━━━━━━┳━━━━━━━━━┓
┃ case  ┃ model ┃ current ┃
┡━━━━━━━╇━━━━━━━╇━━━━━━━━━┩
│ fresh │ m     │   0.900 │
└───────┴───────┴─────────┘

Removed cases
┏━━━━━━┳━━━━━━━┳━━━━━━━━━━┓
┃ case ┃ model ┃ baseline ┃
┡━━━━━━╇━━━━━━━╇━━━━━━━━━━┩
│ gone │ m     │    0.800 │
└──────┴───────┴──────────┘
"""
    )


def test_nothing_changed() -> None:
    seen = comparison_text(comparison(SAME, verdict=()))
    assert seen == "0 regressions, 0 improvements, 1 unchanged\nold → new, best score, threshold 0.05\n"


def test_fifty_rows_and_then_how_many_more() -> None:
    fell: list[Row] = [("m", "T0", f"c{place:03}", 1.0, 0.0, -1.0, "tests", "regression") for place in range(53)]
    seen = comparison_text(comparison(*fell))
    assert "c049" in seen and "c050" not in seen
    assert seen.endswith("… and 3 more\n")


def test_long_names_wrap_and_no_column_is_left_out_at_80_columns() -> None:
    model, oid = "provider/claude-sonnet-4-5-20250929-thinking", "modules/network/vpc_endpoint_" + "x" * 60
    rows: list[Row] = [
        (model, tier, oid, 1.0, 0.0, -1.0, "outcome", "regression", "composite_score", True, 0.5)
        for tier in ("T0", "T1")
    ]
    seen = drawn(comparison(*rows), 80)
    assert "not shown" not in seen and "-1.000" in seen
    assert all(cell_len(line) <= 80 for line in seen.splitlines() if line.startswith(("│", "┃")))
    assert columns_of(seen)[:2] == [oid * 2, model * 2]


def test_colours_only_on_a_terminal() -> None:
    assert "\x1b[" not in drawn(EVERYTHING, 80)
    assert "\x1b[" in drawn(EVERYTHING, 80, colour=True)


def test_a_file_does_not_depend_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = comparison_text(EVERYTHING)
    for name, value in {"COLUMNS": "40", "FORCE_COLOR": "1", "TERM": "dumb", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    assert comparison_text(EVERYTHING) == plain


def test_names_cannot_steer_a_terminal_or_draw_markup() -> None:
    odd: Row = ("m", "T0", "a\x1b[31m[bold]b[/]\nc :smile:", 1.0, 0.0, -1.0, "tests", "regression")
    seen = comparison_text(comparison(odd))
    assert "a\\x1b[31m[bold]b[/]\\nc :smile:" in seen
    assert "\x1b" not in seen


def test_a_path_that_is_not_utf8_can_be_printed() -> None:
    odd = ComparisonReport("old\udcff", "new", 0.05, "best", EVERYTHING.cases, [])
    assert comparison_text(odd).encode()


@given(st.lists(row, max_size=8))
def test_any_names_give_printable_text(rows: list[Row]) -> None:
    seen = comparison_text(ComparisonReport("old", "new", 0.05, "mean", pl.DataFrame(rows, SCHEMA, orient="row")))
    assert all(character.isprintable() or character in "\n\u200c\u200d" for character in seen)
