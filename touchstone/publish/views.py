"""The tables as DuckDB sees them: one view per table over its Parquet files, with the formulas as SQL macros beside.

`touchstone sql` reads through these views; the file for other programs is `touchstone.publish.warehouse`. Which columns
a table has belongs in `touchstone.contracts`; people's own SQL runs in `touchstone.publish.query`.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from touchstone.errors import TouchstoneError
from touchstone.publish.macros import macros, sql_text

TABLE_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def create_views(connection: duckdb.DuckDBPyConnection, tables_dir: Path) -> list[str]:
    """Create one view per table, and the macros with the run's settings; returns the tables' names, sorted."""
    tables = table_files(tables_dir)
    for name, files in tables.items():
        try:
            connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS SELECT * FROM {parquet_scan(files)}')
        except duckdb.Error as error:
            raise TouchstoneError(f"table '{name}' cannot be read: {one_line(str(error))}") from error
    create_macros(connection, tables)
    return list(tables)


def create_macros(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, list[Path]]) -> None:
    """Create the macros with the settings of the run that made the tables."""
    for macro in macros(_settings(connection, tables)):
        connection.execute(macro)


def table_files(tables_dir: Path) -> dict[str, list[Path]]:
    """The Parquet files of every table, by name, both sorted. Hidden files are still being written."""
    if not tables_dir.is_dir():
        return {}
    folders = sorted(
        folder for folder in tables_dir.resolve().iterdir() if TABLE_NAME.fullmatch(folder.name) and folder.is_dir()
    )
    parts = {
        folder.name: sorted(file for file in folder.glob("*.parquet") if not file.name.startswith("."))
        for folder in folders
    }
    return {name: files for name, files in parts.items() if files}


def parquet_scan(files: list[Path]) -> str:
    """The files as one relation, for a FROM clause."""
    # Without hive_partitioning=false, a folder such as `run=5` anywhere above would become a column.
    paths = ", ".join(sql_text(pattern(file)) for file in files)
    return f"read_parquet([{paths}], union_by_name = true, hive_partitioning = false)"


def require_tables(tables_dir: Path) -> None:
    """Refuse a folder without tables."""
    if not table_files(tables_dir):
        raise TouchstoneError(
            f"{tables_dir}: no tables here; run `touchstone run` first or give the output folder with --data"
        )


def pattern(path: Path) -> str:
    """The path as DuckDB must read it, which takes every path for a glob pattern.

    >>> pattern(Path("/runs [1]/a*.parquet"))
    '/runs [[]1]/a[*].parquet'
    """
    return re.sub(r"[\[*?]", r"[\g<0>]", str(path))


def one_line(message: str) -> str:
    """What DuckDB has to say, hint included, without its drawing of the statement.

    >>> one_line('Parser Error: syntax error at or near "selec"\\n\\nLINE 1: selec 1\\n        ^^^^^')
    'Parser Error: syntax error at or near "selec"'
    """
    said = re.split(r"\n\s*\n|\nLINE \d+:", message.strip(), maxsplit=1)[0]
    line = " ".join(said.split())
    return line if len(line) <= 500 else line[:499] + "…"


def _settings(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, list[Path]]) -> dict[str, Any]:
    """The settings that the run was made with; none where another version made it."""
    if "settings" not in tables:
        return {}
    try:
        rows = connection.execute(f"SELECT key, value FROM {parquet_scan(tables['settings'])}").fetchall()
        return {key: json.loads(value) for key, value in rows}
    except (duckdb.Error, TypeError, ValueError) as error:
        raise TouchstoneError(f"table 'settings' cannot be read: {one_line(str(error))}") from error
