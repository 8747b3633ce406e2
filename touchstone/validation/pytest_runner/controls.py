"""Negative controls: a problem's tests, changed so that an honest fix fails every one of them and a forged pass shows.

Only the files on the judge's side are changed, and nothing in what they call:
- Every test fails at its end. A test that passes all the same was not judged by its own code.
- Every value that a test asks something, by an operator, an assertion or a function, is looked at by the recorder
  (`recorder`): an object of the fix may answer by a method of its own.
- Every assertion that fails where the fix can catch it is noted, and so is every context manager of the fix.
What the fix itself looks at is noted by `watching`. Apart from that the tests do what they always do, so an honest fix
runs each of them to its end. Tests that count comparisons, or time them, do so in a quiet control, which asks less.
"""

import ast
import contextlib
import re
import sys
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Any

from touchstone.validation.pytest_runner.recorder import OPERATORS, Recorder

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_COMPARES = re.compile(r"assert_?\w*[eE]quals?")
_COMPARISONS: dict[type[ast.AST], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
# Functions that ask nothing of the objects that they are given, nor of those in them.
_ASKING_NOTHING = {
    *("len", "list", "tuple", "iter", "next", "enumerate", "zip", "reversed"),
    *("type", "id", "repr", "print"),
}
# A file that has its own functions replaced.
_REBINDS = re.compile(rb"\bglobals\(\)|\bmodules\[__name__\]")
# A file that hands on its name, other than to a logger or to see whether it is run as a program.
_GIVES = re.compile(rb"(?<!getLogger\()(?<!\.)\b__name__\b(?!\s*==)")
# A file that reads files of the tests, or runs them as programs.
_READS = re.compile(
    rb"getsource|\b__file__\)*\.(read|open)|open\(__file__|\.executable|\brunpy\b|\bspawn\b|\bpytester\b"
)


@dataclass(frozen=True)
class ControlledFile:
    """A file of the judge's side as a control: its syntax tree with calls of the recorder.

    `controlled`: the test functions in it, by name and by qualified name; `uncontrolled`: those that cannot be.
    """

    tree: ast.Module
    controlled: frozenset[str]
    uncontrolled: frozenset[str]


def control_file(text: bytes, file: str, tests: frozenset[str], recorder: Recorder, name: str) -> ControlledFile:
    """The control of one file; `tests` are names of test functions, `name` is that of the recorder in it."""
    if _REBINDS.search(text):
        recorder.rebinding.add(file)
    recorder.gives_modules |= _GIVES.search(text) is not None
    recorder.reads_files |= _READS.search(text) is not None
    tree = ast.parse(text)
    recorder.add_source(tree)
    change = _Change(recorder, file, name, tests)
    tree = ast.fix_missing_locations(change.visit(tree))
    return ControlledFile(tree, frozenset(change.controlled), frozenset(change.uncontrolled))


def doctest_control(item: Any) -> bool:
    """Add an example with a wrong result to a doctest; False if the item is none."""
    test = getattr(item, "dtest", None)
    if test is None:
        return False
    import doctest

    test.examples.append(doctest.Example("1\n", "2\n", lineno=len((test.docstring or "").splitlines())))
    return True


class _Change(ast.NodeTransformer):
    """Puts calls of the recorder around values, assertions and tests."""

    def __init__(self, recorder: Recorder, file: str, name: str, tests: frozenset[str]) -> None:
        self._recorder, self._file, self._name, self._tests = recorder, file, name, tests
        self.controlled: set[str] = set()
        self.uncontrolled: set[str] = set()
        self._around: list[str] = []
        # The expectation whose values are looked at.
        self._looking: int | None = None
        # Names of the tests for modules that are neither of Python nor loaded before, and for what is in them.
        self._of_problem: set[str] = set()

    # Values.

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        # Its own value is what counts, not the names on the way to it.
        if not isinstance(node.value, ast.Name | ast.Attribute):
            self.generic_visit(node)
        return self._looked_at(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.value = self.visit(node.value)
        with self._look(node):
            node.slice = self.visit(node.slice)
        return self._looked_at(node)

    def _looked_at(self, node: ast.Name | ast.Attribute | ast.Subscript) -> ast.expr:
        return self._asked(node) if isinstance(node.ctx, ast.Load) else node

    def _asked(self, node: ast.expr) -> ast.expr:
        """A value, looked at if a test asks it something here."""
        return node if self._looking is None else self._call("look", self._looking, node, at=node)

    visit_Name = _looked_at  # noqa: N815

    def visit_UnaryOp(self, node: ast.UnaryOp | ast.JoinedStr) -> ast.expr:
        """Also of a formatted text: what `__format__` returns may answer for itself."""
        self.generic_visit(node)
        return self._asked(node)

    visit_JoinedStr = visit_UnaryOp  # noqa: N815

    def visit_Set(self, node: ast.Set) -> ast.expr:
        """Each value is asked whether it equals the others."""
        with self._look(node):
            self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        # Only its value: others may read what stands in an annotation.
        node.value = self.visit(node.value) if node.value is not None else None
        return node

    def visit_Await(self, node: ast.Await) -> ast.expr:
        self.generic_visit(node)
        return self._asked(self._call("called", self._place(node), node, at=node))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        called = _last_name(node.func)
        compares = _COMPARES.fullmatch(called) and len(node.args) > 1 and not isinstance(node.args[0], ast.Starred)
        asks = not compares and called not in _ASKING_NOTHING and not self._is_of_problem(node.func)
        with self._look(node), self._asks(asks):
            if isinstance(node.func, ast.Attribute):
                node.func.value = self.visit(node.func.value)
            elif not isinstance(node.func, ast.Name | ast.Attribute):
                node.func = self.visit(node.func)
            node.args = [self.visit(argument) for argument in node.args]
            for keyword in node.keywords:
                keyword.value = self.visit(keyword.value)
        made = node
        if compares:
            made = self._call("call", self._place(node), node.func, *node.args, at=node)
            made.keywords = node.keywords
        return self._asked(self._call("called", self._place(node), made, at=node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        with self._asks(False):
            self.generic_visit(node)
        operator = OPERATORS.get(type(node.op))
        if operator is None:
            return node
        made = self._call("operate", self._place(node), f"__{operator}__", node.left, node.right, at=node)
        return self._asked(made)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        operator = OPERATORS.get(type(node.op))
        # Nothing in the target does something when it is evaluated twice.
        simple = all(
            isinstance(one, ast.Name | ast.Constant | ast.expr_context) for one in ast.iter_child_nodes(node.target)
        )
        before = ast.copy_location(ast.parse(ast.unparse(node.target), mode="eval").body, node)
        self.generic_visit(node)
        if operator is None or not simple:
            return node
        made = self._call("operate", self._place(node), f"__i{operator}__", before, node.value, at=node)
        return ast.copy_location(ast.Assign([node.target], made), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        called = _COMPARISONS.get(type(node.ops[0])) if len(node.ops) == 1 else None
        asks = called is None and not all(isinstance(one, ast.Is | ast.IsNot) for one in node.ops)
        with self._look(node) as place, self._asks(asks):
            self.generic_visit(node)
        if called is None:
            return node
        return self._call("compare", place, called, node.left, node.comparators[0], at=node)

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        with self._look(node):
            node.subject = self.visit(node.subject)
        # What stands in a pattern is no expression.
        for case in node.cases:
            case.guard = self.visit(case.guard) if case.guard is not None else None
            case.body = self._statements(case.body)
        return node

    @contextlib.contextmanager
    def _look(self, node: ast.expr | ast.stmt) -> Iterator[int]:
        """Have the values in a node looked at."""
        before = self._looking
        self._looking = place = self._place(node)
        yield place
        self._looking = before

    @contextlib.contextmanager
    def _asks(self, asks: bool) -> Iterator[None]:
        """Whether values are asked something here: no, if they are iterated over, say, or given to the fix."""
        before, self._looking = self._looking, self._looking if asks else None
        yield
        self._looking = before

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        with self._asks(False):
            node.iter = self.visit(node.iter)
        node.ifs = [self.visit(one) for one in node.ifs]
        return node

    # Assertions.

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        # Without a name, such as `assert 1 == 2`, it is a way to raise an exception.
        decides = any(isinstance(one, ast.Name) for one in ast.walk(node.test))
        with self._look(node) as place:
            node.test = self.visit(node.test)
        return self._within("assertion", [node], place) if decides else node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        asserts = _is_assertion(node)
        self.generic_visit(node)
        return self._within("assertion", [node], self._place(node)) if asserts else node

    def visit_With(self, node: ast.With | ast.AsyncWith) -> ast.stmt:
        self.generic_visit(node)
        for item in node.items:
            item.context_expr = self._call("enter", item.context_expr, at=item.context_expr)
        left = ast.copy_location(ast.Expr(self._call("leave", len(node.items), at=node)), node)
        return ast.copy_location(ast.Try([node], [], [], [left]), node)

    visit_AsyncWith = visit_With  # noqa: N815

    # Imports and functions.

    def _bring(self, module: str | None, name: str) -> None:
        if (module or "").partition(".")[0] not in sys.stdlib_module_names | sys.modules.keys():
            self._of_problem.add(name)

    def _is_of_problem(self, node: ast.expr) -> bool:
        """Whether a function of the problem is called, which asks nothing on behalf of the tests."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self._of_problem

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        for alias in node.names:
            self._bring(alias.name, alias.asname or alias.name.partition(".")[0])
        return [node, *(self._imported(node, 0, alias.name, []) for alias in node.names)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        if node.module == "__future__":
            return [node]
        for alias in node.names:
            self._bring(node.module, alias.asname or alias.name)
        names = [alias.name for alias in node.names]
        before = self._call("before_star", ast.Call(ast.Name("globals", ast.Load()), [], []), at=node)
        kept = [ast.copy_location(ast.Expr(before), node)] if names == ["*"] else []
        return [*kept, node, self._imported(node, node.level, node.module or "", names)]

    def _imported(self, node: ast.stmt, level: int, module: str, names: list[str]) -> ast.stmt:
        listed = ast.List([ast.Constant(name) for name in names], ast.Load())
        package = ast.Name("__package__", ast.Load())
        call = self._call("imported", self._place(node), package, level, module, listed, at=node)
        return ast.copy_location(ast.Expr(call), node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        self._around.append(node.name)
        self.generic_visit(node)
        self._around.pop()
        return node

    def visit_FunctionDef(self, node: _Function) -> ast.stmt:
        asserts = _surely_asserts(node.body, _parameters(node))
        generator = any(isinstance(one, ast.Yield | ast.YieldFrom) for part in node.body for one in _own_nodes(part))
        names = {node.name, ".".join([*self._around, node.name])}
        self._around += [node.name, "<locals>"]
        node.body = self._statements(node.body)
        del self._around[-2:]
        if node.name not in self._tests or "<locals>" in self._around:
            return node
        if generator:
            self.uncontrolled |= names
        else:
            self.controlled |= names
            node.body = [self._within("test", node.body, self._place(node), asserts)]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made = [self.visit(one) for one in body]
        return [one for each in made for one in (each if isinstance(each, list) else [each])]

    def _within(self, method: str, body: list[ast.stmt], *arguments: int) -> ast.With:
        item = ast.withitem(self._call(method, *arguments, at=body[0]), None)
        return ast.copy_location(ast.With([item], body), body[0])

    def _place(self, node: ast.expr | ast.stmt) -> int:
        return self._looking if self._looking is not None else self._recorder.add_place(self._file, node.lineno)

    def _call(self, method: str, *arguments: Any, at: ast.AST) -> ast.Call:
        function = ast.Attribute(ast.Name(self._name, ast.Load()), method, ast.Load())
        nodes = [one if isinstance(one, ast.expr) else ast.Constant(one) for one in arguments]
        return ast.copy_location(ast.Call(function, nodes, []), at)


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_assertion(node: ast.AST) -> bool:
    """Whether a node is an assertion that can hold, or the call of one, such as `self.assertEqual(...)`."""
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    value = node.value if isinstance(node, ast.Expr) else None
    value = value.value if isinstance(value, ast.Await) else value
    return isinstance(value, ast.Call) and _last_name(value.func).startswith("assert")


def _surely_asserts(nodes: Iterable[ast.AST], parameters: Set[str]) -> bool:
    """Whether there is an assertion, other than on one side of a condition that the test's parameters decide."""
    for node in nodes:
        if isinstance(node, ast.If) and _is_decided_by(node.test, parameters):
            if _surely_asserts(node.body, parameters) and _surely_asserts(node.orelse, parameters):
                return True
        elif _is_assertion(node) or _surely_asserts(ast.iter_child_nodes(node), parameters):
            return True
    return False


def _is_decided_by(node: ast.expr, names: Set[str]) -> bool:
    plain = (ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp)
    parts = [one for one in ast.walk(node) if isinstance(one, ast.expr)]
    return all(isinstance(one, plain) and getattr(one, "id", None) in {None, *names} for one in parts)


def _parameters(node: _Function) -> set[str]:
    """The parameters of a function that it does not bind again."""
    bound = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)} - bound


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below, without those in functions that are defined there."""
    yield node
    if not isinstance(node, _Function | ast.Lambda | ast.ClassDef):
        for child in ast.iter_child_nodes(node):
            yield from _own_nodes(child)
