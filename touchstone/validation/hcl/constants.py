"""Arguments that Terraform reads before evaluation, and in which it allows no references or calls."""

from collections.abc import Iterator

from tree_sitter import Node

from touchstone.validation.hcl.expressions import Call, first_part, traversals_and_calls
from touchstone.validation.hcl.positions import SourceText
from touchstone.validation.hcl.tree import Argument
from touchstone.validation.hcl.types import conversion_problem
from touchstone.validation.hcl.values import literal_value
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
    if not decoded:
        return
    problem = "value must be known" if found or calls else _problem(text, argument)
    if problem:
        span = first_part(text, argument.expression)
        yield text.error(span, "Unsuitable value type", f"Unsuitable value: {problem}")


def _problem(text: SourceText, argument: Argument) -> str:
    """Why a literal is no text or no bool, whichever the argument is."""
    wanted = "string" if argument.name in ("description", "source", "version") else "bool"
    return conversion_problem(literal_value(text, argument.expression), wanted)


def _within(node: Node, calls: list[Call]) -> bool:
    """Whether a node is inside a call's arguments, which are not checked where calls are not allowed."""
    return any(call.name_node.end_byte < node.start_byte < call.closing.start_byte for call in calls)
