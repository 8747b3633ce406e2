"""Lint warnings of Python files, counted by the real ruff in a real sandbox."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.validation.sandbox.conftest import need
from tests.validation.validators.support import Playback
from touchstone.validation.sandbox.command import CommandResult, Sandbox
from touchstone.validation.sandbox.probe import choose_sandbox
from touchstone.validation.validators.lint import RULES, count_warnings, identity


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    need("bubblewrap")
    return choose_sandbox(tmp_path_factory.mktemp("sandbox"), "bubblewrap")


CLEAN = b"def f(x):\n    return x\n"
UNUSED = b"import os\nimport sys\n"
MUTABLE_DEFAULT = b"def f(x=[]):\n    return x\n"
BROKEN = b"import os\ndef f(:\n"
LONG_AND_UGLY = b"x  =  1 ;y=2\n" + b"z = '" + b"a" * 300 + b"'\n"


def test_each_file_has_its_own_count(sandbox: Sandbox) -> None:
    texts = [CLEAN, UNUSED, MUTABLE_DEFAULT, BROKEN, UNUSED + b"import re\n", b""]
    assert count_warnings(sandbox, texts) == [0, 2, 1, None, 3, 0]


def test_counts_do_not_depend_on_what_else_is_linted(sandbox: Sandbox) -> None:
    texts = [UNUSED] * 12 + [BROKEN] + [CLEAN]
    assert count_warnings(sandbox, texts) == [2] * 12 + [None, 0]
    assert count_warnings(sandbox, [UNUSED]) == [2]
    assert count_warnings(sandbox, []) == []


def test_a_fix_cannot_silence_its_own_warnings(sandbox: Sandbox) -> None:
    assert count_warnings(sandbox, [b"import os  # noqa\n", b"# ruff: noqa\nimport os\n"]) == [1, 1]


def test_formatting_is_no_matter_of_lint(sandbox: Sandbox) -> None:
    (count,) = count_warnings(sandbox, [LONG_AND_UGLY])
    assert count == 1, "two statements on one line, and nothing of the spaces and the length"


@pytest.mark.parametrize(
    "text",
    [b"x = 1\x00\n", b"\xff\xfe\x00", "# é\nimport os\n".encode("latin-1")],
    ids=["a zero byte", "no text", "not UTF-8"],
)
def test_what_cannot_be_read_has_no_count_and_does_not_hide_others(sandbox: Sandbox, text: bytes) -> None:
    assert count_warnings(sandbox, [CLEAN, text, UNUSED]) == [0, None, 2]


@pytest.mark.parametrize(
    "ended",
    [
        CommandResult("timeout", None),
        CommandResult("memory_limit", None),
        CommandResult("output_limit", None),
        CommandResult("sandbox_error", None),
        CommandResult("exited", 2, b"", b"error: something"),
        CommandResult("exited", -9),
        CommandResult("exited", 1, b'[{"filename": "0.py", "co'),
        CommandResult("exited", 0, b""),
    ],
    ids=lambda ended: f"{ended.status} {ended.exit_code}",
)
def test_where_it_cannot_be_counted_there_is_no_count(ended: CommandResult) -> None:
    assert count_warnings(Playback(ended), [CLEAN, UNUSED]) == [None, None]


def test_ruff_sees_the_files_only_and_no_settings() -> None:
    playback = Playback(CommandResult("exited", 0, b"[]"))
    assert count_warnings(playback, [CLEAN, UNUSED]) == [0, 0]
    (command,) = playback.asked
    assert command.tree.files == ("0.py", "1.py")
    assert command.tree.changed == {"0.py": CLEAN, "1.py": UNUSED}
    assert {"--isolated", "--no-cache", f"--select={RULES}"} <= set(command.arguments)


def test_the_identity_is_the_version_that_is_called() -> None:
    program = Path(sysconfig.get_path("scripts")) / "ruff"
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split()[1] == identity()["ruff"]
    assert identity()["rules"] == RULES
