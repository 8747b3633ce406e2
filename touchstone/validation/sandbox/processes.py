"""Measure, limit and end the processes of a sandbox from outside.

CPU time decides, so that a verdict does not depend on the machine's load. A job that waits instead of computing is
ended by the wall-clock limit. Its processes are sampled to tell whether it slept or lacked CPU: a process that is
runnable but gets no CPU time is starved, and that time does not count.
"""

import errno
import functools
import itertools
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from touchstone.validation.sandbox.command import BOX, Limits

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_BLOCK = 512
# Process states: running or runnable, and waiting for a disk.
_READY = (b"R", b"D")
_USUAL_SOCKET_BUFFER = 212_992
# An inode and its directory entry in the kernel's memory.
_INODE_BYTES = 1536
# Long, because a supervisor that is killed on a busy machine before it has killed its children leaves them behind.
_PATIENCE_SECONDS = 30.0


def end_sandbox(process: subprocess.Popen[bytes], *, pid_namespace: bool) -> None:
    """End a sandbox and wait until all its processes are gone.

    With a PID namespace, killing its first process kills all, and the kernel reaps that one last. Without one, SIGTERM
    makes the supervisor inside kill its children and exit.
    """
    if process.poll() is None:
        if pid_namespace:
            for first in children(process.pid):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(first, signal.SIGKILL)
        else:
            process.terminate()
    try:
        process.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Usage:
    """CPU time of a process and its descendants, exited ones included, and whether any of them is runnable.

    A process whose parent ignores SIGCHLD is counted only while it lives.
    """

    cpu_seconds: float
    ready: bool


def usage(process: int) -> Usage:
    """The CPU usage of a process and its descendants."""
    ticks, ready = 0, False
    for each in descendants(process):
        with suppress(OSError, IndexError, ValueError):
            fields = _stat(str(each))
            ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime and cstime
            ready = (
                ready
                or fields[0] in _READY
                or any(_stat(f"{each}/task/{task.name}")[0] in _READY for task in _tasks(each))
            )
    return Usage(ticks / _TICKS, ready)


def _stat(place: str) -> list[bytes]:
    """The fields of /proc/.../stat from the state on; the name before it may contain anything."""
    # Plain os calls, because this runs for every job.
    file = os.open(f"/proc/{place}/stat", os.O_RDONLY)
    try:
        return os.read(file, 4096).rpartition(b")")[2].split()
    finally:
        os.close(file)


def exceeds_memory(process: int, limit_bytes: int) -> bool:
    """Whether a process and its descendants use more memory, with what the kernel holds and charges to none of them.

    That is the buffers of their sockets, counted as full, what waits to be read in the sandbox's own network, and the
    files in bubblewrap's private file system, each without its content, which the size of the file system limits.
    Memory that forked processes share counts once, or a pool of one process per processor would pass on a small machine
    only.
    """
    processes = list(descendants(process))
    sockets = {found.st_ino for found in _open_files(processes) if stat.S_ISSOCK(found.st_mode)}
    kernel = len(sockets) * _socket_buffer_bytes() + _private_files(process) * _INODE_BYTES + _queued_bytes(process)
    if kernel + sum(map(_resident_bytes, processes)) <= limit_bytes:
        return False
    # Takes much longer, so it is asked only here.
    return kernel + sum(map(_proportional_bytes, processes)) > limit_bytes


def _resident_bytes(process: int) -> int:
    with suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    return 0


def _proportional_bytes(process: int) -> int:
    """Memory with every shared page divided by the number of processes that have it, where visible."""
    with suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{process}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0]) * 1024
    return _resident_bytes(process)


def _open_files(processes: Iterable[int]) -> Iterator[os.stat_result]:
    """The files that the descriptors of processes refer to, where visible."""
    for each in processes:
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{each}/fd"):
                with suppress(OSError):
                    yield entry.stat()


@functools.cache
def _socket_buffer_bytes() -> int:
    try:
        return int(Path("/proc/sys/net/core/wmem_default").read_text())
    except (OSError, ValueError):
        return _USUAL_SOCKET_BUFFER


def _private_files(process: int) -> int:
    """How many files bubblewrap's private file system has, seen through its first process inside."""
    for first in children(process):
        with suppress(OSError):
            found = os.statvfs(f"/proc/{first}/root{BOX}")
            return found.f_files - found.f_ffree
    return 0


def has_connections(process: int) -> bool:
    """Whether a sandbox's own network holds sockets, or the ports of some that were closed a moment ago."""
    network = _own_network(process)
    return network is not None and _is_used(network)


def _queued_bytes(process: int) -> int:
    """The bytes that wait in the TCP and UDP sockets of a sandbox's own network to be sent or read."""
    network, total = _own_network(process), 0
    # To list the sockets takes long where the machine has many; to ask whether there are any does not.
    if network is not None and _is_used(network):
        for table in ("tcp", "tcp6", "udp", "udp6"):
            with suppress(OSError):
                queues = (line.split()[4].split(":") for line in (network / table).read_text().splitlines()[1:])
                total += sum(int(sent, 16) + int(received, 16) for sent, received in queues)
    return total


def _own_network(process: int) -> Path | None:
    """The tables of a sandbox's own network, seen through its first process inside; None if it has none."""
    for first in children(process):
        with suppress(OSError):
            if not Path(f"/proc/{first}/ns/net").samefile("/proc/self/ns/net"):
                return Path(f"/proc/{first}/net")
    return None


def _is_used(network: Path) -> bool:
    with suppress(OSError):
        counts = f"{(network / 'sockstat').read_text()} {(network / 'sockstat6').read_text()}".split()
        return any(name in ("inuse", "tw") and count != "0" for name, count in itertools.pairwise(counts))
    return False


def folder_bytes(folder: Path) -> int:
    """The disk usage of a folder, as far as it can be read while other processes change it.

    Every entry counts for at least what it takes in the kernel's memory. A path too long to open counts as more than
    any limit.
    """
    total, waiting = 0, [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        total += max(entry.stat(follow_symlinks=False).st_blocks * _BLOCK, _INODE_BYTES)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return sys.maxsize
    return total


def deleted_file_bytes(process: int, folder: Path) -> int:
    """Disk usage of deleted files that a process or a descendant holds open on a folder's disk, where visible."""
    disk = folder.stat().st_dev
    found = [file for file in _open_files(descendants(process)) if stat.S_ISREG(file.st_mode) and file.st_nlink == 0]
    return sum({file.st_ino: file.st_blocks * _BLOCK for file in found if file.st_dev == disk}.values())


def descendants(process: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield process
    for child in children(process):
        yield from descendants(child)


def children(process: int) -> list[int]:
    """The children of a process."""
    found: list[int] = []
    for task in _tasks(process):
        # Every running sandbox is asked many times a second; to make a path of each name takes as long again.
        with suppress(OSError), open(f"{task.path}/children", "rb", buffering=0) as file:  # noqa: PTH123
            found += map(int, file.read().split())
    return found


def _tasks(process: int) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(f"/proc/{process}/task"))
    except OSError:
        return []


# The limits of one job

# Starved: the job was runnable but not running for this share of its CPU time.
_STARVED_SHARE = 0.1
# A job that is still starved after so many times its wall-clock limit is ended.
_LONGEST_WALLS = 10


@dataclass(frozen=True)
class LimitExceeded:
    """A limit that a job exceeded. `starved`: a time limit, on a machine too busy to tell whether the job is slow.

    `cpu_used`: it used up its CPU time.
    """

    status: str
    note: str = ""
    starved: bool = False
    cpu_used: bool = False


class JobClock:
    """Measures one job since construction, over a process and its descendants.

    `folder`: the private one that it writes to, where no file system limits that.
    """

    def __init__(self, process: int, limits: Limits, folder: Path | None = None) -> None:
        self._process, self._limits, self._folder = process, limits, folder
        self._started = self._looked = time.monotonic()
        self._ready_seconds = 0.0
        # Whether a process was runnable when `exceeded` looked last.
        self.ready = True
        self._cpu_before = usage(process).cpu_seconds

    def exceeded(self) -> LimitExceeded | None:
        """The limit that the job has exceeded, if any. Call it several times per second."""
        process, limits, folder = self._process, self._limits, self._folder
        if exceeds_memory(process, limits.memory_bytes):
            return LimitExceeded("memory_limit")
        if folder is not None and folder_bytes(folder) + deleted_file_bytes(process, folder) > limits.disk_bytes:
            return LimitExceeded("disk_limit")
        now, used = time.monotonic(), usage(process)
        spent, self.ready = used.cpu_seconds - self._cpu_before, used.ready
        if used.ready:
            self._ready_seconds += now - self._looked
        self._looked = now
        # No measured times in the notes: they are stored in outcomes, and equal outcomes must compare equal.
        waited = self._ready_seconds - spent
        if spent > limits.seconds:
            # CPU time is used up faster where neighbours share the processor.
            starved = waited > _STARVED_SHARE * limits.seconds
            return LimitExceeded("timeout", f"used more than {limits.seconds:g} s of CPU time", starved, True)
        elapsed = now - self._started
        if elapsed > _LONGEST_WALLS * limits.wall:
            return LimitExceeded("timeout", f"got no processor for {_LONGEST_WALLS} times its wall time", starved=True)
        if elapsed - max(waited, 0.0) > limits.wall:
            why = "; it was waiting, not computing" if spent < limits.wall / 2 else ""
            return LimitExceeded("timeout", f"took more than {limits.wall:g} s of wall time{why}")
        return None


# A memory limit that the kernel enforces: a control group per sandbox, where control groups are writable. Looking at a
# sandbox ten times a second finds a job that uses too much memory, but not before it has taken gigabytes. A control
# group stops it at once and also counts what the kernel holds for it, such as socket buffers. Its limit is above the
# one that is looked for, so it ends only what outran the look. Version 2 is used where it has the memory controller,
# otherwise version 1. Where neither is writable, the look is all there is.

_PREFIX = "touchstone-"
# Joins the group before anything else happens, then becomes the command.
_JOIN = ("/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"')
# For the processes that are there before a job, and for what the kernel needs to run it.
_SPARE_BYTES = 128 * 2**20
_REMOVAL_SECONDS = 5.0
_numbers = itertools.count()


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[list[str]]:
    """A new group that may use so much memory. Yields what to put before a command line, [] where there are no groups.

    The group must be left after its processes have ended.
    """
    parent = _usable_parent()
    try:
        group = _make_group(parent, limit_bytes + _SPARE_BYTES) if parent is not None else None
    except OSError:  # no room for more groups
        group = None
    try:
        yield [*_JOIN, str(group / "cgroup.procs")] if group is not None else []
    finally:
        if group is not None:
            _remove_group(group)


@functools.cache
def _usable_parent() -> Path | None:
    """The first candidate in which a group can be made and joined, found by trying."""
    for parent in _candidates(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()):
        try:
            _remove_abandoned_groups(parent)
            group = _make_group(parent, _SPARE_BYTES)
            try:
                subprocess.run([*_JOIN, str(group / "cgroup.procs"), "true"], check=True, capture_output=True)
            finally:
                _remove_group(group)
        except (OSError, subprocess.CalledProcessError):
            continue
        return parent
    return None


def _candidates(groups: str, mounts: str) -> Iterator[Path]:
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
                with suppress(OSError):
                    if "memory" in (folder / "cgroup.subtree_control").read_text().split():
                        yield folder
        elif kind == "cgroup" and "memory" in options.split(",") and "memory" in paths:
            yield next(_upward(Path(mounted), root, paths["memory"]))


def _upward(mounted: Path, root: str, path: str) -> Iterator[Path]:
    """The folder of a group and those above it, below the mount point. A mount may show only a part of all groups."""
    inside = os.path.relpath(path, root)
    folder = mounted if inside.startswith("..") else mounted / inside
    yield folder
    yield from (above for above in folder.parents if above.is_relative_to(mounted))


def _make_group(parent: Path, limit_bytes: int) -> Path:
    group = parent / f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
    group.mkdir()
    try:
        if (group / "memory.max").exists():
            (group / "memory.max").write_text(str(limit_bytes))
            swap, swap_bytes = group / "memory.swap.max", 0
        else:  # version 1, which counts memory and swap together
            (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
            swap, swap_bytes = group / "memory.memsw.limit_in_bytes", limit_bytes
        if swap.exists():
            swap.write_text(str(swap_bytes))
    except OSError:
        group.rmdir()
        raise
    return group


def _remove_group(group: Path) -> None:
    """Remove a group. The kernel may need a moment after the last process has ended; else a later run removes it."""
    give_up = time.monotonic() + _REMOVAL_SECONDS
    while group.exists() and time.monotonic() < give_up:
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.001)


def _remove_abandoned_groups(folder: Path) -> None:
    """Remove the groups that killed runs have left behind."""
    for group in folder.glob(f"{_PREFIX}*-*"):
        owner = group.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with suppress(OSError):
                group.rmdir()
