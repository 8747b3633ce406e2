"""Problems that name their tests: these and no others decide, and what is not heard of did not pass."""

from pathlib import Path

import pytest

from touchstone.validation.judging.verdicts import only_judged, unlike_recorded
from touchstone.validation.protocol import Diagnostic, Problem, Report

PROBLEM = Problem("a", "shop.py", Path("clones"), fail_to_pass=("test_bug",), pass_to_pass=("test_old",))


def report(tests: dict[str, bool], *diagnostics: Diagnostic) -> Report:
    return Report("passed" if all(tests.values()) else "failed", "full", diagnostics, tests=tests)


@pytest.mark.parametrize(
    "tests, status",
    [
        ({"test_bug": True, "test_old": True}, "passed"),
        ({"test_bug": True, "test_old": True, "test_other": False}, "passed"),
        ({"test_bug": False, "test_old": True}, "failed"),
        ({"test_bug": True, "test_old": False}, "failed"),
        ({"test_bug": True}, "failed"),
        ({"test_old": True}, "failed"),
        ({"test_other": True}, "failed"),
    ],
)
def test_the_named_tests_decide(tests: dict[str, bool], status: str) -> None:
    found = [Diagnostic("error", f"{name} failed", test=name) for name, passed in tests.items() if not passed]
    judged = only_judged(report(tests, *found), PROBLEM)
    assert (judged.status, set(judged.tests)) == (status, {"test_bug", "test_old"})
    assert judged.consistent


def test_an_unfinished_report_stays_as_it_is() -> None:
    unfinished = Report("timeout", "full", tests={})
    assert only_judged(unfinished, PROBLEM) is unfinished


@pytest.mark.parametrize(
    "tests, reason",
    [
        ({"test_bug": False, "test_old": True}, ""),
        ({"test_old": True}, ""),
        ({"test_bug": True, "test_old": True}, "passes test_bug"),
        ({"test_bug": False}, "does not pass test_old"),
    ],
)
def test_the_unmodified_problem_must_agree_with_the_lists(tests: dict[str, bool], reason: str) -> None:
    said = unlike_recorded(report(tests), PROBLEM)
    assert reason in said if reason else not said
