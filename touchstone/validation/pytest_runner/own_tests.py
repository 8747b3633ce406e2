"""The problem's own tests, compiled before any code of the fix runs, and what pytest made of them.

pytest imports one test file after another, so a fix that the first one imports could answer for the second: with a
module of that name, an importer, or another `exec`. Only modules that ran this code count as the problem's tests.
"""

import ast
import builtins
import os
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from _pytest.config import Config

# Bound here, because a fix may replace them.
_exec = builtins.exec


class OwnTests:
    """The compiled test and conftest files of one job, and the modules that ran them."""

    def __init__(self) -> None:
        self._root = Path()
        self._files: dict[str, bytes] = {}
        self._codes: dict[str, types.CodeType | Exception] = {}
        self._namespaces: list[dict[str, Any]] = []
        compile_file = rewrite._rewrite_test

        def compiled(path: Path, config: Config) -> Any:
            name = os.path.normpath(path)
            if name not in self._files:
                if Path(name).is_relative_to(self._root):
                    raise ImportError(f"{name} is not a file of the problem")
                return compile_file(path, config)
            code = self._codes[name] if name in self._codes else _compiled(name, self._files[name])
            if isinstance(code, Exception):
                raise code
            return None, code

        def run(code: types.CodeType, namespace: dict[str, Any]) -> None:
            if any(code is own for own in self._codes.values()):
                self._namespaces.append(namespace)
            _exec(code, namespace)

        vars(rewrite).update({"_rewrite_test": compiled, "exec": run})
        # A fix could have written these, too.
        vars(rewrite)["_read_pyc"] = lambda *args, **kwargs: None

    def prepare(self, root: Path, files: Mapping[str, bytes], tests: Iterable[str]) -> None:
        """Compile the tests and conftest files among the problem's files, which are given by absolute path."""
        self._root = root
        self._files.update(files)
        for name in {*tests, *(name for name in files if name.endswith("/conftest.py"))} & files.keys():
            self._codes[name] = _compiled(name, files[name])

    def is_forged(self, item: pytest.Item) -> bool:
        """Whether a test claims to be in one of the compiled files, and its module ran something else."""
        if not isinstance(item, pytest.Function) or str(item.path) not in self._codes:
            return False
        return not any(vars(item.module) is namespace for namespace in self._namespaces)


def _compiled(name: str, text: bytes) -> types.CodeType | Exception:
    try:
        tree = ast.parse(text, filename=name)
        rewrite.rewrite_asserts(tree, text, name)
        return compile(tree, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return error
