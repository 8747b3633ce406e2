"""The import of the repaired file, the first one in every candidate, without a search of `sys.path`."""

import importlib.machinery
import os
import sys
import types
from collections.abc import Iterable


def find_first(name: str, files: Iterable[str], directory: str) -> None:
    """Let the next import, if it is of this module, find the source file in the current folder at once.

    Only if nothing else there can be that module, and before any code of the candidate has run: so the import system
    would find the same.
    """
    below = f"{directory}/" if directory else ""
    rivals = (f"{below}{name}.", f"{below}{name}/")
    if [path for path in files if path.startswith(rivals)] == [f"{below}{name}.py"]:
        sys.meta_path.insert(0, _Finder(name))


class _Finder:
    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """The spec of the file. It answers once."""
        sys.meta_path.remove(self)
        if fullname != self._name:
            return None
        file = f"{os.getcwd()}/{fullname}.py"  # noqa: PTH109
        spec = importlib.machinery.ModuleSpec(fullname, _Loader(fullname, file), origin=file)
        spec.has_location = True
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the source; there is no bytecode to look for."""

    def get_code(self, fullname: str) -> types.CodeType:
        """The code of the module."""
        return self.source_to_code(self.get_data(self.path), self.path)
