"""Whether a variable's default fits its type, in the cases that need no evaluation."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from touchstone.validation.hcl.expressions import keyword
from touchstone.validation.hcl.tree import Block, source
from touchstone.validation.protocol import Diagnostic

_SUMMARY = "Invalid default value for variable"
_NO_NUMBER = re.compile(r"(?!(?:inf|nan))[A-Za-z ]*", re.IGNORECASE)
_PRIMITIVE = ("string", "number", "bool")
_COLLECTIONS = ("list", "set", "map")


def default_errors(variable: Block) -> Iterator[Diagnostic]:
    """The error for a default that cannot be converted to the variable's type."""
    default, kind = variable.body.arguments.get("default"), variable.body.arguments.get("type")
    value = _kind_of_value(default.expression) if default is not None else ""
    if default is None or not value:
        return
    if value == "null":
        nullable = variable.body.arguments.get("nullable")
        if nullable is not None and source(nullable.expression) == "false":
            detail = "A null default value is not valid when nullable=false."
            yield variable.text.error(variable.text.span(default.expression), _SUMMARY, detail)
    elif kind is not None:
        problem = _problem(_type_name(kind.expression), value, source(default.expression))
        if problem:
            detail = f"This default value is not compatible with the variable's type constraint: {problem}."
            yield variable.text.error(variable.text.span(default.expression), _SUMMARY, detail)


def _problem(expected: str, value: str, written: str) -> str:
    outer = expected.partition(" ")[0]
    if not expected or not value:
        return ""
    if outer in _PRIMITIVE:
        if value in ("tuple", "object") or (value != outer and "string" not in (value, outer)):
            return f"{expected} required"
        return _unreadable(outer, written[1:-1]) if value == "string" else ""
    fits = {"list": "tuple", "set": "tuple", "tuple": "tuple", "map": "object", "object": "object"}
    return "" if value == fits.get(outer, value) else f"{expected} required"


def _unreadable(expected: str, string: str) -> str:
    """Why a string cannot be converted to a number or a bool; empty if it can."""
    if expected == "number" and _NO_NUMBER.fullmatch(string):
        return "a number is required"
    if expected == "bool" and string not in ("true", "false", "1", "0") and "\\" not in string:
        lower = string.lower()
        hint = f'; to convert from string, use lowercase "{lower}"' if lower in ("true", "false") else ""
        return f"a bool is required{hint}"
    return ""


def _kind_of_value(expression: Node) -> str:
    """string, number, bool, null, tuple or object; empty if the expression is not a literal of these."""
    children = [child for child in expression.named_children if child.type != "comment"]
    if len(children) != 1 or children[0].type not in ("literal_value", "collection_value"):
        return ""
    inner = next((child.type for child in children[0].named_children if child.type != "comment"), "")
    kinds = {"string_lit": "string", "numeric_lit": "number", "bool_lit": "bool", "null_lit": "null"}
    return kinds.get(inner, inner if inner in ("tuple", "object") else "")


def _type_name(expression: Node) -> str:
    """A type as Terraform names it in messages; empty for complex types."""
    word = keyword(expression)
    if word is not None:
        return word if word in _PRIMITIVE else f"{word} of any single type" if word in ("list", "map") else ""
    children = [child for child in expression.named_children if child.type != "comment"]
    if len(children) != 1 or children[0].type != "function_call":
        return ""
    name = source(children[0].named_children[0])
    if name in _COLLECTIONS:
        inner = [part for child in children[0].named_children[1:] for part in child.named_children]
        if len(inner) == 1:
            element = "any single type" if keyword(inner[0]) == "any" else _type_name(inner[0])
            return f"{name} of {element}" if element else ""
    return name if name in ("object", "tuple") else ""
