"""Commands that report by test name, in the real sandbox: report files, setup, forgery, and expected tests."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.validation.validators.support import Playback, job_of, report_on, tree_of
from touchstone.config.validation import CommandProgram
from touchstone.validation.judging.verdicts import compute_verdict
from touchstone.validation.protocol import Job, Report
from touchstone.validation.sandbox.command import CommandResult, Limits, Sandbox
from touchstone.validation.validators.command import CommandValidator
from touchstone.validation.validators.common import SYSTEM_PATH

GOOD = '<testsuite><testcase classname="A" name="adds"/></testsuite>'
BAD = '<testsuite><testcase classname="A" name="adds"><failure message="1 is not 2"/></testcase></testsuite>'


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return job_of(tree_of(tmp_path, {"app/a.txt": "one\n", "app/old.xml": GOOD}), "a.txt", "app")


def validated(sandbox: Sandbox, job: Job, command: str, **problem: Any) -> Report:
    """The report of a problem's own test command; `report` and `report_file` are the problem's too."""
    about = replace(job.problem, test_command=command, **problem)
    return report_on(CommandValidator(sandbox, Limits(seconds=30), CommandProgram(arguments=())), Job(about, job.tree))


class TestReportFiles:
    def test_every_file_of_a_pattern_counts_and_nothing_that_is_printed(self, sandbox: Sandbox, job: Job) -> None:
        bad = BAD.replace("adds", "counts")
        command = f"mkdir 'out put'; echo '{GOOD}' > 'out put/1.xml'; echo '{bad}' > 'out put/2.xml'"
        printed = GOOD.replace("adds", "prints")
        told = {"test_report": "junit", "report_file": "out put/*.xml"}
        report = validated(sandbox, job, f"{command}; echo '{printed}'; exit 1", **told)
        assert (report.status, dict(report.tests)) == ("failed", {"A.adds": True, "A.counts": False})
        (failure,) = report.diagnostics
        assert (failure.test, failure.detail) == ("A.counts", "1 is not 2")

    def test_a_report_that_came_with_the_files_does_not_count(self, sandbox: Sandbox, job: Job) -> None:
        """A fix could bring a report of its own and end the command before it writes another."""
        report = validated(sandbox, job, "true", test_report="junit", report_file="old.xml")
        assert report.status == "no_report"
        assert "is missing: the command did not write old.xml" in report.note

    @pytest.mark.parametrize("command", ["mkfifo r.xml", "ln -s /dev/zero r.xml", "mkdir r.xml"])
    def test_what_is_no_file_is_not_read(self, sandbox: Sandbox, job: Job, command: str) -> None:
        assert validated(sandbox, job, command, test_report="junit", report_file="r.xml").status == "no_report"

    def test_our_own_json_may_be_in_a_file_too(self, sandbox: Sandbox, job: Job) -> None:
        command = """echo noise; echo '{"passed": true, "diagnostics": [], "tests": {"one": true}}' > r.json"""
        report = validated(sandbox, job, command, test_report="json", report_file="r.json")
        assert (report.status, dict(report.tests)) == ("passed", {"one": True})


class TestSetup:
    def test_runs_first_and_is_no_part_of_the_report(self, sandbox: Sandbox, job: Job) -> None:
        setup, command = "echo 1..7; echo ready > state", "test -f state && printf '1..1\\nok 1 - adds\\n'"
        report = validated(sandbox, job, command, setup_command=setup, test_report="tap")
        assert (report.status, dict(report.tests)) == ("passed", {"adds": True})

    def test_a_failing_setup_decides_nothing(self, sandbox: Sandbox, job: Job) -> None:
        """Unless only the fix makes it fail; then the outcome is a failure."""
        report = validated(sandbox, job, "true", setup_command="echo no network >&2; exit 3", test_report="tap")
        assert (report.status, report.note) == (
            "validator_unavailable",
            "the setup command failed with exit code 3: no network",
        )


def played(job: Job, exit_code: int, stdout: str, judged: tuple[str, ...] = (), report: Any = "tap") -> Report:
    ended = CommandResult("exited", exit_code, stdout.encode(), b"last words")
    settings = CommandProgram(arguments=("/bin/true",), report=report)
    problem = replace(job.problem, fail_to_pass=judged)
    return report_on(CommandValidator(Playback(ended), Limits(), settings), Job(problem, job.tree))


@pytest.mark.parametrize(
    ("exit_code", "stdout", "note"),
    [
        (1, "1..1\nok 1 - a\n", "shows no failure, but the program ended with exit code 1: last words"),
        (0, "1..1\nnot ok 1 - a\n", "shows a failure, but the program ended with exit code 0"),
        (-9, "1..1\nok 1 - a\n", "shows no failure, but the program ended with killed by SIGKILL"),
        (0, "1..0\n", "has no passed test; exit code 0"),
        (0, "1..1\nok 1 - a # SKIP\n", "has no passed test; exit code 0"),
        (0, "", "has 0 plans"),
    ],
)
def test_a_report_that_the_exit_code_contradicts_is_never_a_pass(
    job: Job, exit_code: int, stdout: str, note: str
) -> None:
    report = played(job, exit_code, stdout)
    assert report.status == "no_report"
    assert note in report.note


@pytest.mark.parametrize(
    ("stdout", "exit_code", "status"),
    [
        ("1..2\nok 1 - a\nok 2 - b\n", 0, "passed"),
        ("1..3\nok 1 - a\nok 2 - b\nnot ok 3 - other\n", 1, "passed"),
        ("1..1\nok 1 - a\n", 0, "failed"),
        ("1..2\nok 1 - a\nok 2 - b # SKIP\n", 0, "failed"),
        ("1..2\nok 1 - a\nnot ok 2 - b\n", 1, "failed"),
        ("1..3\nok 1 - a\nok 2 - b\nnot ok 3 - b\n", 1, "failed"),
        ("1..2\nok 1 - a\nok 2 - b\n", 1, "no_report"),
    ],
    ids=["all", "another fails", "one missing", "one skipped", "one fails", "one twice", "exit code"],
)
@pytest.mark.parametrize("success", ["plausible", "fixed", "strict_block"])
def test_named_tests_decide_and_nothing_else(job: Job, stdout: str, exit_code: int, status: str, success: Any) -> None:
    problem = replace(job.problem, fail_to_pass=("a",), pass_to_pass=("b",))
    baseline = played(job, 1, "1..2\nnot ok 1 - a\nok 2 - b\n")
    verdict = compute_verdict(baseline, played(job, exit_code, stdout), problem, 1, 1, success)
    assert verdict.status == status


@pytest.mark.parametrize(
    ("report", "stdout", "compiled"),
    [
        ("tap", "1..2\nok 1 - a\nnot ok 2 - b\n", True),
        ("pytest", "=== short test summary info ===\nERROR a.py - ImportError: x\n1 error in 0.1s\n", False),
        ("go", "FAIL\tshop [build failed]\n", False),
    ],
)
def test_code_was_compiled_if_a_test_reported(job: Job, report: str, stdout: str, compiled: bool) -> None:
    assert played(job, 1, stdout, report=report).compiled is compiled


def test_named_tests_need_a_report_by_name(job: Job) -> None:
    report = played(job, 0, "", ("a",), "exit_code")
    assert report.status == "validator_unavailable"
    assert report.note.startswith("fail_to_pass and pass_to_pass need a report by test name; set validation.command")


def test_an_unknown_report_is_said(job: Job) -> None:
    problem = replace(job.problem, test_report="xml")
    settings = CommandProgram(arguments=["/bin/true"])
    validator = CommandValidator(Playback(CommandResult("exited", 0)), Limits(), settings)
    note = report_on(validator, Job(problem, job.tree)).note
    assert note == "unknown test_report 'xml'; use one of exit_code, json, pytest, junit, tap, go, cargo, jest"


@pytest.mark.skipif(shutil.which("node", path=SYSTEM_PATH) is None, reason="node is not installed")
def test_a_javascript_project_by_test_name(sandbox: Sandbox, tmp_path: Path) -> None:
    tests = """
    const test = require('node:test'), assert = require('node:assert'), { add } = require('./shop');
    test('cart', async (t) => {
      await t.test('adds', () => assert.equal(add(1, 2), 3));
      await t.test('is zero', () => assert.equal(add(0, 0), 0));
    });
    """
    broken = "exports.add = (a, b) => a - b;\n"
    tree = tree_of(tmp_path, {"shop.js": broken, "shop.test.js": tests})
    command = "node --test --test-reporter=tap shop.test.js"
    judged = {"fail_to_pass": ("cart > adds",), "pass_to_pass": ("cart > is zero",)}
    job = job_of(tree, "shop.js")
    job = replace(job, problem=replace(job.problem, test_command=command, test_report="tap", **judged))
    validator = CommandValidator(sandbox, Limits(seconds=30, memory_bytes=2**31), CommandProgram(arguments=()))
    fixes = {"passed": broken.replace("-", "+"), "failed": "process.exit(0);\n"}
    baseline = report_on(validator, job)
    assert dict(baseline.tests) == {"cart": False, "cart > adds": False, "cart > is zero": True}
    for status, text in fixes.items():
        report = report_on(validator, Job(job.problem, tree.with_file("shop.js", text.encode())))
        assert compute_verdict(baseline, report, job.problem, 1, 1).status == status
