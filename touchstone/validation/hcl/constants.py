"""Arguments that Terraform reads before evaluation, and in which it allows no references or calls."""

from collections.abc import Iterator

from tree_sitter import Node

from touchstone.validation.hcl.expressions import Call, traversals_and_calls
from touchstone.validation.hcl.positions import SourceText, Span
from touchstone.validation.hcl.tree import Argument
from touchstone.validation.protocol import Diagnostic


def constant_errors(text: SourceText, argument: Argument, decoded: bool) -> Iterator[Diagnostic]:
    """Errors for references and calls in a constant. `decoded`: Terraform also reports the unknown value."""
    found, calls = traversals_and_calls(argument.expression)
    calls = [call for call in calls if not _within(call.name_node, calls)]
    found = [traversal for traversal in found if not _within(traversal.root_node, calls)]
    for traversal in found:
        yield text.error(text.span(traversal.root_node), "Variables not allowed", "Variables may not be used here.")
    for call in calls:
        span = text.span(call.name_node, call.closing)
        yield text.error(span, "Function calls not allowed", "Functions may not be called here.")
    if decoded and (found or calls):
        span = first_part(text, argument.expression)
        yield text.error(span, "Unsuitable value type", "Unsuitable value: value must be known")


def _until(text: SourceText, first: Node, following: Node) -> Span:
    """The span of a template literal including trailing blanks, which the tree-sitter node omits."""
    line, column, *_ = text.span(first)
    end_line, end_column, *_ = text.span(following)
    return Span(line, column, end_line, end_column)


def _within(node: Node, calls: list[Call]) -> bool:
    """Whether a node is inside a call's arguments, which are not checked where calls are not allowed."""
    return any(call.name_node.end_byte < node.start_byte < call.closing.start_byte for call in calls)


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
