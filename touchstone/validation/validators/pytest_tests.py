"""Runs a problem's tests with pytest in a warm sandbox, and builds the report from the lines that it writes.

What runs inside the sandbox belongs in `touchstone.validation.pytest_runner`.
"""

import functools
import importlib.metadata
import os
import re
import secrets
import sysconfig
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from touchstone.validation.isolated_runner.sides import unmodified_text
from touchstone.validation.protocol import Availability, Diagnostic, Job, Problem, Report
from touchstone.validation.pytest_runner.async_plugins import mentioned_plugins
from touchstone.validation.pytest_runner.channel import read_lines
from touchstone.validation.sandbox.backends import Borrowed, Interpreter, interpreter
from touchstone.validation.sandbox.clock import LimitExceeded
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.sandbox.warm_worker import WarmWorker, WorkerLostError, read_until_closed
from touchstone.validation.validators.common import stopped_at
from touchstone.validation.validators.worker_limits import exceeded_limit, job_clock
from touchstone.validation.validators.worker_pool import WorkerPool

FULL = "full"
_MAX_REPORT_BYTES = 16 * 2**20
_NEUTRAL = ("skipped", "xfailed", "xpassed")
# Workers of two environments, each with and without numpy.
_WARM_WORKERS = 4
_PYTEST = ("pytest", "_pytest", "pluggy", "iniconfig")
_USED_BY_PYTEST = ("packaging", "py", "pygments")
# Where pytest looks for its configuration, and how its part of a shared file begins.
CONFIGURATION = {
    "pytest.ini": "",
    ".pytest.ini": "",
    "pytest.toml": "",
    ".pytest.toml": "",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}
_TRACING = re.compile(r"settrace|setprofile|monitoring|[Pp]rofile\b|\b[bp]db\b|breakpoint|\btrace\b|coverage|doctest")
_WORKER = "touchstone.validation.pytest_runner.worker"


class PytestTests:
    """Warm workers that run pytest: for each environment one for code that mentions numpy and one for the rest."""

    def __init__(self, sandbox: SandboxRunner, doctest: bool) -> None:
        self._sandbox, self._doctest = sandbox, doctest
        self._workers = WorkerPool(self._worker, _WARM_WORKERS)

    def close(self) -> None:
        """Stop the workers."""
        self._workers.close()

    def run(
        self, job: Job, files: Mapping[str, str], tests: Sequence[str], limits: Limits, python: Interpreter
    ) -> Report:
        """The report on one job. A worker that was lost between jobs is replaced once."""
        for _ in range(2):
            try:
                return self._run(job, files, tests, limits, python)
            except WorkerLostError as error:
                lost = error
        return Report("sandbox_error", FULL, note=str(lost))

    def _worker(self, key: tuple[Interpreter, bool, Limits]) -> WarmWorker:
        python, numpy, limits = key
        serve = f"{_WORKER}:{'serve_with_numpy' if numpy else 'serve'}"
        if python == interpreter():
            return WarmWorker(self._sandbox, serve, limits, python=python, paths=[packages_folder()])
        # The runner depends on pytest's internals, so it brings its own pytest into every environment.
        pytest = Borrowed(packages_folder(), _PYTEST, _USED_BY_PYTEST)
        return WarmWorker(self._sandbox, serve, limits, python=python, paths=python.packages, borrowed=pytest)

    def _run(
        self, job: Job, files: Mapping[str, str], tests: Sequence[str], limits: Limits, python: Interpreter
    ) -> Report:
        mentions_numpy = any("numpy" in text for path, text in files.items() if path.endswith(".py"))
        worker = self._workers.get((python, mentions_numpy, limits))
        token = secrets.token_hex(16)
        payload = {
            "files": files,
            "directory": job.problem.working_directory,
            "fix": job.problem.path,
            "names": sorted(_importable_names(job, tests)),
            "arguments": self._arguments(job.problem, tests),
            "plugins": _plugins(job, files, tests),
            "may_trace": self._doctest or _may_trace(job, files, tests),
            "token": token,
        }
        reads, writes = os.pipe()
        try:
            worker.job(payload, [writes])
            os.close(writes)
            writes = -1
            clock = job_clock([worker], limits)
            answer, exceeded = read_until_closed(
                reads, _MAX_REPORT_BYTES, lambda: exceeded_limit([worker], limits) or clock.exceeded()
            )
        finally:
            os.close(reads)
            if writes >= 0:
                os.close(writes)
        if exceeded is not None:
            worker.close()
            return build_report(job.problem, tests, answer, token, exceeded, None)
        worker.ask_end()
        ended = worker.ended()
        full = LimitExceeded("disk_limit") if ended["disk_full"] else None
        return build_report(job.problem, tests, answer, token, full, ended["exit_code"])

    def _arguments(self, problem: Problem, tests: Sequence[str]) -> list[str]:
        doctest = ["--doctest-modules", f"./{problem.filename}"] if self._doctest else []
        # Of a failure only its message is read, so no source lines are looked up for it.
        options = ["-q", "--tb=no", "--continue-on-collection-errors"]
        return [*options, *doctest, *(f"./{os.path.normpath(name)}" for name in tests)]


@functools.cache
def packages_folder() -> Path:
    """The packages beside Touchstone. Tests can import them, and with pytest fixes too, unless configured otherwise."""
    return Path(sysconfig.get_path("purelib"))


def pytest_available() -> Availability:
    """Whether pytest is installed beside Touchstone."""
    try:
        return Availability(True, f"pytest {importlib.metadata.version('pytest')}")
    except importlib.metadata.PackageNotFoundError:
        return Availability(False, "pytest is not installed", "pip install pytest")


def _plugins(job: Job, files: Mapping[str, str], tests: Sequence[str]) -> list[str]:
    """The plugins that the problem's own files mention: its tests, conftest files and pytest's configuration."""
    names = {"conftest.py", *CONFIGURATION}
    own = _paths(job.problem, tests)
    return mentioned_plugins(text for path, text in files.items() if path in own or PurePosixPath(path).name in names)


def _may_trace(job: Job, files: Mapping[str, str], tests: Sequence[str]) -> bool:
    """Whether the problem itself, without the fix, may trace or profile its process, as doctest does."""
    own = _paths(job.problem, tests)
    texts = (
        text if path in own or path not in job.tree.changed else unmodified_text(job.problem, path)
        for path, text in files.items()
        if path.endswith(".py") or PurePosixPath(path).name in CONFIGURATION
    )
    return any(_TRACING.search(text) for text in texts if text)


def _paths(problem: Problem, names: Sequence[str]) -> set[str]:
    return {os.path.normpath(PurePosixPath(problem.working_directory) / name) for name in names}


def _importable_names(job: Job, tests: Sequence[str]) -> set[str]:
    """The first part of every module name that the job's own files can be imported by."""
    below = PurePosixPath(job.problem.working_directory)
    places = {below, PurePosixPath(), below / "src", *(below / PurePosixPath(name).parent for name in tests)}
    found = set()
    for path in map(PurePosixPath, job.tree.files):
        for place in places:
            if path.suffix == ".py" and path.is_relative_to(place):
                found.add(PurePosixPath(path.relative_to(place).parts[0]).stem)
    return found


def build_report(
    problem: Problem,
    tests: Sequence[str],
    answer: bytes,
    token: str,
    exceeded: LimitExceeded | None,
    exit_code: int | None,
) -> Report:
    """Build the report from pytest's lines. A test that did not report, or did so twice, has failed."""
    lines, foreign = read_lines(answer, token)
    only = os.path.normpath(tests[0]) if len(tests) == 1 else None
    results = _Results(problem, lines, only)
    report = Report(
        "failed",
        FULL,
        tuple(results.diagnostics()),
        compiled=results.compiled if lines else None,
        tests=results.tests,
        skipped=tuple(results.skipped),
        note=results.note,
    )
    if exceeded is not None:
        return stopped_at(exceeded, report)
    if foreign or results.tampered:
        what = f": {results.tampered}" if results.tampered else ""
        note = f"the tests, pytest or its results were tampered with{what}"
        return replace(report, status="no_report", consistent=False, note=note)
    if results.unusable:
        return replace(report, status="validator_unavailable", note=f"pytest cannot be started: {results.unusable}")
    if results.needs:
        return replace(report, status="validator_unavailable", note=f"the tests cannot be run: {results.needs}")
    if any(line.get("memory") for line in lines):
        return replace(report, status="memory_limit")
    end = next((line for line in lines if "done" in line), None)
    if end is None or not end["done"]:
        crashed = "".join(f": {line['crashed']}" for line in lines if "crashed" in line)
        return replace(report, status="no_report", note=f"the tests ended before they had reported{crashed}")
    if exit_code != 0:
        return replace(report, status="no_report", consistent=False, note=f"the tests ended with {exit_code}")
    if not report.diagnostics and not report.tests:
        if report.skipped or any("skipped_file" in line for line in lines):
            return replace(report, status="validator_unavailable", note="every test was skipped")
        return replace(report, status="no_report", note="no test was found in the test files")
    failed_there = results.failed_in_pytest
    if failed_there != (end["status"] == 1):
        return replace(report, status="no_report", consistent=False, note="pytest's exit and its results disagree")
    return replace(report, status="failed" if report.diagnostics else "passed")


class _Results:
    """The lines of one run, by test id."""

    def __init__(self, problem: Problem, lines: Sequence[Mapping[str, Any]], only: str | None) -> None:
        self._problem, self._lines, self._only = problem, lines, only
        self._by_id = {self._short(line["test"]): line for line in lines if "test" in line}
        self._times = Counter(self._short(line["test"]) for line in lines if "test" in line)
        collected = [self._short(name) for line in lines for name in line.get("collected", [])]
        self._twice = {name for name, count in Counter(collected).items() if count > 1}
        expected = [self._short(name) for name in problem.expected_tests]
        self._broken = {self._short(line["broken"]): line["message"] for line in lines if "broken" in line}
        names = list(dict.fromkeys([*collected, *self._by_id, *expected]))
        self.skipped = [name for name in names if self._is_neutral(name)]
        self.tests = {name: self._passed(name) for name in names if name not in self.skipped}
        self.tampered = next((line["tampered"] for line in lines if line.get("tampered")), None)
        self.unusable = next((line["unusable"] for line in lines if "unusable" in line), None)
        judged = {self._short(name) for name in problem.judged_tests}
        needs = (line for line in lines if "needs" in line)
        counted = (line for line in needs if not judged or line["of"] is None or self._short(line["of"]) in judged)
        self.needs = next((line["needs"] for line in counted), None)
        ignored = [option for line in lines for option in line.get("ignored", [])]
        self.note = f"ignored in addopts: {', '.join(ignored)}" if ignored else ""
        self.compiled = not self._broken

    def _short(self, name: str) -> str:
        """The id without its file if there is only one."""
        file, separator, rest = name.partition("::")
        return rest if separator and os.path.normpath(file) == self._only else name

    def _is_neutral(self, name: str) -> bool:
        line = self._by_id.get(name, {})
        # Only the tests may skip, not the code that they test.
        return (
            self._times[name] == 1
            and line.get("outcome") in _NEUTRAL
            and self._problem.filename not in line.get("where", [])
        )

    def _passed(self, name: str) -> bool:
        once = self._times[name] == 1 and name not in self._twice
        return once and self._by_id[name]["outcome"] == "passed"

    @property
    def failed_in_pytest(self) -> bool:
        """Whether pytest's own exit code must be 1."""
        return bool(self._broken) or any(line["outcome"] == "failed" for line in self._by_id.values())

    def diagnostics(self) -> list[Diagnostic]:
        """An error for every file that could not be collected and every test that did not pass."""
        found = [
            Diagnostic("error", f"not collected: {name}", message, test=name) for name, message in self._broken.items()
        ]
        for line in self._lines:
            if "skipped_file" in line and line["where"] == self._problem.filename:
                name = self._short(line["skipped_file"])
                found.append(Diagnostic("error", f"not collected: {name}", "skipped by the fix", test=name))
        for name, good in self.tests.items():
            if not good and not (self._broken and name not in self._by_id):
                found.append(Diagnostic("error", f"test failed: {name}", self._message(name), test=name))
        return found

    def _message(self, name: str) -> str:
        line = self._by_id.get(name)
        if line is None:
            return "it did not report"
        if self._times[name] > 1 or name in self._twice:
            return "it reported more than once"
        return str(line["message"]) if line["outcome"] == "failed" else f"skipped by the fix: {line['message']}"
