"""Modules of the candidate that are named like installed ones, which both sides may have loaded already."""

import builtins
import functools
import importlib
import importlib.machinery
import os
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from touchstone.validation.isolated_runner.proxies import CandidateFinder


@functools.cache
def installed_modules() -> frozenset[str]:
    """The top-level modules that can be imported. Called before the first job, so that no job lists the folders."""
    names: set[str] = set()
    for folder in sys.path:
        with suppress(OSError):
            names.update(entry.partition(".")[0] for entry in os.listdir(folder))  # noqa: PTH208
    return frozenset({*names, *sys.stdlib_module_names, *(name.partition(".")[0] for name in sys.modules)})


def _shadowed(modules: Iterable[str]) -> frozenset[str]:
    return installed_modules().intersection(name.partition(".")[0] for name in modules)


def forget_shadowed(modules: Iterable[str]) -> None:
    """On the candidate's side: import these modules from its files, as a script in that folder would."""
    names = _shadowed(modules)
    if names:
        for name in [name for name in sys.modules if name.partition(".")[0] in names]:
            del sys.modules[name]
        sys.meta_path.insert(0, _FilesFirst(names))


class _FilesFirst:
    """Finds files before built-in and frozen modules."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names, self._here = names, os.getcwd()  # noqa: PTH109

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a file in the candidate's folder."""
        if fullname.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.PathFinder.find_spec(fullname, [self._here] if path is None else path, target)


def import_candidate_first(finder: CandidateFinder, root: str) -> None:
    """On the tests' side: give the candidate's modules to the tests' files, and the library's to everything else.

    The runner and the libraries that judge must not get a module of the candidate.
    """
    names = _shadowed(finder.modules)
    if not names:
        return
    finder.hidden = names
    loaded: dict[str, types.ModuleType] = {}
    import_as_usual, import_module = builtins.__import__, importlib.import_module

    def load(name: str) -> types.ModuleType:
        if name not in loaded:
            parent, _, last = name.rpartition(".")
            package = load(parent) if parent else None
            loaded[name] = finder.load(name)
            if package is not None:
                setattr(package, last, loaded[name])
        return loaded[name]

    def is_of_the_candidate(name: str, importing: Mapping[str, Any] | None) -> bool:
        file = str((importing or {}).get("__file__"))
        inside = os.path.abspath(file).startswith(f"{root}/")  # noqa: PTH100
        return inside and name.partition(".")[0] in names

    def import_by_statement(
        name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
    ) -> types.ModuleType:
        if level or not is_of_the_candidate(name, globals):
            return import_as_usual(name, globals, locals, fromlist or (), level)
        module = load(name)
        for one in fromlist or ():
            if f"{name}.{one}" in finder.modules:
                load(f"{name}.{one}")
        return module if fromlist else load(name.partition(".")[0])

    def import_by_name(name: str, package: str | None = None) -> types.ModuleType:
        importing = sys._getframe(1).f_globals
        return load(name) if is_of_the_candidate(name, importing) else import_module(name, package)

    builtins.__import__ = import_by_statement
    importlib.import_module = import_by_name
