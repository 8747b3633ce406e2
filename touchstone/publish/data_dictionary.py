"""Generate `docs/tables.md` from the tables' declarations. Run as a module with `--write FILE` or `--check FILE`."""

import sys
from pathlib import Path

from touchstone.tables import TABLES, Table

_HEAD = """# Tables

Made from `touchstone/tables.py` and `touchstone/fields.py` by `make docs`; do not edit. Each table is a Parquet
dataset under `tables/` in the output folder and a table of the same name in `warehouse.duckdb`. Key columns are
**bold**.
"""


def data_dictionary() -> str:
    """Every table and column with its type and description, as Markdown."""
    return "\n".join([_HEAD, *(_section(table) for table in TABLES.values())])


def _section(table: Table) -> str:
    extras = f" {table.extras}" if table.extras else ""
    lines = [f"## {table.name}", "", table.description, f"One row per {table.grain}.{extras}", "", _lineage(table), ""]
    lines += ["| column | type | nullable | meaning |", "|---|---|---|---|"]
    for name, column in table.fields.items():
        shown = f"**{name}**" if name in table.key else name
        nullable = "yes" if column.nullable else "no"
        lines.append(f"| {shown} | {column.dtype} | {nullable} | {column.description} |")
    return "\n".join([*lines, ""])


def _lineage(table: Table) -> str:
    """Where a table comes from: its group, its function, and the tables and settings that it reads."""
    path = f"`{table.code[0].replace('.', '/')}.py`"
    reads = ", ".join(f"[{read}](#{read})" for read in table.reads) or "the input files"
    settings = f" Settings: {', '.join(f'`{key}`' for key in table.settings)}." if table.settings else ""
    if not table.reads and table.settings:
        return f"Group `{table.group}`, `{table.name}` in {path}.{settings}"
    return f"Group `{table.group}`, `{table.name}` in {path}. Reads {reads}.{settings}"


def main(arguments: list[str]) -> int:
    """Write the file, or check that it is up to date."""
    action, target = arguments[0], Path(arguments[1])
    if action == "--write":
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(data_dictionary())
        return 0
    if target.exists() and target.read_text() == data_dictionary():
        return 0
    print(f"error: {target} is out of date; run `make docs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
