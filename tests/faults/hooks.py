"""Faults in a child process, at a chosen file operation rather than a moment: the same one every time.

Python announces its file operations to audit hooks before it carries them out. Those that change the output folder are
numbered; a fault strikes before the one with its number. What Polars and DuckDB write themselves lies between two of
them, under a temporary name.
"""

import errno
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# The place of the path that an operation changes, and of its folder's descriptor, among the arguments.
_CHANGES = {
    "open": (0, None),
    "os.rename": (1, 3),
    "os.link": (1, 3),
    "os.symlink": (1, 2),
    "os.mkdir": (0, 2),
    "os.remove": (0, 1),
    "os.rmdir": (0, 1),
}
_FREES_SPACE = ("os.remove", "os.rmdir")


@dataclass(frozen=True)
class Fault:
    """What happens before an operation: the `at`-th of all, counted from 1, or the first whose path contains `path`."""

    kind: str
    at: int = 0
    path: str = ""


def install(fault: Fault, folder: Path, log: Path) -> None:
    """Have this process meet the fault in the folder; the operations are listed in `log`."""
    strikes = {
        "none": _nothing,
        "kill": _kill,
        "full disk": _disk_full,
        "clock back": _clock_back,
        "no memory": _no_memory,
        "little memory": _little_memory,
    }
    strike = strikes[fault.kind]
    operations = log.open("w", buffering=1)
    count, struck = 0, False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count, struck
        if event not in _CHANGES or not (path := _changed(event, arguments, str(folder))):
            return
        count += 1
        operations.write(f"{event} {path}\n")
        begins = count == fault.at or bool(fault.path and fault.path in path)
        if (begins and not struck) or (struck and fault.kind == "full disk"):
            struck = True
            strike(event, path)

    sys.addaudithook(hook)


def _changed(event: str, arguments: tuple[Any, ...], folder: str) -> str | None:
    """The path that an operation changes; None if it changes nothing in the folder."""
    place, descriptor = _CHANGES[event]
    path = arguments[place]
    if event == "open" and (not isinstance(arguments[2], int) or not arguments[2] & _WRITING):
        return None
    if not isinstance(path, str | os.PathLike):
        return None
    if descriptor is not None and arguments[descriptor] not in (-1, None):
        return str(path)
    # Folders that are there and files that are not stay as they are.
    without_effect = {"os.mkdir": os.path.lexists(path), "os.remove": not os.path.lexists(path)}
    return str(path) if str(path).startswith(folder) and not without_effect.get(event) else None


def _nothing(event: str, path: str) -> None:
    pass


def _kill(event: str, path: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _disk_full(event: str, path: str) -> None:
    if event not in _FREES_SPACE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def _no_memory(event: str, path: str) -> None:
    raise MemoryError


def _little_memory(event: str, path: str) -> None:
    """Let this process take 32 MiB more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + 2**25
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _clock_back(event: str, path: str) -> None:
    set_clock_back()


_REAL = time.time


def set_clock_back(seconds: float = 172_800.0) -> None:
    """Have this process see a time so much earlier than it is, from now on."""
    gmtime, strftime = time.gmtime, time.strftime
    time.time = lambda: _REAL() - seconds
    time.time_ns = lambda: int(time.time() * 1e9)
    time.gmtime = lambda given=None: gmtime(time.time() if given is None else given)
    time.strftime = lambda form, given=None: strftime(form, time.gmtime() if given is None else given)
