"""The stamps of the parts of tables: small JSON files that say what each part was made from.

A run looks at every stamp many times, so one is read again only if its file is another one or was changed since, and
the parts of a table are listed again only if a file came or went.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from touchstone.regular_files import read_json
from touchstone.storage.files import is_as_written

T = TypeVar("T")

_KINDS = {
    "rows": int,
    "fingerprint": str,
    "made_from": str,
    "inputs": dict,
    "models": dict,
    "settled": bool,
    "file": list,
}


class Stamps:
    """Stamps by path, as last read."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[tuple[int, ...], dict[str, Any] | None]] = {}
        self._intact: dict[Path, tuple[object, ...]] = {}

    def of(self, path: Path) -> dict[str, Any] | None:
        """What the stamp says; None if it is missing or damaged, so that its part is made again."""
        try:
            status = path.stat()
        except OSError:
            return None
        # Taken before reading: a stamp that changes in between is read again next time.
        version = (status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size)
        known = self._read.get(path)
        if known is None or known[0] != version:
            known = self._read[path] = (version, _read_stamp(path))
        return known[1]

    def matches(self, path: Path, mark: list[object]) -> bool:
        """Whether the file of a part is as it was written: one that somebody damaged is made again."""
        try:
            status = path.stat()
        except OSError:
            return False
        version = (status.st_ino, status.st_mtime_ns, status.st_size, *mark)
        if self._intact.get(path) != version:
            if not is_as_written(path, mark):
                return False
            self._intact[path] = version
        return True


# A folder that others change twice within a tick of the file system's clock shows the first time only.
_SETTLE_NS = 50_000_000


class Listings(Generic[T]):
    """What is in some folders, as last listed. Parts and stamps are renamed into place, which changes their folder."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[list[tuple[int, int] | None], T]] = {}

    def of(self, folders: Sequence[Path], listed: Callable[[], T]) -> T:
        """What `listed` finds, kept until one of the folders changes; not kept while they may be changing."""
        now = time.time_ns()
        # Taken before listing: a folder that changes in between is listed again next time.
        versions = [_version(folder) for folder in folders]
        known = self._known.get(folders[0])
        if known is not None and known[0] == versions:
            return known[1]
        found = listed()
        if all(version is not None and version[1] < now - _SETTLE_NS for version in versions):
            self._known[folders[0]] = (versions, found)
        return found

    def forget(self, folder: Path) -> None:
        """List again next time: what changed, a clock of whole seconds may not show."""
        self._known.pop(folder, None)


def _version(folder: Path) -> tuple[int, int] | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _read_stamp(path: Path) -> dict[str, Any] | None:
    try:
        made = read_json(path)
    except (OSError, ValueError):
        return None
    if not isinstance(made, dict):
        return None
    made = {"inputs": {}, "models": {}, "made_from": made.get("fingerprint"), "settled": True, **made}
    return made if all(isinstance(made.get(name), kind) for name, kind in _KINDS.items()) else None
