"""Values that an expected value must not be mistaken for, and copies of objects with something changed."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

_MOST_VARIANTS = 8


class Other:
    """An object that nothing honest equals."""

    __slots__ = ()


class UnrelatedError(Exception):
    """An exception that no test expects."""


def lenient_variants(value: Any) -> Iterator[Any]:
    """Values that a lenient equality takes for this one: near, in another case or order, longer or shorter.

    >>> [*lenient_variants("Ab")], [*lenient_variants([2, 1])]
    (['aB', 'Ab ', 'Abx', 'A'], [[1, 2], [2], [2, 1, 2], [2, 1, 1]])
    """
    if type(value) in (int, float):
        yield from (one for one in (value + 1, value - 1, value + 0.5, value * 2, -value) if one != value)
    elif type(value) is str:
        yield from (one for one in (value.swapcase(), f"{value} ", f"{value}x", value[:-1]) if one != value)
    elif type(value) in (list, tuple):
        kind, items = type(value), list(value)
        made = (items[::-1], items[:-1], [*items, *items[:1]], [*items, *items[-1:]])
        yield from (kind(one) for one in made if one != items)
    elif type(value) is dict:
        yield from ({key: item for key, item in value.items() if key != left} for left in islice(value, _MOST_VARIANTS))
        yield {**value, "?": 0}
    elif type(value) in (set, frozenset):
        yield value | {"?"}
        yield from (value - {item} for item in islice(value, _MOST_VARIANTS))


def other_objects(value: Any) -> list[Any]:
    """Copies of an ordinary object with one attribute changed, or all; none if it does not even equal a plain copy."""
    try:
        known = dict(vars(value))
        changes = {name: _changed(one) for name, one in known.items()}
        alone = ({name: one} for name in known for one in (changes[name], Other()))
        same, *others = (_copy(value, one) for one in ({}, changes, dict.fromkeys(known, Other()), *alone))
        return others if known and (value == same) is True else []
    except Exception:
        return []


def _copy(value: Any, changes: dict[str, Any]) -> Any:
    made = object.__new__(type(value))
    vars(made).update({**vars(value), **changes})
    return made


def _changed(value: Any) -> Any:
    """Another value of the same kind, or an object that equals nothing."""
    if type(value) in (int, float):
        return value + 1
    if type(value) in (str, bytes, list, tuple):
        return value + type(value)(value[:1]) if value else [*"?"]
    return Other()
