"""What is shown, as a file: CSV that is safe to open in a spreadsheet, or Parquet with every digit and type."""

import io
from typing import TYPE_CHECKING

import polars as pl

from touchstone.publish.csv_files import csv_text
from touchstone.publish.result_formats import format_result

if TYPE_CHECKING:
    import pyarrow as pa


def csv_bytes(rows: "pl.DataFrame | pa.Table") -> bytes:
    """The rows as `touchstone export` writes them; the result of a query as `touchstone sql` does.

    >>> csv_bytes(pl.DataFrame({"name": ["=cmd()"], "n": [1]}))
    b"name,n\\n'=cmd(),1\\n"
    """
    return (csv_text(rows.lazy()) if isinstance(rows, pl.DataFrame) else format_result(rows, "csv")).encode()


def parquet_bytes(rows: "pl.DataFrame | pa.Table") -> bytes:
    """The rows with their types."""
    buffer = io.BytesIO()
    if isinstance(rows, pl.DataFrame):
        rows.write_parquet(buffer)
    else:
        import pyarrow.parquet as pq

        pq.write_table(rows, buffer, compression="zstd")
    return buffer.getvalue()
