"""The arguments, nested blocks and labels that a kind of block may contain, and violations of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from touchstone.validation.hcl.suggestions import did_you_mean
from touchstone.validation.hcl.tree import Block, Body
from touchstone.validation.protocol import Diagnostic

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BodySchema:
    """The arguments of a block, the required ones among them, and its nested blocks with the names of their labels.

    `newer` lists what later versions of Terraform accept: neither suggested nor reported. An `open` schema accepts
    unknown arguments and blocks.
    """

    arguments: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    newer: frozenset[str] = _NONE
    open: bool = False


def body_errors(block: Block, schema: BodySchema) -> Iterator[Diagnostic]:
    """Unexpected content and missing arguments of a block. An override block need not be complete."""
    text = block.text
    yield from unexpected_content_errors(block, schema)
    for name in () if block.override else schema.required:
        if name not in block.body.arguments:
            detail = f'The argument "{name}" is required, but no definition was found.'
            yield text.error(block.missing, "Missing required argument", detail)


def unexpected_content_errors(block: Block, schema: BodySchema) -> Iterator[Diagnostic]:
    """Unexpected arguments and nested blocks, and wrong labels."""
    text, content = block.text, block.body
    if not schema.open:
        for name, argument in content.arguments.items():
            if name not in schema.arguments and name not in schema.newer:
                detail = f'An argument named "{name}" is not expected here.{_argument_hint(name, content, schema)}'
                yield text.error(text.span(argument.name_node), "Unsupported argument", detail)
    for nested in content.blocks:
        if nested.kind in schema.blocks:
            yield from label_errors(nested, schema.blocks[nested.kind])
        elif not schema.open and nested.kind not in schema.newer:
            detail = f'Blocks of type "{nested.kind}" are not expected here.{_block_hint(nested.kind, schema)}'
            yield text.error(text.span(nested.kind_node), "Unsupported block type", detail)


def label_errors(block: Block, names: tuple[str, ...]) -> Iterator[Diagnostic]:
    """The error for too few or too many labels."""
    text, kind, listed = block.text, block.kind, ", ".join(names)
    if len(block.labels) < len(names):
        detail = f"All {kind} blocks must have {len(names)} labels ({listed})."
        yield text.error(text.span(block.brace), f"Missing {names[len(block.labels)]} for {kind}", detail)
    elif len(block.labels) > len(names):
        expected = f"Only {len(names)} labels ({listed}) are" if names else "No labels are"
        span = text.span(block.label_nodes[len(names)])
        yield text.error(span, f"Extraneous label for {kind}", f"{expected} expected for {kind} blocks.")


def _argument_hint(name: str, content: Body, schema: BodySchema) -> str:
    hint = did_you_mean(name, (known for known in schema.arguments if known not in content.arguments))
    return hint or (f' Did you mean to define a block of type "{name}"?' if name in schema.blocks else "")


def _block_hint(kind: str, schema: BodySchema) -> str:
    if hint := did_you_mean(kind, schema.blocks):
        return hint
    if kind in schema.arguments:
        return f' Did you mean to define argument "{kind}"? If so, use the equals sign to assign it a value.'
    return ""
