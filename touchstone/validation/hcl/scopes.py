"""The expressions of a module with their scopes: where each is evaluated and what it may refer to.

Arguments that Terraform does not evaluate as expressions (types, providers, `ignore_changes`, addresses of moves) are
left out.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

from touchstone.validation.hcl.expressions import keyword
from touchstone.validation.hcl.positions import SourceText
from touchstone.validation.hcl.tree import Block, Body

RESOURCE_KINDS = {"resource": "managed", "data": "data", "ephemeral": "ephemeral"}
META_ARGUMENTS = frozenset({"count", "for_each", "provider", "depends_on"})
META_BLOCKS = frozenset({"lifecycle", "connection", "provisioner"})
ESCAPE = "_"  # a block whose content belongs to the block around it, where every name is the provider's
_NONE: frozenset[str] = frozenset()

Unit = tuple[str, ...]
"""What Terraform evaluates as one: `("local", name)`, `("managed", type, name)`, `("output", name)` and so on."""


class Scope(NamedTuple):
    """The scope of an expression: the names bound around it, and which of each, count and self are available.

    `group` separates what Terraform evaluates one after another within a unit. `whole` is True if only whole objects
    can be named, as in `depends_on`. `unsure` holds names that may or may not exist.
    """

    text: SourceText
    unit: Unit
    group: str = ""
    bound: frozenset[str] = _NONE
    available: frozenset[str] = _NONE
    unsure: frozenset[str] = _NONE
    whole: bool = False


class ScopedExpression(NamedTuple):
    """One expression and its scope. `part` is the provider-defined argument or nested block it belongs to, if any."""

    expression: Node
    scope: Scope
    part: str = ""


def scoped_expressions(block: Block, merged: bool) -> Iterator[ScopedExpression]:
    """The expressions of a root block. `merged`: override files may add to the block."""
    if block.kind == "locals":
        for argument in block.body.arguments.values():
            yield ScopedExpression(argument.expression, Scope(block.text, ("local", argument.name)))
    elif block.kind in RESOURCE_KINDS:
        yield from _resource(block, merged)
    elif block.kind == "module":
        yield from _module(block, merged)
    elif block.kind == "provider":
        alias = block.body.arguments.get("alias")
        scope = Scope(block.text, ("provider", *block.labels, *(["alias"] if alias else [])))
        yield from _body(block.body, scope._replace(unsure=_repeated(True)), frozenset({"alias", "version"}))
    elif block.kind in ("output", "variable", "check", "import"):
        yield from _checked(block, merged)


def _checked(block: Block, merged: bool) -> Iterator[ScopedExpression]:
    """Blocks that contain conditions, and their one or two values."""
    scope = Scope(block.text, (block.kind if block.kind != "variable" else "var", *block.labels))
    if block.kind == "output":
        yield from _some(block.body, scope, ("value",))
        yield from _depends_on(block.body, scope)
    elif block.kind == "import":
        where = f"{block.kind_node.start_byte}"
        repeated = scope._replace(unit=("import", block.text.path, where), unsure=_repeated(True))
        yield from _some(block.body, repeated, ("id", "for_each"))
    for number, nested in enumerate(block.body.blocks):
        if nested.kind in ("validation", "precondition", "postcondition", "assert"):
            condition = scope._replace(group=f"{nested.kind}{number}")
            if nested.kind == "postcondition":
                condition = condition._replace(unsure=frozenset({"self"}))
            yield from _condition(nested, condition)
        elif nested.kind == "data" and block.kind == "check":
            yield from _resource(nested, merged)


def _module(block: Block, merged: bool) -> Iterator[ScopedExpression]:
    scope = Scope(block.text, ("module", *block.labels))
    yield from _repetition(block.body, scope)
    yield from _depends_on(block.body, scope)
    skipped = META_ARGUMENTS | {"source", "version", "providers"}
    yield from _body(block.body, _with_repetition(block.body, scope, merged), skipped)


def _resource(block: Block, merged: bool) -> Iterator[ScopedExpression]:
    mode = RESOURCE_KINDS[block.kind]
    scope = Scope(block.text, (mode, *block.labels))
    yield from _repetition(block.body, scope)
    yield from _depends_on(block.body, scope)
    inner = _with_repetition(block.body, scope, merged)
    yield from _parts(block.body, inner)
    if not any(nested.kind in META_BLOCKS for nested in block.body.blocks):
        return
    with_self = inner._replace(available=inner.available | {"self"})
    for number, nested in enumerate(block.body.blocks):
        if nested.kind == "lifecycle":
            for index, check in enumerate(nested.body.blocks):
                if check.kind in ("precondition", "postcondition"):
                    around = with_self if check.kind == "postcondition" else inner
                    yield from _condition(check, around._replace(group=f"lifecycle{number}.{index}"))
        elif nested.kind in ("provisioner", "connection"):
            around = with_self._replace(group=f"{nested.kind}{number}")
            yield from _body(nested.body, around, frozenset({"when", "on_failure"}), frozenset({"connection"}))
            for connection in nested.body.of_kind("connection"):
                yield from _body(connection.body, around._replace(group=f"{around.group}.connection"))


def _parts(body: Body, scope: Scope, escaped: bool = False) -> Iterator[ScopedExpression]:
    """The provider-defined parts of a resource's body, or of an escaping block in it."""
    for name, argument in body.arguments.items():
        if escaped or name not in META_ARGUMENTS:
            yield ScopedExpression(argument.expression, scope, name)
    for block in body.blocks:
        if block.kind == ESCAPE and not escaped:
            yield from _parts(block.body, scope, escaped=True)
        elif escaped or block.kind not in META_BLOCKS:
            dynamic = block.kind == "dynamic" and block.labels
            for place in _dynamic(block, scope) if dynamic else _body(block.body, scope):
                yield place._replace(part=block.labels[0] if dynamic else block.kind)


def _condition(block: Block, scope: Scope) -> Iterator[ScopedExpression]:
    for name in ("condition", "error_message"):
        yield from _some(block.body, scope._replace(group=f"{scope.group}.{name}"), (name,))


def _some(body: Body, scope: Scope, names: tuple[str, ...]) -> Iterator[ScopedExpression]:
    for name in names:
        if name in body.arguments:
            yield ScopedExpression(body.arguments[name].expression, scope)


def _depends_on(body: Body, scope: Scope) -> Iterator[ScopedExpression]:
    if "depends_on" in body.arguments:
        yield ScopedExpression(body.arguments["depends_on"].expression, scope._replace(group="depends_on", whole=True))


def _repetition(body: Body, scope: Scope) -> Iterator[ScopedExpression]:
    for name in ("count", "for_each"):
        if name in body.arguments:
            yield ScopedExpression(body.arguments[name].expression, scope._replace(group=name))


def _with_repetition(body: Body, scope: Scope, merged: bool) -> Scope:
    available = {name for name, argument in (("count", "count"), ("each", "for_each")) if argument in body.arguments}
    return scope._replace(available=frozenset(available), unsure=_repeated(merged)) if available or merged else scope


def _repeated(possible: bool) -> frozenset[str]:
    return frozenset({"each", "count"}) if possible else _NONE


def _body(
    body: Body, scope: Scope, skipped: frozenset[str] = _NONE, skipped_blocks: frozenset[str] = _NONE
) -> Iterator[ScopedExpression]:
    for name, argument in body.arguments.items():
        if name not in skipped:
            yield ScopedExpression(argument.expression, scope)
    for block in body.blocks:
        if block.kind == "dynamic":
            yield from _dynamic(block, scope)
        elif block.kind not in skipped_blocks:
            yield from _body(block.body, scope)


def _dynamic(block: Block, scope: Scope) -> Iterator[ScopedExpression]:
    """A `dynamic` block binds its label, or the name given as `iterator`, everywhere except in its `for_each`."""
    yield from _some(block.body, scope, ("for_each",))
    iterator = block.body.arguments.get("iterator")
    name = keyword(iterator.expression) if iterator else None
    inside = scope._replace(bound=scope.bound.union({name} if name else block.labels))
    yield from _some(block.body, inside, ("labels",))
    for content in block.body.of_kind("content"):
        yield from _body(content.body, inside)
