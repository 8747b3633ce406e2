"""Adapter for JUnit XML: a problem is named `classname.name`; what else all reports share is in `test_reports`.

Node's test runner gives every test the class "test", so there the names of the suites around it stand in front.

A failure or an error is a failure, also one of the setup or teardown: a fix can provoke each of them. A file that
cannot be collected, or a suite that reports an error, is a failed problem of its own, because its tests are not listed.
Tests that were skipped, disabled, expected to fail or still to do were not judged and are undecided. Several results of
one test in one suite are reruns. They are different tests, such as those of TestNG with parameters, if the suite states
as many tests as it has elements. Surefire's flaky tests passed in the end, and are flagged.

Elements are counted, never the attributes that state how many there are.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, ReadOptions
from touchstone.ingest.adapters.exported import ATTEMPT_PROPERTY, MODEL_PROPERTY
from touchstone.ingest.adapters.json_files import parse_line
from touchstone.ingest.adapters.table import AdapterTable, RefusedRecordError, ReportedFigure
from touchstone.ingest.adapters.test_reports import MAX_TEXT, WORST_FIRST, Case, Outcome, report_table
from touchstone.ingest.adapters.xml_reports import XmlReport, raw_elements, root_of
from touchstone.ingest.compressed import uncompressed_name
from touchstone.text import counted

FORMAT = "junit"
_NAMES: dict[str, Outcome] = {"failures": "failed", "errors": "error"}
_NOT_JUDGED = ("skipped", "disabled")
_COUNT = re.compile(r"[0-9]{1,9}")
_NOT_RUN = {"notrun", "disabled", "skipped", "suppressed", "ignored", "pending"}
_SKIPPED_TAGS = ("skipped", "disabled", "ignored")
_FLAKY = ("flakyFailure", "flakyError")


@dataclass
class _Suite:
    """An open suite: the names from the outermost to it, what it states, and how many test cases it has."""

    number: int
    names: tuple[str, ...]
    file: str
    tests: str | None
    cases: int = 0

    @cached_property
    def path(self) -> str:
        return "/".join(filter(None, self.names))


class _Document(XmlReport):
    """The state while a document is read."""

    roots = ("testsuites", "testsuite")

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.apart: set[int] = set()
        # The sums over the outermost suites of the counts that each of them states, and what is stated around them.
        self._sums: dict[str, int | None] = {}
        self._around: dict[str, int] = {}
        self._suites: list[_Suite] = []
        self._opened = 0
        self._case: Case | None = None
        self._todo = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "testsuite":
            self._opened += 1
            names = (*(self._suites[-1].names if self._suites else ()), attributes.get("name", ""))
            self._suites.append(_Suite(self._opened, names, _file_of(attributes), attributes.get("tests")))
            if len(self._suites) == 1:
                self._add_counts(attributes)
        elif tag == "testsuites":
            # mocha-junit-reporter counts the tests that it does not list only here.
            counts = {name: _COUNT.fullmatch(attributes.get(name, "")) for name in _NOT_JUDGED}
            self._around = {name: int(count[0]) for name, count in counts.items() if count}
        elif tag == "testcase":
            self._start_case(attributes)
        elif tag in ("failure", "error"):
            self._result("failed" if tag == "failure" else "error", attributes)
        elif tag == "property":
            self._property(attributes.get("name", ""), attributes.get("value", ""))
        elif self._case is not None:
            if tag in _SKIPPED_TAGS:
                self._skip(self._case, attributes)
            elif tag in _FLAKY:
                self._case.flaky = True

    def end(self, tag: str, text: str) -> None:
        if tag == "testcase" and self._case is not None:
            case, self._case = self._case, None
            # Without a suite around it, no figure counts it.
            case.status = case.outcome if self._suites else ""
            # pytest's entry for a file that cannot be imported.
            case.whole = not case.classname and case.outcome == "error"
            self.found.append(case)
        elif tag == "testsuite":
            suite = self._suites.pop()
            if suite.tests == str(suite.cases):
                self.apart.add(suite.number)
            if self._suites:
                self._suites[-1].cases += suite.cases
        elif tag == "testsuites":
            self._sums |= {name: count for name, count in self._around.items() if self._sums.get(name) is None}

    def _start_case(self, attributes: dict[str, str]) -> None:
        if self._case is not None:  # one result would hide the other
            raise InputFileError(f"{self.path}: a <testcase> stands inside another one")
        classname, name = attributes.get("classname", ""), attributes.get("name", "")
        suite = self._suites[-1] if self._suites else _Suite(0, (), "", None)
        suite.cases += 1
        # Node: the class is the same for all tests, the suites tell them apart.
        full = "/".join((*suite.names, name)) if classname == "test" else name
        full = f"{classname}.{full}" if name and classname else name
        said = {attributes.get("status", "").lower(), attributes.get("result", "").lower()}
        off = attributes.get("disabled", "").lower() == "true" or attributes.get("enabled", "").lower() == "false"
        case = Case(0, full, "skipped" if off or said & _NOT_RUN else "passed", "", classname, suite.path)
        case.file, case.seconds = _file_of(attributes) or suite.file, attributes.get("time", "").replace(",", "")
        case.group = suite.number
        self._case, self._todo = self.begin(case), False

    def _property(self, name: str, value: str) -> None:
        if self._case is None:
            self.model = value if name == MODEL_PROPERTY else self.model
        elif name == ATTEMPT_PROPERTY:
            try:
                self._case.exported = parse_line(value, name)
            except RefusedRecordError as refusal:
                self._case.refusal = refusal
        else:
            self._case.cells[f"property_{name}"] = value[:MAX_TEXT]

    def _result(self, outcome: Outcome, attributes: dict[str, str]) -> None:
        """A failure or an error of the open test case, or of the suite around it."""
        message = (attributes.get("message") or attributes.get("type") or outcome)[:MAX_TEXT]
        if self._case is None:
            suite = self._suites[-1].path if self._suites else ""
            name = suite or Path(uncompressed_name(self.path)).stem
            self.found.append(self.begin(Case(0, name, outcome, suite=suite, message=message, group=0, whole=True)))
            return
        if not self._todo and WORST_FIRST.index(outcome) < WORST_FIRST.index(self._case.outcome):
            self._case.outcome = outcome
        self._case.message = self._case.message or message

    def _skip(self, case: Case, attributes: dict[str, str]) -> None:
        """A failure beside it counts, unless the test is still to do, which node expects to fail."""
        self._todo = attributes.get("type") == "todo"
        if self._todo or case.outcome == "passed":
            case.outcome = "skipped"
        kind = attributes.get("type", "").removeprefix("pytest.") or "skipped"
        case.message = case.message or ": ".join(filter(None, [kind, attributes.get("message", "")]))[:MAX_TEXT]

    def _add_counts(self, attributes: dict[str, str]) -> None:
        """Add the counts of a suite; None where one lacks it."""
        for name in ("tests", *_NAMES, *_NOT_JUDGED):
            text, sum_before = attributes.get(name, ""), self._sums.get(name, 0)
            known = sum_before is not None and _COUNT.fullmatch(text)
            self._sums[name] = (sum_before or 0) + int(text) if known else None

    def figures(self, counts: Counter[str]) -> Iterator[ReportedFigure]:
        """Tools differ in whether `tests` counts the disabled ones, which some do not list."""
        stated, missing = self._sums, self._unlisted(counts)
        note = f"{counted(missing, 'disabled or skipped test is', 'disabled or skipped tests are')} not listed"
        without = counts.total() - (stated.get("disabled") or 0)
        skipped, disabled = (stated.get(name) for name in _NOT_JUDGED)
        both = " and ".join(_NOT_JUDGED) if disabled else _NOT_JUDGED[0]
        rows = {
            "tests": (stated.get("tests"), without if stated.get("tests") == without else counts.total()),
            **{name: (stated.get(name), counts[outcome]) for name, outcome in _NAMES.items()},
            both: (None if skipped is disabled is None else (skipped or 0) + (disabled or 0), counts["skipped"]),
        }
        for name, (count, own) in rows.items():
            known = None if missing and name in ("tests", both) else own
            if count is not None:
                yield ReportedFigure("", name, count, known, note=note if missing else None)

    def notes(self, counts: Counter[str]) -> Iterator[str]:
        """Which tests are missing."""
        if missing := self._unlisted(counts):
            tests = f"{missing:,} of the {self._sums['tests']:,} tests that the file counts"
            yield f"{tests} are disabled or skipped and not listed: they are missing"

    def _unlisted(self, counts: Counter[str]) -> int:
        """How many tests the file counts as disabled or skipped but does not list."""
        missing = (self._sums.get("tests") or 0) - counts.total()
        not_judged = sum(self._sums.get(name) or 0 for name in _NOT_JUDGED) - counts["skipped"]
        return missing if 0 < missing <= not_judged else 0


def _file_of(attributes: dict[str, str]) -> str:
    return (attributes.get("file") or attributes.get("filepath", "")).removeprefix("./")


def read_junit(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the test cases of one file into rows of text cells."""
    return report_table(path, FORMAT, options, _Document(path), raw_elements(_Document))


ADAPTER = Adapter(FORMAT, "JUnit XML", lambda head: root_of(head) in _Document.roots, read_junit, reads_utf_16=True)
