"""Warm validators, shared by all tests of the runner."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.validation.isolated_runner.support import Run, job_of, report_on
from touchstone.errors import TouchstoneError
from touchstone.validation.protocol import Report
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.probe import choose_sandbox
from touchstone.validation.validators.python import PythonSettings, PythonValidator


def made(scratch: Path, wanted: str, limits: Limits) -> Iterator[PythonValidator]:
    try:
        sandbox = choose_sandbox(scratch, wanted)
    except TouchstoneError as error:
        pytest.skip(str(error))
    validator = PythonValidator(sandbox, limits, PythonSettings(lint=False))
    yield validator
    validator.close()


@pytest.fixture(scope="package")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PythonValidator]:
    """The one that most tests share: its workers stay warm."""
    yield from made(tmp_path_factory.mktemp("sandbox"), "auto", Limits(seconds=20.0))


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[PythonValidator]:
    yield from made(tmp_path, "auto", Limits(seconds=0.7))


@pytest.fixture
def in_landlock(tmp_path: Path) -> Iterator[PythonValidator]:
    yield from made(tmp_path, "landlock", Limits(seconds=20.0))


@pytest.fixture
def run(validator: PythonValidator) -> Run:
    """A candidate in solution.py under the tests in test_solution.py."""

    def validate(candidate: str, tests: str, /, **more: tuple[str, ...]) -> Report:
        return report_on(
            validator, job_of({"solution.py": candidate, "test_solution.py": tests}, "solution.py", **more)
        )

    return validate
