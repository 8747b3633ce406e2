"""Tables of results: declared once, shown everywhere."""

import io
from dataclasses import replace
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from assets.metadata import leaderboard_table
from tests.publish.report.results import figure, reported
from touchstone.cli.terminal_tables import UNLIMITED, SafeConsole, show_table
from touchstone.publish import result_tables
from touchstone.publish.report import report_html, report_latex, report_markdown
from touchstone.publish.report.sections import SECTIONS
from touchstone.publish.result_tables import leaderboard_of
from touchstone.tables import TABLES
from touchstone.tables.presentation import Cell, Column, ResultTable, plain_text


def figures(*rows: tuple[str, str, int, float | None, float | None, float | None]) -> pl.DataFrame:
    names = ["model", "tier", "k", "pass_at_k", "ci_low", "ci_high"]
    types = {"pass_at_k": pl.Float64, "ci_low": pl.Float64, "ci_high": pl.Float64}
    frame = pl.DataFrame(rows, schema=names, schema_overrides=types, orient="row")
    return frame.with_columns(attempted=3, problems=4, ci_method=pl.lit("wilson"))


def test_a_column_added_to_a_declaration_appears_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = reported(tmp_path, pass_at_k=[figure("m", 0.5)], settings=[])
    declared = leaderboard_of

    def with_another(*arguments: object) -> ResultTable:
        table = declared(*arguments)  # type: ignore[arg-type]
        return replace(table, columns=[*table.columns, Column("another", lambda row: Cell(f"of {row['model']}"))])

    monkeypatch.setattr("touchstone.publish.result_tables.leaderboard_of", with_another)
    out = io.StringIO()
    show_table(SafeConsole(out, width=UNLIMITED), result_tables.leaderboard(run), 10)
    board = leaderboard_table(run.scan("pass_at_k"))["leaderboard"]
    assert isinstance(board, dg.TableMetadataValue)
    shown = {
        "terminal": out.getvalue(),
        "page": report_html(tmp_path),
        "comment": report_markdown(tmp_path),
        "paper": report_latex(tmp_path),
        "prompt": plain_text(result_tables.leaderboard(run)),
        "Dagster": str(board.records),
    }
    assert [medium for medium, text in shown.items() if "another" not in text or "of m" not in text] == []


def test_the_leaderboard_has_the_best_first_and_what_is_unknown_last() -> None:
    board = leaderboard_of(
        figures(
            ("b", "T0", 5, 1.0, 1.0, 1.0),
            ("a", "T0", 5, None, None, None),
            ("a", "T0", 1, 1 / 3, 0.1, 0.6),
            ("b", "T0", 1, 2 / 3, None, 0.9),
            ("c", "T0", 1, None, None, None),
            ("c", "T0", 5, None, None, None),
        )
    )
    assert plain_text(board).splitlines() == [
        "model  tier  pass@1                pass@5                attempted  CI method",
        "b      T0    0.667 […, 0.900]      1.000 [1.000, 1.000]  3/4        wilson",
        "a      T0    0.333 [0.100, 0.600]  -                     3/4        wilson",
        "c      T0    -                     -                     3/4        wilson",
    ]
    assert leaderboard_of(figures().clear()).cells() == []


def test_a_long_leaderboard_is_cut_in_the_ui_and_says_so() -> None:
    many = figures(*((f"m{number:03}", "T0", 1, number / 300, None, None) for number in range(300)))
    shown = leaderboard_table(many.lazy())
    assert shown["leaderboard_rows"] == "the best 200 of 300"
    assert [shown["leaderboard"].records[place].data["model"] for place in (0, -1)] == ["m299", "m100"]


def test_every_table_can_be_drawn_from_results_without_rows(tmp_path: Path) -> None:
    run = reported(tmp_path, **{name: [] for name in TABLES})
    for declare in (table for section in SECTIONS for table in section.declared):
        assert declare(run).page_rows == []


def test_tables_of_problems_hold_the_rows_that_are_shown_and_count_the_others(tmp_path: Path) -> None:
    rows = [{"oid": oid, "mean_pass_rate": rate} for oid, rate in (("a", 0.5), ("b", None), ("c", 0.0), ("d", 0.5))]
    audit = [{"tier": "T0", "oid": each["oid"], "verdict": "saturated"} for each in rows]
    problems = [{"oid": each["oid"], "suite": "s"} for each in rows]
    tables = {"problem_frontier": rows, "problem_audit": audit, "problems": problems}
    run = reported(tmp_path, pass_at_k=[figure("m", 0.5)], settings=[], **tables)
    found = result_tables.problems(run, most=3)
    assert (found.rows["oid"].to_list(), found.total) == (["c", "a", "d"], 4)  # type: ignore[call-overload]
    audited = result_tables.audited_problems(run, most=1)
    assert (len(audited.rows), audited.total) == (1, 4)
