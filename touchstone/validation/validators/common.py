"""Shared by the validators that run programs: finding a program, reading its result, and probing a toolchain.

A program's output counts only if it is complete and agrees with its exit code. Anything else becomes a report that no
verdict rests on, built here so that all validators build it the same way.
"""

import os
import shutil
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Generic, TypeVar, get_args

from touchstone.validation.protocol import Availability, Diagnostic, Job, Problem, Report, Severity, Tree
from touchstone.validation.reach import SOURCE_FOLDERS
from touchstone.validation.sandbox.command import Command, CommandResult, Limits, Sandbox
from touchstone.validation.sandbox.processes import LimitExceeded
from touchstone.validation.test_reports import ReportFormatError as ReportFormatError
from touchstone.validation.test_reports import json_object

FULL = "full"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
# The base interpreter of the virtual environment. Every sandbox shows the files that it needs.
PYTHON = Path(getattr(sys, "_base_executable", sys.executable)).resolve()

_VERSION_SECONDS = 120.0
_TAIL_CHARACTERS = 2000
_SHELL_SIGNAL_OFFSET = 128

Field = TypeVar("Field")


def source_folders(job: Job) -> list[str]:
    """The folders below the working directory whose packages are imported as if the project were installed.

    Not a folder that is itself a package, or has a module that is named like one of the standard library.
    """
    below = PurePosixPath(job.problem.working_directory)
    found = []
    for name in SOURCE_FOLDERS:
        folder = below / name
        inside = [PurePosixPath(path).relative_to(folder) for path in job.tree.within(str(folder))]
        modules = {PurePosixPath(path.parts[0]).stem for path in inside if path.suffix == ".py"}
        if modules and not modules & {"__init__", *sys.stdlib_module_names}:
            found.append(name)
    return found


def find_program(configured: Path | None, names: Sequence[str], folders: Sequence[Path] = ()) -> Path | None:
    """The configured program, else the first of the names found on PATH or in the folders, else None."""
    if configured is not None:
        found = shutil.which(configured.expanduser())
        return Path(found).absolute() if found else None
    search = os.pathsep.join([os.environ.get("PATH", os.defpath), *(str(folder) for folder in folders)])
    paths = (shutil.which(name, path=search) for name in names)
    return next((Path(path).absolute() for path in paths if path), None)


def run_trusted(arguments: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> str | None:
    """The output of a trusted program, run outside the sandbox; None if it cannot be run or fails."""
    try:
        asked = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_SECONDS,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.decode("utf-8", "replace").strip() if asked.returncode == 0 else None


def unavailable(availability: Availability, fidelity: str) -> Report:
    """The report of a validator that does not work on this machine."""
    note = f"{availability.detail}; {availability.remedy}" if availability.remedy else availability.detail
    return Report("validator_unavailable", fidelity, note=note)


def sample(files: Mapping[str, bytes], filename: str) -> Job:
    """A job whose files exist only in memory."""
    root = Path("/nonexistent")
    return Job(Problem("sample", filename, root), Tree(root, tuple(sorted(files)), files))


def report_if_stopped(result: CommandResult) -> Report | None:
    """The report on a command that was stopped at a limit or by the sandbox; None if it exited by itself."""
    return None if result.status == "exited" else stopped_at(result, Report(result.status, FULL))


def stopped_at(limit: CommandResult | LimitExceeded, report: Report) -> Report:
    """The report on something that was stopped at a limit."""
    return replace(report, status=limit.status, note=limit.note, starved=limit.starved, cpu_used=limit.cpu_used)


def no_report(note: str, *, consistent: bool = True) -> Report:
    """The report on a command that exited by itself without a trustworthy report."""
    return Report("no_report", FULL, consistent=consistent, note=note)


def describe_exit(result: CommandResult) -> str:
    """The exit code or signal as text, for notes.

    >>> [describe_exit(CommandResult("exited", code)) for code in (-11, 137, 2)]
    ['killed by SIGSEGV', 'killed by SIGKILL', 'exit code 2']
    """
    code = result.exit_code
    if code is None:
        return "no exit code"
    number = -code if code < 0 else code - _SHELL_SIGNAL_OFFSET
    try:
        return f"killed by {signal.Signals(number).name}"
    except ValueError:
        return f"exit code {code}"


def output_tail(result: CommandResult) -> str:
    """The end of standard error, or of standard output if that is empty."""
    return tail(result.stderr) or tail(result.stdout)


def tail(output: bytes) -> str:
    """The end of a program's output as text.

    >>> tail(b"one  \\ntwo\\n")
    'one\\ntwo'
    """
    text = output[-4 * _TAIL_CHARACTERS :].decode("utf-8", "replace")
    return "\n".join(line.rstrip() for line in text.strip().splitlines())[-_TAIL_CHARACTERS:]


def read_object(output: bytes) -> dict[str, Any]:
    """Parse the single JSON object that a program printed."""
    if not output.strip():
        raise ReportFormatError("is missing")
    return json_object(output)


def take(entry: Mapping[str, Any], name: str, kind: type[Field]) -> Field:
    """A required field of the given type. A bool does not count as an int."""
    value = entry.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ReportFormatError(f"has no usable field {name!r}")
    return value


def take_or_none(entry: Mapping[str, Any], name: str, kind: type[Field]) -> Field | None:
    """An optional field: None if missing or null, else of the given type."""
    return None if entry.get(name) is None else take(entry, name, kind)


def take_objects(entry: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A required field that is a list of objects."""
    items: list[Any] = take(entry, name, list)
    if not all(isinstance(item, dict) for item in items):
        raise ReportFormatError(f"has something else than objects in {name!r}")
    return items


def take_place(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The first and last line and column of a diagnostic, as far as it states them."""
    return {name: take_or_none(entry, name, int) for name in ("line", "end_line", "column", "end_column")}


def take_severity(entry: Mapping[str, Any]) -> Severity:
    """The severity of a diagnostic."""
    value = take(entry, "severity", str)
    if value not in get_args(Severity):
        raise ReportFormatError(f"has an unknown severity {value[:50]!r}")
    return "error" if value == "error" else "warning"


def from_root(filename: str, directory: str) -> str:
    """Convert a path relative to `directory` to one relative to the tree's root; paths outside stay unchanged.

    >>> from_root("main.tf", "sub"), from_root("../a.tf", "sub"), from_root("./b.tf", "")
    ('sub/main.tf', 'a.tf', 'b.tf')
    >>> from_root("/usr/x", "sub"), from_root("../../x", "sub")
    ('/usr/x', '../../x')
    """
    normal = os.path.normpath(str(PurePosixPath(directory) / filename))
    return filename if normal.startswith(("/", "..")) else normal


def to_root(directory: str) -> str:
    """The relative path from a directory of the tree to its root.

    >>> to_root(""), to_root("a/b")
    ('.', '../..')
    """
    return "/".join([".."] * len(PurePosixPath(directory).parts)) or "."


def errors_of(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """The diagnostics that are errors."""
    return (each for each in diagnostics if each.severity == "error")


# Validators that run an installed toolchain

Tool = TypeVar("Tool")


class ToolchainValidator(ABC, Generic[Tool]):
    """Runs an installed tool on each tree. `tool` is None if it was not found; `version` is then empty."""

    name: str
    # A correct tree, which a working tool passes.
    sample: ClassVar[Job]

    def __init__(self, sandbox: Sandbox, limits: Limits, tool: Tool | None, version: str) -> None:
        self._sandbox, self._limits = sandbox, limits
        self._tool, self.version = tool, version

    @abstractmethod
    def _find(self) -> Availability:
        """Whether the tool and everything it needs is installed, without running it in the sandbox."""

    @abstractmethod
    def _command(self, job: Job, tool: Tool) -> Command:
        """The command that validates one job."""

    @abstractmethod
    def _build_report(self, result: CommandResult, job: Job) -> Report:
        """The report on one job, from the result of its command."""

    def probe(self) -> Availability:
        """Whether the tool is installed and passes a correct sample in the sandbox."""
        found = self._find()
        if not found.usable or self._tool is None:
            return found
        trial = self._report(self.sample, self._tool)
        if trial.status == "passed":
            return found
        said = (trial.note or "; ".join(map(str, trial.diagnostics)))[:500]
        detail = f"{found.detail} does not work in the sandbox {self._sandbox.name}: {trial.status} {said}".rstrip()
        remedy = "name the program itself in the configuration, not a script that looks for it"
        return Availability(False, detail, remedy)

    def fidelity(self, problem: Problem) -> str:
        """Always full: the real tool runs."""
        return FULL

    def validate(self, jobs: Sequence[Job]) -> Iterator[Report]:
        """Yield one report per job."""
        availability = self._find()
        for job in jobs:
            if not availability.usable or self._tool is None:
                yield unavailable(availability, FULL)
            else:
                yield self._report(job, self._tool)

    def close(self) -> None:
        """Nothing is kept running."""

    def _report(self, job: Job, tool: Tool) -> Report:
        result = self._sandbox.run(self._command(job, tool), self._limits)
        return replace(self._build_report(result, job), duration_seconds=result.seconds)
