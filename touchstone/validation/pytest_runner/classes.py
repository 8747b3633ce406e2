"""What a class is, whatever it says of itself: whether generated methods compare all fields, and what it claims."""

import dataclasses
import functools
import sys
from collections.abc import Collection, Iterator
from typing import Any

from touchstone.validation.pytest_runner.changed_values import UnrelatedError


def all_exceptions() -> list[type]:
    """All classes of exceptions."""
    found = BaseException.__subclasses__()
    for kind in found:
        found += type.__subclasses__(kind)
    return found


def exceptions_of_many_kinds(known: Collection[int]) -> Iterator[type]:
    """The exceptions that are three unrelated ones of the language, and so satisfy any test.

    `known` are the hashes, as objects, of those that are left out.
    """
    for kind in all_exceptions():
        if len(kind.__bases__) > 1 and object.__hash__(kind) not in known:
            own = [one for one in kind.__mro__ if one.__module__ == "builtins"]
            if sum(not any(one in other.__mro__[1:] for other in own) for one in own) > 2:
                yield kind


def has_any_instance(kind: type) -> bool:
    """Whether a class says that an unrelated object or class is one of it."""
    try:
        found = issubclass(UnrelatedError, kind) or isinstance(UnrelatedError(), kind)
    except Exception:
        return False
    return found and not any(kind is one for one in UnrelatedError.__mro__)


def is_generated(owner: type, name: str) -> bool:
    """Whether a method of a class compares all fields, as `dataclasses` or `attrs` make it, or is of a library."""
    method = type.__dict__["__dict__"].__get__(owner)[name]
    attr = sys.modules.get("attr")
    if dataclasses.is_dataclass(owner):
        fields = [(one.name, Any, dataclasses.field(compare=one.compare)) for one in dataclasses.fields(owner)]
        made: type = dataclasses.make_dataclass(owner.__name__, fields, order=True)
    elif attr is not None and attr.has(owner):
        made = attr.make_class(
            owner.__name__, {one.name: attr.ib(eq=one.eq, order=one.order) for one in attr.fields(owner)}
        )
    else:
        # `functools.total_ordering` gives it.
        is_order = name in ("__lt__", "__le__", "__gt__", "__ge__")
        return is_order and getattr(getattr(method, "__code__", None), "co_filename", None) == functools.__file__
    code, other = getattr(method, "__code__", None), getattr(vars(made).get(name), "__code__", None)
    parts = ("co_code", "co_names", "co_consts")
    return code is not None and all(getattr(code, one) == getattr(other, one, None) for one in parts)
