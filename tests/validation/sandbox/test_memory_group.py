"""Control groups: where they can be made, that the kernel enforces their limit, and that none is left behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from touchstone.validation.sandbox import memory_group as module
from touchstone.validation.sandbox.memory_group import memory_group, memory_group_folder

needs_groups = pytest.mark.skipif(
    memory_group_folder() is None, reason="no control group with a memory limit can be made here"
)
V2 = "30 24 0:26 / {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "33 30 0:29 {root} {mount} rw,nosuid shared:5 - cgroup cgroup rw,memory"


def group(folder: Path, controllers: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.subtree_control").write_text(controllers + "\n")
    return folder


def candidates(groups: str, mounts: str) -> list[tuple[Path, str]]:
    return [(found.folder, found.limit_file) for found in module._candidates(groups, mounts)]


def test_version_2_uses_the_nearest_group_above_that_passes_memory_on(tmp_path: Path) -> None:
    group(tmp_path, "cpu memory")
    group(tmp_path / "user.slice", "memory pids")
    group(tmp_path / "user.slice/app.scope")
    found = candidates("0::/user.slice/app.scope", V2.format(mount=tmp_path))
    assert found == [(tmp_path / "user.slice", "memory.max"), (tmp_path, "memory.max")]


def test_version_2_without_the_memory_controller_is_left_for_version_1(tmp_path: Path) -> None:
    group(tmp_path / "unified", "pids")
    mounts = "\n".join([V2.format(mount=tmp_path / "unified"), V1.format(root="/", mount=tmp_path / "memory")])
    assert candidates("4:memory:/job\n0::/", mounts) == [(tmp_path / "memory/job", "memory.limit_in_bytes")]


@pytest.mark.parametrize(("root", "path", "folder"), [("/docker/1", "/docker/1/job", "job"), ("/docker/1", "/", "")])
def test_a_mount_may_show_a_part_of_the_groups(tmp_path: Path, root: str, path: str, folder: str) -> None:
    found = candidates(f"4:memory:{path}", V1.format(root=root, mount=tmp_path))
    assert found == [(tmp_path / folder, "memory.limit_in_bytes")]


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
    folder = memory_group_folder()
    assert folder is not None
    abandoned = folder / f"touchstone-{ended.pid}-7"
    abandoned.mkdir()
    module._remove_abandoned(folder)
    assert not abandoned.exists()
