"""Commands: whole untrusted programs, under the same limits."""

import json
import os
import re
import shutil
import socket
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import MILLION, Canary
from tests.validation.attacks.conftest import SECRET, of_landlock
from tests.validation.pytest_runner.support import sandbox_or_skip
from touchstone.config.validation import CommandProgram
from touchstone.validation.protocol import Job, Problem, Report, Tree
from touchstone.validation.sandbox.backends import Landlock, readable_by_others
from touchstone.validation.sandbox.command import Command, CommandResult, Limits
from touchstone.validation.sandbox.interpreters import interpreter
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.validators.command import CommandValidator
from touchstone.validation.validators.lint import MOST_WARNINGS, count_warnings

# So much time that another limit is always the first to be reached, however slow the machine is.
LIMITS = Limits(seconds=60, memory_bytes=128 * MILLION, disk_bytes=16 * MILLION, output_bytes=MILLION, processes=12)
BRIEF = replace(LIMITS, seconds=1.2)
# As many processes as there may be: those that cannot fork go on.
FORKS = "import os\nfor _ in range(6):\n    try: os.fork()\n    except OSError: break\n"
PATH = {"PATH": "/usr/bin:/bin"}


def shell(sandbox: SandboxRunner, script: str, tree: Tree | None = None, limits: Limits = LIMITS) -> CommandResult:
    """A shell script on a tree."""
    return sandbox.run(Command(["/bin/sh", "-c", script], tree or Tree(Path("/"), ()), environment=PATH), limits)


def python(sandbox: SandboxRunner, script: str, limits: Limits = LIMITS) -> CommandResult:
    """A script of this interpreter."""
    made = interpreter()
    command = Command([str(made.program), "-I", "-c", script], Tree(Path("/"), ()), environment=PATH)
    return sandbox.run(command, limits)


@of_landlock
def test_landlock_refuses_commands_of_root_where_the_interpreter_is_closed_to_others(tmp_path: Path) -> None:
    made = interpreter()
    if os.getuid() != 0 or readable_by_others(made.program):
        pytest.skip("other users can read this interpreter, or this user is not root")
    ended = shell(sandbox_or_skip(tmp_path, "landlock"), "true")
    assert ended.status == "sandbox_error"
    assert ended.note == (
        f"{made.program}: other users cannot read it, so root cannot run commands in landlock; open it to them, or "
        "install bubblewrap (Debian and Ubuntu: apt-get install bubblewrap)"
    )
    assert Landlock().missing() is None


class TestReach:
    def test_network(self, commands: SandboxRunner) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(0.05)
            port = listener.getsockname()[1]
            ended = python(commands, f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)")
            assert ended.exit_code == 1 and re.search(rb"PermissionError|ConnectionRefusedError", ended.stderr)
            with pytest.raises(TimeoutError):
                listener.accept()

    def test_files_and_environment(self, commands: SandboxRunner, canary: Canary) -> None:
        script = f"""
            cat /etc/shadow {canary.secret}; echo x > {canary.secret}; echo x > {canary.folder}/new; ls {canary.folder}
            for place in / /usr /etc /tree; do echo x > $place/attack && echo wrote; done
            env; cat /proc/*/environ | tr '\\0' '\\n'; ls -a / /home
            for process in /proc/[0-9]*; do cat $process/maps; ls -l $process/fd; done
        """
        ended = shell(commands, script)
        assert SECRET.encode() not in ended.stdout + ended.stderr
        assert not [word for word in (b"TOUCHSTONE", b"root:x:", b"wrote") if word in ended.stdout]

    def test_other_processes(self, commands: SandboxRunner) -> None:
        ended = shell(
            commands, f"ls -d /proc/[0-9]*; kill -0 {os.getpid()} && echo reached; kill -9 1 2; kill -0 2 && echo 2"
        )
        assert b"reached" not in ended.stdout and f"/proc/{os.getpid()}\n".encode() not in ended.stdout
        assert len([line for line in ended.stdout.splitlines() if line.startswith(b"/proc/")]) < 6

    def test_the_status_pipe_of_its_supervisor(self, commands: SandboxRunner) -> None:
        """Writing to every descriptor, its own and its supervisor's, does not forge the exit status."""
        forge = """
import json, os
line = json.dumps({"exit_code": 0, "disk_full": False}).encode() + b"\\n"
for number in range(3, 256):
    for place in (None, 1, 2, os.getppid()):
        try:
            file = number if place is None else os.open(f"/proc/{place}/fd/{number}", os.O_WRONLY)
            os.write(file, line)
            print("wrote", place, number)
        except OSError:
            pass
raise SystemExit(7)
"""
        ended = python(commands, forge)
        assert (ended.status, ended.exit_code, ended.stdout) == ("exited", 7, b"")


class TestLimits:
    @pytest.mark.nightly
    def test_fork_bomb(self, commands: SandboxRunner) -> None:
        ended = shell(commands, "bomb() { bomb | bomb & }; bomb; while :; do :; done", limits=BRIEF)
        assert ended.status in ("timeout", "exited", "output_limit") and ended.exit_code != 0

    BOMBS: ClassVar = [
        "x = []\nwhile True: x.append(b'x' * 1000000)",
        FORKS + "x = bytearray(b'x') * 60000000\nimport time; time.sleep(600)",
        "import mmap\nx = []\nwhile True: x.append(mmap.mmap(-1, 1 << 24)); x[-1][:] = b'x' * (1 << 24)",
        "import os\nfor _ in range(99): os.write(os.memfd_create('x'), b'x' * (8 << 20))",
    ]

    # By day one that no process but all of them show, and one that none shows.
    @pytest.mark.parametrize("bomb", nightly_but(BOMBS[1::2], BOMBS))
    def test_memory(self, commands: SandboxRunner, bomb: str) -> None:
        ended = python(commands, bomb)
        assert ended.status == "memory_limit" or (ended.status == "exited" and ended.exit_code != 0)

    def test_disk(self, commands: SandboxRunner) -> None:
        before = shutil.disk_usage("/tmp").free
        for fill in (
            "yes > full",
            "i=0; while head -c 1000000 /dev/zero > $i; do i=$((i+1)); done",
            "yes > $TMPDIR/full",
            "yes > /dev/shm/full",
        ):
            # In landlock the size of a file is limited, so that one file alone cannot exceed the limit.
            may_end = commands.name == "landlock" and "head" not in fill
            assert shell(commands, f"{fill}; exit 0").status in ("disk_limit", *(["exited"] if may_end else []))
        ended = shell(commands, "truncate -s 1T sparse && echo made; for place in /run /; do yes > $place/full; done")
        assert ended.status == "exited" and b"made" not in ended.stdout
        assert before - shutil.disk_usage("/tmp").free < 256 * MILLION

    def test_killing_all(self, commands: SandboxRunner) -> None:
        """An ordinary user's command and the keeper of its sandbox are the same user, so that it can end both."""
        ended = shell(commands, "kill -9 -1; kill -STOP 2; exit 0")
        assert ended.status in (["exited"] if os.getuid() == 0 else ["exited", "no_report"])


class TestTrees:
    def test_a_hard_link_to_a_file_outside(self, commands: SandboxRunner, canary: Canary, tmp_path: Path) -> None:
        """The tree's file is the outside file; what the command writes goes to a copy."""
        outside, tree = tmp_path / "outside.txt", tmp_path / "tree"
        outside.write_text("before")
        outside.chmod(0o666)
        (tree / "sub").mkdir(parents=True)
        os.link(outside, tree / "sub" / "file.txt")
        state = outside.stat()
        ended = shell(
            commands,
            "echo after > sub/file.txt && chmod 777 sub/file.txt && cat sub/file.txt; echo x > /tree/sub/file.txt; "
            "rm -rf /tree/sub; ln /tree/sub/file.txt hard && echo x >> hard; exit 0",
            Tree(tree, ("sub/file.txt",)),
        )
        assert (ended.status, ended.stdout) == ("exited", b"after\n")
        assert outside.read_text() == "before"
        assert (outside.stat().st_mode, outside.stat().st_mtime_ns, outside.stat().st_nlink) == (
            state.st_mode,
            state.st_mtime_ns,
            state.st_nlink,
        )

    def test_a_symlink_in_place_of_the_working_folder(self, commands: SandboxRunner, canary: Canary) -> None:
        ended = shell(commands, f"cd ..; rm -rf work; ln -s {canary.folder} work; echo x > work/new; exit 0")
        assert ended.status == "exited"

    def test_folders_without_end_and_without_rights(self, commands: SandboxRunner) -> None:
        script = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d'); os.chmod('..', 0)\n"
        # Landlock counts what it cannot look into as full.
        assert python(commands, script).status in ("exited", "disk_limit")


class TestForgedReports:
    @pytest.fixture
    def job(self) -> Job:
        tree = Tree(Path("/nonexistent"), ("a.txt",), {"a.txt": b"wrong\n"})
        return Job(Problem("p", "a.txt", tree.root), tree)

    def validate(self, sandbox: SandboxRunner, job: Job, script: str) -> Report:
        settings = CommandProgram(arguments=("/bin/sh", "-c", script), report="json")
        (report,) = CommandValidator(sandbox, BRIEF, settings).validate([job])
        return report

    # By day a contradiction, two reports, none, bytes that are no text, depth, length, and a report that comes late.
    BY_DAY: ClassVar = [
        "echo '{report}'; exit 1",
        "echo '{report}'; echo '{failed}'; exit 1",
        "echo 'test_it PASSED'; echo '1 passed in 0.01s'; exit 0",
        "printf '\\377{report}'; exit 0",
        "head -c 300000 /dev/zero | tr '\\0' '['; exit 0",
        "echo '{report}'; yes",
        "(sleep 9; echo '{report}') & exit 0",
    ]
    NIGHTLY: ClassVar = [
        *("echo '{report}'; echo '{report}'", "echo '{report}'; kill -9 $$", "echo '{failed}'; exit 0"),
        *("echo '{report}' >&2; exit 0", "printf '{report}\\0'; exit 0", "echo '{report}'; while :; do :; done"),
    ]

    @pytest.mark.parametrize("script", nightly_but(BY_DAY, [*BY_DAY, *NIGHTLY]))
    def test_what_is_printed_twice_or_contradicted_does_not_pass(
        self, commands: SandboxRunner, job: Job, script: str
    ) -> None:
        words = {"report": json.dumps({"passed": True, "diagnostics": []})}
        words["failed"] = json.dumps({"passed": False, "diagnostics": []})
        filled = script.replace("{report}", words["report"]).replace("{failed}", words["failed"])
        assert self.validate(commands, job, filled).status in ("no_report", "timeout", "output_limit")

    def test_a_true_report_passes(self, commands: SandboxRunner, job: Job) -> None:
        assert self.validate(commands, job, """echo '{"passed": true, "diagnostics": []}'""").status == "passed"


def test_a_file_that_ends_ruff_takes_no_counts_from_its_neighbours(commands: SandboxRunner) -> None:
    unused, deep = b"import os\nimport sys\n", b"x = " + b"-" * 50_000 + b"1\n"
    assert count_warnings(commands, [unused, deep]) == [2, MOST_WARNINGS]
