"""What the job `retention` removes and what it keeps."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.storage.runs.schema import RunsTable
from dagster._core.test_utils import create_run_for_test
from sqlalchemy import update

from pipelines.definitions import build_defs
from pipelines.launch import run_evaluation
from pipelines.resources import EvaluationResource
from pipelines.retention import RETENTION, remove_expired, remove_runs
from tests.conftest import Folder
from tests.pipelines.test_sensors_and_schedules import schedule_tick
from touchstone.evaluation import Evaluation
from touchstone.storage.snapshots import list_snapshots, pin

NOW = datetime.now(UTC)
OLD = NOW - timedelta(days=40)
SNAPSHOT = "touchstone/snapshot"


@pytest.fixture
def history() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def add(history: dg.DagsterInstance, when: datetime, status: str, snapshot: str) -> str:
    """A run that last changed at that time, which the database itself writes down."""
    run = create_run_for_test(history, status=dg.DagsterRunStatus(status), tags={SNAPSHOT: snapshot})
    changed = update(RunsTable).where(RunsTable.c.run_id == run.run_id).values(update_timestamp=when)
    with history.run_storage.connect() as connection:
        connection.execute(changed)
    return run.run_id


def test_old_runs_go_and_unfinished_recent_and_protected_ones_stay(history: dg.DagsterInstance) -> None:
    kept = [
        add(history, OLD, "SUCCESS", snapshot="pinned"),
        add(history, OLD, "STARTED", snapshot="none"),
        add(history, OLD, "STARTING", snapshot="none"),
        add(history, NOW, "FAILURE", snapshot="none"),
    ]
    gone = [add(history, OLD, status, snapshot="another") for status in ("SUCCESS", "FAILURE", "CANCELED")]
    assert remove_runs(history, NOW - timedelta(days=30), {"pinned"}) == len(gone)
    assert set(history.get_run_ids()) == set(kept)
    assert all(history.all_logs(run) == [] for run in gone)
    assert remove_runs(history, NOW - timedelta(days=30), {"pinned"}) == 0


def test_more_runs_than_are_removed_at_once(history: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.retention._RUNS_AT_ONCE", 2)
    kept = [add(history, OLD, "SUCCESS", snapshot="pinned") for _ in range(3)]
    for _ in range(5):
        add(history, OLD, "SUCCESS", snapshot="another")
    assert remove_runs(history, NOW, {"pinned"}) == 5
    assert set(history.get_run_ids()) == set(kept)


@pytest.mark.services
def test_what_is_kept_by_default_and_that_everything_can_be(evaluated: Folder, history: dg.DagsterInstance) -> None:
    add(history, OLD, "SUCCESS", snapshot="another")
    add(history, NOW - timedelta(days=91), "SUCCESS", snapshot="another")
    defs = build_defs(EvaluationResource(config_file=str(evaluated.config)))
    keep_all = {"runs_days": None, "snapshots": None, "cache_days": None}
    evaluated.configure(retention=keep_all)
    assert "keeps everything" in schedule_tick(defs, history, RETENTION).skip_message
    assert list(remove_expired(Evaluation.load(evaluated.config).config, history)) == []
    evaluated.configure()
    assert schedule_tick(defs, history, RETENTION).run_requests
    said = list(remove_expired(Evaluation.load(evaluated.config).config, history))
    assert said == ["1 run older than 90 days removed from Dagster's history"]
    assert len(history.get_run_ids()) == len(list_snapshots(evaluated.output)) == 1


@pytest.mark.services
def test_touchstone_run_keeps_the_newest_snapshots(folder: Folder) -> None:
    folder.configure(retention={"snapshots": 2})
    for number in range(4):
        folder.fixes("m", f"oid,iteration_id,plausible_fix\n{'a,1,true' if number % 2 else 'a,1,false'}\n")
        with dg.DagsterInstance.ephemeral() as instance:
            outcome = run_evaluation(Evaluation.load(folder.config), folder.config, instance)
        if number == 0:
            pin(folder.output, "latest", "first")
    assert len(list_snapshots(folder.output)) == 3, "two and the pinned one"
    (note,) = outcome.notes
    assert note.startswith("1 snapshot removed") and "pinned ones are kept" in note


def test_the_run_of_the_newest_and_of_pinned_snapshots_stays(evaluated: Folder, history: dg.DagsterInstance) -> None:
    (newest,) = list_snapshots(evaluated.output)
    copies = evaluated.output / "snapshots"
    for name in ("20200101-000000-a", "20200102-000000-b"):
        (copies / name).mkdir()
        manifest = (newest.folder / "manifest.json").read_text().replace(newest.made_at, "2020-01-01T00:00:00Z")
        (copies / name / "manifest.json").write_text(manifest)
    pin(evaluated.output, "20200101", "baseline")
    kept = [add(history, OLD, "SUCCESS", snapshot=name) for name in (newest.id, "20200101-000000-a")]
    add(history, OLD, "SUCCESS", snapshot="20200102-000000-b")
    evaluated.configure(retention={"runs_days": 30, "snapshots": 1, "cache_days": 90})
    runs, snapshots = remove_expired(Evaluation.load(evaluated.config).config, history)
    assert runs == "1 run older than 30 days removed from Dagster's history"
    assert snapshots.startswith("1 snapshot removed, 20200102-000000-b; the newest 1 and the pinned ones are kept")
    assert set(history.get_run_ids()) == set(kept)
    assert {snapshot.id for snapshot in list_snapshots(evaluated.output)} == {newest.id, "20200101-000000-a"}
