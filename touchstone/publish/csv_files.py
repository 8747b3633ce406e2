"""Tables as CSV, safe to open in a spreadsheet."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from touchstone.storage.files import FORMULA_STARTS, replacing, spreadsheet_safe

_PIECE = 2**20


def safe_for_spreadsheets(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Prefix text cells and column names that a spreadsheet would run as a formula.

    >>> safe_for_spreadsheets(pl.LazyFrame({"a": ["=1+1", "x"], "b": [-1, 2]})).collect().rows()
    [("'=1+1", -1), ('x', 2)]
    """
    columns = frame.collect_schema()
    cells = [_safe_text(name) if dtype == pl.String else pl.col(name) for name, dtype in columns.items()]
    return frame.select(cell.alias(spreadsheet_safe(name)) for name, cell in zip(columns, cells, strict=True))


def write_csv(frame: pl.LazyFrame, path: Path) -> None:
    """Write a CSV file atomically. Infinity is `inf`, null an empty cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as scratch:
        safe_for_spreadsheets(frame).sink_csv(scratch)


def csv_text(frame: pl.LazyFrame) -> str:
    """The content of the CSV file that `write_csv` would write."""
    return safe_for_spreadsheets(frame).collect(engine="streaming").write_csv()


def csv_pieces(frame: pl.LazyFrame) -> Iterator[str]:
    """The same in pieces, for tables that are larger than memory."""
    with tempfile.TemporaryDirectory(prefix="touchstone-") as folder:
        file = Path(folder, "rows.csv")
        write_csv(frame, file)
        with file.open(encoding="utf-8", newline="") as text:
            while piece := text.read(_PIECE):
                yield piece


def _safe_text(name: str) -> pl.Expr:
    text = pl.col(name)
    return pl.when(text.str.slice(0, 1).is_in(FORMULA_STARTS)).then(pl.lit("'") + text).otherwise(text)
