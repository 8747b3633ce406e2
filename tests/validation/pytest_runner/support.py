"""One job for the pytest runner, from the texts of its files."""

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from touchstone.config.validation import PythonProgram
from touchstone.errors import TouchstoneError
from touchstone.validation.judging.known_tests import hold_to_known_tests
from touchstone.validation.protocol import Job, Problem, Report, Tree
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.probe import choose_sandbox
from touchstone.validation.validators.python import PythonValidator

NOWHERE = Path("/nonexistent")


def warm_validator(
    scratch: Path, *, doctest: bool = False, controls: bool = True, sandbox: str = "auto"
) -> Iterator[PythonValidator]:
    """A validator whose workers stay warm, closed at the end; the test is skipped if there is no sandbox."""
    try:
        chosen = choose_sandbox(scratch, sandbox)
    except TouchstoneError as error:
        pytest.skip(str(error))
    settings = PythonProgram(lint=False, doctest=doctest)
    made = PythonValidator(chosen, Limits(seconds=20.0), settings, controls=controls)
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
    content = {name: textwrap.dedent(text).encode() for name, text in files.items()}
    tree = Tree(NOWHERE, tuple(sorted(content)), content)
    (report,) = validator.validate([Job(Problem("p", filename, NOWHERE, **problem), tree, is_fix)])
    return report


def judged(
    validator: PythonValidator,
    before: str,
    fix: str,
    tests: Mapping[str, str],
    reference: str | None = None,
    **problem: Any,
) -> Report:
    """The report on a fix of `solution.py`, held to what is known of the problem."""
    baseline = run_pytest(validator, {"solution.py": before, **tests}, is_fix=False, **problem)
    solved = None
    if reference is not None:
        solved = run_pytest(validator, {"solution.py": reference, **tests}, is_fix=False, **problem)
    return hold_to_known_tests(run_pytest(validator, {"solution.py": fix, **tests}, **problem), baseline, solved)
