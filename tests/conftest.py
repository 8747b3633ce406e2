"""What the tests share: small input folders made of real files, and the command line as a user calls it."""

import functools
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import settings

settings.register_profile("touchstone", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("touchstone")

PROJECT = Path(__file__).parent.parent


@dataclass
class Folder:
    """An evaluation on disk: problems, fixes and a configuration."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "evaluation_config.json"

    @property
    def output(self) -> Path:
        return self.root / "out"

    def problems(self, text: str | bytes) -> Path:
        return _write(self.root / "fixes" / "problems.csv", text)

    def fixes(self, model: str, text: str | bytes) -> Path:
        return _write(self.root / "fixes" / f"{model}_fixes.csv", text)

    def configure(self, **keys: object) -> Path:
        defaults = {"fixes_dir": "fixes", "output_dir": "out", "k_values": [1, 2]}
        return _write(self.config, json.dumps(defaults | keys))


def _write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def small_folder(root: Path) -> Folder:
    """Two problems, one model with two attempts at each: a passes once, b never."""
    made = Folder(root)
    made.problems("oid,filename\na,a.tf\nb,b.tf\n")
    made.fixes("m", "oid,iteration_id,plausible_fix\na,1,true\na,2,false\nb,1,false\nb,2,false\n")
    made.configure()
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A small evaluation of the test's own."""
    return small_folder(tmp_path)


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def touchstone(tmp_path: Path) -> Command:
    """The `touchstone` command in a process of its own, with a DAGSTER_HOME of its own."""
    return functools.partial(run_command, tmp_path)


# Commands that keep nothing behind: called in this process, they start a second sooner.
LIGHT = ("pass-at-k", "compare", "export", "snapshots", "synth")


def run_command(home: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Call `touchstone` as a user does; its Dagster instance lies in the given folder."""
    if arguments and arguments[0] in LIGHT:
        return call_here(*arguments)
    command = [Path(sys.executable).with_name("touchstone"), *(str(argument) for argument in arguments)]
    environment = command_environment(home)
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900, check=False)


def call_here(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command line's own entry, with what it prints and its exit code."""
    from touchstone.cli.main import main

    line = ["touchstone", *(str(argument) for argument in arguments)]
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", line):
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    return subprocess.CompletedProcess(line, code, out.getvalue(), err.getvalue())


def command_environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a command under test: its Dagster instance lies in the test's own folder."""
    home = tmp_path / "dagster_home"
    home.mkdir(exist_ok=True)
    settings_file = home / "dagster.yaml"
    if not settings_file.exists():
        settings_file.write_text((PROJECT / "dagster.yaml").read_text())
    return {**os.environ, "DAGSTER_HOME": str(home), "COLUMNS": "160"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole runs first: the longest of them would otherwise be left to one core at the end."""
    long = ("tests/pipelines/", "tests/compare/test_gate.py", "tests/cli/test_main.py", "tests/compare/test_compare.py")
    items.sort(key=lambda item: not item.nodeid.startswith(long))
