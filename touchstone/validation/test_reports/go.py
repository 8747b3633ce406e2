"""The output of `go test -json`, `go test -v` and `go test`. A test is named `package.Test/subtest`.

Every package ends with a result of its own; without one the run was cut off.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from touchstone.validation.test_reports.results import Outcome, ReportFormatError, SuiteResults, lines_of

_ACTIONS: dict[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_WORDS: dict[str, Outcome] = {"--- PASS: ": "passed", "--- FAIL: ": "failed", "--- SKIP: ": "skipped"}
_PACKAGE_WORDS: dict[str, Outcome] = {"ok": "passed", "FAIL": "failed", "?": "skipped"}
_MESSAGE_CHARACTERS = 500


def read(text: str) -> SuiteResults:
    r"""The results of all packages.

    >>> read("--- PASS: TestAdd (0.00s)\nPASS\nok  \texample.com/calc\t0.002s\n").outcomes
    {'example.com/calc.TestAdd': 'passed'}
    """
    lines = lines_of(text)
    return _from_json(lines) if any(line.startswith('{"') for line in lines) else _from_text(lines)


def spellings(name: str) -> Iterable[str]:
    """The names by which a test may be expected: with and without its package.

    >>> list(spellings("example.com/calc.TestAdd/a.b"))
    ['example.com/calc.TestAdd/a.b', 'TestAdd/a.b']
    """
    yield name
    for prefix in (".Test", ".Example", ".Fuzz", ".Benchmark"):
        package, found, test = name.partition(prefix)
        if found and package:
            yield f"{found[1:]}{test}"
            return


class _Packages:
    """The results by package, until each package has ended."""

    def __init__(self) -> None:
        self.found = SuiteResults()
        self._ended: dict[str, bool] = {}
        self._failed: set[str] = set()
        self._tested: set[str] = set()

    def add(self, package: str, test: str, outcome: Outcome, message: str = "") -> None:
        self.start(package)
        self._tested.add(package)
        if outcome == "failed":
            self._failed.add(package)
        self.found.add(f"{package}.{test}", outcome, message)

    def start(self, package: str) -> None:
        self._ended.setdefault(package, False)

    def end(self, package: str, outcome: Outcome, why: str = "") -> None:
        self._ended[package] = True
        if outcome == "failed" and package not in self._failed:
            if "build" in why or "setup" in why:
                self.found.compiled = False
            self.found.error(f"package {package} failed", why)
        elif outcome == "passed" and package not in self._tested:
            self.found.unnamed += 1
        elif outcome == "passed" and package in self._failed:
            raise ReportFormatError(f"says that package {package[:200]} passed, and that one of its tests failed")

    def results(self) -> SuiteResults:
        open_packages = [package for package, ended in self._ended.items() if not ended]
        if open_packages or not self._ended:
            where = f" for package {open_packages[0][:200]}" if open_packages else ""
            raise ReportFormatError(f"has no final result{where}, so it is not whole")
        return self.found


def _from_json(lines: Sequence[str]) -> SuiteResults:
    packages = _Packages()
    printed: dict[tuple[str, str], str] = {}
    for line in lines:
        if not line.startswith("{"):
            if (ended := _package_line(line)) is not None:  # a failed build, before Go 1.24
                packages.end(*ended)
            continue
        event = _event(line)
        action, package, test = (event.get(key) for key in ("Action", "Package", "Test"))
        if not isinstance(action, str) or not isinstance(package, str):
            continue
        if not isinstance(test, str):
            packages.start(package)
            if action in _ACTIONS:
                packages.end(package, _ACTIONS[action], "build failed" if event.get("FailedBuild") else "")
        elif action == "output":
            words = event.get("Output")
            said = printed.get((package, test), "") + (words if isinstance(words, str) else "")
            printed[package, test] = said[-_MESSAGE_CHARACTERS:]
        elif action in _ACTIONS:
            packages.add(package, test, _ACTIONS[action], printed.get((package, test), "").strip())
    return packages.results()


def _event(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ReportFormatError(f"has a line that is not whole JSON ({str(error)[:200]})") from None
    return event if isinstance(event, dict) else {}


def _from_text(lines: Sequence[str]) -> SuiteResults:
    packages = _Packages()
    waiting: list[tuple[str, Outcome]] = []
    for line in lines:
        body = line.lstrip(" ")
        if (outcome := _WORDS.get(body[:10])) is not None:
            waiting.append((body[10:].rpartition(" (")[0] or body[10:], outcome))
        elif (ended := _package_line(line)) is not None:
            package, outcome, why = ended
            for test, result in waiting:
                packages.add(package, test, result)
            waiting.clear()
            packages.end(package, outcome, why)
    if waiting:
        raise ReportFormatError(f"has no final result for the package of {waiting[0][0][:200]}, so it is not whole")
    return packages.results()


def _package_line(line: str) -> tuple[str, Outcome, str] | None:
    r"""A package's result: `ok  \tpackage\t0.1s`, `FAIL\tpackage [build failed]`, `?   \tpackage\t[no test files]`."""
    word, tab, rest = line.partition("\t")
    outcome = _PACKAGE_WORDS.get(word.rstrip())
    if not tab or outcome is None:
        return None
    package, _, why = rest.replace("\t", " ").partition(" ")
    return package, outcome, why
