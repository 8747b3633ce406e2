"""The pytest plugin of a job: it writes a line with the ids of all tests, and one per test and per broken file."""

import inspect
import os
import time
import unittest
from collections.abc import Callable, Generator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from touchstone.validation.pytest_runner.async_tests import needed_by, run_coroutine, watch_unittest
from touchstone.validation.pytest_runner.channel import UNKNOWN, WriteLine
from touchstone.validation.pytest_runner.controls import doctest_control
from touchstone.validation.pytest_runner.own_tests import OwnTests

_MAX_MESSAGE = 500
# Bound here, because tests may replace it.
_cpu_seconds = time.process_time
# Known markers of plugins that are not loaded, so that `--strict-markers` accepts them.
_MARKERS = ("asyncio", "anyio", "trio", "timeout", "flaky", "order")


class ResultPlugin:
    """Writes results by test id. An id is the node id with its file relative to the working directory."""

    def __init__(self, tests: OwnTests) -> None:
        self._tests = tests
        self._reports: dict[str, list[pytest.TestReport]] = {}
        self._raised_in: dict[str, list[str]] = {}
        self._memory = False
        self._controlled: set[str] = set()
        self._doctests: set[str] = set()
        self._deselected: list[pytest.Item] = []
        self._ran = False

    def start(self, write_line: WriteLine, directory: str, changed_file: Callable[[], str | None]) -> None:
        """Take up a job: where to write, the folder that it runs in, and which of its files were changed."""
        self._write_line, self._directory, self._changed_file = write_line, directory, changed_file

    def pytest_configure(self, config: pytest.Config) -> None:
        """Accept the markers of well-known plugins."""
        for name in _MARKERS:
            config.addinivalue_line("markers", f"{name}: of a plugin that is not loaded")

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Say what pytest cannot do before any test, such as read its settings, if no file of the problem did it."""
        if not self._ran and not any(Path(entry.path).is_relative_to(self._directory) for entry in excinfo.traceback):
            self._write_line(unusable=f"{excinfo.typename}: {excinfo.value}"[:_MAX_MESSAGE])

    # Registered first and so called last: a plugin, or a hook in a conftest, comes before.
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> object | None:
        """Run a coroutine test in an event loop of its own."""
        if not inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        if needs := run_coroutine(pyfuncitem):
            self._write_needs(pyfuncitem, needs)
            pytest.fail(needs, pytrace=False)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Leave the id of a parametrised test, which holds what it expects, out of the name of its `tmp_path`."""
        if fixturedef.argname != "tmp_path":
            return (yield)
        name = request.node.name
        request.node.name = name.partition("[")[0]
        try:
            return (yield)
        finally:
            request.node.name = name

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Notice a test of `unittest` that nobody awaits."""
        watch_unittest(item, lambda needs: self._write_needs(item, needs))
        return (yield)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Make only the message of a failure. By default, pytest looks up the file of every frame."""
        if type(item) is pytest.Function:
            vars(item)["repr_failure"] = partial(_short_failure, item)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Remember the tests that options leave out."""
        self._deselected += items

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Remember what skipped a whole file."""
        report = yield
        call = vars(report).get("call")
        if report.skipped and call is not None and call.excinfo is not None:
            self._raised_in[report.nodeid] = self._skipped_by(call.excinfo.value)
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write a line for a file that could not be collected, or was skipped as a whole."""
        if report.failed:
            hopeless = self._tests.no_fix_helps(self._root / report.nodeid)
            message = last_line(report.longreprtext)
            self._write_line(broken=self._id(report.nodeid, None), message=message, hopeless=hopeless)
        elif report.skipped:
            where = self._raised_in.get(report.nodeid, [])
            self._write_line(skipped_file=self._id(report.nodeid, None), where=where)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write the ids of all tests that are going to run, and whether importing the fix changed a file."""
        if (name := self._changed_file()) is not None:
            self._write_line(tampered=self._relative(name))
        self._write_line(collected=[self._id(item.nodeid, item.path) for item in session.items])
        if self._tests.recorder is not None:
            if [*map(session.config.getini, ("python_functions", "python_classes"))] == [["test"], ["Test"]]:
                for name in self._tests.not_collected((*session.items, *self._deselected)):
                    self._tests.recorder.doubt(f"{name} is a test that was not collected", "")
            self._controlled = {item.nodeid for item in session.items if self._tests.is_controlled(item)}
            self._doctests = {item.nodeid for item in session.items if doctest_control(item)}
            known = self._controlled | self._doctests
            self._write_line(
                uncontrolled=[self._id(item.nodeid, None) for item in session.items if item.nodeid not in known]
            )

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Begin a new record of what a control finds."""
        self._ran = True
        if self._tests.recorder is not None:
            self._tests.recorder.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Remember where a skip was raised: only the tests may skip."""
        error = call.excinfo
        if error is not None:
            if needs := needed_by(error.value, item):
                self._write_needs(item, needs)
            self._memory = self._memory or error.errisinstance(MemoryError)
            if error.errisinstance((pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest)):
                self._raised_in.setdefault(item.nodeid, []).extend(self._skipped_by(error.value))
        report = yield
        vars(report)["must_fail"] = item.get_closest_marker("xfail") is not None
        self._reports.setdefault(item.nodeid, []).append(report)
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Write one test's result, over its setup, call and teardown."""
        reports = self._reports.pop(nodeid, [])
        outcome, message = _outcome(reports, self._raised_in.get(nodeid))
        if self._tests.recorder is not None:
            self._write_control(nodeid, outcome)
        line = {"test": self._id(nodeid, None), "outcome": outcome, "message": message, "at": _cpu_seconds()}
        self._write_line(**line, where=self._raised_in.get(nodeid, []), memory=self._memory)

    def _write_control(self, nodeid: str, outcome: str) -> None:
        assert self._tests.recorder is not None
        found = self._tests.recorder.finish()
        if nodeid in self._doctests:
            # Its last example has the wrong result, and there is no other way to fail.
            found.ended = outcome == "failed"
        if nodeid in self._controlled or nodeid in self._doctests:
            told = {"ended": found.ended, "passed": outcome != "failed"}
            self._write_line(control=self._id(nodeid, None), **told, held=[*found.held], doubts=[*found.doubts])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the root that node ids are relative to."""
        self._root = session.config.rootpath

    def _write_needs(self, item: pytest.Item, needs: str) -> None:
        self._write_line(needs=needs[:_MAX_MESSAGE], of=self._id(item.nodeid, None))

    def _id(self, nodeid: str, path: Path | None) -> str:
        file, separator, rest = nodeid.partition("::")
        where = str(path) if path is not None else str(self._root / file)
        return f"{os.path.relpath(where, self._directory)}{separator}{rest}"

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self._directory) if path else ""

    def _skipped_by(self, error: BaseException) -> list[str]:
        return sorted(self._relative(file) if file != UNKNOWN else file for file in self._tests.skipped_by(error))


def _short_failure(item: pytest.Function, error: pytest.ExceptionInfo[BaseException]) -> Any:
    if error.errisinstance(pytest.FixtureLookupError):
        return pytest.Function.repr_failure(item, error)
    return error.getrepr(style="value", tbfilter=False, chain=False)


def _outcome(reports: list[pytest.TestReport], skipped_by: list[str] | None) -> tuple[str, str]:
    """Passed only if setup, call and teardown all passed; then failed before skipped.

    A subtest that skips itself leaves its test passed; one that something else than the tests skips does not.
    """
    for report in reports:
        if report.failed:
            return "failed", _message(report)
    # Every subtest reports a call of its own before that of its test.
    calls = [report for report in reports if report.when == "call"]
    for report in reports:
        if report in calls[:-1] and not skipped_by:
            continue
        if hasattr(report, "wasxfail"):
            return "xfailed" if report.skipped else "xpassed", str(report.wasxfail)[:_MAX_MESSAGE]
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            return "skipped", reason[:_MAX_MESSAGE]
    phases = [phase for phase, _ in groupby(report.when for report in reports)]
    return ("passed", "") if phases == ["setup", "call", "teardown"] else ("failed", "it did not finish")


def _message(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else last_line(report.longreprtext)
    lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("Use -v")]
    text = "\n".join(lines)
    said = "[xfail] " if getattr(report, "must_fail", False) else ""
    return _plain(f"{said}{text}" if report.when == "call" else f"{said}in {report.when}: {text}")


def last_line(text: str) -> str:
    """The last line that names an error, else the last line."""
    lines = [line.removeprefix("E").strip() for line in text.splitlines() if line.startswith("E ")]
    return _plain(lines[-1] if lines else "".join(text.strip().splitlines()[-1:]))


def _plain(text: str) -> str:
    # A lone surrogate cannot be encoded when the line is written.
    return text[:_MAX_MESSAGE].encode("utf-8", "replace").decode()
