"""Validates Python fixes with their tests, isolated or with pytest, as chosen for the problem (`python_runner`).

Isolated, the tests run in one warm sandbox and the candidate's code in another. The report comes only from the tests'
side, over a pipe that the candidate cannot reach. What runs inside these sandboxes belongs in
`touchstone.validation.isolated_runner`; running pytest belongs in `pytest_tests`.
"""

import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from touchstone.progress import report_warning
from touchstone.validation.files.file_identity import content_identity, packages_identity
from touchstone.validation.isolated_runner import preload
from touchstone.validation.isolated_runner.sides import divide, unmodified_text
from touchstone.validation.protocol import Availability, Diagnostic, Job, Problem, Report, Tree
from touchstone.validation.sandbox.clock import LimitExceeded
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.interpreters import Interpreter, editable_installs, interpreter, with_environment
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.sandbox.warm_worker import WarmWorker, WorkerLostError, read_until_closed
from touchstone.validation.validators import lint
from touchstone.validation.validators.common import stopped_at, unavailable
from touchstone.validation.validators.pytest_tests import PytestTests, packages_folder, pytest_available
from touchstone.validation.validators.worker_limits import exceeded_limit, job_clock
from touchstone.validation.validators.worker_pool import WorkerPool

FULL = "full"
ISOLATED, PYTEST = "isolated", "pytest"
_TEST_FILES = ("test_*.py", "*_test.py")
_MAX_TREE_BYTES = 16 * 2**20
_MAX_REPORT_BYTES = 4 * 2**20
# Workers of two environments, each with and without large modules.
_WARM_PAIRS = 4


@dataclass(frozen=True)
class PythonSettings:
    """The interpreter for candidates (default: this one, without its packages), and whether lint and doctests count."""

    interpreter: Path | None = None
    lint: bool = True
    doctest: bool = False


class PythonValidator:
    """Runs a problem's tests against its tree."""

    name = "python"

    def __init__(self, sandbox: SandboxRunner, limits: Limits, settings: PythonSettings) -> None:
        self._sandbox, self._limits, self._settings = sandbox, limits, settings
        self.version = interpreter(settings.interpreter).version
        self._pairs = WorkerPool(self._worker_pair, _WARM_PAIRS)
        self._pytest = PytestTests(sandbox, settings.doctest)
        # Hashes of programs and package folders, each computed once.
        self._installed: dict[Path, str] = {}

    def _worker_pair(self, key: tuple[Interpreter, bool]) -> "_WorkerPair":
        python, heavy = key
        serve = "serve_heavy" if heavy else "serve"
        where = "touchstone.validation.isolated_runner"
        candidate = f"{where}.candidate:{serve}"
        return _WorkerPair(
            WarmWorker(self._sandbox, f"{where}.runner:{serve}", self._limits, paths=[packages_folder()]),
            WarmWorker(self._sandbox, candidate, self._limits, python=python, paths=python.packages),
        )

    def _python(self, problem: Problem) -> Interpreter:
        """The interpreter of a problem's fixes, with the packages that they can import."""
        configured = interpreter(self._settings.interpreter)
        return configured if problem.environment is None else with_environment(configured, problem.environment)

    def probe(self) -> Availability:
        """Whether a right answer passes and a wrong one fails."""
        right, wrong = [self._validate_one(_sample(answer)).status for answer in (b"1", b"2")]
        self.close()
        if (right, wrong) == ("passed", "failed"):
            if missing := editable_installs(interpreter(self._settings.interpreter)):
                names = f"{self._settings.interpreter}: {', '.join(missing)}"
                report_warning(f"{names}: editable installs are not visible in the sandbox; install the package itself")
            return Availability(True, f"Python {self.version}, {pytest_available().detail}")
        return Availability(False, f"Python {self.version} finds a right answer {right} and a wrong one {wrong}")

    def fidelity(self, problem: Problem) -> str:
        """Always full: the tests run."""
        return FULL

    def identity(self, problem: Problem) -> Mapping[str, Any]:
        """The interpreters and packages of both sides, the unmodified file, and the linter."""
        unmodified = hashlib.sha256((unmodified_text(problem) or "").encode()).hexdigest()
        linter = lint.identity() if self._settings.lint else None
        candidate, tests = self._python(problem), interpreter()
        programs = dict.fromkeys((candidate.program, tests.program), content_identity)
        wanted = programs | dict.fromkeys((packages_folder(), *candidate.packages), packages_identity)
        for path in wanted.keys() - self._installed.keys():
            self._installed[path] = wanted[path](path)
        installed = {str(path): self._installed[path] for path in wanted}
        return {"installed": installed, "unmodified": unmodified, "lint": linter}

    def validate(self, jobs: Sequence[Job]) -> Iterator[Report]:
        """Lint all files in one call, then run the tests job by job."""
        texts = [job.tree.read(job.problem.path) for job in jobs]
        counts: list[int | None] = [None] * len(jobs)
        if self._settings.lint:
            counts = lint.count_warnings(self._sandbox, texts)
        for job, count in zip(jobs, counts, strict=True):
            started = time.monotonic()
            report = self._validate_one(job)
            warnings = lint.of_report(count, report.compiled)
            yield replace(report, lint_warnings=warnings, duration_seconds=time.monotonic() - started)

    def close(self) -> None:
        """Stop all workers."""
        self._pairs.close()
        self._pytest.close()

    def _validate_one(self, job: Job) -> Report:
        tests = find_tests(job)
        if PurePosixPath(job.problem.filename).name == "conftest.py" or job.problem.filename in {
            os.path.normpath(name) for name in tests
        }:
            return Report("unsafe_input", FULL, note=f"{job.problem.path} is itself a test")
        if not tests:
            return Report("no_report", FULL, note=f"there is no test ({' or '.join(_TEST_FILES)})")
        below = PurePosixPath(job.problem.working_directory)
        if missing := [name for name in tests if str(below / name) not in job.tree.files]:
            return Report("no_report", FULL, note=f"the test {missing[0]} is not there")
        contents = {path: job.tree.read(path) for path in job.tree.files}
        size = sum(map(len, contents.values()))
        if size > _MAX_TREE_BYTES:
            return Report("validator_unavailable", FULL, note=f"the tree has {size:,} bytes, too many to test")
        files = {path: content.decode("utf-8", "surrogateescape") for path, content in contents.items()}
        if job.problem.runner == PYTEST:
            available = pytest_available()
            if not available.usable:
                return unavailable(available, FULL)
            return self._pytest.run(job, files, tests, self._limits, self._python(job.problem))
        heavy = preload.uses_heavy_modules(text for path, text in files.items() if path.endswith(".py"))
        pair = self._pairs.get((self._python(job.problem), heavy))
        for attempt in (1, 2):
            try:
                return self._run(pair, job, files, tests)
            except WorkerLostError as error:
                # The other worker may have started the job; neither may continue with it.
                pair.close()
                # The first time, something may have killed the worker between jobs; the second time it is the sandbox.
                if attempt == 2:
                    return Report("sandbox_error", FULL, note=str(error))
            except _NoExitCodeError as error:
                # The machine's doing the first time; the second time a failure, as a fix may have a part in it.
                pair.close()
                if attempt == 2:
                    return error.report
        raise AssertionError

    def _run(self, pair: "_WorkerPair", job: Job, files: Mapping[str, str], tests: Sequence[str]) -> Report:
        problem = job.problem
        sides = divide(problem, files, tests, job.tree.changed)
        near, far = socket.socketpair()
        reads, writes = os.pipe()
        try:
            with near, far:
                pair.candidate.job(sides.candidate, [far.fileno()])
                pair.tests.job(sides.tests, [near.fileno(), writes])
            os.close(writes)
            writes = -1
            workers = [pair.candidate, pair.tests]
            clock = job_clock(workers, self._limits)
            answer, exceeded = read_until_closed(
                reads, _MAX_REPORT_BYTES, lambda: exceeded_limit(workers, self._limits) or clock.exceeded()
            )
        finally:
            os.close(reads)
            if writes >= 0:
                os.close(writes)
        if exceeded is not None:
            pair.close()
            return build_report(problem, answer, exceeded, exit_code=None)
        pair.tests.ask_end()
        pair.candidate.ask_end(at_once=True)
        exit_code = pair.tests.ended()["exit_code"]
        full = pair.candidate.ended()["disk_full"]
        report = build_report(problem, answer, LimitExceeded("disk_limit") if full else None, exit_code)
        if exit_code is None:
            raise _NoExitCodeError(report)
        return report


class _NoExitCodeError(Exception):
    """The tests' worker was lost after the job, so how the tests ended is unknown."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.note)
        self.report = report


def _sample(answer: bytes) -> Job:
    files = {"one.py": b"def one():\n    return " + answer + b"\n"}
    files["test_one.py"] = b"from one import one\n\n\ndef test_one():\n    assert one() == 1\n"
    return Job(Problem("probe", "one.py", Path("/")), Tree(Path("/"), tuple(sorted(files)), files))


@dataclass(frozen=True)
class _WorkerPair:
    """One warm worker for tests and one for candidates."""

    tests: WarmWorker
    candidate: WarmWorker

    def close(self) -> None:
        """Stop both workers."""
        self.tests.close()
        self.candidate.close()


def find_tests(job: Job) -> tuple[str, ...]:
    """The test files, relative to the working directory: those the problem names, else all that match a pattern."""
    if job.problem.tests:
        return tuple(dict.fromkeys(job.problem.tests))
    below = PurePosixPath(job.problem.working_directory)
    inside = [str(PurePosixPath(path).relative_to(below)) for path in job.tree.within(job.problem.working_directory)]
    return tuple(path for path in inside if any(fnmatch(PurePosixPath(path).name, form) for form in _TEST_FILES))


def build_report(problem: Problem, answer: bytes, exceeded: LimitExceeded | None, exit_code: int | None) -> Report:
    """Build the report from the lines of the tests' side. A test that did not report has failed."""
    lines = [json.loads(line) for line in answer.splitlines() if line.startswith(b"{") and line.endswith(b"}")]
    told = {key: line for line in lines for key in line}
    results = {line["test"]: line for line in lines if "test" in line}
    collected: list[str] = next((line["collected"] for line in lines if "collected" in line), [])
    names = list(dict.fromkeys([*collected, *problem.expected_tests]))
    outcomes = {name: bool(results.get(name, {}).get("passed")) for name in names}
    diagnostics = [_broken(problem, told["broken"])] if "broken" in told else []
    if "broken" not in told:
        diagnostics += [_failure(name, results.get(name)) for name, good in outcomes.items() if not good]
    compiled = None if not lines else "imported" in told
    doubt = next((line["cannot_judge"] for line in lines if line.get("cannot_judge")), "")
    report = Report("failed", FULL, tuple(diagnostics), compiled=compiled, tests=outcomes, cannot_judge=doubt)
    if exceeded is not None:
        return stopped_at(exceeded, report)
    if any(line.get("memory") for line in lines):
        return replace(report, status="memory_limit")
    if "done" not in told:
        return replace(report, status="no_report", note="the tests ended before they had reported")
    if exit_code != 0:
        return replace(report, status="no_report", consistent=False, note=f"the tests ended with {exit_code}")
    if not diagnostics and not outcomes:
        return replace(report, status="no_report", note="no test was found in the test files")
    note = f"the isolated runner may be wrong about a test: {doubt}" if doubt else ""
    return replace(report, status="failed" if diagnostics else "passed", note=note)


def _broken(problem: Problem, line: Mapping[str, Any]) -> Diagnostic:
    return Diagnostic("error", line["kind"], line["broken"], problem.path, line.get("line"), line.get("line"))


def _failure(name: str, result: Mapping[str, Any] | None) -> Diagnostic:
    message = "it did not report" if result is None else result.get("message", "")
    return Diagnostic("error", f"test failed: {name}", message, test=name)
