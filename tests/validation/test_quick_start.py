"""The quick start of docs/validation.md, as a user types it: a tree, two CSVs, one command, the output."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT

PAGE = (PROJECT / "docs" / "validation.md").read_text()


@pytest.mark.services
def test_the_page_is_true(tmp_path: Path) -> None:
    (typed,), (shown,) = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL) for kind in ("sh", "text"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", typed], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for line in shown.splitlines():
        assert line in done.stdout
