"""Notices what a fix must not touch: pytest's own code, its plugins, and the files of the judge's side."""

import inspect
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_PACKAGES = ("_pytest", "pytest", "pluggy", "unittest", "touchstone")
# Plugins and tests replace parts of it for good.
_LEFT_OUT = "unittest.mock"
# Where a name is, the name, its value, and the function with its code if the value is one or wraps one.
Entry = tuple[Mapping[str, Any], str, object, types.FunctionType | None, types.CodeType | None]


class CodeSnapshot:
    """The functions and classes of pytest, unittest and this package, as they are before a fix is imported."""

    def __init__(self) -> None:
        self._entries = [
            entry
            for name, module in list(sys.modules.items())
            if name.partition(".")[0] in _PACKAGES and name != _LEFT_OUT and isinstance(module, types.ModuleType)
            for entry in _functions(vars(module), name)
        ]
        public = vars(sys.modules["pytest"])
        self._entries += [(public, name, value, None, None) for name, value in public.items()]

    def changed(self) -> str | None:
        """The first name that is another object now, or whose function has other code; None if nothing changed."""
        for names, name, value, function, code in self._entries:
            if names.get(name) is not value or (function is not None and function.__code__ is not code):
                return name
        return None


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
