"""The sensor and the schedule: when they ask for a run, and what they say when they do not."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.retries import retry_if_lost
from pipelines import automation
from pipelines.definitions import build_defs
from pipelines.resources import EvaluationResource
from tests.conftest import Folder
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation, run

HEADER = "oid,iteration_id,plausible_fix\n"


@pytest.fixture
def defs(folder: Folder) -> dg.Definitions:
    return build_defs(EvaluationResource(config_file=str(folder.config)))


@pytest.fixture(scope="module")
def new_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The databases of a new instance, which take Dagster half a second to make."""
    home = tmp_path_factory.mktemp("home")
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        assert instance.get_dynamic_partitions("models") == []
    return home


@pytest.fixture
def stored(new_home: Path, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """An instance on disk, as the daemon has it."""
    with dg.DagsterInstance.local_temp(str(shutil.copytree(new_home, tmp_path / "home"))) as made:
        yield made


def sense(
    defs: dg.Definitions, instance: dg.DagsterInstance, cursor: str | None
) -> tuple[list[dg.RunRequest], str | None]:
    tick = sensor_tick(defs, instance, cursor)
    return list(tick.run_requests or []), tick.cursor


def sensor_tick(defs: dg.Definitions, instance: dg.DagsterInstance, cursor: str | None = None) -> Any:
    (sensor,) = defs.get_repository_def().sensor_defs
    resources = {"evaluation": (defs.resources or {})["evaluation"]}
    with dg.build_sensor_context(instance=instance, cursor=cursor, resources=resources) as context:
        return sensor.evaluate_tick(context)


def schedule_tick(defs: dg.Definitions, instance: dg.DagsterInstance, name: str = "nightly") -> Any:
    schedule = defs.get_repository_def().get_schedule_def(name)
    resources = {"evaluation": (defs.resources or {})["evaluation"]}
    with dg.build_schedule_context(instance=instance, resources=resources) as context:
        return schedule.evaluate_tick(context)


def test_the_sensor_sees_new_changed_and_vanished_files(
    defs: dg.Definitions, stored: dg.DagsterInstance, folder: Folder
) -> None:
    requests, cursor = sense(defs, stored, None)
    assert len(requests) == 1
    assert stored.get_dynamic_partitions("models") == ["m"]
    assert sense(defs, stored, cursor) == ([], cursor)

    new = folder.fixes("n", HEADER + "a,1,true\n")
    requests, cursor = sense(defs, stored, cursor)
    assert requests[0].tags["touchstone/new"] == "1"
    assert stored.get_dynamic_partitions("models") == ["m", "n"]

    folder.fixes("n", HEADER + "a,1,false\n")
    requests, cursor = sense(defs, stored, cursor)
    assert requests[0].tags["touchstone/changed"] == "1"

    folder.fixes("n", HEADER + "a,1,true\n")
    requests, cursor = sense(defs, stored, cursor)
    assert requests[0].run_key is None, "a key would keep Dagster from evaluating a file that was changed back"

    new.touch()
    assert sense(defs, stored, cursor)[0] == []

    new.unlink()
    requests, cursor = sense(defs, stored, cursor)
    assert requests[0].tags["touchstone/gone"] == "1"
    assert stored.get_dynamic_partitions("models") == ["m"]
    assert json.loads(cursor or "{}")["files"].keys() == {"m_fixes.csv", "problems"}


def test_a_file_that_cannot_be_read_does_not_silence_the_sensor(
    defs: dg.Definitions, stored: dg.DagsterInstance, folder: Folder
) -> None:
    (folder.root / "fixes" / "gone_fixes.csv").symlink_to(folder.root / "nowhere.csv")
    requests, cursor = sense(defs, stored, None)
    assert len(requests) == 1
    assert json.loads(cursor or "{}")["files"]["gone_fixes.csv"] == "unreadable"


def ended_run(instance: dg.DagsterInstance, tags: Mapping[str, str], error: BaseException) -> None:
    """A run that the sensor asked for, in a process of its own that ends with an error."""

    @dg.op
    def step(context: dg.OpExecutionContext) -> None:
        with retry_if_lost(context.instance, context.run):
            raise error

    @dg.job
    def evaluate() -> None:
        step()

    assert not evaluate.execute_in_process(instance=instance, tags=tags, raise_on_error=False).success


@pytest.mark.services
def test_a_change_whose_run_was_lost_is_evaluated_again_a_few_times(
    defs: dg.Definitions, stored: dg.DagsterInstance, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((request,), cursor) = sense(defs, stored, None)
    ended_run(stored, request.tags, ConnectionResetError())
    waiting = sensor_tick(defs, stored, cursor)
    assert not waiting.run_requests and "was lost" in str(waiting.skip_message), "Dagster may start it again itself"
    monkeypatch.setattr(automation, "_PATIENCE_SECONDS", 0)
    for _ in range(automation._MOST_RUNS - 1):
        ((again,), after) = sense(defs, stored, cursor)
        assert (again.tags[automation._CHANGE], after) == (request.tags[automation._CHANGE], cursor)
        ended_run(stored, again.tags, ConnectionResetError())
    given_up = sensor_tick(defs, stored, cursor)
    assert not given_up.run_requests and "start one by hand" in str(given_up.skip_message)
    folder.fixes("n", HEADER + "a,1,true\n")
    assert len(sense(defs, stored, cursor)[0]) == 1, "another change has tries of its own"


def test_a_run_that_failed_on_its_own_is_not_started_again(
    defs: dg.Definitions, stored: dg.DagsterInstance, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automation, "_PATIENCE_SECONDS", 0)
    ((request,), cursor) = sense(defs, stored, None)
    ended_run(stored, request.tags, TouchstoneError("a check failed"))
    tick = sensor_tick(defs, stored, cursor)
    assert not tick.run_requests and ": failure" in str(tick.skip_message)


@pytest.mark.services
def test_a_lost_run_that_published_is_not_started_again(
    evaluated: Folder, stored: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automation, "_PATIENCE_SECONDS", 0)
    defs = build_defs(EvaluationResource(config_file=str(evaluated.config)))
    evaluated.fixes("n", HEADER + "a,1,true\n")
    ((request,), cursor) = sense(defs, stored, None)
    ended_run(stored, request.tags, ConnectionResetError())
    assert run(Evaluation.load(evaluated.config)).published
    tick = sensor_tick(defs, stored, cursor)
    assert not tick.run_requests and str(tick.skip_message).startswith("up to date: ")
    assert "none changed" in str(sensor_tick(defs, stored, tick.cursor).skip_message)


def test_the_sensor_says_why_it_does_nothing(defs: dg.Definitions, stored: dg.DagsterInstance, folder: Folder) -> None:
    (folder.root / "fixes" / "m_fixes.csv").unlink()
    assert sense(defs, stored, None)[0] == []


def test_the_schedule_covers_all_models(defs: dg.Definitions, stored: dg.DagsterInstance, folder: Folder) -> None:
    folder.fixes("n", HEADER)
    assert len(schedule_tick(defs, stored).run_requests or []) == 1
    assert stored.get_dynamic_partitions("models") == ["m", "n"]


@pytest.mark.parametrize("trouble", ["all files refused", "no folder", "no problems file", "wrong configuration"])
def test_sensor_and_schedule_skip_with_the_reason_where_no_model_is_usable(
    defs: dg.Definitions, stored: dg.DagsterInstance, folder: Folder, trouble: str
) -> None:
    if trouble == "all files refused":
        folder.fixes("m_synthetic", HEADER + "a,1,true\n")
        reason = "both speak for the model 'm'"
    elif trouble == "no folder":
        shutil.rmtree(folder.root / "fixes")
        reason = "no such folder; set 'fixes_dir'"
    elif trouble == "wrong configuration":
        folder.configure(k_values=[0])
        reason = "k_values"
    else:
        (folder.root / "fixes" / "problems.csv").unlink()
        folder.fixes("m", "oid,iteration_id,fixed_code\na,1,x\n")
        reason = "no problems file: looked for"
    for tick in (sensor_tick(defs, stored), schedule_tick(defs, stored)):
        assert not tick.run_requests
        assert reason in str(tick.skip_message)


def test_sensor_and_schedule_skip_with_the_reason_where_nothing_changed(
    stored: dg.DagsterInstance, evaluated: Folder
) -> None:
    folder = evaluated
    defs = build_defs(EvaluationResource(config_file=str(folder.config)))
    assert run(Evaluation.load(folder.config)).published
    for tick in (sensor_tick(defs, stored), schedule_tick(defs, stored)):
        assert not tick.run_requests
        assert str(tick.skip_message).startswith("up to date: ")
    folder.fixes("n", HEADER)
    for tick in (sensor_tick(defs, stored), schedule_tick(defs, stored)):
        assert len(tick.run_requests or []) == 1
