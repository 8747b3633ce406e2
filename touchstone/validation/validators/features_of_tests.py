"""What a test file uses that only works if tests and the code under test share a process, or that only pytest does."""

import ast
import functools
from collections.abc import Iterator
from typing import Any, TypeVar

from touchstone.validation.validators import copied_objects
from touchstone.validation.validators.syntax_of_tests import calls_in, last_name

Node = TypeVar("Node", bound=ast.AST)

# Modules that only compute values, so that it does not matter which process does.
_MODULES = {
    *("__future__", "abc", "asyncio", "base64", "bisect", "calendar", "cmath", "collections", "contextlib", "copy"),
    *("dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "hashlib", "heapq", "itertools", "json"),
    *("math", "numbers", "operator", "os", "pytest", "random", "re", "statistics", "string", "struct", "sys"),
    *("textwrap", "time", "typing", "unicodedata", "unittest", "zlib"),
}
# Of these modules only some attributes; the others see or change the process, or need pytest.
_ATTRIBUTES = {
    "pytest": {"raises", "approx", "mark", "param", "fail", "main"},
    "mark": {"parametrize"},
    "unittest": {"TestCase", "IsolatedAsyncioTestCase", "main"},
    "os": {"path"},
    "sys": {"path", "maxsize", "float_info", "version_info", "platform"},
}
_SHARED_STATE = {
    *("redirect_stdout", "redirect_stderr", "chdir", "seed", "assertLogs", "assertNoLogs", "assertWarns"),
    *("assertWarnsRegex", "skipTest", "indirect", "pytestmark", "pytest_plugins", "marks"),
}
_COMPARING_METHODS = {
    *("assertEqual", "assertNotEqual", "assertIn", "assertNotIn", "assertListEqual", "assertTupleEqual"),
    *("assertDictEqual", "assertSetEqual", "assertSequenceEqual", "assertCountEqual", "assertLess", "assertGreater"),
    *("assertLessEqual", "assertGreaterEqual", "assertAlmostEqual"),
}
_HOOKS = {
    *("setup_module", "teardown_module", "setup_function", "teardown_function", "setUpModule", "tearDownModule"),
    "pytest_generate_tests",
}


class TestFile:
    """A parsed test file. Its nodes are listed once, because every problem's tests are looked at in every run."""

    def __init__(self, source: ast.Module, candidate: frozenset[str]) -> None:
        self._source, self._candidate = source, candidate
        self._nodes: dict[type, list[Any]] = {}
        # Not `ast.walk`, which takes twice as long.
        waiting: list[Any] = [source]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.AST):
                self._nodes.setdefault(type(node), []).append(node)
                waiting += [getattr(node, name, None) for name in node._fields]
            elif type(node) is list:
                waiting += reversed(node)

    def unsupported(self) -> Iterator[str]:
        """What the isolated runner cannot do for these tests, as the end of a sentence about the file."""
        for line in self._of(ast.Import):
            for each in line.names:
                yield from _imported(each.name, None, self._candidate)
        for imports in self._of(ast.ImportFrom):
            if imports.level or not imports.module:
                yield "imports relative to its package"
                continue
            for each in imports.names:
                yield from _imported(imports.module, each.name, self._candidate)
        for attribute in self._of(ast.Attribute):
            yield from _attribute(attribute)
        names = {name.id for name in self._of(ast.Name)} | {each.arg for each in self._of(ast.keyword) if each.arg}
        yield from (f"uses {name}" for name in sorted(_SHARED_STATE & names))
        if any(isinstance(call.func, ast.Name) and call.func.id == "open" for call in self._of(ast.Call)):
            yield "opens a file"
        yield from (f"uses {each.name}" for each in self._of(ast.FunctionDef) if each.name in _HOOKS)
        for kind in self._of(ast.ClassDef):
            if any(_names_of(base) & self._under_test for base in kind.bases):
                yield f"derives {kind.name} from a class under test"
        yield from _fixtures(self._source, set())
        yield from self._copied()

    def _copied(self) -> Iterator[str]:
        """What only works if both sides share their objects."""
        yield from copied_objects.handed_over(self._of)
        yield from copied_objects.looked_into(self._of)
        yield from copied_objects.exceptions(self._of, self._under_test)
        yield from copied_objects.generic_classes(self._of, self._under_test)
        yield from copied_objects.shared_values(self._of, self._candidate)

    def compared(self, classes: set[str]) -> Iterator[str]:
        """The objects of the code under test that the tests compare by value: of its classes, or two of its results.

        >>> source = "from shapes import Point, move\\np = Point(1)\\nassert p.x == 1\\nassert [p] == move(q)"
        >>> list(TestFile(ast.parse(source), frozenset({"shapes"})).compared({"Point"}))
        ['objects of Point', 'results of Point and move']
        """
        made = {
            target.id: node.value
            for node in self._of(ast.Assign)
            if isinstance(node.value, ast.Call)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for operands in self._operands():
            calls = [list(calls_in(operand, made)) for operand in operands]
            names = [{last_name(call.func) for call in some if self._is_under_test(call)} for some in calls]
            yield from (f"objects of {name}" for name in sorted(set().union(*names) & classes))
            if sum(map(bool, names)) > 1:
                yield f"results of {' and '.join(sorted(set().union(*names)))}"

    def imported_classes(self) -> Iterator[str]:
        """The names that the tests import from the code under test and that look like those of classes."""
        for node in self._of(ast.ImportFrom):
            if node.module in self._candidate:
                names = (each.name for each in node.names)
                yield from (name for name in names if name[:1].isupper() and not name.isupper())

    def _of(self, kind: type[Node]) -> list[Node]:
        return self._nodes.get(kind, [])

    def _operands(self) -> Iterator[list[ast.expr]]:
        for node in self._of(ast.Compare):
            if not all(isinstance(each, ast.Is | ast.IsNot) for each in node.ops):
                yield [node.left, *node.comparators]
        yield from (node.args for node in self._of(ast.Call) if last_name(node.func) in _COMPARING_METHODS)
        yield from (node.elts for node in self._of(ast.Set))

    def _is_under_test(self, call: ast.Call) -> bool:
        node: ast.expr = call
        while isinstance(node, ast.Call | ast.Subscript | ast.Attribute):
            node = node.func if isinstance(node, ast.Call) else node.value
        return isinstance(node, ast.Name) and node.id in self._under_test

    @functools.cached_property
    def _under_test(self) -> set[str]:
        """The names that the tests import from the code under test."""
        tops = {name.partition(".")[0] for name in self._candidate}
        found = set()
        for node in self._of(ast.ImportFrom):
            if node.module in self._candidate:
                found |= {each.asname or each.name for each in node.names}
        for line in self._of(ast.Import):
            found |= {each.asname or each.name for each in line.names if each.name.partition(".")[0] in tops}
        return found


def _attribute(node: ast.Attribute) -> Iterator[str]:
    owner = node.value
    if isinstance(owner, ast.Name) and node.attr not in _ATTRIBUTES.get(owner.id, {node.attr}):
        yield f"uses {owner.id}.{node.attr}"
    elif isinstance(owner, ast.Attribute) and owner.attr == "mark" and node.attr not in _ATTRIBUTES["mark"]:
        yield f"uses the marker {node.attr}"
    elif node.attr in _SHARED_STATE:
        yield f"uses {node.attr}"


def _imported(module: str, name: str | None, candidate: frozenset[str]) -> Iterator[str]:
    top = module.partition(".")[0]
    if module in candidate or any(each.startswith(f"{module}.") for each in candidate):
        return
    if top not in _MODULES or module in ("unittest.mock", "asyncio.subprocess"):
        yield f"imports {module}"
    elif name is not None and name in _SHARED_STATE:
        yield f"uses {name}"
    elif name is not None and module in _ATTRIBUTES and name not in _ATTRIBUTES[module]:
        yield f"uses {module}.{name}"


def _names_of(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _fixtures(owner: ast.Module | ast.ClassDef, given: set[str]) -> Iterator[str]:
    """The parameters of test functions that `parametrize` does not give."""
    for node in owner.body:
        if isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or isinstance(owner, ast.ClassDef)):
            yield from _fixtures(node, given | _parametrized(node))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            arguments = [*node.args.posonlyargs, *node.args.args][isinstance(owner, ast.ClassDef) :]
            required = arguments[: len(arguments) - len(node.args.defaults)]
            needed = [each.arg for each in required if each.arg not in given | _parametrized(node)]
            yield from (f"needs the fixture {name}" for name in needed)


def _parametrized(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The argument names that the `parametrize` decorators of a function or class give."""
    found: set[str] = set()
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "attr", "") == "parametrize" and decorator.args:
            for each in ast.walk(decorator.args[0]):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    found |= {name.strip() for name in each.value.split(",")}
    return found
