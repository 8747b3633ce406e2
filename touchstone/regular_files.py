"""Opening files that others may have put in place: nothing but regular files, so that no reader waits or reads forever.

A named pipe or a device raises `OSError`, like a file that cannot be read. `open_beneath` also opens nothing outside a
folder, whatever became of a path since it was listed.
"""

import errno
import io
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

# Without O_NONBLOCK, opening a named pipe waits for a writer.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file for reading bytes; links to one are followed.

    >>> open_regular(Path("/dev/zero"))
    Traceback (most recent call last):
        ...
    OSError: [Errno 22] not a regular file: '/dev/zero'
    """
    descriptor = os.open(path, _READ)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def require_regular(path: Path) -> None:
    """Raise `OSError` if the path is not a regular file that can be read, for readers that open it themselves."""
    open_regular(path).close()


def read_bytes(path: Path, max_bytes: int | None = None) -> bytes:
    """The content of a regular file; `OSError` if it has more than `max_bytes`."""
    with open_regular(path) as file:
        content = file.read() if max_bytes is None else file.read(max_bytes + 1)
    if max_bytes is not None and len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"larger than {max_bytes:,} bytes", str(path))
    return content


def read_json(path: Path) -> Any:
    """The value in a regular JSON file; `ValueError` if it is not JSON, or nested too deeply to read."""
    try:
        return json.loads(read_bytes(path))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one if the file is missing or damaged, or holds something else."""
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class UnsafePathError(OSError):
    """The path leads out of its folder, or to something other than a regular file."""


def read_beneath(root: Path, path: str) -> bytes:
    """The content of a regular file in a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     Path(root, "out").symlink_to("/etc/passwd")
    ...     read_beneath(Path(root), "out")
    Traceback (most recent call last):
    touchstone.regular_files.UnsafePathError: [Errno 40] leads out of its folder: 'out'
    """
    with open_beneath(root, path) as file:
        return file.read()


def open_beneath(root: Path, path: str) -> io.BufferedReader:
    """Open a regular file in a folder for reading bytes. A link counts if it stays inside when it is followed."""
    try:
        file = _open_without_links(root, PurePosixPath(path).parts)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        file = _open_without_links(root, _resolved(root, path))
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise UnsafePathError(errno.ELOOP, "is no regular file", path)
    return os.fdopen(file, "rb")


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
        return os.open(parts[-1], _READ | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)
