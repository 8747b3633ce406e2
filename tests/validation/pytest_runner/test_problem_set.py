"""Tests as people write them: every right fix passes, every wrong one fails, and nothing is left undecided."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.validation.pytest_runner.problem_set import PROBLEMS
from touchstone.errors import TouchstoneError
from touchstone.validation.outcomes import outcome_rows
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Targets
from touchstone.validation_config import LimitSettings, PythonProgram, ValidationSettings

Rows = dict[tuple[str, str, str], dict[str, Any]]


def judged(runner: str, folder: Path) -> Iterator[Rows]:
    """The outcome of every fix in the set, by problem, model and iteration."""
    for problem in PROBLEMS:
        problem.write(folder / "clones")
    settings = ValidationSettings(
        python=PythonProgram(runner=runner, lint=False), workers=1, limits=LimitSettings(seconds=60)
    )
    attempts = [attempt for problem in PROBLEMS for attempt in problem.attempts]
    targets = Targets(folder / "clones", settings).find([problem.row for problem in PROBLEMS])
    with ValidationSession(settings, folder / "cache", folder / "scratch") as session:
        try:
            rows = outcome_rows(attempts, targets, session)
        except TouchstoneError as error:
            pytest.skip(str(error))
    yield {(row["oid"], row["model"], row["iteration_id"]): row for row in rows}


@pytest.fixture(scope="module")
def auto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rows]:
    yield from judged("auto", tmp_path_factory.mktemp("auto"))


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rows]:
    yield from judged("isolated", tmp_path_factory.mktemp("isolated"))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_right_fixes_pass_and_wrong_ones_fail(problem: Any, auto: Rows) -> None:
    rows = [row for row in auto.values() if row["oid"] == problem.name]
    for row in rows:
        assert row["passed"] is (row["model"] == "right"), row
    assert {row["runner"] for row in rows} == {problem.runner}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_forced_isolated_runner_says_what_it_cannot_judge(problem: Any, isolated: Rows) -> None:
    rows = [row for row in isolated.values() if row["oid"] == problem.name]
    for row in rows:
        if problem.runner == "isolated":
            assert row["passed"] is (row["model"] == "right"), row
        else:
            assert (row["status"], row["passed"]) == ("validator_unavailable", None)
            assert "isolated runner cannot judge" in row["diagnostics"]
