"""What Terraform rejects in root blocks while loading a module, before it checks references or providers."""

import re
from collections.abc import Iterator

from touchstone.validation.hcl.body_schema import BodySchema, body_errors, unexpected_content_errors
from touchstone.validation.hcl.conditions import condition_errors, is_effective_condition
from touchstone.validation.hcl.constants import constant_errors
from touchstone.validation.hcl.defaults import default_errors
from touchstone.validation.hcl.expressions import elements, is_static_reference, keyword
from touchstone.validation.hcl.tree import Block
from touchstone.validation.hcl.type_constraints import type_errors
from touchstone.validation.protocol import Diagnostic

_LIFECYCLE = BodySchema(
    ("create_before_destroy", "prevent_destroy", "ignore_changes", "replace_triggered_by"),
    blocks={"precondition": (), "postcondition": ()},
    newer=frozenset({"action_trigger", "destroy"}),
)

ROOT = BodySchema(
    blocks={
        "terraform": (),
        "required_providers": (),
        "provider": ("name",),
        "variable": ("name",),
        "locals": (),
        "output": ("name",),
        "module": ("name",),
        "resource": ("type", "name"),
        "data": ("type", "name"),
        "ephemeral": ("type", "name"),
        "moved": (),
        "removed": (),
        "import": (),
        "check": ("name",),
    },
    newer=frozenset({"action", "list", "store", "language", "policy"}),
)

BLOCK_SCHEMAS = {
    "variable": BodySchema(
        ("description", "default", "type", "sensitive", "ephemeral", "nullable"),
        blocks={"validation": ()},
        newer=frozenset({"deprecated", "const"}),
    ),
    "output": BodySchema(
        ("description", "value", "depends_on", "sensitive", "ephemeral"),
        ("value",),
        blocks={"precondition": (), "postcondition": ()},
        newer=frozenset({"deprecated", "type"}),
    ),
    "module": BodySchema(required=("source",), open=True),
    "moved": BodySchema(("from", "to"), ("from", "to")),
    "import": BodySchema(("id", "to", "for_each", "provider"), ("to",), newer=frozenset({"identity"})),
    "removed": BodySchema(("from",), ("from",), blocks={"lifecycle": (), "provisioner": ("type",), "connection": ()}),
    "check": BodySchema(blocks={"data": ("type", "name"), "assert": ()}),
    "terraform": BodySchema(
        ("required_version", "experiments", "language"),
        blocks={"backend": ("type",), "cloud": (), "required_providers": (), "provider_meta": ("name",)},
        newer=frozenset({"state_store"}),
    ),
    "resource": BodySchema(blocks={"lifecycle": (), "connection": (), "provisioner": ("type",), "_": ()}, open=True),
    "data": BodySchema(blocks={"lifecycle": (), "_": ()}, open=True),
}

_CONSTANTS = {
    "variable": {"default": False, "description": True, "sensitive": True, "nullable": True, "ephemeral": True},
    "output": {"description": True, "sensitive": True, "ephemeral": True},
    "module": {"source": True, "version": False},
    "terraform": {"required_version": False},
    "lifecycle": {"create_before_destroy": True, "prevent_destroy": True},
}
_CONDITIONS = {"variable": ("validation",), "output": ("precondition",), "check": ("assert",)}
_NAMED = {
    "variable": ("variable",),
    "output": ("output",),
    "module": ("module instance",),
    "check": ("check block",),
    "resource": ("resource type", "resource"),
    "data": ("data source", "data resource"),
    "ephemeral": ("ephemeral resource type", "ephemeral resource"),
}
_IDENTIFIER = re.compile(r"[^\W\d][\w-]*")
_RESERVED_VARIABLES = ("source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals")


def load_errors(block: Block) -> Iterator[Diagnostic]:
    """The load errors of one root block with the expected labels."""
    yield from _name_errors(block)
    schema = BLOCK_SCHEMAS.get(block.kind)
    if schema:
        yield from body_errors(block, schema)
    yield from _constants(block)
    if block.kind == "variable":
        wrong = list(type_errors(block))
        yield from wrong or default_errors(block)
    elif block.kind == "locals":
        yield from _no_blocks(block)
    elif block.kind == "module":
        yield from _reserved_errors(block)
    elif block.kind == "import":
        yield from _identity_errors(block)
    elif block.kind == "required_providers":
        detail = 'A "required_providers" block must be nested inside a "terraform" block.'
        yield block.text.error(block.header, "Invalid required_providers block", detail)
    if block.kind in ("resource", "data", "ephemeral", "module"):
        yield from _repetition_errors(block)
    if block.kind in ("resource", "data", "ephemeral", "module", "output"):
        yield from _dependency_errors(block)
    yield from _nested_errors(block)


def root_errors(block: Block) -> Iterator[Diagnostic]:
    """The errors in a file's root: unknown blocks or arguments, and wrong labels. `block` represents the file."""
    yield from unexpected_content_errors(block, ROOT)


def has_expected_labels(block: Block) -> bool:
    """Whether a root block has a known type and the right number of labels, so that Terraform reads it."""
    names = ROOT.blocks.get(block.kind)
    return names is not None and len(names) == len(block.labels)


def _name_errors(block: Block) -> Iterator[Diagnostic]:
    text = block.text
    for kind, label, node in zip(_NAMED.get(block.kind, ()), block.labels, block.label_nodes, strict=False):
        if not _IDENTIFIER.fullmatch(label):
            detail = (
                "A name must start with a letter or underscore and may contain only letters, digits, underscores, "
                "and dashes."
            )
            yield text.error(text.span(node), f"Invalid {kind} name", detail)
        elif block.kind == "variable" and label in _RESERVED_VARIABLES:
            detail = f'The variable name "{label}" is reserved due to its special meaning inside module blocks.'
            yield text.error(text.span(node), "Invalid variable name", detail)


def _constants(block: Block) -> Iterator[Diagnostic]:
    for name, decoded in _CONSTANTS.get(block.kind, {}).items():
        if name in block.body.arguments:
            yield from constant_errors(block.text, block.body.arguments[name], decoded)


def _no_blocks(block: Block) -> Iterator[Diagnostic]:
    """Nested blocks where none are allowed; Terraform reports only the first."""
    for nested in block.body.blocks[:1]:
        span = block.text.span(nested.kind_node)
        yield block.text.error(span, f'Unexpected "{nested.kind}" block', "Blocks are not allowed here.")


def _reserved_errors(module: Block) -> Iterator[Diagnostic]:
    for nested in module.body.blocks:
        if nested.kind in ("lifecycle", "locals", "provider"):
            detail = f'The block type name "{nested.kind}" is reserved for use by Terraform in a future version.'
            span = module.text.span(nested.kind_node)
            yield module.text.error(span, "Reserved block type name in module block", detail)


def _identity_errors(block: Block) -> Iterator[Diagnostic]:
    """An import without an id; newer versions of Terraform accept an identity instead."""
    if not block.override and not {"id", "identity"} & block.body.arguments.keys() and not block.body.blocks:
        detail = 'The argument "id" is required, but no definition was found.'
        yield block.text.error(block.missing, "Missing required argument", detail)


def _repetition_errors(block: Block) -> Iterator[Diagnostic]:
    arguments = block.body.arguments
    if "count" in arguments and "for_each" in arguments:
        detail = (
            'The "count" and "for_each" meta-arguments are mutually-exclusive, only one should be used to be explicit '
            "about the number of resources to be created."
        )
        span = block.text.span(arguments["for_each"].name_node)
        yield block.text.error(span, 'Invalid combination of "count" and "for_each"', detail)


def _dependency_errors(block: Block) -> Iterator[Diagnostic]:
    argument = block.body.arguments.get("depends_on")
    if argument is None:
        return
    listed = elements(argument.expression)
    if listed is None:
        span = block.text.span(argument.expression)
        yield block.text.error(span, "Invalid expression", "A static list expression is required.")
    for element in listed or ():
        if not is_static_reference(element):
            detail = (
                "A single static variable reference is required: only attribute access and indexing with constant "
                "keys. No calculations, function calls, template expressions, etc are allowed here."
            )
            yield block.text.error(block.text.span(element), "Invalid expression", detail)


def _nested_errors(block: Block) -> Iterator[Diagnostic]:
    first_lifecycle: Block | None = None
    for nested in block.body.blocks:
        if nested.kind == "lifecycle" and block.kind in ("resource", "data"):
            if first_lifecycle is None:
                first_lifecycle = nested
            else:
                where = block.text.reference(first_lifecycle.header)
                detail = f"This resource already has a lifecycle block at {where}."
                yield block.text.error(nested.header, "Duplicate lifecycle block", detail)
            yield from _lifecycle_errors(nested, block.kind)
        elif nested.kind in _CONDITIONS.get(block.kind, ()):
            yield from condition_errors(nested, block)
    if block.kind == "check" and not any(is_effective_condition(nested) for nested in block.body.of_kind("assert")):
        detail = "Check blocks must have at least one assert block."
        yield block.text.error(block.header, "Zero assert blocks", detail)


def _lifecycle_errors(lifecycle: Block, owner: str) -> Iterator[Diagnostic]:
    text = lifecycle.text
    yield from body_errors(lifecycle, _LIFECYCLE)
    if owner == "resource":
        yield from _constants(lifecycle)
    else:
        for name in ("create_before_destroy", "prevent_destroy", "ignore_changes", "replace_triggered_by"):
            if name in lifecycle.body.arguments:
                detail = (
                    f'The lifecycle argument "{name}" is defined only for managed resources ("resource" blocks), and '
                    "is not valid for data resources."
                )
                span = text.span(lifecycle.body.arguments[name].name_node)
                yield text.error(span, "Invalid data resource lifecycle argument", detail)
    ignored = lifecycle.body.arguments.get("ignore_changes")
    if ignored is not None and elements(ignored.expression) is None and keyword(ignored.expression) != "all":
        span = text.span(ignored.expression)
        yield text.error(span, "Invalid expression", "A static list expression is required.")
    for nested in lifecycle.body.blocks:
        if nested.kind in ("precondition", "postcondition"):
            yield from condition_errors(nested)
