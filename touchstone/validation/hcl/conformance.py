"""Whether a resource's body conforms to its provider's schema."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from touchstone.validation.hcl.body_schema import label_errors
from touchstone.validation.hcl.declarations import Declarations
from touchstone.validation.hcl.schema import BlockSchema, NestedSchema, Schemas
from touchstone.validation.hcl.scopes import ESCAPE, META_ARGUMENTS, META_BLOCKS, RESOURCE_KINDS
from touchstone.validation.hcl.suggestions import did_you_mean
from touchstone.validation.hcl.tree import Argument, Block, Body, source
from touchstone.validation.protocol import Diagnostic

_NONE: frozenset[str] = frozenset()


def resource_errors(block: Block, declared: Declarations, schemas: Schemas, merged: bool) -> Iterator[Diagnostic]:
    """The schema errors of a resource. With `merged` overrides, nothing counts as missing."""
    schema = schemas.of(declared, (RESOURCE_KINDS[block.kind], *block.labels))
    if schema is not None:
        whole, escaped = _with_escaped(block)
        wrong = list(_body_errors(whole, schema, META_ARGUMENTS - escaped, META_BLOCKS - escaped, merged))
        yield from wrong or _read_only(whole, schema, schemas.is_builtin(block.labels[0]))


# Of these arguments, exactly one must be given.
_ONE_OF = {"remote-exec": ("inline", "script", "scripts"), "file": ("source", "content")}


def provisioner_errors(block: Block, schema: BlockSchema) -> Iterator[Diagnostic]:
    """The errors of a provisioner or a connection, apart from the types of its values."""
    yield from _body_errors(block, schema, frozenset({"when", "on_failure"}), frozenset({"connection"}), merged=False)
    choice = _ONE_OF.get(block.labels[0], ()) if block.labels else ()
    if choice and sum(name in block.body.arguments for name in choice) != 1:
        detail = f"Exactly one of {', '.join(choice)} must be set."
        yield block.text.error(block.missing, f"Invalid {block.labels[0]} provisioner configuration", detail)


def _with_escaped(block: Block) -> tuple[Block, frozenset[str]]:
    """The resource with the content of its `_` block as part of its own, and the names in that content.

    Within `_`, even names such as `count` and `lifecycle` are the provider's.
    """
    inner = [nested.body for nested in block.body.of_kind(ESCAPE)]
    if not inner:
        return block, _NONE
    arguments = {name: argument for body in (block.body, *inner) for name, argument in body.arguments.items()}
    blocks = [nested for body in (block.body, *inner) for nested in body.blocks if nested.kind != ESCAPE]
    names = frozenset(name for body in inner for name in (*body.arguments, *(nested.kind for nested in body.blocks)))
    return replace(block, body=Body(arguments, blocks)), names


def type_error(block: Block, declared: Declarations, schemas: Schemas) -> Diagnostic | None:
    """The error for a type that its provider lacks, if all of that provider's types are known."""
    mode = RESOURCE_KINDS[block.kind]
    provider = declared.provider((mode, *block.labels)).address
    if provider not in schemas.complete or block.labels[0] in schemas.types(mode, provider):
        return None
    return _unknown_type(block, provider, schemas)


def _unknown_type(block: Block, provider: str, schemas: Schemas) -> Diagnostic:
    mode, resource_type = RESOURCE_KINDS[block.kind], block.labels[0]
    summary = {"managed": "Invalid resource type", "data": "Invalid data source"}.get(mode, "Invalid resource type")
    what = {"managed": "resource type", "data": "data source"}.get(mode, "ephemeral resource type")
    hint = did_you_mean(resource_type, sorted(schemas.types(mode, provider)))
    if mode == "managed" and resource_type in schemas.types("data", provider):
        hint = (
            f'\n\nDid you intend to use the data source "{resource_type}"? If so, declare this using a "data" block '
            'instead of a "resource" block.'
        )
    elif mode == "data" and resource_type in schemas.types("managed", provider):
        hint = (
            f'\n\nDid you intend to use the managed resource type "{resource_type}"? If so, declare this using a '
            '"resource" block instead of a "data" block.'
        )
    shown = provider.removeprefix("registry.terraform.io/")
    detail = f'The provider {shown} does not support {what} "{resource_type}".{hint}'
    return block.text.error(block.text.span(block.label_nodes[0]), summary, detail)


def _body_errors(
    block: Block, schema: BlockSchema, free_arguments: frozenset[str], free_blocks: frozenset[str], merged: bool
) -> Iterator[Diagnostic]:
    for argument in block.body.arguments.values():
        if argument.name not in schema.attributes and argument.name not in free_arguments:
            yield _unsupported_argument(block, argument, schema)
    same: dict[str, list[Block]] = defaultdict(list)
    generated: set[str] = set()
    for nested in block.body.blocks:
        if nested.kind in free_blocks:
            continue
        if nested.kind == "dynamic" and "dynamic" not in schema.blocks:
            generated.update(nested.labels[:1])
            yield from _dynamic_errors(nested, schema, merged)
        else:
            same[nested.kind].append(nested)
            yield from _nested_errors(nested, schema, same[nested.kind], merged)
    if not merged:
        yield from _missing(block, schema, same, generated)


def _unsupported_argument(block: Block, argument: Argument, schema: BlockSchema) -> Diagnostic:
    name = argument.name
    unset = sorted(known for known in schema.attributes if known not in block.body.arguments)
    hint = did_you_mean(name, unset)
    if not hint and name in schema.blocks:
        hint = f' Did you mean to define a block of type "{name}"?'
    detail = f'An argument named "{name}" is not expected here.{hint}'
    return block.text.error(block.text.span(argument.name_node), "Unsupported argument", detail)


def _nested_errors(block: Block, schema: BlockSchema, same: list[Block], merged: bool) -> Iterator[Diagnostic]:
    """The errors of one nested block; `same` lists the blocks of its type so far, including this one."""
    text, kind = block.text, block.kind
    if kind not in schema.blocks:
        if kind not in schema.attributes or not schema.attributes[kind].block_like:
            hint = did_you_mean(kind, sorted(schema.blocks))
            if not hint and kind in schema.attributes:
                hint = f' Did you mean to define argument "{kind}"? If so, use the equals sign to assign it a value.'
            detail = f'Blocks of type "{kind}" are not expected here.{hint}'
            yield text.error(text.span(block.kind_node), "Unsupported block type", detail)
        return
    nested = schema.blocks[kind]
    if nested.mode in ("single", "group", "list", "set"):
        yield from label_errors(block, ())
    yield from _body_errors(block, nested.block, _NONE, _NONE, merged)
    if nested.single:
        if len(same) == 2:
            earlier = text.reference(same[0].header)
            detail = f'Only one block of type "{kind}" is allowed. Previous definition was at {earlier}.'
            yield text.error(block.header, f"Duplicate {kind} block", detail)
    elif nested.most and len(same) == nested.most + 1:
        detail = f'No more than {nested.most} "{kind}" blocks are allowed'
        yield text.error(block.missing, f"Too many {kind} blocks", detail)


def _dynamic_errors(dynamic: Block, schema: BlockSchema, merged: bool) -> Iterator[Diagnostic]:
    if not dynamic.labels:
        return
    kind = dynamic.labels[0]
    nested = schema.blocks.get(kind)
    if nested is not None:
        for content in dynamic.body.of_kind("content"):
            yield from _body_errors(content, nested.block, _NONE, _NONE, merged)
    elif kind not in schema.attributes or not schema.attributes[kind].block_like:
        detail = f'Blocks of type "{kind}" are not expected here.'
        yield dynamic.text.error(dynamic.text.span(dynamic.label_nodes[0]), "Unsupported block type", detail)


def _missing(
    block: Block, schema: BlockSchema, same: dict[str, list[Block]], generated: set[str]
) -> Iterator[Diagnostic]:
    span = block.missing
    for name in sorted(schema.attributes):
        given = name in block.body.arguments or name in same or name in generated
        if schema.attributes[name].required and not given:
            detail = f'The argument "{name}" is required, but no definition was found.'
            yield block.text.error(span, "Missing required argument", detail)
    for kind in sorted(schema.blocks):
        nested = schema.blocks[kind]
        if kind not in generated and len(same[kind]) < nested.least:
            yield block.text.error(span, *_too_few(kind, nested))


def _too_few(kind: str, nested: NestedSchema) -> tuple[str, str]:
    if nested.single:
        return f"Missing {kind} block", f'A block of type "{kind}" is required here.'
    return f"Insufficient {kind} blocks", f'At least {nested.least} "{kind}" blocks are required.'


def _read_only(block: Block, schema: BlockSchema, builtin: bool) -> Iterator[Diagnostic]:
    """Errors for attributes that only the provider sets, in its SDK's wording; null leaves them unset."""
    for name, argument in block.body.arguments.items():
        if name not in schema.attributes or not schema.attributes[name].read_only:
            continue
        if "null" in source(argument.expression):
            continue
        if builtin:
            yield Diagnostic("error", f'"{name}" attribute is read-only')
        else:
            detail = (
                f'Can\'t configure a value for "{name}": its value will be decided automatically based on the result '
                "of applying this configuration."
            )
            span = block.text.span(argument.expression)
            yield block.text.error(span, "Value for unconfigurable attribute", detail)
