"""One job for the pytest runner, from the texts of its files."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from tests.validation.attacks.arena import job_of
from touchstone.config.validation import PythonProgram
from touchstone.errors import TouchstoneError
from touchstone.validation.judging.known_tests import hold_to_known_tests
from touchstone.validation.protocol import Report
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.runner import SandboxRunner, choose_sandbox
from touchstone.validation.validators.python import PythonValidator

_BASELINES: WeakKeyDictionary[PythonValidator, dict[str, Report]] = WeakKeyDictionary()


def sandbox_or_skip(scratch: Path, wanted: str = "auto") -> SandboxRunner:
    """A sandbox that works here; the test is skipped if there is none."""
    try:
        return choose_sandbox(scratch, wanted)
    except TouchstoneError as error:
        pytest.skip(f"no sandbox works on this machine: {error}")


def warm_validator(
    scratch: Path,
    sandbox: str = "auto",
    *,
    controls: bool = True,
    limits: Limits = Limits(seconds=30.0, wall_seconds=600.0),  # noqa: B008
    **program: Any,
) -> Iterator[PythonValidator]:
    """A validator whose workers stay warm, closed at the end. A busy machine is not what its tests are about."""
    settings = PythonProgram(lint=False, **program)
    made = PythonValidator(sandbox_or_skip(scratch, sandbox), limits, settings, controls=controls)
    yield made
    made.close()


def run_pytest(
    validator: PythonValidator,
    files: Mapping[str, str],
    filename: str = "solution.py",
    *,
    is_fix: bool = True,
    **problem: Any,
) -> Report:
    """The report on files that exist only in memory."""
    (report,) = validator.validate([job_of(files, filename, is_fix=is_fix, **problem)])
    return report


def judged(validator: PythonValidator, before: str, fix: str, tests: Mapping[str, str]) -> Report:
    """The report on a fix of `solution.py`, held to what is known of the problem, which is validated once."""
    baselines, key = _BASELINES.setdefault(validator, {}), repr((before, tests))
    if key not in baselines:
        baselines[key] = run_pytest(validator, {"solution.py": before, **tests}, is_fix=False)
    return hold_to_known_tests(run_pytest(validator, {"solution.py": fix, **tests}), baselines[key], None)
