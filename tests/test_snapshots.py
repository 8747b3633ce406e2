"""Snapshots: every finished run is kept, named, listed, and told from the next by what it found."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Command, Folder
from tests.pipelines.test_run import evaluate
from touchstone.contracts import TABLES
from touchstone.errors import TouchstoneError
from touchstone.snapshots import find, list_snapshots, pin, pins, prune

HEADER = "oid,iteration_id,plausible_fix\n"


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Two different runs, and one that changed nothing."""
    folder = Folder(tmp_path_factory.mktemp("snapshots"))
    folder.problems("oid,filename\na,a.tf\nb,b.tf\n")
    folder.configure()
    folder.fixes("m", HEADER + "a,1,true\na,2,false\nb,1,false\nb,2,false\n")
    assert evaluate(folder).exit_code == 0
    folder.fixes("m", HEADER + "a,1,true\na,2,true\nb,1,false\nb,2,true\n")
    assert evaluate(folder).exit_code == 0
    assert evaluate(folder).made == 0
    return folder


def test_each_run_that_found_something_else_is_a_snapshot(twice: Folder) -> None:
    first, second = list_snapshots(twice.output)
    assert first.fingerprint != second.fingerprint and first.made_at <= second.made_at
    assert set(second.inputs) == {"m_fixes.csv", "problems"}
    assert second.versions["validators"] == "recorded" and second.rows["pass_at_k"] == 2
    figures = [
        pl.read_parquet(each.tables / "pass_at_k" / "*.parquet")["pass_at_k"].to_list() for each in (first, second)
    ]
    assert figures == [[0.25, 0.5], [0.75, 1.0]]


def test_the_texts_of_fixes_are_not_kept(twice: Folder) -> None:
    (latest, *_) = reversed(list_snapshots(twice.output))
    kept = {path.name for path in latest.tables.iterdir()}
    assert "attempt_scores" in kept and not kept & {"attempts", "outcomes", "quarantine", "history"}


def test_names(twice: Folder) -> None:
    first, second = list_snapshots(twice.output)
    assert find(twice.output, "latest").id == second.id and find(twice.output, "previous").id == first.id
    assert find(twice.output, first.id).id == first.id
    assert pin(twice.output, "previous", "baseline").id == first.id
    assert find(twice.output, "baseline").id == first.id
    pin(twice.output, "latest", "baseline")
    assert pins(twice.output) == {"baseline": second.id}


@pytest.mark.parametrize("name", ["latest", "previous", "../x", "", "a b"])
def test_names_that_cannot_be_given(twice: Folder, name: str) -> None:
    with pytest.raises(TouchstoneError):
        pin(twice.output, "latest", name)


@pytest.mark.parametrize("name", ["nobody", "2", "../../etc"])
def test_a_snapshot_that_is_not_there_or_not_one(twice: Folder, name: str) -> None:
    with pytest.raises(TouchstoneError, match="is called"):
        find(twice.output, name)


def test_an_output_folder_without_any(tmp_path: Path) -> None:
    assert list_snapshots(tmp_path) == []
    with pytest.raises(TouchstoneError, match="there are no snapshots"):
        find(tmp_path, "latest")


def test_the_history_of_a_figure_in_sql(twice: Folder, touchstone: Command) -> None:
    def values(where: str) -> list[str]:
        asked = f"SELECT value FROM history WHERE {where} ORDER BY made_at, snapshot"
        done = touchstone("sql", "--data", twice.output, "--format", "csv", asked)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[1:]

    assert values("\"table\" = 'model_statistics' AND figure = 'pass_at_1'") == ["0.25", "0.75"]
    assert values("\"table\" = 'pass_at_k' AND figure = 'pass_at_k' AND item = '2'") == ["0.5", "1.0"]
    assert values("\"table\" = 'suite_scores' AND item = 'default' AND figure = 'score'") == ["0.25", "0.75"]


def test_every_figure_of_a_model_and_tier_has_a_history(twice: Folder) -> None:
    told = pl.read_parquet(twice.output / "tables" / "history" / "*.parquet")
    assert not told.select("snapshot", "table", "model", "tier", "item", "figure").is_duplicated().any()
    for name, table in TABLES.items():
        if (
            {"model", "tier"} <= set(table.key)
            and "oid" not in table.key
            and name not in ("history", "baseline_verdicts", "regression_counts")
        ):
            numbers = [
                column for column, dtype in table.dtypes.items() if dtype.is_numeric() and column not in table.key
            ]
            assert set(numbers) <= set(told.filter(pl.col("table") == name)["figure"]), name


def test_the_commands(twice: Folder, touchstone: Command) -> None:
    first, second = list_snapshots(twice.output)
    done = touchstone("snapshots", "pin", "latest", "release", "--data", twice.output)
    assert done.returncode == 0 and done.stdout.strip() == f"release is now {second.id}"
    done = touchstone("snapshots", "--data", twice.output)
    assert done.returncode == 0 and first.id in done.stdout and "release" in done.stdout
    done = touchstone("snapshots", "list", "--data", twice.root / "nowhere")
    assert done.returncode == 2 and "there are no snapshots" in done.stderr
    done = touchstone("snapshots", "pin", "nobody", "x", "--data", twice.output)
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1


def test_pruning_keeps_the_newest_and_the_pinned(tmp_path: Path) -> None:
    for place in range(5):
        folder = tmp_path / "snapshots" / f"2026010{place}-000000-aaaa"
        folder.mkdir(parents=True)
        told = {"id": folder.name, "made_at": f"2026-01-0{place}", "fingerprint": "f", "config_hash": "c"}
        told |= {"inputs": {}, "versions": {}, "rows": {}}
        (folder / "manifest.json").write_text(json.dumps(told))
    pin(tmp_path, "20260101", "baseline")
    assert prune(tmp_path, keep=2) == ["20260100-000000-aaaa", "20260102-000000-aaaa"]
    assert [each.id[:8] for each in list_snapshots(tmp_path)] == ["20260101", "20260103", "20260104"]


def test_a_broken_manifest_hides_no_other(twice: Folder) -> None:
    broken = twice.output / "snapshots" / "zzz"
    broken.mkdir()
    (broken / "manifest.json").write_text("{")
    assert len(list_snapshots(twice.output)) == 2
