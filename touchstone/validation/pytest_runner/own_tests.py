"""The problem's own tests, compiled before any code of the fix runs, and what pytest made of them.

pytest imports one test file after another, so a fix that the first one imports could answer for the second: with a
module of that name, an importer, or another `exec`. Only modules that ran this code count as the problem's tests.
"""

import ast
import builtins
import importlib.abc
import importlib.machinery
import os
import re
import sys
import traceback
import types
import unittest
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from touchstone.validation.pytest_runner.channel import UNKNOWN
from touchstone.validation.pytest_runner.controls import control_file
from touchstone.validation.pytest_runner.pytest_internals import Compile, replace_compiler, rewrite_asserts
from touchstone.validation.pytest_runner.recorder import Recorder
from touchstone.validation.pytest_runner.watching import Watch, known_namespaces

# Bound here, because a fix may replace them.
_exec = builtins.exec


@dataclass(frozen=True)
class CompiledTests:
    """The judge's side of a problem, compiled: by absolute path the code, or why there is none.

    For a control also the recorder, and the plain and qualified names of the test functions that are controlled, and of
    those that cannot be.
    """

    codes: Mapping[str, types.CodeType | Exception]
    recorder: Recorder | None = None
    recorder_name: str = ""
    controlled: frozenset[str] = frozenset()
    uncontrolled: frozenset[str] = frozenset()

    @property
    def hidden(self) -> Collection[str]:
        """The files that a fix cannot read in a control: all, unless the tests read or run files of theirs."""
        return self.codes if self.recorder is not None and not self.recorder.reads_files else ()


def compile_tests(files: Mapping[str, bytes]) -> CompiledTests:
    """Compile the tests as pytest does."""
    return CompiledTests({path: _compiled(path, text) for path, text in files.items()})


def compile_controls(root: str, files: Mapping[str, bytes], tests: frozenset[str], name: str) -> CompiledTests:
    """Compile the tests as negative controls; `name` is that of the recorder in their modules."""
    recorder = Recorder(root)
    codes: dict[str, types.CodeType | Exception] = {}
    controlled, uncontrolled = set[str](), set[str]()
    for path, text in files.items():
        try:
            made = control_file(text, os.path.relpath(path, root), tests, recorder, name)
            code = compile(made.tree, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            codes[path] = _compiled(path, text)
            continue
        codes[path] = code
        recorder.add_code(code)
        controlled |= made.controlled
        uncontrolled |= made.uncontrolled
    recorder.know_loaded_libraries()
    return CompiledTests(codes, recorder, name, frozenset(controlled), frozenset(uncontrolled))


class OwnTests:
    """The compiled tests of one job, and the modules that ran them."""

    def __init__(self) -> None:
        self._root = Path()
        self._files: dict[str, bytes] = {}
        self._compiled = CompiledTests({})
        self._namespaces: list[dict[str, Any]] = []
        self._watch: Watch | None = None
        self._is_fix = True
        self._known = known_namespaces()
        replace_compiler(self._compiler, self.run)

    def _compiler(self, compile_file: Compile) -> Compile:
        def compiled(path: Path, config: pytest.Config) -> Any:
            name = os.path.normpath(path)
            if name not in self._files:
                if Path(name).is_relative_to(self._root):
                    raise ImportError(f"{name} is not a file of the problem")
                return compile_file(path, config)
            codes = self._compiled.codes
            code = codes[name] if name in codes else _compiled(name, self._files[name])
            if isinstance(code, Exception):
                raise code
            return None, code

        return compiled

    @property
    def recorder(self) -> Recorder | None:
        """The recorder that the tests of a control call."""
        return self._compiled.recorder

    def use(self, root: Path, files: Mapping[str, bytes], compiled: CompiledTests, job: Mapping[str, Any]) -> None:
        """Take over a job: its files by absolute path, its compiled tests, and what else it says of itself."""
        self._root, self._compiled, self._is_fix = root, compiled, job["is_fix"]
        self._files.update(files)
        if compiled.recorder is not None:
            recorder = compiled.recorder
            recorder.lenient, recorder.quiet = not job["is_fix"], job["quiet"]
            recorder.begin(files, _module_names(root, files, compiled.codes), job["names"])
            tests = compiled.controlled | compiled.uncontrolled
            judge_files = [f"{root}/{name}" for name in job["judge_files"]]
            self._watch = Watch(recorder.is_fix, judge_files, tests, files, recorder.doubt, self._known)
            self._watch.start(root)
            # For the judge's modules that pytest does not import itself.
            sys.meta_path.insert(0, _Finder(lambda path: self.code_of(path), lambda *given: self.run(*given)))

    def no_fix_helps(self, path: Path) -> bool:
        """Whether a file of the tests cannot be compiled without a fix, and so with none."""
        return not self._is_fix and isinstance(self._compiled.codes.get(os.path.normpath(path)), Exception)

    def is_controlled(self, item: pytest.Item) -> bool:
        """Whether a test must fail in a control."""
        controlled, uncontrolled = self._compiled.controlled, self._compiled.uncontrolled
        qualified = getattr(getattr(item, "function", None), "__qualname__", "")
        # A decorator may have left another qualified name.
        known = qualified in controlled | uncontrolled
        name = qualified if known else getattr(item, "originalname", None) or item.name
        return name in controlled and name not in uncontrolled

    def not_collected(self, items: Iterable[pytest.Item]) -> list[str]:
        """The tests that the files of some items define, by default names, and that are not among the items."""
        found = {(str(item.path), ".".join(item.nodeid.partition("[")[0].split("::")[1:])) for item in items}
        spaces = [(str(space["__file__"]), space) for space in self._namespaces]
        defined = {(file, name) for file, space in spaces for name in _test_names(file, space)}
        files = {file for file, _ in found}
        return [name for file, name in sorted(defined - found) if file in files]

    def skipped_by(self, error: BaseException) -> set[str]:
        """The files of the problem, other than the tests', whose code skipped a test or a file of tests."""
        skips = (pytest.skip.Exception, unittest.SkipTest)
        while isinstance(error.__context__, skips):
            error = error.__context__
        below: list[types.FrameType] = []
        last = None
        for frame, _ in traceback.walk_tb(error.__traceback__):
            file = self._module_file(frame)
            if file == frame.f_code.co_filename and file in self._compiled.codes:
                below, last = [], frame.f_code
            else:
                below.append(frame)
        found = {self._module_file(frame) for frame in below if id(frame.f_globals) not in self._known}
        found = {file for file in found if file == UNKNOWN or Path(file).is_relative_to(self._root)}
        names = {one.partition(".")[0] for frame in below for one in [frame.f_globals.get("__name__", "")]}
        if last is not None and names <= {"_pytest", "unittest"}:
            # The test itself calls something that skips: it must say so.
            said = (*last.co_names, *last.co_varnames, *last.co_freevars)
            found |= {UNKNOWN} if not re.search("skip|xfail", " ".join(said).lower()) else set()
        return found

    def _module_file(self, frame: types.FrameType) -> str:
        """The file of the module that a frame's code runs in."""
        if any(frame.f_globals is namespace for namespace in self._namespaces):
            return str(frame.f_globals["__file__"])
        module = sys.modules.get(frame.f_globals.get("__name__", ""))
        known = module is not None and vars(module) is frame.f_globals
        return os.path.normpath(str(getattr(module, "__file__", None) or UNKNOWN)) if known else UNKNOWN

    def code_of(self, path: str | None) -> types.CodeType | None:
        """The compiled code of a file of the judge's side."""
        code = self._compiled.codes.get(os.path.normpath(path)) if path else None
        return code if isinstance(code, types.CodeType) else None

    def run(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        """Run the code of a module, and remember the module if the code is the judge's."""
        own = next((path for path, known in self._compiled.codes.items() if known is code), None)
        recorder = self._compiled.recorder
        if own is not None:
            self._namespaces.append(namespace)
        if own is None or recorder is None or self._watch is None:
            return _exec(code, namespace)
        module = sys.modules.get(namespace["__name__"])
        if module is not None and vars(module) is namespace and not recorder.names_module(module.__name__):
            self._watch.watch_module(module)
        namespace[self._compiled.recorder_name] = recorder
        recorder.namespaces.append(namespace)
        _exec(code, namespace)
        return recorder.add_functions(os.path.relpath(own, self._root), namespace)


class _Finder(importlib.abc.MetaPathFinder):
    """Imports the judge's modules from their compiled code. It has no attribute that leads to the recorder."""

    def __init__(self, code_of: Callable[..., types.CodeType | None], run: Callable[..., None]) -> None:
        self._code_of, self._run = code_of, run

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module whose file is on the judge's side."""
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        code = self._code_of(spec.origin) if spec is not None else None
        if spec is None or code is None:
            return None
        spec.loader = _Loader(fullname, str(spec.origin), lambda module: self._run(code, vars(module)))
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs compiled code, and finds the data files beside it as any loader does."""

    def __init__(self, fullname: str, path: str, run: Callable[[types.ModuleType], None]) -> None:
        super().__init__(fullname, path)
        self._run = run

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the code."""
        self._run(module)


def _test_names(file: str, namespace: dict[str, Any]) -> Iterator[str]:
    """The qualified names of the test functions of a module that pytest collects by default."""
    own = [one for one in namespace.values() if type(one) is type and one.__module__ == namespace["__name__"]]
    tested = [one for one in own if one.__name__.startswith("Test") or issubclass(one, unittest.TestCase)]
    for prefix, space in (("", namespace), *((f"{one.__name__}.", vars(one)) for one in tested)):
        if space.get("__test__", True) and ("__init__" not in space or not prefix):
            for name, value in space.items():
                is_own = getattr(getattr(value, "__code__", None), "co_filename", "") == file
                if name.startswith("test") and is_own and getattr(value, "__test__", True):
                    yield f"{prefix}{name}"


def _compiled(name: str, text: bytes) -> types.CodeType | Exception:
    try:
        tree = ast.parse(text, filename=name)
        rewrite_asserts(tree, text, name)
        return compile(tree, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return error


def _module_names(root: Path, files: Iterable[str], judge_files: Iterable[str]) -> dict[str, bool]:
    """The names of the judge's modules, whichever folder they are imported from, and whether no other file has it."""
    judges = set(judge_files)
    theirs, others = set[str](), set[str]()
    for path in files:
        if path.endswith(".py"):
            parts = Path(path).relative_to(root).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            names = {".".join(parts[start:]) for start in range(len(parts))}
            (theirs if path in judges else others).update(names)
    return {name: name not in others for name in theirs}
