"""The operations of Python's data model by name, as one side requests them of an object of the other."""

import operator
from collections.abc import Callable
from typing import Any

# Binary operators; each also has a reflected `r…` and an in-place `i…` form.
OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
UNARY = ("neg", "pos", "abs", "invert", "int", "float", "index", "round", "format")
# Methods that tell what an object can be used for, as `callable` and `collections.abc` look for them.
CAPABILITIES = (
    *("__call__", "__iter__", "__next__", "__len__", "__contains__", "__reversed__", "__getitem__", "__setitem__"),
    *("__delitem__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__aiter__", "__anext__"),
)


def _swapped(operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda value, other: operate(other, value)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "len": len,
    "iter": iter,
    "bool": bool,
    "str": str,
    "repr": repr,
    "hash": hash,
    "int": int,
    "float": float,
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "contains": operator.contains,
    "reversed": reversed,
    "abs": abs,
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "index": operator.index,
    "round": round,
    "format": format,
    "divmod": divmod,
    "rdivmod": _swapped(divmod),
    **{name: getattr(operator, name) for name in COMPARISONS},
    **{name: getattr(operator, f"__{name}__") for name in OPERATORS},
    **{f"i{name}": getattr(operator, f"__i{name}__") for name in OPERATORS},
    **{f"r{name}": _swapped(getattr(operator, f"__{name}__")) for name in OPERATORS},
}
