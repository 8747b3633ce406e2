"""Any program as a validator: exit codes, JSON and reports by test name, recorded and in the real sandbox."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.validation.validators.support import STOPPED, Playback, job_of, report_on, tree_of
from touchstone.config.validation import CommandProgram
from touchstone.validation.files.working_copy import list_files
from touchstone.validation.judging.verdicts import compute_verdict
from touchstone.validation.protocol import Diagnostic, Job, Report, Tree
from touchstone.validation.sandbox.command import CommandResult, Limits, Sandbox
from touchstone.validation.sandbox.processes import memory_group
from touchstone.validation.validators.command import CommandValidator
from touchstone.validation.validators.common import SYSTEM_PATH

SHELL = ("/bin/sh", "-c")
GOOD = '<testsuite><testcase classname="A" name="adds"/></testsuite>'
BAD = '<testsuite><testcase classname="A" name="adds"><failure message="1 is not 2"/></testcase></testsuite>'


@pytest.fixture
def job(tmp_path: Path) -> Job:
    files = {"code/a.txt": "good\n", "code/b.txt": "other\n", "code/old.xml": GOOD}
    return job_of(tree_of(tmp_path, files), "a.txt", "code")


def played(job: Job, ended: CommandResult, report: Any = "json", **about: Any) -> Report:
    """The report on a command that ended so; `about` is more about the problem."""
    validator = CommandValidator(Playback(ended), Limits(), CommandProgram(arguments=SHELL, report=report))
    return report_on(validator, replace(job, problem=replace(job.problem, **about)))


def said(exit_code: int, **fields: Any) -> CommandResult:
    return CommandResult("exited", exit_code, json.dumps({"passed": True, "diagnostics": [], **fields}).encode())


@pytest.mark.parametrize(
    ("ended", "status", "words"),
    [
        (CommandResult("exited", 0, seconds=2.0), "passed", ""),
        (CommandResult("exited", 3, b"out", b"line 1 is wrong\n"), "failed", "exit code 3: line 1 is wrong"),
        (CommandResult("exited", 1, b"out\n"), "failed", "exit code 1: out"),
        (CommandResult("exited", 126, b"", b"sh: no"), "validator_unavailable", "cannot be started in the sandbox"),
        (CommandResult("exited", 127, b"", b"sh: no"), "validator_unavailable", "exit code 127: sh: no"),
        (CommandResult("exited", 2, b"", b"make: *** [Makefile:3: test] Error 127\n"), "validator_unavailable", "127"),
        (CommandResult("exited", 1, b"", b"/usr/bin/python3: No module named tox\n"), "validator_unavailable", "tox"),
        (CommandResult("exited", 1, b"", b"ModuleNotFoundError: No module named 'x'\n"), "failed", "'x'"),
        (CommandResult("exited", -11), "no_report", "the program was killed by SIGSEGV"),
        *((CommandResult(status, None, note="why"), status, "why") for status in STOPPED),
    ],
)
def test_exit_codes(job: Job, ended: CommandResult, status: str, words: str) -> None:
    report = played(job, ended, "exit_code")
    assert (report.status, report.consistent, report.duration_seconds) == (status, True, ended.seconds)
    assert words in report.note + "".join(found.output for found in report.diagnostics)
    assert {found.summary for found in report.diagnostics} == ({"the command failed"} if status == "failed" else set())


def test_scripts_and_makefiles_find_python(sandbox: Sandbox, tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {"Makefile": "test:\n\t@python test_it.py\n", "test_it.py": "import pytest\n"})
    validator = CommandValidator(sandbox, Limits(processes=64), CommandProgram(arguments=(*SHELL, "make")))
    report = report_on(validator, job_of(tree, "test_it.py"))
    assert (report.status, report.note) == ("passed", "")


def test_a_package_in_src_is_imported_as_if_it_were_installed(sandbox: Sandbox, tmp_path: Path) -> None:
    # A package of this name is installed beside Touchstone.
    files = {"shop/src/click/__init__.py": "PRICE = 1\n", "shop/tests/it.py": "import click\nassert click.PRICE == 1\n"}
    job = job_of(tree_of(tmp_path, files), "src/click/__init__.py", "shop")
    validator = CommandValidator(sandbox, Limits(processes=64), CommandProgram())
    problem = replace(job.problem, test_command="cd tests && python it.py")
    wrong = job.tree.with_file("shop/src/click/__init__.py", b"PRICE = 2\n")
    assert [report_on(validator, Job(problem, tree)).status for tree in (job.tree, wrong)] == ["passed", "failed"]


_NPM_PROJECT = {
    "shop/package.json": "{}",
    "shop/add.txt": "1\n",
    "shop/parts/core/price.txt": "7\n",
    "shop/node_modules/.bin/check": "#!/bin/sh\ntest $(cat node_modules/adds/sum.txt) = $(cat add.txt)\n",
    "shop/node_modules/.cache/mark": "",
    "shop/node_modules/adds/sum.txt": "1\n",
    "shop/node_modules/@shop/money/unit.txt": "euro\n",
    "node_modules/outer/far.txt": "far\n",
}


class TestPackagesOfNpm:
    """They are left out of the copy, and used from where they are."""

    @pytest.fixture
    def job(self, tmp_path: Path) -> Job:
        tree_of(tmp_path, _NPM_PROJECT)
        packages = tmp_path / "shop" / "node_modules"
        (packages / ".bin" / "check").chmod(0o755)
        (packages / "@shop" / "core").symlink_to("../../parts/core")
        files = list_files(tmp_path / "shop")
        assert files == ("add.txt", "package.json", "parts/core/price.txt")
        return job_of(Tree(tmp_path / "shop", files), "add.txt")

    @pytest.mark.parametrize(
        "command",
        [
            "node_modules/.bin/check",
            "test $(cat node_modules/@shop/money/unit.txt) = euro",
            # A package of the project itself is the copy, with the fix.
            "echo 8 > parts/core/price.txt && test $(cat node_modules/@shop/core/price.txt) = 8",
            "test ! -e node_modules/.cache && mkdir node_modules/.cache",
        ],
    )
    def test_commands_see_them(self, sandbox: Sandbox, job: Job, command: str) -> None:
        assert validated(sandbox, job, command).status == "passed"

    def test_no_command_and_no_fix_changes_them(self, sandbox: Sandbox, job: Job) -> None:
        before = CommandValidator(sandbox, Limits(), CommandProgram()).identity(job.problem)["packages"]
        assert validated(sandbox, job, "echo 2 > node_modules/adds/sum.txt").status == "failed"
        for path in ("node_modules/adds/sum.txt", "node_modules", "node_modules/adds"):
            forged = replace(job, tree=job.tree.with_changes({path: b"2\n", "add.txt": b"2\n"}))
            assert validated(sandbox, forged, "node_modules/.bin/check").status == "failed"
        assert CommandValidator(sandbox, Limits(), CommandProgram()).identity(job.problem)["packages"] == before
        (job.tree.root / "node_modules" / "adds" / "sum.txt").write_text("3\n")
        assert CommandValidator(sandbox, Limits(), CommandProgram()).identity(job.problem)["packages"] != before

    def test_those_of_the_nearest_folder_around_it(self, sandbox: Sandbox, job: Job) -> None:
        shutil.rmtree(job.tree.root / "node_modules")
        assert validated(sandbox, job, "test $(cat node_modules/outer/far.txt) = far").status == "passed"

    def test_where_there_are_none(self, sandbox: Sandbox, job: Job) -> None:
        for folder in (job.tree.root, job.tree.root.parent):
            shutil.rmtree(folder / "node_modules")
        note = validated(sandbox, job, "vitest run").note
        assert "vitest: not found; run `npm ci` beside its package.json, or set its PATH" in note


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


# Reports by test name


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


def ended(exit_code: int, stdout: str) -> CommandResult:
    return CommandResult("exited", exit_code, stdout.encode(), b"last words")


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
    report = played(job, ended(exit_code, stdout), "tap")
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
    baseline = played(job, ended(1, "1..2\nnot ok 1 - a\nok 2 - b\n"), "tap")
    verdict = compute_verdict(baseline, played(job, ended(exit_code, stdout), "tap"), problem, 1, 1, success)
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
    assert played(job, ended(1, stdout), report).compiled is compiled


def test_what_cannot_be_planned_is_said(job: Job) -> None:
    unnamed = played(job, ended(0, ""), "exit_code", fail_to_pass=("a",))
    assert unnamed.status == "validator_unavailable"
    assert unnamed.note.startswith("fail_to_pass and pass_to_pass need a report by test name; set validation.command")
    unknown = played(job, ended(0, ""), test_report="xml").note
    assert unknown == "unknown test_report 'xml'; use one of exit_code, json, pytest, junit, tap, go, cargo, jest"


@pytest.mark.services
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


@pytest.mark.services
@pytest.mark.skipif(shutil.which("javac", path=SYSTEM_PATH) is None, reason="no JDK is installed")
def test_a_java_program(sandbox: Sandbox, tmp_path: Path) -> None:
    shop = "class Shop { static int add(int a, int b) { return a + b; } }\n"
    test = 'class Test { public static void main(String[] x) { if (Shop.add(1, 2) != 3) throw new Error("no"); } }\n'
    job = job_of(tree_of(tmp_path, {"Shop.java": shop, "Test.java": test}), "Shop.java")
    wrong = replace(job, tree=job.tree.with_file("Shop.java", shop.replace("+", "-").encode()))
    reports = [validated(sandbox, each, "javac *.java && java Test") for each in (job, wrong)]
    assert [report.status for report in reports] == ["passed", "failed"], reports


def test_public_settings_of_the_system_can_be_read(sandbox: Sandbox, job: Job) -> None:
    there = [
        path
        for path in ("/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/ssl/openssl.cnf")
        if Path(path).exists()
    ]
    assert validated(sandbox, job, f"cat {' '.join(there)} /dev/null > ../all && ! cat /etc/passwd").status == "passed"


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_a_sanitizer_of_c_can_reserve_memory(sandbox: Sandbox, tmp_path: Path, sanitizer: str) -> None:
    right = "#include <stdlib.h>\nint main(void) { char *p = malloc(4); p[0] = 0; free(p); return 0; }\n"
    job = job_of(tree_of(tmp_path / "job", {"test.c": right}), "test.c")
    command = f"cc -fsanitize={sanitizer} -o test test.c && ASAN_OPTIONS=detect_leaks=0 ./test"
    shutil.copytree(tmp_path / "job", tmp_path / "plain")
    if subprocess.run(["sh", "-c", command], cwd=tmp_path / "plain", check=False, capture_output=True).returncode:
        pytest.skip("this sanitizer does not work here")
    with memory_group(2**30) as before:
        if not before:
            pytest.skip("no control group can be made here, so memory is limited when it is reserved")
    wrong = replace(job, tree=job.tree.with_file("test.c", right.replace("return 0", "return p[0]").encode()))
    reports = [validated(sandbox, each, command) for each in (job, wrong)]
    assert [report.status for report in reports] == ["passed", "failed"], reports


def test_the_process_of_bubblewrap_itself_is_out_of_reach(sandbox: Sandbox, job: Job) -> None:
    """If no user is switched, it has the same user as the command, and no filter."""
    if sandbox.name != "bubblewrap":
        pytest.skip("only bubblewrap starts a process of its own in the sandbox")
    report = validated(sandbox, job, 'test -d /proc/1 && test -z "$(ls -A /proc/1)" && ! mkdir /proc/1/x')
    assert report.status == "passed", report
