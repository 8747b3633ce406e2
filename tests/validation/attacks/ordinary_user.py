"""Run code as an ordinary user: a child process that gives up root, with a Python that every user can read."""

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from touchstone.validation.sandbox.backends import readable_by_others

ROOT = Path(__file__).parents[3]
# An unused user, outside the range of the sandboxes' own.
USER = 1_999_999


@functools.cache
def readable_python() -> str | None:
    """This Python, or the system's if root must give up being root and this one is in a folder of root's."""
    found = [
        sys.executable,
        *(shutil.which(f"python3.{minor}", path="/usr/bin:/usr/local/bin") for minor in (11, 12, 13)),
    ]
    usable = (path for path in found if path and (os.getuid() != 0 or readable_by_others(Path(path))))
    return next(usable, None)


def environment(folder: Path, packages: str = "*") -> str:
    """A virtual environment of a Python that every user can read, with these packages of this one."""
    python = readable_python()
    if python is None:
        pytest.skip("other users can read no Python 3.11 or later here")
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    (target,) = folder.glob("lib/python*/site-packages")
    found = [path for name in packages.split() for path in Path(sysconfig.get_path("purelib")).glob(name)]
    # A few are copied; all of them are hard links, unless that is another file system. To link a file changes its
    # times, so the next process that asks for the hash of these packages must read it.
    linked = packages == "*" and subprocess.run(["cp", "-al", *found, target], capture_output=True).returncode == 0
    if not linked:
        subprocess.run(["cp", "-a", *found, target], check=True)
    return str(folder / "bin" / "python")


def run_as_ordinary_user(script: str, *arguments: str, python: str | None = None) -> Any:
    """What a script prints as JSON on its last line. Skips the test where no user but root could run it."""
    user = {"user": USER, "group": USER, "extra_groups": []} if os.getuid() == 0 else {}
    return run_in_readable_python(script, *arguments, python=python, **user)


def run_in_readable_python(script: str, *arguments: str, python: str | None = None, **user: Any) -> Any:
    """The same as the user of this process, or as the one given."""
    python = python or readable_python()
    if python is None or not readable_by_others(ROOT / "touchstone"):
        pytest.skip("other users can read no Python 3.11 or later here, or not this folder")
    ended = subprocess.run(
        [python, "-B", "-c", script, *arguments],
        capture_output=True,
        cwd="/",
        env={"PYTHONPATH": str(ROOT), "PATH": os.defpath, "LANG": "C.UTF-8"},
        **user,
    )
    assert ended.returncode == 0, ended.stderr.decode("utf-8", "replace")[-2000:]
    return json.loads(ended.stdout.splitlines()[-1])
