"""Adapters for test results in JSON: CTRF, jest and vitest, mocha and mochawesome, RSpec, GoogleTest.

What failed by the tool's own figures is a failure. Tests that it counts as skipped, pending, todo or other are
undecided. A file that cannot be run, an error outside of RSpec's examples and a failed hook of mocha are failed
problems of their own. A test that passed in a retry passed, and is flaky.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from touchstone.ingest.adapters.adapter import Adapter, ReadOptions
from touchstone.ingest.adapters.exported import KEY, exported_model
from touchstone.ingest.adapters.json_files import inside, list_of, number_of, raw_values, scalar_of, skim_document
from touchstone.ingest.adapters.json_stream import Each, Keep, Shape
from touchstone.ingest.adapters.marks import has_marks
from touchstone.ingest.adapters.table import AdapterTable
from touchstone.ingest.adapters.test_reports import Case, Outcome, Report, report_table

_HOOK, _AGAIN = "hook", "failed after it passed"
_OUTCOMES: dict[str, Outcome] = {
    **dict.fromkeys(("passed", "passes"), "passed"),
    **dict.fromkeys(("failed", "failures", _HOOK, _AGAIN), "failed"),
    **dict.fromkeys(("skipped", "pending", "todo", "disabled", "focused", "other"), "skipped"),
}
_MOCHA = ("passes", "failures", "pending")
_LOADED = re.compile(r"while loading (?:\./)?(\S+?)\.?$", re.MULTILINE)
_Object = Mapping[str, object]
# The elements of the lists in a document, each with the key of its list; at last the rest of it, without a key.
_Parts = Iterator[tuple[str | None, object]]
_Cases = Callable[[Callable[[], _Parts]], Iterator[tuple[object, Case]]]


def _text(entry: _Object, key: str) -> str:
    return scalar_of(entry.get(key)) or ""


def _texts(value: object, separator: str = " > ") -> str:
    return separator.join(text for each in list_of(value) if (text := scalar_of(each)))


def _case(test: _Object, name: str, status: str, **fields: Any) -> Case:
    """The case of a test that took `duration` milliseconds."""
    case = Case(0, name, "skipped", **fields)
    case.judge(status, _OUTCOMES)
    milliseconds = number_of(test.get("duration"))
    case.seconds = None if milliseconds is None else f"{milliseconds / 1000:.12g}"
    return case


def _ctrf_cases(parts: Callable[[], _Parts]) -> Iterator[tuple[object, Case]]:
    for key, entry in parts():
        if key is None:
            continue
        test = inside(entry)
        name, suite = _text(test, "name"), _texts(test.get("suite")) or _text(test, "suite")
        # Some reporters write the full name, others only the title.
        is_full = not suite or any(name.startswith(title) for title in suite.split(" > "))
        case = _case(test, name if is_full or not name else f"{suite} > {name}", _text(test, "status"), suite=suite)
        case.file = _text(test, "filePath") or _text(test, "file_path")
        case.message, case.flaky = _text(test, "message"), test.get("flaky") is True
        if "." in _text(test, "start"):  # pytest's reporter writes seconds
            case.seconds = _text(test, "duration")
        case.exported = inside(test, "extra").get(KEY)
        yield entry, case


def _jest_cases(parts: Callable[[], _Parts]) -> Iterator[tuple[object, Case]]:
    unsure: list[tuple[object, Case]] = []
    for key, entry in parts():
        if key is None:
            # Older versions of vitest say that a file failed in which a test is skipped.
            yield from unsure if number_of(inside(entry).get("numFailedTestSuites")) else ()
            continue
        result = inside(entry)
        file, failed = _text(result, "name"), False
        for each in list_of(result.get("assertionResults")):
            test = inside(each)
            suite, title = _texts(test.get("ancestorTitles")), _text(test, "title")
            name = f"{suite} > {title}" if suite and title else title
            case = _case(test, name, _text(test, "status"), suite=suite, file=file)
            case.message = _texts(test.get("failureMessages"), "\n")
            case.flaky = case.outcome == "passed" and (number_of(test.get("invocations")) or 1) > 1
            failed |= case.outcome == "failed"
            yield each, case
        if not failed and (result.get("status") == "failed" or result.get("message")):
            message, name = _text(result, "message"), re.split(r"[\\/]", file)[-1]
            case = Case(0, name, "error", file=file, message=message, whole=True)
            if message:
                yield entry, case
            else:
                unsure.append((entry, case))


def _mocha_cases(parts: Callable[[], _Parts]) -> Iterator[tuple[object, Case]]:
    def key(entry: object) -> tuple[str, str]:
        return _text(inside(entry), "fullTitle"), _text(inside(entry), "file")

    tests = Counter(key(entry) for where, entry in parts() if where == "tests")
    results = Counter(key(entry) for where, entry in parts() if where in _MOCHA)
    for status, entry in parts():
        if status in _MOCHA:
            test, (name, file), listed = inside(entry), key(entry), tests[key(entry)]
            # A test that calls `done` again after it passed is in two lists, and once among the tests.
            again = 0 < listed < results[name, file]
            word = _HOOK if not listed else _AGAIN if again and status == "failures" else status
            case = _case(test, name, word, file=file, group=0 if again else None)
            case.message = _text(inside(test, "err"), "message")
            case.flaky = case.outcome == "passed" and (number_of(test.get("currentRetry")) or 0) > 0
            yield entry, case
        elif status == "results":
            for each in _mochawesome_tests(entry):
                kinds = {"isHook": _HOOK, "pass": "passes", "fail": "failures", "pending": "pending"}
                word = next((word for kind, word in kinds.items() if each.get(kind) is True), "skipped")
                case = _case(each, _text(each, "fullTitle"), word, file=_text(each, "file"))
                case.message = _text(inside(each, "err"), "message")
                yield each, case


def _mochawesome_tests(suite: object) -> Iterator[_Object]:
    """The tests of a suite and of those inside it, and the hooks that failed, each with its file."""
    waiting = [suite]
    while waiting:
        found = inside(waiting.pop())
        for key in ("beforeHooks", "tests", "afterHooks"):
            tests = ({"file": found.get("fullFile")} | inside(each) for each in list_of(found.get(key)))
            yield from (test for test in tests if key == "tests" or test.get("fail") is True)
        waiting += reversed(list_of(found.get("suites")))


def _rspec_cases(parts: Callable[[], _Parts]) -> Iterator[tuple[object, Case]]:
    for key, entry in parts():
        if key is not None:
            test = inside(entry)
            file = _text(test, "file_path").removeprefix("./")
            name, own = _text(test, "full_description"), _text(test, "description")
            # An example without a text, `it { … }`, has one only in its description, if at all.
            name = name if name.rstrip().endswith(own) else f"{name.rstrip()} {own}"
            case = _case(test, name, _text(test, "status"), file=file)
            case.seconds = _text(test, "run_time") or _text(test, "duration")
            case.message = _text(inside(test, "exception"), "message") or _text(test, "pending_message")
            yield entry, case
        elif number_of(inside(entry, "summary").get("errors_outside_of_examples_count")):
            for message in list_of(inside(entry).get("messages")) or [""]:
                text = scalar_of(message) or ""
                loaded = _LOADED.search(text)
                name = loaded[1] if loaded else "error outside of examples"
                yield message, Case(0, name, "error", message=text, whole=True)


def _googletest_cases(parts: Callable[[], _Parts]) -> Iterator[tuple[object, Case]]:
    """Named as in GoogleTest's XML."""
    for key, entry in parts():
        suite = _text(inside(entry), "name")
        for each in list_of(inside(entry).get("testsuite")) if key is not None else ():
            test, failures = inside(each), list_of(inside(each).get("failures"))
            classname, name, file = _text(test, "classname"), _text(test, "name"), _text(test, "file")
            words = {"NOTRUN": "disabled", "SKIPPED": "skipped"}
            ran = words.get(_text(test, "status")) or words.get(_text(test, "result"), "passed")
            full = f"{classname}.{name}" if name and classname else name or suite
            case = _case(test, full, "failed" if failures else ran, classname=classname, suite=suite, file=file)
            case.seconds = _text(test, "time").removesuffix("s")
            case.message = _text(inside(failures[0]), "failure") if failures else ""
            # What fails outside of tests has no name, and no figure counts it.
            case.status = name and case.status
            yield each, case


@dataclass(frozen=True)
class _Format:
    """Documents that have all `marks`; the figures are in the object at `summary`."""

    name: str
    title: str
    marks: str
    shape: Shape
    cases: _Cases
    summary: str
    counted: Mapping[str, Collection[str]]

    def adapter(self) -> Adapter:
        return Adapter(self.name, self.title, lambda head: has_marks(head, self.marks), self._read, marks=self.marks)

    def _read(self, path: Path, options: ReadOptions) -> AdapterTable:
        raw = raw_values(lambda path: ((number, entry) for number, (entry, _) in _Document(path, self).entries()))
        return report_table(path, self.name, options, _Document(path, self), raw)


class _Document(Report):
    """A document whose cases are numbered in their order."""

    def __init__(self, path: Path, format: _Format) -> None:
        self._path, self._format, self.counted = path, format, format.counted

    def entries(self) -> Iterator[tuple[int, tuple[object, Case]]]:
        """The JSON and the case of each test, by its number."""
        return enumerate(self._format.cases(self._parts), 1)

    def cases(self) -> Iterator[Case]:
        """Every case, as the file is read."""
        for number, (_, case) in self.entries():
            case.number = number
            yield case

    def _parts(self) -> _Parts:
        for key, part in skim_document(self._path, self._format.shape):
            if key is None:
                self.stated = inside(part, *self._format.summary.split())
                self.model = exported_model(inside(part, "results"))
            yield key, part


CTRF = _Format(
    "ctrf",
    "CTRF test results",
    "results.tool, results.summary, results.tests[]",
    {"results": {"tests": Each(Keep()), "summary": Keep(), "extra": Keep()}},
    _ctrf_cases,
    "results summary",
    {"tests": ()} | {name: (name,) for name in ("passed", "failed", "skipped", "pending", "other")},
).adapter()
JEST = _Format(
    "jest",
    "jest or vitest results",
    "numTotalTests, numPendingTests, numFailedTestSuites",
    {"testResults": Each(Keep())},
    _jest_cases,
    "",
    {
        "numTotalTests": (),
        "numPassedTests": ("passed",),
        "numFailedTests": ("failed",),
        "numPendingTests": ("pending", "skipped", "disabled", "focused"),
        "numTodoTests": ("todo",),
    },
).adapter()
MOCHA = _Format(
    "mocha",
    "mocha results",
    "stats.passes, stats.failures, stats.pending, tests[] | results[].suites",
    {"stats": Keep()} | dict.fromkeys(("tests", *_MOCHA, "results"), Each(Keep())),
    _mocha_cases,
    "stats",
    {
        "tests": (*_MOCHA, _AGAIN),
        "passes": ("passes", _AGAIN),
        "failures": ("failures", _HOOK, _AGAIN),
        "pending": ("pending",),
    },
).adapter()
RSPEC = _Format(
    "rspec",
    "RSpec results",
    "examples[], examples[].full_description | summary_line",
    {"examples": Each(Keep()), "messages": Keep(), "summary": Keep()},
    _rspec_cases,
    "summary",
    {"example_count": (), "failure_count": ("failed",), "pending_count": ("pending",)},
).adapter()
GOOGLETEST = _Format(
    "googletest",
    "GoogleTest results",
    "testsuites[].testsuite, failures, disabled",
    {"testsuites": Each(Keep())},
    _googletest_cases,
    "",
    {"tests": (), "failures": ("failed",), "disabled": ("disabled",)},
).adapter()
