"""Lint warnings of Python files, counted by the real ruff in a real sandbox."""

import subprocess
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from tests.validation.attacks.arena import job_of
from tests.validation.sandbox.conftest import need
from tests.validation.validators.support import Playback
from touchstone.validation.sandbox.command import CommandResult, Limits, Sandbox
from touchstone.validation.sandbox.probe import choose_sandbox
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.validators import lint
from touchstone.validation.validators.lint import MOST_WARNINGS, RULES, count_warnings, identity
from touchstone.validation.validators.python import PythonSettings, PythonValidator


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
    assert count_warnings(sandbox, texts) == [0, 2, 1, MOST_WARNINGS, 3, 0]


def test_counts_do_not_depend_on_what_else_is_linted(sandbox: Sandbox) -> None:
    texts = [UNUSED] * 12 + [BROKEN] + [CLEAN]
    assert count_warnings(sandbox, texts) == [2] * 12 + [MOST_WARNINGS, 0]
    assert count_warnings(sandbox, [UNUSED]) == [2]
    assert count_warnings(sandbox, []) == []


def test_a_fix_silences_no_warnings_and_its_formatting_is_none(sandbox: Sandbox) -> None:
    silenced = [b"import os  # noqa\n", b"# ruff: noqa\nimport os\n"]
    *silenced_counts, count = count_warnings(sandbox, [*silenced, LONG_AND_UGLY])
    assert silenced_counts == [1, 1]
    assert count == 1, "two statements on one line, and nothing of the spaces and the length"


def test_what_cannot_be_read_has_the_highest_count_and_does_not_hide_others(sandbox: Sandbox) -> None:
    """A zero byte, no text, and what is not UTF-8."""
    unreadable = [b"x = 1\x00\n", b"\xff\xfe\x00", "# é\nimport os\n".encode("latin-1")]
    assert count_warnings(sandbox, [CLEAN, *unreadable, UNUSED]) == [0, *[MOST_WARNINGS] * 3, 2]


@pytest.fixture
def short_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of 900 warnings, fewer than are counted, does not fit into what the linter may print."""
    monkeypatch.setattr(lint, "_LIMITS", replace(lint._LIMITS, output_bytes=2**18))


@pytest.mark.usefixtures("short_report")
def test_more_warnings_than_fit_into_the_report(sandbox: Sandbox) -> None:
    assert count_warnings(sandbox, [CLEAN, b"import os\n" * 900, UNUSED]) == [0, MOST_WARNINGS, 2]


@pytest.mark.nightly
def test_more_warnings_than_fit_into_the_longest_report(sandbox: Sandbox) -> None:
    assert count_warnings(sandbox, [CLEAN, b"import os\n" * 60_000, UNUSED]) == [0, MOST_WARNINGS, 2]


ENCODINGS = [
    ("# coding: utf-7\n+AAo-import os\n", MOST_WARNINGS),
    ("#!/usr/bin/python\n# -*- coding: utf_7 -*-\n# +AAo-import os\n", MOST_WARNINGS),
    ("#\r# coding=raw_unicode_escape\r# \\u000aimport os\r", MOST_WARNINGS),
    ("# coding: punycode\n", MOST_WARNINGS),
    ("# coding: utf-8\nimport os\n", 1),
    ("# -*- coding: UTF-8-unix -*-\nimport os\n", 1),
    ("# coding: latin-1\nimport os\nx = 'é'\n", 1),
    ("import os\n\n# coding: utf-7\n", 1),
]


def test_an_encoding_does_not_hide_code(sandbox: Sandbox) -> None:
    counted = count_warnings(sandbox, [text.encode("latin-1") for text, _ in ENCODINGS])
    assert list(zip([text for text, _ in ENCODINGS], counted, strict=True)) == ENCODINGS


@pytest.mark.usefixtures("short_report")
def test_code_that_runs_has_a_count(sandbox: Sandbox) -> None:
    """Another encoding, more warnings than fit, clean, and no code."""
    assert isinstance(sandbox, SandboxRunner)
    runs = "def f():\n    return 1\n"
    codes = ["# coding: utf-7\n" + runs, runs + "import os\n" * 900, runs, "def f(:\n"]
    validator = PythonValidator(sandbox, Limits(), PythonSettings())
    tests = "from solution import f\n\n\ndef test_f():\n    assert f() == 1\n"
    reports = validator.validate([job_of({"solution.py": code, "test_solution.py": tests}) for code in codes])
    validator.close()
    assert [(report.status, report.lint_warnings) for report in reports] == [
        *(("passed", count) for count in (MOST_WARNINGS, MOST_WARNINGS, 0)),
        ("failed", None),
    ]


def test_a_linter_that_does_not_work_is_nobodys_fault() -> None:
    assert count_warnings(Playback(CommandResult("exited", 2, b"", b"error: something")), [UNUSED]) == [None]


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
