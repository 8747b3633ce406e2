"""The traversals (names with attribute and index steps) and function calls of an expression.

Names bound by a `for` are left out. The walk uses an explicit stack, because long sums exceed Python's recursion limit.
"""

from dataclasses import dataclass
from typing import NamedTuple

from tree_sitter import Node

from touchstone.validation.hcl.positions import SourceText, Span
from touchstone.validation.hcl.tree import source

_LEAVES = frozenset(
    {
        "literal_value",
        "identifier",
        "comment",
        "get_attr",
        "template_literal",
        "quoted_template_start",
        "quoted_template_end",
        "heredoc_start",
        "heredoc_identifier",
        "template_interpolation_start",
        "template_interpolation_end",
        "template_directive_start",
        "template_directive_end",
        "strip_marker",
        "ellipsis",
        "object_start",
        "object_end",
        "tuple_start",
        "tuple_end",
        "template_else_intro",
        "template_if_end",
        "template_for_end",
    }
)
_LOOPS = {"for_tuple_expr": "for_intro", "for_object_expr": "for_intro", "template_for": "template_for_start"}
_FORGIVING_FUNCTIONS = ("try", "can")
_NO_NAMES: frozenset[str] = frozenset()


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
    """A function call. `certain` is False if Terraform may skip it or ignore its errors."""

    name: str
    name_node: Node
    arguments: list[Node]
    expanded: bool
    closing: Node
    certain: bool


def traversals_and_calls(expression: Node, bound: frozenset[str] = _NO_NAMES) -> tuple[list[Traversal], list[Call]]:
    """The traversals and calls in an expression, without names bound around it."""
    if is_literal(expression):
        return [], []
    found: list[Traversal] = []
    calls: list[Call] = []
    stack: list[tuple[Node, frozenset[str], bool]] = [(expression, bound, True)]
    while stack:
        node, names, certain = stack.pop()
        kind = node.type
        if kind in _LOOPS:
            _enter_loop(node, _LOOPS[kind], names, certain, stack)
        elif kind == "object_elem":
            stack += [(part, names, certain) for part in _evaluated_parts(node)]
        elif kind == "function_call":
            call = _call(node, certain)
            calls.append(call)
            forgiving = call.name in _FORGIVING_FUNCTIONS
            stack += [(argument, names, certain and not forgiving) for argument in call.arguments]
        elif kind not in _LEAVES:
            inner = _collect(node.named_children, names, found)
            if inner:
                certain = certain and not _may_skip(kind, node)
                stack += [(child, names, certain) for child in inner]
    return found, calls


def _may_skip(kind: str, node: Node) -> bool:
    """Whether Terraform may skip an operand of this node: a branch not taken, or a short-circuited `&&`."""
    if kind == "binary_operation":
        return any(child.type in ("&&", "||") for child in node.children)
    return kind == "conditional"


def is_literal(expression: Node) -> bool:
    """Whether an expression is a number, a keyword like true or null, or a string without templates."""
    return expression.named_child_count == 1 and expression.named_children[0].type == "literal_value"


def keyword(expression: Node) -> str | None:
    """The word if an expression is a bare word, as in `type = string` or an object key, else None."""
    children = _without_comments(expression.named_children)
    if len(children) == 1 and children[0].type == "variable_expr" and children[0].end_byte == expression.end_byte:
        return source(children[0])
    return None


def elements(expression: Node) -> list[Node] | None:
    """The elements of a literal `[...]`, else None."""
    node = _only_child(expression)
    holder = _only_child(node) if node is not None and node.type == "collection_value" else None
    if holder is None or holder.type != "tuple":
        return None
    return [child for child in holder.named_children if child.type == "expression"]


def is_static_reference(expression: Node) -> bool:
    """Whether an expression is a traversal with constant steps, or one in quotes."""
    children = _without_comments(expression.named_children)
    if not children or children[0].type != "variable_expr":
        return source(expression).startswith('"') and "${" not in source(expression)
    return all(
        step.type == "get_attr" or (step.type == "index" and _literal_index(step) is not None) for step in children[1:]
    )


def _only_child(node: Node) -> Node | None:
    children = _without_comments(node.named_children)
    return children[0] if len(children) == 1 else None


def _enter_loop(
    node: Node, intro_kind: str, names: frozenset[str], certain: bool, stack: list[tuple[Node, frozenset[str], bool]]
) -> None:
    """Push a loop's parts: the collection is outside its scope, everything else sees its names."""
    children = node.named_children
    intro = next(child for child in children if child.type == intro_kind)
    inside = names.union(source(child) for child in intro.named_children if child.type == "identifier")
    stack += [(child, names, certain) for child in intro.named_children]
    stack += [(child, inside, False) for child in children if child.type != intro_kind]


def _evaluated_parts(element: Node) -> list[Node]:
    """The parts of an object element to evaluate: a bare-word key is literal, so it is left out."""
    parts = _without_comments(element.named_children)
    return parts[1:] if parts and keyword(parts[0]) is not None else parts


def _call(node: Node, certain: bool) -> Call:
    name = node.named_children[0]
    arguments: list[Node] = []
    expanded = False
    for child in node.named_children[1:]:
        if child.type == "function_arguments":
            arguments = [argument for argument in child.named_children if argument.type == "expression"]
            expanded = any(argument.type == "ellipsis" for argument in child.named_children)
    return Call(source(name), name, arguments, expanded, node.children[-1], certain)


def _collect(children: list[Node], names: frozenset[str], found: list[Traversal]) -> list[Node]:
    """Append the traversals among these siblings to `found` and return the nodes still to walk."""
    open_traversal: Traversal | None = None
    rest: list[Node] = []
    for child in children:
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
            if kind not in _LEAVES:
                rest.append(child)
    return rest


def _literal_index(index: Node) -> str | None:
    schema = index.named_children[0]
    if schema.type == "legacy_index":
        return source(schema)[1:]
    parts = _without_comments(schema.named_children)
    inner = _without_comments(parts[0].named_children) if parts else []
    return source(inner[0]) if len(inner) == 1 and inner[0].type == "literal_value" else None


def _without_comments(nodes: list[Node]) -> list[Node]:
    return [node for node in nodes if node.type != "comment"]


def first_part(text: SourceText, expression: Node) -> Span:
    """The part of an expression that Terraform points at: a string's first literal, or a call's name."""
    node = expression
    while node.type in ("expression", "literal_value", "string_lit", "template_expr", "quoted_template"):
        inner = [child for child in node.named_children if child.type not in ("comment", "quoted_template_start")]
        if not inner or (node.type == "expression" and len(inner) > 1):
            break
        if node.type == "quoted_template" and inner[0].type == "template_literal":
            return _until(text, inner[0], inner[1])
        node = inner[0]
    if node.type == "function_call":
        return text.span(node.named_children[0], node.children[1])
    return text.span(node)


def _until(text: SourceText, first: Node, following: Node) -> Span:
    """The span of a template literal including trailing blanks, which the tree-sitter node omits."""
    line, column, *_ = text.span(first)
    end_line, end_column, *_ = text.span(following)
    return Span(line, column, end_line, end_column)
