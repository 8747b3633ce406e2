"""What tests do that has another result if they and the code under test exchange copies instead of sharing objects.

Between two processes, lists and dicts are copied, objects are proxies, and an exception is rebuilt from its class name
and attributes. Cautious: a test that may depend on more than that needs one process.
"""

import ast
import builtins
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from touchstone.validation.validators.syntax_of_tests import calls_in, last_name

_CHANGING_METHODS = {
    *("append", "extend", "insert", "pop", "popitem", "popleft", "appendleft", "remove", "discard", "clear", "update"),
    *("add", "sort", "reverse", "setdefault", "rotate"),
}
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_COPYING = {"list", "dict", "set", "tuple", "sorted", "deque", "defaultdict", "OrderedDict", "Counter", "bytearray"}
_PROCESS = {"vars", "dir", "id", "hash", "globals", "locals", "exec", "eval", "__import__", "memoryview"}
_GROUPS = {"ExceptionGroup", "BaseExceptionGroup"}
# Of other special attributes, a proxy has its own.
_SPECIAL_ATTRIBUTES = {"__name__", "__doc__", "__members__", "__file__", "__len__", "__iter__", "__contains__"}
# Objects that cannot be handed over, or that change this process only.
_OPAQUE = {
    *("re.compile", "random.Random", "random.SystemRandom", "struct.Struct", "string.Template", "hashlib.new"),
    *("decimal.Context", "decimal.getcontext", "decimal.localcontext", "decimal.setcontext"),
    *("dataclasses.asdict", "dataclasses.astuple", "dataclasses.fields", "dataclasses.replace"),
    *("dataclasses.is_dataclass", "asyncio.iscoroutinefunction", "asyncio.iscoroutine"),
}
_CONTEXT_MANAGERS = {"raises", "assertRaises", "assertRaisesRegex", "subTest", "suppress", "nullcontext"}
_TEST_CASES = {"TestCase", "IsolatedAsyncioTestCase"}
Node = TypeVar("Node", bound=ast.AST)


class Nodes(Protocol):
    """The nodes of one kind in a test file."""

    def __call__(self, kind: type[Node], /) -> list[Node]: ...


def is_exception_name(name: str) -> bool:
    """Whether a class of this name is an exception.

    >>> [is_exception_name(name) for name in ("ParseError", "StopIteration", "Error", "Stack")]
    [True, True, True, False]
    """
    found = getattr(builtins, name, None)
    known = isinstance(found, type) and issubclass(found, BaseException)
    return known or name.endswith(("Error", "Exception", "Warning", "Exit"))


def handed_over(of: Nodes) -> Iterator[str]:
    """Objects of the tests that the code under test cannot use like its own."""
    for kind in of(ast.ClassDef):
        bases = [last_name(base) for base in kind.bases]
        is_test = kind.name.startswith("Test") or not _TEST_CASES.isdisjoint(bases)
        if not is_test and not any(map(is_exception_name, bases)):
            yield f"defines the class {kind.name}, which the code under test may use"
    for coroutine in of(ast.AsyncFunctionDef):
        if not coroutine.name.startswith("test"):
            yield f"defines the coroutine {coroutine.name}, which the code under test may await"
    for function in of(ast.FunctionDef):
        if not function.name.startswith("test") and _has_annotations(function):
            yield f"defines {function.name} with annotations, which the code under test may read"
    used = [(node.value.id, node.attr) for node in of(ast.Attribute) if isinstance(node.value, ast.Name)]
    used += [(node.module or "", each.name) for node in of(ast.ImportFrom) for each in node.names]
    for module, name in used:
        if f"{module}.{name}" in _OPAQUE or (module == "asyncio" and name != "run"):
            yield f"uses {module}.{name}"


def _has_annotations(node: ast.FunctionDef) -> bool:
    return any(each.annotation is not None for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))


def looked_into(of: Nodes) -> Iterator[str]:
    """Questions about an object that a proxy answers differently."""
    for attribute in of(ast.Attribute):
        name = attribute.attr
        if name.startswith("__") and name.endswith("__") and name not in _SPECIAL_ATTRIBUTES:
            yield f"uses {name}"
    yield from (f"uses {node.id}" for node in of(ast.Name) if node.id in _GROUPS)
    yield from ("uses except*" for _ in of(ast.TryStar))
    calls = [(node, node.func.id) for node in of(ast.Call) if isinstance(node.func, ast.Name)]
    asks_type = any(name == "type" for _, name in calls)
    plain = {id(call) for node in of(ast.Compare) for call in _plain_type_checks(node)} if asks_type else set()
    for call, name in calls:
        if id(call) not in plain:
            yield from _questions(call, name)
    # Only in one process may one suppress any error, or see what its body does to its arguments.
    managers = (last_name(item.context_expr) for item in of(ast.withitem))
    yield from (f"uses the context manager {name}" for name in managers if name not in _CONTEXT_MANAGERS)


def _questions(node: ast.Call, function: str) -> Iterator[str]:
    if function in _PROCESS or function == "type":
        yield f"uses {function}()"
    elif function == "isinstance" and len(node.args) == 2:
        kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        yield from (f"asks if an object is {name}" for kind in kinds if is_exception_name(name := last_name(kind)))


def _plain_type_checks(node: ast.Compare) -> Iterator[ast.expr]:
    """The calls of `type` that are compared with built-in types only."""
    operands = [node.left, *node.comparators]
    calls = [each for each in operands if isinstance(each, ast.Call) and last_name(each.func) == "type"]
    others = [each for each in operands if each not in calls]
    names = [each.id for other in others for each in ast.walk(other) if isinstance(each, ast.Name)]
    if names and all(isinstance(getattr(builtins, name, None), type) for name in names):
        yield from calls


def exceptions(of: Nodes, under_test: set[str]) -> Iterator[str]:
    """What an exception rebuilt in another process does not have: what its class and its constructor give it."""
    caught = {node.name for node in of(ast.ExceptHandler) if node.name}
    for node in of(ast.Attribute):
        owner = node.value
        of_context = isinstance(owner, ast.Attribute) and owner.attr in ("value", "exception")
        name = owner.id if isinstance(owner, ast.Name) else ""
        if node.attr != "args" and (of_context or name in caught):
            yield f"uses {node.attr} of an exception"
        elif name in under_test and is_exception_name(name):
            yield f"uses {name}.{node.attr}"
    made = (last_name(node.func) for node in of(ast.Call))
    yield from (f"makes objects of {name}" for name in made if name in under_test and is_exception_name(name))


def generic_classes(of: Nodes, under_test: set[str]) -> Iterator[str]:
    """Classes with parameters, as in `Stack[int]`; not the members of an enumeration, as in `Color["RED"]`."""
    for node in of(ast.Subscript):
        name = last_name(node.value)
        is_class = name[:1].isupper() and not name.isupper() and not isinstance(node.slice, ast.Constant)
        if is_class and ast.unparse(node.value).partition(".")[0] in under_test:
            yield f"uses {name}[{ast.unparse(node.slice)}]"


def shared_values(of: Nodes, modules: frozenset[str]) -> Iterator[str]:
    """Values that both sides would share in one process, where one sees what the other changes."""
    few = [node for kind in (ast.Call, ast.Subscript, ast.AugAssign) for node in of(kind)]
    displays = any(isinstance(node.value, _DISPLAYS) for node in of(ast.Assign))
    identities = any(isinstance(each, ast.Is | ast.IsNot) for node in of(ast.Compare) for each in node.ops)
    if not (displays or identities or any(_changed(few)) or any(_copied(few))):
        return  # Nothing to find, and walking through every function takes longer than all of the above.
    modules |= {each.asname or each.name for node in of(ast.Import) for each in node.names}
    bodies = [list(ast.walk(function)) for function in (*of(ast.FunctionDef), *of(ast.AsyncFunctionDef))]
    attributes = {key: value for nodes in bodies for key, value in _assigned(nodes) if "." in key}
    for nodes in bodies:
        made = attributes | dict(_assigned(nodes))
        yield from _identities(nodes, made)
        given = set(_given(nodes))
        for key, changed in _changed(nodes):
            if key not in modules and (key in given or _is_copy(key, changed, made)):
                yield f"changes {key}, which the code under test may share"
        yield from (f"copies {key}" for key in _copied(nodes) if _is_object(key, made))
        yield from (f"compares {key}, which an object may keep" for key in _kept_and_compared(nodes, made, modules))


def _copied(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Call) and last_name(node.func) in ("copy", "deepcopy"):
            yield from map(_key, node.args)


def _is_object(key: str, made: dict[str, ast.expr]) -> bool:
    return isinstance(made.get(key), ast.Call | ast.Attribute | ast.Subscript)


def _identities(nodes: Sequence[ast.AST], made: dict[str, ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Compare) and any(isinstance(each, ast.Is | ast.IsNot) for each in node.ops):
            operands = [node.left, *node.comparators]
            calls = {key: value for key, value in made.items() if isinstance(value, ast.Call)}
            names = {last_name(call.func) for each in operands for call in calls_in(each, calls)}
            if not any(map(_has_an_identity, operands)) and not any(name[:1].isupper() for name in names):
                yield "compares by identity"


def _has_an_identity(node: ast.expr) -> bool:
    """Whether it is the same in both processes: None, a built-in type, a constant, a member of an enumeration."""
    if isinstance(node, ast.Attribute):
        return node.attr.isupper()
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and hasattr(builtins, node.id))


def _assigned(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """The variables and attributes that the tests assign, with what they assign."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                    yield _key(each), node.value


def _key(node: ast.expr) -> str:
    """A variable, or an attribute as dotted text."""
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _changed(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """What the tests change in place."""
    for node in nodes:
        changed: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING_METHODS:
            changed = node.func.value
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            changed = node.value
        elif isinstance(node, ast.AugAssign) and isinstance(node.value, _DISPLAYS):
            changed = node.target
        while isinstance(changed, ast.Subscript):
            changed = changed.value
        if changed is not None:
            yield _key(changed), changed


def _is_copy(key: str, changed: ast.expr, made: dict[str, ast.expr]) -> bool:
    """Whether something that is changed came from the code under test, by value."""
    if key == "sys.path":
        return False
    value = made.get(key)
    if value is None:
        return not isinstance(changed, ast.Name)
    if isinstance(value, ast.Call):
        name = last_name(value.func)
        return not (name[:1].isupper() or name in _COPYING)
    return isinstance(value, ast.Attribute | ast.Subscript)


def _given(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """The variables that are passed to something else than a built-in function."""
    for node in nodes:
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id)):
            yield from map(_key, _arguments(node))


def _arguments(node: ast.Call) -> Iterator[ast.expr]:
    for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
        yield from argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument]


def _kept_and_compared(nodes: Sequence[ast.AST], made: dict[str, ast.expr], modules: frozenset[str]) -> Iterator[str]:
    """Lists and the like that are passed to a class or a method, and then compared."""
    mutable = {key for key, value in made.items() if isinstance(value, _DISPLAYS)}
    if not mutable:
        return
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    kept = {_key(argument) for node in calls if _may_keep(node, modules) for argument in _arguments(node)}
    compared = {
        _key(operand) for node in nodes if isinstance(node, ast.Compare) for operand in (node.left, *node.comparators)
    }
    compared |= {
        _key(argument) for node in calls if last_name(node.func).startswith("assert") for argument in node.args
    }
    yield from sorted(mutable & kept & compared - {""})


def _may_keep(node: ast.Call, modules: frozenset[str]) -> bool:
    name = last_name(node.func)
    of_an_object = isinstance(node.func, ast.Attribute) and _key(node.func.value) not in modules
    return name[:1].isupper() or (of_an_object and not name.startswith(("assert", "append")))
