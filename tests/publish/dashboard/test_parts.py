"""What the dashboard shows beside figures: attempts, comparisons, queries, files, and foreign text as text."""

import math
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import polars as pl
import pytest

from tests.conftest import Folder, nightly_but, query_here
from tests.pipelines.test_run import evaluate
from tests.publish.dashboard.conftest import ADDRESS, FORMULA, MARKUP, RIGHT_TO_LEFT, write_evaluation
from touchstone.errors import TouchstoneError
from touchstone.publish.attempt_detail import AttemptDetail
from touchstone.publish.dashboard import pages, texts
from touchstone.publish.dashboard.lists import Side, attempt_list, opened_attempt, problem_list, side_by_side
from touchstone.publish.dashboard.pages import (
    attempt_page,
    csv_bytes,
    example_queries,
    parquet_bytes,
    run_sql,
    shown_rows,
)
from touchstone.publish.dashboard.selection import Filters, RunTables, Selection, run_folders

TERMINAL = "\x1b[31mred"
HOSTILE = (MARKUP, FORMULA, RIGHT_TO_LEFT, ADDRESS, TERMINAL, "<script>alert(1)</script>", '" onmouseover="alert(1)')


@pytest.mark.parametrize("name", HOSTILE)
def test_foreign_text_is_never_markup_a_link_or_a_control_character(name: str) -> None:
    missing = dict.fromkeys(("diagnostics_before", "tests"), name)
    detail = SimpleNamespace(
        **dict.fromkeys(
            ("model", "tier", "oid", "iteration_id", "suite", "status", "diff", "fix", "raw_response"), name
        ),
        **dict.fromkeys(("diagnostics_after", "classification", "run_id", "validator", "runner", "fidelity"), name),
        **dict.fromkeys(("input_tokens", "output_tokens", "cost_usd", "duration_seconds", "latency_ms", "sandbox")),
        **dict.fromkeys(("validator_version", "validation_seconds", "fix_sha", "diagnostics_before")),
        passed=None,
        missing=missing,
        flags=[dict.fromkeys(("source", "rule", "severity", "place", "evidence"), name)],
        tests=(SimpleNamespace(test=name, status="failed", message=f"{name}\n and more"),),
    )
    page = attempt_page(detail)
    assert " and more</td>" in page and r"\n" not in page
    assert "<img" not in page and "<script" not in page and "\x1b" not in page and "\u202e" not in page
    assert ' onmouseover="' not in page and "<a " not in page


def test_a_diff_marks_its_lines_and_what_is_missing_says_why() -> None:
    detail = AttemptDetail("m", "T0", "a", "1", "s", "failed", False, diff="+a\n-b", missing={"fix": "lost"})
    page = attempt_page(detail)
    assert '<span class="added">+a</span><span class="removed">-b</span>' in page
    assert "Not available: lost." in page and "Not available: no test ran." in page
    assert texts.cell(float("nan")) == texts.cell(None) == "—"


def test_files_are_safe_in_a_spreadsheet_and_exact_in_parquet(run: RunTables, tmp_path: Path) -> None:
    rows = problem_list(Selection(run), "m", "T0")
    assert b"\n'=cmd()," in csv_bytes(rows)
    (tmp_path / "rows.parquet").write_bytes(parquet_bytes(rows))
    assert pl.read_parquet(tmp_path / "rows.parquet").equals(rows)


def test_a_query_answers_as_on_the_command_line(run: RunTables, tmp_path: Path) -> None:
    result = run_sql(run, "SELECT '=1' AS a, 2 AS a, [1, 2] AS l")
    assert csv_bytes(result) == b'a,a_1,l\n\'=1,2,"[1, 2]"\n'
    assert shown_rows(result).rows() == [("=1", "2", "[1, 2]")]
    (tmp_path / "rows.parquet").write_bytes(parquet_bytes(result))
    assert pl.read_parquet(tmp_path / "rows.parquet")["l"].to_list() == [[1, 2]]


REFUSED = ["DROP VIEW attempts", "SELECT * FROM read_text('/etc/hostname')", "SELECT 1; SELECT 2"]


@pytest.mark.parametrize("sql", nightly_but(REFUSED[:1], REFUSED))
def test_what_is_no_single_select_over_the_tables_is_refused_in_one_line(run: RunTables, sql: str) -> None:
    with patch.object(pages, "run_query", query_here), pytest.raises(TouchstoneError, match=r"^[^\n]+$"):
        run_sql(run, sql)


def test_the_example_queries_are_those_of_the_page(run: RunTables) -> None:
    examples = example_queries()
    assert {"Leaderboard", "Hardest problems", "What routing saves"} < set(examples) and len(examples) > 15
    assert all(sql.startswith("SELECT") for sql in examples.values())


def test_attempts_of_a_problem_and_those_of_a_snapshot(run: RunTables, filterable: Folder) -> None:
    frozen = RunTables(list(run_folders(filterable.output).values())[1])
    for each in (run, frozen):
        rows = attempt_list(Selection(each), "m", "T0", MARKUP)
        assert rows["iteration_id"].to_list() == ["1", "2", "3", "4"]
        assert not {"model", "tier", "oid", "run_id"} & set(rows.columns), "said in the heading, or empty"
    with pytest.raises(TouchstoneError, match="choose the published run"):
        opened_attempt(Selection(frozen), "m", "T0", MARKUP, "1")


def test_two_models_side_by_side(run: RunTables) -> None:
    found = side_by_side(Side(run, "m"), Side(run, "one-suite"), Filters(suites=("web",), tiers=("T0",)))
    assert sum(found.counts.values()) == 8
    assert set(found.cases["kind"]) <= {"regression", "improvement"} and found.cases["delta"].is_sorted()
    assert "current" in found.verdicts[0]


@pytest.mark.nightly
def test_two_runs_side_by_side(run: RunTables, tmp_path: Path) -> None:
    changed = write_evaluation(tmp_path)
    fixes = changed.root / "fixes" / "m_fixes.csv"
    fixes.write_text(fixes.read_text().replace('"True"', '"False"'))
    evaluate(changed)
    found = side_by_side(Side(run), Side(RunTables(changed.output)), Filters())
    assert set(found.cases["model"]) == {"m"} and found.counts["regression"] > 10
    assert any("worse" in line for line in found.verdicts)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [("m", "m", "both sides are the same"), (None, "m", "choose a model on both sides"), ("m", "one-suite", "nothing")],
)
def test_sides_that_cannot_be_compared_say_why(run: RunTables, before: str | None, after: str, reason: str) -> None:
    with pytest.raises(TouchstoneError, match=reason):
        side_by_side(Side(run, before), Side(run, after), Filters(column="difficulty", values=("none",)))


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pl.Series("pass_at_1", [0.4, 0.4567, 1.0, None]), ["0.400", "0.457", "1.000", "—"]),
        (pl.Series("total_cost_usd", [0.4, 0.00012, math.inf]), ["$0.400000", "$0.000120", "∞"]),
        (pl.Series("avg_latency_ms", [1234.5, 88.0]), ["1,234.5", "88.0"]),
        (pl.Series("p_value", [0.25, 0.00001, math.nan]), ["0.250", "1e-05", "—"]),
        (pl.Series("n", [1200, 3]), ["1,200", "3"]),
    ],
    ids=lambda value: value.name if isinstance(value, pl.Series) else "",
)
def test_the_figures_of_a_column_have_equally_many_decimals(column: pl.Series, shown: list[str]) -> None:
    assert [texts.column_cell(column)(value) for value in column] == shown
