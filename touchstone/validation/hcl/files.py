"""One parsed file of a module. Results are cached, since most fixes change one file of several."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from touchstone.validation.hcl.blocks import has_expected_labels, load_errors, root_errors
from touchstone.validation.hcl.evaluation import ExpressionReferences, expression_references
from touchstone.validation.hcl.json_files import read_json
from touchstone.validation.hcl.positions import SourceText
from touchstone.validation.hcl.syntax import normalized, parse_as_data, syntax_errors
from touchstone.validation.hcl.tree import Block, parse
from touchstone.validation.protocol import Diagnostic

_REMEMBERED = 64


@dataclass(frozen=True)
class File:
    """A parsed file.

    `broken` are its syntax errors. `blocks` are its root blocks with the expected labels; `refused` are their load
    errors. A file that could only be parsed as plain data is in `content`; `opaque` is True if even that failed.
    """

    broken: tuple[Diagnostic, ...] = ()
    blocks: tuple[Block, ...] = ()
    refused: tuple[Diagnostic, ...] = ()
    expression_references: tuple[ExpressionReferences, ...] = ()
    content: tuple[Mapping[str, object], ...] = ()
    opaque: bool = False


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
        roots, wrong = read_json(text)
        return File(broken=(wrong,) if wrong else (), content=tuple(roots))
    if broken := syntax_errors(text):
        return File(broken=tuple(broken))
    file = parse(text)
    return _unparsed(text) if file is None else _parsed(file, merged)


def _unparsed(text: SourceText) -> File:
    """A file that Go's parser accepts but tree-sitter does not: only its declarations are used."""
    content = parse_as_data(text)
    return File(opaque=True) if content is None else File(content=(content,))


def _parsed(file: Block, merged: bool) -> File:
    override = is_override(file.text.path)
    for block in file.body.blocks:
        block.override = override
    blocks = tuple(block for block in file.body.blocks if has_expected_labels(block))
    refused = [*root_errors(file), *(error for block in blocks for error in load_errors(block))]
    expressions = (
        () if refused else tuple(references for block in blocks for references in expression_references(block, merged))
    )
    return File(blocks=blocks, refused=tuple(refused), expression_references=expressions)
