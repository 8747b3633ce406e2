"""Verdicts: which diagnostics a problem targets, what a fix did to them, and properties of any pair of reports."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from touchstone.validation.judging.verdicts import (
    Success,
    Verdict,
    compute_verdict,
    missing_need,
    needs_leak_detection,
    only_judged,
    succeeded,
    target_diagnostics,
    unlike_recorded,
)
from touchstone.validation.protocol import NOT_REPORTED, UNDECIDED, Diagnostic, Problem, Report
from touchstone.vocabulary import STATUSES

RULES: tuple[Success, ...] = get_args(Success)


def problem(**keys: Any) -> Problem:
    return Problem("a", "main.tf", Path("clones"), **keys)


def error(summary: str, line: int | None = None, file: str | None = "main.tf", **keys: Any) -> Diagnostic:
    return Diagnostic("error", summary, file=file, line=line, **keys)


def warning(summary: str, line: int | None = None, file: str | None = "main.tf") -> Diagnostic:
    return Diagnostic("warning", summary, file=file, line=line)


def failure(test: str) -> Diagnostic:
    return Diagnostic("error", "assertion failed", file="test_main.py", line=90, test=test)


def report(*diagnostics: Diagnostic, **keys: Any) -> Report:
    """A report as validators build it: failed if there is an error."""
    status = "failed" if any(found.severity == "error" for found in diagnostics) else "passed"
    return Report(status, "static", tuple(diagnostics), **keys)


A3, A9, B4 = error("A", 3), error("A", 9), error("B", 4)
LONG3 = error("A", 3, end_line=5)
ELSEWHERE, NOWHERE = error("A", 3, file="other.tf"), error("N", file=None)
W3 = warning("W", 3)
LEFT = "left in the block: error: A (main.tf:30)"
T1, T2 = failure("test_one"), failure("test_two")


@pytest.mark.parametrize(
    ("about", "baseline", "expected"),
    [
        ({}, [A3, ELSEWHERE, NOWHERE, W3, T1], [A3, ELSEWHERE, NOWHERE, T1]),
        ({"severity": "Warning"}, [A3, W3], [W3]),
        ({"severity": "high"}, [A3, W3], [A3]),
        ({"line_start": 1, "line_end": 5}, [A3, A9, B4, ELSEWHERE, W3], [A3, B4]),
        ({"line_start": 3}, [A3, B4], [A3]),
        ({"line_end": 4}, [A3, B4], [B4]),
        ({"line_start": 5, "line_end": 6}, [LONG3, replace(LONG3, end_line=4)], [LONG3]),
        ({"line_start": 5, "line_end": 6}, [A3, NOWHERE, error("A")], [NOWHERE, error("A")]),
        ({"summary": " a "}, [A3, A9, B4, ELSEWHERE], [A3, A9]),
        ({"summary": "A", "line_start": 1, "line_end": 5}, [A3, A9, B4], [A3]),
        ({"summary": "A", "line_start": 4, "line_end": 5}, [A3, A9, B4], []),
        ({"summary": "other"}, [A3, B4], []),
        ({"summary": "W", "severity": "warning", "line_start": 3, "line_end": 3}, [A3, W3], [W3]),
        ({"summary": "W"}, [A3, W3], []),
        ({"line_start": 1, "line_end": 5}, [T1, A9], [T1]),
        ({"summary": "returns one too many"}, [T1, T2], [T1, T2]),
        ({"summary": "A"}, [T1, A3], [A3]),
        ({"summary": "test_two"}, [T1, T2], [T2]),
        ({"line_start": 1}, [], []),
    ],
)
def test_what_a_problem_is_about(
    about: dict[str, Any], baseline: Sequence[Diagnostic], expected: Sequence[Diagnostic]
) -> None:
    assert target_diagnostics(report(*baseline), problem(**about)) == tuple(expected)


def test_the_file_is_told_by_its_path_in_the_tree() -> None:
    deep = replace(A3, file="network/main.tf")
    about = problem(working_directory="network", line_start=1, line_end=5)
    assert target_diagnostics(report(A3, deep), about) == (deep,)


BLOCK = {"line_start": 1, "line_end": 5}


@pytest.mark.parametrize(
    ("before", "after", "fixed", "introduced", "errors"),
    [
        ([A3], [], True, (0, 0, 0), 0),
        ([A3], [A3], False, (0, 0, 0), 0),
        ([A3], [A9], False, (0, 0, 0), 0),
        ([A3, A9], [A9], True, (0, 0, 0), 0),
        ([A3, A9], [A3, A9], False, (0, 0, 0), 0),
        ([A3, B4], [B4], False, (0, 0, 0), 0),
        ([A3], [B4], True, (1, 1, 1), 1),
        ([A3], [error("B", 8)], True, (0, 1, 1), 1),
        ([A3], [error("B", 4, file="other.tf")], True, (0, 0, 1), 1),
        ([A3], [NOWHERE], True, (1, 1, 1), 1),
        ([A3], [T1], True, (1, 1, 1), 1),
        ([A3], [W3], True, (1, 1, 1), 0),
        ([A3], [warning("W", 8)], True, (0, 1, 1), 0),
        ([A3, W3], [W3, warning("W", 8)], True, (1, 1, 1), 0),
        ([A3, W3], [warning("W", 7), warning("W", 8)], True, (0, 1, 1), 0),
        ([A3], [warning("W")], True, (1, 1, 1), 0),
        ([A3], [A3, A9, B4], False, (2, 2, 2), 2),
        ([T1, T2], [T2], False, (0, 0, 0), 0),
        ([T1, T2], [], True, (0, 0, 0), 0),
    ],
)
def test_worked_examples(
    before: list[Diagnostic], after: list[Diagnostic], fixed: bool, introduced: tuple[int, int, int], errors: int
) -> None:
    verdict = compute_verdict(report(*before), report(*after), problem(**BLOCK), 1, 5)
    assert verdict.fixed is fixed
    assert (verdict.introduced_block, verdict.introduced_file, verdict.introduced_module) == introduced
    assert verdict.introduced_errors == errors
    assert verdict.plausible is (fixed and errors == 0)
    assert verdict.status == ("passed" if verdict.plausible else "failed")


def test_the_new_block_is_what_counts_not_the_old_one() -> None:
    verdict = compute_verdict(report(A3), report(error("B", 8)), problem(**BLOCK), 1, 9)
    assert verdict.introduced_block == 1


@pytest.mark.parametrize(
    ("before", "after", "passing"),
    [
        ([A3], [], set(RULES)),
        ([A3], [A3], set()),
        ([A3], [warning("W", 8)], {"plausible", "clean", "fixed", "strict_block"}),
        ([A3], [W3], {"plausible", "clean", "fixed"}),
        ([A3], [error("B", 8)], {"fixed", "strict_block"}),
        ([A3, A9], [A9], {"plausible", "fixed", "strict_block", "strict_module"}),
        ([A3, ELSEWHERE], [ELSEWHERE], {"plausible", "fixed", "strict_block", "strict_module"}),
    ],
)
def test_each_rule_of_success(before: list[Diagnostic], after: list[Diagnostic], passing: set[Success]) -> None:
    reports = report(*before), report(*after)
    assert {
        rule for rule in RULES if compute_verdict(*reports, problem(**BLOCK), 1, 5, rule).status == "passed"
    } == passing


NAMED = {"line_start": 1, "line_end": 5, "summary": "A"}


OUTSIDE, MISSING = error("B", 20), error("Missing required argument", 4)
OTHERS = (OUTSIDE, ELSEWHERE, NOWHERE, error("B"), T1)


@pytest.mark.parametrize(
    ("about", "before", "after", "last", "expected"),
    [
        (NAMED, [A3, MISSING], [MISSING], 5, (False, 1, 1)),
        (NAMED, [A3, B4], [OUTSIDE], 3, (False, 1, 1)),
        (BLOCK, [A3, A9], [A3], 5, (False, 1, 1)),
        (BLOCK, [A3, A9], [A9], 5, (True, 0, 1)),
        (NAMED, [A3, *OTHERS], OTHERS, 5, (True, 0, len(OTHERS))),
        (NAMED, [A3, OUTSIDE], [OUTSIDE], 30, (True, 0, 1)),
        ({"summary": "A"}, [A3, B4], [B4], 9, (True, None, 1)),
    ],
    ids=["left", "moved out", "of two the one inside", "of two the other", "elsewhere", "new file", "no lines"],
)
def test_an_old_error_that_is_left_in_the_block(
    about: dict[str, Any], before: list[Diagnostic], after: list[Diagnostic], last: int, expected: tuple[Any, ...]
) -> None:
    """A fix that removes the named error and leaves another one in the block has not repaired the block."""
    verdict = compute_verdict(report(*before), report(*after), problem(**about), 1, last)
    assert (verdict.plausible, verdict.block_errors, verdict.module_errors) == expected
    assert verdict.status == ("passed" if expected[0] else "failed") and verdict.introduced_errors == 0


def test_it_passes_by_no_rule_but_fixed() -> None:
    verdicts = {
        rule: compute_verdict(report(A3, MISSING), report(MISSING), problem(**NAMED), 1, 5, rule) for rule in RULES
    }
    assert {rule for rule, verdict in verdicts.items() if verdict.status == "passed"} == {"fixed"}
    assert verdicts["fixed"].note == "left in the block: error: Missing required argument (main.tf:4)"


def test_notes_say_what_is_left_and_what_is_new() -> None:
    verdict = compute_verdict(report(A3), report(A3, warning("W", 2), B4), problem(**BLOCK), 1, 5)
    assert verdict.note == "still there: error: A (main.tf:3); new: error: B (main.tf:4)"
    assert compute_verdict(report(A3), report(), problem(**BLOCK), 1, 5).note == ""


@pytest.mark.parametrize(
    ("about", "baseline", "fix", "note"),
    [
        ({}, report(A3), report(A9), "still there: error: A (main.tf:9)"),
        ({}, report(A3), report(error("A", 1), A9), "still there: error: A (main.tf:9); new: error: A (main.tf:1)"),
        (
            {},
            report(replace(T1, output="1 != 2"), tests={"test_one": False}),
            report(replace(T1, summary="test failed", line=7, output="5 != 2"), tests={"test_one": False}),
            "still there: error: test failed (test_main.py:7): 5 != 2",
        ),
        (
            {},
            report(T1, tests={"test_one": False, "test_two": True}),
            report(tests={"test_two": True}),
            "still there: error: test did not report: test_one",
        ),
        ({"line_start": 1, "line_end": 5, "summary": "B"}, report(A3, B4), report(error("A", 30)), LEFT),
    ],
    ids=["moved", "in the block", "failed test", "vanished test", "left"],
)
def test_notes_quote_what_the_fix_shows(about: dict[str, Any], baseline: Report, fix: Report, note: str) -> None:
    assert compute_verdict(baseline, fix, problem(**about), 8, 10).note == note


@pytest.mark.parametrize("status", UNDECIDED)
def test_an_unknown_baseline_or_report_decides_nothing(status: str) -> None:
    unknown = Report(status, "static", note="no terraform here")
    baseline = compute_verdict(unknown, report(), problem(), 1, 5)
    assert baseline == Verdict(status, note="the unmodified problem was not validated: no terraform here")
    assert compute_verdict(report(A3), unknown, problem(), 1, 5) == Verdict(status, note="no terraform here")


@pytest.mark.parametrize("baseline", [report(), report(W3), report(A9), report(ELSEWHERE)])
def test_a_problem_that_shows_no_error_decides_nothing(baseline: Report) -> None:
    verdict = compute_verdict(baseline, report(), problem(**BLOCK), 1, 5)
    note = "the unmodified problem shows no such error at fidelity static"
    assert verdict == Verdict("validator_unavailable", note=note)


UNFINISHED = [status for status in STATUSES if status not in (*UNDECIDED, "passed", "failed")]


@pytest.mark.parametrize("status", UNFINISHED)
def test_a_fix_that_does_not_finish_has_failed(status: str) -> None:
    verdict = compute_verdict(report(A3), Report(status, "static", note="killed"), problem(), 1, 5)
    assert verdict == Verdict(status, fixed=False, plausible=False, note="killed")
    assert not any(succeeded(verdict, rule) for rule in RULES)


@pytest.mark.parametrize("status", UNFINISHED)
def test_after_a_baseline_that_did_not_finish_only_a_pass_will_do(status: str) -> None:
    hangs = Report(status, "full")
    passed = compute_verdict(hangs, report(), problem(**BLOCK), 1, 5)
    assert (passed.status, passed.fixed, passed.plausible) == ("passed", True, True)
    failed = compute_verdict(hangs, report(T1), problem(**BLOCK), 1, 5)
    assert (failed.status, failed.fixed, failed.plausible) == ("failed", False, False)
    again = compute_verdict(hangs, hangs, problem(**BLOCK), 1, 5)
    assert (again.status, again.fixed, again.plausible) == (status, False, False)


@pytest.mark.parametrize(
    ("before", "after", "reference", "status"),
    [
        (True, True, None, "validator_unavailable"),
        (True, True, "timeout", "validator_unavailable"),
        (True, True, "passed", "timeout"),
        (True, False, None, "timeout"),
        (False, True, None, "timeout"),
    ],
)
def test_a_limit_that_is_too_low_for_the_problem_accuses_no_fix(
    before: bool, after: bool, reference: str | None, status: str
) -> None:
    unheard = Diagnostic("error", "test failed: test_two", NOT_REPORTED, test="test_two")
    stopped = Report("timeout", "full", (unheard,), cpu_used=True)
    known = None if reference is None else Report(reference, "full")
    fix = replace(stopped, steady=after)
    verdict = compute_verdict(replace(stopped, steady=before), fix, problem(), 1, 5, reference=known)
    assert verdict.status == status and ("validation.limits.seconds" in verdict.note) == (status != "timeout")
    wrong = replace(fix, diagnostics=(T1, unheard))
    assert compute_verdict(replace(stopped, steady=before), wrong, problem(), 1, 5, reference=known).status == "timeout"


@pytest.mark.parametrize(
    "contradictory",
    [
        report(consistent=False),
        Report("failed", "static"),
        Report("failed", "static", (W3,)),
        Report("passed", "static", (B4,)),
    ],
)
def test_reports_that_contradict_themselves_prove_nothing(contradictory: Report) -> None:
    verdict = compute_verdict(report(A3), contradictory, problem(), 1, 5)
    assert (verdict.status, verdict.fixed, verdict.plausible) == ("no_report", False, False)
    assert verdict.introduced_module is None
    assert compute_verdict(contradictory, report(), problem(), 1, 5).status == "validator_unavailable"


@pytest.mark.parametrize(
    ("tests", "fixed", "note"),
    [
        ({"test_one": True, "test_two": True}, True, ""),
        ({"test_two": True}, False, "still there: error: test did not report: test_one"),
        ({}, False, "still there: error: test did not report: test_one; new: error: test did not report: test_two"),
        ({"test_one": True}, True, "new: error: test did not report: test_two"),
    ],
)
def test_a_test_that_is_not_heard_of_any_more(tests: dict[str, bool], fixed: bool, note: str) -> None:
    """Of one that failed, that is no repair; of one that passed, it is an error that came."""
    before = report(T1, tests={"test_one": False, "test_two": True})
    verdict = compute_verdict(before, report(tests=tests), problem(), 1, 5)
    assert (verdict.fixed, verdict.plausible, verdict.note) == (fixed, not note, note)
    assert verdict.introduced_errors == ("test_two" not in tests)


lines = st.none() | st.integers(1, 9)
diagnostics = st.builds(
    Diagnostic,
    severity=st.sampled_from(["error", "warning"]),
    summary=st.sampled_from(["A", "B", "C"]),
    detail=st.sampled_from(["", "d"]),
    file=st.sampled_from([None, "main.tf", "other.tf"]),
    line=lines,
    end_line=lines,
) | st.sampled_from([T1, T2])
findings = st.lists(diagnostics, max_size=6)
problems = st.builds(
    Problem,
    oid=st.just("a"),
    filename=st.just("main.tf"),
    root=st.just(Path("clones")),
    line_start=lines,
    line_end=lines,
    severity=st.sampled_from([None, "error", "warning"]),
    summary=st.sampled_from([None, "a", "B", "none of them"]),
)
well_formed = findings.map(lambda found: report(*found))
any_report = st.builds(
    Report,
    status=st.sampled_from(STATUSES),
    fidelity=st.just("static"),
    diagnostics=findings.map(tuple),
    consistent=st.booleans(),
)
blocks = st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda pair: (min(pair), max(pair)))
rules = st.sampled_from(RULES)


@given(any_report | well_formed, problems, blocks, rules)
def test_nothing_changed_never_passes(same: Report, about: Problem, block: tuple[int, int], rule: Success) -> None:
    verdict = compute_verdict(same, same, about, *block, rule)
    assert verdict.status != "passed"
    assert not succeeded(verdict, rule)


@given(well_formed, problems, blocks, rules)
def test_a_clean_report_after_a_target_passes(
    baseline: Report, about: Problem, block: tuple[int, int], rule: Success
) -> None:
    assume(target_diagnostics(baseline, about))
    assert compute_verdict(baseline, report(), about, *block, rule).status == "passed"


@given(well_formed, well_formed, problems, blocks, rules, diagnostics)
def test_one_more_error_never_helps(
    baseline: Report, after: Report, about: Problem, block: tuple[int, int], rule: Success, extra: Diagnostic
) -> None:
    worse = report(*after.diagnostics, replace(extra, severity="error"))
    if compute_verdict(baseline, worse, about, *block, rule).status == "passed":
        assert compute_verdict(baseline, after, about, *block, rule).status == "passed"


@given(any_report | well_formed, any_report | well_formed, problems, blocks)
def test_strict_rules_imply_the_lenient_ones(
    baseline: Report, after: Report, about: Problem, block: tuple[int, int]
) -> None:
    verdict = compute_verdict(baseline, after, about, *block)
    met = {rule for rule in RULES if succeeded(verdict, rule)}
    if "strict_module" in met:
        assert met >= set(RULES) - {"clean"}
    if "clean" in met:
        assert met >= {"plausible", "fixed"}
    assert not met or "fixed" in met
    assert {succeeded(verdict, rule) is None for rule in RULES} == {verdict.fixed is None}


@given(any_report | well_formed, any_report | well_formed, problems, blocks)
def test_scopes_lie_within_each_other(baseline: Report, after: Report, about: Problem, block: tuple[int, int]) -> None:
    verdict = compute_verdict(baseline, after, about, *block)
    assert verdict.status in STATUSES
    if verdict.introduced_module is None:
        assert verdict.introduced_block is verdict.introduced_file is verdict.introduced_errors is None
        assert verdict.fixed is verdict.plausible and not verdict.fixed
    else:
        assert verdict.introduced_block is not None and verdict.introduced_file is not None
        assert 0 <= verdict.introduced_block <= verdict.introduced_file <= verdict.introduced_module
        assert verdict.introduced_errors is not None and verdict.introduced_errors <= verdict.introduced_module


@given(any_report | well_formed, any_report | well_formed, problems, blocks, rules, st.integers(0, 1000))
def test_the_order_of_diagnostics_is_irrelevant(
    baseline: Report, after: Report, about: Problem, block: tuple[int, int], rule: Success, seed: int
) -> None:
    def shuffled(original: Report) -> Report:
        found = list(original.diagnostics)
        random.Random(seed).shuffle(found)
        return replace(original, diagnostics=tuple(found))

    assert compute_verdict(baseline, after, about, *block, rule) == compute_verdict(
        shuffled(baseline), shuffled(after), about, *block, rule
    )


@given(any_report | well_formed, problems)
def test_targets_are_diagnostics_of_the_baseline(baseline: Report, about: Problem) -> None:
    assert set(target_diagnostics(baseline, about)) <= set(baseline.diagnostics)


def test_a_file_that_no_longer_parses_has_fixed_nothing_that_only_shows_in_one_that_does() -> None:
    unparsed = report(error("Unclosed block", 3), compiled=False)
    verdict = compute_verdict(report(A3, compiled=True), unparsed, problem(), 1, 5, "fixed")
    assert (verdict.fixed, verdict.status) == (False, "failed")
    was_unparsed = report(error("Missing brace", 3), compiled=False)
    assert compute_verdict(was_unparsed, unparsed, problem(), 1, 5, "fixed").fixed


JUDGED = problem(fail_to_pass=("test_bug",), pass_to_pass=("test_old",))


def test_an_unfinished_report_stays_as_it_is() -> None:
    unfinished = Report("timeout", "full", tests={})
    assert only_judged(unfinished, JUDGED) is unfinished


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        ({"test_bug": False, "test_old": True}, ""),
        ({"test_old": True}, ""),
        ({"test_bug": True, "test_old": True}, "passes test_bug"),
        ({"test_bug": False}, "does not pass test_old"),
    ],
)
def test_the_unmodified_problem_must_agree_with_the_lists(tests: dict[str, bool], reason: str) -> None:
    said = unlike_recorded(Report("failed", "full", tests=tests), JUDGED)
    assert reason in said if reason else not said


def test_a_name_in_the_lists_that_no_test_has() -> None:
    """Every fix would fail it. Where a file cannot be loaded, or the reference fix reports it, the name is right."""
    listed = {"test_old": True}
    loaded, broken = (Report("failed", "full", tests=listed, compiled=compiled) for compiled in (True, False))
    assert unlike_recorded(loaded, JUDGED) == "no test is called test_bug, which is in fail_to_pass"
    assert unlike_recorded(broken, JUDGED) == ""
    assert unlike_recorded(loaded, JUDGED, Report("passed", "full", tests=listed | {"test_bug": True})) == ""


# A package or server that the environment lacks leaves a fix undecided; a wrong import that stays is a failure.

FILES = ("shop/prices.py", "tests/test_prices.py", "index.js")
SERVER = "a server that it connects to"
OF_PYTEST = {
    "pytest.PytestConfigWarning: Unknown config option: asyncio_mode": "Unknown config option: asyncio_mode",
    "python -m pytest: error: unrecognized arguments: --cov=shop": "unrecognized arguments: --cov=shop",
    "__main__.py: error: unrecognized arguments: --numprocesses 2": "unrecognized arguments: --numprocesses",
}


def lacking(*modules: str, others: int = 0) -> Report:
    found = [Diagnostic("error", f"not collected: ModuleNotFoundError: No module named '{name}'") for name in modules]
    return report(*found, *[Diagnostic("error", "test failed: test_total")] * others)


def refused(said: str = "ConnectionRefusedError: [Errno 111] Connection refused") -> Report:
    return report(Diagnostic("error", "test failed: test_total", said))


THREADS = "more threads (validation.limits.processes)"


def of_pytest(said: str) -> Report:
    return Report("no_report", "full", note=f"the pytest report is missing; exit code 4: {said}")


def of_node(name: str) -> Report:
    return Report("no_report", "full", note=f"Error: Cannot find module '{name}'")


def of_command(said: str, code: int = 2) -> Report:
    return Report(
        "no_report", "full", note=f"the report shows no failure, but the program ended with exit code {code}: {said}"
    )


# As these programs say it.
NOT_THERE = [
    "make: *** No rule to make target 'test'.  Stop.",
    "echo\nmake: *** No targets specified and no makefile found.  Stop.",
    'npm error Missing script: "tests"',
    "python: can't open file '/shop/test_shop.py': [Errno 2] No such file or directory",
    "sh: 0: cannot open test.sh: No such file",
    "/bin/sh: 1: cd: can't cd to shop",
    "bash: line 1: cd: shop: No such file or directory",
    "ERROR: file or directory not found: tests/test_shop.py",
    "ERROR: not found: /shop/test_price.py::test_other",
    "ERROR: Config file '/shop/other.ini' not found. Check your '-c/--config-file' option.",
    "Error: Cannot find module '/shop/test.js'\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}",
]
FAILURES_OF_THE_FIX = [
    "make: *** No rule to make target 'price.c', needed by 'price.o'.  Stop.",
    "ValueError: can't open file 'prices.csv'",
    "Error: Cannot find module './price'\n  code: 'MODULE_NOT_FOUND',\n  requireStack: [ '/shop/test.js' ]\n}",
    "AssertionError: not found: 3",
]


def test_leak_detection_that_cannot_run_needs_no_sign_of_it_before() -> None:
    said = refused("==11==LeakSanitizer has encountered a fatal error.")
    assert needs_leak_detection(said, None) and not needs_leak_detection(said, Report("passed", "full"))
    assert missing_need(refused("Assertion failed"), said, None, FILES) is None, "a fix can say so itself"


@pytest.mark.parametrize(
    ("before", "after", "missing"),
    [
        *((lacking(name), lacking(name), name) for name in ("numpy", "requests", "yaml")),
        (lacking("sklearn.tree"), lacking("sklearn.tree"), "sklearn"),
        (of_node("jest-circus/runner"), of_node("jest-circus/runner"), "jest-circus"),
        (lacking("numpy", others=1), lacking("numpy"), "numpy"),
        # The fix fails otherwise too, or only it imports the package, or it imports it no more.
        (lacking("numpy", others=1), lacking("numpy", others=1), None),
        (lacking(others=1), lacking("numpy"), None),
        (lacking("yaml"), lacking("numpy"), None),
        (lacking("yaml"), lacking(), None),
        (of_node("./totals"), of_node("./totals"), None),
        *(
            (lacking(name), lacking(name), None)
            for name in ("colections", "urllib2", "ConfigParser", "httplib", "urlparse", "price", "shop.total")
        ),
        (lacking("test_prices"), lacking("test_prices"), None),
        (refused(), refused("OSError: [Errno 111] Connect call failed ('::1', 6379, 0, 0)"), SERVER),
        *((of_pytest(said), of_pytest(said), f"a plugin of pytest ({need})") for said, need in OF_PYTEST.items()),
        (refused("RuntimeError: can't start new thread"),) * 2 + (THREADS,),
        (refused("OSError: [Errno 24] Too many open files"),) * 2 + ("more than 1,024 open files",),
        (refused("ThreadSanitizer failed to allocate 0x1"),) * 2
        + ("terabytes to reserve (validation.limits.memory_mb)",),
        (refused("npm error code ENOTCACHED"),) * 2 + ("packages that npm would have to fetch",),
        (refused("Error: getaddrinfo EAI_AGAIN example.com"),) * 2 + ("a network",),
        (refused("fatal: unable to access 'https://a.b/': Could not resolve host: a.b"),) * 2 + ("a network",),
        (refused("[Errno -3] Temporary failure in name resolution"),) * 2 + ("a network",),
        *((of_command(said),) * 2 + ("a file, target or test that the command names",) for said in NOT_THERE),
        (of_command(NOT_THERE[0]), refused(), None),
        *((of_command(said),) * 2 + (None,) for said in FAILURES_OF_THE_FIX),
        (of_command("============ test session starts ==\ncollected 0 items", 5),) * 2 + ("a test that pytest finds",),
        (refused(), lacking(others=1), None),
        (lacking(others=1), refused(), None),
    ],
)
def test_what_is_missing_for_both(before: Report, after: Report, missing: str | None) -> None:
    said = missing if missing is None or " " in missing else f"'{missing}', which is not installed"
    assert missing_need(before, after, None, FILES) == said
    assert missing_need(before, after, before, FILES) == said, "the reference fix lacks it too"
    assert missing_need(before, after, Report("passed", "full"), FILES) is None
