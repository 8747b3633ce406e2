"""Small questions about the syntax tree of a test file."""

import ast
from collections.abc import Iterator, Mapping

_DEEPEST = 20


def calls_in(node: ast.expr, made: Mapping[str, ast.Call], depth: int = 0) -> Iterator[ast.Call]:
    """The calls that give a value, or the items of a list, set, tuple or dict."""
    if isinstance(node, ast.Call):
        yield node
    elif isinstance(node, ast.Name) and node.id in made:
        yield made[node.id]
    elif isinstance(node, ast.List | ast.Tuple | ast.Set) and depth < _DEEPEST:
        for each in node.elts:
            yield from calls_in(each, made, depth + 1)
    elif isinstance(node, ast.Dict) and depth < _DEEPEST:
        for each in node.values:
            yield from calls_in(each, made, depth + 1)


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name, called or subscripted or not; "" for anything else.

    >>> last_name(ast.parse("a.b(1)[2]", mode="eval").body)
    'b'
    """
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
