"""CSV files: the summary with the interval of every figure, and two files per model, when they are written."""

from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Folder, copy_of
from tests.pipelines.test_run import evaluate
from touchstone.errors import TouchstoneError
from touchstone.publish.csv_files import summary, write_model_csvs, write_summary
from touchstone.storage.store import Store
from touchstone.tables import TABLES

HEADER = "oid,iteration_id,plausible_fix\n"


def csv_names(folder: Folder) -> list[str]:
    return sorted(path.name for path in (folder.output / "csv").glob("*"))


@pytest.fixture
def evaluated(finished_pair: Folder, tmp_path: Path) -> Folder:
    """The finished run of two models, to change."""
    return copy_of(finished_pair, tmp_path / "evaluated")


def test_a_run_writes_outcomes_and_pass_at_k_of_every_model(evaluated: Folder) -> None:
    assert csv_names(evaluated) == ["m_outcomes.csv", "m_pass_at_k.csv", "n_outcomes.csv", "n_pass_at_k.csv"]
    outcomes = pl.read_csv(evaluated.output / "csv" / "m_outcomes.csv")
    assert outcomes.select("oid", "iteration_id", "plausible_fix", "status").rows() == [
        ("a", 1, True, "passed"),
        ("a", 2, False, "failed"),
        ("b", 1, False, "failed"),
        ("b", 2, False, "failed"),
    ]
    figures = (evaluated.output / "csv" / "m_pass_at_k.csv").read_text().splitlines()
    summary = (evaluated.output / "summary_pass_at_k.csv").read_text().splitlines()
    assert figures == [summary[0], summary[1]]
    assert figures[0].startswith("LLM,pass@1,pass@2,")


def test_text_that_a_spreadsheet_would_run_is_quoted_and_an_open_outcome_is_empty(evaluated: Folder) -> None:
    lines = (evaluated.output / "csv" / "n_outcomes.csv").read_text().splitlines()
    assert [line.split(",")[:4] for line in lines[1:]] == [["a", "'-1", "T0", "true"], ["b", "2", "T0", ""]]


@pytest.mark.nightly
def test_outcomes_can_be_evaluated_again(evaluated: Folder, tmp_path: Path) -> None:
    again = Folder(tmp_path / "again")
    again.problems("oid,filename\na,a.tf\nb,b.tf\n")
    again.fixes("m", (evaluated.output / "csv" / "m_outcomes.csv").read_bytes())
    again.configure()
    assert evaluate(again).exit_code == 0
    first, second = (pl.read_parquet(each.output / "tables" / "pass_at_k" / "*.parquet") for each in (evaluated, again))
    assert second.equals(first.filter(model="m"))


@pytest.mark.nightly
def test_files_of_a_model_that_is_gone_are_removed_and_unchanged_ones_are_not_written_again(evaluated: Folder) -> None:
    kept = (evaluated.output / ".store" / "draft" / "csv" / "m_outcomes.csv").stat().st_ino
    (evaluated.root / "fixes" / "n_fixes.csv").unlink()
    assert evaluate(evaluated).exit_code == 0
    assert csv_names(evaluated) == ["m_outcomes.csv", "m_pass_at_k.csv"]
    assert (evaluated.output / "csv" / "m_outcomes.csv").stat().st_ino == kept, "linked to the draft, not copied"


def test_auto_writes_nothing_beyond_its_limit_and_true_does(evaluated: Folder) -> None:
    store = Store(evaluated.output)
    assert len(write_model_csvs(store, "auto", max_rows=6)) == 4
    assert write_model_csvs(store, "auto", max_rows=5) == []
    assert list((store.draft / "csv").glob("*")) == []
    assert len(write_model_csvs(store, True, max_rows=5)) == 4


@pytest.mark.services
def test_switched_off_the_last_ones_go_and_a_folder_of_that_name_that_is_not_ours_is_left_alone(
    evaluated: Folder,
) -> None:
    evaluated.configure(publish={"csv": False})
    assert evaluate(evaluated).exit_code == 0
    assert not (evaluated.output / "csv").exists() and not (evaluated.output / "csv").is_symlink()
    (evaluated.output / "csv").mkdir()
    (evaluated.output / "csv" / "mine.txt").write_text("mine")
    assert evaluate(evaluated).exit_code == 0
    evaluated.configure()
    outcome = evaluate(evaluated)
    assert outcome.exit_code == 2
    assert "move it away, or set publish.csv to false" in outcome.failures[0]
    assert (evaluated.output / "csv" / "mine.txt").read_text() == "mine"


@pytest.mark.nightly
def test_a_model_with_tiers_has_a_row_for_each(folder: Folder) -> None:
    folder.fixes("m", "oid,iteration_id,tier,plausible_fix\na,1,T0,true\na,1,T1,false\n")
    assert evaluate(folder).exit_code == 0
    figures = pl.read_csv(folder.output / "csv" / "m_pass_at_k.csv")
    assert figures.select("LLM", "tier", "pass@1").rows() == [("m", "T0", 1.0), ("m", "T1", 0.0)]


def test_a_wrong_setting_is_refused(folder: Folder) -> None:
    folder.configure(publish={"csv": "sometimes"})
    with pytest.raises(TouchstoneError, match=r"publish\.csv: Input should be 'auto', True or False"):
        evaluate(folder)


def figures(*rows: dict[str, object]) -> pl.DataFrame:
    defaults: dict[str, object] = {
        "model": "m", "tier": "T0", "k": 1, "pass_at_k": 0.5, "ci_low": 0.25, "ci_high": 0.75, "ci_method": "wilson",
        "ci_units": 9, "pass_at_k_all": 0.5, "pass_hat_k": 0.5, "problems": 10, "attempted": 9, "eligible": 9,
    }  # fmt: skip
    return pl.DataFrame([defaults | row for row in rows], schema=TABLES["pass_at_k"].dtypes)


def test_methods_and_units_stand_behind_the_columns_that_were_there() -> None:
    table = summary(figures({}, {"k": 5, "ci_method": "wilson-t", "ci_units": 7}))
    assert table.columns == [
        "LLM", "pass@1", "pass@5", "attempted", "problems", "pass@1_ci_low", "pass@1_ci_high", "pass@5_ci_low",
        "pass@5_ci_high", "pass@1_ci_method", "pass@1_ci_units", "pass@5_ci_method", "pass@5_ci_units",
    ]  # fmt: skip
    row = table.row(0, named=True)
    assert (row["pass@1_ci_method"], row["pass@1_ci_units"]) == ("wilson", 9)
    assert (row["pass@5_ci_method"], row["pass@5_ci_units"]) == ("wilson-t", 7)


def test_a_model_without_attempts_has_an_empty_method_and_no_units(tmp_path: Path) -> None:
    nothing = dict.fromkeys(["pass_at_k", "ci_low", "ci_high", "ci_method"]) | {"ci_units": 0, "attempted": 0}
    write_summary(figures(nothing), tmp_path / "summary.csv")
    assert (tmp_path / "summary.csv").read_text().splitlines()[1] == "m,,0,10,,,,0"
