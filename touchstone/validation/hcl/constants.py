"""Arguments that Terraform reads before anything has a value: nothing may be referred to or called in them."""

from collections.abc import Iterator

from tree_sitter import Node

from touchstone.validation.hcl.expressions import Call, traversals
from touchstone.validation.hcl.positions import SourceText, Span
from touchstone.validation.hcl.tree import Argument
from touchstone.validation.protocol import Diagnostic


def constant_errors(text: SourceText, argument: Argument, decoded: bool) -> Iterator[Diagnostic]:
    """Variables and functions in a constant. `decoded` says that Terraform then also misses the value."""
    found, calls = traversals(argument.expression)
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
    """A piece of a template with the blanks after it, which the tree leaves out."""
    line, column, *_ = text.span(first)
    end_line, end_column, *_ = text.span(following)
    return Span(line, column, end_line, end_column)


def _within(node: Node, calls: list[Call]) -> bool:
    """Whether a node is part of an argument, which is not looked at where no function may be called."""
    return any(call.name_node.end_byte < node.start_byte < call.closing.start_byte for call in calls)


def first_part(text: SourceText, expression: Node) -> Span:
    """The part of an expression by which Terraform points to it: a string's first piece, a call's name."""
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
