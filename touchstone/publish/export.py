"""`touchstone export`: one table of a run, or some of its columns, as text or a file.

CSV and Parquet files are streamed, so they may be larger than memory. The other formats belong in
`touchstone.publish.result_formats`.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.publish.csv_files import csv_pieces, safe_for_spreadsheets
from touchstone.publish.formats import saving
from touchstone.publish.views import require_tables, table_files
from touchstone.text import near

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 20_000


def export_text(tables_dir: Path, table: str, fmt: str, columns: Sequence[str] = ()) -> Iterator[str]:
    """The table as csv, json, latex or markdown, in pieces."""
    rows = scan_table(tables_dir, table, columns)
    if fmt == "csv":
        yield from csv_pieces(rows)
        return
    from touchstone.publish.result_formats import result_text  # Imports pyarrow, which CSV does not need.

    with _in_batches(rows) as batches:
        yield from result_text(batches, fmt)


@contextmanager
def _in_batches(rows: pl.LazyFrame) -> Iterator["pa.RecordBatchReader"]:
    """The rows, batch by batch, from a temporary file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(prefix="touchstone-") as folder:
        file = Path(folder, "rows.parquet")
        rows.sink_parquet(file)
        with pq.ParquetFile(file) as stored:
            yield pa.RecordBatchReader.from_batches(stored.schema_arrow, stored.iter_batches(_BATCH_ROWS))


def save_export(tables_dir: Path, table: str, fmt: str, columns: Sequence[str], path: Path) -> None:
    """Write the table to a file atomically."""
    rows = scan_table(tables_dir, table, columns)
    if fmt == "csv":
        with saving(path) as scratch:
            path.parent.mkdir(parents=True, exist_ok=True)
            safe_for_spreadsheets(rows).sink_csv(scratch)
    elif fmt == "parquet":
        with saving(path) as scratch:
            rows.sink_parquet(scratch)
    else:
        from touchstone.publish.result_formats import save_result

        with _in_batches(rows) as batches:
            save_result(batches, fmt, path)


def scan_table(tables_dir: Path, table: str, columns: Sequence[str] = ()) -> pl.LazyFrame:
    """Scan all parts of a table; a column that a part lacks is null there."""
    require_tables(tables_dir)
    files = table_files(tables_dir)
    if table not in files:
        raise TouchstoneError(f"there is no table '{table}' ({near(table, files, 'tables')})")
    for file in files[table]:
        try:
            pl.read_parquet_schema(file)
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0]
            raise TouchstoneError(f"{file}: is damaged ({reason}); `touchstone run` makes it again") from None
    rows = pl.concat([pl.scan_parquet(file, glob=False) for file in files[table]], how="diagonal")
    present = rows.collect_schema().names()
    for name in columns:
        if name not in present:
            raise TouchstoneError(f"the table '{table}' has no column '{name}' ({near(name, present, 'columns')})")
    return rows.select(columns) if columns else rows
