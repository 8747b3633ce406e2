"""Lint warnings of Python files, counted by the real ruff in a real sandbox."""

import subprocess
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from tests.validation.attacks.arena import job_of
from tests.validation.sandbox.conftest import need
from tests.validation.validators.support import Playback
from touchstone.config.validation import PythonProgram
from touchstone.validation.sandbox.command import CommandResult, Limits, Sandbox
from touchstone.validation.sandbox.runner import SandboxRunner, choose_sandbox
from touchstone.validation.validators import lint
from touchstone.validation.validators.lint import MOST_WARNINGS, RULES, count_warnings, identity
from touchstone.validation.validators.python import PythonValidator


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    need("bubblewrap")
    return choose_sandbox(tmp_path_factory.mktemp("sandbox"), "bubblewrap")


CLEAN = b"def f(x):\n    return x\n"
UNUSED = b"import os\nimport sys\n"
COUNTS: list[tuple[bytes, int]] = [
    (CLEAN, 0),
    (b"", 0),
    (UNUSED, 2),
    (UNUSED + b"import re\n", 3),
    (b"def f(x=[]):\n    return x\n", 1),
    # A fix silences no warnings, and its formatting is none: here two statements are on one line.
    (b"import os  # noqa\n", 1),
    (b"# ruff: noqa\nimport os\n", 1),
    (b"x  =  1 ;y=2\n" + b"z = '" + b"a" * 300 + b"'\n", 1),
    # What cannot be read: broken, a zero byte, no text, and what is not UTF-8.
    (b"import os\ndef f(:\n", MOST_WARNINGS),
    (b"x = 1\x00\n", MOST_WARNINGS),
    (b"\xff\xfe\x00", MOST_WARNINGS),
    ("# é\nimport os\n".encode("latin-1"), MOST_WARNINGS),
    # An encoding does not hide code.
    (b"# coding: utf-7\n+AAo-import os\n", MOST_WARNINGS),
    (b"#!/usr/bin/python\n# -*- coding: utf_7 -*-\n# +AAo-import os\n", MOST_WARNINGS),
    (b"#\r# coding=raw_unicode_escape\r# \\u000aimport os\r", MOST_WARNINGS),
    (b"# coding: punycode\n", MOST_WARNINGS),
    (b"# coding: utf-8\nimport os\n", 1),
    (b"# -*- coding: UTF-8-unix -*-\nimport os\n", 1),
    ("# coding: latin-1\nimport os\nx = 'é'\n".encode("latin-1"), 1),
    (b"import os\n\n# coding: utf-7\n", 1),
]


def test_each_file_has_its_own_count_whatever_else_is_linted(sandbox: Sandbox) -> None:
    counted = count_warnings(sandbox, [text for text, _ in COUNTS])
    assert list(zip([text for text, _ in COUNTS], counted, strict=True)) == COUNTS
    assert count_warnings(sandbox, [UNUSED]) == [2]
    assert count_warnings(sandbox, []) == []


def test_code_that_runs_has_a_count(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another encoding, more warnings than fit into the linter's report, unused imports, and no code."""
    monkeypatch.setattr(lint, "_LIMITS", replace(lint._LIMITS, output_bytes=2**18))
    assert isinstance(sandbox, SandboxRunner)
    runs = "def f():\n    return 1\n"
    codes = ["# coding: utf-7\n" + runs, runs + "import os\n" * 900, runs + UNUSED.decode(), "def f(:\n"]
    validator = PythonValidator(sandbox, Limits(), PythonProgram())
    tests = "from solution import f\n\n\ndef test_f():\n    assert f() == 1\n"
    reports = validator.validate([job_of({"solution.py": code, "test_solution.py": tests}) for code in codes])
    validator.close()
    assert [(report.status, report.lint_warnings) for report in reports] == [
        *(("passed", count) for count in (MOST_WARNINGS, MOST_WARNINGS, 4)),
        ("failed", None),
    ]


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
