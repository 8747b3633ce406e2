"""Parquet files as text cells, scanned by Polars and never held in memory.

A small file may claim any number of rows, so the footer is checked before anything is decoded, and the whole file is
decoded once before it is used: what can be read then can be read later.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.table import ROW_ERROR_KIND, first_line
from touchstone.ingest.csv_rows import LINE, MAX_RAW_LENGTH, ROW_ERROR, readable

MAGIC = b"PAR1"
# Ten times the largest evaluation that was ever tried.
_MAX_ROWS = 100_000_000
# A row group is decoded at once: this many rows of it, or bytes before compression.
_MAX_GROUP_ROWS = 20_000_000
_MAX_GROUP_BYTES = 4 << 30
_MAX_FOOTER_BYTES = 64 << 20
_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def schema_names(path: Path) -> list[str]:
    """The names of the columns; raises `InputFileError` if the footer is broken or claims absurd sizes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with readable(path), path.open("rb") as file:
            _check_footer(path, file.seek(0, 2), file.seek(-8, 2) and file.read(8))
            metadata = pq.ParquetFile(path).metadata
            groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
            names = [str(name) for name in metadata.schema.to_arrow_schema().names]
    except (pa.ArrowException, ValueError, OverflowError, RecursionError) as error:
        raise InputFileError(f"{path}: broken Parquet ({first_line(error)})") from None
    if metadata.num_rows > _MAX_ROWS:
        raise InputFileError(f"{path}: {metadata.num_rows:,} rows; at most {_MAX_ROWS:,} are read")
    for group in groups:
        if group.num_rows > _MAX_GROUP_ROWS or group.total_byte_size > _MAX_GROUP_BYTES:
            raise InputFileError(
                f"{path}: a row group of {group.num_rows:,} rows and {group.total_byte_size:,} bytes is too large "
                f"(at most {_MAX_GROUP_ROWS:,} rows and {_MAX_GROUP_BYTES:,} bytes); write smaller row groups"
            )
    twice = next((name for name in names if names.count(name) > 1), None) if len(names) <= 10_000 else "…"
    if twice is not None:
        raise InputFileError(f"{path}: the column '{twice}' appears twice, or there are too many columns")
    return names


def _check_footer(path: Path, size: int, end: bytes | int) -> None:
    length = int.from_bytes(end[:4], "little") if isinstance(end, bytes) else -1
    if not isinstance(end, bytes) or end[4:] != MAGIC or length + 12 > size:
        raise InputFileError(f"{path}: broken Parquet (the end is missing)")
    if length > _MAX_FOOTER_BYTES:
        raise InputFileError(f"{path}: broken Parquet (its footer has {length:,} bytes)")


def scan_parquet_text(path: Path, names: Sequence[str]) -> pl.LazyFrame:
    """The rows with every cell as text, under these column names; rows are numbered from 1."""
    try:
        scan = pl.scan_parquet(path, glob=False)
        schema = scan.collect_schema()
        cells = [
            _text(pl.col(theirs), dtype).alias(ours)
            for ours, (theirs, dtype) in zip(names, schema.items(), strict=True)
        ]
        rows = scan.select(cells).with_row_index(LINE, offset=1)
        rows.select(pl.all().null_count()).collect(engine="streaming")
    except _BROKEN as error:
        raise InputFileError(f"{path}: broken Parquet ({first_line(error)})") from None
    nothing = pl.lit(None, pl.String)
    return rows.with_columns(pl.col(LINE).cast(pl.Int64), nothing.alias(ROW_ERROR_KIND), nothing.alias(ROW_ERROR))


def raw_parquet(path: Path, rows: set[int]) -> dict[int, str]:
    """These rows as JSON, truncated."""
    wanted = pl.LazyFrame({LINE: sorted(rows)}, schema={LINE: pl.Int64})
    scan = scan_parquet_text(path, schema_names(path)).drop(ROW_ERROR_KIND, ROW_ERROR)
    found = scan.join(wanted, on=LINE, how="semi").collect(engine="streaming")
    return {row.pop(LINE): json.dumps(row, ensure_ascii=False)[:MAX_RAW_LENGTH] for row in found.iter_rows(named=True)}


def _text(cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """A typed value as the text that a CSV would have."""
    if dtype.is_nested():
        return cell.map_batches(_as_json, return_dtype=pl.String, is_elementwise=True)
    if dtype.is_float():
        return pl.when(cell.is_not_nan()).then(cell).cast(pl.String)
    if dtype.is_temporal():
        return cell.dt.to_string("iso:strict") if dtype != pl.Time else cell.cast(pl.String)
    text = cell.cast(pl.String)
    return pl.when(text != "").then(text)


def _as_json(values: pl.Series) -> pl.Series:
    def encoded(value: object) -> str | None:
        plain = value.to_list() if isinstance(value, pl.Series) else value
        return None if plain is None else json.dumps(plain, ensure_ascii=False, default=str)

    return pl.Series(values.name, [encoded(value) for value in values.to_list()], dtype=pl.String)
