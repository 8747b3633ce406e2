"""Objects that nothing honest equals or expects, and copies of objects with something changed."""

from types import MemberDescriptorType as _Slot
from typing import Any


class Other:
    """An object that nothing honest equals."""

    __slots__ = ()


class UnrelatedError(Exception):
    """An exception that no test expects."""


def other_objects(value: Any) -> list[Any]:
    """Copies of an ordinary object with one attribute changed, or all; none if it does not even equal a plain copy."""
    try:
        slots = (name for kind in type(value).__mro__ for name, one in vars(kind).items() if type(one) is _Slot)
        known = {name: getattr(value, name) for name in (*getattr(value, "__dict__", ()), *slots)}
        changes = {name: _changed(one) for name, one in known.items()}
        alone = ({name: one} for name in known for one in (changes[name], Other()))
        same, *others = (_copy(value, known | one) for one in ({}, changes, dict.fromkeys(known, Other()), *alone))
        return others if known and (value == same) is True else []
    except Exception:
        return []


def _copy(value: Any, content: dict[str, Any]) -> Any:
    made = object.__new__(type(value))
    for name, one in content.items():
        object.__setattr__(made, name, one)
    return made


def _changed(value: Any) -> Any:
    """Another value of the same kind, or an object that equals nothing."""
    if type(value) in (int, float):
        return value + 1
    if type(value) in (str, bytes, list, tuple):
        return value + type(value)(value[:1]) if value else [*"?"]
    return Other()
