"""The warehouse: one self-contained DuckDB file with every table, and the formulas as macros.

It holds the rows themselves. Views over the Parquet files would keep absolute paths: in a copied folder they would read
the original, or fail once that is gone. It is built again whenever a table changed: updating the rows of one changed
model in a copy takes as long (2.8 s against 2.9 s of CPU with 98 models). Reading the tables belongs in
`touchstone.publish.views`.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from touchstone.errors import TouchstoneError
from touchstone.publish import views
from touchstone.publish.views import create_macros, one_line, parquet_scan, table_files
from touchstone.regular_files import read_json_object
from touchstone.storage.files import link_or_copy, replacing
from touchstone.storage.store import digest
from touchstone.text import counted

_THIS = sys.modules[__name__]
# Mean bytes per value in Parquet above which text is compressed by zstd: three times as fast and 20 times as small.
_LONG_TEXT = 64
# Below this many bytes it is not worth the statements, and of few values most bytes are Parquet's own.
_MUCH_TEXT = 2**16

_STAMP = {"made_from": str, "tables": list, "left_out": dict}

_DATABASE: dict[str, str | bool | int | float | list[str]] = {
    # With DuckDB's default of 256 KiB, a file of many small tables is seven times as large.
    "default_block_size": "16384",
    # A second thread adds a quarter to the CPU time, and one writes a million values in less than a second.
    "threads": "1",
    # What it has written stays in memory otherwise, up to most of the machine's.
    "memory_limit": "256MB",
    # Other tools bring a DuckDB of their own, often an older one: any from 1.2 on can read the file.
    "storage_compatibility_version": "v1.2.0",
}


@dataclass(frozen=True)
class Warehouse:
    """The tables in a warehouse file, and the row counts of those that are too large for it."""

    tables: list[str]
    left_out: dict[str, int]


def build_warehouse(path: Path, tables_dir: Path, left_out: Mapping[str, int]) -> Warehouse:
    """Write the tables and macros to a DuckDB file, atomically; `left_out` has the rows of tables too large for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as scratch:
        with duckdb.connect(str(scratch), config=_DATABASE) as connection:
            # One transaction: a commit per statement would wait for the disk each time.
            connection.begin()
            files = table_files(tables_dir)
            create_macros(connection, files)
            made = _copy_tables(connection, files, left_out)
            connection.commit()
        # A write-ahead log that a killed reader left behind belongs to the old file and would corrupt the new one.
        path.with_name(path.name + ".wal").unlink(missing_ok=True)
    return made


def publish_warehouse(path: Path, tables_dir: Path, last: Path, version: str, left_out: Mapping[str, int]) -> Warehouse:
    """Link to the last warehouse if it was made from this version of the tables and is unmodified, else build one."""
    code = [duckdb.__version__, *(Path(module.__file__ or "").read_text() for module in (_THIS, views))]
    made_from = digest([version, dict(left_out), code])
    found = _read_stamp(last)
    if found is not None and found["made_from"] == made_from:
        link_or_copy(last.resolve(), path)
        made = Warehouse(found["tables"], found["left_out"])
    else:
        made = build_warehouse(path, tables_dir, left_out)
    with replacing(_stamp_of(path)) as scratch:
        scratch.write_text(json.dumps({"made_from": made_from, "state": _state(path), **asdict(made)}))
    return made


def _copy_tables(
    connection: duckdb.DuckDBPyConnection, files: dict[str, list[Path]], left_out: Mapping[str, int]
) -> Warehouse:
    made = Warehouse([], {})
    for name, parts in files.items():
        try:
            if name in left_out:
                _create_failing_view(connection, name, left_out[name])
                made.left_out[name] = left_out[name]
            else:
                _copy_table(connection, name, parts)
                made.tables.append(name)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise TouchstoneError(f"table '{name}' cannot be read: {one_line(str(error))}") from error
    return made


def _copy_table(connection: duckdb.DuckDBPyConnection, name: str, parts: list[Path]) -> None:
    long_text = _long_text([pq.read_metadata(part) for part in parts])
    rows = f"SELECT * FROM {parquet_scan(parts, name)}"
    if not long_text:
        connection.execute(f'CREATE TABLE "{name}" AS {rows}')
        return
    columns = [
        f"{_identifier(column)} {kind}" + (" USING COMPRESSION zstd" if column in long_text else "")
        for column, kind, *_ in connection.execute(f"DESCRIBE {rows}").fetchall()
    ]
    connection.execute(f'CREATE TABLE "{name}" ({", ".join(columns)})')
    connection.execute(f'INSERT INTO "{name}" {rows}')


def _long_text(footers: list[pq.FileMetaData]) -> set[str]:
    """The text columns whose values are long, by what the Parquet files say about themselves."""
    size, values = Counter[str](), Counter[str]()
    for footer in footers:
        for group in map(footer.row_group, range(footer.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                if chunk.physical_type == "BYTE_ARRAY":
                    size[chunk.path_in_schema] += chunk.total_uncompressed_size
                    values[chunk.path_in_schema] += chunk.num_values
    return {column for column in size if size[column] > max(_MUCH_TEXT, _LONG_TEXT * values[column])}


def _create_failing_view(connection: duckdb.DuckDBPyConnection, name: str, rows: int) -> None:
    """Create a view that fails to bind: an empty table or an `error()` could be optimised into a wrong answer."""
    message = _identifier(
        f"{name} is not in this file ({counted(rows, 'row')}): use `touchstone sql`, which reads the Parquet files"
    )
    connection.execute(f"CREATE TABLE {message} (absent BOOLEAN)")
    connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {message}')
    connection.execute(f"DROP TABLE {message}")


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _stamp_of(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _state(path: Path) -> list[int] | None:
    """Size and modification time, which change when something writes to the file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns]


def _read_stamp(path: Path) -> dict[str, Any] | None:
    """The record of how a warehouse was made; None if there is none or somebody changed the file."""
    stamp = read_json_object(_stamp_of(path.resolve()))
    if any(not isinstance(stamp.get(name), kind) for name, kind in _STAMP.items()):
        return None
    # A write-ahead log is there if somebody writes to the file, or was killed then.
    is_written_to = path.resolve().with_name(path.resolve().name + ".wal").exists()
    return None if is_written_to or stamp.get("state") != _state(path) else stamp
