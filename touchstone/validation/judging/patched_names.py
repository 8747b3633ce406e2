"""Names that a Python file replaces, or reaches for, in code that is not its own, by its syntax.

A fix that replaces a function which its tests rely on can put it back before anyone looks; its text still shows it.
"""

import ast
import builtins
import sys
from collections.abc import Collection, Iterator

from touchstone.text import python_lines
from touchstone.validation.reach import parse_python

# Replaced by ordinary programs: streams and settings of the interpreter.
_HARMLESS = {
    *("sys.stdout", "sys.stderr", "sys.stdin", "sys.argv", "sys.path", "sys.excepthook", "sys.tracebacklimit"),
    *("warnings.showwarning", "logging.raiseExceptions", "os.environ"),
}
_NAMES_OF_FUNCTIONS = {
    *("__name__", "__qualname__", "__doc__", "__module__", "__wrapped__", "__signature__", "__annotations__"),
    *("__dict__", "__cause__", "__context__", "__traceback__", "__suppress_context__", "__notes__", "__test__"),
}
# What only a look into other functions and frames needs.
_INSIDES = {
    *("__globals__", "__closure__", "__kwdefaults__", "cell_contents", "getclosurevars"),
    *("f_locals", "f_globals", "f_back"),
}
_JUDGES = {"builtins", "gc", "pytest", "sys", "unittest"}
# Methods of a namespace that change nothing in it.
_LOOKS = {"get", "keys", "values", "items", "copy", "__contains__"}
# Functions that are given modules, and change nothing in them.
_READERS = {"getattr", "hasattr", "vars", "dir", "print", "type", "isinstance", "id", "repr", "getmembers", "reload"}


def patched_names(source: bytes, own: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Each name that is replaced, with the line; `own` are the modules of the problem, which it may change.

    >>> list(patched_names(b"import math, own\\nmath.isclose = max\\nown.x = 1\\nsetattr(math, 'e', 3)", {"own"}))
    [('math.isclose', 'math.isclose = max'), ('math', "setattr(math, 'e', 3)")]
    """
    tree = parse_python(source)
    if tree is None:
        return
    nodes = list(ast.walk(tree))
    # A parameter that has the name of a module is meant where both are; a control sees what tests rely on.
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)} - _JUDGES
    foreign = {name: module for node in nodes for name, module in _imported(node, own) if name not in parameters}
    known = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    lines = python_lines(source)
    for node in nodes:
        found = _replaced(node, foreign, known | {"self", "cls"})
        if found is not None and found not in _HARMLESS:
            line = getattr(node, "lineno", 1)
            yield found, lines[line - 1].strip() if line <= len(lines) else ""


def _imported(node: ast.AST, own: Collection[str]) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for one in node.names:
            if one.name.partition(".")[0] not in own:
                yield one.asname or one.name.partition(".")[0], one.name
    elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] not in own:
        yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)


def _replaced(node: ast.AST, foreign: dict[str, str], known: Collection[str]) -> str | None:
    if isinstance(node, ast.Attribute) and node.attr in _INSIDES and isinstance(node.ctx, ast.Load):
        return ast.unparse(node)
    if isinstance(node, ast.Constant | ast.BinOp) and (name := _text(node)) in {*_INSIDES, "__subclasses__"}:
        return name
    if isinstance(node, ast.Attribute) and node.attr == "__subclasses__" and _root(node) in foreign | vars(builtins):
        return ast.unparse(node)
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        root = _root(node)
        if root in foreign:
            return ast.unparse(node)
        method = node.attr.startswith("__") and node.attr.endswith("__") and node.attr not in _NAMES_OF_FUNCTIONS
        return ast.unparse(node) if method and root not in known else None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        # A table of the standard library.
        module = foreign.get(_root(node.value), "").partition(".")[0]
        is_table = isinstance(node.value, ast.Attribute) and module in sys.stdlib_module_names
        return ast.unparse(node.value) if is_table else _namespace(node.value, foreign)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
        return _root(node.args[0]) if node.args and _root(node.args[0]) in foreign else None
    if isinstance(node, ast.Call) and _called(node) not in _READERS and (given := _modules(node, foreign)):
        return given[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _LOOKS:
        return _namespace(node.func.value, foreign)
    return None


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else _root(node.func)


def _modules(node: ast.Call, foreign: dict[str, str]) -> list[str]:
    """The modules that judge among the arguments of a call, which can change them."""
    given = [one.id for one in node.args if isinstance(one, ast.Name) and foreign.get(one.id) in _JUDGES]
    parts = (one.value for one in node.args if isinstance(one, ast.Subscript))
    return given or [ast.unparse(one) for one in parts if ast.unparse(one).endswith("sys.modules")]


def _namespace(node: ast.expr, foreign: dict[str, str]) -> str | None:
    """The text of an expression that is the namespace of a module or class that is not the file's own."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and node.args
    inner = node.args[0] if isinstance(node, ast.Call) and called else node
    of_names = called or (isinstance(node, ast.Attribute) and node.attr in ("__dict__", "modules", "__globals__"))
    return ast.unparse(node) if of_names and _root(inner) in foreign else None


def _text(node: ast.expr) -> str:
    """The text of a literal that may be put together from parts."""
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
