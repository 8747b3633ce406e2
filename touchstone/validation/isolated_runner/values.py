"""Encoding of the values that pass between tests and candidate: copies of plain values, and references to the rest.

The receiving side rebuilds a value from JSON as one of the types listed here, so no method of the candidate ever runs
on the tests' side: an object that claims to equal everything stays a reference that equals only itself.
"""

import base64
import collections
import datetime
import decimal
import fractions
from collections.abc import Callable
from typing import Any

Plain = Any
Export = Callable[[Any], Plain]
Adopt = Callable[[Plain], Any]

_MAX_DEPTH = 200
_SMALL = 2**53


class NotPlainError(Exception):
    """What came over the socket is not a valid value."""


def encode(value: Any, export: Export, depth: int = 0) -> Plain:
    """Encode a value for JSON; `export` encodes objects that are not plain values.

    >>> encode((1, "a", None), export=repr)
    ['tuple', [1, 'a', None]]
    """
    if depth > _MAX_DEPTH:
        raise ValueError("the value is nested too deeply")
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return value if -_SMALL < value < _SMALL else ["int", hex(value)]
    if kind is float:
        return ["float", value.hex()]
    if kind in _SEQUENCES:
        return [_SEQUENCES[kind], [encode(item, export, depth + 1) for item in value]]
    if kind is collections.deque:
        return ["deque", [value.maxlen, [encode(item, export, depth + 1) for item in value]]]
    if kind is slice:
        return ["slice", [encode(item, export, depth + 1) for item in (value.start, value.stop, value.step)]]
    if kind in _MAPPINGS:
        pairs = [[encode(key, export, depth + 1), encode(item, export, depth + 1)] for key, item in value.items()]
        if kind is collections.defaultdict:
            # Any other factory would let the candidate answer for missing keys.
            factory = _TYPES.get(value.default_factory)
            return ["defaultdict", [factory, pairs]] if factory else ["dict", pairs]
        return [_MAPPINGS[kind], pairs]
    if kind is type and value in _TYPES:
        return ["type", _TYPES[value]]
    if kind in _WRITTEN:
        name, write, _ = _WRITTEN[kind]
        return [name, write(value)]
    if _is_named_tuple(value):
        items = [encode(item, export, depth + 1) for item in tuple.__iter__(value)]
        return ["namedtuple", [kind.__name__, list(kind._fields), items]]
    return ["reference", export(value)]


def decode(plain: Plain, adopt: Adopt, depth: int = 0) -> Any:
    """Decode a value; `adopt` resolves references.

    >>> decode(["tuple", [1, ["float", "0x1.8p+0"]]], adopt=print)
    (1, 1.5)
    """
    if plain is None or type(plain) in (bool, str, int):
        return plain
    if not (isinstance(plain, list) and len(plain) == 2 and isinstance(plain[0], str)):
        raise NotPlainError("what came is no value")
    if depth > _MAX_DEPTH:
        raise NotPlainError("what came is nested too deeply")
    name, content = plain
    if name == "reference":
        return adopt(content)
    try:
        if name in _SEQUENCE_MAKERS:
            return _SEQUENCE_MAKERS[name](decode(item, adopt, depth + 1) for item in content)
        if name in _MAPPING_MAKERS:
            pairs = ((decode(key, adopt, depth + 1), decode(item, adopt, depth + 1)) for key, item in content)
            return _MAPPING_MAKERS[name](pairs)
        if name == "deque":
            return collections.deque((decode(item, adopt, depth + 1) for item in content[1]), content[0])
        if name == "defaultdict":
            factory, pairs = content
            return collections.defaultdict(_READERS["type"](factory), decode(["dict", pairs], adopt, depth))
        if name == "namedtuple":
            title, fields, items = content
            return collections.namedtuple(title, fields, rename=True)(
                *(decode(item, adopt, depth + 1) for item in items)
            )
        return _READERS[name](content)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, SyntaxError) as error:
        raise NotPlainError(f"what came is no {name}: {error}") from None


def is_mutable(value: Any) -> bool:
    """Whether it is a plain value that a callee can change in place."""
    return type(value) in (list, dict, set, bytearray, *_MAPPINGS, collections.deque)


def replace_content(value: Any, other: Any) -> None:
    """Replace the content of a mutable plain value by that of another one of its type.

    >>> numbers = [3, 1, 2]
    >>> replace_content(numbers, [1, 2, 3])
    >>> numbers
    [1, 2, 3]
    """
    if not is_mutable(value) or not isinstance(value, type(other)):
        raise NotPlainError("what came is of another kind")
    value.clear()
    if isinstance(value, list | bytearray | collections.deque):
        value.extend(other)
    else:
        value.update(other)


def _is_named_tuple(value: Any) -> bool:
    kind = type(value)
    fields = kind.__dict__.get("_fields")
    return kind.__bases__ == (tuple,) and isinstance(fields, tuple) and all(type(name) is str for name in fields)


_SEQUENCES: dict[type, str] = {
    list: "list",
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
}
_SEQUENCE_MAKERS: dict[str, Callable[[Any], Any]] = {
    **{name: kind for kind, name in _SEQUENCES.items()},
    "slice": lambda parts: slice(*parts),
}
_MAPPINGS: dict[type, str] = {
    dict: "dict",
    collections.OrderedDict: "OrderedDict",
    collections.defaultdict: "defaultdict",
    collections.Counter: "Counter",
}
_MAPPING_MAKERS: dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "OrderedDict": collections.OrderedDict,
    "Counter": lambda pairs: collections.Counter(dict(pairs)),
}
_WRITTEN: dict[type, tuple[str, Callable[[Any], Plain], Callable[[Any], Any]]] = {
    bytes: ("bytes", lambda value: base64.b64encode(value).decode(), base64.b64decode),
    bytearray: (
        "bytearray",
        lambda value: base64.b64encode(value).decode(),
        lambda text: bytearray(base64.b64decode(text)),
    ),
    complex: ("complex", lambda value: [value.real.hex(), value.imag.hex()], lambda parts: _complex(*parts)),
    range: (
        "range",
        lambda value: [hex(value.start), hex(value.stop), hex(value.step)],
        lambda parts: range(*(int(part, 16) for part in parts)),
    ),
    type(...): ("ellipsis", lambda value: "", lambda text: ...),
    decimal.Decimal: ("Decimal", str, decimal.Decimal),
    fractions.Fraction: (
        "Fraction",
        lambda value: [hex(value.numerator), hex(value.denominator)],
        lambda parts: fractions.Fraction(*(int(part, 16) for part in parts)),
    ),
    datetime.date: ("date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: ("time", datetime.time.isoformat, datetime.time.fromisoformat),
    datetime.datetime: ("datetime", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.timedelta: (
        "timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: datetime.timedelta(*parts),
    ),
    datetime.timezone: (
        "timezone",
        lambda value: [value.utcoffset(None).total_seconds().hex(), value.tzname(None)],
        lambda parts: _timezone(*parts),
    ),
}
# Types as values, as when a test passes `int` to a function.
_TYPES: dict[type, str] = {
    kind: kind.__name__
    for kind in (bool, int, float, str, object, collections.deque, *_SEQUENCES, *_MAPPINGS, *_WRITTEN)
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "type": {name: kind for kind, name in _TYPES.items()}.__getitem__,
    "int": lambda text: int(text, 16),
    "float": float.fromhex,
    **{name: read for name, _, read in _WRITTEN.values()},
}


def _timezone(seconds: str, name: str) -> datetime.timezone:
    found = datetime.timezone(datetime.timedelta(seconds=float.fromhex(seconds)))
    return found if found.tzname(None) == name else datetime.timezone(found.utcoffset(None), name)


def _complex(real: str, imaginary: str) -> complex:
    return complex(float.fromhex(real), float.fromhex(imaginary))
