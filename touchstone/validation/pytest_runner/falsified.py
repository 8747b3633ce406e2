"""Values that an expected value must not be mistaken for: changed copies of the same kind.

No honest value equals both what a test expects and a changed copy of it, so a value that does is forged.
"""

import dataclasses
import datetime
import enum
import math
import numbers
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

_MOST_VARIANTS = 24
_MOST_PLACES = 8
_MAX_DEPTH = 8
_DAY = datetime.timedelta(days=1)


class Other:
    """An object that nothing honest equals."""

    __slots__ = ()


class UnrelatedError(Exception):
    """An exception that no test expects."""


def variants(value: Any) -> Iterator[Any]:
    """Changed copies of a value: one place each, spread over it, and one that is longer.

    >>> list(variants(5)), list(variants([1, "a"]))[:2]
    ([6], [[2, 'a'], [1, 'a\\x00']])
    """
    try:
        yield from islice(_variants(value, 0), _MOST_VARIANTS)
    except Exception:
        yield Other()


def longer(value: Any) -> Any:
    """A container with one more item, for one whose items may rightly equal many others; `Other` for anything else."""
    if isinstance(value, dict):
        return {**dict(dict.items(value)), Other(): 0}
    return [*value, Other()] if isinstance(value, list) else (*value, Other()) if isinstance(value, tuple) else Other()


def unlikely(value: Any) -> list[Any]:
    """A number or text of the same kind that is nowhere near; nothing for another kind of value.

    >>> unlikely(5), unlikely("a"), unlikely([])
    ([-56], ['?a'], [])
    """
    if isinstance(value, str):
        return ["?" + str.__str__(value)]
    if isinstance(value, bytes):
        return [b"?" + value]
    return [-far_number(value)] if type(value) in (int, float) else []


def _variants(value: Any, depth: int) -> Iterator[Any]:
    if depth > _MAX_DEPTH:
        yield Other()
    elif isinstance(value, enum.Enum):
        yield from (member for member in type(value) if member is not value)
        yield Other()
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, numbers.Number):
        yield _other_number(value)
    elif isinstance(value, str):
        yield str.__str__(value) + "\0"
    elif isinstance(value, bytes | bytearray):
        yield bytes(value) + b"\0"
    elif isinstance(value, tuple | list):
        yield from _of_sequence(value, depth)
    elif isinstance(value, dict):
        # A dict of the fix may change when it is asked for an item.
        items = dict(dict.items(value))
        for key in spread(list(items)):
            yield from ({**items, key: changed} for changed in _variants(items[key], depth + 1))
        yield {**items, Other(): 0}
    elif isinstance(value, set | frozenset):
        yield {*value, Other()}
        yield from (value - {item} for item in spread(list(value)))
    elif isinstance(value, datetime.date | datetime.timedelta):
        yield _other_date(value)
    elif isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "tolist"):
        # An empty array equals any single object to numpy.
        yield far_number(value)
    elif approximate := _other_approximation(value):
        yield from approximate
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield _other_dataclass(value, depth)
        yield Other()
    else:
        yield Other()


def _of_sequence(value: Any, depth: int) -> Iterator[Any]:
    make = getattr(type(value), "_make", None) or (tuple if isinstance(value, tuple) else list)
    items = list(value)
    for place in spread(range(len(items))):
        yield from (
            make([*items[:place], changed, *items[place + 1 :]]) for changed in _variants(items[place], depth + 1)
        )
    yield (*items, Other()) if isinstance(value, tuple) else [*items, Other()]


def spread(places: Any) -> Any:
    """At most a few of the places, the first and the last among them."""
    if len(places) <= _MOST_PLACES:
        return places
    step = (len(places) - 1) / (_MOST_PLACES - 1)
    return [places[round(step * place)] for place in range(_MOST_PLACES)]


def _other_number(value: Any) -> Any:
    try:
        changed = value + 1
        return changed if math.isfinite(abs(value)) and changed != value else Other()
    except Exception:
        return Other()


def _other_date(value: Any) -> Any:
    for step in (_DAY, -_DAY):
        with suppress(OverflowError):
            return value + step
    return Other()


def far_number(value: Any, tolerance: Any = 0) -> Any:
    """A number that no sensible tolerance takes for this one; another kind of value is returned unchanged.

    >>> far_number(2), far_number([1.0, 2.0]), far_number(math.inf)
    (23, [12.0, 23.0], 0)
    """
    if isinstance(value, list | tuple):
        return type(value)([far_number(item, tolerance) for item in value] or [1, 2])
    if isinstance(value, bool | str | bytes | dict | set):
        return Other()
    try:
        if isinstance(getattr(value, "shape", None), tuple):
            # An array: as a list, because its own numbers can overflow. An empty one fits any other of one item.
            return far_number(value.tolist(), tolerance)
        if value - value != 0:
            # Infinite or not a number.
            return 0
        return value + 1 + 10 * abs(value) + 4 * abs(tolerance)
    except Exception:
        return Other()


def _other_approximation(value: Any) -> list[Any]:
    """For `pytest.approx`: the same of another number, unless that is still near."""
    import pytest

    if type(value).__module__ != type(pytest.approx(0.0)).__module__:
        return []
    expected = getattr(value, "expected", None)
    try:
        changed = far_number(expected, max(getattr(value, "abs", None) or 0, 0))
        made = pytest.approx(changed, rel=getattr(value, "rel", None), abs=getattr(value, "abs", None))
        return [Other()] if isinstance(changed, Other) or expected == made else [made]
    except Exception:
        return [Other()]


def _other_dataclass(value: Any, depth: int) -> Any:
    """A copy in which every compared field differs, or one of them if it is still the same to an honest `__eq__`."""
    try:
        # One that does not equal its own copy is not made to be compared with its kind.
        if (value == dataclasses.replace(value)) is not True:
            return Other()
        fields = [field for field in dataclasses.fields(value) if field.init and field.compare]
        changes = {field.name: next(_variants(getattr(value, field.name), depth + 1)) for field in fields}
        made = [
            dataclasses.replace(value, **changed) for changed in (changes, *({key: changes[key]} for key in changes))
        ]
        differ = [one for one in made if any(getattr(one, name) != getattr(value, name) for name in changes)]
        return next((one for one in differ if (value == one) is not True), differ[0]) if differ else Other()
    except Exception:
        return Other()


def decoy(value: Any) -> Any:
    """A literal with every part changed, to stand in a test's text in its place; the same value if it has none.

    >>> decoy({"a": [1, "x", None]}), decoy([]), decoy(None)
    ({'a': [2, 'xx', None]}, [0], None)
    """
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float | complex):
        return value + 1 if value + 1 != value else value * 2
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, bytes):
        return value + b"x"
    if isinstance(value, dict):
        return {key: decoy(part) for key, part in value.items()} or {0: 0}
    if isinstance(value, list | tuple | set):
        return type(value)(map(decoy, value)) or type(value)([0])
    return value
