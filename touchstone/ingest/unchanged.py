"""Files that others write while they are read: what was read counts only if it is the same file afterwards."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from touchstone.errors import InputFileError, TouchstoneError

Result = TypeVar("Result")
Mark = tuple[int, int, int, int]


class ChangedWhileReadError(InputFileError):
    """Raised for what was read of a file that grew, vanished or was replaced meanwhile."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: changed while it was being read; run again when nothing writes to it")


def mark_of(path: Path) -> Mark | None:
    """What changes with the content of a file: inode, size and times; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def read_unchanged(files: Callable[[], Iterable[Path]], read: Callable[[], Result]) -> Result:
    """What `read` returns if no file changed meanwhile; if one did, it is called once more, then an error is raised."""
    for again in (True, False):
        before = {path: mark_of(path) for path in files()}
        try:
            result = read()
        except TouchstoneError:
            if again and _changed(before) is not None:
                continue
            raise
        changed = _changed(before)
        if changed is None:
            return result
        if not again:
            raise ChangedWhileReadError(changed)
    raise AssertionError("unreachable")


def _changed(before: dict[Path, Mark | None]) -> Path | None:
    return next((path for path, mark in before.items() if mark_of(path) != mark), None)
