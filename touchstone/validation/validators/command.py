"""Any program as a validator: a configured one, or the problem's own `test_command`, in a shell.

It answers by exit code, in JSON, or by the report of a known test runner (`test_reports`). The JSON, on standard
output: `{"passed": bool, "diagnostics": [{"severity", "summary", "detail"?, "file"?, "line"?, "end_line"?, "column"?,
"end_column"?, "test"?}], "tests"?: {name: bool}, "compiled"?: bool, "lint_warnings"?: int}`. `file` is relative to
the working directory. The exit code must agree: 0 if and only if it passed.
"""

import functools
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from touchstone.config.validation import CommandProgram
from touchstone.validation.command_files import left_early, runner_format, words
from touchstone.validation.files.file_identity import (
    content_identity,
    packages_identity,
    program_identity,
    system_identity,
)
from touchstone.validation.files.working_copy import installed_packages
from touchstone.validation.protocol import Availability, Diagnostic, Job, Problem, Report
from touchstone.validation.sandbox.command import TMP, WORK_FOLDER, Command, CommandResult, Limits, Sandbox
from touchstone.validation.sandbox.interpreters import Interpreter, interpreter
from touchstone.validation.test_reports import FORMATS, SuiteResults, merged, named_as_expected
from touchstone.validation.validators import common
from touchstone.validation.validators.common import FULL, ReportFormatError, take, take_or_none
from touchstone.vocabulary import COMMAND_REPORTS

_SHELL = Path("/bin/sh")
# The shell's exit codes for a program that cannot be run or is not there.
_NOT_STARTED = (126, 127)
# Whole test suites, and builds before them.
COMMAND_LIMITS = Limits(seconds=120.0)
# Without a network, npm would try for minutes.
_ENVIRONMENT = {"HOME": TMP, "LANG": "C.UTF-8", "npm_config_offline": "true"}
# Programs of the interpreter that a command may name without setting a PATH.
_PYTHON = ("python", "pytest")
# What make and `python -m` say of a program or module that is not installed; a traceback says it otherwise.
_NOT_FOUND = re.compile(r"^make(?:\[\d+\])?: \*\*\* .* Error 127$|^\S*python\S*: No module named \w+$", re.MULTILINE)

# Runs the setup, then the tests, then prints the report files. With report files, everything else goes to standard
# error. A report that is there before the tests ran is removed: it may have come with the fix.
_WRAPPER = """
mark=$1 setup=$2 reports=$3; shift 3; IFS=
if [ -n "$setup" ]; then
  /bin/sh -c "$setup" >&2 || { code=$?; printf '%s setup\\n' "$mark"; exit $code; }
fi
[ -n "$reports" ] || exec "$@"
rm -rf -- $reports
"$@" >&2
code=$?
for file in $reports; do
  [ -f "$file" ] && { printf '%s file\\n' "$mark"; cat -- "$file"; echo; }
done
exit $code
"""


@dataclass(frozen=True)
class _Plan:
    """How one problem's trees are validated."""

    arguments: Sequence[str]
    program: Path
    report: str
    report_file: str
    setup: str


class CommandValidator:
    """Runs the configured program, or the problem's own command, on each tree, in the problem's working directory.

    The setting `report_file` is a file that it writes, or a pattern such as `target/surefire-reports/*.xml`; without
    one, the report is read from standard output. `python` is the interpreter of commands where the system has none, by
    default this one.
    """

    name = "command"

    def __init__(self, sandbox: Sandbox, limits: Limits, settings: CommandProgram, python: Path | None = None) -> None:
        self._sandbox, self._limits, self._settings = sandbox, limits, settings
        self._configured_python = python
        self._program = common.find_program(Path(settings.arguments[0]), ()) if settings.arguments else _SHELL
        self._identities: dict[str, Mapping[str, str]] = {}
        self._packages: dict[Path, Mapping[str, Path]] = {}
        said = common.run_trusted(settings.version_arguments) if settings.version_arguments else None
        self.version = said.splitlines()[0] if said else ""

    def probe(self) -> Availability:
        """Whether the program is installed and, if configured, prints its version."""
        if self._program is None:
            named = self._settings.arguments[0]
            return Availability(False, f"{named} is not there", "install it, or correct validation.command.arguments")
        if self._settings.version_arguments and not self.version:
            asked = " ".join(self._settings.version_arguments)
            return Availability(False, f"`{asked}` fails", "correct validation.command.version_arguments")
        if not self._settings.arguments:
            return Availability(True, f"each problem's test_command, in {_SHELL}")
        return Availability(True, f"{self.version or self._settings.arguments[0]} at {self._program}")

    def fidelity(self, problem: Problem) -> str:
        """As configured."""
        return self._settings.fidelity

    def identity(self, problem: Problem) -> Mapping[str, Any]:
        """The program, the files and packages it reads, what arguments, environment or commands name, the system."""
        # Every command finds the interpreter's programs, because its scripts may run them.
        provided = _PYTHON if self._python is not None else ()
        named = set().union(*map(words, (problem.setup_command or "", problem.test_command or "", *provided)))
        own = {word: self._identity_of(word) for word in sorted(named)}
        packages = {place: packages_identity(folder) for place, folder in self._packages_of(problem).items()}
        found = {"program": str(self._program), "files": self._files, "own": own, "system": self._system}
        return found | ({"packages": packages} if packages else {})

    def _packages_of(self, problem: Problem) -> Mapping[str, Path]:
        """The folders of npm packages that the problem's commands use, by their place in its tree."""
        if problem.root not in self._packages:
            self._packages[problem.root] = installed_packages(problem.root)
        return self._packages[problem.root]

    def _identity_of(self, word: str) -> Mapping[str, str]:
        """The content of a program or file that a command names."""
        if word not in self._identities:
            search = self._search_path if word in _PYTHON else self._own_path
            self._identities[word] = program_identity(word, search)
        return self._identities[word]

    @property
    def _own_path(self) -> str:
        return self._settings.environment.get("PATH", common.SYSTEM_PATH)

    @functools.cached_property
    def _search_path(self) -> str:
        """The PATH of commands: the configured one, else the system's folders and then that of the interpreter."""
        folders = [str(self._python.program.parent)] if self._python is not None else []
        return ":".join([self._own_path, *folders])

    @functools.cached_property
    def _python(self) -> Interpreter | None:
        """The interpreter of commands, if neither the configuration nor the system has one."""
        if "PATH" in self._settings.environment or shutil.which("python", path=common.SYSTEM_PATH):
            return None
        return interpreter(self._configured_python or Path(sys.executable))

    @functools.cached_property
    def _readable(self) -> tuple[Path, ...]:
        """The paths that commands may read besides the system and their own program."""
        if self._python is None:
            return tuple(self._settings.readable)
        scripts = (self._python.program.parent / name for name in _PYTHON)
        return (*self._settings.readable, *self._python.folders, *(path for path in scripts if path.is_file()))

    @functools.cached_property
    def _system(self) -> dict[str, str]:
        return system_identity()

    @functools.cached_property
    def _files(self) -> dict[str, Any]:
        """The contents of everything outside the tree that the configuration names."""
        settings = self._settings
        texts = (*settings.arguments[1:], *settings.environment.values())
        named = {word for text in texts for word in (*re.split("[=:,]", text), *words(text))}
        programs = {str(_SHELL), str(self._program or _SHELL), *named}
        readable = {str(path): content_identity(path) for path in settings.readable}
        return readable | {word: self._identity_of(word) for word in sorted(programs)}

    def validate(self, jobs: Sequence[Job]) -> Iterator[Report]:
        """Yield one report per job."""
        for job in jobs:
            plan = self._plan(job.problem)
            if isinstance(plan, Availability):
                yield common.unavailable(plan, self._settings.fidelity)
            else:
                yield self._validate_one(job, plan)

    def close(self) -> None:
        """Nothing is kept running."""

    def _plan(self, problem: Problem) -> _Plan | Availability:
        """The command to run for a problem, or why none can be run."""
        settings, own = self._settings, (problem.test_command or "").strip()
        if own:
            program, arguments = _SHELL, ["-c", own]
        elif self._program is None:
            return self.probe()
        elif not settings.arguments:
            remedy = "give the problem one, or set validation.command.arguments"
            return Availability(False, "the problem has no test_command", remedy)
        else:
            places = {"{file}": problem.filename, "{directory}": "."}
            program = self._program
            named = re.compile("|".join(map(re.escape, places)))
            arguments = [named.sub(lambda found: places[found[0]], each) for each in settings.arguments[1:]]
        report = problem.test_report or settings.report
        if report not in COMMAND_REPORTS:
            return Availability(False, f"unknown test_report '{report}'", f"use one of {', '.join(COMMAND_REPORTS)}")
        if report == "exit_code":
            # An exit code of 0 proves nothing where the fix can end the test runner with it.
            report = runner_format([str(program), *arguments]) or report
        if report == "exit_code" and problem.judged_tests:
            remedy = "set validation.command.report or the column test_report"
            return Availability(False, "fail_to_pass and pass_to_pass need a report by test name", remedy)
        file = problem.report_file or settings.report_file
        return _Plan(arguments, program, report, "" if report == "exit_code" else file, problem.setup_command or "")

    def _command(self, job: Job, plan: _Plan, mark: str) -> Command:
        line = [str(plan.program), *plan.arguments]
        if plan.setup or plan.report_file:
            line = [str(_SHELL), "-c", _WRAPPER, "sh", mark, plan.setup, plan.report_file, *line]
        sources = [f"{WORK_FOLDER}/{job.problem.working_directory}/{name}" for name in common.source_folders(job)]
        environment = {**_ENVIRONMENT, **({"PYTHONPATH": os.pathsep.join(sources)} if sources else {})}
        environment |= {**self._settings.environment, "PATH": self._search_path}
        for name, value in FORMATS[plan.report].environment.items() if plan.report in FORMATS else ():
            environment[name] = f"{environment.get(name, '')} {value}".strip()
        return Command(
            line,
            job.tree,
            job.problem.working_directory,
            readable=(plan.program, *self._readable),
            environment=environment,
            packages=self._packages_of(job.problem),
        )

    def _validate_one(self, job: Job, plan: _Plan) -> Report:
        mark = f"touchstone-{secrets.token_hex(16)}"
        result = self._sandbox.run(self._command(job, plan, mark), self._limits)
        report = self._report(result, job, plan, mark)
        return replace(report, fidelity=self._settings.fidelity, duration_seconds=result.seconds)

    def _report(self, result: CommandResult, job: Job, plan: _Plan, mark: str) -> Report:
        """The report on a command that has ended, as if it were of full fidelity."""
        if (report := common.report_if_stopped(result)) is not None:
            return report
        if (missing := _not_run(result, mark, job.tree.files)) is not None:
            # Where only the fix is to blame, this becomes a failure; see `outcomes`.
            return Report("validator_unavailable", FULL, note=missing)
        if plan.report == "exit_code":
            if result.exit_code == 0 and left_early(
                [str(plan.program), *plan.arguments], f"{_text(result.stdout)}\n{_text(result.stderr)}"
            ):
                return common.no_report("exit code 0, but the test runner did not finish")
            return report_from_exit_code(result)
        # The report files, as the wrapper printed them.
        documents = result.stdout.split(f"{mark} file\n".encode())[1:] if plan.report_file else [result.stdout]
        if plan.report == "json":
            return report_from_json(result, b"".join(documents), job.problem.working_directory)
        try:
            if not documents:
                raise ReportFormatError(f"is missing: the command did not write {plan.report_file}")
            results = merged(FORMATS[plan.report].read(_text(document)) for document in documents)
        except ReportFormatError as error:
            return common.no_report(f"the {plan.report} report {error}; {_ending(result)}")
        return report_from_tests(result, results, plan.report, job.problem.judged_tests)


def _not_run(result: CommandResult, mark: str, files: Sequence[str]) -> str | None:
    """Why the tests did not start; None if they did."""
    if result.stdout.startswith(f"{mark} setup\n".encode()):
        return f"the setup command failed with {_ending(result)}"
    if result.exit_code in _NOT_STARTED or (result.exit_code and _NOT_FOUND.search(_text(result.stderr))):
        by_npm = any(path.rpartition("/")[2] == "package.json" for path in files)
        remedy = f"{'run `npm ci` beside its package.json, or ' if by_npm else ''}set its PATH and readable folders"
        return f"the command cannot be started in the sandbox: {_ending(result)}; {remedy}"
    return None


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _ending(result: CommandResult) -> str:
    """How the program ended, and its last words."""
    words = common.output_tail(result)
    return common.describe_exit(result) + (f": {words}" if words else "")


def report_from_exit_code(result: CommandResult) -> Report:
    """Exit code 0 is passed, another code is failed with the end of the output, a signal is no report.

    All failures are the same error, whatever the code and the output: a fix that fails in other words fixes nothing.
    """
    if result.exit_code == 0:
        return Report("passed", FULL)
    if result.exit_code is None or result.exit_code < 0:
        return common.no_report(f"the program was {common.describe_exit(result)}")
    failure = Diagnostic("error", "the command failed", output=_ending(result))
    return Report("failed", FULL, (failure,))


def report_from_tests(result: CommandResult, results: SuiteResults, report: str, judged: Sequence[str]) -> Report:
    """The report of a test runner, if it agrees with the exit code: 0 if and only if nothing failed."""
    if results.failed == (result.exit_code == 0):
        said = "a failure" if results.failed else "no failure"
        note = f"the {report} report shows {said}, but the program ended with {_ending(result)}"
        return common.no_report(note, consistent=False)
    outcomes = named_as_expected(results, report, judged)
    if not results.failed and not results.unnamed and "passed" not in outcomes.values():
        return common.no_report(f"the {report} report has no passed test; {_ending(result)}")
    failures = [
        Diagnostic("error", f"test failed: {name}", results.messages.get(name, ""), test=name)
        for name, outcome in outcomes.items()
        if outcome == "failed"
    ]
    errors = [Diagnostic("error", error.summary, output=error.output or _ending(result)) for error in results.errors]
    return Report(
        "failed" if results.failed else "passed",
        FULL,
        (*errors, *failures),
        # Where the format does not tell: a test that reported was compiled or loaded.
        results.compiled if results.compiled is not None else bool(results.outcomes or results.unnamed),
        {name: outcome == "passed" for name, outcome in outcomes.items() if outcome != "skipped"},
    )


def report_from_json(result: CommandResult, document: bytes, directory: str) -> Report:
    """The program's report, if it is complete and consistent with itself and the exit code."""
    try:
        said = common.read_object(document)
        passed = take(said, "passed", bool)
        diagnostics = tuple(_diagnostic(entry, directory) for entry in common.take_objects(said, "diagnostics"))
        tests = _tests(said)
        compiled, lint_warnings = take_or_none(said, "compiled", bool), take_or_none(said, "lint_warnings", int)
    except ReportFormatError as error:
        return common.no_report(f"the program's report {error}; {common.describe_exit(result)}")
    faults = any(common.errors_of(diagnostics)) or not all(tests.values()) or compiled is False
    if passed != (result.exit_code == 0):
        note = f"the report says passed: {str(passed).lower()}, but the program ended with "
        return common.no_report(note + common.describe_exit(result), consistent=False)
    if passed and faults:
        note = "the report says passed: true, but it has errors, failed tests or compiled: false"
        return common.no_report(note, consistent=False)
    return Report("passed" if passed else "failed", FULL, diagnostics, compiled, tests, lint_warnings)


def _diagnostic(entry: Mapping[str, Any], directory: str) -> Diagnostic:
    file = take_or_none(entry, "file", str)
    return Diagnostic(
        common.take_severity(entry),
        take(entry, "summary", str),
        detail=take_or_none(entry, "detail", str) or "",
        file=common.from_root(file, directory) if file is not None else None,
        test=take_or_none(entry, "test", str),
        **common.take_place(entry),
    )


def _tests(said: Mapping[str, Any]) -> dict[str, bool]:
    tests: dict[str, Any] = take_or_none(said, "tests", dict) or {}
    if not all(isinstance(outcome, bool) for outcome in tests.values()):
        raise ReportFormatError("has something else than true and false in 'tests'")
    return tests
