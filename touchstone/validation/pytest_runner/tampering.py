"""Notices a plugin that a fix registered, and files of the judge's side that a fix changed on disk."""

import sys
import types
from collections.abc import Iterable, Mapping
from pathlib import Path


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
