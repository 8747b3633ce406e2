"""Whole evaluations in object storage: the same figures as on disk, from any machine, for every command that reads."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import touchstone as api
from tests.conftest import WITH_WAREHOUSE, Command, Folder
from tests.storage.s3 import BUCKET, Server, machine, s3_server, small_evaluation
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation, run
from touchstone.locations import output_location
from touchstone.storage.object_store import Bucket
from touchstone.storage.output_folders import editing
from touchstone.storage.snapshots import pin, pins
from touchstone.tables import TABLES

pytestmark = pytest.mark.services

# They name the snapshot, which is named after the time.
TIMED = ("history", "trends", "change_points", "failure_modes", "problem_history", "run_log")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with s3_server() as running:
        yield running


@pytest.fixture
def here(server: Server, tmp_path: Path) -> Iterator[Server]:
    with machine(server, tmp_path / "cache"):
        yield server


@pytest.fixture(scope="module")
def shared(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    """A finished evaluation, to be read only, and the machine that made it."""
    root = tmp_path_factory.mktemp("shared")
    with machine(server, root / "cache"):
        folder = small_evaluation(
            server, root, "shared", problems_csv=f"s3://{BUCKET}/shared/fixes/problems.csv", publish=WITH_WAREHOUSE
        )
        evaluate(folder)
        yield folder


def evaluate(folder: Folder) -> Evaluation:
    evaluation = Evaluation.load(folder.config)
    outcome = run(evaluation)
    assert not outcome.failures and outcome.published
    return evaluation


def tables_of(files: dict[str, bytes]) -> dict[str, bytes]:
    """The published tables that are the same in every run."""
    tables = {path: content for path, content in files.items() if path.startswith("tables/")}
    return {path: content for path, content in tables.items() if path.split("/")[1] not in TIMED}


def logged(server: Server, name: str) -> pl.DataFrame:
    """The published run log."""
    (content,) = (each for path, each in server.assert_complete(f"{name}/out").items() if "tables/run_log/" in path)
    return pl.read_parquet(content)


def address(name: str) -> str:
    return f"s3://{BUCKET}/{name}/out"


def test_the_same_tables_from_disk_and_from_object_storage(shared: Folder, server: Server, tmp_path: Path) -> None:
    local = Folder(shutil.copytree(shared.root, tmp_path / "local"))
    local.configure()
    evaluate(local)
    kept = tables_of(server.assert_complete("shared/out"))
    assert len(kept) > 30
    assert {path: (local.output / path).read_bytes() for path in kept} == kept


def test_the_published_log_has_every_step_of_the_run(shared: Folder, server: Server) -> None:
    first = logged(server, "shared").filter(pl.col("run_id") == pl.col("run_id").first())
    assert first["stage"].to_list() == [*TABLES, "report", "warehouse"]


def test_nothing_is_written_beside_the_configuration(shared: Folder) -> None:
    assert {path.name for path in shared.root.iterdir()} == {"cache", "fixes", "evaluation_config.json"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("sql", "SELECT pass_at_k FROM pass_at_k WHERE k = 1", "--format", "csv"), "0.25"),
        (("snapshots", "list"), "2 files"),
        (("compare", "latest", "latest"), "every attempt ended as in the baseline"),
        pytest.param(("show", "m", "a"), "2 attempts", marks=pytest.mark.nightly),
        pytest.param(("tables",), "pass_at_k", marks=pytest.mark.nightly),
        pytest.param(("export", "pass_at_k"), "m,T0,1,0.25", marks=pytest.mark.nightly),
        pytest.param(("report", "--format", "markdown"), "pass@1", marks=pytest.mark.nightly),
        pytest.param(("plan", "--detect", "0.1"), "estimated from m T0", marks=pytest.mark.nightly),
    ],
)
def test_commands_read_by_address(
    shared: Folder, touchstone: Command, arguments: tuple[str, ...], expected: str
) -> None:
    read = touchstone(*arguments, "--data", address("shared"))
    assert read.returncode == 0, read.stderr
    assert expected in read.stdout


def test_all_that_is_published_can_be_copied(shared: Folder, touchstone: Command, tmp_path: Path) -> None:
    copied = touchstone("export", "--data", address("shared"), "--format", "files", "--save-to", tmp_path / "copy")
    assert (copied.returncode, copied.stderr) == (0, "")
    assert {path.name for path in (tmp_path / "copy").iterdir()} >= {"tables", "snapshots", "warehouse.duckdb", "csv"}
    assert api.load_results(tmp_path / "copy")["pass_at_k"].height == 2


def test_two_outputs_are_compared_by_address(shared: Folder, touchstone: Command) -> None:
    compared = touchstone("compare", address("shared"), f"s3://{BUCKET}/shared/fixes/m_fixes.csv")
    assert f"{address('shared')} → s3://{BUCKET}/shared/fixes/m_fixes.csv" in compared.stdout


def test_tables_are_loaded_when_asked_for(shared: Folder, here: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []
    download = Bucket.download
    monkeypatch.setattr(Bucket, "download", lambda *given: fetched.append(given[1].key) or download(*given))
    results = api.load_results(address("shared"))
    assert results["pass_at_k"]["pass_at_k"].to_list() == [0.25, 0.5]
    assert "attempts" in list(results)
    assert [key.rpartition("/")[2] for key in fetched] == ["pass_at_k.parquet"]


def test_another_machine_continues_where_the_last_one_ended(shared: Folder, here: Server) -> None:
    before, runs = here.manifest("shared/out"), logged(here, "shared")["run_id"].n_unique()
    assert api.load_results(address("shared"))["run_log"]["run_id"].n_unique() == runs
    outcome = run(Evaluation.load(shared.config))
    assert (outcome.made, outcome.published) == (0, True)
    after = here.manifest("shared/out")
    changed = {path for path, stored in after.pop("files").items() if stored != before["files"].pop(path)}
    assert before.pop("files") == {} and after == before, "nothing differs, so there is nothing to publish"
    assert {path.rpartition("/")[0] for path in changed} == {"tables/run_log"}, "but the log"
    assert logged(here, "shared")["run_id"].n_unique() == runs + 1
    assert api.load_results(address("shared"))["run_log"].equals(logged(here, "shared"))


@pytest.mark.parametrize("lost", ["snapshots/*/manifest.json", "snapshots/*/tables/pass_at_k/*.parquet"])
def test_a_cache_folder_that_was_cleaned_loses_no_snapshot(shared: Folder, here: Server, lost: str) -> None:
    before = here.manifest("shared/out")["files"].keys()
    root = output_location(address("shared"))
    with editing(root):
        pass
    for path in root.glob(lost):
        path.unlink()
    with editing(root):
        pass
    assert here.manifest("shared/out")["files"].keys() == before


@pytest.mark.nightly
def test_machines_take_turns(server: Server, tmp_path: Path) -> None:
    for place, model in enumerate(("m", "n", "o")):
        with machine(server, tmp_path / ("one" if place % 2 else "two")):
            folder = small_evaluation(server, tmp_path, "turns")
            if model != "m":
                server.put(f"turns/fixes/{model}_fixes.csv", "oid,iteration_id,plausible_fix\na,1,true\nb,1,true\n")
            evaluate(folder)
            assert set(api.load_results(address("turns"))["pass_at_k"]["model"]) == set("mno"[: place + 1])


@pytest.mark.nightly
def test_a_writer_that_was_overtaken_publishes_nothing(server: Server, tmp_path: Path) -> None:
    with machine(server, tmp_path / "one"):
        folder = small_evaluation(server, tmp_path, "overtaken")
        evaluate(folder)
        root = output_location(address("overtaken"))
        with pytest.raises(TouchstoneError, match="another run has published here in the meantime"), editing(root):
            pin(root, "latest", "slow")
            with machine(server, tmp_path / "two"), editing(output_location(address("overtaken"))) as other:
                pin(other, "latest", "fast")
        assert list(json.loads(server.assert_complete("overtaken/out")["snapshots/pins.json"])) == ["fast"]
        # The next writer starts from what the other one published.
        with editing(root):
            assert list(pins(root)) == ["fast"]


def test_an_unchanged_run_downloads_and_publishes_nothing(shared: Folder, touchstone: Command, server: Server) -> None:
    before = server.keys("shared")
    again = touchstone("run", "--config", shared.config)
    assert "up to date" in again.stdout
    assert address("shared") in again.stdout
    assert server.keys("shared") == before


@pytest.mark.nightly
def test_a_run_that_failed_is_in_the_published_log(here: Server, tmp_path: Path) -> None:
    folder = small_evaluation(here, tmp_path, "failed")
    evaluate(folder)
    published = tables_of(here.assert_complete("failed/out"))
    here.put("failed/fixes/problems.csv", "oid,filename\na,x\na,y\n")
    assert run(Evaluation.load(folder.config)).failures
    *_, last = logged(here, "failed").iter_rows(named=True)
    assert (last["stage"], last["status"]) == ("problems", "failed")
    assert tables_of(here.assert_complete("failed/out")) == published


@pytest.mark.nightly
def test_results_that_were_removed_are_made_anew(here: Server, tmp_path: Path) -> None:
    folder = small_evaluation(here, tmp_path, "removed")
    evaluate(folder)
    for key in here.keys("removed/out"):
        here.delete(key)
    evaluate(folder)
    assert len(here.assert_complete("removed/out")) > 30
