"""The problem's own tests, compiled before any code of the fix runs, and what pytest made of them.

pytest imports one test file after another, so a fix that the first one imports could answer for the second: with a
module of that name, an importer, or another `exec`. Only modules that ran this code count as the problem's tests.
"""

import ast
import builtins
import importlib.abc
import importlib.machinery
import os
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from _pytest.config import Config

from touchstone.validation.pytest_runner.controls import Recorder, control_file, takes_decoys

# Bound here, because a fix may replace them.
_exec = builtins.exec


class OwnTests:
    """The compiled files of the judge's side in one job, and the modules that ran them."""

    def __init__(self) -> None:
        self._root = Path()
        self._files: dict[str, bytes] = {}
        self._codes: dict[str, types.CodeType | Exception] = {}
        self._namespaces: list[dict[str, Any]] = []
        self._recorder_name = ""
        # Names and qualified names of test functions: those that end with a failing assertion, and those that cannot.
        self._controlled: set[str] = set()
        self._uncontrolled: set[str] = set()
        self.recorder: Recorder | None = None
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

        vars(rewrite).update({"_rewrite_test": compiled, "exec": self._run})
        # A fix could have written these, too.
        vars(rewrite)["_read_pyc"] = lambda *args, **kwargs: None

    def prepare(self, root: Path, files: Mapping[str, bytes], judge_files: Iterable[str]) -> None:
        """Compile the judge's side of the files, which are given by absolute path."""
        self._root = root
        self._files.update(files)
        for name in judge_files:
            if name not in self._codes and name.endswith(".py"):
                self._codes[name] = _compiled(name, files[name])

    def prepare_controls(
        self,
        root: Path,
        files: Mapping[str, bytes],
        judge_files: Sequence[str],
        tests: frozenset[str],
        name: str,
        *,
        lenient: bool,
        quiet: bool,
    ) -> dict[str, bytes]:
        """Compile the judge's side as negative controls; returns the texts that the disk has of it meanwhile."""
        self.recorder, self._recorder_name = Recorder(str(root), lenient=lenient, quiet=quiet), name
        judged = {path: files[path] for path in judge_files if path.endswith(".py")}
        texts: dict[str, bytes] = {}
        for path, text in judged.items():
            decoys = takes_decoys(path, judged)
            try:
                made = control_file(text, os.path.relpath(path, root), tests, self.recorder, name, decoys=decoys)
                rewrite.rewrite_asserts(made.tree, made.text, path)
                code = compile(made.tree, path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            texts[path], self._codes[path] = made.text, code
            self.recorder.add_names(code)
            self._controlled |= made.controlled
            self._uncontrolled |= made.uncontrolled
        self.recorder.know_modules(_names_of_one_side(root, files, self._codes.keys()))
        return texts

    def import_controls(self) -> None:
        """Have the judge's modules that pytest does not import itself run as they were compiled."""
        sys.meta_path.insert(0, _Finder(self))

    def is_controlled(self, item: pytest.Item) -> bool:
        """Whether a test must fail in a control."""
        qualified = getattr(getattr(item, "function", None), "__qualname__", "")
        known = qualified in self._controlled | self._uncontrolled
        # A decorator may have left another qualified name.
        name = qualified if known else getattr(item, "originalname", None) or item.name
        return name in self._controlled and name not in self._uncontrolled

    def is_forged(self, item: pytest.Item) -> bool:
        """Whether a test claims to be in one of the compiled files, and its module ran something else."""
        if not isinstance(item, pytest.Function) or str(item.path) not in self._codes:
            return False
        return not any(vars(item.module) is namespace for namespace in self._namespaces)

    def code_of(self, path: str | None) -> types.CodeType | None:
        """The compiled code of a file of the judge's side."""
        code = self._codes.get(os.path.normpath(path)) if path else None
        return code if isinstance(code, types.CodeType) else None

    def _run(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        """Run the code of a module, and remember the module if the code is the judge's."""
        own = next((path for path, known in self._codes.items() if known is code), None)
        if own is None:
            return _exec(code, namespace)
        self._namespaces.append(namespace)
        if self.recorder is None:
            return _exec(code, namespace)
        namespace[self._recorder_name] = self.recorder
        self.recorder.add_namespace(namespace)
        _exec(code, namespace)
        return self.recorder.add_functions(os.path.relpath(own, self._root), namespace, code)

    def run_module(self, code: types.CodeType, module: types.ModuleType) -> None:
        """Run a module of the judge's side that is not a test."""
        self._run(code, vars(module))


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the judge's modules from their compiled code."""

    def __init__(self, tests: OwnTests) -> None:
        self._tests = tests

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module whose file is on the judge's side."""
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or self._tests.code_of(spec.origin) is None:
            return None
        spec.loader = self
        return spec

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the compiled code."""
        code = self._tests.code_of(module.__file__)
        assert code is not None
        self._tests.run_module(code, module)


def _compiled(name: str, text: bytes) -> types.CodeType | Exception:
    try:
        tree = ast.parse(text, filename=name)
        rewrite.rewrite_asserts(tree, text, name)
        return compile(tree, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return error


def _names_of_one_side(root: Path, files: Iterable[str], judge_files: Iterable[str]) -> frozenset[str]:
    """The module names that belong to files of the judge's side whichever folder they are imported from."""
    judges = set(judge_files)
    theirs, others = set[str](), set[str]()
    for path in files:
        if path.endswith(".py"):
            parts = Path(path).relative_to(root).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            names = {".".join(parts[start:]) for start in range(len(parts))}
            (theirs if path in judges else others).update(names)
    return frozenset(theirs - others)
