"""One file of a module, with all that can be known of it alone; kept, since most fixes change one file of several."""

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
    """A file, read.

    `blocks` are its root blocks that have the right labels; `refused` is what loading them finds wrong. What could
    only be read as plain data is in `content`, and `opaque` is True where not even that was possible.
    """

    broken: tuple[Diagnostic, ...] = ()
    blocks: tuple[Block, ...] = ()
    refused: tuple[Diagnostic, ...] = ()
    expression_references: tuple[ExpressionReferences, ...] = ()
    content: tuple[Mapping[str, object], ...] = ()
    opaque: bool = False


def is_override(path: str) -> bool:
    """Whether a file's blocks are merged into those of other files."""
    name = path.rpartition("/")[2].removesuffix(".json").removesuffix(".tf")
    return name == "override" or name.endswith("_override")


def is_ignored(path: str) -> bool:
    """Whether Terraform passes a file by: hidden files, and what editors leave behind."""
    name = path.rpartition("/")[2]
    return name.startswith(".") or name.endswith("~") or (name.startswith("#") and name.endswith("#"))


@lru_cache(maxsize=_REMEMBERED)
def read_file(path: str, data: bytes, merged: bool) -> File:
    """Reads a file. `merged` says that the module has override files."""
    text = SourceText(path, normalized(data))
    if path.endswith(".json"):
        roots, wrong = read_json(text)
        return File(broken=(wrong,) if wrong else (), content=tuple(roots))
    if broken := syntax_errors(text):
        return File(broken=tuple(broken))
    file = parse(text)
    return _unparsed(text) if file is None else _parsed(file, merged)


def _unparsed(text: SourceText) -> File:
    """A file that Go's parser accepts and the tree's grammar does not: only what it declares counts."""
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
