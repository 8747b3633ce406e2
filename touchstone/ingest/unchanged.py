"""Files that others write while they are read: a result counts only if the file is the same afterwards."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from touchstone.errors import InputFileError, TouchstoneError

Result = TypeVar("Result")
Mark = tuple[int, int, int, int]


class ChangedWhileReadError(InputFileError):
    """Raised for a file that grew, vanished or was replaced while it was read."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: changed while it was being read; run again when nothing writes to it")


def mark_of(path: Path) -> Mark | None:
    """Marks of a file that change with its content: inode, size and times; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def read_unchanged(files: Callable[[], Iterable[Path]], read: Callable[[], Result]) -> Result:
    """The result of `read` if no file changed meanwhile; if one did, it is called once more, then this raises."""
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
