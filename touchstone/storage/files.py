"""Writing files so that a reader sees the old one or the new one, and so that no reader is harmed by them."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A cell of text that starts with one of these is a formula to a spreadsheet.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside the path to write to. It takes the path's place, unless the block fails: then it goes."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield scratch
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def link_or_copy(source: Path, target: Path) -> None:
    """The same file at another place: a hard link where the file system has them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def spreadsheet_safe(text: str) -> str:
    """The text such that a spreadsheet does not run it as a formula.

    >>> spreadsheet_safe("=1+1"), spreadsheet_safe("a=b")
    ("'=1+1", 'a=b')
    """
    return "'" + text if text.startswith(FORMULA_STARTS) else text
