"""Other systems' files, parsed by several workers at once where that pays.

Parsing JSON, XML and archives in Python takes most of the time of such inputs, and no file depends on another. CSV,
Parquet and plain JSON Lines are left out: Polars scans them with all cores. A file that cannot be read there is read
again by the caller, whose error is then the usual one.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from touchstone.config import InputLimits, WorkerSettings
from touchstone.ingest.adapters import AdapterTable, ReadOptions, read_as
from touchstone.ingest.adapters.formats.plain import JSON_LINES, PARQUET
from touchstone.ingest.limits import use_limits
from touchstone.storage.code_version import package_code_version
from touchstone.workers import WorkerRefusedError, Workers, WorkerState

_SCANNED = (PARQUET.format, JSON_LINES.format)
# Below this, starting processes costs more than it saves.
_LEAST_BYTES = 64 << 20
# The rows of a larger file wait on disk in the process that reads it; those of an archive are a small part of it.
_MOST_BYTES, _ARCHIVE = 256 << 20, ".eval"


@dataclass(frozen=True)
class FileToRead:
    """A file or folder, its format, and what the configuration says about it."""

    path: Path
    format: str
    options: ReadOptions
    limits: InputLimits


@dataclass(frozen=True)
class ReadFile:
    """A table without its rows, and these as data. `hashes` are those of the files as a worker elsewhere saw them."""

    table: AdapterTable
    rows: pl.DataFrame
    hashes: Mapping[Path, str]


class Reader(WorkerState):
    """The state of a worker: whether it is on another machine, where the same path may hold another file."""

    def __init__(self, elsewhere: bool = False) -> None:
        self.elsewhere = elsewhere


def open_remote_reader(code: str) -> Reader:
    """A reader on another machine; refused if its code is another."""
    if package_code_version() != code:
        raise WorkerRefusedError("Touchstone or one of its libraries is another version there")
    return Reader(elsewhere=True)


def read_file(reader: Reader, item: FileToRead) -> ReadFile:
    """Read one file or folder as a whole."""
    use_limits(item.limits)
    table = read_as(item.format, item.path, item.options)
    hashes = _hashes(table.files or (item.path,)) if reader.elsewhere else {}
    plain = replace(table, rows=pl.LazyFrame(), raw_reader=_no_raw, scanned=None, kept=None)
    return ReadFile(plain, table.frame, hashes)


def _no_raw(path: Path, lines: set[int]) -> dict[int, str]:
    """Replaced by one that reads the file again, where it is needed."""
    raise AssertionError(path)


def read_ahead(items: Sequence[FileToRead], settings: WorkerSettings) -> dict[Path, AdapterTable]:
    """The tables that workers have read, by path; empty if there is too little to read, or a single worker."""
    sizes = {item.path: _size(item.path) for item in items if item.format not in _SCANNED}
    sizes = {path: size for path, size in sizes.items() if size <= _MOST_BYTES or path.suffix == _ARCHIVE}
    # The largest first: a long one that starts last would leave the others idle.
    parsed = sorted((item for item in items if item.path in sizes), key=lambda item: -sizes[item.path])
    workers = _workers(settings) if len(parsed) > 1 and sum(sizes.values()) >= _LEAST_BYTES else None
    if workers is None:
        return {}
    try:
        read = [(parsed[place], found) for place, found in workers.map(read_file, parsed)]
    finally:
        workers.close()
    return {item.path: _table(item, found) for item, found in read if isinstance(found, ReadFile) and _is_ours(found)}


def _is_ours(read: ReadFile) -> bool:
    """Whether a worker saw the files that are here."""
    return all(path.is_file() for path in read.hashes) and _hashes(list(read.hashes)) == read.hashes


def _workers(settings: WorkerSettings) -> Workers | None:
    count = settings.count or len(os.sched_getaffinity(0))
    if settings.kind == "dask":
        from touchstone.workers.dask import DaskWorkers

        return DaskWorkers(settings, open_remote_reader, (package_code_version(),))
    if settings.kind == "in_process" or count == 1:
        return None
    from touchstone.workers.processes import ProcessWorkers

    return ProcessWorkers(count, Reader)


def _table(item: FileToRead, read: ReadFile) -> AdapterTable:
    def raw(path: Path, lines: set[int]) -> dict[int, str]:
        # Asked for refused records only, so the file is read again, here.
        return read_as(item.format, path, item.options).raw(lines)

    return replace(read.table, rows=read.rows.lazy(), raw_reader=raw)


def _size(path: Path) -> int:
    """The size of a file, or of all files in a folder."""
    try:
        if not path.is_dir():
            return path.stat().st_size
        return sum(Path(folder, name).lstat().st_size for folder, _, names in os.walk(path) for name in names)
    except OSError:
        return 0


def _hashes(files: Sequence[Path]) -> dict[Path, str]:
    hashes = {}
    for file in files:
        with file.open("rb") as opened:
            hashes[file] = hashlib.file_digest(opened, "sha256").hexdigest()
    return hashes
