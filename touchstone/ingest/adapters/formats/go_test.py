"""Adapter for the events of `go test -json`: a problem is a test or subtest, named `package.Test/subtest`.

A test has the worst of its results in one run of its package (`-count`); a later run replaces them, as where gotestsum
runs failed tests again. A test without a result failed if its package did, unless the test around it passed; otherwise
it is undecided, as skipped tests are. A package that fails without a failed test, such as one that cannot be built, is
a failed problem of its own.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions
from touchstone.ingest.adapters.json_files import identifier_of, numbered_lines, parse_line, raw_lines, scalar_of
from touchstone.ingest.adapters.table import AdapterTable, RefusedRecordError, ReportedFigure
from touchstone.ingest.adapters.test_reports import MAX_TEXT, WORST_FIRST, Case, Outcome, Report, report_table
from touchstone.text import counted

_RESULTS: dict[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_ACTIONS = {*_RESULTS, "start", "run", "output", "pause", "cont", "bench", "build-output", "build-fail", "attr"}
# Before Go 1.24, a failed build is not an event.
_NOT_BUILT = re.compile(r"FAIL\t(\S+) \[(?:build|setup) failed\]")
_EVENT = re.compile(r'^\{(?=.*"(?:Package|ImportPath)":).*"Action": ?"([a-z-]+)"', re.MULTILINE)
_NO_RESULT = "run"
_HEADINGS = ("=== ", "--- ")


class _Events(Report):
    """The tests by package and name, and the packages; of the events only what decides is kept."""

    def __init__(self, path: Path) -> None:
        self._tests: dict[tuple[str, str], Case] = {}
        self._packages: dict[str, Case] = {}
        self._runs: Counter[str] = Counter()
        self._builds: dict[str, str] = {}
        for line, text in numbered_lines(path):
            if text.startswith("{"):
                try:
                    self._add(line, {key: scalar_of(value) or "" for key, value in parse_line(text, "event").items()})
                except RefusedRecordError as refusal:
                    self._tests["", str(line)] = Case(line, "", "skipped", refusal=refusal)
            elif not_built := _NOT_BUILT.match(text):
                self._end(line, not_built[1], "fail", text)
        for (package, test), case in self._tests.items():
            if case.status == _NO_RESULT:
                around = self._tests.get((package, test.partition("/")[0]), case)
                failed = package in self._packages and self._packages[package].outcome == "failed"
                case.outcome = "failed" if failed and around.outcome != "passed" else "skipped"
                case.message = case.message or "no result"
            case.message = "" if case.outcome == "passed" else case.message.strip()

    def _add(self, line: int, event: dict[str, str]) -> None:
        action, package, test = identifier_of(event, "Action"), event.get("Package", ""), event.get("Test", "")
        if action not in _ACTIONS:
            raise RefusedRecordError("bad_boolean", f"the action {action[:50]!r} is not known")
        place, output = event.get("ImportPath", ""), event.get("Output", "")
        if action == "build-output":
            self._builds[place] = (self._builds.get(place, "") + output)[:MAX_TEXT]
        elif package and test and action != "bench":
            new = Case(line, f"{package}.{test}", "skipped", _NO_RESULT, package)
            case = self._tests.setdefault((package, test), new)
            if action == "output" and not output.lstrip().startswith(_HEADINGS):
                case.message = (case.message + output)[:MAX_TEXT]
            elif action in _RESULTS:
                self._settle(case, line, event)
        elif package and not test and action in _RESULTS:
            self._end(line, package, action, self._builds.get(event.get("FailedBuild", ""), ""))
        elif package and not test:
            self._packages.setdefault(package, Case(line, package, "skipped", classname=package))

    def _settle(self, case: Case, line: int, event: dict[str, str]) -> None:
        """Add a result; `start` is the run of the package in which the last one was."""
        outcome, run = _RESULTS[event["Action"]], self._runs[case.classname]
        first, later = case.status == _NO_RESULT, case.start < run
        case.flaky |= not first and {case.outcome, outcome} == {"passed", "failed"}
        if first or later or WORST_FIRST.index(outcome) < WORST_FIRST.index(case.outcome):
            case.number, case.outcome, case.status, case.start = line, outcome, event["Action"], run
            case.seconds = event.get("Elapsed")

    def _end(self, line: int, package: str, action: str, message: str) -> None:
        self._runs[package] += 1
        case = Case(line, package, _RESULTS[action], classname=package, message=message, whole=True)
        self._packages[package] = case

    def cases(self) -> Iterator[Case]:
        """The tests, and the packages that failed without one."""
        yield from self._tests.values()
        failed = {case.classname for case in self._tests.values() if case.outcome == "failed"}
        yield from (
            case for package, case in self._packages.items() if case.outcome == "failed" and package not in failed
        )

    def figures(self, counts: Counter[str]) -> Iterator[ReportedFigure]:
        """The events have no sums but the result of each package."""
        stated = sum(case.outcome == "failed" for case in self._packages.values())
        own = {case.classname for case in self.cases() if case.outcome == "failed"}
        yield ReportedFigure("", "failed packages", stated, len(own))

    def notes(self, counts: Counter[str]) -> Iterator[str]:
        """Whether the file ends early."""
        packages = {package for package, _ in self._tests if package} | self._packages.keys()
        if cut := len(packages - self._runs.keys()):
            yield f"{counted(cut, 'package has', 'packages have')} no result: the file was cut off"


def read_go_test(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the events of one run."""
    return report_table(path, "go-test", options, _Events(path), raw_lines)


def _recognizes(head: Head) -> bool:
    # Above the events may be what `go` writes to the terminal: downloads, and errors of builds.
    first = _EVENT.search(head.text)
    return first is not None and first[1] in _ACTIONS


_MARKS = "[].Action, [].Package | [].ImportPath (an event per line)"
ADAPTER = Adapter("go-test", "events of go test -json", _recognizes, read_go_test, marks=_MARKS)
