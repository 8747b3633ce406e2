"""Folders that a harness writes, read as one source: their subfolders, their JSON documents, and where a record was.

Everything is bounded, because such a folder also holds what the evaluated model wrote.
"""

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from touchstone.errors import InputFileError, reason_of
from touchstone.ingest.adapters.json_files import object_of, parse_document, read_text
from touchstone.ingest.adapters.table import RawReader, RefusedRecordError
from touchstone.ingest.compressed import ENDINGS, open_input
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH
from touchstone.regular_files import open_regular

# A run of 2,000 problems with 50 attempts each; a larger folder is not a run of one harness.
MAX_SUBFOLDERS = 100_000
# A document is held in memory, at about ten times its size. Results without transcripts have a few MB.
MAX_DOCUMENT_BYTES = 128 << 20
# Of the subfolders that tell what a folder is: some hold nothing, for example after a crash.
_PROBED = 20


def subfolders(folder: Path) -> list[Path]:
    """The folders directly inside this one by name, without hidden ones."""
    found = list(islice(_subfolders(folder), MAX_SUBFOLDERS + 1))
    if len(found) > MAX_SUBFOLDERS:
        raise InputFileError(f"{folder}: more than {MAX_SUBFOLDERS:,} folders; read fewer of them at a time")
    return sorted(found)


def some_subfolders(folder: Path) -> list[Path]:
    """A few of the folders directly inside this one, to recognize what they are; none if it cannot be read."""
    try:
        return list(islice(_subfolders(folder), _PROBED))
    except InputFileError:
        return []


def _subfolders(folder: Path) -> Iterator[Path]:
    return (folder / entry.name for entry in _entries(folder) if not entry.name.startswith(".") and is_folder(entry))


def files_in(folder: Path, *suffixes: str) -> list[Path]:
    """The files directly inside a folder whose names end like this, sorted."""
    return sorted(folder / entry.name for entry in _entries(folder) if entry.name.endswith(suffixes) and is_file(entry))


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        raise InputFileError(f"{folder}: cannot be read ({error.strerror})") from None


def is_file(path: Path | os.DirEntry[str]) -> bool:
    """Whether this is a file; false also if that cannot be found out: no permission, a loop of links, a long name."""
    try:
        return path.is_file()
    except OSError:
        return False


def beside(path: Path, name: str) -> Path:
    """The file of this name in the folder of another, or its compressed form if only that is there."""
    forms = [path.with_name(name + ending) for ending in ("", *ENDINGS)]
    return next((form for form in forms if is_file(form)), forms[0])


def is_folder(path: Path | os.DirEntry[str]) -> bool:
    """Whether this is a folder; see `is_file`."""
    try:
        return path.is_dir()
    except OSError:
        return False


def bounded_document(path: Path, max_bytes: int = MAX_DOCUMENT_BYTES) -> object:
    """The value of a JSON file that is not too large to be held in memory."""
    return parse_document(path, read_text(path, max_bytes))


def object_in(path: Path, what: str) -> dict[str, object]:
    """The object in a JSON file; what is wrong with the file refuses the record that it holds."""
    try:
        document = bounded_document(path)
    except InputFileError as error:
        reason = reason_of(error, path)
        raise RefusedRecordError("ragged", f"{path.parent.name}/{path.name}: {reason}") from None
    return object_of(document, what)


def object_beside(path: Path, name: str) -> tuple[list[Path], dict[str, object]]:
    """The file of this name beside another, and the object in it; nothing if there is none that can be read."""
    file = beside(path, name)
    try:
        return [file], object_in(file, "file")
    except RefusedRecordError:
        return [], {}


def text_in(path: Path, max_bytes: int) -> str | None:
    """The text of a file beside a record, the last part of a larger one; None if there is none."""
    try:
        with open_regular(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - max_bytes))
            return file.read(max_bytes).decode("utf-8", errors="replace")
    except OSError:
        return None


def raw_from_files(files: Mapping[int, Path]) -> RawReader:
    """Read the raw text of a record from the file it came from, by the number of the record."""

    def raw(_: Path, lines: set[int]) -> dict[int, str]:
        return {line: _start(files[line])[:MAX_RAW_LENGTH] for line in lines if line in files}

    return raw


def _start(path: Path) -> str:
    try:
        with open_input(path) as file:
            return file.read(4 * MAX_RAW_LENGTH).decode("utf-8", errors="replace")
    except (OSError, InputFileError):
        return ""
