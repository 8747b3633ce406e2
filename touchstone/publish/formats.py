"""Files and folders that a user names: the format that a name implies, how they are written. Imports nothing heavy."""

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from touchstone.errors import TouchstoneError
from touchstone.storage.files import replacing

RESULT_SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".parquet": "parquet",
    ".tex": "latex",
}
REPORT_SUFFIXES = {
    ".sarif.json": "sarif",
    ".sarif": "sarif",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".xml": "junit",
    ".txt": "text",
}


def file_format(save_to: Path, chosen: str | None, suffixes: Mapping[str, str]) -> str | None:
    """The format to save in: the chosen one, else the one that the file name implies, if any. They must agree.

    >>> file_format(Path("a.CSV"), None, RESULT_SUFFIXES), file_format(Path("out"), "json", RESULT_SUFFIXES)
    ('csv', 'json')
    """
    name = save_to.name.lower()
    implied = next((format for suffix, format in suffixes.items() if name.endswith(suffix)), None)
    if chosen is not None and implied is not None and chosen != implied:
        raise TouchstoneError(
            f"--save-to {save_to.name} implies --format {implied}, but --format is {chosen}; leave --format out"
        )
    return chosen or implied


@contextmanager
def saving(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling that is renamed over `path` on success; failures are errors of one line."""
    if path.exists() and not path.is_file():
        raise TouchstoneError(f"{path}: not a file")
    try:
        with replacing(path) as scratch:
            yield scratch
    except OSError as error:
        raise TouchstoneError(f"{path}: cannot be written ({error.strerror or error})") from error


def require_new(path: Path) -> None:
    """Raise an error unless a folder to write is missing or empty."""
    if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
        raise TouchstoneError(f"{path}: already exists; name a folder that is new or empty")


@contextmanager
def saving_folder(path: Path, check: Callable[[Path], None] = require_new) -> Iterator[Path]:
    """Yield a temporary sibling that takes the folder's place on success; `check` raises if that must not be lost."""
    # `.` and `..` have no siblings.
    place = path.resolve()
    scratch, old = (place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}.tmp") for _ in range(2))
    try:
        check(path)
        scratch.mkdir(parents=True)
        yield scratch
        check(path)
        if place.exists():
            place.replace(old)
        scratch.replace(place)
    except OSError as error:
        raise TouchstoneError(f"{path}: {error.strerror or error}") from error
    finally:
        if old.exists() and not place.exists():
            old.replace(place)
        for leftover in (scratch, old):
            shutil.rmtree(leftover, ignore_errors=True)
