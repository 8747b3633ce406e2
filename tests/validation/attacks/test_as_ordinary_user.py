"""Every attack once more as an ordinary user, in both sandboxes, by a child process that gives up root."""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from tests.validation.attacks.ordinary_user import ROOT, USER, environment, readable_python

# Needs what only root has, or would run itself.
_LEFT_OUT = ("test_as_ordinary_user.py", "test_rust.py")


@pytest.mark.nightly
def test_the_attacks_as_an_ordinary_user() -> None:
    python = readable_python()
    if os.getuid() != 0 or python is None:
        pytest.skip("this is an ordinary user, or other users can read no Python here")
    # Not in pytest's folder, which is closed to others.
    with tempfile.TemporaryDirectory(prefix="attacks-ordinary-user-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        home = folder / "home"
        home.mkdir()
        os.chown(home, USER, USER)
        made_python = environment(folder / "venv")
        if not (folder / "venv" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}").is_dir():
            pytest.skip(f"{python} has another version than this Python, so it cannot use its packages")
        os.link(Path(sysconfig.get_path("scripts")) / "ruff", folder / "venv" / "bin" / "ruff")
        ended = run_attacks(made_python, home)
    assert ended.returncode == 0, ended.stdout.decode("utf-8", "replace")[-8000:]


def run_attacks(python: str, home: Path) -> subprocess.CompletedProcess[bytes]:
    arguments = ["-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not services", "tests/validation/attacks"]
    return subprocess.run(
        [python, "-m", "pytest", *arguments]
        + [f"--ignore=tests/validation/attacks/{name}" for name in _LEFT_OUT],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": os.defpath, "LANG": "C.UTF-8", "HOME": str(home), "TMPDIR": str(home),
             "PYTHONDONTWRITEBYTECODE": "1"},
        user=USER, group=USER, extra_groups=[], capture_output=True, check=False,
    )  # fmt: skip
