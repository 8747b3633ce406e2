"""The deployment at work on a real Postgres: what fires, what is retried, what waits, and what survives a bad day."""

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request

import dagster as dg
import polars as pl
import pytest

from tests.deploy.deployment import Deployment, wait_for
from tests.deploy.sockets import listening_addresses, refuse_connections, socket_paths
from tests.processes import descendants, wait_until_gone
from touchstone.storage.snapshots import list_snapshots

pytestmark = pytest.mark.services

SUCCESS, FAILURE = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE


def published(deployment: Deployment) -> dict[str, object]:
    """The published figures of the model, and that nothing is there twice."""
    output = deployment.evaluation.output
    # The link is followed once: a run may replace it at any moment.
    outcomes = pl.read_parquet((output / "tables").resolve() / "outcomes" / "*.parquet")
    assert outcomes.select("model", "tier", "oid", "iteration_id").is_unique().all()
    identities = [snapshot.fingerprint for snapshot in list_snapshots(output)]
    assert len(set(identities)) == len(identities)
    (row,) = pl.read_csv(output / "summary_pass_at_k.csv").rows(named=True)
    return {"attempts": outcomes.height, "pass@1": round(row["pass@1"], 12)}


def test_every_service_is_healthy_and_listens_on_this_machine_only(deployment: Deployment) -> None:
    for name in deployment.services:
        wait_for(f"the health of {name}", lambda name=name: deployment.is_healthy(name), deployment.log)
    family = [process for one in deployment.processes.values() for process in descendants(one.pid)]
    assert listening_addresses(family) == {("127.0.0.1", deployment.port)}
    assert socket_paths(family) == {deployment.socket}
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(deployment.url, headers={"Host": "evil.example"}))


@pytest.mark.parametrize(
    ("kind", "name", "fixes", "figures"),
    [
        ("sensor", "fixes_folder", ("good", "wrong", "wrong too", "wrong again"), {"attempts": 4, "pass@1": 0.25}),
        ("schedule", "nightly", ("good", "good and other"), {"attempts": 2, "pass@1": 1.0}),
    ],
)
def test_the_sensor_fires_when_a_file_changes_and_the_schedule_at_its_time(
    deployment: Deployment, kind: str, name: str, fixes: tuple[str, ...], figures: dict[str, object]
) -> None:
    deployment.evaluation.answers(*fixes)
    deployment.turn_on(kind, name)
    run = wait_for(f"a run of the {kind}", lambda: deployment.run_by(f"{kind}_name", name), deployment.log)
    assert deployment.ended(run.run_id).status == SUCCESS
    assert published(deployment) == figures
    deployment.turn_off(name)


def test_a_run_whose_process_is_killed_is_started_again(deployment: Deployment) -> None:
    deployment.evaluation.answers("good", "killed")
    deployment.evaluation.hold()
    run = deployment.launch()
    deployment.evaluation.wait_until_held()
    before = published(deployment)
    (process,) = deployment.processes_of_runs()
    os.kill(process, signal.SIGKILL)
    wait_until_gone([process])
    assert published(deployment) == before, "the last good results stay readable"
    deployment.evaluation.release()
    assert deployment.retried(run).status == SUCCESS
    assert published(deployment) == {"attempts": 2, "pass@1": 0.5}


def test_a_run_is_started_again_after_its_code_location_was_killed(deployment: Deployment) -> None:
    deployment.evaluation.answers("good", "good too", "rebooted")
    deployment.evaluation.hold()
    run = deployment.launch()
    deployment.evaluation.wait_until_held()
    deployment.kill("code")
    deployment.evaluation.release()
    assert deployment.status(run) == "STARTED", "nobody has noticed yet"
    deployment.start("code")
    assert deployment.retried(run).status == SUCCESS
    assert published(deployment)["attempts"] == 3


@pytest.mark.parametrize(
    "moment",
    [
        "both tries",
        *(
            pytest.param(each, marks=pytest.mark.nightly)
            for each in ("before the tick", "launching", "validating", "publishing")
        ),
    ],
)
def test_a_change_is_published_although_the_code_location_is_killed(deployment: Deployment, moment: str) -> None:
    fixes = ["good", *(f"{moment} {number}" for number in range(len(moment)))]  # none is in the cache
    if moment in ("validating", "both tries"):
        deployment.evaluation.hold()
    deployment.evaluation.answers(*fixes)
    changed = time.time()
    deployment.turn_on("sensor", "fixes_folder")
    if moment == "launching":
        wait_for("a run", lambda: deployment.runs_after(changed), deployment.log)
    elif moment == "publishing":
        made = deployment.evaluation.output / ".store" / "draft" / "tables" / "pass_at_k"
        wait_for("figures", lambda: any(part.stat().st_mtime > changed for part in made.glob("*")), deployment.log)
    elif moment != "before the tick":
        deployment.evaluation.wait_until_held()
    deployment.kill("code")
    if moment == "both tries":
        deployment.evaluation.hold()
        deployment.start("code")
        deployment.evaluation.wait_until_held()
        deployment.kill("code")
    deployment.evaluation.release()
    deployment.start("code")
    wait_for("the change to be published", lambda: published(deployment)["attempts"] == len(fixes), deployment.log)
    deployment.turn_off("fixes_folder")


@pytest.mark.parametrize("trouble", ["failed check", "wrong configuration"])
def test_what_would_fail_again_is_not_started_again(deployment: Deployment, trouble: str) -> None:
    unreadable = deployment.evaluation.root / "fixes" / "n_fixes.csv"
    if trouble == "failed check":
        unreadable.write_bytes(b"\xff")
    else:
        deployment.evaluation.configure(k_values=[0])
    run = deployment.ended(deployment.launch())
    unreadable.unlink(missing_ok=True)
    deployment.evaluation.correct()
    assert run.status == FAILURE
    # Dagster decides with the end of the run, and starts retries by this tag alone.
    decided = wait_for("the decision", lambda: deployment.run(run.run_id).tags.get("dagster/will_retry"))
    assert decided == "false"


def test_one_run_at_a_time(deployment: Deployment) -> None:
    deployment.evaluation.answers("good", "first in the queue")
    deployment.evaluation.hold()
    first, second = deployment.launch(), deployment.launch()
    deployment.evaluation.wait_until_held()
    assert {deployment.status(first), deployment.status(second)} == {"STARTED", "QUEUED"}
    deployment.evaluation.release()
    times = sorted(deployment.times(run) for run in (first, second))
    (_, ended), (started, _) = times
    assert started >= ended


def test_a_run_waits_for_a_postgres_that_is_away(deployment: Deployment) -> None:
    deployment.evaluation.answers("good", "written before Postgres stopped")
    deployment.evaluation.hold()
    run = deployment.launch()
    deployment.evaluation.wait_until_held()
    before, (process,) = published(deployment), deployment.processes_of_runs()
    deployment.postgres.stop()
    deployment.evaluation.release()
    refuse_connections(deployment.postgres.port, process, times=10)
    assert published(deployment) == before, "the last good results stay readable"
    deployment.postgres.start()
    assert deployment.ended(run).status == SUCCESS
    assert published(deployment) == {"attempts": 2, "pass@1": 0.5}


def test_a_run_whose_statement_is_cut_off_by_a_restart_of_postgres_is_started_again(deployment: Deployment) -> None:
    deployment.evaluation.answers("good", "written before Postgres crashed")
    deployment.evaluation.hold()
    run = deployment.launch()
    deployment.evaluation.wait_until_held()
    before = published(deployment)
    with deployment.postgres.locked("event_logs") as waiting:
        deployment.evaluation.release()
        wait_for("an event to be stored", waiting, deployment.log)
        deployment.postgres.restart("immediate")
    assert published(deployment) == before, "the last good results stay readable"
    assert deployment.retried(run).status == SUCCESS
    assert published(deployment) == {"attempts": 2, "pass@1": 0.5}


def test_old_runs_are_removed_by_the_retention_job(deployment: Deployment) -> None:
    settings = {"retention": {"runs_days": 1e-9, "snapshots": 1}}
    before = published(deployment)
    deployment.evaluation.correct(**settings)
    job = deployment.launch("retention")
    assert deployment.ended(job).status == SUCCESS
    deployment.evaluation.correct()
    left = {run.run_id: run.tags.get("touchstone/snapshot") for run in deployment.instance.get_runs()}
    (snapshot,) = list_snapshots(deployment.evaluation.output)
    assert set(left.values()) == {None, snapshot.id} and left[job] is None
    assert published(deployment) == before


def test_the_database_is_of_the_newest_version(deployment: Deployment) -> None:
    """The command of an upgrade works with the environment of the services, and has nothing to do on a new database."""
    environment = dict(deployment.services["daemon"].environment)
    migrate = subprocess.run(
        ["dagster", "instance", "migrate"], env=environment, cwd=deployment.home, capture_output=True, text=True
    )
    assert migrate.returncode == 0, migrate.stderr
