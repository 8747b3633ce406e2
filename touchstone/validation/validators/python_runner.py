"""Which runner judges a Python problem: isolated where it can judge every test of it, else pytest.

The choice rests on the problem alone (tests, unmodified files, reference fix), never on a fix, which could otherwise
choose its judge. It is cautious: what is not known to work in two separate processes needs pytest.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from touchstone.validation.protocol import Job, Problem, Tree
from touchstone.validation.validators.features_of_tests import compared_objects, last_name, unsupported_features
from touchstone.validation.validators.python import candidate_modules, find_tests

_CONFIGURATION = {
    "pytest.ini": "",
    ".pytest.ini": "",
    "pytest.toml": "",
    ".pytest.toml": "",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}
# Objects of such classes are compared by identity or passed by value, so both sides agree about them.
_PLAIN_BASES = {"object", "NamedTuple", "Enum", "Protocol", "ABC", "Generic", "TypedDict", "BaseException", "Exception"}
_HARMLESS_DECORATORS = {"final", "runtime_checkable", "unique"}
_OPERATORS = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift neg pos abs invert int float"
_COMPARED = {
    f"__{name}__"
    for each in _OPERATORS.split()
    for name in (each, f"r{each}", f"i{each}", "eq", "ne", "lt", "le", "gt", "ge", "hash", "array", "index", "round")
}
_CLASS = re.compile(r"^\s*class\s+(\w+)", re.MULTILINE)


def isolated_obstacle(problem: Problem, tree: Tree, *, doctest: bool = False) -> str | None:
    """Why the isolated runner cannot judge every test of a problem; None if it can."""
    return next(_obstacles(problem, tree, doctest), None)


def _obstacles(problem: Problem, tree: Tree, doctest: bool) -> Iterator[str]:
    if doctest:
        yield "doctests are run"
    if any("[" in name for name in problem.expected_tests):
        yield "expected_tests names parameters as pytest does"
    tests = find_tests(Job(problem, tree))
    below = PurePosixPath(problem.working_directory)
    paths = [str(below / name) for name in tests if str(below / name) in tree.files]
    yield from _pytest_files(tree, paths)
    modules = _CandidateModules.read(problem, tree, tests)
    for path in paths:
        source = _parsed(tree.read(path))
        if source is not None:
            found = unsupported_features(source, modules.names)
            yield from (f"{path} {feature}" for feature in found)
            yield from modules.unknown_classes(source, path)
            found = compared_objects(source, modules.plain_classes, modules.names)
            yield from (f"{path} compares {what}" for what in found)
    yield from modules.obstacles()


def _pytest_files(tree: Tree, tests: Sequence[str]) -> Iterator[str]:
    """The conftest and configuration files that pytest would read for these tests."""
    parents = {parent for path in tests for parent in PurePosixPath(path).parents}
    for path in map(PurePosixPath, tree.files):
        if path.parent in parents and path.name == "conftest.py":
            yield f"{path} may define fixtures and hooks"
        section = _CONFIGURATION.get(path.name)
        if path.parent in parents and section is not None and section.encode() in tree.read(str(path)):
            yield f"{path} configures pytest"


@dataclass(frozen=True)
class _CandidateModules:
    """The modules under test as the problem has them, and the repaired one also as the reference fix has it."""

    names: frozenset[str]
    parsed: Mapping[str, ast.Module | None]
    texts: Mapping[str, bytes]

    @classmethod
    def read(cls, problem: Problem, tree: Tree, tests: Sequence[str]) -> "_CandidateModules":
        """Read and parse them."""
        names = frozenset(candidate_modules(Job(problem, tree), set(tests)))
        inside = {str(PurePosixPath(problem.working_directory) / name) for name in tests}
        texts = {path: tree.read(path) for path in tree.within(problem.working_directory) if path.endswith(".py")}
        texts = {path: text for path, text in texts.items() if path not in inside}
        if problem.reference_fix:
            texts["the reference fix"] = problem.reference_fix.encode("utf-8", "replace")
        return cls(names, {path: _parsed(text) for path, text in texts.items()}, texts)

    def obstacles(self) -> Iterator[str]:
        """Packages and classes that need pytest."""
        for path, source in self.parsed.items():
            if source is None:
                found = _CLASS.search(self.texts[path].decode("utf-8", "replace"))
                if found:
                    yield f"objects of {found[1]} in {path} may be compared"
                continue
            for node in ast.walk(source):
                if isinstance(node, ast.Import | ast.ImportFrom) and (package := self._package(node)):
                    yield f"{path} imports the package {package}"
                if isinstance(node, ast.ClassDef) and _is_comparable(node, self._classes):
                    yield f"objects of {node.name} in {path} may be compared"

    def unknown_classes(self, tests: ast.Module, path: str) -> Iterator[str]:
        """Classes that the tests import and the unmodified files do not define yet."""
        for node in ast.walk(tests):
            if isinstance(node, ast.ImportFrom) and node.module in self.names:
                for each in node.names:
                    if each.name[:1].isupper() and not each.name.isupper() and each.name not in self._defined:
                        yield f"{path} imports {each.name}, which may be a class whose objects are compared"

    @property
    def _defined(self) -> set[str]:
        sources = [source for source in self.parsed.values() if source is not None]
        return {name for source in sources for node in ast.walk(source) for name in _defined_names(node)}

    @property
    def _classes(self) -> set[str]:
        return {node.name for node in self._class_nodes()}

    @property
    def plain_classes(self) -> set[str]:
        """Classes whose objects stay with the candidate, so that the tests hold references to them."""
        passed = {"NamedTuple", "Enum"}
        return {node.name for node in self._class_nodes() if not passed.intersection(map(last_name, node.bases))}

    def _class_nodes(self) -> Iterator[ast.ClassDef]:
        sources = [source for source in self.parsed.values() if source is not None]
        return (node for source in sources for node in ast.walk(source) if isinstance(node, ast.ClassDef))

    def _package(self, node: ast.Import | ast.ImportFrom) -> str | None:
        """A package that an import needs, besides the standard library and the problem's own modules."""
        if isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module and not node.level else []
        else:
            names = [each.name for each in node.names]
        own = {name.partition(".")[0] for name in self.names}
        tops = (name.partition(".")[0] for name in names)
        return next((top for top in tops if top not in sys.stdlib_module_names and top not in own), None)


def _parsed(text: bytes) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defined_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (each.asname or each.name for each in node.names)


def _is_comparable(node: ast.ClassDef, classes: set[str]) -> bool:
    """Whether objects of a class may be equal without being the same, be ordered or be calculated with."""
    if any(last_name(each) not in _HARMLESS_DECORATORS for each in node.decorator_list):
        return True
    if any(isinstance(each, ast.FunctionDef) and each.name in _COMPARED for each in node.body):
        return True
    return any(not _is_plain(last_name(base), classes) for base in node.bases)


def _is_plain(base: str, classes: set[str]) -> bool:
    return base in _PLAIN_BASES or base in classes or base.endswith(("Error", "Exception", "Warning", "Exit"))
