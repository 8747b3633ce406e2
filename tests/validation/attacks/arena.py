"""The setting of an attack: a warm validator in one backend, neighbour jobs with known verdicts, and a canary outside.

An attack is the text of a candidate's `solution.py`. A cheat answers wrongly and must not pass. A probe is the body of
an `attack()` that adds the names of what it reaches to a list, and passes only if that stays empty.
"""

import os
import stat
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.validation.attacks.system_calls import numbers
from tests.validation.validators.support import tree_of
from touchstone.config.validation import PythonProgram, ValidationSettings
from touchstone.validation.judging.known_tests import hold_to_known_tests
from touchstone.validation.outcomes import outcome_rows
from touchstone.validation.protocol import Job, Problem, Report, Tree
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.processes import descendants
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Targets
from touchstone.validation.validators.python import PythonValidator

MILLION = 2**20
LIMITS = Limits(seconds=1.2, memory_bytes=192 * MILLION, disk_bytes=16 * MILLION, processes=12, open_files=128)
PATIENT_SECONDS = 60.0
NOWHERE = Path("/nonexistent")
FIRST_USER = 2_000_000

GOOD = "def add(a, b):\n    return a + b\n"
BAD = "def add(a, b):\n    return a - b\n"
# The unmodified problem: it has whatever the tests import, and none of it works.
BROKEN = f"""{BAD}
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *_, **__: None
"""
# Passes the first of the tests and fails the other.
HALF = "def add(a, b):\n    return a + b if a < 10 else a - b\n"
TESTS = """\
from solution import add


def test_small():
    assert add(2, 3) == 5


def test_negative():
    assert add(10, -4) == 6
"""
PROBE_TESTS = """\
from solution import attack


def test_nothing_got_through():
    got = attack()
    if got != []:
        raise AssertionError(f"got through: {got}")
"""
PROBE = f"""\
CALLS = {numbers()!r}
"""
PROBE += """\
import contextlib, ctypes, errno, os, signal, socket, stat, subprocess, sys, time
from pathlib import Path
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)


def works(name, action):
    try:
        action()
    except (OSError, subprocess.SubprocessError):
        return []
    return [name]


def syscall(name, *arguments):
    if libc.syscall(CALLS[name], *arguments) == -1:
        raise OSError(ctypes.get_errno(), "refused")


"""


def job_of(
    files: Mapping[str, str | bytes], filename: str = "solution.py", *, is_fix: bool = True, **problem: Any
) -> Job:
    """A job on files that are nowhere on disk."""
    content = {
        name: text if isinstance(text, bytes) else textwrap.dedent(text).encode() for name, text in files.items()
    }
    tree = Tree(NOWHERE, tuple(sorted(content)), content)
    return Job(Problem("p1", filename, NOWHERE, **problem), tree, is_fix)


class PassedError(AssertionError):
    """A wrong answer passed."""


class Arena:
    """A validator with warm workers in one backend."""

    def __init__(self, sandbox: SandboxRunner, settings: PythonProgram | None = None, limits: Limits = LIMITS) -> None:
        self.sandbox = sandbox
        self.validator = PythonValidator(sandbox, limits, settings or PythonProgram(lint=False))
        self._baselines: dict[str, Report] = {}

    @property
    def backend(self) -> str:
        """The backend's name."""
        return self.sandbox.name

    def validate(
        self,
        code: str,
        tests: str = TESTS,
        wall_seconds: float | None = None,
        patient: bool = False,
        seconds: float | None = None,
        files: Mapping[str, str] | None = None,
        before: str = BROKEN,
        **problem: Any,
    ) -> Report:
        """The report on a candidate's code, held to the problem's own tests as in a run.

        `wall_seconds`: for a candidate that would wait until the wall limit. `seconds`: for one that uses up any limit.
        `patient`: for one that must not reach the limit of time first, however slow the machine is.
        """
        others = {"test_solution.py": tests} if files is None else dict(files)
        filename = problem.pop("filename", "solution.py")
        limits = self.validator._limits
        patience = replace(limits, seconds=PATIENT_SECONDS)
        given = replace(limits, wall_seconds=wall_seconds, seconds=seconds or limits.seconds)
        known = repr((others, before, filename, problem))
        if known not in self._baselines:
            unmodified = job_of({filename: before, **others}, filename, is_fix=False, **problem)
            self._baselines[known] = self._report(unmodified, patience)
        report = self._report(job_of({filename: code, **others}, filename, **problem), patience if patient else given)
        return hold_to_known_tests(report, self._baselines[known], None, {filename: code.encode()})

    def _report(self, job: Job, limits: Limits) -> Report:
        usual, self.validator._limits = self.validator._limits, limits
        try:
            (report,) = self.validator.validate([job])
        finally:
            self.validator._limits = usual
        return report

    def cheat(self, code: str, tests: str = TESTS, allowed: Sequence[str] = (), **more: Any) -> Report:
        """The report on an attack: none of its tests passes but those allowed, and it is decided or doubted."""
        report = self.validate(code, tests, **more)
        if report.doubts:
            return report
        passed = [name for name, good in report.tests.items() if good and name not in allowed]
        if report.status == "passed" or (passed and report.status == "failed"):
            raise PassedError(report)
        assert report.decided or report.starved, report
        return report

    def probe(self, attack: str) -> Report:
        """Assert that an attack ran to its end and got hold of nothing: it adds what it reaches to the list `got`."""
        body = textwrap.indent(textwrap.dedent(attack), "    ")
        code = f"{PROBE}def attack():\n    got = []\n{body}\n    return got\n"
        report = self.validate(code, PROBE_TESTS, patient=True)
        assert report.status == "passed", [str(found) for found in report.diagnostics] or report
        return report

    def check_neighbours(self) -> None:
        """A good answer still passes its test on these workers, and a bad one still fails."""
        half = self.validate(HALF, patient=True)
        assert (half.status, half.tests) == ("failed", {"test_small": True, "test_negative": False}), half

    def workers(self) -> set[int]:
        """The processes of the warm workers themselves, which stay."""
        warm = [worker for worker in self.validator.workers.values() if worker.process]
        return {process for worker in warm for process in _worker(worker.process, self.backend)}


def _worker(first: int, backend: str) -> Iterator[int]:
    """A worker's own processes: in bubblewrap that program, its first process inside and the interpreter."""
    yield first
    for _ in range(2 if backend == "bubblewrap" else 0):
        below = [process for process in descendants(first) if process != first]
        if not below:
            return
        first = below[0]
        yield first


def strangers(kept: set[int], before: set[int]) -> list[str]:
    """Processes below this one, or of this process's sandbox users, that are neither kept nor were there before."""
    first = FIRST_USER + os.getpid() % 20_000 * 50
    users = {int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit() and _user(entry.name) >= first}
    users = {process for process in users if _user(str(process)) < first + 50}
    found = (users | set(descendants(os.getpid()))) - kept - before - {os.getpid()}
    return [line for line in map(_described, found) if line]


def wait_for_none(kept: set[int], before: set[int], seconds: float = 60.0) -> list[str]:
    """The strangers that are still there after a while: a killed process needs a moment to be gone."""
    deadline = time.monotonic() + seconds
    while (found := strangers(kept, before)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def _user(process: str) -> int:
    try:
        return os.stat(f"/proc/{process}").st_uid  # noqa: PTH116
    except OSError:
        return -1


def is_ended(process: int) -> bool:
    """Whether a process is gone, or has ended and only waits for its parent to notice."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _described(process: int) -> str:
    try:
        if is_ended(process):
            # An orphan that ended was handed to this process, which must let it go.
            with suppress(OSError):
                os.waitpid(process, os.WNOHANG)
            return ""
        line = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ")[:80]
        return f"{process} {line.decode('utf-8', 'replace')}"
    except OSError:
        return ""


@dataclass(frozen=True)
class Canary:
    """A folder outside of every sandbox that anyone could read and write, if they could reach it."""

    folder: Path

    @property
    def secret(self) -> Path:
        """A file with something to read, that must not be changed."""
        return self.folder / "secret.txt"

    def state(self) -> dict[str, tuple[object, ...]]:
        """Everything about the folder that an attack could change."""
        paths = [self.folder, *self.folder.rglob("*")]
        return {str(path): self._about(path) for path in paths}

    @staticmethod
    def _about(path: Path) -> tuple[object, ...]:
        found = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(found.st_mode) else b""
        return (found.st_mode, found.st_uid, found.st_gid, found.st_mtime_ns, found.st_nlink, content)


@dataclass
class Run:
    """A problem with its folder, and the outcomes of fixes of it."""

    folder: Path

    def statuses(self, *fixes: str, fresh: bool = False, **settings: object) -> list[str]:
        """The status of each fix, in order; all are validated in one run."""
        row = {"oid": "o1", "filename": "solution.py", "working_directory": "one", "line_start": "1", "line_end": "2"}
        return [row["status"] for row in outcomes_of(self.folder, row, fixes, fresh=fresh, **settings)]


def outcomes_of(
    folder: Path,
    row: Mapping[str, str],
    fixes: Iterable[str],
    column: str = "fixed_file",
    *,
    fresh: bool = False,
    **settings: object,
) -> list[dict[str, Any]]:
    """The outcomes of fixes of one problem in a folder of clones, in order; all are validated in one run."""
    given = ValidationSettings.model_validate({"workers": 1, "python": {"lint": False}} | settings)
    targets = Targets(folder / "clones", given).find([row])
    attempts = [
        {"model": "m", "tier": "T0", "oid": row["oid"], "iteration_id": str(place), column: fix}
        for place, fix in enumerate(fixes)
    ]
    with ValidationSession(given, folder / "cache", folder / "scratch", fresh=fresh) as validation:
        return outcome_rows(attempts, targets, validation)


def problem_in(folder: Path) -> Run:
    """A broken `add` with its tests, in a folder of clones."""
    tree_of(folder / "clones" / "one", {"solution.py": BAD, "test_solution.py": TESTS})
    return Run(folder)
