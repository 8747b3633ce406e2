"""Terraform's types and its conversions between them.

A type is a word (`string`, `number`, `bool`, `dynamic`) or a tuple: `("list", element)`, also `set` and `map`;
`("tuple", (types…))`; `("object", ((name, type, required), …))`. `dynamic` converts to anything.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tree_sitter import Node

from touchstone.validation.hcl.expressions import keyword
from touchstone.validation.hcl.tree import source

Type = str | tuple[Any, ...]

DYNAMIC = "dynamic"
PRIMITIVE = ("string", "number", "bool")
COLLECTIONS = ("list", "set", "map")
SEQUENCES, MAPPINGS = ("list", "set", "tuple"), ("map", "object")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eEpP][+-]?\d+)?")
_MAYBE_NUMBER = re.compile(r"inf|nan|\\", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value without running Terraform.

    `known` is the constant of a primitive type, else None; `parts` are the elements of a literal list or object.
    `sensitive` is None if that cannot be told.
    """

    type: Type = DYNAMIC
    known: str | float | bool | None = None
    parts: tuple["Value", ...] | Mapping[str, "Value"] | None = None
    null: bool = False
    sensitive: bool | None = False

    @property
    def kind(self) -> str:
        """The outermost word of the type."""
        return outer(self.type)

    @property
    def constant(self) -> bool:
        """Whether Terraform knows the whole value when it validates."""
        if self.parts is None:
            return self.null or self.known is not None
        parts = self.parts.values() if isinstance(self.parts, Mapping) else self.parts
        return all(part.constant for part in parts)


def outer(kind: Type) -> str:
    """The outermost word of a type."""
    return kind if isinstance(kind, str) else kind[0]


def attributes_of(kind: Type) -> tuple[tuple[str, Type, bool], ...]:
    """The attributes of an object type: name, type and whether it is required."""
    return kind[1] if isinstance(kind, tuple) and kind[0] == "object" else ()


def type_name(kind: Type) -> str:
    """A type as Terraform names it in messages.

    >>> type_name(("map", ("list", "string")))
    'map of list of string'
    """
    if outer(kind) in COLLECTIONS:
        return f"{kind[0]} of {'any single type' if kind[1] == DYNAMIC else type_name(kind[1])}"
    return outer(kind)


def type_of_schema(raw: object) -> Type:
    """A type as provider schemas have it in JSON."""
    if raw in PRIMITIVE:
        return str(raw)
    if not isinstance(raw, list) or len(raw) < 2:
        return DYNAMIC
    kind, inner = raw[0], raw[1]
    if kind in COLLECTIONS:
        return (kind, type_of_schema(inner))
    if kind == "tuple" and isinstance(inner, list):
        return ("tuple", tuple(type_of_schema(one) for one in inner))
    if kind == "object" and isinstance(inner, dict):
        optional = raw[2] if len(raw) > 2 and isinstance(raw[2], list) else []
        return ("object", tuple((name, type_of_schema(one), name not in optional) for name, one in inner.items()))
    return DYNAMIC


def type_of_constraint(expression: Node) -> Type:
    """The type that a variable's `type` states; dynamic where it is not understood."""
    word = keyword(expression)
    if word is not None:
        return word if word in PRIMITIVE else (word, DYNAMIC) if word in ("list", "map") else DYNAMIC
    call = _call(expression)
    if call is None:
        return DYNAMIC
    name, arguments = call
    if name in COLLECTIONS and len(arguments) == 1:
        return (name, type_of_constraint(arguments[0]))
    content = _literal(arguments[0]) if len(arguments) == 1 else None
    if name == "tuple" and content is not None and content.type == "tuple":
        inner = (child for child in content.named_children if child.type == "expression")
        return ("tuple", tuple(type_of_constraint(one) for one in inner))
    if name == "object" and content is not None and content.type == "object":
        return ("object", tuple(_attributes(content)))
    return DYNAMIC


def _attributes(content: Node) -> Iterator[tuple[str, Type, bool]]:
    for element in content.named_children:
        if element.type != "object_elem":
            continue
        key, value = (child for child in element.named_children if child.type == "expression")
        call = _call(value)
        optional = call is not None and call[0] == "optional" and bool(call[1])
        kind = type_of_constraint(call[1][0] if call is not None and optional else value)
        yield source(key).strip('"'), kind, not optional


def _call(expression: Node) -> tuple[str, list[Node]] | None:
    children = [child for child in expression.named_children if child.type != "comment"]
    if len(children) != 1 or children[0].type != "function_call":
        return None
    name, *rest = children[0].named_children
    inner = [one for child in rest if child.type == "function_arguments" for one in child.named_children]
    return source(name), [one for one in inner if one.type == "expression"]


def _literal(expression: Node) -> Node | None:
    children = [child for child in expression.named_children if child.type != "comment"]
    if len(children) != 1 or children[0].type != "collection_value":
        return None
    return next((child for child in children[0].named_children if child.type != "comment"), None)


def conversion_problem(value: Value, wanted: Type) -> str:
    """Why Terraform cannot convert the value to the type, in its words; empty if it can or may.

    >>> conversion_problem(Value("string", "5"), "number"), conversion_problem(Value("string", "five"), "number")
    ('', 'a number is required')
    >>> conversion_problem(Value(("tuple", ("string",)), parts=(Value("string", "a"),)), ("list", "number"))
    'element 0: a number is required'
    """
    want, kind = outer(wanted), value.kind
    if value.null or DYNAMIC in (want, kind):
        return ""
    if want in PRIMITIVE:
        return _primitive_problem(value, want)
    if want in ("list", "set") and kind in SEQUENCES:
        return _first_problem(_elements(value), wanted[1], "element {}: {}")
    if want == "tuple" and kind == "tuple":
        if len(wanted[1]) != len(value.type[1]):
            return "tuple required"
        found = (conversion_problem(one, kind) for (_, one), kind in zip(_elements(value), wanted[1], strict=True))
        return next(filter(None, found), "")
    if want == "map" and kind in MAPPINGS:
        return _first_problem(_elements(value), wanted[1], 'element "{}": {}')
    if want == "object" and kind == "object":
        return _object_problem(dict(_elements(value)), wanted)
    may = (want == "object" and kind == "map") or (want == "tuple" and kind in ("list", "set"))
    return "" if may else f"{type_name(wanted)} required"


def _primitive_problem(value: Value, want: str) -> str:
    if value.kind not in PRIMITIVE:
        return f"{want} required"
    if want in ("string", value.kind):
        return ""
    if value.kind != "string":
        return f"{want} required"
    return _unreadable(want, value.known) if isinstance(value.known, str) else ""


def _unreadable(want: str, text: str) -> str:
    """Why a string cannot be converted to a number or a bool; empty if it can."""
    if want == "number":
        return "" if _NUMBER.fullmatch(text) or _MAYBE_NUMBER.search(text) else "a number is required"
    if text in ("true", "false", "1", "0") or "\\" in text:
        return ""
    lower = text.lower()
    hint = f'; to convert from string, use lowercase "{lower}"' if lower in ("true", "false") else ""
    return f"a bool is required{hint}"


def _object_problem(given: Mapping[str, Value], wanted: Type) -> str:
    for name, kind, required in attributes_of(wanted):
        if name in given:
            if problem := conversion_problem(given[name], kind):
                return f'attribute "{name}": {problem}'
        elif required:
            return f'attribute "{name}" is required'
    return ""


def _elements(value: Value) -> Iterator[tuple[str, Value]]:
    """The elements of a collection by index or key; of an unknown one, one that stands for all."""
    kind = value.kind
    if isinstance(value.parts, Mapping):
        yield from value.parts.items()
    elif value.parts is not None:
        yield from ((str(index), part) for index, part in enumerate(value.parts))
    elif kind == "tuple":
        yield from ((str(index), Value(one)) for index, one in enumerate(value.type[1]))
    elif kind == "object":
        yield from ((name, Value(one)) for name, one, _ in attributes_of(value.type))
    else:
        yield "0" if kind != "map" else "*", Value(value.type[1])


def _first_problem(elements: Iterator[tuple[str, Value]], wanted: Type, words: str) -> str:
    found = ((name, conversion_problem(one, wanted)) for name, one in elements)
    return next((words.format(name, problem) for name, problem in found if problem), "")
