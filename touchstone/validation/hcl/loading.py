"""The errors that Terraform finds while it loads a module, before it checks references or providers.

The arguments, nested blocks and labels of each kind of block, names, constants, types and defaults of variables,
conditions, meta-arguments. Duplicates belong in `declarations`.
"""

import re
from collections.abc import Iterator

from tree_sitter import Node

from touchstone.validation.hcl.expressions import (
    RESOURCE_KINDS,
    Call,
    elements,
    first_part,
    is_static_reference,
    keyword,
    literal_collection,
    traversals_and_calls,
)
from touchstone.validation.hcl.parsing import Argument, Block, SourceText, children_of_type, source
from touchstone.validation.hcl.schema import OPEN, NestedSchema, body_errors, own
from touchstone.validation.hcl.values import Value, conversion_problem, literal_value, type_of_constraint
from touchstone.validation.protocol import Diagnostic

_ROOT_BLOCKS = (
    "terraform required_providers provider:name variable:name locals output:name module:name resource:type:name "
    "data:type:name ephemeral:type:name moved removed import check:name"
)
LABELS = {kind: tuple(labels) for kind, *labels in (word.split(":") for word in _ROOT_BLOCKS.split())}
"""The types of root blocks, each with the names of its labels."""
ROOT = own(
    "", {kind: NestedSchema(OPEN, labels) for kind, labels in LABELS.items()}, "action list store language policy"
)
_ANY, _TYPED, _NAMED = (NestedSchema(OPEN, labels) for labels in ((), ("type",), ("name",)))
_CONDITION = NestedSchema(own("condition! error_message!"))
_LIFECYCLE = own(
    "create_before_destroy prevent_destroy ignore_changes replace_triggered_by",
    {"precondition": _CONDITION, "postcondition": _CONDITION},
    newer="action_trigger destroy",
)
BLOCK_SCHEMAS = {
    "variable": own(
        "description default type sensitive ephemeral nullable", {"validation": _CONDITION}, newer="deprecated const"
    ),
    "output": own(
        "description value! depends_on sensitive ephemeral",
        {"precondition": _CONDITION, "postcondition": _ANY},
        newer="deprecated type",
    ),
    "module": own("source!", open=True),
    "moved": own("from! to!"),
    "import": own("id to! for_each provider", newer="identity"),
    "removed": own("from!", {"lifecycle": _ANY, "provisioner": _TYPED, "connection": _ANY}),
    "check": own("", {"data": ROOT.blocks["data"], "assert": _CONDITION}),
    "terraform": own(
        "required_version experiments language",
        {"backend": _TYPED, "cloud": _ANY, "required_providers": _ANY, "provider_meta": _NAMED},
        newer="state_store",
    ),
    "resource": own(
        "", {"lifecycle": NestedSchema(_LIFECYCLE), "connection": _ANY, "provisioner": _TYPED, "_": _ANY}, open=True
    ),
    "data": own("", {"lifecycle": NestedSchema(_LIFECYCLE), "_": _ANY}, open=True),
}
# Arguments that Terraform reads before evaluation, with the type that it wants; empty if it is not converted.
CONSTANTS = {
    "variable": {"default": "", "description": "string", "sensitive": "bool", "nullable": "bool", "ephemeral": "bool"},
    "output": {"description": "string", "sensitive": "bool", "ephemeral": "bool"},
    "module": {"source": "string", "version": ""},
    "terraform": {"required_version": ""},
    "lifecycle": {"create_before_destroy": "bool", "prevent_destroy": "bool"},
}
_CONDITIONS = {"variable": "validation", "output": "precondition", "check": "assert"}
_LABEL_KINDS = {
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
_TERRAFORM = (1, 11, 4)  # whose errors these are
_CONSTRAINT = re.compile(r"\s*([^\sv\d]*)\s*v?(\d+(?:\.\d+)*)")
_PROVIDER_SOURCE = re.compile(r"(?:[\w.:-]+/)?(?:[\w-]+/)?[\w-]+")
# What a destroy-time provisioner may refer to; of count and each only the index and the key.
_AT_DESTRUCTION = {"self": "", "path": "", "terraform": "", "count": "index", "each": "key"}
_RESERVED_VARIABLES = ("source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals")
# Arguments that are words and not expressions.
_WORDS = {"when": ("create", "destroy"), "on_failure": ("continue", "fail")}


def has_expected_labels(block: Block) -> bool:
    """Whether a root block has a known type and the right number of labels, so that Terraform reads it."""
    return block.kind in LABELS and len(LABELS[block.kind]) == len(block.labels)


def load_errors(block: Block) -> Iterator[Diagnostic]:
    """The load errors of one root block with the expected labels."""
    yield from _name_errors(block)
    yield from body_errors(block, BLOCK_SCHEMAS.get(block.kind, OPEN))
    yield from _constant_errors(block)
    if block.kind == "variable":
        yield from _type_errors(block) or _default_errors(block)
    elif block.kind == "locals":
        for nested in block.body.blocks[:1]:  # Terraform reports only the first
            yield block.text.error(nested.kind_node, "block in locals", nested.kind)
    elif block.kind == "module":
        for nested in block.body.blocks:
            if nested.kind in ("lifecycle", "locals", "provider"):
                yield block.text.error(nested.kind_node, "Reserved block type name in module block", nested.kind)
    elif block.kind == "import":  # newer versions of Terraform accept an identity instead of an id
        if not block.override and not {"id", "identity"} & block.body.arguments.keys() and not block.body.blocks:
            yield block.text.error(block.missing, "Missing required argument", "id")
    elif block.kind == "terraform":
        for requirements in block.body.of_kind("required_providers"):
            for argument in requirements.body.arguments.values():
                yield from _requirement_errors(argument, block.text)
    elif block.kind == "required_providers":
        yield block.text.error(block.header, "Invalid required_providers block")
    yield from _meta_argument_errors(block)
    yield from _nested_errors(block)


def _name_errors(block: Block) -> Iterator[Diagnostic]:
    for kind, label, node in zip(_LABEL_KINDS.get(block.kind, ()), block.labels, block.label_nodes, strict=False):
        if not _IDENTIFIER.fullmatch(label):
            yield block.text.error(node, "invalid name", kind)
        elif block.kind == "variable" and label in _RESERVED_VARIABLES:
            yield block.text.error(node, "reserved variable", label)


def _constant_errors(block: Block) -> Iterator[Diagnostic]:
    """Errors for references and calls in constants, and for literals of another type."""
    text = block.text
    for name, wanted in CONSTANTS.get(block.kind, {}).items():
        if name not in block.body.arguments:
            continue
        expression = block.body.arguments[name].expression
        found, calls = traversals_and_calls(expression)
        calls = [call for call in calls if not _is_within(call.name_node, calls)]
        found = [traversal for traversal in found if not _is_within(traversal.root_node, calls)]
        yield from (text.error(traversal.root_node, "Variables not allowed") for traversal in found)
        yield from (text.error(call.node, "Function calls not allowed") for call in calls)
        value, unknown = literal_value(expression), "value must be known" if found or calls else ""
        null = "null value is not allowed" if value.null else ""
        if wanted and (problem := unknown or null or conversion_problem(value, wanted)):
            yield text.error(first_part(text, expression), "Unsuitable value type", problem)
        elif name in ("version", "required_version") and not (found or calls):
            yield from _version_errors(text, name, expression, value)


def _version_errors(text: SourceText, name: str, expression: Node, value: Value) -> Iterator[Diagnostic]:
    if conversion_problem(value, "string"):
        yield text.error(first_part(text, expression), "version type", name)
    elif isinstance(value.known, str) and not _is_version(value.known):
        yield text.error(first_part(text, expression), "version syntax")


def _is_version(constraint: str) -> bool:
    return all(map(_VERSION.fullmatch, constraint.split(",")))


def includes_terraform(constraint: str) -> bool:
    """Whether a version constraint admits the Terraform that this package follows.

    >>> [includes_terraform(one) for one in (">= 1.3", "~> 1.3", "~> 1.3.0", "1.3", "< 2")]
    [True, True, False, False, True]
    """
    found = _CONSTRAINT.match(constraint)
    if found is None:
        return False
    parts = tuple(map(int, found[2].split(".")))
    wanted = (*parts, 0, 0)[:3]
    if found[1] == "~>":
        return wanted <= _TERRAFORM and parts[:-1] == _TERRAFORM[: len(parts) - 1]
    signs = {"": "=", "!=": "<>", ">=": "=>", "<=": "<="}
    order = "=" if wanted == _TERRAFORM else ">" if wanted < _TERRAFORM else "<"
    return order in signs.get(found[1], found[1])


def _requirement_errors(argument: Argument, text: SourceText) -> Iterator[Diagnostic]:
    """The errors in the source and version of a required provider."""
    content = literal_collection(argument.expression)
    for element in children_of_type(content, "object_elem") if content is not None else ():
        key, expression = children_of_type(element, "expression")
        name, value = source(key).strip('()"'), literal_value(expression)
        if name in ("source", "version") and value.kind != "string":
            yield text.error(expression, f"type of {name}")
        elif name == "version" and isinstance(value.known, str) and not _is_version(value.known):
            yield text.error(expression, "version syntax")
        elif name == "source" and isinstance(value.known, str) and not _PROVIDER_SOURCE.fullmatch(value.known):
            yield text.error(expression, "Invalid provider source string")


def _destruction_errors(block: Block) -> Iterator[Diagnostic]:
    """The errors of a destroy-time provisioner or its connection that refers to more than its resource."""
    for name, argument in block.body.arguments.items():
        for found in traversals_and_calls(argument.expression)[0] if name not in _WORDS else ():
            steps = [step.name for step in found.steps[:1]]
            if _AT_DESTRUCTION.get(found.root) not in ("", *steps):
                yield block.text.error(argument.expression, "Invalid reference from destroy provisioner")


def _is_within(node: Node, calls: list[Call]) -> bool:
    """Whether a node is inside a call's arguments, which are not checked where calls are not allowed."""
    return any(call.name_node.end_byte < node.start_byte < call.closing.start_byte for call in calls)


def _type_errors(variable: Block) -> list[Diagnostic]:
    """The errors of a variable's `type`."""
    text, argument = variable.text, variable.body.arguments.get("type")
    if argument is None or keyword(argument.expression) in ("list", "map"):
        return []
    written = source(argument.expression)
    if written == '"string"':
        return [text.error(argument.expression, "quoted string")]
    if written in ('"list"', '"map"'):
        return [text.error(argument.expression, "quoted collection", written.strip('"'))]
    if written.startswith('"'):
        return [text.error(argument.expression, "Invalid legacy variable type hint")]
    wrong: list[Diagnostic] = []
    type_of_constraint(
        argument.expression, lambda first, last, *message: wrong.append(text.error(text.span(first, last), *message))
    )
    return wrong


def _default_errors(variable: Block) -> Iterator[Diagnostic]:
    """The error for a default that does not fit the variable's type, in the cases that need no evaluation."""
    default, kind, nullable = (variable.body.arguments.get(name) for name in ("default", "type", "nullable"))
    if default is None:
        return
    value = literal_value(default.expression)
    if value.null and nullable is not None and source(nullable.expression) == "false":
        yield variable.text.error(default.expression, "null default")
    elif kind is not None and (problem := conversion_problem(value, type_of_constraint(kind.expression))):
        yield variable.text.error(default.expression, "default type", problem)


def _meta_argument_errors(block: Block) -> Iterator[Diagnostic]:
    """The errors of repetition, and of arguments that must be plain addresses or words."""
    text, arguments = block.text, block.body.arguments
    resource = block.kind in RESOURCE_KINDS
    if (resource or block.kind == "module") and "count" in arguments and "for_each" in arguments:
        yield text.error(arguments["for_each"].name_node, 'Invalid combination of "count" and "for_each"')
    if (resource or block.kind in ("module", "output")) and "depends_on" in arguments:
        listed = elements(arguments["depends_on"].expression)
        if listed is None:
            yield text.error(arguments["depends_on"].expression, "no list")
        yield from (text.error(one, "no reference") for one in listed or () if not is_static_reference(one))
    for name in ("from", "to") if block.kind in ("moved", "removed") else ():
        if name in arguments and not is_static_reference(arguments[name].expression):
            yield text.error(arguments[name].expression, "no reference")
    if resource and "provider" in arguments and not is_static_reference(arguments["provider"].expression):
        yield text.error(arguments["provider"].expression, "Invalid provider configuration reference")
    provisioners = block.body.of_kind("provisioner") if block.kind == "resource" else []
    destroying = [one for one in provisioners if "when" in one.body.arguments and _word(one, "when") == "destroy"]
    for nested in (*destroying, *(block.body.of_kind("connection") if destroying else ())):
        for body in (nested, *nested.body.of_kind("connection")):
            yield from _destruction_errors(body)
    for nested in provisioners:
        for name, words in _WORDS.items():
            if name in nested.body.arguments and _word(nested, name) not in words:
                yield text.error(nested.body.arguments[name].expression, "no keyword", name, " or ".join(words))


def _word(block: Block, name: str) -> str:
    return source(block.body.arguments[name].expression).strip('"')


def _nested_errors(block: Block) -> Iterator[Diagnostic]:
    lifecycles = block.body.of_kind("lifecycle") if block.kind in ("resource", "data") else []
    for number, lifecycle in enumerate(lifecycles):
        if number:
            earlier = block.text.reference(lifecycles[0].header)
            yield block.text.error(lifecycle.header, "Duplicate lifecycle block", earlier)
        yield from _lifecycle_errors(lifecycle, block.kind)
    conditions = block.body.of_kind(_CONDITIONS.get(block.kind, ""))
    for nested in conditions:
        yield from _condition_errors(nested, block)
    if block.kind == "check" and not any(map(_is_effective, conditions)):
        yield block.text.error(block.header, "Zero assert blocks")


def _lifecycle_errors(lifecycle: Block, owner: str) -> Iterator[Diagnostic]:
    arguments = lifecycle.body.arguments
    if owner == "resource":
        yield from _constant_errors(lifecycle)
    else:
        for name in _LIFECYCLE.attributes.keys() & arguments.keys():
            yield lifecycle.text.error(arguments[name].name_node, "Invalid data resource lifecycle argument", name)
    ignored = arguments.get("ignore_changes")
    if ignored is not None and elements(ignored.expression) is None and keyword(ignored.expression) != "all":
        yield lifecycle.text.error(ignored.expression, "no list")
    for nested in lifecycle.body.blocks:
        if nested.kind in _LIFECYCLE.blocks:
            yield from _condition_errors(nested)


def _condition_errors(block: Block, owner: Block | None = None) -> Iterator[Diagnostic]:
    """The errors of a variable's validation, a pre- or postcondition, or an assertion; `owner` is the root block."""
    condition = block.body.arguments.get("condition")
    if condition is None:
        return
    found, _ = traversals_and_calls(condition.expression)
    if not found:
        yield block.text.error(condition.expression, "constant condition", block.kind)
    if owner is not None and owner.kind == "variable":
        name = owner.labels[0]
        if not any(one.root == "var" and [step.name for step in one.steps[:1]] == [name] for one in found):
            yield block.text.error(condition.expression, "Invalid variable validation condition", name)


def _is_effective(assertion: Block) -> bool:
    """Whether Terraform counts the block as an assertion: it refers to something, or `condition` is missing."""
    condition = assertion.body.arguments.get("condition")
    return condition is None or bool(traversals_and_calls(condition.expression)[0])
