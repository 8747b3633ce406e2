"""Dagster's history with kept connections: the same as Dagster's own storage writes, and both can use it at once."""

import multiprocessing
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.models import log_together
from pipelines.history import EventLog
from tests.conftest import PROJECT

Home = Callable[[Path], dg.DagsterInstance]
STORED = {"history/runs.db", "history/runs/index.db", "schedules/schedules.db"}
SPAWN = multiprocessing.get_context("spawn")


def dagsters_own(home: Path) -> dg.DagsterInstance:
    return opened(home, "telemetry: {enabled: false}\n")


def ours(home: Path) -> dg.DagsterInstance:
    return opened(home, (PROJECT / "dagster.yaml").read_text())


def opened(home: Path, settings: str) -> dg.DagsterInstance:
    home.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DAGSTER_HOME", str(home))
        (home / "dagster.yaml").write_text(settings)
        return dg.DagsterInstance.get()


@dg.multi_asset(specs=[dg.AssetSpec("first"), dg.AssetSpec("second", deps=["first"])])
def pair(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
    yield dg.MaterializeResult(asset_key="first", metadata={"rows": 3}, data_version=dg.DataVersion("1"))
    yield dg.MaterializeResult(asset_key="second")
    log_together(
        context,
        [dg.AssetMaterialization("models", partition=name, tags={"dagster/data_version": "2"}) for name in "mn"],
    )


@dg.asset_check(asset="second")
def whole() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True)


JOB = dg.Definitions([pair], asset_checks=[whole]).resolve_implicit_global_asset_job_def()


def run_in(instance: dg.DagsterInstance) -> str:
    result = JOB.execute_in_process(instance=instance)
    assert result.success
    return result.run_id


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """A home with one run, made by each storage: to be read or copied only."""
    made = {}
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DAGSTER_EVENT_BATCH_SIZE", "1000")
        for name, home in (("dagster", dagsters_own), ("ours", ours)):
            folder = tmp_path_factory.mktemp(name)
            with home(folder) as instance:
                assert isinstance(instance.event_log_storage, EventLog) == (name == "ours")
                made[name] = (folder, run_in(instance))
    return made


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return sorted(connection.execute(query).fetchall(), key=repr)


@pytest.mark.nightly
def test_a_new_home_is_the_same_as_one_that_dagster_makes(finished: dict[str, tuple[Path, str]]) -> None:
    def content(home: Path, run: str) -> dict[str, object]:
        databases = {name: home / name for name in STORED} | {"run": home / f"history/runs/{run}.db"}
        return {
            name: (
                {"".join(str(sql).split()) for (sql,) in rows(path, "SELECT sql FROM sqlite_master")},
                rows(path, "SELECT * FROM alembic_version"),
                rows(path, "PRAGMA journal_mode"),
                rows(path, "SELECT name FROM secondary_indexes") if name != "run" else None,
            )
            for name, path in databases.items()
        }

    assert content(*finished["ours"]) == content(*finished["dagster"])


@pytest.mark.nightly
@pytest.mark.parametrize(
    "query",
    [
        "SELECT dagster_event_type, step_key, asset_key, partition FROM event_logs",
        "SELECT asset_key, last_materialization IS NULL, last_run_id IS NULL FROM asset_keys",
        "SELECT asset_key, key FROM asset_event_tags",
        "SELECT asset_key, check_name, execution_status, evaluation_event_storage_id > 0 FROM asset_check_executions",
    ],
)
def test_a_run_leaves_the_same_rows(finished: dict[str, tuple[Path, str]], query: str) -> None:
    def stored(home: Path, run: str) -> list[list[tuple[Any, ...]]]:
        return [rows(home / f"history/runs/{name}.db", query) for name in ("index", run)]

    assert stored(*finished["ours"]) == stored(*finished["dagster"])
    assert stored(*finished["ours"])[0]


def test_the_latest_materializations_are_those_that_dagster_reads(finished: dict[str, tuple[Path, str]]) -> None:
    keys = [dg.AssetKey(name) for name in ("first", "second", "models")]

    def latest(home: Path, opening: Home) -> list[tuple[object, ...]]:
        with opening(home) as instance:
            entries = [record.asset_entry for record in instance.get_asset_records(keys)]
        made = [entry.last_materialization_record for entry in entries]
        assert all(made)
        return sorted((one.storage_id, one.run_id, one.asset_key, one.partition_key) for one in made if one)

    (home, _), (other, _) = finished["ours"], finished["dagster"]
    assert latest(home, ours) == latest(home, dagsters_own)
    assert [row[-1] for row in latest(home, ours)] == [row[-1] for row in latest(other, dagsters_own)]
    assert "n" in [row[-1] for row in latest(home, ours)]


def test_a_wiped_asset_has_no_latest_materialization(finished: dict[str, tuple[Path, str]], tmp_path: Path) -> None:
    home = shutil.copytree(finished["ours"][0], tmp_path / "home")
    index, first, second = home / "history/runs/index.db", dg.AssetKey("first"), dg.AssetKey("second")
    [(stored,)] = rows(index, """SELECT last_materialization FROM asset_keys WHERE asset_key = '["first"]'""")
    with ours(home) as instance:
        instance.wipe_assets([first])
        instance.report_runless_asset_event(dg.AssetObservation(first))  # which makes it known again
    with closing(sqlite3.connect(index)) as connection, connection:  # as one that was stored at the same time
        connection.execute("UPDATE asset_keys SET last_materialization = ? WHERE asset_key LIKE '%first%'", (stored,))
    with ours(home) as instance:
        found = [instance.get_asset_records([key])[0].asset_entry.last_materialization for key in (first, second)]
    assert found[0] is None and found[1] is not None


@pytest.mark.nightly
@pytest.mark.parametrize(("before", "after"), [("dagster", ours), ("ours", dagsters_own)])
def test_either_storage_goes_on_with_the_other_s_home(
    finished: dict[str, tuple[Path, str]], tmp_path: Path, before: str, after: Home
) -> None:
    home = shutil.copytree(finished[before][0], tmp_path / "home")
    with after(home) as instance:
        new = run_in(instance)
        assert {run.run_id for run in instance.get_runs()} == {finished[before][1], new}
        made = instance.fetch_materializations(dg.AssetKey("first"), limit=9).records
        assert [one.run_id for one in made] == [new, finished[before][1]]


@pytest.mark.nightly
def test_a_home_without_wal_or_revision_is_used_as_dagster_uses_it(
    finished: dict[str, tuple[Path, str]], tmp_path: Path
) -> None:
    home = shutil.copytree(finished["dagster"][0], tmp_path / "home")
    for name in STORED:
        with closing(sqlite3.connect(home / name)) as database:
            database.execute("PRAGMA journal_mode=DELETE")
            database.execute("DROP TABLE alembic_version")
    with ours(home) as instance:
        run_in(instance)
        assert len(instance.get_runs()) == 2
    assert {rows(home / name, "PRAGMA journal_mode")[0] for name in STORED} == {("wal",)}
    assert all(rows(home / name, "SELECT * FROM alembic_version") for name in STORED - {"schedules/schedules.db"})


@pytest.mark.nightly
def test_the_connections_of_few_runs_are_kept(tmp_path: Path) -> None:
    events = EventLog(str(tmp_path))
    for run in range(30):
        assert events.get_logs_for_run(str(run)) == []
    assert len(events._engines) < 10
    events.wipe()
    assert events.get_logs_for_run("0") == []
    events.dispose()
    assert not events._engines


def write_until_killed(home: Path, parent: Connection) -> None:
    @dg.asset
    def many(context: dg.AssetExecutionContext) -> None:
        parent.send(context.run_id)
        parent.recv()
        for number in range(100):
            context.log_event(dg.AssetMaterialization("models", partition=str(number)))
        parent.send("written")
        parent.recv()

    with ours(home) as instance:
        dg.materialize([many], instance=instance)


@pytest.mark.nightly
def test_others_read_and_write_while_a_run_writes_and_when_it_is_killed(tmp_path: Path) -> None:
    """As a UI and its daemon do, one started by this version and one by an older one."""
    home = tmp_path / "home"
    parent, child = SPAWN.Pipe()
    writer = SPAWN.Process(target=write_until_killed, args=(home, child))
    writer.start()
    run = parent.recv()
    seen = threading.Semaphore(0)
    with ours(home) as new, dagsters_own(home) as old:
        new.watch_event_logs(run, None, lambda *_: seen.release())
        parent.send("go")
        while not parent.poll():
            for instance in (new, old):
                counts = [len(instance.all_logs(run)) for _ in range(2)]
                assert counts == sorted(counts)
                instance.add_dynamic_partitions("models", [str(counts[0])])
                assert [one.status for one in instance.get_runs()] == [dg.DagsterRunStatus.STARTED]
        parent.recv()
        assert all(seen.acquire(timeout=60) for _ in range(100)), (
            "the UI sees events while the run still holds its connection"
        )
        writer.kill()
        writer.join()
        made = [one.fetch_materializations(dg.AssetKey("models"), limit=1000).records for one in (new, old)]
        assert [len(records) for records in made] == [100, 100], "what was written is not lost with the process"
        for instance in (new, old):
            run_in(instance)
        assert len(new.get_runs()) == len(old.get_runs()) == 3


def open_when_told(home: Path, parent: Connection) -> None:
    parent.send("ready")
    parent.recv()
    with ours(home) as instance:
        parent.send(run_in(instance))


@pytest.mark.nightly
def test_two_processes_make_a_home_at_once(tmp_path: Path) -> None:
    parent, child = SPAWN.Pipe()
    other = SPAWN.Process(target=open_when_told, args=(tmp_path, child))
    other.start()
    assert parent.recv() == "ready"
    parent.send("go")
    with ours(tmp_path) as instance:
        runs = {run_in(instance), parent.recv()}
        assert {run.run_id for run in instance.get_runs()} == runs
    other.join()


@pytest.mark.parametrize("name", ["demo%2Fresults", "50% #1?", "what?mode=memory"])
def test_a_home_may_have_any_name(tmp_path: Path, name: str) -> None:
    with ours(tmp_path / name) as instance:
        assert dg.materialize([pair], instance=instance).success
    assert {str(path.relative_to(tmp_path / name)) for path in (tmp_path / name).rglob("*.db")} >= STORED
    assert [path.name for path in tmp_path.iterdir()] == [name]
