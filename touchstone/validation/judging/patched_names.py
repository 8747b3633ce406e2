"""What a Python file replaces, or reaches for, in code that is not its own, by its syntax.

A fix that replaces a function which its tests rely on can put it back before anyone looks. What it does is in its text.
"""

import ast
from collections.abc import Collection, Iterator

# Replaced by ordinary programs: streams and what the interpreter is told.
_HARMLESS = {
    *("sys.stdout", "sys.stderr", "sys.stdin", "sys.argv", "sys.path", "sys.excepthook", "sys.tracebacklimit"),
    *("warnings.showwarning", "logging.raiseExceptions"),
}
_NAMES_OF_FUNCTIONS = {
    *("__name__", "__qualname__", "__doc__", "__module__", "__wrapped__", "__signature__", "__annotations__"),
    *("__dict__", "__cause__", "__context__", "__traceback__", "__suppress_context__", "__notes__", "__test__"),
}


# What only a look into other functions and frames needs.
_INSIDES = {"__globals__", "__closure__", "f_locals", "f_globals", "f_back"}
# Functions that are given modules, and change nothing in them.
_READERS = {"getattr", "hasattr", "vars", "dir", "print", "type", "isinstance", "id", "repr", "getmembers", "reload"}


def patched_names(source: bytes, own: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Each name that is replaced, with the line; `own` are the modules of the problem, which it may change.

    >>> list(patched_names(b"import math, own\\nmath.isclose = max\\nown.x = 1\\nsetattr(math, 'e', 3)", {"own"}))
    [('math.isclose', 'math.isclose = max'), ('math', "setattr(math, 'e', 3)")]
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    nodes = list(ast.walk(tree))
    foreign = {name: module for node in nodes for name, module in _imported(node, own)}
    known = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    lines = source.decode("utf-8", "replace").splitlines()
    for node in nodes:
        found = _replaced(node, foreign, known | {"self", "cls"})
        if found is not None and found not in _HARMLESS:
            yield found, lines[getattr(node, "lineno", 1) - 1].strip()


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
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        root = _root(node)
        if root in foreign:
            return ast.unparse(node)
        method = node.attr.startswith("__") and node.attr.endswith("__") and node.attr not in _NAMES_OF_FUNCTIONS
        return ast.unparse(node) if method and root not in known else None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return _namespace(node.value, foreign)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
        return _root(node.args[0]) if node.args and _root(node.args[0]) in foreign else None
    if isinstance(node, ast.Call) and _called(node) not in _READERS and (given := _modules(node, foreign)):
        return given[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("update", "pop"):
        return _namespace(node.func.value, foreign)
    return None


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else _root(node.func)


def _modules(node: ast.Call, foreign: dict[str, str]) -> list[str]:
    """The modules among the arguments of a call, which can change them."""
    names = [one.id for one in node.args if isinstance(one, ast.Name)]
    given = [name for name in names if name in foreign and "." not in foreign[name]]
    parts = (one.value for one in node.args if isinstance(one, ast.Subscript))
    return given or [ast.unparse(one) for one in parts if ast.unparse(one).endswith("sys.modules")]


def _namespace(node: ast.expr, foreign: dict[str, str]) -> str | None:
    """The text of an expression that is the namespace of a module or class that is not the file's own."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and node.args
    inner = node.args[0] if isinstance(node, ast.Call) and called else node
    of_names = called or (isinstance(node, ast.Attribute) and node.attr in ("__dict__", "modules", "__globals__"))
    return ast.unparse(node) if of_names and _root(inner) in foreign else None


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
