"""Generate `docs/tables.md` from the contracts. Run as a module with `--write FILE` or `--check FILE`."""

import sys
from pathlib import Path

from touchstone.contracts import Table
from touchstone.tables import TABLES

_HEAD = """# Tables

Made from `touchstone/contracts.py` by `make docs`; do not edit. Each table is a Parquet dataset under `tables/` in
the output folder and a table of the same name in `warehouse.duckdb`. Key columns are **bold**.
"""


def data_dictionary() -> str:
    """Every table and column with its type and description, as Markdown."""
    return "\n".join([_HEAD, *(_section(table) for table in TABLES.values())])


def _section(table: Table) -> str:
    lines = [f"## {table.name}", "", f"One row per {table.grain}.", ""]
    if table.extras:
        lines[2] += f" {table.extras}"
    lines += ["| column | type | nullable | meaning |", "|---|---|---|---|"]
    for name, column in table.schema.columns().items():
        shown = f"**{name}**" if name in table.key else name
        nullable = "yes" if column.nullable else "no"
        lines.append(f"| {shown} | {column.dtype} | {nullable} | {column.description} |")
    return "\n".join([*lines, ""])


def main(arguments: list[str]) -> int:
    """Write the file, or check that it is up to date."""
    action, target = arguments[0], Path(arguments[1])
    if action == "--write":
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(data_dictionary())
        return 0
    if target.exists() and target.read_text() == data_dictionary():
        return 0
    print(f"error: {target} is out of date with touchstone/contracts.py; run `make docs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
