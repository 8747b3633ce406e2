"""The root blocks that a file declares, as addresses: type, then labels. A local value is `("local", name)`.

A fix must not make one of them vanish; what counts as vanished belongs in `touchstone.validation.removed_blocks`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from touchstone.validation.hcl.blocks import ROOT
from touchstone.validation.hcl.positions import SourceText
from touchstone.validation.hcl.tree import Block

Address = tuple[str, ...]

# What Terraform shall do with its state. Deleting such a block can be the repair.
_DIRECTIVES = frozenset({"moved", "import", "removed"})
_COMMENT = re.compile(rb"/\*.*?(?:\*/|\Z)", re.DOTALL)
# A header at the beginning of a line: elsewhere it may be part of a string or of another block.
_HEADER = re.compile(rb'^([a-z_]+)((?:[ \t]+(?:"[^"\s]*"|[\w-]+))*)[ \t]*\{', re.MULTILINE)


def addresses(blocks: Iterable[Block]) -> Iterator[Address]:
    """The addresses of parsed blocks, whether or not Terraform knows their types."""
    for block in blocks:
        if block.kind not in _DIRECTIVES:
            yield (block.kind, *block.labels)
        if block.kind == "locals":
            yield from (("local", name) for name in block.body.arguments)


def plain_addresses(content: Mapping[str, object]) -> Iterator[Address]:
    """The addresses in a file in JSON syntax."""
    for kind, value in content.items():
        if kind in _DIRECTIVES:
            continue
        for entry, labels in _labelled([(value, ())], len(ROOT.blocks.get(kind, ()))):
            yield (kind, *labels)
            if kind == "locals" and isinstance(entry, dict):
                yield from (("local", name) for name in entry)


def broken_file_addresses(text: SourceText) -> Iterator[Address]:
    """The addresses of a file with syntax errors: of blocks whose header stands on a line of its own."""
    for kind, rest in _HEADER.findall(_COMMENT.sub(b"", text.data)):
        address = (kind.decode(), *(label.strip('"') for label in rest.decode("utf-8", "replace").split()))
        known = address[0] not in _DIRECTIVES and len(ROOT.blocks.get(address[0], address)) == len(address) - 1
        if known:
            yield address


def _labelled(entries: list[tuple[object, Address]], depth: int) -> list[tuple[object, Address]]:
    """The objects below `depth` levels of labels, each with its labels; a block is one object or a list of them."""
    for _ in range(depth):
        entries = [
            (value, (*labels, name))
            for entry, labels in entries
            for part in (entry if isinstance(entry, list) else [entry])
            if isinstance(part, dict)
            for name, value in part.items()
        ]
    return [(part, labels) for entry, labels in entries for part in (entry if isinstance(entry, list) else [entry])]
