"""Watching and ending the processes of a sandbox from outside."""

import os
import signal
import stat
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_BLOCK = 512
# Long: a keeper that is killed before it has ended its children, because the machine is busy, leaves them behind.
_PATIENCE_SECONDS = 30.0


def end(process: subprocess.Popen[bytes], *, pid_namespace: bool) -> None:
    """End a sandbox and wait until nothing of it is left.

    With a process namespace, ending its first process ends all, and the kernel lets that one go last. Without, the
    keeper is asked to end its children and then goes itself.
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
    """CPU time of a process and all below it, ended ones included, and whether one of them is ready to run or running.

    A process whose parent ignores the end of its children is counted only while it lives.
    """

    cpu_seconds: float
    ready: bool


def usage(process: int) -> Usage:
    """What a process and all below it have used, and whether they could use more now."""
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
    """CPU time of these processes and of their children that have ended."""
    ticks = 0
    for each in processes:
        with suppress(OSError, IndexError, ValueError):
            ticks += _ticks(_stat(str(each)))
    return ticks / _TICKS


# Running or runnable, and waiting for a disk.
_READY = (b"R", b"D")


def _stat(place: str) -> list[bytes]:
    """The fields of a process or thread from its state on; its name before may hold anything."""
    # Plain calls: this is done for every job.
    file = os.open(f"/proc/{place}/stat", os.O_RDONLY)
    try:
        return os.read(file, 4096).rpartition(b")")[2].split()
    finally:
        os.close(file)


def _ticks(fields: Sequence[bytes]) -> int:
    """utime, stime, cutime and cstime."""
    return sum(int(field) for field in fields[11:15])


def resident_bytes(process: int) -> int:
    """Memory in use by a process and all below it."""
    total = 0
    for each in descendants(process):
        with suppress(OSError, IndexError, ValueError):
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * _PAGE
    return total


def deleted_file_bytes(process: int, folder: Path) -> int:
    """Room of deleted files on a folder's disk that a process and all below it hold open, where that can be seen."""
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
    """A process and all below it."""
    yield process
    for child in children(process):
        yield from descendants(child)


def children(process: int) -> list[int]:
    """The children of a process."""
    found = []
    for task in _tasks(process):
        with suppress(OSError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def _tasks(process: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{process}/task").iterdir())
    except OSError:
        return []
