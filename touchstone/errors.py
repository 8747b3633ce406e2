"""Errors shown to the user: one line that says what is wrong, where, and what to do.

A local path that stands for an address in object storage is shown as the address; see `touchstone.locations`. One that
stands for a file in an archive is shown as that.
"""

import os
import re
from functools import lru_cache
from pathlib import Path

SCHEMES = ("s3", "gs", "az")
WORKING_COPY = "working_copy"
VIEWS = "views"
# The archives by the folder that each was unpacked into; see `touchstone.ingest.archives`.
UNPACKED: dict[Path, Path] = {}

_SPACE = "no space left on the disk; free some and try again"
_READ_ONLY = "the file system is read-only; make it writable or choose another folder"
_DENIED = "permission denied; give this user access to it or choose another folder"
_MEMORY = "out of memory; give the process more, or validate and read on fewer workers (validation.workers)"
_THREADS = "no more threads can be started; raise the limits on processes (ulimit -u) and memory (ulimit -v)"
_DAMAGED = "a table's Parquet file is damaged; `touchstone run` makes it again"
# Messages of Python, Polars, DuckDB and SQLite about the limits of the machine.
_MACHINE = (
    (re.compile(r"No space left on device|os error 28|Disk quota exceeded|database or disk is full"), _SPACE),
    # Polars, where the end of a Parquet file cannot be written; a damaged one that is read is never called that.
    (re.compile(r"Invalid thrift: transport error"), _SPACE),
    (re.compile(r"Read-only file system|os error 30|readonly database"), _READ_ONLY),
    (re.compile(r"Permission denied|os error 13"), _DENIED),
    (re.compile(r"MemoryError|annot allocate memory|os error 12|Out of Memory Error|bad_alloc"), _MEMORY),
    (re.compile(r"failed to map segment from shared object"), _MEMORY),
    (re.compile(r"can't start new thread|Os \{ code: 11,"), _THREADS),
    (re.compile(r"File out of specification|[Nn]o magic bytes|not a [Pp]arquet file|[Pp]arquet magic bytes"), _DAMAGED),
)
_PATH = re.compile(r"""['"](/[^'"]+)['"]""")


class TouchstoneError(Exception):
    """Incorrect usage or input. The command line prints the message and exits with code 2."""

    def __init__(self, message: object = "") -> None:
        super().__init__(shown(str(message)))


class UnreachableError(TouchstoneError):
    """A server that does not answer: nothing is wrong with the input, and the same run may succeed later."""


class InputFileError(TouchstoneError):
    """A file that cannot be read. Only its own model fails; the other models continue."""

    def __init__(self, message: str) -> None:
        # Names of columns and messages of libraries may have several lines.
        super().__init__(" ".join(message.splitlines()))


def explain(message: str) -> str | None:
    """The limit of the machine that an error message is about, and the remedy; None for any other error.

    >>> explain("OSError: [Errno 28] No space left on device: '/out/.store/draft/a.parquet'")
    '/out/.store/draft/a.parquet: no space left on the disk; free some and try again'
    >>> explain("RuntimeError: can't start new thread")
    'no more threads can be started; raise the limits on processes (ulimit -u) and memory (ulimit -v)'
    >>> explain("KeyError: 'a'")
    """
    for pattern, remedy in _MACHINE:
        if pattern.search(message):
            path = _PATH.search(message)
            return f"{path[1]}: {remedy}" if path else remedy
    return None


def shown(text: str) -> str:
    """The text with the address in place of every path that stands for one.

    >>> shown(f"{objects_root()}/inputs/s3/bucket/m_fixes.csv: line 3")
    's3://bucket/m_fixes.csv: line 3'
    >>> shown(f"see {objects_root()}/outputs/s3/bucket%2Fout/working_copy/tables")
    'see s3://bucket/out/tables'
    """
    for folder, archive in UNPACKED.items():
        text = text.replace(str(folder), str(archive))
    root = str(objects_root())
    return _local_paths(root).sub(_as_address, text) if root in text else text


def reason_of(error: object, path: Path) -> str:
    """The message of an error without the path that it starts with."""
    return str(error).removeprefix(f"{shown(str(path))}: ")


@lru_cache(maxsize=2)
def _local_paths(root: str) -> re.Pattern[str]:
    site = rf"(?P<{{}}>{'|'.join(SCHEMES)})(?:@[0-9a-f]+)?"
    inputs = rf"inputs/{site.format('of_input')}/"
    outputs = rf"outputs/{site.format('of_output')}/(?P<name>[^/\s]+)/(?:{WORKING_COPY}|{VIEWS}/[\w-]+)\b"
    return re.compile(rf"{re.escape(root)}/(?:{inputs}|{outputs})")


def _as_address(found: re.Match[str]) -> str:
    from urllib.parse import unquote

    if found["of_input"]:
        return f"{found['of_input']}://"
    return f"{found['of_output']}://{unquote(found['name'])}"


def objects_root() -> Path:
    """The folder of everything that stands for an address, in the user's cache folder."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    except RuntimeError:
        # No home folder, which only object storage needs.
        base = Path(os.devnull)
    return _resolved(base / "touchstone" / "objects")


# Kept, because every error asks.
@lru_cache(maxsize=8)
def _resolved(path: Path) -> Path:
    return path.resolve()
