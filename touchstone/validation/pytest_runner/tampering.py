"""Notices what a fix must not touch: pytest's own code, its plugins, and the files of the problem.

Tests and fix share a process here, so this catches the usual ways to forge a result and not every one.
"""

import asyncio
import inspect
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from touchstone.validation.pytest_runner.channel import WriteLine

_PACKAGES = ("_pytest", "pytest", "pluggy", "unittest", "touchstone")
# What runs coroutines. Tests often replace other parts of asyncio, such as `sleep`.
_RUNNERS = ("asyncio.runners", "asyncio.base_events")
_RUNNER_NAMES = ("run", "Runner", "new_event_loop")
# With these a fix could skip the lines of a test.
_TRACING = ("sys.settrace", "sys.setprofile", "sys.monitoring.register_callback")
# Where a name is, the name, its value, and the function with its code if the value is one or wraps one.
Entry = tuple[Mapping[str, Any], str, object, types.FunctionType | None, types.CodeType | None]


class CodeSnapshot:
    """The functions and classes of pytest and of this package, as they are before the fix is imported."""

    def __init__(self) -> None:
        self._entries = [entry for module in _modules() for entry in _functions(vars(module), module.__name__)]
        loops = {name: value for name, value in vars(asyncio).items() if name in _RUNNER_NAMES}
        self._entries += [(vars(asyncio), *entry[1:]) for entry in _functions(loops, asyncio.__name__)]

    def changed(self) -> str | None:
        """The first name that is another object now, or whose function has other code; None if nothing changed."""
        for names, name, value, function, code in self._entries:
            if names.get(name) is not value or (function is not None and function.__code__ is not code):
                return name
        return None


def _modules() -> list[types.ModuleType]:
    return [
        module
        for name, module in list(sys.modules.items())
        if (name.partition(".")[0] in _PACKAGES or name in _RUNNERS) and isinstance(module, types.ModuleType)
    ]


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


def refuse_tracing(write_line: WriteLine) -> None:
    """Report any code that traces or profiles this process from now on. An audit hook cannot be removed."""

    def hook(event: str, arguments: object) -> None:
        if event in _TRACING:
            write_line(tampered=event)

    sys.addaudithook(hook)


def strange_plugin(plugins: Iterable[object], known: Iterable[object], fix: str) -> str | None:
    """A registered plugin that the fix itself defines, or that no file defines; None if there is none."""
    expected = {id(plugin) for plugin in known}
    for plugin in plugins:
        module = plugin if isinstance(plugin, types.ModuleType) else sys.modules.get(type(plugin).__module__)
        if id(plugin) not in expected and getattr(module, "__file__", None) in (None, fix):
            return repr(plugin)[:200]
    return None


def changed_file(files: Mapping[str, bytes]) -> str | None:
    """The first file of the problem that is gone or has another content; None if there is none."""
    for name, content in files.items():
        try:
            if Path(name).read_bytes() != content:
                return name
        except OSError:
            return name
    return None
