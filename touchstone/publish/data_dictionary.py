"""Generate the docs that follow from declarations: `docs/tables/`, an index and a page per group, and the settings.

Run as a module with `--write docs` or `--check docs`.
"""

import sys
from itertools import groupby
from pathlib import Path

from touchstone.publish.settings_page import settings_page
from touchstone.tables import TABLES, Table

_HEAD = """# Tables

Made from the declarations in `touchstone/tables.py` by `make docs`; do not edit. Each table is a Parquet
dataset under `tables/` in the output folder and a table of the same name in `warehouse.duckdb`. On the pages, key
columns are **bold**.

| table | one row per | page |
|---|---|---|
"""


def generated_pages() -> dict[str, str]:
    """Every generated page by its path in `docs`, as Markdown."""
    index = "".join(f"| [{t.name}]({_link(t)}) | {t.grain} | [{t.group}]({t.group}.md) |\n" for t in TABLES.values())
    by_group = groupby(sorted(TABLES.values(), key=lambda table: table.group), key=lambda table: table.group)
    pages = {f"tables/{group}.md": _page(group, list(tables)) for group, tables in by_group}
    return {"configuration.md": settings_page(), "tables/README.md": _HEAD + index, **pages}


def _page(group: str, tables: list[Table]) -> str:
    return "\n".join([f"# Tables of the group {group}\n", "[All tables](README.md)\n", *map(_section, tables)])


def _section(table: Table) -> str:
    """A table with its columns, their types and descriptions, and the tables and settings that it reads."""
    extras = f" {table.extras}" if table.extras else ""
    reads = ", ".join(f"[{name}]({_link(TABLES[name])})" for name in table.reads)
    settings = ", ".join(f"`{key}`" for key in table.settings)
    sources = [f"Reads {reads}."] if reads else [] if settings else ["Reads the input files."]
    sources += [f"Settings: {settings}."] if settings else []
    lines = [f"## {table.name}", "", f"{table.description} One row per {table.grain}.{extras} {' '.join(sources)}", ""]
    lines += ["| column | type | nullable | meaning |", "|---|---|---|---|"]
    for name, column in table.fields.items():
        shown = f"**{name}**" if name in table.key else name
        nullable = "yes" if column.nullable else "no"
        lines.append(f"| {shown} | {column.dtype} | {nullable} | {column.description} |")
    return "\n".join([*lines, ""])


def _link(table: Table) -> str:
    return f"{table.group}.md#{table.name}"


def main(arguments: list[str]) -> int:
    """Write the pages into a folder, or check that those in it are up to date."""
    action, docs = arguments[0], Path(arguments[1])
    pages = {docs / name: text for name, text in generated_pages().items()}
    left_over = set((docs / "tables").glob("*.md")) - set(pages)
    if action == "--write":
        (docs / "tables").mkdir(parents=True, exist_ok=True)
        for page, text in pages.items():
            page.write_text(text)
        for page in left_over:
            page.unlink()
        return 0
    stale = [page for page, text in pages.items() if not page.exists() or page.read_text() != text]
    for page in [*stale, *left_over]:
        print(f"error: {page} is out of date; run `make docs`", file=sys.stderr)
    return 1 if stale or left_over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
