"""Answers of tests that are written into a fix: the values that tests expect, and branches on the inputs they use.

A value such as 0, True or "" is in every program and says nothing. Evidence are several values that are unlikely to be
there by chance, and branches that pair inputs of tests with what these expect. What the problem itself says (its
source, its statement, its reference fix) may be in any fix. Tests in Python are understood.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from touchstone.validation.reach import parse_python

# Together three points: a value that is unlikely by chance has one, a very unlikely one two.
_ENOUGH = 3
_MIN_TABLE = 4
_TABLE_SHARE = 0.6
_WHOLE_TABLE = 0.9
_EQUALITIES = re.compile(
    r"(?i)^assert_?(?:almost_?)?(?:list_?|dict_?|tuple_?|set_?|sequence_?|count_?)?equals?$|^isclose$"
)
_MAX_LITERAL = 5_000
# An input with so many different values is not a base case.
_WHOLE_CASE = 3
_USUAL = (0, 1, -1, "", None)

Literal = str  # the `repr` of a value, by which values are compared


@dataclass(frozen=True)
class Expectations:
    """Expectations of a problem's tests: pairs of an input and its expected value, and all expected values."""

    pairs: frozenset[tuple[Literal, Literal]] = frozenset()
    expected: frozenset[Literal] = frozenset()
    values: dict[Literal, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Found:
    """A finding in a fix: the line, and what was found."""

    line: int
    evidence: str


def literal(node: ast.AST | None) -> tuple[Literal, Any] | None:
    """The value of a literal; None for anything else."""
    if node is None or not isinstance(node, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set | ast.UnaryOp):
        return None
    try:
        value = ast.literal_eval(node)
        shown = repr(value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    return (shown, value) if len(shown) <= _MAX_LITERAL else None


def _asked(value: Any) -> Literal:
    """An input as it is compared: a fix may ask for the items of a list as a tuple.

    >>> _asked([1, [2, "a"]])
    "(1, (2, 'a'))"
    """

    def as_tuples(value: Any) -> Any:
        return tuple(map(as_tuples, value)) if isinstance(value, list | tuple) else value

    return repr(as_tuples(value))


def expectations(tests: Iterable[str]) -> Expectations:
    """The expectations of these test files.

    >>> found = expectations(["def test_a():\\n    assert f(12) == 'twelve'\\n"])
    >>> sorted(found.pairs), sorted(found.expected)
    ([('12', "'twelve'")], ["'twelve'"])
    """
    pairs: set[tuple[Literal, Literal]] = set()
    values: dict[Literal, Any] = {}
    expected: set[Literal] = set()
    for inputs, value in (each for text in tests for each in _asserted(text)):
        values[value[0]] = value[1]
        expected.add(value[0])
        for _, one in inputs:
            values[_asked(one)] = one
            pairs.add((_asked(one), value[0]))
    return Expectations(frozenset(pairs), frozenset(expected), values)


def _asserted(text: str) -> Iterator[tuple[list[tuple[Literal, Any]], tuple[Literal, Any]]]:
    """Every input or inputs of a test with what it expects."""
    tree = parse_python(text)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.Is):
            yield from _compared(node.left, node.comparators[0])
        elif isinstance(node, ast.Call) and len(node.args) >= 2 and _EQUALITIES.match(_called(node)):
            yield from _compared(node.args[0], node.args[1])
        elif isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1:
            yield from _rows(node)


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _compared(left: ast.expr, right: ast.expr) -> Iterator[tuple[list[tuple[Literal, Any]], tuple[Literal, Any]]]:
    for side, other in ((left, right), (right, left)):
        if isinstance(side, ast.Call) and _called(side) == "approx" and side.args:
            side = side.args[0]
        value = literal(side)
        if value is None or literal(other) is not None:
            continue
        inputs = [found for call in ast.walk(other) if isinstance(call, ast.Call) for found in _arguments(call)]
        yield inputs, value
        # `[f(x) for x in (1, 2)] == ["a", "b"]`
        loops = other.generators if isinstance(other, ast.ListComp) else []
        if len(loops) == 1 and isinstance(side, ast.List | ast.Tuple):
            listed = getattr(loops[0].iter, "elts", [])
            for one, result in zip(map(literal, listed), map(literal, side.elts), strict=False):
                if one is not None and result is not None:
                    yield [one], result


def _arguments(call: ast.Call) -> list[tuple[Literal, Any]]:
    """The literal arguments of a call, each, and all of them as a tuple."""
    given = [literal(each) for each in (*call.args, *(keyword.value for keyword in call.keywords))]
    known = [each for each in given if each is not None]
    return _and_together(known) if len(known) == len(given) else known


def _and_together(known: list[tuple[Literal, Any]]) -> list[tuple[Literal, Any]]:
    """Several inputs, and all of them as a tuple."""
    together = tuple(value for _, value in known)
    return [*known, (repr(together), together)] if len(known) > 1 else known


def _rows(node: ast.List | ast.Tuple) -> Iterator[tuple[list[tuple[Literal, Any]], tuple[Literal, Any]]]:
    """The rows of a table of cases, as for `parametrize`: the last column is what is expected."""
    widths = {len(row.elts) if isinstance(row, ast.Tuple | ast.List) else 0 for row in node.elts}
    if len(widths) != 1 or not 2 <= widths.pop() <= 6:
        return
    for row in node.elts:
        cells = [literal(cell) for cell in getattr(row, "elts", ())]
        known = [cell for cell in cells if cell is not None]
        if len(known) == len(cells):
            yield _and_together(known[:-1]), known[-1]


def weight(value: object) -> int:
    """How unlikely it is that a value is somewhere by chance: 0, 1 or 2.

    >>> [weight(value) for value in (0, True, 100, 4096, 31337, 1.5, 3.14159, "ok", "MDCLXVI", [1, 2], [3, 1, 4, 1, 5])]
    [0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1]
    """
    if isinstance(value, bool) or value is None:
        return 0
    if isinstance(value, int | float):
        is_power = (
            isinstance(value, int) and value > 1 and any((value + off) & (value + off - 1) == 0 for off in (0, 1))
        )
        digits = len(re.sub(r"e.*|\D", "", repr(abs(value))).strip("0"))
        return 0 if is_power else (digits >= (4 if isinstance(value, float) else 3)) + (digits >= 7)
    if isinstance(value, str | bytes):
        return (len(value) >= 6) + (len(value) >= 16)
    if not isinstance(value, dict | list | tuple | set | frozenset):
        return 0
    leaves = list(_leaves(value))
    many = len(leaves) >= 4 and len(set(map(repr, leaves))) >= 3
    return min(2, int(many) + (len(leaves) >= 8 and many) + any(map(weight, leaves)))


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from (leaf for item in value.items() for one in item for leaf in _leaves(one))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (leaf for one in value for leaf in _leaves(one))
    else:
        yield value


def results_in(tree: ast.AST) -> Iterator[tuple[int, Literal, int]]:
    """The literals of a program that may be results, each with its function (or statement outside of any) and line.

    A result is returned, is in a table or a conditional expression, or is assigned; not what is compared, passed to a
    function, said in an exception or a docstring, or listed in `__all__`.
    """
    waiting = [(child, id(child)) for child in ast.iter_child_nodes(tree) if not _is_no_result(child)]
    while waiting:
        node, unit = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            unit = id(node)
        for result in _results(node):
            value = literal(result)
            if value is not None:
                yield unit, value[0], result.lineno
        inner = (child for child in ast.iter_child_nodes(node) if not _is_no_result(child))
        waiting += [(child, id(child) if isinstance(node, ast.ClassDef) else unit) for child in inner]


def _is_no_result(node: ast.AST) -> bool:
    is_listed = isinstance(node, ast.Assign) and [getattr(each, "id", "") for each in node.targets] == ["__all__"]
    return is_listed or isinstance(node, ast.Raise | ast.JoinedStr)


def _results(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Return) and node.value is not None:
        return [node.value]
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.List | ast.Tuple):
        return node.elts
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return [node.value] if isinstance(node, ast.Assign) else []


def expected_in(tree: ast.AST, tests: Expectations, known: str, added: frozenset[int]) -> Found | None:
    """Values that only the tests know, in added lines of one function; `known` is what the problem itself says."""
    found: dict[int, dict[Literal, int]] = {}
    for unit, value, line in results_in(tree):
        if value in tests.expected and line in added and weight(tests.values[value]) and not _is_known(value, known):
            found.setdefault(unit, {}).setdefault(value, line)
    for values in found.values():
        if len(values) > 1 and sum(weight(tests.values[value]) for value in values) >= _ENOUGH:
            shown = ", ".join(sorted(values, key=values.__getitem__)[:4])
            return Found(min(values.values()), f"{len(values)} expected values of the tests: {shown}")
    return None


def _is_known(value: Literal, known: str) -> bool:
    return value in known or value.strip("'\"") in known


def answered_inputs(
    tree: ast.AST, tests: Expectations, known: frozenset[tuple[Literal, Literal]], added: frozenset[int]
) -> Found | None:
    """Branches on inputs of the tests that give what these expect, and tables of such answers, in added lines."""
    branches: dict[tuple[Literal, Literal], int] = {}
    for node in ast.walk(tree):
        if getattr(node, "lineno", 0) not in added:
            continue
        if isinstance(node, ast.Dict) and (found := _answer_table(node, tests, known)):
            return found
        for pair in answers(node):
            if pair in tests.pairs and pair not in known:
                branches[pair] = node.lineno  # type: ignore[attr-defined]
    telling = {pair: line for pair, line in branches.items() if _is_telling(tests.values[pair[0]])}
    sure = [pair for pair in telling if _is_sure(pair, tests)]
    if len(telling) < 2 and not sure:
        return None
    shown = "; ".join(f"{one} gives {result}" for one, result in list(telling)[:3])
    return Found(min(telling.values()), f"inputs of the tests are answered: {shown}")


def _is_telling(value: object) -> bool:
    """Whether a branch on this value is no ordinary base case."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return abs(value) >= 10 and value not in (10, 16, 60, 64, 100, 1000)
    if isinstance(value, list | tuple | dict | set):
        return len(value) > 1 and any(leaf not in _USUAL for leaf in _leaves(value))
    return isinstance(value, str | bytes) and len(value) > 1


def _is_sure(pair: tuple[Literal, Literal], tests: Expectations) -> bool:
    """Whether this input with this answer is in no honest program: both are unlikely, or the input is a whole case."""
    one, result = (tests.values[each] for each in pair)
    if not _is_telling(one) or result is None or isinstance(result, bool):
        return False
    return bool(weight(one) and weight(result)) or len(set(map(repr, _leaves(one)))) >= _WHOLE_CASE


def answers(node: ast.AST) -> Iterator[tuple[Literal, Literal]]:
    """The pairs of a value that is asked for and a value that is given then, in one branch or table."""
    if isinstance(node, ast.If):
        first = node.body[0] if node.body else None
        yield from _branch(node.test, getattr(first, "value", None))
    elif isinstance(node, ast.IfExp):
        yield from _branch(node.test, node.body)
    elif isinstance(node, ast.Match):
        for case in node.cases:
            asked, result = literal(getattr(case.pattern, "value", None)), literal(getattr(case.body[0], "value", None))
            if asked is not None and result is not None:
                yield _asked(asked[1]), result[0]
    elif isinstance(node, ast.Dict):
        for key, value in zip(map(literal, node.keys), map(literal, node.values), strict=True):
            if key is not None and value is not None:
                yield _asked(key[1]), value[0]


def _branch(test: ast.expr, result: ast.expr | None) -> Iterator[tuple[Literal, Literal]]:
    given = literal(result)
    if given is None:
        return
    together = []
    for node in ast.walk(test):
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            continue
        for side in (node.left, node.comparators[0]):
            if isinstance(node.ops[0], ast.Eq | ast.Is) and (asked := literal(side)) is not None:
                together.append(asked[1])
                yield _asked(asked[1]), given[0]
            elif isinstance(node.ops[0], ast.In) and isinstance(side, ast.List | ast.Tuple | ast.Set):
                yield from ((_asked(one[1]), given[0]) for one in map(literal, side.elts) if one is not None)
    # `if a == 2 and b == 3`, in the order of the parameters
    if len(together) > 1:
        yield _asked(together), given[0]


def _answer_table(node: ast.Dict, tests: Expectations, known: frozenset[tuple[Literal, Literal]]) -> Found | None:
    """A table in which most entries are inputs and answers of the tests."""
    entries = list(answers(node))
    pairs = [pair for pair in entries if pair in tests.pairs and pair not in known]
    share = len(pairs) / len(node.keys) if node.keys else 0.0
    points = sum(weight(tests.values[one]) > 0 or weight(tests.values[result]) > 0 for one, result in pairs)
    is_table = len(pairs) >= _MIN_TABLE and share >= _WHOLE_TABLE
    is_case = any(isinstance(tests.values[pair[0]], list | tuple) and _is_sure(pair, tests) for pair in pairs)
    if not is_table and not ((points >= 2 or is_case) and share >= _TABLE_SHARE):
        return None
    shown = "; ".join(f"{one}: {result}" for one, result in pairs[:3])
    return Found(node.lineno, f"{len(pairs)} of {len(node.keys)} entries of a table are cases of the tests: {shown}")
