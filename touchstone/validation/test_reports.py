"""The reports of other people's test runners, each from text to `SuiteResults`.

The text comes from a process that ran a fix, so a parser takes time proportional to its length, and a report that is
cut off or contradicts itself is refused with a `ReportFormatError`. Comparing a report with the exit code, and with
the tests that a problem expects, belongs in `validators.command`. Reading finished reports of any size, which may be
incomplete, belongs in `touchstone.ingest`.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from xml.parsers import expat

from touchstone.validation import libtest
from touchstone.validation.libtest import Outcome
from touchstone.validation.protocol import Diagnostic

# Several results of one name count as the worst of them; a skipped repetition does not matter.
_WORST_FIRST: tuple[Outcome, ...] = ("failed", "passed", "skipped")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MESSAGE_CHARACTERS = 500
_MAX_DIGITS = 9


class ReportFormatError(ValueError):
    """A program's report is malformed. The message completes the sentence "the report ..."."""


@dataclass
class SuiteResults:
    """The outcomes by test name, and why tests failed. `compiled` is None if the format does not say.

    `errors` belong to no test: a file that cannot be imported, or a failed build. `unnamed` counts passed tests that
    the report does not name.
    """

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    errors: list[Diagnostic] = field(default_factory=list)
    compiled: bool | None = None
    unnamed: int = 0

    @property
    def failed(self) -> bool:
        """Whether a test failed, or something else went wrong."""
        return bool(self.errors) or "failed" in self.outcomes.values()

    def add(self, name: str, outcome: Outcome, message: str = "") -> None:
        """Add a test's result."""
        self.outcomes[name] = worst((outcome, self.outcomes.get(name, outcome)))
        if outcome == "failed" and message:
            self.messages.setdefault(name, message)

    def error(self, summary: str, output: str = "") -> None:
        """Add an error that belongs to no test."""
        self.errors.append(Diagnostic("error", summary, output=output))


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of a test that reported several times.

    >>> worst(["passed", "failed", "passed"]), worst(["skipped", "passed"])
    ('failed', 'passed')
    """
    return min(outcomes, key=_WORST_FIRST.index)


def merged(parts: Iterable[SuiteResults]) -> SuiteResults:
    """The results of several reports on one run."""
    found = SuiteResults()
    for part in parts:
        for name, outcome in part.outcomes.items():
            found.add(name, outcome, part.messages.get(name, ""))
        found.errors += part.errors
        found.unnamed += part.unnamed
        if part.compiled is False:
            found.compiled = False
    return found


def json_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object that a report is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReportFormatError(f"is not whole JSON ({str(error)[:200]})") from None
    if not isinstance(value, dict):
        raise ReportFormatError("is not a JSON object")
    return value


def lines_of(text: str) -> list[str]:
    r"""The lines of a report without colours and trailing blanks.

    >>> lines_of("\x1b[32mok\x1b[0m 1 \r\n1..1")
    ['ok 1', '1..1']
    """
    return [line.rstrip() for line in _COLOUR.sub("", text).split("\n")]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None


# pytest's short test summary, as `-rA` or `-rap` prints it, and the closing line with the counts. Only what follows the
# last heading counts: tests and fixes can print above it.

_HEADING = "short test summary info"
# An expected failure is what its test demands, and SWE-bench counts it as passed too.
_PYTEST: dict[str, Outcome] = {
    **dict.fromkeys(("PASSED", "XFAIL", "XPASS"), "passed"),
    **dict.fromkeys(("FAILED", "ERROR"), "failed"),
}


def read_pytest(text: str) -> SuiteResults:
    r"""The results of one pytest run.

    >>> heading = "=== short test summary info ===\n"
    >>> read_pytest(heading + "PASSED a.py::test_a\nFAILED a.py::test_b - assert 0\n1 failed, 1 passed in 1s").outcomes
    {'a.py::test_a': 'passed', 'a.py::test_b': 'failed'}
    """
    lines = lines_of(text)
    headings = [number for number, line in enumerate(lines) if line.startswith("=") and line.strip("= ") == _HEADING]
    # With a heading the first counts after it close the summary; `-qq` leaves them out.
    places: Iterable[int] = range(headings[-1] + 1, len(lines)) if headings else reversed(range(len(lines)))
    closing = ((place, counted) for place in places if (counted := _counts(lines[place])) is not None)
    end, counts = next(closing, (len(lines), None))
    if not headings and counts is None:
        raise ReportFormatError("lacks pytest's summary, so pytest did not finish")
    found, listed, summary = SuiteResults(), 0, lines[headings[-1] + 1 : end] if headings else []
    for line in summary:
        word, _, rest = line.partition(" ")
        listed += word == "PASSED"
        if word in _PYTEST and rest:
            name, message = (rest, "") if word == "PASSED" else _name_and_message(rest)
            if "::" in name:
                found.add(name, _PYTEST[word], message)
            elif _PYTEST[word] == "failed":
                found.error(f"cannot be collected: {name}", message)
    _add_failed_subtests(found, summary)
    if counts is not None:
        found.unnamed = _compare(found, listed, counts)
    return found


def _add_failed_subtests(found: SuiteResults, summary: Iterable[str]) -> None:
    """Count a test as failed if a part of it did; pytest lists that of a `unittest` class as passed all the same."""
    named: dict[str, list[str]] = {}
    for name in found.outcomes:
        named.setdefault(name.partition(" ")[0], []).append(name)
    for line in summary:
        before, mark, rest = line.partition("SUBFAIL")
        if mark and (not before or before.endswith(" ")):
            test = next((word for word in rest.split(" ") if word in named), "")
            for name in named.get(test, ()):
                found.add(name, "failed", rest.partition(f" {test} - ")[2])


def _counts(line: str) -> dict[str, int] | None:
    words, separator, seconds = line.strip("= ").rpartition(" in ")
    if not separator or not seconds[:1].isdigit():
        return None
    counts = {}
    for part in words.split(", ") if words != "no tests ran" else ():
        number, _, word = part.partition(" ")
        if (count := _number(number)) is None or not word:
            return None
        counts[word] = count
    return counts


def _name_and_message(rest: str) -> tuple[str, str]:
    """Split `name - message`. Parameters, in brackets, may contain the separator too."""
    bracket, dash = rest.find("["), rest.find(" - ")
    if 0 <= bracket < dash:
        name, closing, message = rest.partition("] - ")
        return (f"{name}]", message) if closing else (rest, "")
    name, _, message = rest.partition(" - ")
    return name, message


def _compare(found: SuiteResults, listed: int, counts: dict[str, int]) -> int:
    """Check the names against the counts. Returns how many tests passed unnamed: `-r` without `p` or `A` lists none."""
    passed = counts.get("passed", 0)
    if listed and listed != passed:
        raise ReportFormatError(f"lists {listed:,} passed tests, but its summary says {passed:,}")
    bad = sum(counts.get(word, 0) for word in ("failed", "subtests failed", "error", "errors"))
    if bad and not found.failed:
        found.error("tests failed that pytest did not name")
    if not bad and found.failed:
        raise ReportFormatError("lists a failed test, but its summary counts none")
    return 0 if listed else passed


# JUnit XML, as Maven, Gradle, pytest, PHPUnit, gotestsum and many others write it. A document type declaration is
# refused, and with it every entity.

_NOT_RUN = ("notrun", "disabled", "skipped")


def read_junit(text: str) -> SuiteResults:
    """The results in one document. A test is named `classname.name`.

    >>> read_junit('<testsuite><testcase classname="shop.CartTest" name="adds"/></testsuite>').outcomes
    {'shop.CartTest.adds': 'passed'}
    """
    document = _Document()
    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = document.refuse_doctype
    parser.StartElementHandler, parser.EndElementHandler = document.start, document.end
    try:
        parser.Parse(text.strip().encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise ReportFormatError(f"is not whole XML ({error})") from None
    return document.found


def _dotted(name: str) -> str:
    """A test's name as `read_junit` spells it, from the spelling of Maven or pytest.

    >>> _dotted("shop.CartTest#adds"), _dotted("tests/test_cart.py::TestCart::test_add[a/b]")
    ('shop.CartTest.adds', 'tests.test_cart.TestCart.test_add[a/b]')
    """
    path, bracket, parameters = name.partition("[")
    path = path.replace(".py::", ".").replace("::", ".").replace("#", ".").replace("/", ".")
    return path + bracket + parameters


class _Document:
    """The state while a document is parsed."""

    def __init__(self) -> None:
        self.found = SuiteResults()
        self._root_seen = False
        self._case: tuple[str, str] | None = None
        self._outcome: Outcome = "passed"
        self._message = ""

    def refuse_doctype(self, *_: object) -> None:
        raise ReportFormatError("has a document type declaration, which is refused")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._root_seen and tag not in ("testsuites", "testsuite"):
            raise ReportFormatError(f"has the root element <{tag[:50]}> instead of <testsuites> or <testsuite>")
        self._root_seen = True
        if tag == "testcase":
            if self._case is not None:  # one result would hide the other
                raise ReportFormatError("has a <testcase> inside another one")
            self._case = (attributes.get("classname", ""), attributes.get("name", ""))
            self._outcome = "skipped" if attributes.get("status", "").lower() in _NOT_RUN else "passed"
            self._message = ""
        elif tag in ("failure", "error"):
            self._outcome = "failed"
            self._message = self._message or attributes.get("message", "")
            if self._case is None:
                self.found.error(f"the suite reports {'an error' if tag == 'error' else 'a failure'}", self._message)
        elif tag == "skipped" and self._outcome == "passed" and attributes.get("type") != "pytest.xfail":
            self._outcome = "skipped"

    def end(self, tag: str) -> None:
        if tag != "testcase" or self._case is None:
            return
        classname, name = self._case
        self._case = None
        if not classname and self._message == "collection failure":  # pytest: a file that cannot be imported
            self.found.error(f"cannot be collected: {name}")
        else:
            self.found.add(_dotted(f"{classname}.{name}" if classname else name), self._outcome, self._message)


# TAP, the Test Anything Protocol, with subtests as Node.js and Perl write them.

_INDENT = 4
_MAX_DEPTH = 20


def read_tap(text: str) -> SuiteResults:
    r"""The results of one run; a subtest is named `parent > child`.

    >>> read_tap("1..2\nok 1 - adds\nnot ok 2 - subtracts\n").outcomes
    {'adds': 'passed', 'subtracts': 'failed'}
    """
    found, parents = SuiteResults(), [""] * _MAX_DEPTH
    plans, count = [], 0
    for depth, body in _protocol_lines(text):
        if depth == 0 and body.startswith("1.."):
            planned = _number(body.removeprefix("1..").partition("#")[0].strip())
            if planned is None:
                raise ReportFormatError(f"has the unreadable plan {body[:50]!r}")
            plans.append(planned)
        elif depth == 0 and body.startswith("Bail out!"):
            found.error("the test run was abandoned", body)
        elif body.startswith("# Subtest: "):
            parents[depth] = body.removeprefix("# Subtest: ")
        elif (result := _result(body)) is not None:
            name, outcome = result
            count += depth == 0
            found.add(" > ".join([*filter(None, parents[:depth]), name]), outcome)
    if len(plans) != 1:
        raise ReportFormatError(f"has {len(plans)} plans instead of one line '1..N', so it is not whole")
    if count != plans[0]:
        raise ReportFormatError(f"plans {plans[0]:,} tests and reports {count:,}")
    return found


def _protocol_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its depth, without the indented YAML blocks that describe failures."""
    block_indent: int | None = None
    for line in lines_of(text):
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if block_indent is not None:
            if body == "..." and indent == block_indent:
                block_indent = None
        elif body == "---" and indent % _INDENT == 2:
            block_indent = indent
        elif indent % _INDENT == 0 and indent < _INDENT * _MAX_DEPTH:
            yield indent // _INDENT, body


def _result(body: str) -> tuple[str, Outcome] | None:
    """The name, or else the number, and the outcome in a test line: `not ok 3 - name # SKIP reason`."""
    failed = body.startswith("not ok")
    rest = body.removeprefix("not ").removeprefix("ok")
    if (not failed and not body.startswith("ok")) or rest[:1] not in ("", " "):
        return None
    description, _, directive = rest.strip().partition(" # ")
    word = directive[:4].upper()
    number, _, name = description.partition(" ")
    if not number.isdigit():
        number, name = "", description
    outcome: Outcome = "skipped" if word in ("SKIP", "TODO") else "failed" if failed else "passed"
    return name.strip().removeprefix("- ") or number, outcome


# The output of `go test -json`, `go test -v` and `go test`. A test is named `package.Test/subtest`. Every package ends
# with a result of its own; without one the run was cut off.

_GO: dict[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_GO_TESTS = {f"--- {action.upper()}: ": outcome for action, outcome in _GO.items()}
_GO_PACKAGES: dict[str, Outcome] = {"ok": "passed", "FAIL": "failed", "?": "skipped"}


def read_go(text: str) -> SuiteResults:
    r"""The results of all packages.

    >>> read_go("--- PASS: TestAdd (0.00s)\nPASS\nok  \texample.com/calc\t0.002s\n").outcomes
    {'example.com/calc.TestAdd': 'passed'}
    """
    lines, packages = lines_of(text), _Packages()
    if any(line.startswith('{"') for line in lines):
        packages.read_events(lines)
    else:
        packages.read_text(lines)
    open_packages = [package for package, ended in packages.ended.items() if not ended]
    if open_packages or not packages.ended:
        where = f" for package {open_packages[0][:200]}" if open_packages else ""
        raise ReportFormatError(f"has no final result{where}, so it is not whole")
    return packages.found


class _Packages:
    """The results, and which packages have ended."""

    def __init__(self) -> None:
        self.found = SuiteResults()
        self.ended: dict[str, bool] = {}
        self._failed: set[str] = set()
        self._tested: set[str] = set()

    def _add(self, package: str, test: str, outcome: Outcome, message: str = "") -> None:
        self.ended.setdefault(package, False)
        self._tested.add(package)
        if outcome == "failed":
            self._failed.add(package)
        self.found.add(f"{package}.{test}", outcome, message)

    def _end(self, package: str, outcome: Outcome, why: str = "") -> None:
        self.ended[package] = True
        if outcome == "failed" and package not in self._failed:
            if "build" in why or "setup" in why:
                self.found.compiled = False
            self.found.error(f"package {package} failed", why)
        elif outcome == "passed" and package not in self._tested:
            self.found.unnamed += 1
        elif outcome == "passed" and package in self._failed:
            raise ReportFormatError(f"says that package {package[:200]} passed, and that one of its tests failed")

    def read_events(self, lines: Iterable[str]) -> None:
        printed: dict[tuple[str, str], str] = {}
        for line in lines:
            if not line.startswith("{"):
                if (ended := _package_line(line)) is not None:  # a failed build, before Go 1.24
                    self._end(*ended)
                continue
            try:
                event = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ReportFormatError(f"has a line that is not whole JSON ({str(error)[:200]})") from None
            action, package, test = (event.get(key) for key in ("Action", "Package", "Test"))
            if not isinstance(action, str) or not isinstance(package, str):
                continue
            if not isinstance(test, str):
                self.ended.setdefault(package, False)
                if action in _GO:
                    self._end(package, _GO[action], "build failed" if event.get("FailedBuild") else "")
            elif action == "output":
                said = printed.get((package, test), "") + _text(event, "Output")
                printed[package, test] = said[-_MESSAGE_CHARACTERS:]
            elif action in _GO:
                self._add(package, test, _GO[action], printed.get((package, test), "").strip())

    def read_text(self, lines: Iterable[str]) -> None:
        waiting: list[tuple[str, Outcome]] = []
        for line in lines:
            body = line.lstrip(" ")
            if (outcome := _GO_TESTS.get(body[:10])) is not None:
                waiting.append((body[10:].rpartition(" (")[0] or body[10:], outcome))
            elif (ended := _package_line(line)) is not None:
                for test, result in waiting:
                    self._add(ended[0], test, result)
                waiting.clear()
                self._end(*ended)
        if waiting:
            raise ReportFormatError(f"has no final result for the package of {waiting[0][0][:200]}, so it is not whole")


def _package_line(line: str) -> tuple[str, Outcome, str] | None:
    r"""A package's result: `ok  \tpackage\t0.1s`, `FAIL\tpackage [build failed]`, `?   \tpackage\t[no test files]`."""
    word, tab, rest = line.partition("\t")
    outcome = _GO_PACKAGES.get(word.rstrip())
    if not tab or outcome is None:
        return None
    package, _, why = rest.replace("\t", " ").partition(" ")
    return package, outcome, why


def _without_package(name: str) -> Iterator[str]:
    """A Go test's name without its package.

    >>> list(_without_package("example.com/calc.TestAdd/a.b"))
    ['TestAdd/a.b']
    """
    for prefix in (".Test", ".Example", ".Fuzz", ".Benchmark"):
        package, found, test = name.partition(prefix)
        if found and package:
            yield f"{found[1:]}{test}"
            return


# `cargo test`, which runs one harness after another.


def read_cargo(text: str) -> SuiteResults:
    """The results of all harnesses. Without any, the build failed: cargo says why on standard error."""
    found, harnesses = SuiteResults(), libtest.sessions(lines_of(text))
    for session in harnesses:
        try:
            outcomes = libtest.read_session(session)
        except libtest.ContradictionError as error:
            raise ReportFormatError(f"cannot be trusted: {error}") from None
        for name, outcome in outcomes.items():
            found.add(name, outcome)
    if not harnesses:
        found.error("cargo ran no tests: the build failed")
    found.compiled = bool(harnesses)
    return found


# The JSON report of Jest (`--json`) and Vitest (`--reporter=json`). A test is named `file > suite > title`.

_JEST: dict[str, Outcome] = {"passed": "passed", "failed": "failed"}
_SEPARATOR = " > "


def read_jest(text: str) -> SuiteResults:
    """The results of all files. A file that could not be run is an error.

    The report is the whole text, or its last line that starts an object, after what the tests printed.
    """
    stripped = text.strip()
    report = json_object(stripped if stripped.startswith("{") else stripped[stripped.rfind("\n{") + 1 :])
    found = SuiteResults()
    for file in _objects(report, "testResults"):
        name = PurePosixPath(_text(file, "name")).name
        tests = _objects(file, "assertionResults")
        for test in tests:
            titles = [*_texts(test, "ancestorTitles"), _text(test, "title")]
            message = "\n".join(_texts(test, "failureMessages"))[:_MESSAGE_CHARACTERS]
            found.add(_SEPARATOR.join([name, *titles]), _JEST.get(_text(test, "status"), "skipped"), message)
        if file.get("status") == "failed" and not any(test.get("status") == "failed" for test in tests):
            found.error(f"{name} cannot be run", _text(file, "message")[:_MESSAGE_CHARACTERS])
    if report.get("success") is not (not found.failed):
        raise ReportFormatError(f"does not say success: {str(not found.failed).lower()}, as its tests do")
    return found


def _without_file(name: str) -> Iterator[str]:
    """A Jest test's name without its file, and Jest's `fullName`.

    >>> list(_without_file("cart.test.js > cart > adds"))
    ['cart > adds', 'cart adds']
    """
    titles = name.split(_SEPARATOR)[1:]
    yield _SEPARATOR.join(titles)
    yield " ".join(titles)


def _objects(entry: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    items = entry.get(key)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ReportFormatError(f"has no list of objects {key!r}")
    return items


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _texts(entry: Mapping[str, Any], key: str) -> list[str]:
    items = entry.get(key)
    return [item for item in items if isinstance(item, str)] if isinstance(items, list) else []


# What a format is called in the settings, and how its tests are named in a list of expected ones.


@dataclass(frozen=True)
class ReportFormat:
    """How a report is parsed and what makes the runner write it.

    `others` are further names by which a reported test may be expected; `normal` spells an expected name as reports do.
    """

    read: Callable[[str], SuiteResults]
    others: Callable[[str], Iterable[str]] = lambda name: ()
    normal: Callable[[str], str] = str
    environment: Mapping[str, str] = field(default_factory=dict)


FORMATS: dict[str, ReportFormat] = {
    # SWE-bench cuts parameters off at the first blank.
    "pytest": ReportFormat(read_pytest, lambda name: name.split(" ")[:1], environment={"PYTEST_ADDOPTS": "-rap"}),
    "junit": ReportFormat(read_junit, normal=_dotted),
    "tap": ReportFormat(read_tap),
    "go": ReportFormat(read_go, _without_package),
    "cargo": ReportFormat(read_cargo),
    "jest": ReportFormat(read_jest, _without_file),
}


def named_as_expected(results: SuiteResults, report: str, expected: Iterable[str]) -> dict[str, Outcome]:
    """The outcomes by reported name, and those of expected tests by the name under which they are expected."""
    found, spelled = dict(results.outcomes), FORMATS[report]
    alike: dict[str, list[Outcome]] = {}
    for name, outcome in results.outcomes.items():
        for spelling in (name, *spelled.others(name)):
            alike.setdefault(spelling, []).append(outcome)
    for name in expected:
        if name not in found and (outcomes := alike.get(spelled.normal(name))):
            found[name] = worst(outcomes)
    return found
