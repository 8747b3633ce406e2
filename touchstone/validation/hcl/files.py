"""One parsed file of a module. Results are cached, since most fixes change one file of several."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from touchstone.validation.hcl.blocks import has_expected_labels, load_errors, root_errors
from touchstone.validation.hcl.broken_files import broken_file_addresses, broken_json_addresses
from touchstone.validation.hcl.evaluation import ExpressionReferences, expression_references
from touchstone.validation.hcl.json_expressions import native_text, structure_errors
from touchstone.validation.hcl.json_files import read_json
from touchstone.validation.hcl.positions import SourceText
from touchstone.validation.hcl.root_blocks import addresses, plain_addresses
from touchstone.validation.hcl.syntax import normalized, syntax_errors
from touchstone.validation.hcl.tree import Block, parse
from touchstone.validation.judging.removed_blocks import Address
from touchstone.validation.protocol import Diagnostic

_REMEMBERED = 64


@dataclass(frozen=True)
class File:
    """A parsed file.

    `broken` are its syntax errors. `blocks` are its root blocks with the expected labels; `refused` are their load
    errors. A file in JSON syntax is in `content`, without blocks. `declared` are the addresses of all root blocks.
    `unreadable` is True if Go's parser accepts the file and tree-sitter does not, so that nothing is known of it.
    """

    broken: tuple[Diagnostic, ...] = ()
    blocks: tuple[Block, ...] = ()
    refused: tuple[Diagnostic, ...] = ()
    expression_references: tuple[ExpressionReferences, ...] = ()
    content: tuple[Mapping[str, object], ...] = ()
    declared: tuple[Address, ...] = ()
    unreadable: bool = False


def is_override(path: str) -> bool:
    """Whether it is an override file, whose blocks are merged into those of other files."""
    name = path.rpartition("/")[2].removesuffix(".json").removesuffix(".tf")
    return name == "override" or name.endswith("_override")


def is_ignored(path: str) -> bool:
    """Whether Terraform ignores a file: hidden files and editor backups."""
    name = path.rpartition("/")[2]
    return name.startswith(".") or name.endswith("~") or (name.startswith("#") and name.endswith("#"))


@lru_cache(maxsize=_REMEMBERED)
def read_file(path: str, data: bytes, merged: bool) -> File:
    """Parse and check a file. `merged`: the module has override files."""
    text = SourceText(path, normalized(data))
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
    native = native_text(text.path, roots)
    templates = syntax_errors(native)
    file = None if templates else parse(native)
    refused = (*structure_errors(text.path, roots, is_override(text.path)), *templates)
    read = _parsed(file, merged) if file is not None else File(unreadable=not templates)
    declared = tuple(address for root in roots for address in plain_addresses(root))
    return replace(read, blocks=(), refused=refused, content=tuple(roots), declared=declared)


def _parsed(file: Block, merged: bool) -> File:
    override = is_override(file.text.path)
    for block in file.body.blocks:
        block.override = override
    blocks = tuple(block for block in file.body.blocks if has_expected_labels(block))
    refused = [*root_errors(file), *(error for block in blocks for error in load_errors(block))]
    expressions = (
        () if refused else tuple(references for block in blocks for references in expression_references(block, merged))
    )
    declared = tuple(addresses(file.body))
    return File(blocks=blocks, refused=tuple(refused), expression_references=expressions, declared=declared)
