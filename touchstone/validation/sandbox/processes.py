"""Watching and ending the processes of a sandbox from outside."""

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_BLOCK = 512
_PATIENCE_SECONDS = 5.0


def end(process: subprocess.Popen[bytes], *, own_processes: bool) -> None:
    """End a sandbox and wait until nothing of it is left.

    With a process namespace, ending its first process ends all, and the kernel lets that one go last. Without, the
    keeper is asked to end its children and then goes itself.
    """
    if process.poll() is None:
        if own_processes:
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


def resident_bytes(process: int) -> int:
    """Memory in use by a process and all below it."""
    total = 0
    for each in descendants(process):
        with suppress(OSError, IndexError, ValueError):
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * _PAGE
    return total


def unnamed_bytes(process: int, folder: Path) -> int:
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
