"""Which runner judges a Python problem: isolated where it can judge every test of it, else pytest.

The choice rests on the problem alone (tests, unmodified files, reference fix), never on a fix, which could otherwise
choose its judge. It is cautious: what is not known to work in two separate processes needs pytest.
"""

import ast
import functools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from touchstone.validation.isolated_runner.sides import module_name
from touchstone.validation.protocol import Job, Problem, Tree
from touchstone.validation.validators.features_of_tests import TestFile
from touchstone.validation.validators.pytest_tests import CONFIGURATION
from touchstone.validation.validators.python import find_tests
from touchstone.validation.validators.syntax_of_tests import last_name

# Objects of such classes are compared by identity or passed by value, so both sides agree about them.
_PLAIN_BASES = {"object", "NamedTuple", "Enum", "Protocol", "ABC", "Generic", "TypedDict", "BaseException", "Exception"}
_HARMLESS_DECORATORS = {"final", "runtime_checkable", "unique"}
# Modules of the library that tell a proxy for a function of the tests from a function.
_LOOKING_INTO = {"inspect"}
_OPERATORS = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift neg pos abs invert int float"
_COMPARED = {
    f"__{name}__"
    for each in _OPERATORS.split()
    for name in (each, f"r{each}", f"i{each}", "eq", "ne", "lt", "le", "gt", "ge", "hash", "array", "index", "round")
}
_IMPORT = re.compile(r"^[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+(\w[\w.]*)[ \t]+import\b)", re.MULTILINE)
Sources = tuple[tuple[str, bytes], ...]
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
    names = frozenset(_candidate_modules(Job(problem, tree), set(tests)))
    texts = {path: tree.read(path) for path in tree.within(problem.working_directory) if path.endswith(".py")}
    modules = [(path, text) for path, text in texts.items() if path not in paths]
    if problem.reference_fix:
        modules.append(("the reference fix", problem.reference_fix.encode("utf-8", "replace")))
    found = _obstacle_in_sources(names, tuple((path, tree.read(path)) for path in paths), tuple(modules))
    yield from [found] if found is not None else []


@functools.lru_cache(maxsize=10_000)
def _obstacle_in_sources(names: frozenset[str], tests: Sources, modules: Sources) -> str | None:
    """The first obstacle in the texts of the tests and of the modules under test, found once per process."""
    candidate = _CandidateModules(names, dict(modules))
    for path, text in tests:
        source = _parsed(text)
        found = next(candidate.obstacles_in(TestFile(source, names)), None) if source is not None else None
        if found is not None:
            return f"{path} {found}"
    return next(candidate.obstacles(), None)


def _pytest_files(tree: Tree, tests: Sequence[str]) -> Iterator[str]:
    """The conftest and configuration files that pytest would read for these tests."""
    parents = {parent for path in tests for parent in PurePosixPath(path).parents}
    for path in map(PurePosixPath, tree.files):
        if path.parent in parents and path.name == "conftest.py":
            yield f"{path} may define fixtures and hooks"
        section = CONFIGURATION.get(path.name)
        if path.parent in parents and section is not None and section.encode() in tree.read(str(path)):
            yield f"{path} configures pytest"


@dataclass(frozen=True)
class _CandidateModules:
    """The modules under test as the problem has them, and the repaired one also as the reference fix has it."""

    names: frozenset[str]
    texts: Mapping[str, bytes]

    def obstacles_in(self, tests: TestFile) -> Iterator[str]:
        """What in a test file needs pytest, as the end of a sentence about it."""
        yield from tests.unsupported()
        unknown = (name for name in tests.imported_classes() if name not in self._defined)
        yield from (f"imports {name}, which may be a class whose objects are compared" for name in unknown)
        yield from (f"compares {what}" for what in tests.compared(self._plain_classes))

    def obstacles(self) -> Iterator[str]:
        """Packages and classes that need pytest."""
        own = {name.partition(".")[0] for name in self.names}
        for path, text in self.texts.items():
            packages = set(_lines_like_imports(text)) - (sys.stdlib_module_names - _LOOKING_INTO) - own
            if packages and (found := packages & _imported_packages(text)):
                yield f"{path} imports the package {min(found)}"
            source = self._parsed.get(path)
            if source is not None:
                for node in ast.walk(source):
                    if isinstance(node, ast.ClassDef) and _is_comparable(node, self._classes):
                        yield f"objects of {node.name} in {path} may be compared"
            elif path in self._parsed:
                name = _CLASS.findall(text.decode("utf-8", "replace"))[0]
                yield f"objects of {name} in {path} may be compared"

    @functools.cached_property
    def _parsed(self) -> dict[str, ast.Module | None]:
        """The modules that define a class; None if one does not parse. Few problems have any."""
        return {
            path: _parsed(text)
            for path, text in self.texts.items()
            if b"class" in text and _CLASS.search(text.decode("utf-8", "replace"))
        }

    @functools.cached_property
    def _defined(self) -> set[str]:
        sources = [source for text in self.texts.values() if (source := _parsed(text)) is not None]
        return {name for source in sources for node in ast.walk(source) for name in _defined_names(node)}

    @functools.cached_property
    def _classes(self) -> set[str]:
        return {node.name for node in self._class_nodes()}

    @functools.cached_property
    def _plain_classes(self) -> set[str]:
        """Classes whose objects stay with the candidate, so that the tests hold references to them."""
        passed = {"NamedTuple", "Enum"}
        return {node.name for node in self._class_nodes() if not passed.intersection(map(last_name, node.bases))}

    def _class_nodes(self) -> Iterator[ast.ClassDef]:
        sources = [source for source in self._parsed.values() if source is not None]
        return (node for source in sources for node in ast.walk(source) if isinstance(node, ast.ClassDef))


def _imported_packages(text: bytes) -> set[str]:
    """The first part of every module that a file imports absolutely.

    >>> sorted(_imported_packages(b"import os.path, numpy as np\\nfrom a.b import c\\nfrom . import d\\n"))
    ['a', 'numpy', 'os']
    """
    source = _parsed(text)
    if source is None:
        return set(_lines_like_imports(text))
    found = set()
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _lines_like_imports(text: bytes) -> Iterator[str]:
    """The same without parsing; lines of a docstring may be among them."""
    for names, module in _IMPORT.findall(text.decode("utf-8", "replace")):
        for name in names.split(",") if names else [module]:
            yield name.strip().partition(" ")[0].partition(".")[0]


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


def _candidate_modules(job: Job, tests: set[str]) -> Iterator[str]:
    """The names of the problem's modules and packages, without those in a folder of tests."""
    repaired = PurePosixPath(job.problem.filename)
    theirs = {PurePosixPath(name).parent for name in tests} - {repaired.parent, *repaired.parents}
    for path in job.tree.within(job.problem.working_directory):
        inside = PurePosixPath(path).relative_to(job.problem.working_directory or ".")
        if inside.suffix != ".py" or str(inside) in tests or inside.name == "conftest.py":
            continue
        if not theirs.intersection(inside.parents):
            yield module_name(str(inside))
