"""Validates Python fixes with the problem's own tests, run by pytest in a warm sandbox, one forked process per job.

Tests that pass are run once more as negative controls. What runs inside the sandbox belongs in
`touchstone.validation.pytest_runner`; what its results mean for a fix belongs in `judging.known_tests`.
"""

import functools
import importlib.metadata
import os
import secrets
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from touchstone.config.validation import PythonProgram
from touchstone.progress import report_warning
from touchstone.validation.files.file_identity import content_identity, packages_identity
from touchstone.validation.judging.verdicts import only_judged
from touchstone.validation.protocol import Availability, Job, Problem, Report, TestControl
from touchstone.validation.pytest_runner.plugins import mentioned_plugins
from touchstone.validation.reach import PYTEST_SETTINGS, SOURCE_FOLDERS
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.interpreters import Interpreter, editable_installs, interpreter, with_environment
from touchstone.validation.sandbox.runner import Borrowed, JobAnswer, SandboxRunner, WarmWorker, WorkerLostError
from touchstone.validation.validators import lint
from touchstone.validation.validators.common import FULL, sample, source_folders
from touchstone.validation.validators.pytest_report import build_report, control_results

_TEST_FILES = ("test_*.py", "*_test.py")
_CONFIGURING = {"conftest.py", "setup.py", *PYTEST_SETTINGS}
_MAX_TREE_BYTES = 16 * 2**20
_MAX_REPORT_BYTES = 16 * 2**20
# Workers of two environments, each with and without numpy.
_WARM_WORKERS = 4
_PYTEST = ("pytest", "_pytest", "pluggy", "iniconfig")
_USED_BY_PYTEST = ("packaging", "py", "pygments")
_WORKER = "touchstone.validation.pytest_runner.worker"
# How often a control that accuses a fix, and the tests themselves, must give the same result again.
_CONFIRMATIONS = 2
# How many times the time of its tests a control may take before it is said to hang.
_HANGING = 10
PYTEST_LIMITS = Limits(seconds_per_test=0.1)


class PythonValidator:
    """Runs a problem's tests against its tree, and those that pass as negative controls.

    `control_failures`: controls also if some tests failed, because the verdict may forgive that.
    """

    name = "python"

    def __init__(
        self,
        sandbox: SandboxRunner,
        limits: Limits,
        settings: PythonProgram,
        *,
        controls: bool = True,
        control_failures: bool = False,
    ) -> None:
        self._sandbox, self._limits, self._settings = sandbox, limits, settings
        self._controls, self._control_failures = controls, control_failures
        self.version = interpreter(settings.interpreter).version
        # By interpreter, with or without numpy; the most recently used one is last.
        self.workers: dict[tuple[Interpreter, bool], WarmWorker] = {}
        # Hashes of programs and package folders, each computed once.
        self._installed: dict[Path, str] = {}

    def _worker(self, python: Interpreter, numpy: bool) -> WarmWorker:
        """A warm worker. If there are too many, the least recently used one is closed."""
        worker = self.workers.pop((python, numpy), None) or self._new_worker(python, numpy)
        self.workers[python, numpy] = worker
        while len(self.workers) > _WARM_WORKERS:
            self.workers.pop(next(iter(self.workers))).close()
        return worker

    def _new_worker(self, python: Interpreter, numpy: bool) -> WarmWorker:
        serve = f"{_WORKER}:{'serve_with_numpy' if numpy else 'serve'}"
        if python == interpreter():
            return WarmWorker(self._sandbox, serve, self._limits, python=python, paths=[packages_folder()])
        # The runner depends on pytest's internals, so it brings its own pytest into every environment.
        pytest = Borrowed(packages_folder(), _PYTEST, _USED_BY_PYTEST)
        return WarmWorker(self._sandbox, serve, self._limits, python=python, paths=python.packages, borrowed=pytest)

    def _python(self, problem: Problem) -> Interpreter:
        """The interpreter of a problem, with the packages that its files can import."""
        configured = interpreter(self._settings.interpreter)
        return configured if problem.environment is None else with_environment(configured, problem.environment)

    def probe(self) -> Availability:
        """Whether a right answer passes and a wrong one fails."""
        right, wrong = [self._validate_one(_sample(answer)).status for answer in (b"1", b"2")]
        if (right, wrong) == ("passed", "failed"):
            if missing := editable_installs(interpreter(self._settings.interpreter)):
                names = f"{self._settings.interpreter}: {', '.join(missing)}"
                report_warning(f"{names}: editable installs are not visible in the sandbox; install the package itself")
            return Availability(True, f"Python {self.version}, pytest {importlib.metadata.version('pytest')}")
        return Availability(False, f"Python {self.version} finds a right answer {right} and a wrong one {wrong}")

    def fidelity(self, problem: Problem) -> str:
        """Always full: the tests run."""
        return FULL

    def identity(self, problem: Problem) -> Mapping[str, Any]:
        """The interpreters, the packages of pytest and of the problem, and the linter."""
        linter = lint.identity() if self._settings.lint else None
        python, own = self._python(problem), interpreter()
        programs = dict.fromkeys((python.program, own.program), content_identity)
        wanted = programs | dict.fromkeys((packages_folder(), *python.packages), packages_identity)
        for path in wanted.keys() - self._installed.keys():
            self._installed[path] = wanted[path](path)
        installed = {str(path): self._installed[path] for path in wanted}
        return {"installed": installed, "lint": linter, "control_failures": self._control_failures}

    def validate(self, jobs: Sequence[Job]) -> Iterator[Report]:
        """Lint all files in one call, then run the tests job by job."""
        paths = [job.problem.path for job in jobs]
        # A fix may rename the file.
        texts = [job.tree.read(path) if path in job.tree.files else b"" for job, path in zip(jobs, paths, strict=True)]
        counts: list[int | None] = [None] * len(jobs)
        if self._settings.lint:
            counts = lint.count_warnings(self._sandbox, texts)
        for job, count in zip(jobs, counts, strict=True):
            started = time.monotonic()
            report = self._validate_one(job)
            warnings = lint.of_report(count, report.compiled)
            yield replace(report, lint_warnings=warnings, duration_seconds=time.monotonic() - started)

    def close(self) -> None:
        """Stop all workers; they start again when they are next used."""
        for worker in self.workers.values():
            worker.close()

    def _validate_one(self, job: Job) -> Report:
        tests = find_tests(job)
        if PurePosixPath(job.problem.filename).name == "conftest.py" or job.problem.filename in {
            os.path.normpath(name) for name in tests
        }:
            return Report("unsafe_input", FULL, note=f"{job.problem.path} is itself a test")
        if not tests and not _configuration(job.tree.files):
            note = f"there is no test ({' or '.join(_TEST_FILES)}); name the files in the column tests"
            return Report("validator_unavailable", FULL, note=note)
        below = PurePosixPath(job.problem.working_directory)
        if missing := [name for name in tests if os.path.normpath(below / name) not in job.tree.files]:
            return Report("validator_unavailable", FULL, note=f"the test {missing[0]} is not there")
        contents = {path: job.tree.read(path) for path in job.tree.files}
        size = sum(map(len, contents.values()))
        if size > _MAX_TREE_BYTES:
            return Report("validator_unavailable", FULL, note=f"the tree has {size:,} bytes, too many to test")
        files = {path: content.decode("utf-8", "surrogateescape") for path, content in contents.items()}
        mentions_numpy = any("numpy" in text for path, text in files.items() if path.endswith(".py"))
        worker = self._worker(self._python(job.problem), mentions_numpy)
        session = _Session(job, tests, self._payload(job, files, tests), worker, self._limits)
        return session.report(controls=self._controls, control_failures=self._control_failures)

    def _payload(self, job: Job, files: Mapping[str, str], tests: Sequence[str]) -> dict[str, Any]:
        doctest = ["--doctest-modules", f"./{job.problem.filename}"] if self._settings.doctest else []
        own = {os.path.normpath(PurePosixPath(job.problem.working_directory) / name) for name in tests}
        conftests = {path for path in files if PurePosixPath(path).name == "conftest.py"}
        configured = _configuration(files)
        # With a configuration, pytest looks for the tests itself. Without one, naming them is faster.
        named = tests if job.problem.tests or doctest or not configured else ()
        # All plugins of an environment that the problem chose, as pytest would load them.
        chosen = self._python(job.problem) != interpreter()
        plugins = None if chosen else mentioned_plugins(files[path] for path in {*own, *configured} & files.keys())
        return {
            "files": files,
            "directory": job.problem.working_directory,
            "sources": source_folders(job),
            "fix": job.problem.path,
            "is_fix": job.is_fix,
            "fix_names": sorted(_importable_names(job, tests, [job.problem.path])),
            "names": sorted(_importable_names(job, tests, job.tree.files)),
            "arguments": [*doctest, *(f"./{os.path.normpath(name)}" for name in named)],
            "plugins": plugins,
            "own_session": plugins != [] or bool(doctest or configured or job.problem.working_directory),
            "control": False,
            "judge_files": sorted({*job.problem.judge_files, *own, *conftests} & files.keys()),
        }


@dataclass(frozen=True)
class _Session:
    """The runs of one job's tests: as they are, and as negative controls."""

    job: Job
    tests: Sequence[str]
    payload: Mapping[str, Any]
    worker: WarmWorker
    limits: Limits

    def report(self, *, controls: bool, control_failures: bool) -> Report:
        """The report on the job. For a fix, controls are only run if the tests that count passed."""
        started = time.monotonic()
        report = self._plain()
        took = time.monotonic() - started
        problem = self.job.problem
        if not controls or not report.finished or not report.compiled:
            return report
        summary = (problem.summary or "").strip().casefold()
        names_a_test = any(summary in (name.casefold(), f"test failed: {name.casefold()}") for name in report.tests)
        forgiving = control_failures or (names_a_test and not problem.judged_tests)
        passed = any(report.tests.values()) if forgiving else only_judged(report, problem).status == "passed"
        if self.job.is_fix and not passed:
            return report
        found = self._control(report, took)
        if self.job.is_fix and not isinstance(found, Report):
            found = self._confirmed(report, found, took)
        return found if isinstance(found, Report) else replace(report, control=found)

    def _confirmed(
        self, report: Report, control: dict[str, TestControl], took: float
    ) -> dict[str, TestControl] | Report:
        """The control's results, in which what chance may explain accuses a fix only if it shows again and again."""
        for _ in range(_CONFIRMATIONS):
            suspects = {name for name, result in control.items() if result.doubtful}
            if not suspects:
                break
            again, plain = self._control(report, took), self._plain()
            if starved := next((one for one in (again, plain) if isinstance(one, Report) and one.starved), None):
                return starved
            if isinstance(again, dict):
                # What is certain stays so, also if the fix behaves otherwise next time.
                control |= {name: found for name, found in again.items() if name in suspects and found.certain}
                suspects -= {name for name in suspects if control[name].certain}
            if isinstance(again, Report) or plain.tests != report.tests:
                return control | dict.fromkeys(suspects, _doubtful("its tests give another result when they run again"))
            for name in suspects & again.keys():
                control[name] = control[name].confirmed_by(again[name])
        stopped = [name for name, result in control.items() if not result.ended and not result.passed]
        if stopped:
            # Either the fix read its answers from the tests, or these count the comparisons, or the time they take.
            quiet = self._control(report, took, quiet=True)
            if isinstance(quiet, Report) and quiet.starved:
                return quiet
            for name in stopped:
                found = TestControl() if isinstance(quiet, Report) else quiet.get(name, TestControl())
                control[name] = replace(control[name], ended=found.ended, held=(*control[name].held, *found.held))
        return control

    def _plain(self) -> Report:
        """The report on the tests as they are. Many tests get more time, once it is known how many they are."""
        report = self._within(0.0)
        needed = self.limits.seconds_per_test * len(report.tests)
        return self._within(needed) if report.cpu_used and needed > self.limits.seconds else report

    def _within(self, seconds: float) -> Report:
        token = secrets.token_hex(16)
        ended = self._run({"token": token}, seconds)
        if isinstance(ended, Report):
            return ended
        return build_report(self.job.problem, self.tests, ended, token, max(self.limits.seconds, seconds))

    def _control(self, report: Report, took: float, *, quiet: bool = False) -> dict[str, TestControl] | Report:
        """The control of each test, by id; a report if the sandbox failed.

        It may take longer than the tests, which `took` so many seconds. One that reaches a limit all the same hangs.
        """
        token = secrets.token_hex(16)
        names = sorted({name.partition("[")[0].rpartition("::")[2] for name in report.tests})
        ended = self._run({"token": token, "control": True, "quiet": quiet, "tests": names}, _HANGING * took)
        if isinstance(ended, Report):
            return ended
        if ended.exceeded is not None and ended.exceeded.starved:
            note = "the machine was too busy for a negative control; run again"
            return Report("sandbox_error", FULL, note=note, starved=True)
        found = control_results(self.job.problem, self.tests, ended, token, report)
        if ended.exceeded is not None:
            missing = [name for name, passed in report.tests.items() if passed and name not in found]
            found |= dict.fromkeys(missing[:1], _doubtful("a test does not end when its values are watched"))
        return found

    def _run(self, more: Mapping[str, Any], seconds: float = 0.0) -> JobAnswer | Report:
        """The answer of one run, with at least so much time; a report if the sandbox was lost twice."""
        limits = replace(self.limits, seconds=max(self.limits.seconds, seconds))
        for _ in range(2):
            try:
                return self.worker.answer({**self.payload, **more}, limits, _MAX_REPORT_BYTES)
            except WorkerLostError as error:
                lost = error
        return Report("sandbox_error", FULL, note=str(lost))


def _doubtful(reason: str) -> TestControl:
    return TestControl(ended=True, doubts=((reason, ""),))


def _configuration(paths: Iterable[str]) -> list[str]:
    """The files that change what pytest collects besides test files, texts with doctests among them."""
    return [path for path in paths if (name := path.rpartition("/")[2]) in _CONFIGURING or fnmatch(name, "test*.txt")]


def _sample(answer: bytes) -> Job:
    test = b"from one import one\n\n\ndef test_one():\n    assert one() == 1\n"
    return sample({"one.py": b"def one():\n    return %b\n" % answer, "test_one.py": test}, "one.py")


def find_tests(job: Job) -> tuple[str, ...]:
    """The test files, relative to the working directory: those the problem names, also by folder, else all."""
    below = PurePosixPath(job.problem.working_directory)
    found: list[str] = []
    for name in job.problem.tests or ("",):
        inside = map(PurePosixPath, job.tree.within(os.path.normpath(below / name)))
        tests = [path for path in inside if any(fnmatch(path.name, form) for form in _TEST_FILES)]
        found += [str(path.relative_to(below)) for path in tests] or filter(None, [name])
    return tuple(dict.fromkeys(found))


@functools.cache
def packages_folder() -> Path:
    """The packages beside Touchstone. Tests and fixes can import them unless another environment is configured."""
    return Path(sysconfig.get_path("purelib"))


def _importable_names(job: Job, tests: Sequence[str], paths: Iterable[str]) -> set[str]:
    """The first part of every module name that these files of a job can be imported by."""
    below = PurePosixPath(job.problem.working_directory)
    places = {below, PurePosixPath(), *(below / name for name in SOURCE_FOLDERS)}
    places |= {below / PurePosixPath(name).parent for name in tests}
    found = set()
    for path in map(PurePosixPath, paths):
        for place in places:
            if path.suffix == ".py" and path.is_relative_to(place):
                found.add(PurePosixPath(path.relative_to(place).parts[0]).stem)
    return found
