"""Atomic file replacement, hard links, and text that is safe to open in a spreadsheet."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A spreadsheet treats a text cell that starts with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling; renamed over `path` on success, deleted on error."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield scratch
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def link_or_copy(source: Path, target: Path) -> None:
    """Make `target` a hard link to `source`, or a copy if the file system does not allow links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def spreadsheet_safe(text: str) -> str:
    """The text, escaped so that a spreadsheet does not run it as a formula.

    >>> spreadsheet_safe("=1+1"), spreadsheet_safe("a=b")
    ("'=1+1", 'a=b')
    """
    return "'" + text if text.startswith(FORMULA_STARTS) else text
