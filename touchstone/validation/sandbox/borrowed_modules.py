"""Modules of Touchstone's own packages that a worker in another environment needs, and no others.

Runs inside the sandbox before anything else, so it needs only the standard library.
"""

import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any


class _Finder:
    """Finds the named top-level modules in one folder."""

    def __init__(self, folder: str, names: Sequence[str]) -> None:
        self._folder, self._names = folder, frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of one of the modules; their submodules are found through them."""
        if path is not None or fullname not in self._names:
            return None
        return importlib.machinery.PathFinder.find_spec(fullname, [self._folder], target)


def borrow_modules(borrowed: Mapping[str, Any]) -> None:
    """Import the modules in `first` from a folder always, those in `last` if they are found nowhere else."""
    sys.meta_path.insert(0, _Finder(borrowed["folder"], borrowed["first"]))
    sys.meta_path.append(_Finder(borrowed["folder"], borrowed["last"]))
