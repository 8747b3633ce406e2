"""The lock of an output folder: one run at a time."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from touchstone.errors import TouchstoneError
from touchstone.regular_files import read_bytes


@contextmanager
def lock_folder(folder: Path, refusal: str, wait_seconds: float) -> Iterator[None]:
    """Lock a folder; an error that starts with `refusal` if it is locked. Ends with its process; reentrant in it."""
    # Most commands read files and lock nothing.
    import filelock

    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / "lock.holder"
    guard = filelock.FileLock(
        folder / "lock",
        timeout=wait_seconds,
        is_singleton=True,
        thread_local=False,
        fallback_to_soft=False,
    )
    try:
        guard.acquire()
    except filelock.Timeout:
        raise TouchstoneError(
            f"{refusal} ({_read_text(holder) or 'holder unknown'}); wait for it to end or use another output folder"
        ) from None
    try:
        holder.write_text(f"process {os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}")
        yield
    finally:
        guard.release()


def _read_text(path: Path) -> str | None:
    try:
        return read_bytes(path).decode(errors="replace")
    except OSError:
        return None
