"""Paths into JSON documents, as the formats that a configuration declares name them. Reading files is not done here.

`results[].cases[]` are the elements of lists, `tests.*` all values of an object, `$` is the document, and `[]` a list
at the top, or the lines of JSON Lines. A field is a path from the record, such as `usage.cost` or `scores[0]`; `@` is
the record itself. From elsewhere: `$.info.model` from the document, `^.model` from the object or list element around
the record, `@key` and `@index` of the record (`^@key` of the one around it), `@file` and `@folder`. A key with odd
characters is quoted: `metrics."a.b"`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

_STEP = re.compile(
    r'"(?P<quoted>[^"]+)"|(?P<each>\[\])|\[(?P<index>-?\d{1,9})\]|(?P<key>[^.\[\]"{}\s^$@][^.\[\]"{}^$]*)'
)
_START = re.compile(r"(?P<root>\$)|(?P<up>\^*)(?:@(?P<name>[a-z]*))?")
_NAMES = ("key", "index", "file", "folder")
_FILLED_IN = re.compile(r"\{([^{}]*)\}")


class _Every:
    """A step to all elements of a list, or to all values of an object."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


ELEMENTS = _Every("[]")
VALUES = _Every("*")
Step = str | int | _Every


@dataclass(frozen=True)
class JsonPath:
    """A path: where it starts, and the steps from there."""

    text: str
    start: Literal["record", "root", "key", "index", "file", "folder"] = "record"
    # How many records further out it starts.
    up: int = 0
    steps: tuple[Step, ...] = ()


class JsonPathError(ValueError):
    """Raised for a text that is not a path."""


@cache
def parse_path(text: str) -> JsonPath:
    """The path that a text stands for.

    >>> parse_path("results[].cases[0]").steps
    ('results', [], 'cases', 0)
    >>> parse_path("a..b")
    Traceback (most recent call last):
    touchstone.config.json_paths.JsonPathError: 'a..b' is not a path: unexpected '..b' after 'a'
    """
    begin = _START.match(text)
    assert begin is not None
    name = begin["name"]
    if not text or (name and name not in _NAMES):
        known = ", ".join(f"@{each}" for each in _NAMES)
        raise JsonPathError(f"{text!r} is not a path: " + (f"known names are {known}" if text else "it is empty"))
    path = JsonPath(text, "root" if begin["root"] else name or "record", len(begin["up"] or ""))  # type: ignore[arg-type]
    place, steps = begin.end(), list[Step]()
    while place < len(text):
        dot = text[place] == "."
        step = _STEP.match(text, place + dot)
        # A dot stands before each key, but not before the first one or a bracket.
        if step is None or name or dot != (place > 0 and not step[0].startswith("[")):
            raise JsonPathError(f"{text!r} is not a path: unexpected {text[place:]!r} after {text[:place]!r}")
        steps.append(_step(step))
        place = step.end()
    return replace(path, steps=tuple(steps))


def _step(found: re.Match[str]) -> Step:
    if found["each"]:
        return ELEMENTS
    if found["index"]:
        return int(found["index"])
    return VALUES if found["key"] == "*" else found["quoted"] or found["key"]


def parse_records(text: str) -> JsonPath:
    """The path to the records of a document: `$`, or one with `[]` and `*` but without `[0]`, `@` and `^`."""
    path = parse_path(text)
    if path.up or text.startswith("@") or any(isinstance(step, int) for step in path.steps):
        raise JsonPathError(f"{text!r} is not a path to records: only keys, '[]' and '*' can be in it")
    if text != "$" and not any(isinstance(step, _Every) for step in path.steps):
        raise JsonPathError(f"{text!r} leads to one value: add '[]' for the elements of a list, '.*' for an object's")
    return path


def parse_field(text: str) -> tuple[str | JsonPath, ...]:
    """The parts of a field: one path, or after `=` text in which paths in braces are filled in.

    >>> [part if isinstance(part, str) else part.steps for part in parse_field("={suite}/{id}")]
    [('suite',), '/', ('id',)]
    """
    if not text.startswith("="):
        return (_single(parse_path(text)),)
    parts = _FILLED_IN.split(text[1:])
    return tuple(
        _single(parse_path(part)) if place % 2 else part for place, part in enumerate(parts) if part or place % 2
    )


def _single(path: JsonPath) -> JsonPath:
    if any(isinstance(step, _Every) for step in path.steps):
        raise JsonPathError(f"{path.text!r} leads to several values: only 'records' can have '[]' and '*' in it")
    return path


@dataclass(frozen=True)
class Found:
    """A value of a document, with its key and its index where it was one of several, and the one around it."""

    value: object
    key: str | None = None
    index: int = 0
    around: "Found | None" = None
    # The names of the file and of its folder.
    names: tuple[str, str] = field(default=("", ""), repr=False)

    @property
    def root(self) -> object:
        """The document. Of a large one only what the declared paths name."""
        return self.value if self.around is None else self.around.root

    def get(self, text: str) -> object:
        """The value at a path from here; None if it is missing.

        >>> case = Found({"id": 7}, around=Found({"model": "m", "cases": [{"id": 7}]}))
        >>> case.get("id"), case.get("$.model"), case.get("$.cases[0].id"), case.get("score")
        (7, 'm', 7, None)
        """
        return self.at(parse_path(text))

    def at(self, path: JsonPath) -> object:
        """The value at a parsed path from here."""
        if path.start == "root":
            return follow(self.root, path.steps)
        here: Found | None = self
        for _ in range(path.up):
            here = here.around if here is not None else None
        if here is None:
            return None
        own = {"key": here.key, "index": str(here.index), "file": self.names[0], "folder": self.names[1]}
        return own[path.start] if path.start in own else follow(here.value, path.steps)

    def each(self, steps: tuple[Step, ...]) -> "Iterator[Found]":
        """Everything that the steps lead to from here; a list or object that is none is itself one, to be refused."""
        if not steps:
            yield self
            return
        place = next((place for place, step in enumerate(steps) if isinstance(step, _Every)), len(steps))
        value = follow(self.value, steps[:place])
        if place == len(steps):
            yield replace(self, value=value)
            return
        members: Iterator[tuple[str | None, object]]
        if steps[place] is ELEMENTS and isinstance(value, list):
            members = ((None, each) for each in value)
        elif steps[place] is VALUES and isinstance(value, dict):
            members = iter(value.items())
        else:
            if value is not None:
                yield Found(WrongKind(value, "a list" if steps[place] is ELEMENTS else "an object"), around=self)
            return
        for index, (key, each) in enumerate(members):
            yield from Found(each, key, index, self, self.names).each(steps[place + 1 :])


@dataclass(frozen=True)
class WrongKind:
    """A value where the path to the records wants a list or an object."""

    value: object
    wanted: str


def follow(value: object, steps: tuple[Step, ...]) -> object:
    """The value that keys and indexes lead to; None if one is missing."""
    for step in steps:
        if isinstance(step, int):
            inside = isinstance(value, list) and -len(value) <= step < len(value)
            value = value[step] if isinstance(value, list) and inside else None
        else:
            value = value.get(step) if isinstance(value, dict) and isinstance(step, str) else None
    return value
