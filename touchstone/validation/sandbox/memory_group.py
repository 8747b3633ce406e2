"""A memory limit that the kernel enforces: a control group per sandbox, where control groups are writable.

Looking at a sandbox ten times a second finds a job that uses too much memory, but not before it has taken gigabytes.
A control group stops it at once and also counts what the kernel holds for it, such as socket buffers. Its limit is
above the one that is looked for, so it ends only what outran the look. Version 2 is used where it has the memory
controller, otherwise version 1. Where neither is writable, the look is all there is.
"""

import contextlib
import functools
import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "touchstone-"
# Joins the group before anything else happens, then becomes the command.
_JOIN = ("/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"')
# For the processes that are there before a job, and for what the kernel needs to run it.
_SPARE_BYTES = 128 * 2**20
_REMOVAL_SECONDS = 5.0
_numbers = itertools.count()


@dataclass(frozen=True)
class _Parent:
    """A group in which groups with a memory limit can be made."""

    folder: Path
    limit_file: str
    swap_file: str


@contextlib.contextmanager
def memory_group(limit_bytes: int) -> Iterator[list[str]]:
    """A new group that may use so much memory. Yields what to put before a command line, [] where there are no groups.

    The group must be left after its processes have ended.
    """
    parent = _usable_parent()
    try:
        group = _make(parent, limit_bytes + _SPARE_BYTES) if parent is not None else None
    except OSError:  # no room for more groups
        group = None
    try:
        yield [*_JOIN, str(group / "cgroup.procs")] if group is not None else []
    finally:
        if group is not None:
            _remove(group)


@functools.cache
def _usable_parent() -> _Parent | None:
    """The first candidate in which a group can be made and joined, found by trying."""
    for parent in _candidates(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()):
        try:
            _remove_abandoned(parent.folder)
            group = _make(parent, _SPARE_BYTES)
            try:
                subprocess.run([*_JOIN, str(group / "cgroup.procs"), "true"], check=True, capture_output=True)
            finally:
                _remove(group)
        except (OSError, subprocess.CalledProcessError):
            continue
        return parent
    return None


def _candidates(groups: str, mounts: str) -> Iterator[_Parent]:
    """The groups of this process and above it that can have groups with a memory limit inside.

    In version 2, a group that has processes of its own cannot, so it is one above this process's group.
    """
    paths = {names: path for _, names, path in (line.split(":", 2) for line in groups.splitlines())}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, mounted = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == "cgroup2" and "" in paths:
            for folder in _upward(Path(mounted), root, paths[""]):
                with contextlib.suppress(OSError):
                    if "memory" in (folder / "cgroup.subtree_control").read_text().split():
                        yield _Parent(folder, "memory.max", "memory.swap.max")
        elif kind == "cgroup" and "memory" in options.split(",") and "memory" in paths:
            folder = next(_upward(Path(mounted), root, paths["memory"]))
            yield _Parent(folder, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")


def _upward(mounted: Path, root: str, path: str) -> Iterator[Path]:
    """The folder of a group and those above it, below the mount point. A mount may show only a part of all groups."""
    inside = os.path.relpath(path, root)
    folder = mounted if inside.startswith("..") else mounted / inside
    yield folder
    yield from (above for above in folder.parents if above.is_relative_to(mounted))


def _make(parent: _Parent, limit_bytes: int) -> Path:
    group = parent.folder / f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
    group.mkdir()
    try:
        (group / parent.limit_file).write_text(str(limit_bytes))
        swap = group / parent.swap_file
        if swap.exists():
            # Version 1 counts memory and swap together.
            swap.write_text("0" if parent.limit_file == "memory.max" else str(limit_bytes))
    except OSError:
        group.rmdir()
        raise
    return group


def _remove(group: Path) -> None:
    """Remove a group. The kernel may need a moment after the last process has ended."""
    give_up = time.monotonic() + _REMOVAL_SECONDS
    while True:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > give_up:
                return  # removed by a later run
            time.sleep(0.001)
        else:
            return


def _remove_abandoned(folder: Path) -> None:
    """Remove the groups that killed runs have left behind."""
    for group in folder.glob(f"{_PREFIX}*-*"):
        owner = group.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                group.rmdir()
