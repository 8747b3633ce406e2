"""A full disk and a folder that cannot be written: one line says so, and the last results stay."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.faults.conftest import SHARES, Changed
from tests.faults.harness import run
from tests.faults.hooks import Fault

FULL = "no space left on the disk; free some and try again"


def assert_survives(changed: Changed, fault: Fault) -> None:
    folder = changed.copy()
    done = run(folder, fault)
    changed.assert_whole(folder)
    if done.code != 0:  # What only makes the next run quicker may fail.
        assert done.code == 2 and FULL in done.error, done.stderr
    changed.assert_repaired_by_the_next_run(folder)


@pytest.mark.nightly
@pytest.mark.parametrize("at", ["published/2/tables", "stamps/pass_at_k/"])
def test_full_from_a_moment_on(changed: Changed, at: str) -> None:
    assert_survives(changed, Fault("full disk", path=at))


@pytest.mark.nightly
@pytest.mark.parametrize("share", range(SHARES))
def test_full_from_any_file_operation_on(changed: Changed, share: int) -> None:
    for at in changed.places(share):
        assert_survives(changed, Fault("full disk", at))


def in_namespace(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), cwd=PROJECT, capture_output=True, text=True, check=False)


@pytest.mark.nightly
def test_a_real_file_system_that_gets_full(changed: Changed, tmp_path: Path) -> None:
    """Polars, DuckDB and SQLite write by themselves: what they say is understood too."""
    if in_namespace("unshare", "--user", "--map-root-user", "--mount", "true").returncode:
        pytest.skip("no user namespaces here, so nothing can be mounted")
    runs = shlex.join([sys.executable, "-m", "tests.faults.on_tmpfs", str(changed.folder.root), str(tmp_path)])
    script = f"mount -t tmpfs -o size=16m none {shlex.quote(str(tmp_path))} && exec {runs} 100000 0 40 160 320 480 640"
    done = in_namespace("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    (_, first, *_), *others = json.loads(done.stdout)
    assert first == 0, "with space enough it runs"
    for space, code, last, whole, repaired in others:
        assert whole and repaired, space
        assert code == 0 or (code == 2 and FULL in last[0]), (space, last)
    assert 2 in {code for _, code, *_ in others}


@pytest.mark.nightly
def test_a_folder_that_cannot_be_written(changed: Changed, tmp_path: Path) -> None:
    """Reading goes on, the run that would change something says why it cannot."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed, so nothing can be mounted")
    folder = changed.copy()
    mounted = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", folder.output, folder.output]
    command = [*mounted, sys.executable, "-m", "tests.faults.read_only", folder.config, folder.output]
    done = in_namespace(*command)
    assert done.returncode == 0, done.stderr
    run_again, *reading = json.loads(done.stdout)
    assert run_again[0] == 2 and run_again[2].count("\n") == 1
    assert "the file system is read-only; make it writable or choose another folder" in run_again[2]
    assert [code for code, *_ in reading] == [0] * len(reading), reading
    changed.assert_whole(folder)
    changed.assert_repaired_by_the_next_run(folder)
