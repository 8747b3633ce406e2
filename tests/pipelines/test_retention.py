"""What the job `retention` removes and what it keeps."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.storage.runs.schema import RunsTable
from dagster._core.test_utils import create_run_for_test
from sqlalchemy import update

from pipelines.definitions import build_defs
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


def test_by_default_everything_is_kept(evaluated: Folder, history: dg.DagsterInstance) -> None:
    add(history, OLD, "SUCCESS", snapshot="another")
    assert list(remove_expired(Evaluation.load(evaluated.config), history)) == []
    assert len(history.get_run_ids()) == len(list_snapshots(evaluated.output)) == 1
    defs = build_defs(EvaluationResource(config_file=str(evaluated.config)))
    assert "keeps everything" in schedule_tick(defs, history, RETENTION).skip_message


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
    said = list(remove_expired(Evaluation.load(evaluated.config), history))
    assert said == ["1 run removed", "1 snapshot removed: 20200102-000000-b", "0 cached reports removed"]
    assert set(history.get_run_ids()) == set(kept)
    assert {snapshot.id for snapshot in list_snapshots(evaluated.output)} == {newest.id, "20200101-000000-a"}
