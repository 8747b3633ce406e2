"""Folders that nobody vouches for: measured and emptied however deep they are and whatever rights were taken.

Only the standard library is used, since this also runs inside sandboxes.
"""

import errno
import itertools
import os
import sys
from contextlib import suppress
from pathlib import Path

_BLOCK = 512


def folder_bytes(folder: Path) -> int:
    """What a folder holds, as far as it can be looked at while others change it.

    Every entry counts for a block at least. What lies too deep to be named counts as more than any limit.
    """
    total, waiting = 0, [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        total += max(entry.stat(follow_symlinks=False).st_blocks, 1) * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return sys.maxsize
    return total


def empty(folder: Path) -> bool:
    """Remove all that lies in a folder; False where something could not be removed.

    Folders in folders are first moved up, so that no path grows long. Nobody may be changing anything meanwhile.
    """
    names = (f"{os.urandom(8).hex()}-{count}" for count in itertools.count())
    try:
        while inside := _without_files(folder):
            for each in inside:
                for deeper in _without_files(each):
                    deeper.rename(folder / next(names))
                each.rmdir()
    except OSError:
        return False
    return True


def remove(folder: Path) -> None:
    """Remove a folder with all that lies in it, as far as that is possible."""
    empty(folder)
    with suppress(OSError):
        folder.rmdir()


def _without_files(folder: Path) -> list[Path]:
    """The folders in a folder, opened to their owner; everything else in it is removed."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                path.chmod(0o700)
                found.append(path)
            else:
                path.unlink()
    return found
