"""Figures under filters: those that an evaluation of the chosen attempts alone would publish."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.conftest import Folder, nightly_but
from tests.pipelines.test_run import evaluate
from tests.publish.dashboard.conftest import Row, write_evaluation
from touchstone.config import load_config
from touchstone.errors import TouchstoneError
from touchstone.publish.dashboard.lists import leaderboard, problem_list, summary_line
from touchstone.publish.dashboard.selection import Filters, RunTables, Selection, open_run, run_folders

REMADE = (
    *("problem_scores", "problem_pass_at_k", "pass_at_k", "model_statistics", "problem_statistics", "suite_scores"),
    *("run_scores", "tiers", "cross_tier", "economics", "reliability_curve", "variance_split", "model_comparison"),
    *("problem_audit", "audited_leaderboard"),
)


@pytest.mark.parametrize("table", nightly_but(["pass_at_k", "run_scores", "model_comparison", "problem_audit"], REMADE))
def test_choosing_every_suite_makes_the_published_table_again(run: RunTables, table: str) -> None:
    everything = Selection(run, Filters(suites=tuple(run.suites)))
    assert_frame_equal(everything.frame(table).collect(), run.scan(table).collect(), check_exact=True)


@pytest.mark.services
@pytest.mark.parametrize(
    ("filters", "keep"),
    [
        pytest.param(
            Filters(suites=("web",)), lambda row: row["suite"] == "web", id="suite", marks=pytest.mark.nightly
        ),
        pytest.param(
            Filters(column="difficulty", values=("hard",)), lambda row: row["difficulty"] == "hard", id="slice"
        ),
    ],
)
def test_a_filter_gives_what_the_chosen_problems_alone_give(
    run: RunTables, tmp_path: Path, filters: Filters, keep: Callable[[Row], bool]
) -> None:
    folder = write_evaluation(tmp_path, keep)
    assert not evaluate(folder).failures
    alone, chosen = RunTables(folder.output), Selection(run, filters)
    for table in REMADE:
        assert_frame_equal(chosen.frame(table).collect(), alone.scan(table).collect(), check_exact=True)
    assert leaderboard(chosen).rows() == leaderboard(Selection(alone)).rows()


@pytest.mark.parametrize("filters", [Filters(suites=("web",)), Filters(suites=("<b>core</b>",), tiers=("T1",))])
def test_the_leaderboard_has_the_figures_of_the_tables_but_draws_no_sample(
    run: RunTables, filters: Filters, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("the leaderboard shows nothing that needs the bootstrap over all models")

    tables = Selection(RunTables(run.folder), filters)
    pass_at_1 = tables.frame("pass_at_k").filter(k=1).collect()
    others = [tables.frame(name).collect() for name in ("model_statistics", "economics")]
    monkeypatch.setattr("touchstone.metrics.economics.bootstrap_sums", refused)
    board = leaderboard(Selection(RunTables(run.folder), filters)).sort("model", "tier")
    for table in (pass_at_1.rename({"pass_at_k": "pass_at_1"}), *others):
        shared = [name for name in table.columns if name in board.columns and not name.startswith("ci_")]
        rows = board.join(table, on=["model", "tier"], how="semi").select(shared)
        assert_frame_equal(rows, table.select(shared), check_exact=True)
    assert_frame_equal(board.select("^ci_.*$"), pass_at_1.select("^ci_.*$").select(board.select("^ci_.*$").columns))


def test_models_and_tiers_choose_rows_and_change_no_figure(run: RunTables) -> None:
    chosen = Selection(run, Filters(models=("m",), tiers=("T1",)))
    published = run.scan("pass_at_k").filter(pl.col("model") == "m", pl.col("tier") == "T1").collect()
    assert_frame_equal(chosen.frame("pass_at_k").collect(), published)
    pairs = Selection(run, Filters(tiers=("T1",))).frame("model_comparison").collect()
    assert pairs.select("tier_a", "tier_b").unique().rows() == [("T1", "T1")]
    assert (
        pairs["pairs"].to_list()
        == run.scan("model_comparison").filter(kind="models").select("pairs").collect()["pairs"].head(1).to_list()
    )


def test_what_a_filter_leaves_without_attempts_is_undefined_and_last(run: RunTables) -> None:
    selection = Selection(run, Filters(suites=("<b>core</b>",)))
    board = leaderboard(selection)
    assert board["model"].to_list() == ["m", "m", "one-suite", "one-suite"]
    undefined = board.row(-1, named=True)
    assert (undefined["attempts"], undefined["eligible"], undefined["problems"]) == (0, 0, 8)
    assert {undefined[name] for name in ("pass_at_1", "ci_low", "ci_high", "pass_at_3", "cost_of_pass")} == {None}
    assert summary_line(selection, board) == "n = 8 problems, 64 attempts, 4 rows; 2 undefined"
    assert problem_list(selection, "one-suite", "T0").is_empty()


def test_a_slice_column_without_values_chosen_filters_nothing(run: RunTables) -> None:
    assert leaderboard(Selection(run, Filters(column="difficulty"))).equals(leaderboard(Selection(run)))


def test_a_missing_value_is_a_value_of_a_slice(run: RunTables) -> None:
    assert run.slices["cluster"] == ["shared", None]
    assert Selection(run, Filters(column="cluster", values=(None,))).frame("problems").collect().height == 12


@pytest.mark.parametrize("table", ["history", "regressions"])
def test_a_table_about_whole_runs_says_that_it_cannot_be_filtered(run: RunTables, table: str) -> None:
    with pytest.raises(TouchstoneError, match=f"'{table}' is about whole runs; clear the filters of suites"):
        Selection(run, Filters(suites=("web",))).frame(table)


def test_what_a_run_found_out_about_a_problem_holds_in_any_selection(run: RunTables) -> None:
    assert Selection(run, Filters(suites=("web",))).frame("baselines").collect().is_empty()


@pytest.mark.parametrize("table", ["outcomes", "attempts", "attempt_scores"])
def test_rows_of_attempts_follow_the_filters(run: RunTables, table: str) -> None:
    chosen = Selection(run, Filters(suites=("web",), column="difficulty", values=("easy",), tiers=("T0",)))
    found = chosen.frame(table).collect()
    assert set(found["oid"]) == {"p1", "p3", "p5", "p7"} and found.height == 32


def test_problems_come_hardest_first_with_the_column_of_the_slice(run: RunTables) -> None:
    rows = problem_list(Selection(run, Filters(column="difficulty", values=("hard",))), "m", "T0")
    assert rows.columns[:3] == ["oid", "suite", "difficulty"] and rows["pass_at_1"].is_sorted()


def test_the_settings_are_those_of_the_run(run: RunTables, filterable: Folder) -> None:
    config = load_config(filterable.config)
    for section in ("k_values", "intervals", "comparison", "scoring"):
        assert getattr(run.config, section) == getattr(config, section)


def test_a_run_is_opened_once_until_it_is_replaced(filterable: Folder, tmp_path: Path) -> None:
    assert open_run(filterable.output) is open_run(filterable.output)
    assert next(iter(run_folders(filterable.output))) == "published run" and len(run_folders(filterable.output)) == 2
    snapshot = RunTables(list(run_folders(filterable.output).values())[1])
    assert leaderboard(Selection(snapshot)).equals(leaderboard(Selection(open_run(filterable.output))))
    with pytest.raises(TouchstoneError, match="no tables here"):
        open_run(tmp_path)
