"""Where the history of runs is kept, and what the UI shows."""

import json
import os
import socket
import subprocess
from pathlib import Path

import dagster as dg
import pytest

from pipelines.launch import PROCESS, Services, _fail_orphaned_runs, dagster_home, ui_evaluation
from tests.conftest import PROJECT, Folder
from tests.processes import descendants, wait_until_gone
from touchstone.errors import TouchstoneError

NOTHING = dg.GraphDefinition("nothing").to_job()


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    # Set first, so that what `dagster_home` sets is undone after the test.
    monkeypatch.setenv("DAGSTER_HOME", "unset")
    del os.environ["DAGSTER_HOME"]


def new_home(config: Path, output_dir: Path | None = None) -> Path:
    os.environ.pop("DAGSTER_HOME", None)
    return dagster_home(config, output_dir)


def test_the_home_lies_beside_the_output(folder: Folder) -> None:
    home = new_home(folder.config)
    assert home.parent == folder.output.parent / ".dagster"
    assert (home / "dagster.yaml").read_text() == (PROJECT / "dagster.yaml").read_text()
    assert os.environ["DAGSTER_HOME"] == str(home)
    assert new_home(folder.config) == home


def test_another_output_folder_has_a_home_beside_it(folder: Folder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "results"
    assert new_home(folder.config, elsewhere).parent == tmp_path / "elsewhere" / ".dagster"


def test_two_configurations_never_share_a_home(folder: Folder) -> None:
    second = folder.config.with_name("second.json")
    second.write_text(folder.config.read_text())
    outputs = [None, folder.output.with_name("other")]
    homes = {new_home(config, output) for config in (folder.config, second) for output in outputs}
    assert len(homes) == 4


def test_a_project_keeps_its_home_when_it_is_moved(folder: Folder, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    config = project / "evaluation_config.json"
    config.write_text('{"fixes_dir": "data", "output_dir": "results"}')
    before = new_home(config)
    moved = project.rename(tmp_path / "moved")
    assert new_home(moved / config.name) == moved / before.relative_to(project)


def test_the_home_lies_in_the_output_if_the_configuration_does(folder: Folder) -> None:
    inside = folder.output / "evaluation_config.json"
    inside.parent.mkdir(exist_ok=True)
    inside.write_text(json.dumps({"fixes_dir": "../fixes", "output_dir": "."}))
    assert new_home(inside).parent == folder.output / ".dagster"


def test_edited_settings_in_the_default_home_are_replaced(folder: Folder) -> None:
    # They may come with a folder from elsewhere, and Dagster imports every class that they name.
    home = new_home(folder.config)
    (home / "dagster.yaml").write_text("run_launcher: {module: from_elsewhere, class: Launcher}\n")
    assert new_home(folder.config) == home
    assert (home / "dagster.yaml").read_text() == (PROJECT / "dagster.yaml").read_text()


def test_a_home_of_the_users_own_wins_and_is_left_as_it_is(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "mine"))
    assert dagster_home(folder.config) == tmp_path / "mine"
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_home_that_cannot_be_made_is_one_line(folder: Folder) -> None:
    (folder.output.parent / ".dagster").write_text("a file")
    with pytest.raises(TouchstoneError, match=r"cannot be created for Dagster's history \(.*\); set DAGSTER_HOME to"):
        new_home(folder.config)


def test_the_ui_shows_the_configuration_that_is_named_then_the_one_here_then_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ui_evaluation(Path("mine.json")) == (Path("mine.json"), None)
    assert ui_evaluation(None) == (PROJECT / "data" / "sample" / "evaluation_config.json", None)
    Path("evaluation_config.json").write_text("{}")
    assert ui_evaluation(None) == (Path("evaluation_config.json"), None)


@pytest.mark.parametrize("place", [".", "..", "history", "dagster.yaml"])
def test_a_home_that_came_with_links_is_refused(folder: Folder, tmp_path: Path, place: str) -> None:
    link = Path(os.path.normpath(new_home(folder.config) / place))
    if link.exists():
        link.rename(tmp_path / "moved")
    link.symlink_to(tmp_path)
    with pytest.raises(TouchstoneError, match=f"{link}: is a link"):
        new_home(folder.config)


def test_the_services_of_the_ui_end_together() -> None:
    others = set(descendants(os.getpid()))
    ended = pytest.raises(TouchstoneError, match=r"^Dagster's daemon ended with exit code 3; see above why$")
    with ended, Services(os.open(os.devnull, os.O_RDONLY)) as services:
        services.start("webserver", "sh", "-c", "sleep 600 & wait")
        services.start("daemon", "sh", "-c", "sleep 0.5; exit 3")
        family = [process for process in descendants(os.getpid()) if process not in others]
        assert len(family) >= 2
        while True:
            services.watch()
    wait_until_gone(family)


def test_the_next_run_ends_a_killed_one_in_the_history() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with dg.DagsterInstance.ephemeral() as instance:
        for process in (ended.pid, os.getpid()):
            tags = {PROCESS: f"{socket.gethostname()}/{process}"}
            instance.create_run_for_job(NOTHING, tags=tags, status=dg.DagsterRunStatus.STARTED)
        _fail_orphaned_runs(instance)
        assert [run.status.value for run in instance.get_runs()] == ["STARTED", "FAILURE"]
