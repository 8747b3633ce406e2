"""The root blocks that a file declares, as addresses: type, then labels. A local value is `("local", name)`.

Blocks in JSON syntax, whose content is not checked, have addresses of their own. So do headers in a broken file that
cannot be read. A fix must not make an address vanish; what counts as vanished belongs in
`touchstone.validation.judging.removed_blocks`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from touchstone.validation.hcl.blocks import ROOT
from touchstone.validation.hcl.positions import SourceText
from touchstone.validation.hcl.tree import Block
from touchstone.validation.judging.removed_blocks import JSON, UNREAD, Address

# What Terraform shall do with its state. Deleting such a block can be the repair.
_DIRECTIVES = frozenset({"moved", "import", "removed"})
_COMMENT = re.compile(rb"/\*.*?\*/", re.DOTALL)
# A header at the beginning of a line: elsewhere it may be part of a string or of another block.
_HEADER = re.compile(rb'^([a-z_]+)((?:[ \t]+(?:"[^"\s]*"|[\w-]+))*)[ \t]*\{', re.MULTILINE)
# Anything that was meant to be a header: misquoted, without its brace, indented or after another block.
_MEANT = re.compile(
    rb"""(?:^|\})[ \t]*(?:(resource|module|variable|output|provider|ephemeral)[ \t]*[\w-]*["']"""
    rb"""|(locals|terraform)[ \t]*[=:]?\s*\{)|^(data|check)[ \t]*[\w-]*["']""",
    re.MULTILINE,
)
_JSON_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[\[{]|[\]}]')


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
            yield (JSON, kind, *labels)
            if kind == "locals" and isinstance(entry, dict):
                yield from ((JSON, "local", name) for name in entry)


def broken_file_addresses(text: SourceText) -> Iterator[Address]:
    """The addresses of a file with syntax errors: of blocks whose header can be read, and of other headers by type."""
    data = _COMMENT.sub(b"", text.data)
    readable = set()
    for header in _HEADER.finditer(data):
        kind, labels = header[1].decode(), header[2].decode("utf-8", "replace").split()
        if kind not in _DIRECTIVES and len(ROOT.blocks.get(kind, ("", *labels))) == len(labels):
            readable.add(header.start())
            yield (kind, *(label.strip('"') for label in labels))
    meant = (header for header in _MEANT.finditer(data) if header.start() not in readable)
    yield from _unread(header[header.lastindex or 0] for header in meant)


def broken_json_addresses(text: SourceText) -> Iterator[Address]:
    """The addresses of a file that is not JSON: the texts in its outermost object that name a type of block."""
    depth, kinds = 0, []
    for token in _JSON_TOKEN.findall(text.data):
        depth += (token in b"[{") - (token in b"]}")
        if depth == 1 and token[1:-1].decode("utf-8", "replace") in ROOT.blocks.keys() - _DIRECTIVES:
            kinds.append(token[1:-1])
    yield from _unread(kinds)


def _unread(kinds: Iterable[bytes]) -> Iterator[Address]:
    return ((UNREAD, kind.decode(), str(number)) for number, kind in enumerate(kinds))


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
