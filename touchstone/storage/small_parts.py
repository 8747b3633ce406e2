"""Scanning the files of a table. Many small files are kept in memory: opening them costs more than using their rows."""

from pathlib import Path
from typing import TYPE_CHECKING

from touchstone.tables import TABLES

if TYPE_CHECKING:
    import polars as pl

_MIN_FILES = 10
_MAX_ROWS = 10_000


def scan_files(table: str, paths: list[Path]) -> "pl.LazyFrame":
    """The contract's columns of a table."""
    import polars as pl

    dtypes = TABLES[table].dtypes
    if not paths:
        return pl.LazyFrame(schema=dtypes)
    return pl.scan_parquet(paths, glob=False, schema=dtypes, extra_columns="ignore")


class SmallParts:
    """The rows of each table in many small files, as last read."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[list[object], pl.DataFrame]] = {}

    def scan(self, table: str, paths: list[Path], rows: int, fingerprint: object) -> "pl.LazyFrame":
        """The same as `scan_files`, but many files with few rows are read again only if one is another one."""
        if len(paths) < _MIN_FILES or rows > _MAX_ROWS:
            return scan_files(table, paths)
        version = [fingerprint, *((path, seen.st_ino, seen.st_mtime_ns) for path in paths for seen in [path.stat()])]
        known = self._read.get(table)
        if known is None or known[0] != version:
            known = self._read[table] = (version, scan_files(table, paths).collect())
        return known[1].lazy()
