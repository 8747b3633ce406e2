"""`touchstone run` with several configurations: one after the other in one process, which loads Dagster once."""

import os
from pathlib import Path

import pytest

from pipelines.launch import dagster_home
from tests.conftest import Command, Folder, copy_of, small_folder
from touchstone.evaluation import Evaluation, RunOutcome, run


@pytest.fixture
def pair(tmp_path: Path) -> list[Folder]:
    return [small_folder(tmp_path / name) for name in ("a", "b")]


@pytest.mark.services
def test_each_is_published_with_a_dagster_home_of_its_own(
    finished: Folder, tmp_path: Path, touchstone: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = [copy_of(finished, tmp_path / name) for name in ("a", "b")]
    homes = []

    def launch(evaluation: Evaluation, config: Path) -> RunOutcome:
        homes.append(dagster_home(config, evaluation.config.output_dir))
        return run(evaluation)

    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setattr("pipelines.launch.run_evaluation", launch)
    done = touchstone("run", "--config", *(each.config for each in pair), dagster=True)
    assert done.returncode == 0, done.stderr
    assert [home.parents[1] for home in homes] == [each.root for each in pair]
    assert "DAGSTER_HOME" not in os.environ
    assert all(f"results in {each.output}: summary_pass_at_k.csv" in done.stdout for each in pair)
    told = [line for line in done.stdout.splitlines() if line.startswith("touchstone run")]
    assert told == [f"touchstone run --config {each.config}" for each in pair]


def test_the_first_that_fails_is_the_last(pair: list[Folder], touchstone: Command) -> None:
    pair[0].problems("oid\n")
    done = touchstone("run", "--config", *(each.config for each in pair))
    assert done.returncode == 2
    assert not pair[1].output.exists()


def test_a_config_that_cannot_be_read_is_told_before_the_first_run(pair: list[Folder], touchstone: Command) -> None:
    done = touchstone("run", "--config", pair[0].config, pair[1].root / "fixes" / "problems.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert "problems.csv: not valid JSON" in done.stderr
    assert not pair[0].output.exists()


@pytest.mark.parametrize("option", [("--output-dir", "out"), ("--only", "m"), ("--json",)])
def test_what_is_about_one_run_needs_one_config(
    pair: list[Folder], touchstone: Command, option: tuple[str, ...]
) -> None:
    done = touchstone("run", "--config", *(each.config for each in pair), *option)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: --output-dir, --only, --metrics and --json go with one --config")
