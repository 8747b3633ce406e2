"""Control groups: where they can be made, that the kernel enforces their limit, and that none is left behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from touchstone.validation.sandbox import processes as module
from touchstone.validation.sandbox.processes import memory_group

needs_groups = pytest.mark.skipif(
    module._usable_parent() is None, reason="no control group with a memory limit can be made here"
)
V2 = "30 24 0:26 / {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "33 30 0:29 {root} {mount} rw,nosuid shared:5 - cgroup cgroup rw,memory"


def group(folder: Path, controllers: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.subtree_control").write_text(controllers + "\n")
    return folder


def test_version_2_uses_the_nearest_group_above_that_passes_memory_on(tmp_path: Path) -> None:
    group(tmp_path, "cpu memory")
    group(tmp_path / "user.slice", "memory pids")
    group(tmp_path / "user.slice/app.scope")
    found = module._candidates("0::/user.slice/app.scope", V2.format(mount=tmp_path))
    assert list(found) == [tmp_path / "user.slice", tmp_path]


@pytest.mark.parametrize(
    ("root", "path", "folder"), [("/", "/job", "job"), ("/docker/1", "/docker/1/job", "job"), ("/docker/1", "/", "")]
)
def test_version_1_is_used_where_version_2_has_no_memory_controller(
    tmp_path: Path, root: str, path: str, folder: str
) -> None:
    """A mount may show a part of the groups."""
    group(tmp_path / "unified", "pids")
    mounts = "\n".join([V2.format(mount=tmp_path / "unified"), V1.format(root=root, mount=tmp_path / "memory")])
    assert list(module._candidates(f"4:memory:{path}\n0::/", mounts)) == [tmp_path / "memory" / folder]


def test_without_groups_a_command_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_usable_parent", lambda: None)
    with memory_group(1) as before:
        assert before == []


@needs_groups
def test_the_kernel_ends_what_takes_more_memory() -> None:
    use = [sys.executable, "-c", "import sys; print(len(bytearray(int(sys.argv[1]))))"]
    with memory_group(32 * 2**20) as before:
        inside = before[-1]
        assert subprocess.run([*before, *use, str(16 * 2**20)], check=True, capture_output=True).stdout
        assert subprocess.run([*before, *use, str(2**30)], capture_output=True).returncode == -9
    assert not Path(inside).parent.exists()


@needs_groups
def test_groups_of_killed_runs_are_removed() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    parent = module._usable_parent()
    assert parent is not None
    abandoned = parent / f"touchstone-{ended.pid}-7"
    abandoned.mkdir()
    module._remove_abandoned_groups(parent)
    assert not abandoned.exists()
