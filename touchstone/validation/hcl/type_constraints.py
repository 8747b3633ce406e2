"""Errors in a variable's `type`."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from touchstone.validation.hcl.expressions import keyword
from touchstone.validation.hcl.positions import SourceText
from touchstone.validation.hcl.tree import Block, source
from touchstone.validation.protocol import Diagnostic

_PRIMITIVE = ("bool", "number", "string", "any")
_COLLECTION = ("list", "map", "set")
_STRUCTURE = {
    "object": "The object type constructor requires one argument specifying the attribute types and values as a map.",
    "tuple": "The tuple type constructor requires one argument specifying the element types as a list.",
}
_PLAIN = re.compile(
    r"(?:(?:list|map|set)\()*(?:bool|number|string|any)\)*"
)  # Go's parser has checked that brackets match
_SUMMARY = "Invalid type specification"
_NEITHER = (
    "A type specification is either a primitive type keyword (bool, number, string) or a complex type constructor "
    "call, like list(string)."
)
_ANY_ELEMENTS = ("list", "map")  # without arguments, these mean collections of any type
_ONCE_QUOTED = {
    '"string"': 'Remove the quotes around "string".',
    '"list"': 'Remove the quotes around "list" and write list(string) instead to explicitly indicate that the list '
    "elements are strings.",
    '"map"': 'Remove the quotes around "map" and write map(string) instead to explicitly indicate that the map '
    "elements are strings.",
}


def type_errors(variable: Block) -> Iterator[Diagnostic]:
    """The errors of a variable's `type`."""
    argument = variable.body.arguments.get("type")
    if argument is None:
        return
    text, expression = variable.text, argument.expression
    written = source(expression)
    if _PLAIN.fullmatch(written):
        return
    if written in _ONCE_QUOTED:
        detail = (
            "Terraform 0.11 and earlier required type constraints to be given in quotes, but that form is now "
            f"deprecated and will be removed in a future version of Terraform. {_ONCE_QUOTED[written]}"
        )
        yield text.error(text.span(expression), "Invalid quoted type constraints", detail)
    elif written.startswith('"'):
        detail = (
            "To provide a full type expression, remove the surrounding quotes and give the type expression directly."
        )
        yield text.error(text.span(expression), "Invalid legacy variable type hint", detail)
    elif keyword(expression) not in _ANY_ELEMENTS:
        yield from _expression_errors(text, expression)


def _expression_errors(text: SourceText, expression: Node) -> Iterator[Diagnostic]:
    word, call = keyword(expression), _call(expression)
    if call is not None:
        yield from _constructor_errors(text, call)
    elif word is None:
        yield text.error(text.span(expression), _SUMMARY, _NEITHER)
    elif word not in _PRIMITIVE:
        yield text.error(text.span(expression), _SUMMARY, _lacking(word))


def _lacking(word: str) -> str:
    """The error detail for a word that is not a type by itself."""
    if word in _COLLECTION:
        return f"The {word} type constructor requires one argument specifying the element type."
    if word == "optional":
        return 'Keyword "optional" is valid only as a modifier for object type attributes.'
    return _STRUCTURE.get(word, f'The keyword "{word}" is not a valid type specification.')


def _constructor_errors(text: SourceText, call: Node) -> Iterator[Diagnostic]:
    name_node = call.named_children[0]
    name, arguments = source(name_node), _arguments(call)
    brackets = text.span(call.children[1], call.children[-1])
    if name in _PRIMITIVE:
        yield text.error(brackets, _SUMMARY, f'Primitive type keyword "{name}" does not expect arguments.')
    elif name == "optional":
        yield text.error(text.span(name_node), _SUMMARY, _lacking(name))
    elif name not in _COLLECTION and name not in _STRUCTURE:
        yield text.error(text.span(call), _SUMMARY, f'Keyword "{name}" is not a valid type constructor.')
    elif len(arguments) != 1:
        span = text.span(arguments[1], arguments[-1]) if arguments else brackets
        yield text.error(span, _SUMMARY, _lacking(name))
    elif name in _COLLECTION:
        yield from _expression_errors(text, arguments[0])
    else:
        yield from _structure_errors(text, name, arguments[0])


def _structure_errors(text: SourceText, name: str, argument: Node) -> Iterator[Diagnostic]:
    holders = [holder for child in argument.named_children for holder in child.named_children]
    kinds = [holder.type for holder in holders if holder.type != "comment"]
    if name == "object" and kinds == ["object"]:
        for element in holders[0].named_children:
            if element.type == "object_elem":
                yield from _attribute_errors(text, element.named_children[-1])
    elif name == "tuple" and kinds == ["tuple"]:
        for element in holders[0].named_children:
            if element.type == "expression":
                yield from _expression_errors(text, element)


def _attribute_errors(text: SourceText, expression: Node) -> Iterator[Diagnostic]:
    """An attribute's type, which may be wrapped in `optional(type, default)`."""
    if expression.type != "expression":  # a trailing comment
        return
    call = _call(expression)
    if call is None or source(call.named_children[0]) != "optional":
        yield from _expression_errors(text, expression)
    elif arguments := _arguments(call):
        yield from _expression_errors(text, arguments[0])
    else:
        brackets = text.span(call.children[1], call.children[-1])
        detail = "Optional attribute modifier requires the attribute type as its argument."
        yield text.error(brackets, _SUMMARY, detail)


def _call(expression: Node) -> Node | None:
    children = [child for child in expression.named_children if child.type != "comment"]
    return children[0] if len(children) == 1 and children[0].type == "function_call" else None


def _arguments(call: Node) -> list[Node]:
    holders = [child for child in call.named_children if child.type == "function_arguments"]
    return [child for holder in holders for child in holder.named_children if child.type == "expression"]
