"""Parquet files whose rows hold to the contract of their table."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from touchstone.contracts import violations
from touchstone.tables import TABLES
from touchstone.text import counted

if TYPE_CHECKING:
    import polars as pl

_FORMAT: Mapping[str, Any] = {"compression_level": 1, "row_group_size": 250_000}
# The rows of one model are read together: least and largest values would skip nothing, and cost a tenth of writing.
PART_OF_MODEL: Mapping[str, Any] = {
    "statistics": {"min": False, "max": False, "distinct_count": False, "null_count": True},
    **_FORMAT,
}


def write_checked(rows: "pl.LazyFrame", table: str, path: Path, *, in_memory: bool) -> int:
    """Write the rows of a table and return their number. Those that may not fit into memory are read back to check."""
    import polars as pl

    if in_memory:
        frame = rows.collect(engine="streaming")
        if frame.height:
            require_contract(frame.lazy(), table)
        frame.write_parquet(path, **_FORMAT)
        return frame.height
    rows.sink_parquet(path, **_FORMAT)
    written = pl.scan_parquet(path, glob=False)
    require_contract(written, table)
    return int(written.select(pl.len()).collect().item())


def require_contract(rows: "pl.LazyFrame", table: str) -> None:
    """Raise an error if a row violates the contract of its table."""
    broken = violations(rows, TABLES[table])
    if broken:
        shown = ", ".join(f"{rule} ({counted(rows, 'row')})" for rule, rows in broken.items())
        raise ValueError(f"table '{table}' violates its contract: {shown}")
