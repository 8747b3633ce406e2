"""Any program as a validator: it gets the file name and answers by exit code or in JSON.

The JSON, on standard output: `{"passed": bool, "diagnostics": [{"severity", "summary", "detail"?, "file"?, "line"?,
"end_line"?, "column"?, "end_column"?, "test"?}], "tests"?: {name: bool}, "compiled"?: bool, "lint_warnings"?: int}`.
`file` is relative to the working directory. The exit code must agree: 0 if and only if it passed.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from touchstone.validation.file_identity import content_identity
from touchstone.validation.protocol import Availability, Diagnostic, Job, Problem, Report
from touchstone.validation.sandbox.command import TMP, Command, CommandResult, Limits, Sandbox
from touchstone.validation.validators import common
from touchstone.validation.validators.common import ReportFormatError, take, take_or_none


@dataclass(frozen=True)
class CommandSettings:
    """A program and how to read its result. In `arguments`, {file} is the repaired file and {directory} the working
    directory, both relative to the working directory, in which the program starts."""

    arguments: tuple[str, ...]
    version_arguments: tuple[str, ...] = ()
    report: Literal["exit_code", "json"] = "exit_code"
    fidelity: str = "full"
    readable: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class CommandValidator:
    """Runs the configured program on each tree."""

    name = "command"

    def __init__(self, sandbox: Sandbox, limits: Limits, settings: CommandSettings) -> None:
        self._sandbox, self._limits, self._settings = sandbox, limits, settings
        self._program = common.find_program(Path(settings.arguments[0]), ())
        said = common.run_trusted(settings.version_arguments) if settings.version_arguments else None
        self.version = said.splitlines()[0] if said else ""

    def probe(self) -> Availability:
        """Whether the program is installed and, if configured, prints its version."""
        named = self._settings.arguments[0]
        if self._program is None:
            return Availability(False, f"{named} is not there", "install it, or correct validation.command.arguments")
        if self._settings.version_arguments and not self.version:
            asked = " ".join(self._settings.version_arguments)
            return Availability(False, f"`{asked}` fails", "correct validation.command.version_arguments")
        return Availability(True, f"{self.version or named} at {self._program}")

    def fidelity(self, problem: Problem) -> str:
        """As configured."""
        return self._settings.fidelity

    def identity(self, problem: Problem) -> Mapping[str, Any]:
        """The program, the readable files, and the files that its arguments and environment name."""
        return {"program": str(self._program), "files": self._files}

    @functools.cached_property
    def _files(self) -> dict[str, str]:
        """The contents of everything outside the tree that the configuration names."""
        settings = self._settings
        words = [*settings.arguments[1:], *settings.environment.values()]
        parts = {Path(part) for word in words for part in re.split(r"[=:,]", word) if part.startswith("/")}
        named = [path for path in sorted(parts) if path.is_file()]
        programs = [self._program] if self._program else []
        return {str(path): content_identity(path) for path in (*programs, *settings.readable, *named)}

    def validate(self, jobs: Sequence[Job]) -> Iterator[Report]:
        """Yield one report per job."""
        for job in jobs:
            if self._program is None:
                yield common.unavailable(self.probe(), self._settings.fidelity)
            else:
                yield self._validate_one(job, self._sandbox.run(self._command(job, self._program), self._limits))

    def close(self) -> None:
        """Nothing is kept running."""

    def _command(self, job: Job, program: Path) -> Command:
        places = {"{file}": job.problem.filename, "{directory}": "."}
        arguments = [_filled(argument, places) for argument in self._settings.arguments[1:]]
        own = {"PATH": common.SYSTEM_PATH, "HOME": TMP, "LANG": "C.UTF-8"}
        return Command(
            [str(program), *arguments],
            job.tree,
            job.problem.working_directory,
            readable=(program, *self._settings.readable),
            environment={**own, **self._settings.environment},
        )

    def _validate_one(self, job: Job, result: CommandResult) -> Report:
        fidelity = self._settings.fidelity
        if (report := common.report_if_stopped(result, fidelity)) is not None:
            return report
        if self._settings.report == "exit_code":
            return report_from_exit_code(result, fidelity)
        return report_from_json(result, fidelity, job.problem.working_directory)


def report_from_exit_code(result: CommandResult, fidelity: str) -> Report:
    """Exit code 0 is passed, another code is failed with the end of the output, a signal is no report."""
    if result.exit_code == 0:
        return Report("passed", fidelity, duration_seconds=result.seconds)
    ending = common.describe_exit(result)
    if result.exit_code is None or result.exit_code < 0:
        return common.no_report(result, fidelity, f"the program was {ending}")
    failure = Diagnostic("error", ending, detail=common.output_tail(result))
    return Report("failed", fidelity, (failure,), duration_seconds=result.seconds)


def report_from_json(result: CommandResult, fidelity: str, directory: str) -> Report:
    """The program's report, if it is complete and consistent with itself and the exit code."""
    try:
        said = common.read_object(result.stdout)
        passed = take(said, "passed", bool)
        diagnostics = tuple(_diagnostic(entry, directory) for entry in common.take_objects(said, "diagnostics"))
        tests = _tests(said)
        compiled, lint_warnings = take_or_none(said, "compiled", bool), take_or_none(said, "lint_warnings", int)
    except ReportFormatError as error:
        note = f"the program's report {error}; {common.describe_exit(result)}"
        return common.no_report(result, fidelity, note)
    faults = any(common.errors_of(diagnostics)) or not all(tests.values()) or compiled is False
    if passed != (result.exit_code == 0):
        note = f"the report says passed: {str(passed).lower()}, but the program ended with "
        return common.no_report(result, fidelity, note + common.describe_exit(result), consistent=False)
    if passed and faults:
        note = "the report says passed: true, but it has errors, failed tests or compiled: false"
        return common.no_report(result, fidelity, note, consistent=False)
    return Report(
        "passed" if passed else "failed",
        fidelity,
        diagnostics,
        compiled,
        tests,
        lint_warnings,
        duration_seconds=result.seconds,
    )


def _diagnostic(entry: Mapping[str, Any], directory: str) -> Diagnostic:
    file = take_or_none(entry, "file", str)
    return Diagnostic(
        common.take_severity(entry),
        take(entry, "summary", str),
        detail=take_or_none(entry, "detail", str) or "",
        file=common.from_root(file, directory) if file is not None else None,
        line=take_or_none(entry, "line", int),
        end_line=take_or_none(entry, "end_line", int),
        column=take_or_none(entry, "column", int),
        end_column=take_or_none(entry, "end_column", int),
        test=take_or_none(entry, "test", str),
    )


def _tests(said: Mapping[str, Any]) -> dict[str, bool]:
    tests: dict[str, Any] = take_or_none(said, "tests", dict) or {}
    if not all(isinstance(outcome, bool) for outcome in tests.values()):
        raise ReportFormatError("has something else than true and false in 'tests'")
    return tests


def _filled(argument: str, places: Mapping[str, str]) -> str:
    return re.sub("|".join(map(re.escape, places)), lambda found: places[found[0]], argument)
