"""Files that a user names: the output format that a name implies, and how they are written. Imports nothing heavy."""

from collections.abc import Iterator, Mapping
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
    """Yield a temporary sibling that is renamed over `path` on success; what prevents that is an error of one line."""
    if path.exists() and not path.is_file():
        raise TouchstoneError(f"{path}: not a file")
    try:
        with replacing(path) as scratch:
            yield scratch
    except OSError as error:
        raise TouchstoneError(f"{path}: cannot be written ({error.strerror or error})") from error
