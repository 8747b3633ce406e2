"""What is seen while `touchstone run` is at work: the terminal's screen through a pty, and the lines of a pipe."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.conftest import Command, Folder, command_environment

STAGES = ["ingest", "validation", "metrics", "scores", "reliability", "economics", "comparison", "audit", "publish"]


@pytest.fixture
def repairs(tmp_path: Path) -> Folder:
    """Two fixes each of two models at one problem; the second model repeats one of the first one's."""
    folder = Folder(tmp_path)
    clone = tmp_path / "clones" / "calc"
    clone.mkdir(parents=True)
    (clone / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (clone / "test_calc.py").write_text("from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n")
    folder.problems("oid,filename,working_directory\np,calc.py,calc\n")
    for model, first in (("m", 0), ("n", 1)):
        fixes = (f'p,{place},"def add(a, b):\n    return a + b  # {place}\n"\n' for place in range(first, first + 2))
        folder.fixes(model, "oid,iteration_id,fixed_code\n" + "".join(fixes))
    folder.configure(clones_dir="clones", k_values=[1])
    return folder


# `touchstone` with Dagster's history in memory, which takes half the time of one on disk.
WITHOUT_HISTORY = """
from unittest.mock import patch
import dagster as dg
from touchstone.cli.main import main
with patch.object(dg.DagsterInstance, "get", dg.DagsterInstance.ephemeral):
    main()
"""


class Terminal:
    """A `touchstone` command on a terminal, and all that it has drawn there so far."""

    def __init__(self, home: Path, columns: int, *arguments: object) -> None:
        self._screen, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = command_environment(home) | {"TERM": "xterm-256color", "COLUMNS": str(columns)}
        command = [sys.executable, "-c", WITHOUT_HISTORY, *(str(argument) for argument in arguments)]
        self.process = subprocess.Popen(command, env=environment, stdin=inside, stdout=inside, stderr=inside)
        os.close(inside)
        self._drawn = b""

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._drawn.decode(errors="replace"))

    def read_until(self, pattern: str) -> bool:
        """Whether the pattern is drawn before the command ends."""
        while not re.search(pattern, self.text):
            try:
                self._drawn += os.read(self._screen, 65536)
            except OSError:  # nobody has the other end open any more
                return False
        return True

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._screen)


@pytest.mark.nightly
def test_a_terminal_shows_stage_model_count_rate_time_left_and_cache_hits_during_the_run(
    repairs: Folder, tmp_path: Path
) -> None:
    with contextlib.closing(Terminal(tmp_path, 100, "run", "--config", repairs.config)) as terminal:
        assert terminal.read_until(r"\S"), "something is drawn"
        assert "reading the configuration" in terminal.text, "before anything slow"
        assert terminal.read_until(r"validating m +\S* +\d+/2"), terminal.text
        assert terminal.process.poll() is None and "pass@1" not in terminal.text, "while the run is at work"
        assert not terminal.read_until("this is never drawn")
        assert terminal.process.wait() == 0
    during = terminal.text.partition("pass@k: mean over problems")[0]
    assert all(slow in during for slow in ("looking for fixes files", "loading Dagster", "starting the run"))
    assert "validation: outcomes of m (1 of 2)" in during
    assert [stage for stage in STAGES if not re.search(rf"{stage}\W.* \d+/{len(STAGES)} ", during)] == []
    assert re.search(r"validating m +\S+ +2/2 +[\d.,]+/s +0:00:00 left", during)
    assert re.search(r"validating n +\S+ +1/2 +1 already known", during)
    assert re.search(r"validating n +\S+ +2/2 +[\d.,]+/s +0:00:00 left +1 already known", during)


@pytest.mark.nightly
def test_a_pipe_gets_one_line_per_stage_on_stderr_and_only_the_result_on_stdout(
    repairs: Folder, touchstone: Command
) -> None:
    done = touchstone("run", "--config", repairs.config, dagster=True)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert [line.partition(":")[0] for line in lines if ": step " in line] == STAGES
    assert re.fullmatch(r"ingest: step 1 of \d+", lines[0])
    # A busy machine may make a fix time out, which is then tried again.
    assert [line for line in lines if ": step " not in line and "validating again" not in line] == [
        "validation: validating the problems, 1 of 1 to do",
        "validation: validating m, 2 of 2 to do",
        "validation: validating n, 1 of 2 to do, 1 already known",
        "audit: auditing m, 2 of 2 to do",
        "audit: auditing n, 2 of 2 to do",
    ]
    assert "step" not in done.stdout and "validating" not in done.stdout and "\x1b" not in done.stdout + done.stderr
