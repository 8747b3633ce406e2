"""The files that others of a tree reach, found without running any: the modules they import, and the files they name.

Python is read with `ast`, or by its import lines where it does not parse and where thousands of files are looked at.
Of JavaScript, relative imports are followed; of all other files, string literals and words that name files count.
Which files are tests, by their names alone, is here too.
"""

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, TypeVar

from touchstone.validation.protocol import Tree

PYTHON = (".py",)
JAVASCRIPT = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
_OTHER_CODE = (
    ".pyi .rs .go .java .kt .scala .c .h .cc .cpp .hpp .cs .rb .php .pl .lua .swift .vue .svelte .r .ex .hs .sh"
)
CODE = frozenset((*PYTHON, *JAVASCRIPT, *_OTHER_CODE.split()))
_SOURCE_TEXTS = CODE | {".html", ".toml", ".yaml", ".yml", ".cfg", ".ini", ".json"}
_MOST_BYTES = 400_000
# Files that are parsed for one problem; the others are read by their import lines.
_MOST_PARSED_BYTES = 1_000_000
_IMPORT_LINE = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<dots>\.*)(?P<module>[\w.]*)[ \t]+import[ \t]*(?:\((?P<many>[^)]*)\)|(?P<names>[^\n#;(]*))"
    r"|import[ \t]+(?P<modules>[^\n#;]*))",
    re.MULTILINE,
)
_RELATIVE_IMPORT = re.compile(
    r"""(?:\brequire\s*\(|\bimport\s*\(|\bfrom|\bimport)\s*["'`](\.{1,2}/[^"'`\n]*|\.{1,2})["'`]"""
)
_LITERAL = re.compile(r""""([^"\n]{1,200})"|'([^'\n]{1,200})'|`([^`\n]{1,200})`""")
_QUOTED_NAME = re.compile(r"""["'`/]([\w.][\w.\- ]*)(?=["'`/])""")
_WORD = re.compile(r"[\w./*-]{2,200}")
_TEST_LIBRARIES = frozenset({"pytest", "_pytest", "unittest", "nose", "testtools", "hypothesis"})
_JAVASCRIPT_TESTS = re.compile(r"""\bexpect\s*\(|["'](?:chai|vitest|@jest/globals|node:test)["']""")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Folders that hold a project's packages and are none.
SOURCE_FOLDERS = ("src", "lib")
# Where pytest looks for its configuration.
PYTEST_SETTINGS = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg")
_TEST_FOLDERS = frozenset({"tests", "__tests__", "__mocks__", "__snapshots__", "testdata", "benches"})
_TOP_TEST_FOLDERS = ("test", "spec")
# What test runners, and the programs that start them, read by themselves.
_RUNNER_FILES = re.compile(
    r"conftest\.py|(?:site|user)customize\.py|\.?pytest\.(?:ini|toml)|\.coveragerc|noxfile\.py"
    r"|(?:jest|vitest|babel|karma|ava|playwright|cypress)\.config\.\w+|jest\.setup\.\w+|vitest\.workspace\.\w+"
    r"|\.(?:mocharc|babelrc|swcrc|taprc|npmrc|yarnrc|jasmine)(?:\.\w+)*|\.pnp\.\w+|pnpm-workspace\.yaml|bunfig\.toml"
    r"|phpunit\.xml(?:\.dist)?|\.rspec|go\.work|rust-toolchain(?:\.toml)?|\.?(?:rustfmt|clippy)\.toml"
)

Import = tuple[int, str, tuple[str, ...]]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Reached:
    """The files that one file imports, and the names of files and folders in its texts."""

    modules: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


def joined(folder: str, path: str) -> str | None:
    """A path seen from a folder of the tree; None if it leads out.

    >>> joined("a/b", "../c.py"), joined("a", "../../c.py"), joined("", "./c.py")
    ('a/c.py', None, 'c.py')
    """
    if path.startswith("/"):
        return None
    whole = os.path.normpath(f"{folder}/{path}" if folder not in ("", ".") else path)
    return None if whole.startswith("..") else whole


def folder_of(path: str) -> str:
    """The folder of a path; empty for the root."""
    return path.rpartition("/")[0]


def _once(find: Callable[["TreeIndex", str], Found]) -> Callable[["TreeIndex", str], Found]:
    """Look at each file once; of files on disk, the result is known to all trees of a root."""

    def found(index: "TreeIndex", path: str) -> Found:
        known = index.own if path in index.tree.changed else index.known
        if (find.__name__, path) not in known:
            known[find.__name__, path] = find(index, path)
        result: Found = known[find.__name__, path]
        return result

    return found


@dataclass
class TreeIndex:
    """A tree's files by name, and what they reach: those that it changed, and those that all trees of a root share."""

    tree: Tree
    known: dict[tuple[str, str], Any] = field(default_factory=dict)
    own: dict[tuple[str, str], Any] = field(default_factory=dict)
    parsed_bytes: int = 0

    @cached_property
    def files(self) -> frozenset[str]:
        """The paths in the tree."""
        return frozenset(self.tree.files)

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that has files, at any depth; not the root."""
        found: set[str] = set()
        for folder in {folder_of(path) for path in self.files}:
            while folder and folder not in found:
                found.add(folder)
                folder = folder_of(folder)
        return frozenset(found)

    @cached_property
    def places(self) -> frozenset[str]:
        """The files and folders."""
        return self.files | self.folders

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.places:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found

    def read(self, path: str) -> str:
        """The beginning of a file's text; empty if it cannot be read."""
        try:
            return self.tree.read(path)[:_MOST_BYTES].decode("utf-8", "replace")
        except OSError:
            return ""

    @_once
    def reach(self, path: str) -> Reached:
        """The files that a file of the judge's side reaches."""
        text, suffix = self.read(path), PurePosixPath(path).suffix
        if suffix in PYTHON:
            self.parsed_bytes += len(text)
            module = parse_python(text) if self.parsed_bytes < _MOST_PARSED_BYTES else None
            imports, names = _parsed(module) if module is not None else (_import_lines(text), _quoted(text))
            dotted = [(0, name, ()) for name in names if re.fullmatch(r"[A-Za-z_][\w.]*", name)]
            return Reached(self._resolve_all([*imports, *dotted], path), frozenset(names))
        if suffix in JAVASCRIPT:
            return Reached(self._javascript_imports(text, path), frozenset(_quoted(text)))
        return Reached(names=frozenset(_quoted(text) if suffix in CODE else _WORD.findall(text)))

    @_once
    def imports(self, path: str) -> frozenset[str]:
        """The files that a source file imports, by its import lines."""
        if path.endswith(PYTHON):
            return self._resolve_all(_import_lines(self.read(path)), path)
        return self._javascript_imports(self.read(path), path) if path.endswith(JAVASCRIPT) else frozenset()

    @_once
    def names_in(self, path: str) -> frozenset[str]:
        """The quoted names of files and folders of the tree in a source file."""
        is_text = PurePosixPath(path).suffix in _SOURCE_TEXTS
        words = _QUOTED_NAME.findall(self.read(path)) if is_text else []
        return frozenset(word for word in words if word in self._by_name)

    def named(self, names: Iterable[str], beside: Iterable[str]) -> set[str]:
        """The files and folders that names mean: seen from the folders `beside`, else the only one that ends so."""
        names, found = set(names), set()
        parts = {part for name in names for part in name.split("/")}
        for name in names:
            places = {place for folder in beside if (place := joined(folder, name))} & self.places
            if not places and (plain := re.sub(r"^(?:\.{0,2}/)+", "", name)):
                ends = [
                    path for path in self._by_name.get(plain.rpartition("/")[2], ()) if f"/{path}".endswith(f"/{plain}")
                ]
                likely = [path for path in ends if folder_of(path).rpartition("/")[2] in parts]
                places = set(ends if len(ends) == 1 else likely)
            found |= places
        return found

    def _resolve_all(self, imports: Iterable[Import], path: str) -> frozenset[str]:
        return frozenset(place for one in imports for place in self._resolve(one, path))

    def _resolve(self, wanted: Import, path: str) -> Iterator[str]:
        """The files that an import loads, from the first folder that has its module."""
        dots, module, names = wanted
        folder = folder_of(path)
        if dots:
            for _ in range(dots - 1):
                folder = folder_of(folder)
            yield from self._module(folder, module, names)
            return
        first = module.partition(".")[0]
        while first in self._by_name or f"{first}.py" in self._by_name:
            for base in (folder, *(joined(folder, name) for name in SOURCE_FOLDERS)):
                if found := list(self._module(base or "", module, names)):
                    yield from found
                    return
            if not folder:
                return
            folder = folder_of(folder)

    def _module(self, base: str, module: str, names: tuple[str, ...]) -> Iterator[str]:
        parts = [part for part in module.split(".") if part]
        whole = "/".join([*([base] if base else []), *parts])
        for end in range(1, len(parts) + 1):
            package = "/".join([*([base] if base else []), *parts[:end]])
            yield from (place for place in (f"{package}/__init__.py", f"{package}.py") if place in self.files)
        for name in names:
            inside = f"{whole}/{name}" if whole else name
            yield from (place for place in (f"{inside}.py", f"{inside}/__init__.py") if place in self.files)

    def _javascript_imports(self, text: str, path: str) -> frozenset[str]:
        found = set()
        for wanted in _RELATIVE_IMPORT.findall(text):
            place = joined(folder_of(path), wanted) or ""
            stem = place.removesuffix(".js")  # TypeScript's imports name what is compiled
            ends = (place, *(f"{one}{end}" for one in (place, stem) for end in (*JAVASCRIPT, ".json")))
            found |= {end for end in (*ends, *(f"{place}/index{end}" for end in JAVASCRIPT)) if end in self.files}
        return frozenset(found)

    def uses_test_library(self, path: str) -> bool:
        """Whether a module imports a library for tests."""
        text = self.read(path)
        if path.endswith(JAVASCRIPT):
            return _JAVASCRIPT_TESTS.search(text) is not None
        imports = _import_lines(text) if path.endswith(PYTHON) else []
        return any(not dots and name.partition(".")[0] in _TEST_LIBRARIES for dots, name, _ in imports)

    def asserts(self, path: str) -> bool:
        """Whether a function of a Python module does nothing but assert."""
        text = self.read(path) if path.endswith(PYTHON) else ""
        module = parse_python(text) if "assert" in text.casefold() else None
        functions = (node for node in ast.walk(module or ast.Module([], [])) if isinstance(node, _FUNCTIONS))
        return any(map(_only_asserts, functions))


def _only_asserts(function: ast.AST) -> bool:
    """Whether a function asserts something, and neither returns a value nor changes an object."""
    nodes = list(ast.walk(function))
    raises = (node.exc for node in nodes if isinstance(node, ast.Raise))
    asserts = any(isinstance(node, ast.Assert) for node in nodes) or any(
        "AssertionError" in ast.dump(raised) for raised in raises if raised is not None
    )
    stored = (node for node in nodes if isinstance(node, ast.Attribute | ast.Subscript))
    effects = any(isinstance(node.ctx, ast.Store) for node in stored)
    returned = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
    return asserts and not effects and not returned and not any(isinstance(node, ast.Yield) for node in nodes)


def parse_python(text: str | bytes) -> ast.Module | None:
    """The syntax tree of Python code; None if it is none."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parsed(module: ast.Module) -> tuple[list[Import], set[str]]:
    """The imports and the short string literals of a Python file."""
    found: list[Import] = []
    texts: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and 1 < len(node.value) <= 200 and "\n" not in node.value:
                texts.add(node.value.strip())
        elif isinstance(node, ast.Import):
            found += [(0, name.name, ()) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.level, node.module or "", tuple(name.name for name in node.names)))
    return found, texts


def _import_lines(text: str) -> list[Import]:
    """The imports of a Python file, by its lines."""
    found: list[Import] = []
    for line in _IMPORT_LINE.finditer(text):
        if line["modules"] is not None:
            found += [(0, words[0], ()) for part in line["modules"].split(",") if (words := part.split())]
        else:
            names = re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", line["many"] or line["names"] or "")
            found.append((len(line["dots"]), line["module"], tuple(names)))
    return found


def _quoted(text: str) -> set[str]:
    return {next(filter(None, found)).strip() for found in _LITERAL.findall(text) if any(found)}


# Tests by their names


def looks_like_test(path: str) -> bool:
    """Whether a path is a test, is among tests, or configures their runner.

    >>> [looks_like_test(path) for path in ("src/cart_test.go", "tests/a.json", "src/test.py", "shop/conftest.py")]
    [True, True, False, True]
    """
    return is_among_tests(path) or is_test_name(path.rpartition("/")[2]) or is_runner_file(path)


def is_among_tests(path: str) -> bool:
    """Whether a file is in a folder that is named for tests."""
    folders = path.split("/")[:-1]
    top = bool(folders) and folders[0] in _TOP_TEST_FOLDERS
    return top or not _TEST_FOLDERS.isdisjoint(folders) or ("src", "test") in pairwise(folders)


def is_test_name(name: str) -> bool:
    """Whether a file is named like a test."""
    stem, _, end = name.rpartition(".")
    if end == "py":
        return stem.startswith("test_") or stem.endswith("_test") or stem == "tests"
    is_code = f".{end}" in CODE or end in ("exs", "dart")
    return name == "tests.rs" or (is_code and stem.endswith(("_test", "_spec", ".test", ".spec")))


def is_runner_file(path: str) -> bool:
    """Whether a test runner, or the program that starts it, reads this file by itself."""
    return ".cargo" in path.split("/")[:-1] or _RUNNER_FILES.fullmatch(path.rpartition("/")[2]) is not None
