"""What a test file uses that only works if tests and the code under test share a process, or that only pytest does."""

import ast
from collections.abc import Iterator, Mapping

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
_DEEPEST = 20
_HOOKS = {
    *("setup_module", "teardown_module", "setup_function", "teardown_function", "setUpModule", "tearDownModule"),
    "pytest_generate_tests",
}


def unsupported_features(tests: ast.Module, candidate: frozenset[str]) -> Iterator[str]:
    """What the isolated runner cannot do for these tests, as the end of a sentence about the file."""
    for node in ast.walk(tests):
        match node:
            case ast.Import():
                for each in node.names:
                    yield from _imported(each.name, None, candidate)
            case ast.ImportFrom(level=0, module=str(module)):
                for each in node.names:
                    yield from _imported(module, each.name, candidate)
            case ast.ImportFrom():
                yield "imports relative to its package"
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if name not in _ATTRIBUTES.get(owner, {name}):
                yield f"uses {owner}.{name}"
            case ast.Attribute(value=ast.Attribute(attr="mark"), attr=name) if name not in _ATTRIBUTES["mark"]:
                yield f"uses the marker {name}"
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.keyword(arg=name) if name in _SHARED_STATE:
                yield f"uses {name}"
            case ast.Call(func=ast.Name(id="open")):
                yield "opens a file"
            case ast.FunctionDef(name=name) if name in _HOOKS:
                yield f"uses {name}"
            case ast.ClassDef() if any(_names_of(base) & _imported_names(tests, candidate) for base in node.bases):
                yield f"derives {node.name} from a class under test"
    yield from _fixtures(tests, set())


def compared_objects(tests: ast.Module, classes: set[str], candidate: frozenset[str]) -> Iterator[str]:
    """The objects of the code under test that the tests compare by value: of its classes, or two of its results.

    >>> source = "from shapes import Point, move\\np = Point(1)\\nassert p.x == 1\\nassert [p] == move(q)"
    >>> list(compared_objects(ast.parse(source), {"Point"}, frozenset({"shapes"})))
    ['objects of Point', 'results of Point and move']
    """
    nodes = list(ast.walk(tests))
    under_test = _imported_names(tests, candidate)
    made = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        operands: list[ast.expr] = []
        if isinstance(node, ast.Compare) and not all(isinstance(each, ast.Is | ast.IsNot) for each in node.ops):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and last_name(node.func) in _COMPARING_METHODS:
            operands = node.args
        calls = [list(_calls_in(operand, made)) for operand in operands]
        names = [{last_name(call.func) for call in some if _names_of(call.func) & under_test} for some in calls]
        yield from (f"objects of {name}" for name in sorted(set().union(*names) & classes))
        if sum(map(bool, names)) > 1:
            yield f"results of {' and '.join(sorted(set().union(*names)))}"


def _calls_in(node: ast.expr, made: Mapping[str, ast.Call], depth: int = 0) -> Iterator[ast.Call]:
    """The calls that give a value, or the items of a list, set, tuple or dict."""
    if isinstance(node, ast.Call):
        yield node
    elif isinstance(node, ast.Name) and node.id in made:
        yield made[node.id]
    elif isinstance(node, ast.List | ast.Tuple | ast.Set) and depth < _DEEPEST:
        for each in node.elts:
            yield from _calls_in(each, made, depth + 1)
    elif isinstance(node, ast.Dict) and depth < _DEEPEST:
        for each in node.values:
            yield from _calls_in(each, made, depth + 1)


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name, called or subscripted or not; "" for anything else.

    >>> last_name(ast.parse("a.b(1)[2]", mode="eval").body)
    'b'
    """
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


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


def _imported_names(tests: ast.Module, candidate: frozenset[str]) -> set[str]:
    """The names that the tests import from the code under test."""
    tops = {name.partition(".")[0] for name in candidate}
    found = set()
    for node in ast.walk(tests):
        if isinstance(node, ast.ImportFrom) and node.module in candidate:
            found |= {each.asname or each.name for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.asname or each.name for each in node.names if each.name.partition(".")[0] in tops}
    return found


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
