"""Adapters for test results in XML: JUnit, TRX of Visual Studio and `dotnet test`, NUnit 2 and 3, and TestNG.

A document of any size is read as a stream, of which only the open elements are in memory. A document type declaration
is refused, and with it every entity. What else all reports share is in `test_reports`.

JUnit: a problem is named `classname.name`. Node's test runner gives every test the class "test", so there the names of
the suites around it stand in front. A failure or an error is a failure, also one of the setup or teardown: a fix can
provoke each of them. A file that cannot be collected, or a suite that reports an error, is a failed problem of its own,
because its tests are not listed; so is a suite without any test case that counts nothing but failures and errors, and
a file that does. A failure without a name has that of its suite. What CTest could not start is a failure.
Tests that were skipped, disabled, expected to fail or still to do were not judged and are undecided. Several results of
one test in one suite are reruns, if the suite states no more tests than it has names, and else different tests, such as
those of TestNG with parameters: what tools state differs by todos and hooks, so it need not be exact. pytest's names
are unique, and what it states counts errors of teardowns. The worst result counts, unless the suite states as many
failures as there are last results that failed. Surefire's flaky tests passed in the end, and are flagged. Elements are
counted, never the attributes that state how many there are.

TRX lists results and, elsewhere, definitions with the class of each test. A result without an outcome is an error:
that is the value which is not written. `NotExecuted`, `Inconclusive` and all others that are neither passed nor failed
are undecided. A run that was aborted is a failed problem of its own, because the tests after it are not listed.

In NUnit, ignored, explicit and inconclusive tests, and those with warnings, count as neither passed nor failed and are
undecided. A fixture that fails without a test that says so, as in its teardown, is a failed problem of its own.

In TestNG's own `testng-results.xml` a problem is named `class.method`. Rows of a data provider are tests of one name,
told apart by their order. A result that was retried is one of the same test as the result that follows, which decides.
Skipped tests, and failures within a success percentage, are undecided. A configuration method that fails, such as a
setup, is a failed problem of its own: TestNG skips the tests after it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from xml.parsers import expat

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions
from touchstone.ingest.adapters.exported import ATTEMPT_PROPERTY, MODEL_PROPERTY
from touchstone.ingest.adapters.json_files import number_of, parse_line
from touchstone.ingest.adapters.table import AdapterTable, RefusedRecordError, ReportedFigure, words
from touchstone.ingest.adapters.test_reports import MAX_TEXT, ROOTED, WORST_FIRST, Case, Outcome, Report, report_table
from touchstone.ingest.compressed import open_input, uncompressed_name
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH, readable
from touchstone.ingest.dialect import is_utf_16
from touchstone.ingest.limits import limits
from touchstone.text import counted

_DECLARATION = r"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>"
_ROOT = re.compile(rf"\A(?:<\?xml[^>]*\?>|<!--.*?-->|{_DECLARATION}|\s)*<([\w-]+)[\s>/]", re.DOTALL)
_CHUNK = 1 << 20
# Control characters, such as those of colours, are no XML, but some tools write them with what a test printed.
_NO_CONTROLS = bytes(byte if byte > 31 or byte in b"\0\t\n\r" else 63 for byte in range(256))
_ADVICE = {
    expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT: "put each report into a file of its own",
    expat.errors.XML_ERROR_INVALID_TOKEN: "save it as UTF-8, if it has another encoding",
}
# Suites are nested a few levels deep. Expat keeps all names of open elements.
_MAX_DEPTH = 200


class _XmlReport(Report):
    """Calls `start` and `end` for every element; they add cases to `found`."""

    roots: tuple[str, ...] = ()
    # The elements whose text `end` is given, without more than `MAX_TEXT` characters of it.
    texts: frozenset[str] = frozenset()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: list[Case] = []
        self._count = 0
        self._depth = 0
        self._text = ""
        self._parser = expat.ParserCreate()
        # The blank space above the document, which must not be there.
        self._above = 0

    @classmethod
    def of(cls, path: Path) -> "_XmlReport":
        """The report of a file, with what must be known before its cases."""
        return cls(path)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element starts."""

    def end(self, tag: str, text: str) -> None:
        """An element ends."""

    def begin(self, case: Case) -> Case:
        """Number a case that starts here; it is added to `found` when nothing of it can change any more."""
        self._count += 1
        case.number, case.start = self._count, self._parser.CurrentByteIndex + self._above
        return case

    def cases(self) -> Iterator[Case]:
        """Every case, as the file is read."""
        read = 0
        try:
            with readable(self.path), open_input(self.path) as file:
                chunk = file.read(_CHUNK)
                # PowerShell writes what a tool prints in UTF-16, whatever is declared.
                is_wide, self._above = is_utf_16(chunk), len(chunk) - len(chunk := chunk.lstrip())
                parser = self._parser = expat.ParserCreate("UTF-16" if is_wide else None)
                parser.buffer_text = True
                parser.StartDoctypeDeclHandler = self._refuse_doctype
                parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
                while chunk:
                    parser.Parse(chunk if is_wide else chunk.translate(_NO_CONTROLS), False)
                    read += len(chunk)
                    if read - parser.CurrentByteIndex > limits().row_bytes:
                        raise InputFileError(f"{self.path}: an element is longer than {limits().row_mb:,} MiB")
                    yield from self.found
                    self.found.clear()
                    chunk = file.read(_CHUNK)
                parser.Parse(b"", True)
        except expat.ExpatError as error:
            what = f"not whole XML ({error}); {_ADVICE.get(expat.ErrorString(error.code), 'write or copy it again')}"
            raise InputFileError(f"{self.path}: {what}") from None
        except (ValueError, LookupError) as error:  # of the encoding that it declares
            raise InputFileError(f"{self.path}: its encoding is not supported ({error}); save it as UTF-8") from None
        yield from self.found

    def _refuse_doctype(self, *_: object) -> None:
        raise InputFileError(f"{self.path}: has a document type declaration, which is refused; delete it")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise InputFileError(f"{self.path}: elements are nested more than {_MAX_DEPTH} levels deep")
        if self._depth == 1 and tag not in self.roots:
            wanted = " or ".join(f"<{root}>" for root in self.roots)
            raise InputFileError(f"{self.path}: the root is <{tag[:50]}> instead of {wanted}")
        self._text = ""
        self._parser.CharacterDataHandler = self._add_text if tag in self.texts else None
        self.start(tag, attributes)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        self.end(tag, self._text.strip() if tag in self.texts else "")

    def _add_text(self, text: str) -> None:
        if len(self._text) < MAX_TEXT:
            self._text += text[:MAX_TEXT]


_NAMES: dict[str, Outcome] = {"failures": "failed", "errors": "error"}
_NOT_JUDGED = ("skipped", "disabled")
_STATED = ("tests", *_NAMES, *_NOT_JUDGED)
_COUNT = re.compile(r"[0-9]{1,9}")
_JUNIT_NOT_RUN = {"notrun", "disabled", "skipped", "suppressed", "ignored", "pending"}
_JUNIT_FAILED = {"failed", "fail", "failure", "error"}
_SKIPPED_TAGS = ("skipped", "disabled", "ignored")
_FLAKY = ("flakyFailure", "flakyError")
_RERUN: dict[str, Outcome] = {"flakyFailure": "failed", "flakyError": "error"}
_RERUN |= {"rerunFailure": "failed", "rerunError": "error"}
_UNSURE = "inconclusive"
# What TAP::Formatter::JUnit lists beside the tests, to say how long it took.
_TIMES = ("(init)", "(teardown)")
_HOOK = re.compile(r'"(?:before|after) (?:all|each)" hook\b')
# Not the path of a page, such as /login.
_FILE = re.compile(r"\.[A-Za-z]\w*$")
_CTEST = re.compile("Unable to find executable|Required Files Missing|Fixture dependency failed|Missing Configuration")


@dataclass
class _Suite:
    """An open suite: the names from the outermost to it, what it states, and how many results it has."""

    number: int
    names: tuple[str, ...]
    file: str
    tests: str | None
    # How many of them failed, and how many had an error.
    bad: Counter[Outcome]
    # The outcomes of its test cases, and of those inside it.
    cases: Counter[Outcome]
    # Of whole suites.
    results: int = 0

    @cached_property
    def path(self) -> str:
        return "/".join(filter(None, self.names))


class _JUnit(_XmlReport):
    roots = ("testsuites", "testsuite")

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.uncounted: dict[int, tuple[int, int]] = {}
        # The sums over the outermost suites of the counts that each of them states, and what is stated around them.
        self._sums: dict[str, int | None] = {}
        self._around: dict[str, int] = {}
        self._bad_around: Counter[Outcome] = Counter()
        # How often a test case failed: some tools count that.
        self._bad: Counter[Outcome] = Counter()
        # Results that no count of tests has: hooks of mocha, and what is in a suite without tests.
        self._outside: Counter[Outcome] = Counter()
        self._is_pytest = False
        self._suites: list[_Suite] = []
        self._opened = 0
        self._case: Case | None = None
        self._todo = self._says_failed = self._is_unsure = False
        # The further failures of tests that were run again.
        self._reruns: Counter[Outcome] = Counter()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "testsuite":
            self._opened += 1
            names = (*(self._suites[-1].names if self._suites else ()), attributes.get("name", ""))
            tests, bad = attributes.get("tests"), _bad(attributes)
            suite = _Suite(self._opened, names, _file_of(attributes), tests, bad, Counter())
            self._suites.append(suite)
            self._is_pytest |= names[-1] == "pytest"
            if len(self._suites) == 1:
                self._add_counts(attributes)
        elif tag == "testsuites":
            # mocha-junit-reporter counts the tests that it does not list only here, and others every test.
            counts = {name: _COUNT.fullmatch(attributes.get(name, "")) for name in _STATED}
            self._around = {name: int(count[0]) for name, count in counts.items() if count}
            self._bad_around, self._is_pytest = _bad(attributes), attributes.get("name") == "pytest tests"
        elif tag == "testcase":
            self._start_case(attributes)
        elif tag in ("failure", "error"):
            self._result("failed" if tag == "failure" else "error", attributes)
        elif tag == "property":
            self._property(attributes.get("name", ""), attributes.get("value", ""))
        elif self._case is not None:
            if tag in _SKIPPED_TAGS:
                self._skip(self._case, attributes)
            elif tag in _RERUN:
                self._reruns[_RERUN[tag]] += 1
                self._case.flaky = self._case.flaky or tag in _FLAKY

    def end(self, tag: str, text: str) -> None:
        if tag == "testcase" and self._case is not None:
            case, self._case = self._case, None
            if case.outcome == "passed" and self._says_failed:
                case.outcome = "failed"
            if case.name in _TIMES and case.outcome == "passed":
                return
            # Without a suite around it, no figure counts it.
            word = _UNSURE if self._is_unsure and case.outcome == "skipped" else case.status or case.outcome
            case.status = word if self._suites else ""
            if case.outcome in _NAMES.values():
                # GoogleTest does not name what fails outside of tests.
                case.name = case.name or case.classname or case.suite
            case.whole = case.whole and case.outcome == "error"
            if self._suites and not _HOOK.search(case.name):
                self._suites[-1].cases[case.outcome] += 1
            else:
                self._outside[case.outcome] += bool(case.status)
            self.found.append(case)
        elif tag == "testsuite":
            self._end_suite()
        elif tag == "testsuites":
            # gotestsum counts packages that cannot be built only here.
            no_errors = self._sums.get("errors") is None and self._bad_around.total() > self._bad.total()
            if self._opened:
                self._sums |= {name: count for name, count in self._around.items() if self._sums.get(name) is None}
            if not self._count or no_errors:
                self._not_listed(self._bad_around - self._bad)

    def _end_suite(self) -> None:
        suite = self._suites[-1]
        listed, bad = suite.cases.total(), sum(suite.cases[outcome] for outcome in _NAMES.values())
        if suite.tests is not None and _COUNT.fullmatch(suite.tests) and not self._is_pytest:
            self.uncounted[suite.number] = listed - int(suite.tests), bad - suite.bad.total()
        if not listed and not suite.results and suite.tests in (None, "0", str(suite.bad.total())):
            self._not_listed(suite.bad)
        self._suites.pop()
        if suite.tests == "0":
            self._outside += suite.cases
        elif self._suites:
            self._suites[-1].cases += suite.cases
        if self._suites:
            self._suites[-1].results += suite.results

    def _start_case(self, attributes: dict[str, str]) -> None:
        if self._case is not None:  # one result would hide the other
            raise InputFileError(f"{self.path}: a <testcase> stands inside another one")
        # Older versions of PHPUnit call it `class`.
        classname = attributes.get("classname") or attributes.get("class", "").replace("\\", ".")
        name, file = attributes.get("name", ""), _file_of(attributes)
        suite = self._suites[-1] if self._suites else _Suite(0, (), "", None, Counter(), Counter())
        # Of a file that cannot be loaded pytest has no class, and others have its name or that of the suite.
        whole = attributes.get("classname", "".join(suite.names[-1:])) in ("", name)
        if ROOTED.match(classname) and _FILE.search(classname):
            # Pester's classes are files, which may be in another folder in the next run.
            name = re.split(r"[\\/]", name)[-1] if whole else name
            classname, file = "", file or classname
        # Node: the class is the same for all tests, the suites tell them apart.
        full = "/".join((*suite.names, name)) if classname == "test" else name
        full = f"{classname}.{full}" if name and classname else name
        said = {attributes.get("status", "").lower(), attributes.get("result", "").lower()}
        off = attributes.get("disabled", "").lower() == "true" or attributes.get("enabled", "").lower() == "false"
        case = Case(0, full, "skipped" if off or said & _JUNIT_NOT_RUN else "passed", "", classname, suite.path)
        case.file, case.seconds = file or suite.file, attributes.get("time")
        # Node puts tests of all files beside each other, without a suite, and runs none of them again.
        case.group = suite.number if self._suites else None
        case.whole = whole
        self._case, self._is_unsure = self.begin(case), _UNSURE in said
        self._todo, self._says_failed = False, not said.isdisjoint(_JUNIT_FAILED)

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
            case = Case(0, name, outcome, suite=suite, message=message, group=0, whole=True)
            case.status = f"suite {outcome}"
            if self._suites:
                self._suites[-1].results += 1
            self.found.append(self.begin(case))
            return
        if not self._todo:
            self._bad[outcome] += 1
            self._case.outcome = min(outcome, self._case.outcome, key=WORST_FIRST.index)
        self._case.message = self._case.message or message

    def _not_listed(self, bad: Counter[Outcome]) -> None:
        """A failure for those that are counted, if there are any, because nothing else tells of them."""
        if bad:
            message = f"{counted(bad.total(), 'failure or error', 'failures or errors')}, not listed"
            self._result("error" if bad["error"] else "failed", {"message": message})

    def _skip(self, case: Case, attributes: dict[str, str]) -> None:
        """A failure beside it counts, unless it is expected: of a test still to do (node) or that may fail (Catch2)."""
        message = attributes.get("message", "")
        self._todo = attributes.get("type") == "todo" or message.endswith("tagged with !mayfail")
        self._is_unsure |= self._todo
        if _CTEST.fullmatch(message):
            # The file counts it as skipped, and CTest as failed.
            case.outcome, case.status = "error", "skipped"
        elif self._todo or case.outcome == "passed":
            case.outcome = "skipped"
        kind = attributes.get("type", "").removeprefix("pytest.") or "skipped"
        case.message = case.message or ": ".join(filter(None, [kind, message]))[:MAX_TEXT]

    def _add_counts(self, attributes: dict[str, str]) -> None:
        """Add the counts of a suite; None where one lacks it."""
        for name in _STATED:
            # nose says skip.
            text = attributes.get(name) or (attributes.get("skip", "") if name == "skipped" else "")
            sum_before = self._sums.get(name, 0)
            known = sum_before is not None and _COUNT.fullmatch(text)
            self._sums[name] = (sum_before or 0) + int(text) if known else None

    def figures(self, counts: Counter[str]) -> Iterator[ReportedFigure]:
        """Tools differ in what they count: of several ways, the one that gives what is stated."""
        stated, missing = self._sums, self._unlisted(counts)
        suites = {name: counts[f"suite {outcome}"] for name, outcome in _NAMES.items()}
        listed, skipped = counts.total() - sum(suites.values()), counts["skipped"]
        disabled = stated.get("disabled") or 0
        outside = self._outside.total()
        tests = [listed, listed - disabled, counts.total(), listed + self._reruns.total(), listed - outside]
        if all(stated.get(name) is None for name in _NOT_JUDGED):
            tests.append(listed - skipped)  # Ginkgo 1
        bad = self._counted_bad({name: counts[outcome] + suites[name] for name, outcome in _NAMES.items()})
        both = " and ".join(_NOT_JUDGED) if disabled else _NOT_JUDGED[0]
        known = [count for name in _NOT_JUDGED if (count := stated.get(name)) is not None]
        rows = {
            "tests": (stated.get("tests"), tests),
            **{name: (stated.get(name), [count]) for name, count in bad.items()},
            # Pester: of what it calls inconclusive, versions count all or none.
            both: (sum(known) if known else None, [skipped, skipped + counts[_UNSURE], skipped - outside]),
        }
        for name, (count, ways) in rows.items():
            if count is None:
                continue
            own: int | None = next((way for way in ways if way == count), ways[0])
            note = None
            if missing and name in ("tests", both):
                tests_are = counted(missing, "disabled or skipped test is", "disabled or skipped tests are")
                own, note = None, f"{tests_are} not listed"
            elif own != count and (self._reruns or self._is_pytest):
                own, note = None, "of the last rerun" if self._reruns else "with subtests and errors of teardowns"
            yield ReportedFigure("", name, count, own, note=note)

    def _counted_bad(self, own: dict[str, int]) -> dict[str, int]:
        """How many failures and errors there are, as the file counts them."""
        stated = {name: count for name in _NAMES if (count := self._sums.get(name)) is not None}
        ways = [own, {name: self._bad[outcome] for name, outcome in _NAMES.items()}]
        ways.append({name: own[name] + self._reruns[outcome] for name, outcome in _NAMES.items()})
        ways.append({name: own[name] - self._outside[outcome] for name, outcome in _NAMES.items()})
        if not own["errors"]:  # the reporter of mocha calls all of them errors, too
            ways.append(dict.fromkeys(_NAMES, own["failures"]))
        if len(stated) == len(own) and sum(stated.values()) == sum(own.values()):
            ways.append(stated)  # which of them are errors: Ginkgo counts aborted tests, which are listed as failures
        return next((way for way in ways if stated.items() <= way.items()), own)

    def notes(self, counts: Counter[str]) -> Iterator[str]:
        """Which tests are missing."""
        if missing := self._unlisted(counts):
            tests = f"{missing:,} of the {self._sums['tests']:,} tests that the file counts"
            yield f"{tests} are disabled or skipped and not listed: they are missing"
        elif (stated := self._sums.get("tests") or 0) > self._count + self._reruns.total():
            listed = f"the file counts {stated:,} tests and lists {self._count:,}"
            yield f"{listed}: others are missing, or it counts assertions"

    def _unlisted(self, counts: Counter[str]) -> int:
        """How many tests the file counts as disabled or skipped but does not list."""
        listed = sum(counts[word] for word in (*WORST_FIRST, _UNSURE))
        missing = (self._sums.get("tests") or 0) - listed
        not_judged = sum(self._sums.get(name) or 0 for name in _NOT_JUDGED) - counts["skipped"]
        return missing if 0 < missing <= not_judged else 0


def _bad(attributes: dict[str, str]) -> Counter[Outcome]:
    """How many failures and errors a suite counts."""
    counts = ((outcome, _COUNT.fullmatch(attributes.get(name, ""))) for name, outcome in _NAMES.items())
    return +Counter({outcome: int(count[0]) for outcome, count in counts if count})


def _file_of(attributes: dict[str, str]) -> str:
    return (attributes.get("file") or attributes.get("filepath", "")).removeprefix("./")


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
_NUNIT_NOT_RUN = ("Ignored", "Skipped", "NotRunnable")


class _Trx(_XmlReport):
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

    @classmethod
    def of(cls, path: Path) -> "_Trx":
        definitions = cls(path)
        for _ in definitions.cases():
            pass
        return cls(path, definitions.defined)


class _NUnit(_XmlReport):
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
                run = [word for word in _NUNIT if word not in _NUNIT_NOT_RUN]
                self.counted = {"total": run, "errors": ("Error", "Cancelled"), "failures": ("Failure",)}
                self.counted |= {"not-run": _NUNIT_NOT_RUN, "inconclusive": ("Inconclusive",)}
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
        case.seconds = attributes.get("duration") or attributes.get("time")
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


_TESTNG: dict[str, Outcome] = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
_TESTNG["SUCCESS_PERCENTAGE_FAILURE"] = "skipped"
_RETRIED = "retried"
_TESTNG_SUITES = ("suite", "test")


class _TestNG(_XmlReport):
    roots = ("testng-results",)
    texts = frozenset({"message", "value"})

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        one = {"passed": "PASS", "failed": "FAIL", "skipped": "SKIP", _RETRIED: _RETRIED}
        self.counted = {"total": tuple(one.values()), **{name: (word,) for name, word in one.items()}}
        self._suites: list[str] = []
        self._class = self._signature = ""
        self._case: Case | None = None
        self._parameters: list[str] = []
        # The group of a result that was retried, by the test, until the next result of it.
        self._waiting: dict[tuple[str, ...], int] = {}
        # Of all results, also those that another one replaces.
        self._words: Counter[str] = Counter()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in self.roots:
            self.stated = attributes
        elif tag in _TESTNG_SUITES:
            self._suites.append(attributes.get("name", ""))
        elif tag == "class":
            self._class = ".".join(filter(None, [attributes.get("package"), attributes.get("name")]))
        elif tag == "test-method":
            name, self._signature = attributes.get("name", ""), attributes.get("signature", "")
            case = Case(0, f"{self._class}.{name}" if name else "", "passed", classname=self._class)
            case.suite = "/".join(filter(None, self._suites))
            case.judge(attributes.get("status", ""), _TESTNG)
            milliseconds = number_of(attributes.get("duration-ms"))
            case.seconds = None if milliseconds is None else f"{milliseconds / 1000:.12g}"
            case.whole = attributes.get("is-config") == "true"
            if attributes.get(_RETRIED) == "true":
                case.status = _RETRIED
            self._case, self._parameters = self.begin(case), []

    def end(self, tag: str, text: str) -> None:
        case = self._case
        if tag in _TESTNG_SUITES:
            self._suites.pop()
        elif case is not None and tag == "value":
            self._parameters.append(text)
        elif case is not None and tag == "message":
            case.message = case.message or text
        elif case is not None and tag == "test-method":
            self._case = None
            if not case.whole:
                self._end_test(case)
            elif case.outcome == "failed":
                case.outcome, case.status, case.group = "error", "", 0
                self.found.append(case)

    def _end_test(self, case: Case) -> None:
        test = (case.suite, case.classname, self._signature, *self._parameters)
        case.group = self._waiting.pop(test, None)
        case.flaky = case.group is not None and case.outcome == "passed"
        if case.status == _RETRIED:
            case.group = self._waiting[test] = case.group or case.number
        self._words[case.status] += 1
        case.cells["parameters"] = ", ".join(self._parameters)[:MAX_TEXT] or None
        self.found.append(case)

    def figures(self, counts: Counter[str]) -> Iterator[ReportedFigure]:
        """The tool counts ignored tests, which it does not list."""
        note = f"{counted(self._ignored, 'ignored test is', 'ignored tests are')} not listed"
        for figure in super().figures(self._words):
            missing = self._ignored and figure.name == "total"
            yield ReportedFigure("", "total", figure.reported, None, note=note) if missing else figure

    def notes(self, counts: Counter[str]) -> Iterator[str]:
        """Which tests are missing."""
        if self._ignored:
            yield f"{counted(self._ignored, 'test is', 'tests are')} ignored and not listed: missing"

    @property
    def _ignored(self) -> int:
        return int(number_of(self.stated.get("ignored")) or 0)


def _adapter(name: str, title: str, report: type[_XmlReport], has: str = "", marks: str = "") -> Adapter:
    """An adapter of files with a root of the report and, at their start, the text `has`."""

    def recognizes(head: Head) -> bool:
        found = _ROOT.match(head.text) if head.text[:1] == "<" else None
        return found is not None and found[1] in report.roots and has in head.text

    def read(path: Path, options: ReadOptions) -> AdapterTable:
        return report_table(path, name, options, report.of(path), raw)

    def raw(path: Path, numbers: set[int]) -> dict[int, str]:
        """The text of cases from where each starts."""
        starts = {case.number: case.start for case in report(path).cases() if case.number in numbers}
        found = {}
        with readable(path), open_input(path) as file:
            for number, start in starts.items():
                file.seek(start)
                found[number] = file.read(MAX_RAW_LENGTH).decode("utf-8", "replace")
        return found

    return Adapter(name, title, recognizes, read, reads_utf_16=True, marks=marks)


JUNIT = _adapter("junit", "JUnit XML", _JUnit)
TRX = _adapter("trx", "TRX test results", _Trx, _NAMESPACE, "(XML with TestRun of Visual Studio)")
NUNIT = _adapter("nunit", "NUnit XML", _NUnit, "<test-suite", "(XML with test-run or test-results, and test-suite)")
TESTNG = _adapter("testng", "TestNG results", _TestNG, marks="(XML with testng-results)")
