"""Writing files so that a reader sees the old one or the new one, and so that no reader is harmed by them."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside the path to write to. It takes the path's place, unless the block fails: then it goes."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield scratch
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def spreadsheet_safe(text: str) -> str:
    """The text such that a spreadsheet does not run it as a formula.

    >>> spreadsheet_safe("=1+1"), spreadsheet_safe("a=b")
    ("'=1+1", 'a=b')
    """
    return "'" + text if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
