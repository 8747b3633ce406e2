"""Generate the docs that follow from declarations: `docs/tables/`, an index and a page per group, and the settings.

The settings come from the models in `touchstone.config`: the string below a field describes it. Run as a module with
`--write docs` or `--check docs`.
"""

import ast
import inspect
import json
import sys
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from touchstone.config import EvaluationConfig
from touchstone.config.formats import JsonFormat
from touchstone.tables import TABLES, Table

_HEAD = """# Tables

Made from the declarations in `touchstone/tables` by `make docs`; do not edit. Each table is a Parquet
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


_SETTINGS_HEAD = """# Configuration

Made from `touchstone/config` by `make docs`; do not edit.

One JSON or TOML file. `touchstone init DIR` writes both: a short JSON file, and the same settings as TOML with
comments. Paths are relative to the file; a leading `~` is your home folder. An unknown key, a key given twice, or a
value that is invalid or out of bounds stops the run with one line that names it.
"""
# Pages that say more about a section.
_MORE = {
    "formats": "own_formats.md",
    "input_limits": "inputs.md#large-files-and-files-that-are-being-written",
    "validation": "validation.md",
    "validation.terraform": "validators/terraform.md",
    "validation.python": "validators/python.md",
    "validation.rust": "validators/rust.md",
    "validation.command": "validators/command.md",
    "workers": "scale.md",
    "intervals": "statistics.md#confidence-intervals",
    "comparison": "ci.md#a-pinned-baseline",
    "scoring": "metrics.md#scores",
    "publish": "looking.md",
    "retention": "deployment.md#retention",
}
_KINDS: dict[Any, str] = {int: "integer", float: "number", str: "text", SecretStr: "text"}
_KINDS |= {Path: "path", list: "list", tuple: "list", dict: "object"}
_SIGNS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
# A bound of this size is a technical one.
_ENDLESS = 2**63 - 1


def settings_page() -> str:
    """Every key with its default, the values it accepts and its meaning, as Markdown."""
    return "\n".join([_SETTINGS_HEAD, *_sections(EvaluationConfig, "")])


def _sections(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """The keys of a model, then its nested sections."""
    meanings = _meanings(model)
    nested = {name: kind for name, field in model.model_fields.items() if (kind := _section_of(field)) is not None}
    if prefix:
        more = f" More: [{_MORE[prefix].partition('#')[0]}]({_MORE[prefix]})." if prefix in _MORE else ""
        yield f"## `{prefix}`\n\n{_summary(model)}{more}\n"
    # Of each entry, where the key is a list of sections.
    within = f"{prefix}[]" if prefix == "formats" else prefix
    rows = [
        f"| `{'.'.join(filter(None, (within, name)))}` | {_default(field)} | {_values(field)} | {meanings[name]} |"
        for name, field in model.model_fields.items()
        if name not in nested
    ]
    if rows:
        yield "\n".join(["| key | default | values | meaning |", "|---|---|---|---|", *rows, ""])
    for name, section in nested.items():
        yield from _sections(section, ".".join(filter(None, (prefix, name))))
    if "formats" in model.model_fields:
        yield from _sections(JsonFormat, "formats")


def _summary(model: type[BaseModel]) -> str:
    paragraph, *_ = (inspect.getdoc(model) or "").partition("\n\n")
    return " ".join(paragraph.split())


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """The string below each field. Pydantic's `use_attribute_docstrings` would read it at every start, in 40 ms."""
    (definition,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: " ".join(str(text.value).split())
        for field, below in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(text := below.value, ast.Constant)
    }


def _section_of(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "required"
    return "" if field.default in (None, ()) else f"`{json.dumps(field.default)}`"


def _values(field: FieldInfo) -> str:
    """The values that a field accepts: its choices, or its kind with the bounds."""
    kind = field.annotation
    if get_origin(kind) is UnionType:
        kind = next(one for one in get_args(kind) if one is not NoneType)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{json.dumps(one)}`" for one in get_args(kind))
    if any(isinstance(rule, BeforeValidator) for rule in field.metadata):
        return "path or list"
    if kind is bool:
        return "`true`, `false`"
    bounds = {
        name: getattr(rule, name) for rule in field.metadata for name in ("gt", "ge", "lt", "le") if hasattr(rule, name)
    }
    shown = [f"{sign} {bounds[name]:,.15g}" for name, sign in _SIGNS.items() if bounds.get(name, _ENDLESS) < _ENDLESS]
    return " ".join([_KINDS.get(get_origin(kind) or kind, "object"), ", ".join(shown)]).strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
