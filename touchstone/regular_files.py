"""Opening files that others may have put in place: nothing but regular files, so that no reader waits or reads forever.

A named pipe or a device raises `OSError`, like a file that cannot be read.
"""

import errno
import io
import json
import os
import stat
from pathlib import Path
from typing import Any


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file for reading bytes; links to one are followed.

    >>> open_regular(Path("/dev/zero"))
    Traceback (most recent call last):
        ...
    OSError: [Errno 22] not a regular file: '/dev/zero'
    """
    # Without O_NONBLOCK, opening a named pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
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
