"""Python tests on a candidate, through the real validator in a real sandbox.

The tests run in one process and the candidate in another; what is written in these tests as one program must behave
like one.
"""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from touchstone.validation.protocol import Job, Problem, Report, Tree
from touchstone.validation.validators.python import PythonValidator

Run = Callable[..., Report]


def job_of(files: dict[str, str | bytes], filename: str, directory: str = "", **problem: Any) -> Job:
    root = Path("/nonexistent")
    contents = {path: _bytes(text) for path, text in files.items()}
    return Job(Problem("p", filename, root, directory, **problem), Tree(root, tuple(sorted(contents)), contents))


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else textwrap.dedent(text).encode()


def report_on(validator: PythonValidator, job: Job) -> Report:
    (report,) = validator.validate([job])
    return report


def words(report: Report) -> dict[str | None, str]:
    return {one.test: one.detail for one in report.diagnostics}


def assert_all_pass(report: Report, *names: str) -> None:
    assert (report.status, report.diagnostics, report.note) == ("passed", (), "")
    assert report.tests == dict.fromkeys(names, True)
    assert (report.compiled, report.consistent, report.fidelity) == (True, True, "full")
