"""Adapters for test results in JSON: CTRF, jest and vitest, mocha, and RSpec.

What failed by the tool's own figures is a failure. Tests that it counts as skipped, pending, todo or other are
undecided. A file that cannot be run, an error outside of RSpec's examples and a failed hook of mocha are failed
problems of their own. A test that passed in a retry passed, and is flaky.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from touchstone.ingest.adapters.adapter import Adapter, ReadOptions
from touchstone.ingest.adapters.exported import KEY, exported_model
from touchstone.ingest.adapters.json_files import inside, list_of, number_of, raw_values, read_document, scalar_of
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
_Cases = Callable[[_Object], Iterator[tuple[object, Case]]]


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


def _ctrf_cases(document: _Object) -> Iterator[tuple[object, Case]]:
    for entry in list_of(inside(document, "results").get("tests")):
        test = inside(entry)
        name, suite = _text(test, "name"), _texts(test.get("suite")) or _text(test, "suite")
        full = f"{suite} > {name}" if name and not name.startswith(suite) else name
        case = _case(test, full, _text(test, "status"), suite=suite, file=_text(test, "filePath"))
        case.message, case.flaky = _text(test, "message"), test.get("flaky") is True
        case.exported = inside(test, "extra").get(KEY)
        yield entry, case


def _jest_cases(document: _Object) -> Iterator[tuple[object, Case]]:
    for entry in list_of(document.get("testResults")):
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
        if result.get("status") == "failed" and not failed:
            name = re.split(r"[\\/]", file)[-1]
            yield entry, Case(0, name, "error", file=file, message=_text(result, "message"), whole=True)


def _mocha_cases(document: _Object) -> Iterator[tuple[object, Case]]:
    def key(entry: object) -> tuple[str, str]:
        return _text(inside(entry), "fullTitle"), _text(inside(entry), "file")

    tests = Counter(map(key, list_of(document.get("tests"))))
    results = Counter(key(entry) for status in _MOCHA for entry in list_of(document.get(status)))
    for status in _MOCHA:
        for entry in list_of(document.get(status)):
            test, (name, file), listed = inside(entry), key(entry), tests[key(entry)]
            # A test that calls `done` again after it passed is in two lists, and once among the tests.
            again = 0 < listed < results[name, file]
            word = _HOOK if not listed else _AGAIN if again and status == "failures" else status
            case = _case(test, name, word, file=file, group=0 if again else None)
            case.message = _text(inside(test, "err"), "message")
            case.flaky = case.outcome == "passed" and (number_of(test.get("currentRetry")) or 0) > 0
            yield entry, case


def _rspec_cases(document: _Object) -> Iterator[tuple[object, Case]]:
    for entry in list_of(document.get("examples")):
        test = inside(entry)
        file = _text(test, "file_path").removeprefix("./")
        case = _case(test, _text(test, "full_description"), _text(test, "status"), file=file)
        case.seconds = _text(test, "run_time")
        case.message = _text(inside(test, "exception"), "message") or _text(test, "pending_message")
        yield entry, case
    if number_of(inside(document, "summary").get("errors_outside_of_examples_count")):
        for entry in list_of(document.get("messages")) or [""]:
            message = scalar_of(entry) or ""
            loaded = _LOADED.search(message)
            name = loaded[1] if loaded else "error outside of examples"
            yield entry, Case(0, name, "error", message=message.strip(), whole=True)


class _Document(Report):
    """A document whose cases are numbered in their order."""

    def __init__(self, path: Path, cases: _Cases, summary: str, counted: Mapping[str, Collection[str]]) -> None:
        self.counted = counted
        self._document, self._cases = inside(read_document(path)), cases
        self.model = exported_model(inside(self._document, "results"))
        self.stated = inside(self._document, *summary.split())

    def entries(self) -> Iterator[tuple[int, object]]:
        """The JSON of each case, by its number."""
        return enumerate((entry for entry, _ in self._cases(self._document)), 1)

    def cases(self) -> Iterator[Case]:
        for number, (_, case) in enumerate(self._cases(self._document), 1):
            case.number = number
            yield case


def _adapter(
    name: str, title: str, keys: str, cases: _Cases, summary: str, counted: Mapping[str, Collection[str]]
) -> Adapter:
    """The adapter of documents that have these paths of keys; the figures are in the object at `summary`."""
    paths = [tuple(path.split()) for path in keys.split(",")]

    def read(path: Path, options: ReadOptions) -> AdapterTable:
        document = _Document(path, cases, summary, counted)
        raw = raw_values(lambda again: _Document(again, cases, summary, counted).entries())
        return report_table(path, name, options, lambda: document, raw)

    return Adapter(name, title, lambda head: all(path in head.key_paths for path in paths), read)


CTRF = _adapter(
    "ctrf",
    "CTRF test results",
    "results tool,results summary,results tests",
    _ctrf_cases,
    "results summary",
    {"tests": ()} | {name: (name,) for name in ("passed", "failed", "skipped", "pending", "other")},
)
JEST = _adapter(
    "jest",
    "jest or vitest results",
    "numTotalTests,numPendingTests,numFailedTestSuites",
    _jest_cases,
    "",
    {
        "numTotalTests": (),
        "numPassedTests": ("passed",),
        "numFailedTests": ("failed",),
        "numPendingTests": ("pending", "skipped", "disabled", "focused"),
        "numTodoTests": ("todo",),
    },
)
MOCHA = _adapter(
    "mocha",
    "mocha results",
    "stats passes,stats failures,stats pending,tests",
    _mocha_cases,
    "stats",
    {
        "tests": (*_MOCHA, _AGAIN),
        "passes": ("passes", _AGAIN),
        "failures": ("failures", _HOOK, _AGAIN),
        "pending": ("pending",),
    },
)
RSPEC = _adapter(
    "rspec",
    "RSpec results",
    "examples []",
    _rspec_cases,
    "summary",
    {"example_count": (), "failure_count": ("failed",), "pending_count": ("pending",)},
)
