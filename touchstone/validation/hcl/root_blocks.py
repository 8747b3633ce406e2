"""The root blocks that a file declares, as addresses: type, then labels. A local value is `("local", name)`.

Blocks in JSON syntax have addresses of their own. Files that do not parse belong in `broken_files`. A fix must not make
an address vanish; what counts as vanished belongs in `touchstone.validation.judging.removed_blocks`.
"""

from collections.abc import Iterator, Mapping

from touchstone.validation.hcl.blocks import ROOT
from touchstone.validation.hcl.tree import Body
from touchstone.validation.judging.removed_blocks import JSON, UNREAD, Address

# What Terraform shall do with its state. Deleting such a block can be the repair.
DIRECTIVES = frozenset({"moved", "import", "removed"})


def addresses(file: Body) -> Iterator[Address]:
    """The addresses of parsed blocks, whether or not Terraform knows their types.

    An argument with the name of a block type was meant to be a block, and a block in `locals` a local value.
    """
    meant = (name for name in file.arguments if name in ROOT.blocks.keys() - DIRECTIVES)
    yield from ((UNREAD, name, "0") for name in meant)
    for block in file.blocks:
        if block.kind not in DIRECTIVES:
            yield (block.kind, *block.labels)
        if block.kind == "locals":
            yield from (("local", name) for name in block.body.arguments)
            yield from (("local", nested.kind) for nested in block.body.blocks)


def plain_addresses(content: Mapping[str, object]) -> Iterator[Address]:
    """The addresses in a file in JSON syntax."""
    for kind, value in content.items():
        if kind in DIRECTIVES:
            continue
        for entry, labels in labelled([(value, ())], len(ROOT.blocks.get(kind, ()))):
            yield (JSON, kind, *labels)
            if kind == "locals" and isinstance(entry, dict):
                yield from ((JSON, "local", name) for name in entry)


def labelled(entries: list[tuple[object, Address]], depth: int) -> list[tuple[object, Address]]:
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
