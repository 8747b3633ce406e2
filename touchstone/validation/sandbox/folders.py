"""Measure and empty folders written by untrusted code, however deep they are and whatever their permissions.

Standard library only: this also runs inside sandboxes.
"""

import errno
import itertools
import os
import sys
from contextlib import suppress
from pathlib import Path

_BLOCK, _LEAST = 512, 1536


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
                        total += max(entry.stat(follow_symlinks=False).st_blocks * _BLOCK, _LEAST)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return sys.maxsize
    return total


def empty_folder(folder: str | Path) -> bool:
    """Remove everything in a folder; returns False if something could not be removed.

    Nested folders are moved up first, so that no path grows too long. Nothing else may write to the folder meanwhile.
    Plain os calls, because this runs after every job.
    """
    names = (f"{folder}/{os.urandom(8).hex()}-{count}" for count in itertools.count())
    try:
        while inside := _remove_files(folder):
            for each in inside:
                for deeper in _remove_files(each):
                    os.rename(deeper, next(names))  # noqa: PTH104
                os.rmdir(each)  # noqa: PTH106
    except OSError:
        return False
    return True


def remove_folder(folder: Path) -> None:
    """Remove a folder and its contents, as far as possible."""
    empty_folder(folder)
    with suppress(OSError):
        folder.rmdir()


def _remove_files(folder: str | Path) -> list[str]:
    """Remove all files in a folder and return its subfolders, made accessible to their owner."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)  # noqa: PTH101
                found.append(entry.path)
            else:
                os.unlink(entry.path)  # noqa: PTH108
    return found
