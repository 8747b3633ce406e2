"""The expressions of a module: what each refers to and calls, and its scope, which says what it may refer to.

A traversal is a name with attribute and index steps; names bound by a `for` are left out. The walk uses an explicit
stack, because long sums exceed Python's recursion limit. Arguments that Terraform does not evaluate as expressions
(types, providers, `ignore_changes`, addresses of moves) are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tree_sitter import Node

from touchstone.validation.hcl.parsing import (
    Argument,
    Block,
    Body,
    SourceText,
    Span,
    children,
    children_of_type,
    descendants,
    source,
)

RESOURCE_KINDS = {"resource": "managed", "data": "data", "ephemeral": "ephemeral"}
META_ARGUMENTS = frozenset({"count", "for_each", "provider", "depends_on"})
META_BLOCKS = frozenset({"lifecycle", "connection", "provisioner"})
ESCAPE = "_"  # a block whose content belongs to the block around it, where every name is the provider's
_LOOPS = {"for_tuple_expr": "for_intro", "for_object_expr": "for_intro", "template_for": "template_for_start"}
_FORGIVING_FUNCTIONS = ("try", "can")
_NONE: frozenset[str] = frozenset()
_REPEATED = frozenset({"each", "count"})

Unit = tuple[str, ...]
"""The key of one evaluation: `("local", name)`, `("managed", type, name)`, `("output", name)` and so on."""


class Step(NamedTuple):
    """`.name`, or `[literal]` as `index`."""

    is_index: bool
    name: str
    node: Node


@dataclass(slots=True, eq=False)
class Traversal:
    """A root name and the steps that are known without evaluation, as in `aws_vpc.main.id`."""

    root: str
    root_node: Node
    steps: list[Step]


@dataclass(slots=True, eq=False)
class Call:
    """A function call, from its name to the `closing` bracket; `words` are the namespaces, then the function's name.

    `expanded`: its last argument ends with `...`. `certain` is False if Terraform may skip it or ignore its errors.
    """

    node: Node
    name_node: Node
    closing: Node
    name: str
    words: list[str]
    arguments: list[Node]
    expanded: bool
    certain: bool


def read_call(node: Node, certain: bool = True) -> Call:
    """A call, from its node."""
    given = [one for holder in children_of_type(node, "function_arguments") for one in holder.named_children]
    arguments = [one for one in given if one.type == "expression"]
    expanded = any(one.type == "ellipsis" for one in given)
    name = source(node.named_children[0])
    words = "".join(name.split()).split("::")
    return Call(node, node.named_children[0], node.children[-1], name, words, arguments, expanded, certain)


def call_of(expression: Node) -> Call | None:
    """The call if an expression is nothing else, else None."""
    node = _only_child(expression)
    return read_call(node) if node is not None and node.type == "function_call" else None


def traversals_and_calls(expression: Node, bound: frozenset[str] = _NONE) -> tuple[list[Traversal], list[Call]]:
    """The traversals and calls in an expression, without names bound around it."""
    found: list[Traversal] = []
    calls: list[Call] = []
    stack: list[tuple[Node, frozenset[str], bool]] = [(expression, bound, True)]
    while stack:
        node, names, certain = stack.pop()
        kind = node.type
        if kind in _LOOPS:  # its collection is outside its scope, everything else sees its names
            intro = children_of_type(node, _LOOPS[kind])[0]
            inside = names.union(map(source, children_of_type(intro, "identifier")))
            stack += [(child, names, certain) for child in intro.named_children]
            stack += [(child, inside, False) for child in node.named_children if child.type != _LOOPS[kind]]
        elif kind == "object_elem":
            parts = children(node)
            literal_key = bool(parts) and keyword(parts[0]) is not None
            stack += [(part, names, certain) for part in parts[literal_key:]]
        elif kind == "function_call":
            call = read_call(node, certain)
            calls.append(call)
            forgiving = call.name in _FORGIVING_FUNCTIONS
            stack += [(argument, names, certain and not forgiving) for argument in call.arguments]
        elif inner := _collect(node.named_children, names, found):
            # Terraform may skip a branch that is not taken, and operands of `&&` and `||`.
            logic = kind == "binary_operation" and any(child.type in ("&&", "||") for child in node.children)
            certain = certain and not logic and kind != "conditional"
            stack += [(child, names, certain) for child in inner]
    return found, calls


def _collect(nodes: list[Node], names: frozenset[str], found: list[Traversal]) -> list[Node]:
    """Append the traversals among these siblings to `found` and return the nodes still to walk."""
    open_traversal: Traversal | None = None
    rest: list[Node] = []
    for child in nodes:
        kind = child.type
        if kind == "variable_expr":
            open_traversal = Traversal(source(child), child, [])
            if open_traversal.root not in names:
                found.append(open_traversal)
        elif kind == "get_attr":
            if open_traversal is not None:
                open_traversal.steps.append(Step(False, source(child)[1:].lstrip(), child))
        elif kind == "index":
            literal = _literal_index(child)
            if literal is None:
                open_traversal = None
                rest.append(child)
            elif open_traversal is not None:
                open_traversal.steps.append(Step(True, literal, child))
        elif kind != "comment":
            open_traversal = None
            rest.append(child)
    return rest


def _quoted(element: Node) -> Traversal | None:
    """The reference in quotes, as older versions of Terraform wanted them in `depends_on`."""
    literal = next((one for one in descendants(element) if one.type == "template_literal"), None)
    if literal is None:
        return None
    root, *names = source(literal).partition("[")[0].split(".")
    return Traversal(root, literal, [Step(False, name, literal) for name in names]) if names else None


def _literal_index(index: Node) -> str | None:
    inner = index.named_children[0]
    if inner.type == "legacy_index":
        return source(inner)[1:]
    parts = children(inner)
    literal = _only_child(parts[0]) if parts else None
    return source(literal) if literal is not None and literal.type == "literal_value" else None


def _only_child(node: Node) -> Node | None:
    found = children(node)
    return found[0] if len(found) == 1 else None


def keyword(expression: Node) -> str | None:
    """The word if an expression is a bare word, as in `type = string` or an object key, else None."""
    child = _only_child(expression)
    is_word = child is not None and child.type == "variable_expr" and child.end_byte == expression.end_byte
    return source(child) if child is not None and is_word else None


def literal_collection(expression: Node) -> Node | None:
    """The node of a literal `[...]` or `{...}`, whose type is tuple or object, else None."""
    node = _only_child(expression)
    return _only_child(node) if node is not None and node.type == "collection_value" else None


def elements(expression: Node) -> list[Node] | None:
    """The elements of a literal `[...]`, else None."""
    content = literal_collection(expression)
    return children_of_type(content, "expression") if content is not None and content.type == "tuple" else None


def is_static_reference(expression: Node) -> bool:
    """Whether an expression is a traversal with constant steps, or one in quotes."""
    parts = children(expression)
    if not parts or parts[0].type != "variable_expr":
        return source(expression).startswith('"') and "${" not in source(expression)
    return all(
        step.type == "get_attr" or (step.type == "index" and _literal_index(step) is not None) for step in parts[1:]
    )


def first_part(text: SourceText, expression: Node) -> Span:
    """The part of an expression that Terraform points at: a string's first literal, or a call's name."""
    node = expression
    while node.type in ("expression", "literal_value", "string_lit", "template_expr", "quoted_template"):
        inner = [child for child in children(node) if child.type != "quoted_template_start"]
        if not inner or (node.type == "expression" and len(inner) > 1):
            break
        if node.type == "quoted_template" and inner[0].type == "template_literal":
            # Up to what follows: the literal's own node lacks trailing blanks.
            return Span(*text.span(inner[0])[:2], *text.span(inner[1])[:2])
        node = inner[0]
    return text.span(node.named_children[0], node.children[1]) if node.type == "function_call" else text.span(node)


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
    """One expression with its scope and what it refers to.

    `part` is the provider-defined argument or nested block it belongs to, if any.
    """

    expression: Node
    scope: Scope
    traversals: list[Traversal]
    calls: list[Call]
    part: str = ""


def _scoped(argument: Argument, scope: Scope, part: str = "") -> ScopedExpression:
    found, calls = traversals_and_calls(argument.expression, scope.bound)
    if scope.whole:
        found += filter(None, map(_quoted, elements(argument.expression) or ()))
    return ScopedExpression(argument.expression, scope, found, calls, part)


def scoped_expressions(block: Block, merged: bool) -> Iterator[ScopedExpression]:
    """The expressions of a root block. `merged`: override files may add to the block."""
    body, scope = block.body, Scope(block.text, (block.kind, *block.labels))
    if block.kind == "locals":
        for argument in body.arguments.values():
            yield _scoped(argument, scope._replace(unit=("local", argument.name)))
    elif block.kind in RESOURCE_KINDS:
        yield from _resource(block, merged)
    elif block.kind == "module":
        yield from _meta_arguments(body, scope)
        skipped = META_ARGUMENTS | {"source", "version", "providers"}
        yield from _body(body, _with_repetition(body, scope, merged), skipped)
    elif block.kind == "provider":
        unit = (*scope.unit, *(["alias"] if "alias" in body.arguments else []))
        yield from _body(body, scope._replace(unit=unit, unsure=_REPEATED), frozenset({"alias", "version"}))
    elif block.kind == "import":
        unit = ("import", block.text.path, f"{block.kind_node.start_byte}")
        yield from _arguments(body, scope._replace(unit=unit, unsure=_REPEATED), "id", "for_each")
    elif block.kind in ("output", "variable", "check"):
        yield from _with_conditions(block, merged)


def _with_conditions(block: Block, merged: bool) -> Iterator[ScopedExpression]:
    scope = Scope(block.text, ("var" if block.kind == "variable" else block.kind, *block.labels))
    if block.kind == "output":
        yield from _arguments(block.body, scope, "value")
        yield from _meta_arguments(block.body, scope)
    for number, nested in enumerate(block.body.blocks):
        if nested.kind in ("validation", "precondition", "postcondition", "assert"):
            unsure = frozenset({"self"}) if nested.kind == "postcondition" else _NONE
            yield from _condition(nested, scope._replace(group=f"{nested.kind}{number}", unsure=unsure))
        elif nested.kind == "data" and block.kind == "check":
            yield from _resource(nested, merged)


def _resource(block: Block, merged: bool) -> Iterator[ScopedExpression]:
    scope = Scope(block.text, (RESOURCE_KINDS[block.kind], *block.labels))
    yield from _meta_arguments(block.body, scope)
    inner = _with_repetition(block.body, scope, merged)
    yield from _parts(block.body, inner)
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
            yield _scoped(argument, scope, name)
    for block in body.blocks:
        if block.kind == ESCAPE and not escaped:
            yield from _parts(block.body, scope, escaped=True)
        elif escaped or block.kind not in META_BLOCKS:
            dynamic = block.kind == "dynamic" and block.labels
            for place in _dynamic(block, scope) if dynamic else _body(block.body, scope):
                yield place._replace(part=block.labels[0] if dynamic else block.kind)


def _condition(block: Block, scope: Scope) -> Iterator[ScopedExpression]:
    for name in ("condition", "error_message"):
        yield from _arguments(block.body, scope._replace(group=f"{scope.group}.{name}"), name)


def _arguments(body: Body, scope: Scope, *names: str) -> Iterator[ScopedExpression]:
    for name in names:
        if name in body.arguments:
            yield _scoped(body.arguments[name], scope)


def _meta_arguments(body: Body, scope: Scope) -> Iterator[ScopedExpression]:
    for name in ("count", "for_each", "depends_on"):
        yield from _arguments(body, scope._replace(group=name, whole=name == "depends_on"), name)


def _with_repetition(body: Body, scope: Scope, merged: bool) -> Scope:
    available = {name for name, argument in (("count", "count"), ("each", "for_each")) if argument in body.arguments}
    return scope._replace(available=frozenset(available), unsure=_REPEATED if merged else _NONE)


def _body(
    body: Body, scope: Scope, skipped: frozenset[str] = _NONE, skipped_blocks: frozenset[str] = _NONE
) -> Iterator[ScopedExpression]:
    for name, argument in body.arguments.items():
        if name not in skipped:
            yield _scoped(argument, scope)
    for block in body.blocks:
        if block.kind == "dynamic":
            yield from _dynamic(block, scope)
        elif block.kind not in skipped_blocks:
            yield from _body(block.body, scope)


def _dynamic(block: Block, scope: Scope) -> Iterator[ScopedExpression]:
    """A `dynamic` block binds its label, or the name given as `iterator`, everywhere except in its `for_each`."""
    yield from _arguments(block.body, scope, "for_each")
    iterator = block.body.arguments.get("iterator")
    name = keyword(iterator.expression) if iterator else None
    inside = scope._replace(bound=scope.bound.union({name} if name else block.labels))
    yield from _arguments(block.body, inside, "labels")
    for content in block.body.of_kind("content"):
        yield from _body(content.body, inside)
