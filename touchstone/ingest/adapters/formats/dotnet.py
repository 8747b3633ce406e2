"""Adapters for the test results of .NET: TRX of Visual Studio and `dotnet test`, and the XML of NUnit 2 and 3.

TRX lists results and, elsewhere, definitions with the class of each test. A result without an outcome is an error:
that is the value which is not written. `NotExecuted`, `Inconclusive` and all others that are neither passed nor failed
are undecided. A run that was aborted is a failed problem of its own, because the tests after it are not listed.

In NUnit, ignored, explicit and inconclusive tests, and those with warnings, count as neither passed nor failed and are
undecided. A fixture that fails without a test that says so, as in its teardown, is a failed problem of its own.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from touchstone.ingest.adapters.adapter import Adapter, ReadOptions
from touchstone.ingest.adapters.table import AdapterTable, ReportedFigure, words
from touchstone.ingest.adapters.test_reports import Case, Outcome, report_table
from touchstone.ingest.adapters.xml_reports import XmlReport, raw_elements, root_of

_NAMESPACE = "microsoft.com/schemas/VisualStudio/TeamTest"
_TRX: dict[str, Outcome] = {
    "Passed": "passed",
    "Failed": "failed",
    **dict.fromkeys(words("Error Timeout Aborted"), "error"),
    **dict.fromkeys(words("Inconclusive PassedButRunAborted NotRunnable NotExecuted Disconnected"), "skipped"),
    **dict.fromkeys(words("Warning Completed InProgress Pending"), "skipped"),
}
_RESULTS = words("UnitTestResult WebTestResult GenericTestResult ManualTestResult TestResultAggregation")
_SPAN = re.compile(r"(?:([0-9]+)\.)?([0-9]+):([0-9]+):([0-9]+(?:\.[0-9]*)?)")
_NUNIT: dict[str, Outcome] = {
    **dict.fromkeys(words("Passed Success"), "passed"),
    **dict.fromkeys(words("Failed Failure"), "failed"),
    **dict.fromkeys(words("Error Cancelled"), "error"),
    **dict.fromkeys(words("Skipped Inconclusive Warning Ignored NotRunnable"), "skipped"),
}
_NOT_RUN = ("Ignored", "Skipped", "NotRunnable")


class _Trx(XmlReport):
    roots = ("TestRun",)
    texts = frozenset({"Message", "Text", "StdOut"})

    def __init__(self, path: Path, classes: Mapping[str, str] | None = None) -> None:
        super().__init__(path)
        self.counted = {"total": (), **{word[:1].lower() + word[1:]: (word,) for word in _TRX}}
        # The classes of the tests by their ids: given, and as this document defines them.
        self._classes = classes or {}
        self.defined: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._test = ""
        self._open: list[Case] = []
        self._inner: Counter[str] = Counter()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in _RESULTS:
            self._start_result(attributes)
        elif tag == "UnitTest":
            self._test = attributes.get("id", "")
        elif tag == "TestMethod":
            # Visual Studio writes "Class, Assembly, Version=1.0.0.0, …"; there are few classes for many tests.
            name = attributes.get("className", "").partition(",")[0]
            self.defined[self._test] = self._names.setdefault(name, name)
        elif tag == "Counters":
            # `dotnet test` counts only these, and writes 0 for the others.
            self.stated = {
                name: text for name, text in attributes.items() if text != "0" or name in ("total", "passed", "failed")
            }

    def _start_result(self, attributes: dict[str, str]) -> None:
        classname, name = self._classes.get(attributes.get("testId", ""), ""), attributes.get("testName", "")
        full = f"{classname}.{name}" if classname and name and not name.startswith((f"{classname}.", "[")) else name
        case = Case(0, full, "passed", classname=classname)
        case.judge(attributes.get("outcome", "Error"), _TRX)
        if span := _SPAN.fullmatch(attributes.get("duration", "")):
            days, hours, minutes, seconds = (float(part or 0) for part in span.groups())
            case.seconds = f"{((days * 24 + hours) * 60 + minutes) * 60 + seconds:.12g}"
        self._inner[case.status] += bool(self._open)
        self._open.append(self.begin(case))

    def end(self, tag: str, text: str) -> None:
        if tag in _RESULTS:
            self.found.append(self._open.pop())
        elif self._open and (tag == "Message" or (tag == "StdOut" and self._open[-1].outcome == "skipped")):
            self._open[-1].message = self._open[-1].message or text
        elif tag == "Text" and "test run was aborted" in text.lower():
            self.found.append(self.begin(Case(0, "the test run", "error", message=text, whole=True)))

    def figures(self, counts: Counter[str]) -> Iterator[ReportedFigure]:
        """Of results inside others, as of data rows, some versions count all, and some the outer one."""
        every, outer = super().figures(counts), super().figures(counts - self._inner)
        yield from (
            other if other.reported == other.recomputed else one for one, other in zip(every, outer, strict=True)
        )


def read_trx(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the results of one run."""
    definitions = _Trx(path)
    for _ in definitions.cases():
        pass
    return report_table(path, "trx", options, _Trx(path, definitions.defined), raw_elements(_Trx))


TRX = Adapter(
    "trx",
    "TRX test results",
    lambda head: root_of(head) in _Trx.roots and _NAMESPACE in head.text,
    read_trx,
    reads_utf_16=True,
    marks="(XML with TestRun of Visual Studio)",
)


class _NUnit(XmlReport):
    roots = ("test-run", "test-results")
    texts = frozenset({"message"})

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        # Of each open suite its attributes, and how many cases came before it.
        self._suites: list[tuple[dict[str, str], int]] = []
        self._cases = 0
        self._case: Case | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in self.roots:
            self.stated = attributes
            if "not-run" in attributes:
                run = [word for word in _NUNIT if word not in _NOT_RUN]
                self.counted = {"total": run, "errors": ("Error", "Cancelled"), "failures": ("Failure",)}
                self.counted |= {"not-run": _NOT_RUN, "inconclusive": ("Inconclusive",)}
            else:
                names = words("Passed Failed Inconclusive Skipped")
                self.counted = {"total": (), **{name.lower(): (name,) for name in names}, "warnings": ("Warning",)}
        elif tag == "test-suite":
            self._suites.append((attributes, self._cases))
        elif tag == "test-case":
            self._start_case(attributes)

    def _start_case(self, attributes: dict[str, str]) -> None:
        self._cases += 1
        case = Case(0, _name(attributes), "passed", classname=attributes.get("classname", ""))
        # Each of several assemblies may have a test of that name.
        assemblies = (suite.get("name", "") for suite, _ in self._suites if suite.get("type") == "Assembly")
        case.suite = next(assemblies, "")
        case.seconds = attributes.get("duration") or attributes.get("time", "").replace(",", ".")
        executed, success = (attributes.get(key, "").lower() for key in ("executed", "success"))
        old = "Ignored" if executed == "false" else "Success" if success == "true" else "Failure"
        case.judge(attributes.get("result", old), _NUNIT)
        if case.outcome == "failed" and attributes.get("label") in ("Error", "Cancelled"):
            case.outcome = "error"
        self._case = self.begin(case)

    def end(self, tag: str, text: str) -> None:
        if tag == "test-case" and self._case is not None:
            self.found.append(self._case)
            self._case = None
        elif tag == "message" and self._case is not None:
            self._case.message = self._case.message or text
        elif tag == "test-suite":
            suite, before = self._suites.pop()
            failed = suite.get("result") in ("Failed", "Failure", "Error")
            alone = before == self._cases or suite.get("site") == "TearDown"
            if failed and alone and suite.get("site") not in ("Child", "Parent"):
                message = f"{suite.get('label', 'Failed')} {suite.get('site', '')}".strip()
                self.found.append(self.begin(Case(0, _name(suite), "error", message=message, whole=True)))


def _name(attributes: Mapping[str, str]) -> str:
    return attributes.get("fullname") or attributes.get("name", "")


def read_nunit(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the results of one run."""
    return report_table(path, "nunit", options, _NUnit(path), raw_elements(_NUnit))


NUNIT = Adapter(
    "nunit",
    "NUnit XML",
    lambda head: root_of(head) in _NUnit.roots and "<test-suite" in head.text,
    read_nunit,
    reads_utf_16=True,
    marks="(XML with test-run or test-results, and test-suite)",
)
