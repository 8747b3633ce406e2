"""Snapshots: every finished run is kept, named, listed, and told from the next by what it found."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import Command, Folder, copy_of
from tests.pipelines.test_run import evaluate
from touchstone.config import load_config
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.ingest.attempts import read_fixes
from touchstone.ingest.clean_files import read_clean_files
from touchstone.storage.snapshots import find, list_snapshots, pin, pins, prune, unreadable_snapshots
from touchstone.tables import TABLES

HEADER = "oid,iteration_id,plausible_fix\n"
# Without a baseline, slices, a cutoff, or anything to validate.
_EMPTY_HERE = (
    "factors",
    "factor_effects",
    "gate_results",
    "history",
    "baseline_verdicts",
    "sequential_verdicts",
    "regression_counts",
    "slices",
    "validator_variance",
    "contamination",
    "reference_overlap",
)


@pytest.fixture(scope="module")
def twice(finished: Folder, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Two different runs, and one that changed nothing."""
    folder = copy_of(finished, tmp_path_factory.mktemp("snapshots") / "copy")
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


@pytest.mark.services
def test_the_history_is_the_same_whether_or_not_there_is_one_to_add_to(twice: Folder, tmp_path: Path) -> None:
    folder = copy_of(twice, tmp_path / "copy")
    file = folder.output / "tables" / "history" / "history.parquet"
    extended, snapshots = file.read_bytes(), [snapshot.id for snapshot in list_snapshots(folder.output)]
    assert pl.read_parquet(file)["snapshot"].unique(maintain_order=True).to_list() == snapshots
    shutil.rmtree(folder.output / ".store")
    assert evaluate(folder).exit_code == 0
    assert file.read_bytes() == extended
    prune(folder.output, keep=1)
    assert evaluate(folder).exit_code == 0
    assert pl.read_parquet(file)["snapshot"].unique().to_list() == snapshots[1:]


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


@pytest.mark.nightly
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
        figures = {"model", "tier"} <= set(table.key) and "oid" not in table.key and table.in_snapshots
        if figures and name not in _EMPTY_HERE:
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


def manifests(root: Path, **more: object) -> Path:
    """A folder with a snapshot as version 0.1 wrote it, whose manifest is changed by `more`."""
    folder = root / "snapshots" / "20260101-000000-aaaa"
    folder.mkdir(parents=True)
    told = {"id": folder.name, "made_at": "2026-01-01T00:00:00Z", "fingerprint": "f", "config_hash": "c"}
    told |= {"inputs": {"m_fixes.csv": "h"}, "versions": {"validators": "recorded"}, "rows": {"pass_at_k": 2}}
    (folder / "manifest.json").write_text(json.dumps({**told, **more}))
    return folder / "manifest.json"


def test_a_field_of_a_newer_version_hides_no_snapshot(tmp_path: Path) -> None:
    manifests(tmp_path, fields_to_come={"a": 1})
    (found,) = list_snapshots(tmp_path)
    assert (found.id, found.inputs) == ("20260101-000000-aaaa", {"m_fixes.csv": "h"})


def test_a_manifest_of_an_older_version_may_lack_fields(tmp_path: Path) -> None:
    manifest = manifests(tmp_path)
    for keep in ({"id", "made_at"}, {"made_at"}):
        manifest.write_text(json.dumps(dict.fromkeys(keep, "x")))
        (found,) = list_snapshots(tmp_path)
        assert found.rows == {} and found.versions == {} and found.validation == ()
    assert found.id == "20260101-000000-aaaa"


@pytest.mark.parametrize("text", ["{", "[]", '{"inputs": 3}', ""])
def test_a_manifest_that_cannot_be_read_is_named(tmp_path: Path, touchstone: Command, text: str) -> None:
    manifests(tmp_path)
    broken = tmp_path / "snapshots" / "20260102-000000-bbbb"
    broken.mkdir()
    (broken / "manifest.json").write_text(text)
    assert [each.id for each in list_snapshots(tmp_path)] == ["20260101-000000-aaaa"]
    done = touchstone("snapshots", "list", "--data", tmp_path)
    assert done.returncode == 0 and "20260101" in done.stdout
    (warning,) = done.stderr.splitlines()
    assert warning.startswith(f"warning: {broken / 'manifest.json'}: cannot be read (")
    with pytest.raises(TouchstoneError, match=r"no previous one; .*bbbb/manifest\.json: cannot be read"):
        find(tmp_path, "previous")
    with pytest.raises(TouchstoneError, match=r"is called '20260102'.*bbbb/manifest\.json: cannot be read"):
        find(tmp_path, "20260102")
    done = touchstone("snapshots", "prune", "--keep", 1, "--data", tmp_path)
    assert done.stdout == "0 snapshots removed\n" and "bbbb" in done.stderr and broken.is_dir()


def test_a_snapshot_that_was_cut_short_is_none(tmp_path: Path) -> None:
    manifest = manifests(tmp_path)
    manifest.parent.rename(manifest.parent.with_name(".20260101-000000-aaaa.tmp"))
    assert list_snapshots(tmp_path) == [] and unreadable_snapshots(tmp_path) == {}


# What a snapshot was made from


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_manifest_has_the_hashes_of_the_bytes_that_were_read(folder: Folder) -> None:
    fixes, problems = folder.root / "fixes" / "m_fixes.csv", folder.root / "fixes" / "problems.csv"
    read = {"m_fixes.csv": sha256(fixes), "problems": sha256(problems)}
    evaluation = Evaluation(load_config(folder.config))
    for table in ("problems", "attempts", "validator_noise", "baselines", "outcomes"):
        evaluation.materialize(table)
    # Both files are replaced while the run goes on.
    fixes.write_text(HEADER + "a,1,false\n")
    problems.write_text("oid,filename\na,other.tf\n")
    evaluation.materialize("history")
    snapshot = evaluation.publish.snapshot
    assert snapshot is not None
    assert snapshot.inputs == read
    assert list_snapshots(folder.output)[-1].inputs == read
    recorded = {"model": "m", "tier": "T0", "validator": "recorded", "fidelity": "recorded"}
    assert snapshot.validation == [{**recorded, "validator_version": None, "sandbox": None}]


@pytest.mark.nightly
def test_parts_that_are_reused_keep_the_hashes_of_what_they_were_read_from(evaluated: Folder) -> None:
    folder = evaluated
    n = folder.fixes("n", HEADER + "a,1,true\nb,1,true\n")
    m = folder.root / "fixes" / "m_fixes.csv"
    before = sha256(m)
    folder.fixes("m", HEADER + "a,1,true\n")
    assert evaluate(folder, "n").exit_code == 0
    assert {name: hash for name, hash in list_snapshots(folder.output)[-1].inputs.items() if name != "problems"} == {
        "m_fixes.csv": before,
        "n_fixes.csv": sha256(n),
    }


def test_a_file_that_changes_while_it_is_read_is_not_used(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder.fixes("m", HEADER + 'a,1,"true"\n')

    def read_and_change(*arguments: Any) -> Any:
        done = read_fixes(*arguments)
        path.write_text(path.read_text() + "b,3,true\n")
        return done

    monkeypatch.setattr("touchstone.ingest.stage.read_fixes", read_and_change)
    evaluation = Evaluation(load_config(folder.config))
    evaluation.materialize("problems")
    assert evaluation.ingest.attempts_of("m").rows == 0
    (reason,) = evaluation.store.scan("sources", ["m"]).collect()["reason"]
    assert reason == f"{path}: changed while it was being read; run again when nothing writes to it"


def test_a_clean_file_that_changes_while_it_is_read_is_read_again(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = folder.fixes("n", HEADER + "a,1,true\n")

    def read_and_change(*arguments: Any) -> Any:
        done = read_clean_files(*arguments)
        n.write_text(HEADER + "a,1,false\nb,1,false\n")
        return done

    monkeypatch.setattr("touchstone.ingest.stage.read_clean_files", read_and_change)
    evaluation = Evaluation(load_config(folder.config))
    evaluation.materialize("problems")
    parts = evaluation.materialize("attempts")
    assert {model: part.rows for model, part in parts.items()} == {"m": 4, "n": 2}
    assert parts["n"].inputs == {"n_fixes.csv": sha256(n)}
    assert not evaluation.store.scan("attempts", ["n"]).collect()["passed"].any()
