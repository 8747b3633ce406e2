"""Any program as a validator: exit codes and JSON reports, from recorded results and in the real sandbox."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.validation.validators.support import STOPPED, Playback, job_of, report_on, tree_of
from touchstone.config.validation import CommandProgram
from touchstone.validation.protocol import Diagnostic, Job, Report
from touchstone.validation.sandbox.command import CommandResult, Limits, Sandbox
from touchstone.validation.validators.command import CommandValidator

SHELL = ("/bin/sh", "-c")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return job_of(tree_of(tmp_path, {"code/a.txt": "good\n", "code/b.txt": "other\n"}), "a.txt", "code")


def played(job: Job, ended: CommandResult, report: Any = "json") -> Report:
    return report_on(CommandValidator(Playback(ended), Limits(), CommandProgram(arguments=SHELL, report=report)), job)


def said(exit_code: int, **fields: Any) -> CommandResult:
    return CommandResult("exited", exit_code, json.dumps({"passed": True, "diagnostics": [], **fields}).encode())


@pytest.mark.parametrize(
    ("ended", "status", "words"),
    [
        (CommandResult("exited", 0), "passed", ""),
        (CommandResult("exited", 3, b"out", b"line 1 is wrong\n"), "failed", "exit code 3: line 1 is wrong"),
        (CommandResult("exited", 1, b"out\n"), "failed", "exit code 1: out"),
        (CommandResult("exited", 126, b"", b"sh: no"), "validator_unavailable", "cannot be started in the sandbox"),
        (CommandResult("exited", 127, b"", b"sh: no"), "validator_unavailable", "exit code 127: sh: no"),
        (CommandResult("exited", -11), "no_report", "the program was killed by SIGSEGV"),
        *((CommandResult(status, None, note="why"), status, "why") for status in STOPPED),
    ],
)
def test_exit_codes(job: Job, ended: CommandResult, status: str, words: str) -> None:
    report = played(job, ended, "exit_code")
    assert (report.status, report.consistent) == (status, True)
    assert words in report.note + "".join(found.output for found in report.diagnostics)
    assert {found.summary for found in report.diagnostics} == ({"the command failed"} if status == "failed" else set())


def test_all_failures_are_the_same_error(job: Job) -> None:
    """Otherwise a fix that fails in other words would have repaired the first failure."""
    ways = [CommandResult("exited", 1, b"one"), CommandResult("exited", 2, b"", b"two")]
    assert len({played(job, ended, "exit_code").diagnostics[0].identity for ended in ways}) == 1


class TestJson:
    def test_everything_that_it_may_say(self, job: Job) -> None:
        entry = {"severity": "warning", "summary": "odd", "detail": "d", "file": "../x.txt", "line": 2, "end_line": 3}
        more = {"tests": {"one": True}, "compiled": True, "lint_warnings": 4}
        report = played(job, said(0, diagnostics=[entry], **more))
        assert report == Report(
            "passed", "full", (Diagnostic("warning", "odd", "d", "x.txt", 2, 3),), True, {"one": True}, 4
        )

    def test_failed(self, job: Job) -> None:
        report = played(
            job, said(1, passed=False, diagnostics=[{"severity": "error", "summary": "bad", "file": "a.txt"}])
        )
        assert (report.status, report.diagnostics) == ("failed", (Diagnostic("error", "bad", file="code/a.txt"),))

    @pytest.mark.parametrize(
        ("exit_code", "fields"),
        [
            (1, {}),
            (0, {"passed": False}),
            (-9, {}),
            (0, {"diagnostics": [{"severity": "error", "summary": "bad"}]}),
            (0, {"tests": {"one": False}}),
            (0, {"compiled": False}),
        ],
    )
    def test_contradictions_are_no_verdict(self, job: Job, exit_code: int, fields: dict[str, Any]) -> None:
        report = played(job, said(exit_code, **fields))
        assert (report.status, report.consistent) == ("no_report", False)
        assert "the report says passed" in report.note

    @pytest.mark.parametrize(
        "stdout",
        [
            b"",
            b'{"passed": true, "diagno',
            b"all good",
            b"[]",
            b'{"passed": true}',
            b'{"passed": 1, "diagnostics": []}',
            b'{"passed": true, "diagnostics": [1]}',
            b'{"passed": true, "diagnostics": [{"severity": "fatal", "summary": "x"}]}',
            b'{"passed": true, "diagnostics": [{"severity": "error"}]}',
            b'{"passed": true, "diagnostics": [{"severity": "warning", "summary": "x", "line": true}]}',
            b'{"passed": true, "diagnostics": [], "tests": {"a": 1}}',
            b'{"passed": true, "diagnostics": [], "lint_warnings": "3"}',
            b"[" * 100_000,
            b"\xff\xfe",
        ],
    )
    def test_what_is_not_whole_is_no_verdict(self, job: Job, stdout: bytes) -> None:
        report = played(job, CommandResult("exited", 0, stdout))
        assert (report.status, report.consistent) == ("no_report", True)
        assert report.note.startswith("the program's report ")


def test_placeholders_and_environment(job: Job) -> None:
    playback = Playback(CommandResult("exited", 0))
    arguments = ("/bin/ls", "--file={file}", "{directory}/x", "{other}")
    settings = CommandProgram(arguments=arguments, readable=(Path("/opt/rules"),), environment={"RULES": "strict"})
    report_on(CommandValidator(playback, Limits(), settings), job)
    (command,) = playback.asked
    assert command.arguments == ["/bin/ls", "--file=a.txt", "./x", "{other}"]
    assert command.directory == "code"
    assert Path("/opt/rules") in command.readable
    assert command.environment["RULES"] == "strict"


def test_a_missing_program_is_said_once_and_decides_nothing(job: Job) -> None:
    playback = Playback(CommandResult("exited", 0))
    validator = CommandValidator(playback, Limits(), CommandProgram(arguments=("no-such-program", "{file}")))
    assert not validator.probe().usable
    report = report_on(validator, job)
    assert report.status == "validator_unavailable"
    assert not report.decided
    assert "no-such-program is not there; install it" in report.note
    assert playback.asked == []


def test_probe_and_version(job: Job) -> None:
    asking = CommandProgram(arguments=SHELL, version_arguments=[sys.executable, "--version"])
    validator = CommandValidator(Playback(CommandResult("exited", 0)), Limits(), asking)
    assert validator.version.startswith("Python 3.")
    assert validator.probe().usable
    assert "/bin/sh" in json.loads(json.dumps(validator.identity(job.problem)))["files"]
    settings = CommandProgram(arguments=SHELL, version_arguments=["/bin/false"])
    broken = CommandValidator(Playback(CommandResult("exited", 0)), Limits(), settings)
    assert not broken.probe().usable


def test_in_the_real_sandbox(sandbox: Sandbox, job: Job) -> None:
    script = "grep -q good {file} && test -f b.txt && touch $HOME/proof"
    validator = CommandValidator(sandbox, Limits(), CommandProgram(arguments=(*SHELL, script)))
    assert report_on(validator, job) == Report("passed", "full", duration_seconds=pytest.approx(0, abs=9))
    broken = Job(job.problem, job.tree.with_file("code/a.txt", b"bad\n"))
    assert report_on(validator, broken).status == "failed"
