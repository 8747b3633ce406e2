"""DuckDB views, one per table over its Parquet files, and the formulas as SQL macros. `touchstone sql` reads them.

The columns of a table belong in `touchstone.tables`, running SQL in `touchstone.publish.query`, and the DuckDB file
for other programs in `touchstone.publish.warehouse`.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from touchstone.errors import TouchstoneError
from touchstone.publish.macros import macros, sql_text
from touchstone.storage.files import parquet_files
from touchstone.tables import TABLES

if TYPE_CHECKING:
    import duckdb

TABLE_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def create_views(connection: "duckdb.DuckDBPyConnection", tables_dir: Path) -> list[str]:
    """Create one view per table, and the macros with the settings of the run. Returns the table names, sorted."""
    import duckdb

    tables = table_files(tables_dir)
    for name, files in tables.items():
        try:
            connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS SELECT * FROM {parquet_scan(files, name)}')
        except duckdb.Error as error:
            raise TouchstoneError(f"table '{name}' cannot be read: {one_line(str(error))}") from error
    create_macros(connection, tables)
    return list(tables)


def create_macros(connection: "duckdb.DuckDBPyConnection", tables: Mapping[str, list[Path]]) -> None:
    """Create the macros with the settings of the run that produced the tables."""
    for macro in macros(_settings(connection, tables)):
        connection.execute(macro)


def table_files(tables_dir: Path) -> dict[str, list[Path]]:
    """The Parquet files of every table by table name, both sorted."""
    if not tables_dir.is_dir():
        return {}
    folders = sorted(
        folder for folder in tables_dir.resolve().iterdir() if TABLE_NAME.fullmatch(folder.name) and folder.is_dir()
    )
    parts = {folder.name: parquet_files(folder) for folder in folders}
    return {name: files for name, files in parts.items() if files}


def parquet_scan(files: list[Path], table: str) -> str:
    """The FROM clause that reads the files of a table as one relation."""
    # Only where columns of the input travel along do files differ; to unite their columns, every file is opened first.
    unite = str(table not in TABLES or bool(TABLES[table].extras)).lower()
    # With hive_partitioning, a folder such as `run=5` anywhere in the path would become a column.
    paths = ", ".join(sql_text(pattern(file)) for file in files)
    return f"read_parquet([{paths}], union_by_name = {unite}, hive_partitioning = false)"


def require_tables(tables_dir: Path) -> None:
    """Raise if the folder has no tables."""
    if not table_files(tables_dir):
        raise TouchstoneError(
            f"{tables_dir}: no tables here; run `touchstone run` first or pass the output folder as --data"
        )


def pattern(path: Path) -> str:
    """Escape the path for DuckDB, which takes every path for a glob pattern.

    >>> pattern(Path("/runs [1]/a*.parquet"))
    '/runs [[]1]/a[*].parquet'
    """
    return re.sub(r"[\[*?]", r"[\g<0>]", str(path))


def one_line(message: str) -> str:
    """DuckDB's error message and hint on one line, without the excerpt of the statement.

    >>> one_line('Parser Error: syntax error at or near "selec"\\n\\nLINE 1: selec 1\\n        ^^^^^')
    'Parser Error: syntax error at or near "selec"'
    """
    text = re.split(r"\n\s*\n|\nLINE \d+:", message.strip(), maxsplit=1)[0]
    line = " ".join(text.split())
    return line if len(line) <= 500 else line[:499] + "…"


def _settings(connection: "duckdb.DuckDBPyConnection", tables: Mapping[str, list[Path]]) -> dict[str, Any]:
    """The settings of the run; empty if another version produced the tables."""
    import duckdb

    if "settings" not in tables:
        return {}
    try:
        rows = connection.execute(f"SELECT key, value FROM {parquet_scan(tables['settings'], 'settings')}").fetchall()
        return {key: json.loads(value) for key, value in rows}
    except (duckdb.Error, TypeError, ValueError) as error:
        raise TouchstoneError(f"table 'settings' cannot be read: {one_line(str(error))}") from error
