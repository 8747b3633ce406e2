"""Parquet files as text cells, scanned by Polars and never held in memory.

A small file may claim any number of rows, so the footer is checked before anything is decoded, and the whole file is
decoded once before it is used: what can be read then can be read later.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.table import first_line
from touchstone.ingest.csv_rows import LINE, MAX_RAW_LENGTH, ROW_ERROR, ROW_ERROR_KIND, readable
from touchstone.ingest.limits import (
    MAX_COLUMNS,
    PARQUET_CELLS_PER_BYTE,
    PARQUET_FOOTER_BYTES,
    PARQUET_FREE_CELLS,
    PARQUET_FREE_TEXT,
    PARQUET_GROUP_BYTES,
    PARQUET_GROUP_ROWS,
    PARQUET_ROWS,
    PARQUET_TEXT_PER_BYTE,
    TOO_LARGE,
    limits,
    too_long,
)

MAGIC = b"PAR1"
_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def schema_names(path: Path) -> list[str]:
    """The names of the columns; raises `InputFileError` if the footer is broken or claims absurd sizes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def refuse(reason: str) -> NoReturn:
        raise InputFileError(f"{path}: {reason}")

    try:
        with readable(path), path.open("rb") as file:
            size = file.seek(0, 2)
            end = file.read(8) if size >= 8 and file.seek(-8, 2) >= 0 else b""
            length = int.from_bytes(end[:4], "little")
            if end[4:] != MAGIC or length + 12 > size:
                refuse("broken Parquet (the end is missing)")
            if length > PARQUET_FOOTER_BYTES:
                refuse(f"broken Parquet (its footer has {length:,} bytes)")
            metadata = pq.ParquetFile(path).metadata
            groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
            names = [str(name) for name in metadata.schema.to_arrow_schema().names]
    except (pa.ArrowException, ValueError, OverflowError, RecursionError) as error:
        refuse(f"broken Parquet ({first_line(error)})")
    # Decoding follows the row groups, whatever the footer says of the whole file.
    rows = max(metadata.num_rows, sum(group.num_rows for group in groups))
    if rows > PARQUET_ROWS:
        refuse(f"{rows:,} rows; at most {PARQUET_ROWS:,} are read")
    if rows * len(names) > PARQUET_FREE_CELLS + PARQUET_CELLS_PER_BYTE * size:
        refuse(f"{size:,} bytes claim to hold {rows:,} rows, over {PARQUET_CELLS_PER_BYTE:,} cells a byte")
    for group in groups:
        claimed = f"a row group of {group.num_rows:,} rows and {group.total_byte_size:,} bytes"
        if group.num_rows < 0 or group.total_byte_size < 0:
            refuse(f"broken Parquet ({claimed})")
        if group.num_rows > PARQUET_GROUP_ROWS or group.total_byte_size > PARQUET_GROUP_BYTES:
            most = f"at most {PARQUET_GROUP_ROWS:,} rows and {PARQUET_GROUP_BYTES:,} bytes"
            refuse(f"{claimed} is too large ({most}); write smaller row groups")
    twice = next((name for name in names if names.count(name) > 1), None) if len(names) <= MAX_COLUMNS else "…"
    if twice is not None:
        refuse(f"the column '{twice}' appears twice, or there are too many columns")
    return names


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
        longest, size = _text_sizes(rows)
    except _BROKEN as error:
        raise InputFileError(f"{path}: broken Parquet ({first_line(error)})") from None
    packed = path.stat().st_size
    if size > PARQUET_FREE_TEXT + PARQUET_TEXT_PER_BYTE * packed:
        most = f"over {PARQUET_TEXT_PER_BYTE:,} times its size"
        raise InputFileError(f"{path}: {packed:,} bytes unpack to {size:,} bytes of text, {most}; not read")
    too_large = pl.lit(False)
    if longest > limits().cell_bytes:
        too_large = pl.any_horizontal(pl.col(name).str.len_bytes() > limits().cell_bytes for name in names)
    reason = too_long("a cell", limits().cell_mb, "cell_mb")
    return rows.with_columns(
        pl.col(LINE).cast(pl.Int64),
        pl.when(too_large).then(pl.lit(TOO_LARGE)).alias(ROW_ERROR_KIND),
        pl.when(too_large).then(pl.lit(reason)).alias(ROW_ERROR),
    )


def _text_sizes(rows: pl.LazyFrame) -> tuple[int, int]:
    """The bytes of the longest cell, and of all. Every cell is decoded: what can be read now can be read later."""
    lengths = pl.all().exclude(LINE).str.len_bytes().cast(pl.Int64)
    sizes = rows.select(lengths.max().fill_null(0).name.prefix("longest "), lengths.sum().name.prefix("all ")).collect(
        engine="streaming"
    )
    width = len(sizes.columns) // 2
    found = sizes.row(0)
    return max(found[:width], default=0), sum(found[width:])


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
