"""Builds a report from the lines that pytest's run writes, and the results of its control.

What writes the lines belongs in `touchstone.validation.pytest_runner`.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from touchstone.validation.judging.verdicts import missing_plugin
from touchstone.validation.protocol import NOT_REPORTED, Diagnostic, Problem, Report, TestControl
from touchstone.validation.pytest_runner.channel import UNKNOWN, read_lines
from touchstone.validation.sandbox.runner import JobAnswer
from touchstone.validation.validators.common import FULL, stopped_at

_MAX_PLACES = 20
_NEUTRAL = ("skipped", "xfailed", "xpassed")
_TAMPERED = "the results were tampered with: something else was written among them"
# What a line that the runner did not write may lead to.
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError)


def build_report(problem: Problem, tests: Sequence[str], answer: JobAnswer, token: str, seconds: float) -> Report:
    """Build the report from pytest's lines. A test that did not report, or did so twice, has failed.

    `seconds`: the limit of CPU time.
    """
    try:
        lines, foreign = read_lines(answer.content, token)
        report = _report_of(problem, tests, answer, lines, foreign)
        # One endless test would have left no time for others.
        return replace(report, steady=report.cpu_used and any(line.get("at", 0) > seconds / 2 for line in lines))
    except _MALFORMED:
        return Report("no_report", FULL, consistent=False, note=_TAMPERED)


def _report_of(
    problem: Problem, tests: Sequence[str], answer: JobAnswer, lines: Sequence[Mapping[str, Any]], foreign: bool
) -> Report:
    results = _Results(problem, lines, tests)
    report = Report(
        "failed",
        FULL,
        tuple(results.diagnostics()),
        compiled=results.compiled if lines else None,
        tests=results.tests,
        skipped=tuple(results.skipped),
        note=results.note,
    )
    if answer.exceeded is not None:
        return stopped_at(answer.exceeded, report)
    if foreign:
        return replace(report, status="no_report", consistent=False, note=_TAMPERED)
    if results.tampered:
        found = Diagnostic("error", f"the fix changed what judges it: {results.tampered}")
        # No result of such a run counts, whichever tests the problem is judged by.
        none = dict.fromkeys(report.tests, False)
        return replace(report, status="failed", tests=none, diagnostics=(found, *report.diagnostics))
    if results.unusable:
        return replace(report, status="validator_unavailable", note=f"pytest cannot be started: {results.unusable}")
    if results.needs:
        return replace(report, status="validator_unavailable", note=f"the tests cannot be run: {results.needs}")
    if any(line.get("memory") for line in lines):
        return replace(report, status="memory_limit")
    end = next((line for line in lines if "done" in line), None)
    if end is None or not end["done"]:
        crashed = "".join(f": {line['crashed']}" for line in lines if "crashed" in line)
        return replace(report, status="no_report", note=f"the tests ended before they had reported{crashed}")
    if answer.exit_code != 0:
        return replace(report, status="no_report", consistent=False, note=f"the tests ended with {answer.exit_code}")
    if not report.diagnostics and not report.tests:
        skipped = report.skipped or any("skipped_file" in line for line in lines)
        note = "every test was skipped" if skipped else "pytest finds no test"
        return replace(report, status="validator_unavailable", note=note)
    if results.failed_in_pytest != (end["status"] == 1):
        return replace(report, status="no_report", consistent=False, note="pytest's exit and its results disagree")
    return replace(report, status="failed" if report.diagnostics else "passed")


def control_results(
    problem: Problem, tests: Sequence[str], answer: JobAnswer, token: str, report: Report
) -> dict[str, TestControl]:
    """The control of each test of a report, by id. A test that has no control is left out.

    If a limit ended it, tests without a result have no control; otherwise they did not run to their end.
    """
    lines, foreign = read_lines(answer.content, token)
    forged = {name: TestControl(passed=True) for name in report.tests}
    if foreign:
        return forged
    short = _Results(problem, (), tests).short
    try:
        found = {
            short(line["control"]): TestControl(
                line["ended"],
                line["passed"],
                tuple(line["held"][:_MAX_PLACES]),
                tuple(map(tuple, line["doubts"][:_MAX_PLACES])),
            )
            for line in lines
            if "control" in line
        }
        without = {short(name) for line in lines for name in line.get("uncontrolled", ())}
    except _MALFORMED:
        return forged
    if answer.exceeded is None:
        # Only a fix makes its process exit by itself before the last test.
        left = answer.exit_code == 0
        early = TestControl(ended=left, held=("its process left early",) if left else ())
        found |= dict.fromkeys(report.tests.keys() - found.keys() - without, early)
    return {name: found[name] for name in report.tests if name in found}


class _Results:
    """The lines of one run, by test id."""

    def __init__(self, problem: Problem, lines: Sequence[Mapping[str, Any]], tests: Sequence[str]) -> None:
        self._problem, self._lines = problem, lines
        self._only = os.path.normpath(tests[0]) if len(tests) == 1 else None
        # Their files may be named from the root of the tree too.
        below, judged_tests = f"{problem.working_directory}/", problem.judged_tests
        self._judged = {self._without_file(name.removeprefix(below)): name for name in judged_tests}
        self._judged |= {self._without_file(name): name for name in judged_tests}
        self._by_id = {self.short(line["test"]): line for line in lines if "test" in line}
        self._times = Counter(self.short(line["test"]) for line in lines if "test" in line)
        collected = [self.short(name) for line in lines for name in line.get("collected", [])]
        self._twice = {name for name, count in Counter(collected).items() if count > 1}
        expected = [self.short(name) for name in problem.expected_tests]
        self._broken = {self.short(line["broken"]): line["message"] for line in lines if "broken" in line}
        names = list(dict.fromkeys([*collected, *self._by_id, *expected]))
        self.skipped = [name for name in names if self._is_neutral(name)]
        self.tests = {name: self._passed(name) for name in names if name not in self.skipped}
        self.tampered = next((line["tampered"] for line in lines if line.get("tampered")), None)
        self.unusable = next((line["unusable"] for line in lines if "unusable" in line), None)
        judged = {self.short(name) for name in problem.judged_tests}
        needs = (line for line in lines if "needs" in line)
        counted = (line for line in needs if not judged or line["of"] is None or self.short(line["of"]) in judged)
        plugins = filter(None, map(missing_plugin, self._broken.values()))
        hopeless = (f"{line['broken']} cannot be compiled: {line['message']}" for line in lines if line.get("hopeless"))
        syntax = hopeless if not (judged or problem.summary) else ()
        self.needs = next(iter([*plugins, *syntax, *(line["needs"] for line in counted)]), None)
        ignored = [option for line in lines for option in line.get("ignored", [])]
        self.note = f"ignored in addopts: {', '.join(ignored)}" if ignored else ""
        self.compiled = not self._broken

    def short(self, name: str) -> str:
        """The id as the problem has it among its judged tests, else without its file if there is only one."""
        bare = self._without_file(name)
        return self._judged.get(bare, bare)

    def _without_file(self, name: str) -> str:
        file, separator, rest = name.partition("::")
        return rest if separator and os.path.normpath(file) == self._only else name

    def _is_neutral(self, name: str) -> bool:
        line = self._by_id.get(name, {})
        # Only the tests may skip, not the code that they test.
        return self._times[name] == 1 and line.get("outcome") in _NEUTRAL and not self._is_of_fix(line)

    def _is_of_fix(self, line: Mapping[str, Any]) -> bool:
        return bool({self._problem.filename, UNKNOWN} & {*(line.get("where") or ())})

    def _passed(self, name: str) -> bool:
        once = self._times[name] == 1 and name not in self._twice
        return once and self._by_id[name]["outcome"] == "passed"

    @property
    def failed_in_pytest(self) -> bool:
        """Whether pytest's own exit code must be 1."""
        return bool(self._broken) or any(line["outcome"] == "failed" for line in self._by_id.values())

    def diagnostics(self) -> list[Diagnostic]:
        """An error for every file that could not be collected and every test that did not pass."""
        found = [
            Diagnostic("error", f"not collected: {name}", message, test=name) for name, message in self._broken.items()
        ]
        for line in self._lines:
            if "skipped_file" in line and self._is_of_fix(line):
                name = self.short(line["skipped_file"])
                found.append(Diagnostic("error", f"not collected: {name}", "skipped by the fix", test=name))
        for name, good in self.tests.items():
            if not good and not (self._broken and name not in self._by_id):
                found.append(Diagnostic("error", f"test failed: {name}", self._message(name), test=name))
        return found

    def _message(self, name: str) -> str:
        line = self._by_id.get(name)
        if line is None:
            return NOT_REPORTED
        if self._times[name] > 1 or name in self._twice:
            return "it reported more than once"
        return str(line["message"]) if line["outcome"] == "failed" else f"skipped by the fix: {line['message']}"
