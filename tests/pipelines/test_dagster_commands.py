"""Dagster's own commands, from the root of the project and with nothing set, as in any Dagster project.

Each starts a Python of its own for seconds, so they run with the services.
"""

import os
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.conftest import PROJECT, Folder, nightly_but
from tests.pipelines.test_run import HEADER, summary
from tests.ui_server import ASSETS, Server, served
from touchstone.tables import TABLES

DAGSTER = Path(sys.executable).with_name("dagster")
ON_COMMAND_LINE = ["pass_at_k", "*summary_pass_at_k", "attempts+", "tiers*", 'group:"publish"']


def environment(**variables: object) -> dict[str, str]:
    left_out = ("DAGSTER_HOME", "TOUCHSTONE_CONFIG")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {name: str(value) for name, value in variables.items()}


def dagster(*arguments: str, **variables: object) -> None:
    command = [DAGSTER, *arguments]
    done = subprocess.run(command, cwd=PROJECT, env=environment(**variables), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.services
@pytest.mark.parametrize("variables", [{}, {"DAGSTER_HOME": ""}], ids=["no home", "empty home"])
def test_the_definitions_are_valid(variables: dict[str, str]) -> None:
    dagster("definitions", "validate", **variables)


@pytest.mark.services
def test_the_sample_is_materialized_as_a_whole(tmp_path: Path) -> None:
    output, before = tmp_path / "out", set(PROJECT.glob(".tmp_dagster_home_*"))
    dagster("asset", "materialize", "--select", "*", "-m", "pipelines.definitions", TOUCHSTONE_OUTPUT_DIR=output)
    assert (output / "summary_pass_at_k.csv").read_text().count("\n") == 7
    assert set(PROJECT.glob(".tmp_dagster_home_*")) <= before


@pytest.mark.services
@pytest.mark.parametrize("selection", nightly_but(["tiers*"], ON_COMMAND_LINE))
def test_a_part_is_materialized(evaluated: Folder, selection: str) -> None:
    arguments = ["asset", "materialize", "--select", selection, "-m", "pipelines.definitions"]
    dagster(*arguments, TOUCHSTONE_CONFIG=evaluated.config)


def dagster_dev(folder: Folder) -> AbstractContextManager[Server]:
    command = [DAGSTER, "dev", "-w", "workspace.yaml", "--host", "127.0.0.1"]
    return served(command, environment(TOUCHSTONE_CONFIG=folder.config), PROJECT, folder.root / "dagster_dev.log")


@pytest.mark.services
def test_dagster_dev_answers(folder: Folder) -> None:
    with dagster_dev(folder) as server:
        assert len(server.ask(ASSETS)["assetNodes"]) == len(TABLES) + 5


@pytest.mark.nightly
def test_a_published_run_whose_check_failed_is_repeated_from_its_failure(evaluated: Folder) -> None:
    evaluated.fixes("n", b"\xff")
    with dagster_dev(evaluated) as server:
        failed = server.materialize()
        assert server.finished() == {failed: "FAILURE"}
        assert set(summary(evaluated)) == {"m"}
        evaluated.fixes("n", HEADER + "a,1,true\n")
        again = server.re_execute_from_failure(failed)
        assert server.finished() == {failed: "FAILURE", again: "SUCCESS"}
        assert set(summary(evaluated)) == {"m", "n"}
        alone = server.materialize("pass_at_k")
        assert server.finished()[alone] == "SUCCESS"
