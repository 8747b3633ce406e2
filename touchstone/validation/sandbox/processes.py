"""Measure, limit and end the processes of a sandbox from outside.

CPU time decides, so that a verdict does not depend on the machine's load. A job that waits instead of computing is
ended by the wall-clock limit. Its processes are sampled to tell whether it slept or lacked CPU: a process that is
runnable but gets no CPU time is starved.
"""

import functools
import os
import signal
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from touchstone.validation.sandbox.command import BOX, Limits
from touchstone.validation.sandbox.folders import folder_bytes

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_BLOCK = 512
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
            ticks += _ticks(fields)
            ready = (
                ready
                or fields[0] in _READY
                or any(_stat(f"{each}/task/{task.name}")[0] in _READY for task in _tasks(each))
            )
    return Usage(ticks / _TICKS, ready)


def cpu_seconds(processes: Iterable[int]) -> float:
    """CPU time of these processes and of their reaped children."""
    ticks = 0
    for each in processes:
        with suppress(OSError, IndexError, ValueError):
            ticks += _ticks(_stat(str(each)))
    return ticks / _TICKS


# Process states: running or runnable, and waiting for a disk.
_READY = (b"R", b"D")


def _stat(place: str) -> list[bytes]:
    """The fields of /proc/.../stat from the state on; the name before it may contain anything."""
    # Plain os calls, because this runs for every job.
    file = os.open(f"/proc/{place}/stat", os.O_RDONLY)
    try:
        return os.read(file, 4096).rpartition(b")")[2].split()
    finally:
        os.close(file)


def _ticks(fields: Sequence[bytes]) -> int:
    """utime, stime, cutime and cstime."""
    return sum(int(field) for field in fields[11:15])


def exceeds_memory(process: int, limit_bytes: int) -> bool:
    """Whether a process and its descendants use more memory, with what the kernel holds and charges to none of them.

    That is the buffers of their sockets, counted as full, and the files in bubblewrap's private file system, each
    without its content, which the size of the file system limits. Memory that forked processes share counts once, or
    a pool of one process per processor would pass on a small machine only.
    """
    processes = list(descendants(process))
    sockets = {socket for each in processes for socket in _sockets(each)}
    kernel = len(sockets) * _socket_buffer_bytes() + _private_files(process) * _INODE_BYTES
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


def _sockets(process: int) -> Iterator[str]:
    """The open sockets of a process, where visible."""
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{process}/fd"):
            with suppress(OSError):
                if (target := os.readlink(entry.path)).startswith("socket:"):  # noqa: PTH115
                    yield target


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


def deleted_file_bytes(process: int, folder: Path) -> int:
    """Disk usage of deleted files that a process or a descendant holds open on a folder's disk, where visible."""
    held: dict[int, int] = {}
    disk = folder.stat().st_dev
    for each in descendants(process):
        with suppress(OSError):
            for entry in Path(f"/proc/{each}/fd").iterdir():
                with suppress(OSError):
                    found = entry.stat()
                    if stat.S_ISREG(found.st_mode) and found.st_nlink == 0 and found.st_dev == disk:
                        held[found.st_ino] = found.st_blocks * _BLOCK
    return sum(held.values())


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

# Starved: the job was runnable but not running for this share of the limit.
_STARVED_SHARE = 0.1


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

    `before`: all processes that existed before the job, if known; finding them takes longer. `folder`: the private one
    that it writes to, where no file system limits that.
    """

    def __init__(
        self, process: int, limits: Limits, before: Sequence[int] | None = None, folder: Path | None = None
    ) -> None:
        self._process, self._limits, self._folder = process, limits, folder
        self._started = self._looked = time.monotonic()
        self._ready_seconds = 0.0
        self._cpu_before = usage(process).cpu_seconds if before is None else cpu_seconds(before)

    @property
    def seconds_left(self) -> float:
        """Seconds until the wall-clock limit."""
        return self._started + self._limits.wall - time.monotonic()

    def exceeded(self) -> LimitExceeded | None:
        """The limit that the job has exceeded, if any. Call it several times per second."""
        process, limits, folder = self._process, self._limits, self._folder
        if exceeds_memory(process, limits.memory_bytes):
            return LimitExceeded("memory_limit")
        if folder is not None and folder_bytes(folder) + deleted_file_bytes(process, folder) > limits.disk_bytes:
            return LimitExceeded("disk_limit")
        now, used = time.monotonic(), usage(process)
        spent = used.cpu_seconds - self._cpu_before
        if used.ready:
            self._ready_seconds += now - self._looked
        self._looked = now
        # No measured times in the notes: they are stored in outcomes, and equal outcomes must compare equal.
        waited = self._ready_seconds - spent
        if spent > limits.seconds:
            # CPU time is used up faster where neighbours share the processor.
            starved = waited > _STARVED_SHARE * limits.seconds
            return LimitExceeded("timeout", f"used more than {limits.seconds:g} s of CPU time", starved, True)
        if now - self._started <= limits.wall:
            return None
        starved = waited > _STARVED_SHARE * limits.wall
        why = "it was waiting for a processor" if starved else "it was waiting, not computing"
        return LimitExceeded("timeout", f"took more than {limits.wall:g} s of wall time; {why}", starved)
