"""Check one module in Terraform's order: syntax, then loading, then references and schemas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from touchstone.validation.hcl.declarations import Declarations, declare, declare_plain
from touchstone.validation.hcl.duplicates import duplicate_errors
from touchstone.validation.hcl.evaluation import evaluation_errors
from touchstone.validation.hcl.files import File, is_ignored, is_override, read_file
from touchstone.validation.hcl.schema import Schemas, read_schemas
from touchstone.validation.protocol import Diagnostic


@dataclass(frozen=True)
class ModuleFindings:
    """The diagnostics of a module, and the fidelity of the check. `compiled` is True if every file parses."""

    fidelity: str
    diagnostics: tuple[Diagnostic, ...]
    compiled: bool


def check_module(files: Mapping[str, bytes], schema: str | None) -> ModuleFindings:
    """Check the `.tf` and `.tf.json` files of one module directory, given by path within the tree.

    `schema` is the JSON of `terraform providers schema -json`, or the part for one provider or some types. Raises
    ValueError if it is not.
    """
    schema = schema if schema and not schema.isspace() else None
    schemas = read_schemas(schema)
    paths = sorted(path for path in files if not is_ignored(path))
    merged = any(is_override(path) for path in paths)
    read = [read_file(path, files[path], merged) for path in paths]
    broken = [error for file in read for error in file.broken]
    found = broken or _load_errors(read) or _evaluation_errors(read, schemas, merged)
    ordered = tuple(sorted(found, key=_reading_order))
    return ModuleFindings("static+schema" if schema else "static", ordered, not broken)


def _load_errors(files: Sequence[File]) -> list[Diagnostic]:
    refused = [error for file in files for error in file.refused]
    return refused + list(duplicate_errors(block for file in files for block in file.blocks))


def _evaluation_errors(files: Sequence[File], schemas: Schemas, merged: bool) -> list[Diagnostic]:
    if any(file.opaque for file in files):  # it may declare anything, so every reference error could be a false alarm
        return []
    declared = Declarations()
    for file in files:
        for block in file.blocks:
            declare(declared, block)
        for content in file.content:
            declare_plain(declared, content)
    blocks = [block for file in files for block in file.blocks]
    expressions = [references for file in files for references in file.expression_references]
    return evaluation_errors(blocks, expressions, declared, schemas, merged)


def _reading_order(diagnostic: Diagnostic) -> tuple[str, int, int, str, str]:
    place = (diagnostic.file or "", diagnostic.line or 0, diagnostic.column or 0)
    return (*place, diagnostic.summary, diagnostic.detail)
