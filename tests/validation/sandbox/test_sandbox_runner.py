"""Running one command in a sandbox: its inputs, its results, and that no process is left.

Every test runs in bubblewrap, and nightly in landlock and unsandboxed: a command must behave the same in each backend.
"""

import os
import signal
import stat
from pathlib import Path

import pytest

from touchstone.validation.protocol import Tree
from touchstone.validation.sandbox.backends import Landlock
from touchstone.validation.sandbox.command import TMP, Command, CommandResult, Limits
from touchstone.validation.sandbox.runner import SandboxRunner

PATH = {"PATH": "/usr/bin:/bin"}
NOTHING = Tree(Path("/nonexistent"), ())


@pytest.fixture(autouse=True)
def _commands_need_a_python_that_others_can_read(sandbox_runner: SandboxRunner) -> None:
    if (
        isinstance(sandbox_runner.backend, Landlock)
        and os.getuid() == 0
        and "other users" in run(sandbox_runner, "true").note
    ):
        pytest.skip("this Python lies in a folder of root's, so landlock runs no commands here")


def run(
    sandbox_runner: SandboxRunner, script: str, tree: Tree = NOTHING, directory: str = "", **limits: float
) -> CommandResult:
    command = Command(["/bin/sh", "-c", script], tree, directory, environment=PATH)
    return sandbox_runner.run(command, Limits(**limits))  # type: ignore[arg-type]


def tree_in(root: Path) -> Tree:
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("as it was")
    (root / "sub" / "tool.sh").write_text("#!/bin/sh\necho from the tool\n")
    (root / "sub" / "tool.sh").chmod(0o755)
    return Tree(root, ("a.txt", "sub/tool.sh"))


@pytest.mark.parametrize(
    ("script", "exit_code", "stdout", "stderr"),
    [
        ("exit 0", 0, b"", b""),
        ("exit 255", 255, b"", b""),
        ("kill -KILL $$", -signal.SIGKILL, b"", b""),
        ("kill -SEGV $$", -signal.SIGSEGV, b"", b""),
        ("printf out; printf err >&2; printf ' more'; exit 2", 2, b"out more", b"err"),
        ("cat; echo there is nothing to read", 0, b"there is nothing to read\n", b""),
        # Rights that would keep it from being removed.
        ("mkdir -p deep/er; chmod 000 deep; echo left", 0, b"left\n", b""),
    ],
)
def test_how_it_ended_and_what_it_said(
    sandbox_runner: SandboxRunner, script: str, exit_code: int, stdout: bytes, stderr: bytes
) -> None:
    ended = run(sandbox_runner, script)
    assert (ended.status, ended.exit_code, ended.stdout, ended.stderr) == ("exited", exit_code, stdout, stderr)
    assert ended.note == "" and ended.seconds > 0


def test_the_environment_is_what_was_given_and_nothing_else(
    sandbox_runner: SandboxRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cr3t")
    command = Command(["/usr/bin/env"], NOTHING, environment={"ONE": "1", "HOME": TMP, "TWICE": f"{TMP}:{TMP}"})
    said = dict(line.split("=", 1) for line in sandbox_runner.run(command, Limits()).stdout.decode().splitlines())
    assert set(said) == {"ONE", "HOME", "TMPDIR", "TWICE"}
    assert said["ONE"] == "1" and said["TWICE"] == f"{said['HOME']}:{said['HOME']}"
    assert TMP not in said["HOME"] and said["HOME"].startswith("/")


def test_the_private_folder_can_be_named_in_arguments_and_written_to(sandbox_runner: SandboxRunner) -> None:
    script = 'echo kept > "$1/x" && cat "$1/x" && test "$1" = "$HOME" && pwd'
    command = Command(["/bin/sh", "-c", script, "sh", TMP], NOTHING, environment={**PATH, "HOME": TMP})
    ended = sandbox_runner.run(command, Limits())
    assert ended.exit_code == 0, ended
    kept, folder = ended.stdout.decode().splitlines()
    assert kept == "kept" and folder.endswith("/work")


def test_a_program_is_looked_for_on_the_path_and_a_missing_one_is_no_verdict(sandbox_runner: SandboxRunner) -> None:
    assert sandbox_runner.run(Command(["echo", "found"], NOTHING, environment=PATH), Limits()).stdout == b"found\n"
    for program in ("no-such-program", "/no/such/program"):
        ended = sandbox_runner.run(Command([program], NOTHING, environment=PATH), Limits())
        assert (ended.status, ended.exit_code) == ("sandbox_error", None)
        assert "FileNotFoundError" in ended.note and program in ended.note


def test_it_starts_in_the_directory_of_the_tree(sandbox_runner: SandboxRunner, tmp_path: Path) -> None:
    """Also in one that a fix has emptied: if nothing could run there, the fix would be undecided."""
    tree = tree_in(tmp_path / "tree")
    assert run(sandbox_runner, "ls", tree).stdout == b"a.txt\nsub\n"
    assert run(sandbox_runner, "ls; cat ../a.txt", tree, "sub").stdout == b"tool.sh\nas it was"
    ended = run(sandbox_runner, "ls; pwd", tree, "gone/deep")
    assert (ended.status, ended.exit_code) == ("exited", 0)
    assert ended.stdout.endswith(b"/gone/deep\n") and ended.stdout.startswith(b"/")


def test_an_executable_file_stays_one(sandbox_runner: SandboxRunner, tmp_path: Path) -> None:
    tree = tree_in(tmp_path / "tree").with_file("new.sh", b"#!/bin/sh\n")
    assert (
        run(sandbox_runner, "./sub/tool.sh && test ! -x a.txt && test ! -x new.sh", tree).stdout == b"from the tool\n"
    )
    changed = tree.with_file("sub/tool.sh", b"#!/bin/sh\necho another tool\n")
    assert run(sandbox_runner, "./sub/tool.sh", changed).stdout == b"another tool\n"


def test_the_copy_can_be_written_and_the_original_stays(sandbox_runner: SandboxRunner, tmp_path: Path) -> None:
    tree = tree_in(tmp_path / "tree")
    before = {path: (path.stat().st_mtime_ns, stat.S_IMODE(path.stat().st_mode)) for path in tree.root.rglob("*")}
    script = "echo changed > a.txt; echo new > sub/new; rm sub/tool.sh; chmod 777 sub; cat a.txt sub/new; ls sub"
    ended = run(sandbox_runner, script, tree)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, b"changed\nnew\nnew\n", b"")
    assert (tree.root / "a.txt").read_text() == "as it was"
    after = {path: (path.stat().st_mtime_ns, stat.S_IMODE(path.stat().st_mode)) for path in tree.root.rglob("*")}
    assert after == before


def test_only_named_files_can_be_read(sandbox_runner: SandboxRunner, tmp_path: Path) -> None:
    if sandbox_runner.name == "none":
        pytest.skip("without a sandbox everything can be read")
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        if not parent.stat().st_mode & stat.S_IXOTH:
            pytest.skip(f"{parent} cannot be entered by other users")
    (tmp_path / "rules.txt").write_text("rules")
    (tmp_path / "rules.txt").chmod(0o644)
    script = f"cat {tmp_path}/rules.txt"
    command = Command(["/bin/sh", "-c", script], NOTHING, readable=[tmp_path / "rules.txt"], environment=PATH)
    assert sandbox_runner.run(command, Limits()).stdout == b"rules"
    assert run(sandbox_runner, script).stdout == b""


@pytest.mark.parametrize("stream", [1, 2])
def test_output_is_capped_exactly(sandbox_runner: SandboxRunner, stream: int) -> None:
    fits = run(sandbox_runner, f"head -c 50000 /dev/zero >&{stream}", output_bytes=50_000)
    assert (fits.status, len(fits.stdout + fits.stderr)) == ("exited", 50_000)
    over = run(sandbox_runner, f"head -c 50001 /dev/zero >&{stream}", output_bytes=50_000)
    assert over.status == "output_limit"
    flood = run(sandbox_runner, f"cat /dev/zero >&{stream}", output_bytes=50_000)
    assert (flood.status, flood.exit_code) == ("output_limit", None)
    assert 50_000 <= len(flood.stdout + flood.stderr) <= 50_001


def test_cpu_time_is_limited(sandbox_runner: SandboxRunner) -> None:
    ended = run(sandbox_runner, "trap '' TERM INT HUP; printf before; while :; do :; done", seconds=0.5)
    assert (ended.status, ended.exit_code, ended.stdout) == ("timeout", None, b"before")
    assert (ended.note, ended.cpu_used) == ("used more than 0.5 s of CPU time", True)


@pytest.mark.nightly
def test_cpu_time_of_processes_that_have_ended_counts(sandbox_runner: SandboxRunner) -> None:
    count = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    ended = run(sandbox_runner, f"while :; do sh -c '{count}'; done", seconds=0.5)
    assert (ended.status, ended.note) == ("timeout", "used more than 0.5 s of CPU time")


def test_waiting_is_no_cpu_time_and_without_end_a_timeout_at_the_wall_limit(sandbox_runner: SandboxRunner) -> None:
    """So a machine that lets a command wait makes no timeout of it."""
    ended = run(sandbox_runner, "sleep 0.6; printf after", seconds=0.5)
    assert (ended.status, ended.exit_code, ended.stdout) == ("exited", 0, b"after")
    ended = run(sandbox_runner, "sleep 600", seconds=60, wall_seconds=0.3)
    assert (ended.status, ended.exit_code) == ("timeout", None)
    assert ended.note.startswith("took more than 0.3 s of wall time; ")
    assert 0.3 <= ended.seconds < 600


def test_a_process_that_stays_behind_is_killed_and_does_not_hold_up_the_end(sandbox_runner: SandboxRunner) -> None:
    stubborn = "(setsid sh -c 'trap \"\" TERM HUP; sleep 1047.11; echo late' &); (sleep 1047.11; echo late) &"
    ended = run(sandbox_runner, f"{stubborn} printf done")
    assert (ended.status, ended.exit_code, ended.stdout) == ("exited", 0, b"done")
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"1047.11" in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
