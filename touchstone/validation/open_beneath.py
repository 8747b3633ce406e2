"""Open the files of a problem and nothing outside its folder, whatever became of a path since it was listed."""

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
# Opening a FIFO without O_NONBLOCK would wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class UnsafePathError(OSError):
    """The path leads out of its folder, or to something other than a regular file."""


def read_beneath(root: Path, path: str) -> bytes:
    """The content of a regular file in a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     Path(root, "out").symlink_to("/etc/passwd")
    ...     read_beneath(Path(root), "out")
    Traceback (most recent call last):
    touchstone.validation.open_beneath.UnsafePathError: [Errno 40] leads out of its folder: 'out'
    """
    with os.fdopen(open_beneath(root, path), "rb") as file:
        return file.read()


def open_beneath(root: Path, path: str) -> int:
    """A descriptor of a regular file in a folder. A link counts if it stays inside when it is followed."""
    try:
        file = _open_without_links(root, PurePosixPath(path).parts)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        file = _open_without_links(root, _resolved(root, path))
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise UnsafePathError(errno.ELOOP, "is no regular file", path)
    return file


def _resolved(root: Path, path: str) -> Sequence[str]:
    try:
        return (root / path).resolve().relative_to(root.resolve()).parts
    except (ValueError, RuntimeError):
        raise UnsafePathError(errno.ELOOP, "leads out of its folder", path) from None


def _open_without_links(root: Path, parts: Sequence[str]) -> int:
    """Open folder by folder: a link anywhere on the way is an error."""
    if not parts or ".." in parts or parts[0] == "/":
        raise UnsafePathError(errno.ELOOP, "leads out of its folder", "/".join(parts))
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)
