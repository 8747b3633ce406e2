"""Check one module in Terraform's order: syntax, then loading, then references and schemas."""

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from touchstone.validation.hcl.declarations import Declarations, declare, declare_plain
from touchstone.validation.hcl.duplicates import duplicate_errors
from touchstone.validation.hcl.evaluation import evaluation_errors
from touchstone.validation.hcl.files import File, is_ignored, is_override, read_file
from touchstone.validation.hcl.functions import is_of_provider
from touchstone.validation.hcl.schema import Schemas, read_schemas
from touchstone.validation.hcl.scopes import RESOURCE_KINDS
from touchstone.validation.hcl.tree import source
from touchstone.validation.hcl.values import Doubt
from touchstone.validation.judging.removed_blocks import CHECKED, JSON, SCHEMA, Address
from touchstone.validation.protocol import Diagnostic

_LOCAL = re.compile(r'"(\.\.?(?:/[^"$%\\]*)?)"')


@dataclass(frozen=True)
class ModuleFindings:
    """The diagnostics of a module, and the fidelity of the check.

    `compiled` is True if every file parses. `declared` are the addresses of the module's root blocks.
    `doubts` are what is not judged, each with its reason and the text in question.
    """

    fidelity: str
    diagnostics: tuple[Diagnostic, ...]
    compiled: bool
    declared: tuple[Address, ...] = ()
    doubts: tuple[Doubt, ...] = ()


class UnreadableError(ValueError):
    """A file cannot be checked, although Terraform may accept it."""


def check_module(
    files: Mapping[str, bytes], schema: str | None, folders: Collection[str] | None = None
) -> ModuleFindings:
    """Check the `.tf`, `.tofu` and `.tf.json` files of one module directory, given by path within the tree.

    `schema` is the JSON of `terraform providers schema -json`, or the part for one provider or some types. Raises
    ValueError if it is not, and UnreadableError if only one of the two parsers accepts a file. `folders` are those of
    the tree, if known: modules are called from there.
    """
    schema = schema if schema and not schema.isspace() else None
    schemas = read_schemas(schema)
    paths = sorted(path for path in files if not is_ignored(path))
    merged = any(is_override(path) for path in paths)
    read = [read_file(path, files[path], merged) for path in paths]
    broken = [error for file in read for error in file.broken]
    for path, file in zip(paths, read, strict=True):
        if file.unreadable and not broken:
            raise UnreadableError(f"{path}: Go's HCL parser accepts it and tree-sitter does not, so it is not checked")
    names = _declarations(read)
    in_json = [
        (path, address[1:])
        for path, file in zip(paths, read, strict=True)
        for address in file.declared
        if address[0] == JSON and not is_override(path)
    ]
    found, doubts = broken or _load_errors(read, in_json), list[Doubt]()
    if not found:
        found, doubts = _evaluation_errors(read, names, schemas, merged)
    ordered = tuple(sorted(found, key=_reading_order))
    declared = {address for file in read for address in file.declared} | _with_schema(read, names, schemas)
    unchecked = {
        **_unchecked(read, merged),
        "missing modules": _calls_missing_module(read, folders),
        "resources in JSON": schema is not None and any(address[0] in RESOURCE_KINDS for _, address in in_json),
        "OpenTofu files": any(path.endswith(".tofu") for path in paths),
    }
    declared |= {(CHECKED, what) for what, there in unchecked.items() if not there}
    return ModuleFindings(
        "static+schema" if schema else "static", ordered, not broken, tuple(sorted(declared)), tuple(doubts)
    )


def _unchecked(files: Sequence[File], merged: bool) -> dict[str, bool]:
    """What could hide errors, and whether the module has it. In a module that does not load, it may have any calls."""
    calls = (call for file in files for references in file.expression_references for call in references.calls)
    unloaded = any(file.broken or file.refused for file in files)
    return {"overrides": merged, "provider functions": unloaded or any(is_of_provider(call) for call in calls)}


def _calls_missing_module(files: Sequence[File], folders: Collection[str] | None) -> bool:
    """Whether a folder that a `module` block names is not in the tree; a module that is not read may call any."""
    if folders is None or any(file.broken for file in files):
        return True
    calls = (block for file in files for block in file.blocks if block.kind == "module")
    sources = ((call.text.path, call.body.arguments.get("source")) for call in calls)
    named = ((path, _LOCAL.fullmatch(source(argument.expression))) for path, argument in sources if argument)
    places = (posixpath.normpath(posixpath.join(posixpath.dirname(path), local[1])) for path, local in named if local)
    return any(place not in folders for place in places if not place.startswith(".."))


def _load_errors(files: Sequence[File], in_json: Sequence[tuple[str, Address]]) -> list[Diagnostic]:
    refused = [error for file in files for error in file.refused]
    return refused + list(duplicate_errors((block for file in files for block in file.blocks), in_json))


def _declarations(files: Sequence[File]) -> Declarations:
    declared = Declarations()
    for file in files:
        for block in file.blocks:
            declare(declared, block)
        for content in file.content:
            declare_plain(declared, content)
    return declared


def _with_schema(files: Sequence[File], declared: Declarations, schemas: Schemas) -> set[Address]:
    """The resource types that are checked against a schema."""
    units = ((RESOURCE_KINDS.get(block.kind, ""), *block.labels) for file in files for block in file.blocks)
    return {(SCHEMA, unit[1], unit[0]) for unit in units if unit[0] and schemas.of(declared, unit) is not None}


def _evaluation_errors(
    files: Sequence[File], declared: Declarations, schemas: Schemas, merged: bool
) -> tuple[list[Diagnostic], list[Doubt]]:
    blocks = [block for file in files for block in file.blocks]
    expressions = [references for file in files for references in file.expression_references]
    return evaluation_errors(blocks, expressions, declared, schemas, merged)


def _reading_order(diagnostic: Diagnostic) -> tuple[str, int, int, str, str]:
    place = (diagnostic.file or "", diagnostic.line or 0, diagnostic.column or 0)
    return (*place, diagnostic.summary, diagnostic.detail)
