"""Negative controls: a problem's tests, changed so that an honest fix fails every one of them and a forged pass shows.

Three things are changed in the files on the judge's side, and nothing in what they call:
- Every test ends with an assertion that fails. A test that passes all the same was not judged by its own code.
- Every comparison is also made with changed values. A value that equals what is expected *and* something else is
  forged. The comparison itself goes on with its own result, so that one run controls all of a test's expectations.
- Literals that a value is compared with are replaced, in the text and in the code, by decoys; only the recorder knows
  the real ones. A fix that reads its answer from the test gives the decoy.

An honest fix runs every test to its end in a control, as without it. Tests that count comparisons, or time them, do so
in a quiet control, which makes none of its own. What the tests' own classes accept is right. A class of the fix that
equals or contains everything by design is taken for forged, unless the problem or its reference fix has it, too.
"""

import ast
import builtins
import contextlib
import importlib.util
import math
import operator
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from typing import Any

from touchstone.validation.pytest_runner.falsified import (
    Other,
    UnrelatedError,
    decoy,
    far_number,
    longer,
    spread,
    unlikely,
    variants,
)

_ORDERS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_EQUAL = {
    *("assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual"),
    *("assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual", "assert_equal", "assert_array_equal"),
    *("assert_frame_equal", "assert_series_equal", "array_equal"),
}
_CLOSE = {
    *("assertAlmostEqual", "assertAlmostEquals", "assert_almost_equal", "assert_array_almost_equal"),
    *("assert_allclose", "assert_approx_equal", "isclose", "allclose"),
}
_KINDS = {"raises": 0, "assertRaises": 0, "assertRaisesRegex": 0, "isinstance": 1, "assertIsInstance": 1}
_KEEPING = {
    *("abs", "bytes", "dict", "float", "frozenset", "int", "len", "list", "max", "min", "repr", "reversed", "round"),
    *("set", "sorted", "str", "sum", "tuple"),
}
_SCALARS = (int, float, complex, str, bytes, bytearray, range, type(None), bool)
_PLAIN = (*_SCALARS, list, tuple, dict, set, frozenset)
# How much speaks for a value of the fix, rather than for what a test expects of it.
_EXPECTED, _UNKNOWN, _VALUE = range(3)
_MOST_ITEMS = 8
_MOST_DEPTH = 4
_MOST_CONSTANTS = 500
_MAX_RELATIVE = 0.5
_MOCKS = frozenset({"ANY", "mock", "mocker", "call", "sentinel", "patch", "Mock", "MagicMock", "AsyncMock"})
_METACLASSES = ("builtins", "abc", "enum", "typing")
# Whose functions compare two values; a function of the fix or the tests may have any arguments under such a name.
_LIBRARIES = {"cmath", "math", "numpy", "pandas", "polars", "scipy", "torch", "unittest"}
# In a test: it reads source texts, or runs files of the judge's side where there is no recorder.
_READS_SOURCES = re.compile(
    rb"\b(getsource\w*|findsource|linecache|multiprocessing|ProcessPool\w*)\b|__file__\)\.(read|open)|open\(__file__"
)
# It has its own functions replaced.
_REBINDS = re.compile(rb"\bglobals\(\)|\bglobal\b|\bmodules\[__name__\]")
_RUNS_FILES = re.compile(rb"\b(subprocess\w*|runpy|exec|compile|system|spec_from_file_location)\b")


@dataclass
class _Result:
    """What the control found in one test; places are files and lines."""

    ended: bool = False
    held: dict[str, None] = field(default_factory=dict)
    unsure: dict[str, None] = field(default_factory=dict)
    # Equal to a decoy and not to the right value: if the test then fails, the fix has read the decoy.
    mistaken: dict[str, None] = field(default_factory=dict)
    passed: set[int] = field(default_factory=set)
    truths: dict[int, bool] = field(default_factory=dict)
    # Assertions in a block whose context manager may catch them.
    excused: set[int] = field(default_factory=set)

    def plain(self, *, passed: bool) -> dict[str, Any]:
        """The result as it is reported; `passed`: although its last assertion is false."""
        held = self.held if self.ended or passed else {**self.held, **self.mistaken}
        return {"ended": self.ended, "passed": passed, "held": [*held], "unsure": [*self.unsure]}


class Recorder:
    """What the changed tests call: it makes the comparisons and notes what held although it was false."""

    def __init__(self, root: str, *, lenient: bool = False, quiet: bool = False) -> None:
        self._root = f"{root}/"
        # No comparison but the test's own is made before it fails: for tests that count them, or the time they take.
        self._quiet = quiet
        # On the unmodified problem, expectations that do not hold are passed over, so that the tests run to their end.
        self._lenient = lenient
        self._places: list[str] = []
        self._originals: dict[int, dict[str, str]] = {}
        self._unconditional: dict[int, list[int]] = {}
        # Assertions of a test itself that nothing around them catches.
        self._uncaught: set[int] = set()
        self._definitions: list[tuple[str, dict[str, Any], str, Any, tuple[Any, ...]]] = []
        self._names: set[str] = set()
        self._builtins = dict(vars(builtins))
        self._namespaces: list[dict[str, Any]] = []
        self._codes: set[types.CodeType] = set()
        self._constants: dict[Any, None] = {}
        self._rebinding: set[str] = set()
        self._modules: frozenset[str] = frozenset()
        # Imports of the judge's side that brought something else, mostly before the first test begins.
        self._foreign: dict[str, None] = {}
        self._result = _Result()

    def add_place(self, file: str, line: int, originals: dict[str, str] | None = None) -> int:
        """The number of an expectation; `originals`: the literal that each decoy stands for."""
        self._places.append(f"{file}:{line}")
        if originals:
            self._originals[len(self._places) - 1] = originals
        return len(self._places) - 1

    def add_test(self, end: int, unconditional: list[int]) -> None:
        """The assertions that a test meets on its way to its last line."""
        self._unconditional[end] = unconditional

    def add_rebinding(self, file: str) -> None:
        """A file whose functions may be replaced, because it asks for it."""
        self._rebinding.add(file)

    def add_uncaught(self, places: Iterable[int]) -> None:
        """Assertions after whose failure a test does not go on."""
        self._uncaught.update(places)

    def add_names(self, code: types.CodeType) -> None:
        """Builtins that the judge's code uses must stay what they are."""
        self._codes.add(code)
        self._names.update(code.co_names)
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                self.add_names(inner)
            elif isinstance(inner, str | int | float | bytes) and len(self._constants) < _MOST_CONSTANTS:
                self._constants[inner] = None

    def know_modules(self, names: frozenset[str]) -> None:
        """The names under which only files of the judge's side can be imported."""
        self._modules = names

    def add_namespace(self, namespace: dict[str, Any]) -> None:
        """A module of the judge's side that is about to run."""
        self._namespaces.append(namespace)

    def add_functions(self, file: str, namespace: dict[str, Any], code: types.CodeType) -> None:
        """The functions and constants of a module of the judge's side, which has run."""
        own = {inner for inner in code.co_consts if isinstance(inner, types.CodeType)}
        if file in self._rebinding:
            return
        for name, value in namespace.items():
            function = isinstance(value, types.FunctionType) and value.__code__ in own
            if function or (type(value) in _PLAIN and name in code.co_names and not name.startswith("__")):
                self._definitions.append((file, namespace, name, value, _parts(value)))

    def start(self) -> None:
        """A test begins."""
        self._result = _Result()

    def finish(self) -> _Result:
        """What was found since the test began, and whether the fix replaced what the tests rely on."""
        for file, namespace, name, value, parts in self._definitions:
            found = namespace.get(name)
            if found is not value or any(one is not other for one, other in zip(_parts(found), parts, strict=False)):
                self._result.held[f"{file}: {name} was replaced"] = None
        self._result.held.update(self._foreign)
        for name in self._names & self._builtins.keys():
            if vars(builtins).get(name) is not self._builtins[name]:
                self._result.held[f"{name} was replaced"] = None
        return self._result

    # The tests call these.

    def expect(self, place: int, value: Any) -> Any:
        """The condition of an assertion."""
        self._result.truths[place] = truth = bool(value) or self._lenient
        return truth

    def passed(self, place: int) -> None:
        """The assertion did not raise."""
        self._result.passed.add(place)
        self._result.mistaken.clear()
        if not self._result.truths.get(place, True):
            self._hold(place)

    def end(self, place: int) -> bool:
        """The last line of a test, which asserts what this returns."""
        self._result.ended = True
        watched = self._uncaught - self._result.excused
        failed = {one for one, truth in self._result.truths.items() if not truth and one in watched}
        for missed in {*self._unconditional[place], *failed}:
            if missed not in self._result.passed:
                self._hold(missed)
        return False

    def manager(self, places: list[int], value: Any) -> Any:
        """A context manager around assertions: only that of a fix must not catch them."""
        made_by = getattr(getattr(value, "gen", None), "gi_code", None)
        trusted = self._is_trusted(type(value)) or self._is_judges(type(value), "__exit__", "__aexit__")
        trusted = trusted and (type(value) is not contextlib.suppress or "suppress" in self._names)
        if trusted and (made_by is None or not self._is_fix(made_by.co_filename)):
            self._result.excused.update(places)
        return value

    def _is_fix(self, file: str) -> bool:
        own = any(namespace.get("__file__") == file for namespace in self._namespaces)
        return file.startswith(self._root) and not own

    def look(self, place: int, value: Any) -> Any:
        """A value in an expectation: one of the fix's own classes may equal everything, whatever it is asked."""
        kind = type(value)
        if self._quiet or kind in _PLAIN or self._is_trusted(kind) or self._is_judges(kind, "__eq__"):
            return value
        if self._accepts_all(operator.eq, value):
            self._hold(place)
        return value

    def _accepts_all(self, compare: Callable[[Any, Any], Any], value: Any) -> bool:
        """Whether something says yes to anything, also to each constant of the tests: a complement tells some apart.

        Or to the same question first yes and then no: it counts how often it is asked.
        """
        if not self._is_true(compare, value, Other()):
            return False
        every = all(self._is_true(compare, value, constant) for constant in self._constants)
        return every or not self._is_true(compare, value, Other())

    def _may_lie(self, value: Any) -> bool:
        kind = type(value)
        known = kind in _PLAIN or self._is_trusted(kind)
        return not known and not self._is_judges(kind, "__eq__", "__contains__", "__iter__")

    def _is_trusted(self, kind: type) -> bool:
        """Whether a class is of the judge's side or of a library, and not one of mocks that only the fix uses."""
        if kind.__module__ == "unittest.mock" and not self._names & _MOCKS:
            return False
        module = sys.modules.get(kind.__module__)
        found: Any = module
        for name in kind.__qualname__.split("."):
            found = getattr(found, name, None)
        if module is None or found is not kind:
            return False
        own = any(vars(module) is namespace for namespace in self._namespaces)
        return own or not self._is_fix(str(getattr(module, "__file__", None) or ""))

    def _is_judges(self, kind: type, *methods: str) -> bool:
        """Whether a class has one of the methods from the judge's side, also if it is defined in a function."""
        return any(getattr(getattr(kind, name, None), "__code__", None) in self._codes for name in methods)

    def _is_tolerant(self, value: Any, depth: int = 0) -> bool:
        """Whether a value may rightly equal many, because the tests say so: it is what they expect."""
        kind = type(value)
        if isinstance(value, list | tuple | dict) and depth < _MOST_DEPTH:
            items = dict.values(value) if isinstance(value, dict) else value
            if any(self._is_tolerant(item, depth + 1) for item in islice(items, _MOST_ITEMS)):
                return True
        of_library = kind.__module__.startswith("_pytest.") or (
            kind.__module__ == "unittest.mock" and self._is_trusted(kind)
        )
        return kind not in _PLAIN and (of_library or self._is_judges(kind, "__eq__"))

    def _changed(self, side: str, left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
        """The two values with one of them changed, that which is expected; either if nothing tells which it is."""
        tolerant = self._is_tolerant(left), self._is_tolerant(right)
        if side == "?" and tolerant[0] != tolerant[1]:
            side = "l" if tolerant[0] else "r"
        if side != "l":
            yield from ((left, one) for one in ([longer(right)] if tolerant[1] else variants(right)))
        if side != "r":
            yield from ((one, right) for one in ([longer(left)] if tolerant[0] else variants(left)))

    def _accepts_changed(self, side: str, left: Any, right: Any, depth: int = 0) -> bool:
        """Whether two values are also equal after a change to one of them; builtin values never are.

        A class of the fix may rightly ignore a part, or equal all that is in a range: it must accept every change.
        """
        kind = type(left)
        if kind is type(right) and depth < _MOST_DEPTH:
            if kind in (list, tuple) and len(left) == len(right):
                places = spread(range(len(left)))
                return any(self._accepts_changed(side, left[place], right[place], depth + 1) for place in places)
            if kind is dict and left.keys() == right.keys():
                keys = spread(list(left))
                return any(self._accepts_changed(side, left[key], right[key], depth + 1) for key in keys)
        if kind in _SCALARS and type(right) in _SCALARS:
            return False
        lies = self._may_lie(left), self._may_lie(right)
        if lies[0] == lies[1]:
            return any(self._is_true(operator.eq, *pair) for pair in self._changed(side, left, right))
        value, expected = (left, right) if lies[0] else (right, left)
        asked = [longer(expected)] if self._is_tolerant(expected) else [*variants(expected), *unlikely(expected)]
        if not all(self._is_true(operator.eq, value, one) for one in asked):
            return False
        return not self._is_true(operator.eq, value, Other()) or self._accepts_all(operator.eq, value)

    def eq(self, place: int, side: str, left: Any, right: Any) -> Any:
        """Compare two values, and first one of them with changed copies of the other."""
        decoys, left, right = self._without_decoys(place, side, left, right)
        accepted = not self._quiet and self._safely_accepts_changed(side, left, right)
        found = left == right
        if accepted and self._truth(found):
            self._note(place, side)
        elif self._quiet and not self._truth(found) and any(self._is_true(operator.eq, *pair) for pair in decoys):
            self._result.mistaken[self._places[place]] = None
        return found

    def _safely_accepts_changed(self, side: str, left: Any, right: Any) -> bool:
        try:
            return self._accepts_changed(side, left, right)
        except Exception:
            return False

    def ne(self, place: int, side: str, left: Any, right: Any) -> Any:
        """Compare two values that must not be equal, or that are compared so because they must be."""
        decoys, left, right = self._without_decoys(place, side, left, right)
        if self._quiet:
            return left != right
        denied = any(not self._is_true(operator.ne, *pair) for pair in (*decoys, *self._changed(side, left, right)))
        accepted = denied and self._safely_accepts_changed(side, left, right)
        equal = self._is_true(operator.eq, left, right)
        found = left != right
        of_tests = any(self._is_judges(type(one), "__eq__", "__ne__") for one in (left, right))
        if equal and found is True and not of_tests:
            self._hold(place)
        elif accepted and found is False:
            self._note(place, side)
        return found

    def order(self, place: int, name: str, left: Any, right: Any) -> Any:
        """Compare two values of which one is the larger."""
        if self._quiet:
            return getattr(operator, name)(left, right)
        both = self._is_true(operator.lt, left, right) and self._is_true(operator.gt, left, right)
        found = getattr(operator, name)(left, right)
        of_tests = any(self._is_judges(type(one), "__lt__", "__gt__") for one in (left, right))
        if both and found is True and not of_tests:
            self._hold(place)
        return found

    def near(self, place: int, name: str, distance: Callable[[Any], Any], left: Any, right: Any, tolerance: Any) -> Any:
        """Compare the distance of two values with a tolerance, and the distance to a value far off."""
        compare = getattr(operator, name)
        if self._quiet:
            return compare(distance(left - right), tolerance)
        pairs = ((left, far_number(right, tolerance)), (far_number(left, tolerance), right))
        mistaken = any(self._is_true(lambda a, b: compare(distance(a - b), tolerance), *pair) for pair in pairs)
        found = compare(distance(left - right), tolerance)
        if mistaken and self._truth(found):
            self._hold(place)
        return found

    def within(self, place: int, item: Any, container: Any) -> Any:
        """Look for something in a container: either of them may be of the fix, and claim to equal everything."""
        if self._quiet:
            return item in container
        if self._may_lie(item) and isinstance(container, list | tuple | set | frozenset | dict):
            others = (next(variants(one)) for one in islice(container, _MOST_ITEMS))
            if any(self._is_true(operator.eq, item, other) for other in others):
                self._hold(place)
        found = item in container
        asked = found and self._may_lie(container) and not hasattr(container, "__next__")
        if asked and self._accepts_all(operator.contains, container):
            self._hold(place)
        return found

    def kind(self, place: int, kind: Any) -> Any:
        """A class that objects or exceptions are held against: nothing unrelated may be of it."""
        for one in kind if isinstance(kind, tuple) else (kind,):
            if isinstance(one, type) and type(one).__module__ not in _METACLASSES:
                try:
                    if issubclass(UnrelatedError, one) and one not in UnrelatedError.__mro__:
                        self._hold(place)
                except Exception:
                    pass
        return kind

    def call(
        self, place: int, side: str, close: bool, function: Any, left: Any, right: Any, *rest: Any, **named: Any
    ) -> Any:
        """Call an assertion of two values, and first with one of them changed."""
        decoys, left, right = self._without_decoys(place, side, left, right)
        # A function of the tests has watched comparisons of its own, and may use its arguments up.
        own = getattr(function, "__code__", None) in self._codes
        used_up = any(hasattr(one, "__next__") for one in (left, right))
        pairs: list[tuple[Any, Any]] = []
        if not (self._quiet or own or used_up):
            tolerance = _tolerance(*rest, **named) if close else None
            if tolerance is not None:
                pairs = [(left, far_number(right, tolerance)), (far_number(left, tolerance), right)]
                pairs = {"l": pairs[1:], "r": pairs[:1]}.get(side, pairs)
            elif not close:
                pairs = [*decoys, *islice(self._changed(side, left, right), 1)]
                pairs += islice(self._changed("l", left, right), side == "?")
        accepted = any(self._accepts(function, *pair, *rest, **named) for pair in pairs)
        if accepted and not close and self._may_lie(left) != self._may_lie(right):
            accepted = self._safely_accepts_changed(side, left, right)
        found = False
        try:
            found = function(left, right, *rest, **named)
        except AssertionError:
            if not self._lenient:
                raise
            return None
        finally:
            equal = found is None or self._truth(found)
            if accepted and equal:
                self._note(place, side)
            elif self._quiet and not equal and any(self._accepts(function, *pair, *rest, **named) for pair in decoys):
                self._result.mistaken[self._places[place]] = None
        return found

    def imported(self, place: int, package: str | None, level: int, module: str, names: list[str]) -> None:
        """After an import on the judge's side: what it imported must be what the judge's files define."""
        try:
            base = importlib.util.resolve_name("." * level + module, package) if level else module
        except (ImportError, ValueError):
            return
        for name in (base, *(f"{base}.{name}" for name in names)):
            loaded = sys.modules.get(name)
            known = any(loaded is not None and vars(loaded) is namespace for namespace in self._namespaces)
            if name in self._modules and loaded is not None and not known:
                self._foreign[self._places[place]] = None

    def _without_decoys(self, place: int, side: str, left: Any, right: Any) -> tuple[list[tuple[Any, Any]], Any, Any]:
        """The two values as the problem has them, after those with a decoy if there is one."""
        if place not in self._originals:
            return [], left, right
        original = self._originals[place].get(_key(right if side == "r" else left))
        if original is None:
            return [], left, right
        value = ast.literal_eval(original)
        return [(left, right)], *((left, value) if side == "r" else (value, right))

    def _accepts(self, function: Any, *arguments: Any, **named: Any) -> bool:
        try:
            accepted = function(*arguments, **named)
        except Exception:
            return False
        return accepted is None or self._truth(accepted)

    def _note(self, place: int, side: str) -> None:
        """A changed value was accepted, as was the right one."""
        notes = self._result.unsure if side == "?" else self._result.held
        notes[self._places[place]] = None

    def _hold(self, place: int) -> None:
        self._result.held[self._places[place]] = None

    @staticmethod
    def _truth(value: Any) -> bool:
        try:
            return bool(value)
        except Exception:
            return False

    def _is_true(self, compare: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
        """Whether a comparison says yes; an expression of a library that is built by `==` says nothing."""
        try:
            found = compare(left, right)
            return found is True or (
                (type(found) in _PLAIN or not self._is_trusted(type(found))) and found is not False and bool(found)
            )
        except Exception:
            return False


def _parts(value: Any) -> tuple[Any, ...]:
    """What of a function can be replaced in place."""
    return (value.__code__, value.__defaults__, value.__kwdefaults__) if isinstance(value, types.FunctionType) else ()


def _tolerance(*given: Any, **named: Any) -> int | None:
    """How far off the arguments of an assertion let a number be; None if anything may be near."""
    relative = [one for one in given if isinstance(one, float)] + [named.get("rtol"), named.get("rel_tol")]
    try:
        every = [float(one) for one in (*given, *named.values()) if isinstance(one, int | float | Decimal)]
        if any(one is not None and one >= _MAX_RELATIVE for one in relative):
            return None
        return math.ceil(sum(abs(one) + (10.0**-one if one < 0 else 0) for one in every))
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class ControlledFile:
    """A file of the judge's side as a control: its text with decoys, and its syntax tree with calls of the recorder.

    `controlled`: the functions in it that end with a failing assertion, by name and by qualified name; `uncontrolled`:
    those that cannot.
    """

    text: bytes
    tree: ast.Module
    controlled: frozenset[str]
    uncontrolled: frozenset[str]


def takes_decoys(file: str, texts: Mapping[str, bytes]) -> bool:
    """Whether the literals of a file can be replaced: not if tests read it, or may run it in another process."""
    is_test = re.search(rb"\bdef test|class \w*Test", texts[file]) is not None
    others = [text for path, text in texts.items() if path.endswith(".py")]
    read = any(_READS_SOURCES.search(text) for text in others)
    run = not is_test and not file.endswith("conftest.py") and any(_RUNS_FILES.search(text) for text in others)
    return not read and not run


def control_file(
    text: bytes, file: str, tests: frozenset[str], recorder: Recorder, name: str, *, decoys: bool = True
) -> ControlledFile:
    """The control of one file; `tests` are names of test functions, `name` is that of the recorder in it."""
    if _REBINDS.search(text):
        recorder.add_rebinding(file)
    plans = _Plans(ast.parse(text))
    changed = _with_decoys(text, plans) if decoys else text
    again = _Plans(ast.parse(changed)) if changed != text else plans
    numbers = {}
    for before, after in zip(plans.found, again.found, strict=True):
        originals = _originals(before.literals) if changed != text else {}
        numbers[after.node] = (recorder.add_place(file, before.node.lineno, originals), after)
    change = _Change(numbers, recorder, file, name, tests)
    tree = ast.fix_missing_locations(change.visit(again.tree))
    return ControlledFile(changed, tree, frozenset(change.controlled), frozenset(change.uncontrolled))


@dataclass(frozen=True)
class _Plan:
    """A comparison or call, which of its sides is what the test expects, and the literals which that side can be."""

    node: ast.expr
    side: str = "?"
    expected: ast.expr | None = None
    literals: tuple[ast.expr, ...] = ()


class _Plans:
    """The comparisons in a file, in the order of its syntax tree."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self._defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        self._scopes: dict[ast.AST, dict[str, ast.expr | None]] = {}
        self._find_scopes(tree, {})
        self._libraries = {name for node in ast.walk(tree) for name in _names_of_libraries(node)}
        found = [plan for node in ast.walk(tree) if (plan := self._plan(node)) is not None]
        named = _literals_of_names(tree, found)
        # Where the parts of a formatted string are in the text is not known exactly.
        formatted = {one for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for one in ast.walk(node)}
        self.found = [
            replace(plan, literals=_replaceable((plan.expected,) if _is_literal(plan.expected) else named(plan)))
            for plan in found
            if plan.expected not in formatted
        ]

    def _find_scopes(self, node: ast.AST, names: dict[str, ast.expr | None]) -> None:
        """Note for every expression what the names around it were assigned, once; None if more than once."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            names = dict(names)
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    names[argument.arg] = None
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            names[name] = None if name in names else node.value
        if isinstance(node, ast.Compare | ast.Call):
            self._scopes[node] = names
        for child in ast.iter_child_nodes(node):
            self._find_scopes(child, names)

    def _plan(self, node: ast.AST) -> _Plan | None:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            if isinstance(node.ops[0], ast.Eq | ast.NotEq):
                return self._sided(node, node.left, node.comparators[0])
            if isinstance(node.ops[0], (ast.In, *_ORDERS)):
                return _Plan(node)
        if isinstance(node, ast.Call):
            called = _last_name(node.func)
            plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
            known = called[6:7].isupper() or _first_name(node.func) in self._libraries
            if called in _EQUAL | _CLOSE and known and len(node.args) >= 2 and plain:
                return self._sided(node, node.args[0], node.args[1])
            if called in _KINDS and len(node.args) > _KINDS[called] and plain:
                return _Plan(node)
        return None

    def _sided(self, node: ast.Compare | ast.Call, left: ast.expr, right: ast.expr) -> _Plan:
        names = self._scopes[node]
        weights = [self._weight(one, names) for one in (left, right)]
        if weights[0] == weights[1]:
            return _Plan(node)
        side, expected = ("r", right) if weights[0] > weights[1] else ("l", left)
        return _Plan(node, side, expected)

    def _weight(self, node: ast.expr, names: Mapping[str, ast.expr | None], depth: int = 0) -> int:
        if depth > 8:
            return _UNKNOWN
        match node:
            case ast.Constant():
                return _EXPECTED
            case ast.Await():
                return _VALUE
            case ast.Name():
                if node.id == "ANY":
                    return _EXPECTED
                assigned = names.get(node.id)
                return _UNKNOWN if assigned is None else self._weight(assigned, names, depth + 1)
            case ast.Call():
                return self._weight_of_call(node, names, depth)
            case ast.Attribute() | ast.Subscript() | ast.Starred():
                return max(_UNKNOWN, self._weight(node.value, names, depth + 1))
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.BinOp() | ast.UnaryOp():
                inner = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
                return max((self._weight(one, names, depth + 1) for one in inner), default=_EXPECTED)
        return _UNKNOWN

    def _weight_of_call(self, node: ast.Call, names: Mapping[str, ast.expr | None], depth: int) -> int:
        called = _last_name(node.func)
        if called == "approx":
            return _EXPECTED
        if called in _KEEPING and isinstance(node.func, ast.Name):
            return max((self._weight(one, names, depth + 1) for one in node.args), default=_EXPECTED)
        return _UNKNOWN if called in self._defined or called[:1].isupper() else _VALUE


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _first_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return _last_name(node)


def _names_of_libraries(node: ast.AST) -> Iterator[str]:
    """What an import of a library that compares values binds."""
    if isinstance(node, ast.Import):
        yield from (
            one.asname or one.name.partition(".")[0] for one in node.names if one.name.partition(".")[0] in _LIBRARIES
        )
    elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _LIBRARIES and not node.level:
        yield from (one.asname or one.name for one in node.names)


def _is_literal(node: ast.expr | None) -> bool:
    if node is None:
        return False
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _originals(literals: Iterable[ast.expr]) -> dict[str, str]:
    """The text of each literal by what its decoy looks like; those that have no decoy are left out."""
    values = ((ast.literal_eval(node), node) for node in literals)
    return {_key(decoy(value)): ast.unparse(node) for value, node in values if _key(decoy(value)) != _key(value)}


def _key(value: Any) -> str:
    """What tells a literal from others: its text, in which the items of a set are in order."""
    if type(value) in (set, frozenset):
        return f"{{{', '.join(sorted(map(_key, value)))}}}"
    if type(value) in (list, tuple):
        return f"{type(value).__name__}({', '.join(map(_key, value))})"
    if type(value) is dict:
        return f"{{{', '.join(f'{_key(key)}: {_key(item)}' for key, item in value.items())}}}"
    return repr(value)


def _replaceable(literals: Sequence[ast.expr | None]) -> tuple[ast.expr, ...]:
    """The literals, if each can be told from its decoy."""
    known = [node for node in literals if node is not None and _is_literal(node)]
    if len(known) < len(literals):
        return ()
    texts = {_key(ast.literal_eval(node)) for node in known}
    stand_ins = _originals(known)
    untouched = texts - {_key(ast.literal_eval(node)) for node in known if _originals([node])}
    return tuple(known) if len(stand_ins) + len(untouched) == len(texts) and not untouched & stand_ins.keys() else ()


def _literals_of_names(tree: ast.Module, plans: Iterable[_Plan]) -> Callable[[_Plan], Sequence[ast.expr]]:
    """The literals of a name that a test only compares with: assigned in it once, or among its parameters."""
    compared = {plan.expected: plan for plan in plans if isinstance(plan.expected, ast.Name)}
    found: dict[_Plan, Sequence[ast.expr]] = {}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        for name in {node.id for node in names if node in compared}:
            uses = [node for node in names if node.id == name and isinstance(node.ctx, ast.Load)]
            stores = [node for node in names if node.id == name and not isinstance(node.ctx, ast.Load)]
            if all(node in compared for node in uses):
                literals = _parameters(function, name) if not stores else _assigned(function, name, stores)
                found |= {compared[node]: literals for node in uses if isinstance(node, ast.Name)}
    return lambda plan: found.get(plan, ())


def _assigned(
    function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, stores: Sequence[ast.Name]
) -> Sequence[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and node.targets == stores:
            return [node.value]
    return ()


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Sequence[ast.expr]:
    """The values of a parameter in `pytest.mark.parametrize`, if they are written there."""
    for call in function.decorator_list:
        if isinstance(call, ast.Call) and _last_name(call.func) == "parametrize" and len(call.args) == 2:
            if any(keyword.arg != "ids" for keyword in call.keywords):
                # With `indirect`, it is a fixture that gets the value.
                return ()
            names, rows = call.args
            listed = ast.literal_eval(names) if _is_literal(names) else ()
            listed = [one.strip() for one in listed.split(",")] if isinstance(listed, str) else list(listed)
            if name in listed and isinstance(rows, ast.List | ast.Tuple):
                cells = [_cells(row, len(listed)) for row in rows.elts]
                return [cell[listed.index(name)] for cell in cells] if all(cells) else ()
    return ()


def _cells(row: ast.expr, width: int) -> Sequence[ast.expr]:
    if isinstance(row, ast.Call) and _last_name(row.func) == "param":
        return row.args if len(row.args) == width else ()
    if width == 1:
        return [row]
    return row.elts if isinstance(row, ast.List | ast.Tuple) and len(row.elts) == width else ()


def _with_decoys(text: bytes, plans: _Plans) -> bytes:
    """The text with decoys in place of the literals, line by line as before; unchanged if it is not plain UTF-8."""
    if text.startswith(b"\xef\xbb\xbf") or b"\r" in text or b"coding" in b"".join(text.split(b"\n", 2)[:2]):
        return text
    starts = [0]
    for line in text.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    places = set()
    for node in {node for plan in plans.found for node in plan.literals if _originals([node])}:
        assert node.end_lineno is not None and node.end_col_offset is not None
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        lines = "\n" * (node.end_lineno - node.lineno)
        places.add((first, last, f"({decoy(ast.literal_eval(node))!r}{lines})".encode()))
    for first, last, stand_in in sorted(places, reverse=True):
        text = text[:first] + stand_in + text[last:]
    return text


class _Change(ast.NodeTransformer):
    """Replaces comparisons by calls of the recorder, and adds the assertion that ends each test."""

    def __init__(
        self,
        numbers: Mapping[ast.expr, tuple[int, _Plan]],
        recorder: Recorder,
        file: str,
        name: str,
        tests: frozenset[str],
    ) -> None:
        self._numbers, self._recorder, self._file, self._name, self._tests = numbers, recorder, file, name, tests
        self.controlled: set[str] = set()
        self.uncontrolled: set[str] = set()
        self._around: list[str] = []
        self._asserted: dict[ast.AST, int] = {}
        # The expectation whose values are looked at.
        self._looking: int | None = None

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if self._looking is None or not isinstance(node.ctx, ast.Load):
            return node
        return self._call("look", self._looking, node, at=node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        number, plan = self._numbers.get(node, (None, None))
        self.generic_visit(node)
        if number is None or plan is None:
            return node
        left, right, kind = node.left, node.comparators[0], type(node.ops[0])
        if kind is ast.Eq:
            return self._call("eq", number, plan.side, left, right, at=node)
        if kind is ast.NotEq:
            return self._call("ne", number, plan.side, left, right, at=node)
        if kind is ast.In:
            return self._call("within", number, left, right, at=node)
        distance = left if isinstance(left, ast.Call) and _last_name(left.func) in ("abs", "fabs") else None
        if distance is not None and kind in (ast.Lt, ast.LtE) and len(distance.args) == 1:
            difference = distance.args[0]
            if isinstance(difference, ast.BinOp) and isinstance(difference.op, ast.Sub):
                operands = (distance.func, difference.left, difference.right, right)
                return self._call("near", number, _ORDERS[kind], *operands, at=node)
        return self._call("order", number, _ORDERS[kind], left, right, at=node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        number, plan = self._numbers.get(node, (None, None))
        called, before = _last_name(node.func), self._looking
        if called.startswith("assert") and before is None:
            self._looking = self._recorder.add_place(self._file, node.lineno)
        if isinstance(node.func, ast.Name):
            self._visit_arguments(node)
        else:
            self.generic_visit(node)
        self._looking = before
        made = node
        if number is not None and called in _KINDS:
            place = _KINDS[called]
            node.args[place] = self._call("kind", number, node.args[place], at=node)
        elif number is not None and plan is not None:
            made = self._call("call", number, plan.side, called in _CLOSE, node.func, *node.args, at=node)
            made.keywords = node.keywords
        return made if before is None else self._call("look", before, made, at=node)

    def _visit_arguments(self, node: ast.Call) -> None:
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        number = self._looking = self._recorder.add_place(self._file, node.lineno)
        node.test = self.visit(node.test)
        self._looking = None
        node.test = self._call("expect", number, node.test, at=node)
        self._asserted[node] = number
        return [node, ast.copy_location(ast.Expr(self._call("passed", number, at=node)), node)]

    def visit_With(self, node: ast.With) -> ast.stmt:
        return self._with(node)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.stmt:
        return self._with(node)

    def _with(self, node: ast.With | ast.AsyncWith) -> ast.stmt:
        inside = list(_uncaught(node.body))
        self.generic_visit(node)
        places = ast.List([ast.Constant(self._asserted[one]) for one in inside], ast.Load())
        for item in node.items if inside else ():
            item.context_expr = self._call("manager", places, item.context_expr, at=item.context_expr)
        return node

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [node, *(self._imported(node, 0, alias.name, []) for alias in node.names)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        if node.module == "__future__":
            return [node]
        return [node, self._imported(node, node.level, node.module or "", [alias.name for alias in node.names])]

    def _imported(self, node: ast.stmt, level: int, module: str, names: list[str]) -> ast.stmt:
        number = self._recorder.add_place(self._file, node.lineno)
        listed = ast.List([ast.Constant(name) for name in names], ast.Load())
        package = ast.Name("__package__", ast.Load())
        return ast.copy_location(
            ast.Expr(self._call("imported", number, package, level, module, listed, at=node)), node
        )

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        self._around.append(node.name)
        self.generic_visit(node)
        self._around.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        own = [one for one in node.body if isinstance(one, ast.Assert)]
        uncaught = list(_uncaught(node.body))
        qualified = ".".join([*self._around, node.name])
        self._around += [node.name, "<locals>"]
        self.generic_visit(node)
        del self._around[-2:]
        if node.name in self._tests:
            self._recorder.add_uncaught(self._asserted[one] for one in uncaught)
            if _can_end(node.body):
                self.controlled |= {node.name, qualified}
                node.body = [*self._ended(node.body), self._end(node.body[-1], [self._asserted[one] for one in own])]
            else:
                self.uncontrolled |= {node.name, qualified}
        return node

    def _ended(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements, with the end of the test before every return."""
        made: list[ast.stmt] = []
        for statement in body:
            for block in ("body", "orelse"):
                if isinstance(statement, ast.If | ast.For | ast.AsyncFor | ast.While) and getattr(statement, block):
                    setattr(statement, block, self._ended(getattr(statement, block)))
            made += [self._end(statement, []), statement] if isinstance(statement, ast.Return) else [statement]
        return made

    def _end(self, at: ast.stmt, unconditional: list[int]) -> ast.stmt:
        number = self._recorder.add_place(self._file, at.lineno)
        self._recorder.add_test(number, unconditional)
        return ast.copy_location(ast.Assert(self._call("end", number, at=at), None), at)

    def _call(self, method: str, *arguments: Any, at: ast.AST) -> ast.Call:
        function = ast.Attribute(ast.Name(self._name, ast.Load()), method, ast.Load())
        nodes = [one if isinstance(one, ast.expr) else ast.Constant(one) for one in arguments]
        return ast.copy_location(ast.Call(function, nodes, []), at)


def _can_end(body: list[ast.stmt]) -> bool:
    """Whether an assertion before every return is seen by pytest: nothing around a return may catch it."""
    caught = (ast.Try, getattr(ast, "TryStar", ast.Try), ast.With, ast.AsyncWith, ast.Match)
    for statement in body:
        if isinstance(statement, caught) and any(isinstance(one, ast.Return) for one in _own_nodes(statement)):
            return False
        if isinstance(statement, ast.If | ast.For | ast.AsyncFor | ast.While) and not (
            _can_end(statement.body) and _can_end(statement.orelse)
        ):
            return False
    return not any(isinstance(one, ast.Yield | ast.YieldFrom) for statement in body for one in _own_nodes(statement))


def _uncaught(body: list[ast.stmt]) -> Iterator[ast.Assert]:
    """The assertions in a function that it does not expect to fail."""
    for statement in body:
        if isinstance(statement, ast.Assert):
            yield statement
        elif isinstance(statement, ast.If | ast.For | ast.AsyncFor | ast.While):
            yield from _uncaught([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.With | ast.AsyncWith):
            yield from _uncaught(statement.body)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below, without those in functions that are defined there."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        for child in ast.iter_child_nodes(node):
            yield from _own_nodes(child)


def doctest_control(item: Any) -> bool:
    """Add an example with a wrong result to a doctest; False if the item is none."""
    test = getattr(item, "dtest", None)
    if test is None:
        return False
    import doctest

    test.examples.append(doctest.Example("1\n", "2\n", lineno=len((test.docstring or "").splitlines())))
    return True
