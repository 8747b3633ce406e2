"""Check one module in Terraform's order: syntax, then loading, then references and schemas."""

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from touchstone.validation.hcl.declarations import (
    Declarations,
    addresses,
    broken_file_addresses,
    broken_json_addresses,
    duplicate_errors,
    json_addresses,
)
from touchstone.validation.hcl.evaluation import LoadedModule
from touchstone.validation.hcl.expressions import RESOURCE_KINDS, ScopedExpression, scoped_expressions
from touchstone.validation.hcl.json_syntax import NoBlockError, native_text, read_json
from touchstone.validation.hcl.loading import ROOT, has_expected_labels, load_errors
from touchstone.validation.hcl.parsing import MAX_NESTING, Block, SourceText, parse, source, syntax_errors
from touchstone.validation.hcl.schema import body_errors, read_schemas
from touchstone.validation.hcl.values import is_of_provider
from touchstone.validation.judging.removed_blocks import CHECKED, SCHEMA, Address
from touchstone.validation.protocol import Diagnostic, Report

_LOCAL = re.compile(r'"(\.\.?(?:/[^"$%\\]*)?)"')
_REMEMBERED = 64


class UnreadableError(ValueError):
    """A file cannot be checked, although Terraform may accept it."""


def check_module(files: Mapping[str, bytes], schema: str | None, folders: Collection[str] | None = None) -> Report:
    """Check the `.tf`, `.tofu` and `.tf.json` files of one module directory, given by path within the tree.

    `schema` is the JSON of `terraform providers schema -json`, or the part for one provider or some types. Raises
    ValueError if it is not, and UnreadableError if only one of the two parsers accepts a file. `folders` are those of
    the tree, if known: modules are called from there.
    """
    schema = schema if schema and not schema.isspace() else None
    schemas = read_schemas(schema)
    paths = sorted(path for path in files if not is_ignored(path))
    merged = any(is_override(path) for path in paths)
    read = {path: read_file(path, files[path], merged) for path in paths}
    broken = [error for file in read.values() for error in file.broken]
    for path, file in read.items():
        if file.unreadable and not broken:
            raise UnreadableError(f"{path}: Go's HCL parser accepts it and tree-sitter does not, so it is not checked")
    blocks = [block for file in read.values() for block in file.blocks]
    expressions = {block: places for file in read.values() for block, places in file.expressions.items()}
    refused = [error for file in read.values() for error in file.refused]
    names = Declarations()
    names.add(blocks)
    loaded = LoadedModule(blocks, expressions, names, schemas, merged)
    found = broken or [*refused, *duplicate_errors(blocks)] or loaded.errors()
    # Features that could hide errors. A module that does not load may have any calls.
    calls = (call for places in expressions.values() for place in places for call in place.calls)
    unchecked = {
        "overrides": merged,
        "provider functions": bool(broken or refused) or any(map(is_of_provider, calls)),
        "missing modules": bool(broken) or folders is None or _calls_missing_module(blocks, folders),
        "resources in JSON": schema is not None
        and any(block.kind in RESOURCE_KINDS for block in blocks if block.text.is_json),
        "OpenTofu files": any(path.endswith(".tofu") for path in paths),
    }
    native = [block for block in blocks if not block.text.is_json]
    units = [(RESOURCE_KINDS[block.kind], *block.labels) for block in native if block.kind in RESOURCE_KINDS]
    declared = {address for file in read.values() for address in file.declared}
    declared |= {(SCHEMA, unit[1], unit[0]) for unit in units if not schemas.of(unit, names.provider(unit)).open}
    declared |= {(CHECKED, what) for what, there in unchecked.items() if not there}
    return Report(
        "failed" if found else "passed",
        "static+schema" if schema else "static",
        tuple(sorted(found, key=lambda one: (one.file or "", one.line or 0, one.column or 0, one.summary, one.detail))),
        compiled=not broken,
        declared=tuple(sorted(declared)),
        doubts=tuple(loaded.doubts),
    )


def _calls_missing_module(blocks: Sequence[Block], folders: Collection[str]) -> bool:
    """Whether a folder that a `module` block names is not in the tree."""
    for block in blocks:
        argument = block.body.arguments.get("source") if block.kind == "module" else None
        if argument is not None and (local := _LOCAL.fullmatch(source(argument.expression))):
            place = posixpath.normpath(posixpath.join(posixpath.dirname(block.text.path), local[1]))
            if place not in folders and not place.startswith(".."):
                return True
    return False


def is_override(path: str) -> bool:
    """Whether it is an override file, whose blocks are merged into those of other files."""
    name = path.rpartition("/")[2].removesuffix(".json").removesuffix(".tf")
    return name == "override" or name.endswith("_override")


def is_ignored(path: str) -> bool:
    """Whether Terraform ignores a file: hidden files and editor backups."""
    name = path.rpartition("/")[2]
    return name.startswith(".") or name.endswith("~") or (name.startswith("#") and name.endswith("#"))


@dataclass(frozen=True)
class File:
    """A parsed file.

    `broken` are its syntax errors. `blocks` are its root blocks with the expected labels; `refused` are their load
    errors, `expressions` what each evaluates. `declared` are the addresses of all root blocks. `unreadable` is True if
    Go's parser accepts the file and tree-sitter does not, so that nothing is known of it.
    """

    broken: tuple[Diagnostic, ...] = ()
    blocks: tuple[Block, ...] = ()
    refused: tuple[Diagnostic, ...] = ()
    expressions: Mapping[Block, tuple[ScopedExpression, ...]] = field(default_factory=dict)
    declared: tuple[Address, ...] = ()
    unreadable: bool = False


@lru_cache(maxsize=_REMEMBERED)
def read_file(path: str, data: bytes, merged: bool) -> File:
    """Parse and check a file. `merged`: the module has override files.

    Results are cached, since most fixes change one file of several.
    """
    text = SourceText(path, data)
    if path.endswith(".json"):
        return _json_file(text, merged)
    if broken := syntax_errors(text):
        return File(broken=tuple(broken), declared=tuple(broken_file_addresses(text)))
    file = parse(text)
    return File(unreadable=True) if file is None else _parsed(file, merged)


def _json_file(text: SourceText, merged: bool) -> File:
    roots, wrong = read_json(text)
    if wrong:
        return File(broken=(wrong,), declared=tuple(broken_json_addresses(text)))
    declared = tuple(address for root in roots for address in json_addresses(root))
    try:
        native = native_text(text.path, roots)
    except NoBlockError as error:
        return File(refused=(text.error(None, "Incorrect JSON value type", error),), declared=declared)
    except RecursionError:
        return File(refused=(text.error(None, "Nesting too deep", MAX_NESTING),), declared=declared)
    templates = syntax_errors(native)
    file = None if templates else parse(native)
    read = _parsed(file, merged) if file is not None else File(unreadable=not templates, refused=tuple(templates))
    return replace(read, declared=declared)


def _parsed(file: Block, merged: bool) -> File:
    override = is_override(file.text.path)
    for block in file.body.blocks:
        block.override = override
    blocks = tuple(block for block in file.body.blocks if has_expected_labels(block))
    refused = [*body_errors(file, ROOT), *(error for block in blocks for error in load_errors(block))]
    expressions = {} if refused else {block: tuple(scoped_expressions(block, merged)) for block in blocks}
    declared = tuple(addresses(file.body))
    return File(blocks=blocks, refused=tuple(refused), expressions=expressions, declared=declared)
