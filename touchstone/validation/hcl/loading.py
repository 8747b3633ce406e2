"""The errors that Terraform finds while it loads a module, before it checks references or providers.

The arguments, nested blocks and labels of each kind of block, names, constants, types and defaults of variables,
conditions, meta-arguments. Duplicates belong in `declarations`.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from touchstone.validation.hcl.expressions import (
    Call,
    elements,
    first_part,
    is_static_reference,
    keyword,
    traversals_and_calls,
)
from touchstone.validation.hcl.parsing import Argument, Block, SourceText, did_you_mean, source
from touchstone.validation.hcl.values import Value, conversion_problem, literal_value, type_of_constraint
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
_LIFECYCLE = BodySchema(
    ("create_before_destroy", "prevent_destroy", "ignore_changes", "replace_triggered_by"),
    blocks={"precondition": (), "postcondition": ()},
    newer=frozenset({"action_trigger", "destroy"}),
)
_CONDITION = BodySchema(("condition", "error_message"), ("condition", "error_message"))
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
# Arguments that Terraform reads before evaluation, with the type that it wants; empty if it is not converted.
_CONSTANTS = {
    "variable": {"default": "", "description": "string", "sensitive": "bool", "nullable": "bool", "ephemeral": "bool"},
    "output": {"description": "string", "sensitive": "bool", "ephemeral": "bool"},
    "module": {"source": "string", "version": ""},
    "terraform": {"required_version": ""},
    "lifecycle": {"create_before_destroy": "bool", "prevent_destroy": "bool"},
}
_CONDITIONS = {"variable": "validation", "output": "precondition", "check": "assert"}
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
# As the library hashicorp/go-version has it.
_VERSION = re.compile(
    r"\s*(?:=|!=|>=|<=|>|<|~>)?\s*v?\d+(?:\.\d+)*(?:-\d+[\w~-]*(?:\.[\w~-]+)*|-?[A-Za-z~-]+[\w~-]*(?:\.[\w~-]+)*)?"
    r"(?:\+[\w~-]+(?:\.[\w~-]+)*)?\s*",
    re.ASCII,
)
_RESERVED_VARIABLES = ("source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals")
_NO_LIST = ("Invalid expression", "A static list expression is required.")
_NO_REFERENCE = (
    "Invalid expression",
    "A single static variable reference is required: only attribute access and indexing with constant keys. No "
    "calculations, function calls, template expressions, etc are allowed here.",
)
# Arguments that are words and not expressions.
_WORDS = {"when": ("create", "destroy"), "on_failure": ("continue", "fail")}
_ONCE_QUOTED = {
    '"string"': 'Remove the quotes around "string".',
    '"list"': 'Remove the quotes around "list" and write list(string) instead to explicitly indicate that the list '
    "elements are strings.",
    '"map"': 'Remove the quotes around "map" and write map(string) instead to explicitly indicate that the map '
    "elements are strings.",
}


def has_expected_labels(block: Block) -> bool:
    """Whether a root block has a known type and the right number of labels, so that Terraform reads it."""
    names = ROOT.blocks.get(block.kind)
    return names is not None and len(names) == len(block.labels)


def load_errors(block: Block) -> Iterator[Diagnostic]:
    """The load errors of one root block with the expected labels."""
    yield from _name_errors(block)
    if block.kind in BLOCK_SCHEMAS:
        yield from body_errors(block, BLOCK_SCHEMAS[block.kind])
    yield from _constant_errors(block)
    if block.kind == "variable":
        yield from _type_errors(block) or _default_errors(block)
    elif block.kind == "locals":
        yield from _block_in_locals_errors(block)
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
    yield from _address_errors(block)
    yield from _nested_errors(block)


def body_errors(block: Block, schema: BodySchema) -> Iterator[Diagnostic]:
    """Unexpected arguments and nested blocks, wrong labels and missing arguments. An override block need not be
    complete."""
    content = block.body
    for name, argument in {} if schema.open else content.arguments.items():
        if name not in schema.arguments and name not in schema.newer:
            yield unsupported_argument(block, argument, schema.arguments, schema.blocks)
    for nested in content.blocks:
        if nested.kind in schema.blocks:
            yield from label_errors(nested, schema.blocks[nested.kind])
        elif not schema.open and nested.kind not in schema.newer:
            yield unsupported_block(nested, schema.blocks, schema.arguments)
    for name in () if block.override else schema.required:
        if name not in content.arguments:
            yield block.text.missing_argument(block.missing, name)


def unsupported_argument(block: Block, argument: Argument, known: Iterable[str], blocks: Container[str]) -> Diagnostic:
    """The error for an argument that is not among the known ones; it may have been meant as a block."""
    hint = did_you_mean(argument.name, (name for name in known if name not in block.body.arguments))
    if not hint and argument.name in blocks:
        hint = f' Did you mean to define a block of type "{argument.name}"?'
    detail = f'An argument named "{argument.name}" is not expected here.{hint}'
    return block.text.error(argument.name_node, "Unsupported argument", detail)


def unsupported_block(block: Block, known: Iterable[str], arguments: Container[str]) -> Diagnostic:
    """The error for a nested block that is not among the known ones; it may have been meant as an argument."""
    hint = did_you_mean(block.kind, known)
    if not hint and block.kind in arguments:
        hint = f' Did you mean to define argument "{block.kind}"? If so, use the equals sign to assign it a value.'
    detail = f'Blocks of type "{block.kind}" are not expected here.{hint}'
    return block.text.error(block.kind_node, "Unsupported block type", detail)


def label_errors(block: Block, names: tuple[str, ...]) -> Iterator[Diagnostic]:
    """The error for too few or too many labels."""
    text, kind, listed = block.text, block.kind, ", ".join(names)
    if len(block.labels) < len(names):
        detail = f"All {kind} blocks must have {len(names)} labels ({listed})."
        yield text.error(block.brace, f"Missing {names[len(block.labels)]} for {kind}", detail)
    elif len(block.labels) > len(names):
        expected = f"Only {len(names)} labels ({listed}) are" if names else "No labels are"
        detail = f"{expected} expected for {kind} blocks."
        yield text.error(block.label_nodes[len(names)], f"Extraneous label for {kind}", detail)


def _name_errors(block: Block) -> Iterator[Diagnostic]:
    for kind, label, node in zip(_NAMED.get(block.kind, ()), block.labels, block.label_nodes, strict=False):
        if not _IDENTIFIER.fullmatch(label):
            detail = (
                "A name must start with a letter or underscore and may contain only letters, digits, underscores, "
                "and dashes."
            )
            yield block.text.error(node, f"Invalid {kind} name", detail)
        elif block.kind == "variable" and label in _RESERVED_VARIABLES:
            detail = f'The variable name "{label}" is reserved due to its special meaning inside module blocks.'
            yield block.text.error(node, "Invalid variable name", detail)


def _constant_errors(block: Block) -> Iterator[Diagnostic]:
    """Errors for references and calls in constants, and for literals of another type."""
    text = block.text
    for name, wanted in _CONSTANTS.get(block.kind, {}).items():
        if name not in block.body.arguments:
            continue
        expression = block.body.arguments[name].expression
        found, calls = traversals_and_calls(expression)
        calls = [call for call in calls if not _is_within(call.name_node, calls)]
        found = [traversal for traversal in found if not _is_within(traversal.root_node, calls)]
        for traversal in found:
            yield text.error(traversal.root_node, "Variables not allowed", "Variables may not be used here.")
        for call in calls:
            yield text.error(call.node, "Function calls not allowed", "Functions may not be called here.")
        value, unknown = literal_value(expression), "value must be known" if found or calls else ""
        null = "null value is not allowed" if value.null else ""
        if wanted and (problem := unknown or null or conversion_problem(value, wanted)):
            yield text.error(first_part(text, expression), "Unsuitable value type", f"Unsuitable value: {problem}")
        elif name in ("version", "required_version") and not (found or calls):
            yield from _version_errors(text, name, expression, value)


def _version_errors(text: SourceText, name: str, expression: Node, value: Value) -> Iterator[Diagnostic]:
    summary, where = "Invalid version constraint", first_part(text, expression)
    if conversion_problem(value, "string"):
        yield text.error(where, summary, f"A string value is required for {name}.")
    elif isinstance(value.known, str) and not all(map(_VERSION.fullmatch, value.known.split(","))):
        yield text.error(where, summary, "This string does not use correct version constraint syntax.")


def _is_within(node: Node, calls: list[Call]) -> bool:
    """Whether a node is inside a call's arguments, which are not checked where calls are not allowed."""
    return any(call.name_node.end_byte < node.start_byte < call.closing.start_byte for call in calls)


def _type_errors(variable: Block) -> list[Diagnostic]:
    """The errors of a variable's `type`."""
    text, argument = variable.text, variable.body.arguments.get("type")
    if argument is None or keyword(argument.expression) in ("list", "map"):
        return []
    written = source(argument.expression)
    if written in _ONCE_QUOTED:
        detail = (
            "Terraform 0.11 and earlier required type constraints to be given in quotes, but that form is now "
            f"deprecated and will be removed in a future version of Terraform. {_ONCE_QUOTED[written]}"
        )
        return [text.error(argument.expression, "Invalid quoted type constraints", detail)]
    if written.startswith('"'):
        detail = (
            "To provide a full type expression, remove the surrounding quotes and give the type expression directly."
        )
        return [text.error(argument.expression, "Invalid legacy variable type hint", detail)]
    wrong: list[tuple[Node, Node, str, str]] = []
    type_of_constraint(argument.expression, lambda *error: wrong.append(error))
    return [text.error(text.span(first, last), summary, detail) for first, last, detail, summary in wrong]


def _default_errors(variable: Block) -> Iterator[Diagnostic]:
    """The error for a default that does not fit the variable's type, in the cases that need no evaluation."""
    default, kind, nullable = (variable.body.arguments.get(name) for name in ("default", "type", "nullable"))
    if default is None:
        return
    value, detail = literal_value(default.expression), ""
    if value.null and nullable is not None and source(nullable.expression) == "false":
        detail = "A null default value is not valid when nullable=false."
    elif kind is not None and (problem := conversion_problem(value, type_of_constraint(kind.expression))):
        detail = f"This default value is not compatible with the variable's type constraint: {problem}."
    if detail:
        yield variable.text.error(default.expression, "Invalid default value for variable", detail)


def _block_in_locals_errors(block: Block) -> Iterator[Diagnostic]:
    for nested in block.body.blocks[:1]:  # Terraform reports only the first
        summary = f'Unexpected "{nested.kind}" block'
        yield block.text.error(nested.kind_node, summary, "Blocks are not allowed here.")


def _reserved_errors(module: Block) -> Iterator[Diagnostic]:
    for nested in module.body.blocks:
        if nested.kind in ("lifecycle", "locals", "provider"):
            detail = f'The block type name "{nested.kind}" is reserved for use by Terraform in a future version.'
            yield module.text.error(nested.kind_node, "Reserved block type name in module block", detail)


def _identity_errors(block: Block) -> Iterator[Diagnostic]:
    """An import without an id; newer versions of Terraform accept an identity instead."""
    if not block.override and not {"id", "identity"} & block.body.arguments.keys() and not block.body.blocks:
        yield block.text.missing_argument(block.missing, "id")


def _repetition_errors(block: Block) -> Iterator[Diagnostic]:
    arguments = block.body.arguments
    if "count" in arguments and "for_each" in arguments:
        detail = (
            'The "count" and "for_each" meta-arguments are mutually-exclusive, only one should be used to be explicit '
            "about the number of resources to be created."
        )
        summary = 'Invalid combination of "count" and "for_each"'
        yield block.text.error(arguments["for_each"].name_node, summary, detail)


def _dependency_errors(block: Block) -> Iterator[Diagnostic]:
    argument = block.body.arguments.get("depends_on")
    if argument is None:
        return
    listed = elements(argument.expression)
    if listed is None:
        yield block.text.error(argument.expression, *_NO_LIST)
    for element in listed or ():
        if not is_static_reference(element):
            yield block.text.error(element, *_NO_REFERENCE)


def _address_errors(block: Block) -> Iterator[Diagnostic]:
    """The errors of arguments that must be plain addresses or words."""
    for name in ("from", "to") if block.kind in ("moved", "removed") else ():
        if name in block.body.arguments and not is_static_reference(block.body.arguments[name].expression):
            yield block.text.error(block.body.arguments[name].expression, *_NO_REFERENCE)
    provider = block.body.arguments.get("provider") if block.kind in ("resource", "data", "ephemeral") else None
    if provider is not None and not is_static_reference(provider.expression):
        detail = (
            "The provider argument requires a provider type name, optionally followed by a period and then a "
            "configuration alias."
        )
        yield block.text.error(provider.expression, "Invalid provider configuration reference", detail)
    for nested in block.body.of_kind("provisioner") if block.kind == "resource" else ():
        for name, words in _WORDS.items():
            argument = nested.body.arguments.get(name)
            if argument is not None and source(argument.expression).strip('"') not in words:
                detail = f'The "{name}" argument requires one of the following keywords: {" or ".join(words)}.'
                yield nested.text.error(argument.expression, f'Invalid "{name}" keyword', detail)


def _nested_errors(block: Block) -> Iterator[Diagnostic]:
    lifecycles = block.body.of_kind("lifecycle") if block.kind in ("resource", "data") else []
    for number, lifecycle in enumerate(lifecycles):
        if number:
            detail = f"This resource already has a lifecycle block at {block.text.reference(lifecycles[0].header)}."
            yield block.text.error(lifecycle.header, "Duplicate lifecycle block", detail)
        yield from _lifecycle_errors(lifecycle, block.kind)
    conditions = block.body.of_kind(_CONDITIONS.get(block.kind, ""))
    for nested in conditions:
        yield from _condition_errors(nested, block)
    if block.kind == "check" and not any(_is_effective(nested) for nested in conditions):
        detail = "Check blocks must have at least one assert block."
        yield block.text.error(block.header, "Zero assert blocks", detail)


def _lifecycle_errors(lifecycle: Block, owner: str) -> Iterator[Diagnostic]:
    yield from body_errors(lifecycle, _LIFECYCLE)
    arguments = lifecycle.body.arguments
    if owner == "resource":
        yield from _constant_errors(lifecycle)
    else:
        for name in (name for name in _LIFECYCLE.arguments if name in arguments):
            detail = (
                f'The lifecycle argument "{name}" is defined only for managed resources ("resource" blocks), and '
                "is not valid for data resources."
            )
            yield lifecycle.text.error(arguments[name].name_node, "Invalid data resource lifecycle argument", detail)
    ignored = arguments.get("ignore_changes")
    if ignored is not None and elements(ignored.expression) is None and keyword(ignored.expression) != "all":
        yield lifecycle.text.error(ignored.expression, *_NO_LIST)
    for nested in lifecycle.body.blocks:
        if nested.kind in _LIFECYCLE.blocks:
            yield from _condition_errors(nested)


def _condition_errors(block: Block, owner: Block | None = None) -> Iterator[Diagnostic]:
    """The errors of a variable's validation, a pre- or postcondition, or an assertion; `owner` is the root block."""
    yield from body_errors(block, _CONDITION)
    condition = block.body.arguments.get("condition")
    if condition is None:
        return
    found, _ = traversals_and_calls(condition.expression)
    if not found:
        detail = (
            "The condition expression must refer to at least one object from elsewhere in the configuration, or else "
            "its result would not be checking anything."
        )
        yield block.text.error(condition.expression, f"Invalid {block.kind} expression", detail)
    if owner is not None and owner.kind == "variable":
        name = owner.labels[0]
        if not any(one.root == "var" and [step.name for step in one.steps[:1]] == [name] for one in found):
            detail = f'The condition for variable "{name}" must refer to var.{name} in order to test incoming values.'
            yield block.text.error(condition.expression, "Invalid variable validation condition", detail)


def _is_effective(assertion: Block) -> bool:
    """Whether Terraform counts the block as an assertion: it refers to something, or `condition` is missing."""
    condition = assertion.body.arguments.get("condition")
    return condition is None or bool(traversals_and_calls(condition.expression)[0])
