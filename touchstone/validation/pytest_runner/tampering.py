"""Notices what a fix must not touch: pytest's own code, its plugins, and the files of the judge's side."""

import ctypes
import gc
import inspect
import sys
import types
from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_PACKAGES = ("_pytest", "pytest", "pluggy", "unittest", "touchstone")
# Plugins and tests replace parts of it for good.
_LEFT_OUT = "unittest.mock"
# Where a name is, the name, its value, and the function with its code if the value is one or wraps one.
Entry = tuple[Mapping[str, Any], str, object, types.FunctionType | None, types.CodeType | None]


class CodeSnapshot:
    """The functions and classes of pytest, unittest and this package, as they are before a fix is imported.

    Python counts references in every object that it looks at, and a job pays for each page of memory that it writes
    to: a fifth of the time of a fix. So objects are looked at only where their memory has changed.
    """

    def __init__(self) -> None:
        entries = [
            entry
            for name, module in list(sys.modules.items())
            if name.partition(".")[0] in _PACKAGES and name != _LEFT_OUT and isinstance(module, types.ModuleType)
            for entry in _functions(vars(module), name)
        ]
        public = vars(sys.modules["pytest"])
        entries += [(public, name, value, None, None) for name, value in public.items()]
        # By the address of a word of memory that changes with them.
        self._entries: dict[int, list[Entry]] = {}
        for entry in entries:
            names, _, _, function, _ = entry
            self._entries.setdefault(id(_dict_of(names)) + _VERSION, []).append(entry)
            if function is not None:
                self._entries.setdefault(id(function) + _CODE, []).append(entry)
        self._addresses = array("Q", self._entries)
        self._memory = self._read_memory()

    def _read_memory(self) -> "array[int]":
        return array("Q", [_word_at(address).value for address in self._addresses])

    def changed(self) -> str | None:
        """The first name that is another object now, or whose function has other code; None if nothing changed."""
        for address, before, after in zip(self._addresses, self._memory, self._read_memory(), strict=True):
            if before == after and _VERSION and _CODE:
                continue
            for names, name, value, function, code in self._entries[address]:
                if names.get(name) is not value or (function is not None and function.__code__ is not code):
                    return name
        return None


_word_at = ctypes.c_uint64.from_address


def _words_of(value: object) -> list[int]:
    return [_word_at(id(value) + offset).value for offset in range(0, type(value).__basicsize__, 8)]


def _version_offset() -> int:
    """Where a dict keeps the number that every assignment changes; 0 if this Python has none."""
    names = {"name": 1}
    before = _words_of(names)
    names["name"] = 2
    changed = [place for place, pair in enumerate(zip(before, _words_of(names), strict=True)) if len({*pair}) > 1]
    return 8 * changed[0] if len(changed) == 1 else 0


def _code_offset() -> int:
    """Where a function keeps its code; 0 if that is not found."""
    words, code = _words_of(_code_offset), id(_code_offset.__code__)
    return 8 * words.index(code) if code in words else 0


def _dict_of(names: Mapping[str, Any]) -> Mapping[str, Any]:
    """The dict that the attributes of a class are a view of."""
    return gc.get_referents(names)[0] if isinstance(names, types.MappingProxyType) else names


_VERSION, _CODE = _version_offset(), _code_offset()


def _functions(names: Mapping[str, Any], module: str, depth: int = 0) -> Iterator[Entry]:
    for name, value in list(names.items()):
        function = _function(value)
        if isinstance(function, types.FunctionType):
            yield names, name, value, function, function.__code__
        elif inspect.isclass(value):
            yield names, name, value, None, None
            if depth == 0 and value.__module__ == module:
                yield from _functions(vars(value), module, depth + 1)


def _function(value: object) -> object:
    if isinstance(value, staticmethod | classmethod):
        return value.__func__
    return value.fget if isinstance(value, property) else value


def strange_plugin(plugins: Iterable[object], known: Iterable[object], fix: str) -> str | None:
    """A registered plugin that the fix itself defines, or that no file defines; None if there is none."""
    expected = {id(plugin) for plugin in known}
    for plugin in plugins:
        module = plugin if isinstance(plugin, types.ModuleType) else sys.modules.get(type(plugin).__module__)
        if id(plugin) not in expected and getattr(module, "__file__", None) in (None, fix):
            return repr(plugin)[:200]
    return None


def changed_file(files: Mapping[str, bytes]) -> str | None:
    """The first of these files that is gone or has another content; None if there is none."""
    for name, content in files.items():
        try:
            if Path(name).read_bytes() != content:
                return name
        except OSError:
            return name
    return None
