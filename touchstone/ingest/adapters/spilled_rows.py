"""Rows of text cells that wait on disk, so that a file of any size can be read in little memory."""

import tempfile
from pathlib import Path

import polars as pl

# Some 40,000 rows. Many such files are in memory at the same time.
MAX_BYTES = 4 << 20


class SpilledRows:
    """Collects frames of text cells with any columns; the files are removed with the last reference to this object."""

    def __init__(self, schema: dict[str, type[pl.DataType]]) -> None:
        self._schema = dict(schema)
        self._frames: list[pl.DataFrame] = []
        self._size = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: list[Path] = []

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in the order of their first use."""
        return list(self._schema)

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows after those that are there."""
        self._schema.update(dict.fromkeys((name for name in frame.columns if name not in self._schema), pl.String))
        self._frames.append(frame)
        self._size += int(frame.estimated_size())
        if self._size > MAX_BYTES:
            self._spill()

    def rows(self) -> pl.LazyFrame:
        """All rows in their order, with all columns; usable as long as this object is."""
        if not self._files:
            return pl.concat([pl.DataFrame(schema=self._schema), *self._frames], how="diagonal").lazy()
        if self._frames:
            self._spill()
        return pl.scan_parquet(
            self._files, glob=False, schema=self._schema, missing_columns="insert", extra_columns="ignore"
        )

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="touchstone-rows-", ignore_cleanup_errors=True)
        path = Path(self._folder.name, f"{len(self._files)}.parquet")
        pl.concat(self._frames, how="diagonal").write_parquet(path, compression="lz4", statistics=False)
        self._files.append(path)
        self._frames, self._size = [], 0
