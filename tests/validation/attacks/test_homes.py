"""What an interpreter in a home folder, or landlock's view of /proc, would show to a fix."""

import os
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.validation.attacks.arena import Arena
from tests.validation.attacks.conftest import SECRET, USED, of_landlock
from tests.validation.attacks.ordinary_user import run_as_ordinary_user, run_in_readable_python
from tests.validation.pytest_runner.support import sandbox_or_skip
from touchstone.config.validation import PythonProgram


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder that is itself a virtual environment, with a private key and a shell's history in it."""
    home = tmp_path / "home"
    venv.create(home, symlinks=True)
    (home / ".ssh").mkdir()
    for place in (".ssh/id_ed25519", ".bash_history", "bin/token", "lib/notes.txt"):
        (home / place).write_text(SECRET)
    return home


@pytest.fixture(params=USED)
def at_home(request: pytest.FixtureRequest, tmp_path: Path, home: Path) -> Iterator[Arena]:
    settings = PythonProgram(interpreter=home / "bin" / "python", lint=False)
    arena = Arena(sandbox_or_skip(tmp_path / "scratch", request.param), settings)
    yield arena
    arena.validator.close()


@pytest.mark.services
def test_an_interpreter_in_a_home_folder_shows_only_itself(at_home: Arena, home: Path) -> None:
    at_home.probe(f"""
        for path in {[str(path) for path in sorted(home.rglob("*"))]!r}:
            if not any(own in path for own in ("lib/python", "/bin/python", "cfg")):
                got += works(path, lambda: open(path, "rb").read(1))
    """)


SHOW = """
import json, os, sys, tempfile
from pathlib import Path
from touchstone.validation.protocol import Tree
from touchstone.validation.sandbox.backends import Landlock
from touchstone.validation.sandbox.command import Command, Limits
from touchstone.validation.sandbox.runner import probe_backend
from touchstone.validation.sandbox.runner import SandboxRunner

script = "cat /proc/[0-9]*/cmdline /proc/$PPID/cmdline /proc/1/cmdline /proc/%d/cmdline; nproc; exit 3" % os.getpid()
scratch = tempfile.mkdtemp()
os.chmod(scratch, int(sys.argv[1], 8))
failure = probe_backend(Landlock(), Path(scratch))
if failure is None:
    command = Command(["/bin/sh", "-c", script], Tree(Path("/"), ()), environment={"PATH": "/usr/bin:/bin"})
    ended = SandboxRunner(Landlock(), Path(scratch)).run(command, Limits())
    print(json.dumps([ended.status, ended.exit_code, ended.stdout.decode(), ended.note, scratch]))
else:
    print(json.dumps(["skip", None, "", failure, scratch]))
os.rmdir(scratch)
"""


@of_landlock
def test_landlock_shows_an_ordinary_user_no_command_lines_of_others() -> None:
    status, code, shown, note, _ = run_as_ordinary_user(SHOW, "700")
    if status == "skip":
        pytest.skip(f"landlock: {note}")
    assert (status, code, note) == ("exited", 3, "")
    assert shown.strip().isdigit(), "only the number of processors"


@of_landlock
@pytest.mark.skipif(os.getuid() != 0, reason="another user is not root")
def test_landlock_runs_commands_of_root_or_names_what_is_closed() -> None:
    status, code, shown, note, _ = run_in_readable_python(SHOW, "755")
    if status == "skip":
        pytest.skip(f"landlock: {note}")
    assert (status, code, note) == ("exited", 3, "") and shown.strip().isdigit()
    status, _, _, note, scratch = run_in_readable_python(SHOW, "700")
    assert status == "sandbox_error" and note.startswith(f"{scratch}: other users cannot enter it, so root cannot run")
