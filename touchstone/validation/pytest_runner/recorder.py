"""What the changed tests of a negative control call (`controls`), and what it finds out about a fix.

`held` is what no honest fix does: an object of a class that the tests do not name equals anything; everything is an
instance of a class; a function or constant of a module of the tests was replaced. `doubts` keep a pass from being
judged, because each can be honest: such an object is given a value of the tests and answers by a method of the fix;
objects are equal whatever is in them; an assertion failed where the fix could catch it; something of the language, of a
library or of a class of the tests was replaced; the fix looks at its judges (`watching`).

Nothing is asked that would tell honest answers from others: a fix could answer each question as the asker likes it.
What the tests' own classes accept is right, and so is what the problem or its reference fix shows, too. A class that
the tests name may equal many values; if it equals all of them, that is doubted.
"""

import ast
import builtins
import contextlib
import functools
import gc
import importlib
import importlib.util
import inspect
import itertools
import operator
import os
import re
import sys
import types
import typing
import unittest
import unittest.mock
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from touchstone.text import python_lines
from touchstone.validation.pytest_runner.changed_values import Other, other_objects
from touchstone.validation.pytest_runner.classes import (
    all_exceptions,
    exceptions_of_many_kinds,
    has_any_instance,
    is_generated,
)
from touchstone.validation.pytest_runner.pytest_internals import FIXTURE
from touchstone.validation.pytest_runner.watching import PARTS_OF_FUNCTIONS

_SCALARS = (int, float, complex, str, bytes, bytearray, range, type(None), bool)
# Of what the constants of a library are.
_CONSTANTS = (int, float, str, bytes, tuple)
_CONTAINERS = (list, tuple, dict, set, frozenset)
_PLAIN = (*_SCALARS, *_CONTAINERS)
# What an object is, whatever a class or metaclass says that it equals. Unlike `id`, it is no event of an audit.
_id = object.__hash__
_SCALAR_IDS, _CONTAINER_IDS, _PLAIN_IDS = (frozenset(map(_id, kinds)) for kinds in (_SCALARS, _CONTAINERS, _PLAIN))
# Bound here, because a fix may replace them.
_all, _map, _is, _call, _getcwd = all, map, operator.is_, operator.call, os.getcwd
_get_profile, _set_profile = sys.getprofile, sys.setprofile
# What of a function can be replaced in place.
_PARTS = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")
# How many objects an expectation is looked at with in one test, and how many of each class: lists may have thousands.
_MOST_OBJECTS = 100_000
# As much work as one object.
_SCALARS_PER_OBJECT = 50
_MOST_OF_A_CLASS = 100
_MOST_CONSTANTS = 500
# How many calls of a test are followed by a look at what it relies on.
_MOST_CALLS = 500
_MOCKS = frozenset({"ANY", "mock", "mocker", "call", "sentinel", "patch", "Mock", "MagicMock", "AsyncMock"})
# With these, mocks of all kinds come from the tests.
_MAKES_MOCKS = ("mock", "mocker", "patch", "create_autospec", "MagicMock", "AsyncMock")
_SILENT = ("hypothesis", "unittest.case", "asyncio.exceptions")
_SWALLOWING = (contextlib.suppress, contextlib.ExitStack, contextlib.AsyncExitStack)
_UNIONS = (types.UnionType, type(typing.Union[int, str]))  # noqa: UP007
# Classes of the language that the standard library gives another name, as in `types`.
_LIBRARY_NAMES = frozenset(
    (name, value)
    for loaded in sys.stdlib_module_names & sys.modules.keys()
    for name, value in vars(sys.modules[loaded]).items()
    if type(value) is type and value.__module__ == "builtins"
)
# Read past a metaclass, which may say otherwise.
_mro, _vars, _flags = (type.__dict__[name].__get__ for name in ("__mro__", "__dict__", "__flags__"))
_EQUALITY = ("__eq__", "__ne__", "__array_ufunc__", "__array_function__")
_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
_METHODS = (*_EQUALITY, *_ORDER, "__sub__", "__rsub__", "__contains__", "__exit__")
# What an object answers when it is given a value of the tests, whatever these ask.
_ANSWERS = (*_EQUALITY, "__contains__", "__class__", "__instancecheck__", "__subclasscheck__", "__array_wrap__")
# And if they order or subtract, themselves or by functions of these names.
_ORDERING = re.compile(r"sort(ed)?|min|max|\w*(Less|Greater)\w*|heap\w*|bisect\w*|insort\w*|n(large|small)est|[lg][te]")
_SUBTRACTING = re.compile(r"\w*([aA]pprox|[cC]lose|[aA]lmost)\w*|sub|sum|diff")
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.MatMult: "matmul",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
}
# Nothing that is in them decides what they equal.
_OPAQUE = (type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType)
_NUMBERS = (-7e5, 3e5)
# Methods of other classes that a subclass may answer otherwise.
_YES_OR_NO = {"startswith", "endswith", "issubset", "issuperset", "isdisjoint", "index", "count", "find"}
_YES_OR_NO |= {"equals", "compare"}
# Names in a module that mean something to pytest or unittest.
_OF_RUNNER = re.compile(
    r"pytest(mark|_\w+)|__test__|(setup|teardown)_(module|function)|(setUp|tearDown)Module|load_tests"
)
_HEAP_TYPE = 1 << 9
# Modules that do something when they are imported, and this one.
_NOT_IMPORTED = {"__main__", "antigravity", "idlelib", "test", "this", "turtledemo"}
_PACKAGES = ("/site-packages/", "/dist-packages/")


@dataclass
class Found:
    """What a control found in one test; places are files and lines."""

    ended: bool = False
    held: dict[str, None] = field(default_factory=dict)
    # What keeps a pass from being judged, each with the text of the fix in question.
    doubts: dict[tuple[str, str], None] = field(default_factory=dict)
    # Assertions that failed where the fix could catch it.
    failed: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class _Definitions:
    """The functions and constants of a module or class of the judge's side, which must stay as they are.

    `used`: those that may be used while a test runs. `parts`: what can be replaced in place, where nothing else would
    show it; `watching` hears of such changes before the end of a test.
    """

    file: str
    namespace: Mapping[str, Any]
    known: dict[str, Any]
    used: dict[str, Any]
    parts: dict[str, tuple[Any, ...]]
    of_class: bool

    def replaced(self) -> Iterator[str]:
        """The name of each that was replaced, also in place."""
        yield from (name for name, _ in _replaced(self.namespace, self.known))
        for name, parts in self.parts.items():
            if any(one is not other for one, other in zip(_PARTS(self.known[name]), parts, strict=True)):
                yield name


class Recorder:
    """Looks at values and assertions of the changed tests, and notes what is not as it should be."""

    def __init__(self, root: str) -> None:
        self._root = f"{root}/"
        # Classes that the tests name are not asked, because the tests count comparisons, or the time they take.
        self.quiet = False
        # On the unmodified problem, assertions that do not hold are passed over, so that the tests run to their end.
        self.lenient = False
        self._places: list[str] = []
        self._assertions: dict[int, _Assertion] = {}
        # Of each block with a context manager that is entered, the manager.
        self._managers: list[_Manager] = []
        # The text of each method that is doubted.
        self._blocks: dict[types.CodeType | None, str] = {}
        # How many objects this test has had looked at for each expectation, and how many of each class.
        self._looks: Counter[tuple[int, ...]] = Counter()
        # How often a library has called a method of the fix.
        self._heard: Counter[int] = Counter()
        self._definitions: list[_Definitions] = []
        self._names: set[str] = set()
        # Those that are taken from a module or an object.
        self._reached: set[str] = set()
        # Whether the tests give the names of modules to what they test.
        self.gives_modules = False
        # Whether they read or run their own files.
        self.reads_files = False
        self._calls = 0
        # Whether the test has come to the end of an assertion.
        self.asserted = False
        # The code of the test that runs.
        self._test: types.CodeType | None = None
        # Whether the tests catch failures of assertions themselves.
        self._catches = False
        # Names of attributes that the tests replace themselves.
        self._patched: set[str] = set()
        self._builtins = dict(vars(builtins))
        self._exceptions = {_id(kind): kind for kind in all_exceptions()}
        self._libraries: dict[str, types.ModuleType | None] = {}
        # The namespace of the last star import on the judge's side, and a copy from before it.
        self._star: Mapping[str, Any] = {}
        self._before_star: Mapping[str, Any] = {}
        # Of each library, what its namespaces hold under the names of the tests.
        self._library_names: dict[str, list[tuple[str, Mapping[str, Any], dict[str, Any]]]] = {}
        # What of these and of the definitions may be used while a test runs; None if they became more.
        self._values: _Values | None = None
        # Modules of the judge's side that run, or have run.
        self.namespaces: list[dict[str, Any]] = []
        self._codes: set[types.CodeType] = set()
        self._constants: dict[Any, None] = {}
        # Files whose functions may be replaced, because they ask for it.
        self.rebinding: set[str] = set()
        self._modules: Mapping[str, bool] = {}
        self._folder = ""
        self._texts: Mapping[str, bytes] = {}
        # Classes, by what they are, and whether what they answer must be doubted.
        self._doubted: dict[int, tuple[type, bool]] = {}
        # What the judge's side imported that was something else, mostly before the first test begins.
        self._foreign: dict[str, None] = {}
        self._doubts: dict[tuple[str, str], None] = {}
        self._result = Found()
        # Methods by which an object answers the tests' questions.
        self._answering = set(_ANSWERS)

    # Before the tests run.

    def add_place(self, file: str, line: int) -> int:
        """The number of an expectation."""
        self._places.append(f"{file}:{line}")
        return len(self._places) - 1

    def add_source(self, tree: ast.Module) -> None:
        """The names and constants of a file of the judge's side, and the modules that it imports."""
        for node in ast.walk(tree):
            match node:
                case ast.Name():
                    self._names.add(node.id)
                case ast.Compare() if any(isinstance(one, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for one in node.ops):
                    self._answering |= {*_ORDER}
                case ast.Attribute():
                    self._names.add(node.attr)
                    self._reached.add(node.attr)
                    if not isinstance(node.ctx, ast.Load):
                        self._patched.add(node.attr)
                case ast.ExceptHandler(type=None):
                    self._catches = True
                case ast.Global():
                    self._patched.update(node.names)
                case ast.Import() | ast.ImportFrom():
                    self._names.update(alias.asname or alias.name for alias in node.names)
                    self._reached.update(alias.name for alias in node.names)
                    self._libraries |= dict.fromkeys(_absolute_imports(node))
                case ast.Call(func=ast.Attribute(attr="multiple")):
                    self._patched.update(one.arg for one in node.keywords if one.arg)
                case ast.Constant(str() | int() | float() | bytes()) if len(self._constants) < _MOST_CONSTANTS:
                    self._constants[node.value] = None
                    if isinstance(node.value, str):
                        # It may be the name that `monkeypatch.setattr` or `mock.patch` replaces.
                        self._patched.add(node.value.rpartition(".")[2])

        if any(map(_ORDERING.fullmatch, self._names)):
            self._answering |= {*_ORDER}
        if any(map(_SUBTRACTING.fullmatch, self._names)):
            self._answering |= {"__sub__", "__rsub__"}
        self._catches |= bool({"AssertionError", "BaseException", "Exception"} & self._names)
        self._answering |= {f"__{side}{name}__" for name in {"divmod", "pow"} & self._names for side in ("", "r")}

    def add_code(self, code: types.CodeType) -> None:
        """The code of a file of the judge's side."""
        self._codes.add(code)
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                self.add_code(inner)

    def begin(self, texts: Mapping[str, bytes], modules: Mapping[str, bool], own_names: Iterable[str]) -> None:
        """In the process of a job, with its files.

        `modules` are on the judge's side, with whether only there; `own_names` can be imported from the problem.
        """
        self._texts, self._modules, self._folder = texts, modules, _getcwd()
        self._know_names("builtins", (builtins, *_PLAIN))
        for name in [name for name in self._libraries if name.partition(".")[0] in own_names]:
            del self._libraries[name]
            self._library_names.pop(name, None)
            self._values = None
        known = sys.stdlib_module_names - _NOT_IMPORTED
        unknown = self._libraries.keys() - self._library_names.keys()
        for name in [name for name in unknown if name.partition(".")[0] in known]:
            with contextlib.suppress(Exception):
                self._know_library(name, importlib.import_module(name))

    def know_loaded_libraries(self) -> None:
        """Before a job: whatever is the same for all jobs is done here, because a fork pays for what it touches."""
        for name in self._libraries.keys() & sys.modules.keys():
            self._know_library(name, sys.modules[name])

    def _know_library(self, name: str, module: types.ModuleType) -> None:
        self._libraries[name] = module
        kinds = [one for one in vars(module).values() if isinstance(one, type)]
        self._know_names(
            name, (module, *(one for one in kinds if one.__module__ == name or one.__name__ in self._names))
        )
        for part in self._names & vars(module).keys() - self._libraries.keys():
            # Such as `os.path`.
            if isinstance(vars(module)[part], types.ModuleType):
                self._know_names(f"{name}.{part}", (vars(module)[part],))

    def _know_names(self, library: str, spaces: Iterable[types.ModuleType | type]) -> None:
        entries = self._library_names[library] = []
        self._values = None
        for space in spaces:
            # The assertions of a test case call each other.
            wanted = self._names | {*_METHODS, "__import__"} if library != "unittest" else vars(space).keys()
            known = {one: vars(space)[one] for one in wanted & vars(space).keys()}
            label = library
            if isinstance(space, type):
                label = f"{library}.{space.__name__}"
                # What a class inherits is replaced by what it gets itself.
                inherited = {one for base in _mro(space)[1:-1] for one in _vars(base)}
                known |= dict.fromkeys(self._names & inherited - known.keys())
            else:
                # Those of `time` follow the time zone, which tests may set.
                kinds = _CONSTANTS if space.__name__ != "time" else ()
                known = {one: value for one, value in known.items() if callable(value) or type(value) in kinds}
            entries += [(label, vars(space), known)] if known else []

    def _know_package(self, name: str, module: types.ModuleType) -> None:
        file = getattr(module, "__file__", None) or str(getattr(module, "__path__", ""))
        if any(part in file for part in _PACKAGES):
            self._know_library(name, module)
        elif not (file in self._texts or hasattr(module, "__path__") or self.names_module(name)):
            self.doubt(f"{name} is not an installed package", "")

    def names_module(self, module: str) -> bool:
        """Whether the tests give the name of a module to what they test."""
        given = any(isinstance(one, str) and module in one for one in self._constants)
        return given or self.gives_modules or bool(self._names & {"__module__", "modules", "import_module"})

    def add_functions(self, file: str, namespace: dict[str, Any]) -> None:
        """The functions, classes and constants of a module of the judge's side, which has run."""
        if file in self.rebinding:
            return
        own = [one for one in namespace.values() if type(one) is type and one.__module__ == namespace["__name__"]]
        for one in own:
            for name in ("__getattribute__", *(vars(unittest.TestCase) if issubclass(one, unittest.TestCase) else ())):
                if self.is_fix(getattr(getattr(getattr(one, name, None), "__code__", None), "co_filename", "")):
                    self.doubt(f"{one.__name__}.{name} of the tests is the fix's", f"def {name}(")
        for space in (namespace, *map(vars, own)):
            known: dict[str, Any] = {}
            for name, value in space.items():
                function = type(value) is types.FunctionType and value.__code__ in self._codes
                constant = _id(type(value)) in _PLAIN_IDS and name in self._names and not name.startswith("__")
                if (function or constant) and name not in self._patched:
                    known[name] = value
            # Nothing but pytest calls a test that no test names, and it does so between tests.
            used = {name: value for name, value in known.items() if name in self._names or not name.startswith("test")}
            # The end of a control shows a change in the code of a test.
            functions = {name: value for name, value in known.items() if type(value) is types.FunctionType}
            parts = {
                name: _PARTS(one)
                for name, one in functions.items()
                if name in used or one.__defaults__ or one.__kwdefaults__
            }
            parts = parts if not self._patched & PARTS_OF_FUNCTIONS else {}
            found = _Definitions(file, space, known, used, parts, space is not namespace)
            self._definitions += [found] if known else []
            self._values = None

    # Around each test.

    def start(self) -> None:
        """A test begins."""
        self._result = Found()
        self._managers.clear()
        self._looks.clear()
        self._calls = 0
        self.asserted = False
        self._test = None

    def finish(self) -> Found:
        """What was found since the test began, and whether something replaced what the tests rely on."""
        for one in self._definitions:
            for name in one.replaced():
                if one.of_class:
                    # A fix may be made to change a class that it is given.
                    self.doubt(f"{one.file}: {name} was replaced", "")
                else:
                    self._result.held[f"{one.file}: {name} was replaced"] = None
        self._result.held.update(self._foreign)
        self._check_names()
        for kind in exceptions_of_many_kinds(self._exceptions):
            if self._is_doubted(kind) and self._is_unnamed(kind):
                self.doubt(f"{kind.__qualname__} is an exception of many kinds", "")
        self._result.doubts.update(self._doubts)
        return self._result

    def _is_all_as_before(self) -> bool:
        """Whether nothing that a test uses was replaced, nor the folder that it runs in."""
        if self._values is None:
            spaces = [(space, known) for _, space, known in itertools.chain(*self._library_names.values())]
            self._values = _Values((*spaces, *((one.namespace, one.used) for one in self._definitions)))
        return self._values.are_same() and ("chdir" in self._names or _getcwd() == self._folder)

    def _check_names(self) -> None:
        """Doubt what replaced a function of the language or of a library, or the folder that the tests run in."""
        if "chdir" not in self._names and _getcwd() != self._folder:
            self.doubt("the working directory was changed", "")
        for label, namespace, known in itertools.chain.from_iterable(self._library_names.values()):
            for name, found in _replaced(namespace, known):
                if name not in self._patched and not (_is_of_package(found) or self._is_of_tests(found)):
                    self.doubt(f"{label}.{name} was replaced", f"{label}.{name} =")

    def _is_of_tests(self, value: Any) -> bool:
        """Whether the tests themselves put a value somewhere: a function of theirs, or a mock."""
        mock = type(value).__module__ == "unittest.mock" and bool(self._names & _MOCKS)
        return mock or getattr(value, "__code__", None) in self._codes

    def doubt(self, reason: str, text: str) -> None:
        """Note what keeps this pass, and all later ones, from being judged."""
        self._doubts[reason, text] = None

    # The tests call these.

    @contextlib.contextmanager
    def test(self, place: int, asserts: bool) -> Iterator[None]:
        """Around the body of a test: it fails at its end, however that is reached, and its assertions are reached."""
        # The ids of parametrised tests hold what they expect.
        os.environ["PYTEST_CURRENT_TEST"] = os.environ.get("PYTEST_CURRENT_TEST", "").partition("[")[0]
        self._test = sys._getframe(2).f_code
        yield
        self._result.ended = True
        self._doubt_failed()
        if asserts and not self.asserted:
            self._result.doubts[f"no assertion of the test in {self._places[place]} was reached", ""] = None
        raise AssertionError("the end of a control")

    def _doubt_failed(self) -> None:
        for missed in self._result.failed:
            self.doubt(f"the assertion in {self._places[missed]} failed, and something of the fix caught it", "")

    def assertion(self, place: int) -> "_Assertion":
        """Around an assertion."""
        found = self._assertions.get(place)
        if found is None:
            found = self._assertions[place] = _Assertion(self, place)
        return found

    def fails(self, place: int, error: type[BaseException]) -> bool:
        """Whether the failure of an assertion is passed over. It is noted if the fix can catch it."""
        if self.lenient and issubclass(error, AssertionError):
            return True
        # From the code that has the assertion. How many frames `traceback.walk_stack` leaves out depends on the Python.
        called: list[types.CodeType] = []
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None:
            called.append(frame.f_code)
            frame = frame.f_back
        # In a thread or a callback of an event loop, what fails is not heard of.
        elsewhere = self._test is not None and self._test not in called
        # A finalizer, say. A package may try again.
        inside = [one.co_filename for one in itertools.takewhile(lambda code: code is not self._test, called)]
        expected = any(one.expects for one in self._managers) and not issubclass(error, AssertionError)
        caught = not self._catches and not expected and not any(part in file for file in inside for part in _PACKAGES)
        # Hypothesis goes on with another example, and may not come to the end of the test again. A subtest that
        # should stop is silent, and so is a task that was cancelled.
        is_rejected = any(one.__module__.startswith(_SILENT) for one in error.__mro__)
        of_fix = any(one.of_fix for one in self._managers) or any(self.is_fix(one.co_filename) for one in called)
        if caught or elsewhere or is_rejected or of_fix:
            self._result.failed.add(place)
        if is_rejected:
            self._doubt_failed()
        return False

    def enter(self, value: Any) -> Any:
        """A context manager whose block begins."""
        made_by = getattr(getattr(value, "gen", None), "gi_code", None)
        known = self._is_trusted(type(value)) or self._is_judges(type(value), "__exit__", "__aexit__")
        # One of pytest or unittest expects an error.
        self.asserted |= type(value).__module__.startswith(("_pytest", "unittest"))
        known = known and (type(value) not in _SWALLOWING or type(value).__name__ in self._names)
        of_fix = not known or (made_by is not None and self.is_fix(made_by.co_filename))
        self._managers.append(_Manager(of_fix, type(value).__module__ in ("_pytest.raises", "unittest.case")))
        return value

    def leave(self, managers: int) -> None:
        """So many blocks have ended."""
        del self._managers[-managers:]

    def is_fix(self, file: str) -> bool:
        """Whether a file is one of the problem that is not on the judge's side."""
        return file.startswith(self._root) and not any(one.get("__file__") == file for one in self.namespaces)

    def called(self, place: int, value: Any) -> Any:
        """What a call returned, which may have replaced what the tests rely on, until that is used."""
        self._calls += 1
        if self._calls < _MOST_CALLS and not self._is_all_as_before():
            self._check_names()
            for one in self._definitions:
                for name, found in _replaced(one.namespace, one.used):
                    if not self._is_of_tests(found):
                        self.doubt(f"{one.file}: {name} was replaced", "")
        kind = type(value)
        own = self._is_doubted(kind) and self._is_one_of_few(place, _id(kind)) and self._own_method(kind, "__eq__")
        if own and self._is_unnamed(kind) and self._equals_anything(value):
            self._hold(place)
        return value

    def look(self, place: int, value: Any) -> Any:
        """A value that a test asks something, which must not be one that answers for itself."""
        if _id(type(value)) not in _SCALAR_IDS:
            for one in self._parts_of(place, value, fields=False):
                self._inspect(place, one)
        return value

    def _is_one_of_few(self, *key: int) -> bool:
        """Whether not many objects of a class were looked at for an expectation, so that one more can be."""
        self._looks[key] += 1
        return self._looks[key] <= _MOST_OF_A_CLASS

    def _parts_of(self, place: int, value: Any, *, fields: bool) -> Iterator[Any]:
        """The objects that decide what a value equals, level by level; `fields`: also in objects of the fix."""
        left, seen = [value], {_id(vars(builtins))}
        for one in left:
            kind: Any = type(one)
            if _id(kind) in _SCALAR_IDS or _id(one) in seen:
                continue
            seen.add(_id(one))
            self._looks[place,] += 1
            if self._looks[place,] > _MOST_OBJECTS:
                return
            if _id(kind) in _CONTAINER_IDS:
                items = [*one, *one.values()] if kind is dict else one
                self._looks[place,] += len(items) // _SCALARS_PER_OBJECT
                left += () if _SCALAR_IDS.issuperset(map(_id, map(type, items))) else items
                continue
            if not self._is_one_of_few(place, _id(one if isinstance(one, type) else kind), fields):
                continue
            yield one
            if kind.__module__ == "unittest.mock" and isinstance(one, unittest.mock.NonCallableMock):
                # What its attributes are decides nothing, and it makes and records those that are looked at.
                left.append(one.mock_calls)
                continue
            if isinstance(one, _OPAQUE) or kind.__eq__ is object.__eq__:
                continue
            if issubclass(kind, _CONTAINERS) or fields or not self._is_doubted(kind):
                with contextlib.suppress(Exception):
                    items = one.to_numpy() if hasattr(kind, "to_numpy") and "numpy" in sys.modules else one
                    is_array = str(getattr(items, "dtype", "")) == "object"
                    found = items.ravel().tolist() if is_array else gc.get_referents(one)
                    left += () if _SCALAR_IDS.issuperset(map(_id, map(type, found))) else found

    def _inspect(self, place: int, value: Any, *, asked: bool = True) -> None:
        kind = type(value)
        if kind.__module__ != "unittest.mock" and not self._is_doubted(kind):
            with contextlib.suppress(Exception):
                # A proxy of a library answers in the words of what it stands for.
                kind = value.__class__
        if isinstance(value, type):
            if has_any_instance(value):
                self._hold(place)
            kind = kind if kind is not type and self._is_unnamed(value) else type
        unnamed = self._is_doubted(kind) and self._is_unnamed(kind)
        if not self._is_doubted(kind):
            self._doubt_lenient(place, value)
        elif (unnamed or not self.quiet) and self._equals_anything(value):
            if unnamed and self._own_method(kind, "__eq__"):
                self._hold(place)
            self._doubt(place, kind, "__eq__", "equal anything")
        elif unnamed and asked and (method := self._answers(kind)):
            self._doubt(place, kind, method, f"answer for themselves, by {method}")

    def _doubt_lenient(self, place: int, value: Any) -> None:
        """Doubt an object of a library that equals anything, or any number, unless the tests use such objects."""
        kind: Any = type(value)
        if type(_vars(kind).get("__eq__")) is unittest.mock.MagicProxy:
            # It equals itself alone, and would record the question.
            return
        if _id(kind) in _PLAIN_IDS or kind.__eq__ is object.__eq__ or kind.__name__.strip("_") in self._names:
            return
        if self._is_judges(kind, *_METHODS) or isinstance(value, type):
            return
        if self._equals_anything(value) or all(self._is_true(operator.eq, value, one) for one in _NUMBERS):
            self._doubt(place, kind, "", "equal anything")

    def _equals_anything(self, value: Any) -> bool:
        """Anything, also each constant of the tests: a complement tells some apart. Or the same first, and then not."""
        if not self._is_true(operator.eq, value, Other()):
            return False
        every = all(self._is_true(operator.eq, value, constant) for constant in self._constants)
        return every or not self._is_true(operator.eq, value, Other())

    def _answers(self, kind: type) -> str | None:
        """The method of the fix by which objects of a class answer a question of the tests."""
        others = [one for one in _mro(kind)[1:] if not self._is_doubted(one)]
        methods = {name for name in _YES_OR_NO & self._names if any(hasattr(one, name) for one in others)}
        return next(filter(None, (self._own_method(kind, name) for name in sorted(self._answering | methods))), None)

    def _own_method(self, kind: type, name: str) -> str | None:
        """The name of a method if a class has it from the fix, and nothing generated it."""
        owner = next((one for one in _mro(kind) if name in _vars(one)), object)
        known = owner is object or not self._is_doubted(owner) or (owner is not kind and not self._is_unnamed(owner))
        return name if not known and not is_generated(owner, name) else None

    def _is_unnamed(self, kind: type) -> bool:
        """Whether the tests do not know a class of the fix: they may not mean it to equal several values."""
        name = kind.__name__
        libraries = [vars(module) for module in self._libraries.values() if module is not None]
        bound = [space[name] for space in (*self.namespaces, *libraries) if name in space]
        named = any(one is kind for one in bound) if bound else name in self._reached
        if any(self._is_own_of(kind, one) for one in _vars(kind).values()):
            # The tests define it, and have the fix add methods.
            return False
        return not (named and name[:1].isupper() and (name in self._names or name in self._reached))

    def _is_own_of(self, kind: type, value: Any) -> bool:
        """Whether a value is a function that the judge's side defines in the body of a class."""
        code = value.__code__ if isinstance(value, types.FunctionType) else None
        return code in self._codes and code.co_qualname == f"{kind.__qualname__}.{code.co_name}"

    def _is_doubted(self, kind: type) -> bool:
        if _id(kind) not in self._doubted:
            known = _id(kind) in _PLAIN_IDS or self._is_trusted(kind) or self._is_judges(kind, *_METHODS)
            self._doubted[_id(kind)] = kind, not known
        return self._doubted[_id(kind)][1]

    def _is_trusted(self, kind: type) -> bool:
        """Whether a class is of the judge's side or of a library, and not one of mocks that only the fix uses."""
        if kind.__module__ == "unittest.mock":
            makers = {kind.__name__, *_MAKES_MOCKS} if issubclass(kind, unittest.mock.NonCallableMock) else _MOCKS
            if not self._names & makers:
                return False
        module = sys.modules.get(kind.__module__)
        found: Any = module
        for name in kind.__qualname__.split("."):
            found = getattr(found, name, None)
        if module is None or found is not kind:
            return _is_of_one_mock(kind, found, module) or _flags(kind) & _HEAP_TYPE == 0
        judges = any(vars(module) is namespace for namespace in self.namespaces)
        codes = (getattr(_vars(kind).get(name), "__code__", None) for name in _METHODS)
        files = [
            str(getattr(module, "__file__", None) or ""),
            *(code.co_filename for code in codes if code is not None),
        ]
        return not any(self.is_fix(one) or (not judges and re.match("<(?!frozen)", one)) for one in files)

    def _is_judges(self, kind: type, *methods: str) -> bool:
        """Whether a class has one of the methods from the judge's side, also if it is defined in a function."""
        return any(getattr(getattr(kind, name, None), "__code__", None) in self._codes for name in methods)

    def compare(self, place: int, name: str, left: Any, right: Any) -> Any:
        """Two values that are compared: unequal ones are not also equal, and a smaller one is not also greater."""
        function = vars(operator)[name]
        self._compare(place, left, right)
        found = self._ask(place, function, left, right)
        if found is not True or name == "eq" or self.quiet:
            return found
        equal = functools.partial(self._is_true, operator.eq, left, right)
        for kind in filter(self._is_doubted, (type(left), type(right))):
            one_way = name in ("lt", "gt") or (name != "ne" and self._is_unnamed(kind) and not equal())
            if name == "ne" and equal():
                self._hold(place)
            elif one_way and self._is_true(function, right, left):
                self._doubt(place, kind, f"__{name}__", "are smaller and greater than each other")
        return found

    def operate(self, place: int, name: str, left: Any, right: Any) -> Any:
        """An operator of a test: an object of the fix may make a plain value of whatever it is given."""
        if _id(type(left)) in _SCALAR_IDS and _id(type(right)) in _SCALAR_IDS:
            return vars(operator)[name](left, right)
        for one in (left, right):
            if isinstance(one, set | frozenset):
                self.look(place, one)
        made = vars(operator)[name](left, right)
        short = name.strip("_").removeprefix("i")
        for one, other, methods in ((left, right, {name, f"__{short}__"}), (right, left, {f"__r{short}__"})):
            kind = type(one)
            if (
                _id(type(made)) in _PLAIN_IDS
                and not isinstance(other, kind)
                and self._is_doubted(kind)
                and self._is_unnamed(kind)
            ):
                for method in filter(None, (self._own_method(kind, method) for method in methods)):
                    self._doubt(place, kind, method, f"answer for themselves, by {method}")
        return made

    def call(self, place: int, function: Any, left: Any, right: Any, *rest: Any, **named: Any) -> Any:
        """The call of an assertion that compares two values; one of the tests' own has assertions in it."""
        self._compare(place, left, right)
        if getattr(function, "__code__", None) in self._codes:
            return function(left, right, *rest, **named)
        return self._ask(place, function, left, right, *rest, **named)

    def _ask(self, place: int, function: Any, left: Any, right: Any, *rest: Any, **named: Any) -> Any:
        """Have two values compared, and hear which objects of the fix a library asks, such as those a mapping makes."""
        if (_id(type(left)) in _SCALAR_IDS and _id(type(right)) in _SCALAR_IDS) or _get_profile() is not None:
            return function(left, right, *rest, **named)
        _set_profile(functools.partial(self._hear, place))
        try:
            return function(left, right, *rest, **named)
        finally:
            _set_profile(None)

    def _hear(self, place: int, frame: types.FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code, caller = frame.f_code, frame.f_back
        if caller is None or not self.is_fix(code.co_filename) or self.is_fix(caller.f_code.co_filename):
            return
        self._heard[_id(code)] += 1
        if self._heard[_id(code)] > _MOST_OF_A_CLASS:
            return
        kind, other = (type(frame.f_locals.get(name)) for name in (*code.co_varnames, "", "")[:2])
        if kind is not other and self._is_doubted(kind) and self._is_unnamed(kind):
            for name in filter(None, (self._own_method(kind, one) for one in self._answering)):
                if getattr(getattr(kind, name), "__code__", None) is code:
                    self._doubt(place, kind, name, f"answer for themselves, by {name}")

    def _compare(self, place: int, left: Any, right: Any) -> None:
        """Look at two values that are compared, and at what is in them.

        If both sides have objects of a class of the fix, the tests give these none of their own values. So they may
        answer, but not be equal whatever is in them.
        """
        if _id(type(left)) in _SCALAR_IDS or _id(type(right)) in _SCALAR_IDS:
            self.look(place, left)
            self.look(place, right)
            return
        sides = [[*self._parts_of(place, value, fields=True)] for value in (left, right)]
        shared = frozenset.intersection(*(frozenset(_id(type(one)) for one in side) for side in sides))
        for one in itertools.chain(*sides):
            own = _id(type(one)) in shared and not self.quiet and self._is_doubted(type(one))
            others = other_objects(one) if own else []
            self._inspect(place, one, asked=not others)
            if others and all(self._is_true(operator.eq, one, other) for other in others):
                self._doubt(place, type(one), "__eq__", "are equal whatever is in them")

    def imported(self, place: int, package: str | None, level: int, module: str, names: list[str]) -> None:
        """After an import on the judge's side: it must have brought what the judge's files or the library define."""
        try:
            base = importlib.util.resolve_name("." * level + module, package) if level else module
        except (ImportError, ValueError):
            return
        self._check_names()
        for name in (base, *(f"{base}.{name}" for name in names)):
            loaded = sys.modules.get(name)
            if name in self._libraries and self._libraries[name] is None and loaded is not None:
                self._know_package(name, loaded)
            known = any(loaded is not None and vars(loaded) is namespace for namespace in self.namespaces)
            replaced = self._libraries.get(name) is not None and loaded is not self._libraries[name]
            other = name in self._modules and loaded is not None and not known
            if replaced or (other and self._modules[name]):
                self._foreign[self._places[place]] = None
            elif other:
                self.doubt(f"{name} is not the module of the tests", "")
        brought = vars(sys.modules.get(base) or types.ModuleType(base))
        of_fix = self.is_fix(str(brought.get("__file__")))
        if of_fix:
            self._check_aliases(base, brought)
        if names == ["*"]:
            for name, value in brought.items() if of_fix else ():
                if _OF_RUNNER.fullmatch(name) or isinstance(value, FIXTURE):
                    text = f"{name} =" if _OF_RUNNER.fullmatch(name) and not callable(value) else f"def {name}("
                    self.doubt(f"{base} gives {name} to pytest", text)
            for name in ("__builtins__", "__file__", "__name__"):
                if self._star.get(name) is not self._before_star.get(name):
                    self.doubt(f"{base} gives the tests {name}", "")
            meant = {**self._builtins, **self._before_star}
            for name in self._names & meant.keys() & brought.keys():
                if brought[name] is not meant[name] and not name.startswith("__"):
                    self._foreign[f"{name} was replaced"] = None

    def before_star(self, namespace: Mapping[str, Any]) -> None:
        """Before a star import on the judge's side, which must replace no name."""
        self._star, self._before_star = namespace, dict(namespace)

    def _check_aliases(self, module: str, brought: Mapping[str, Any]) -> None:
        """Doubt a class by the name of another, with which every test of the other's kind holds."""
        values = {name: brought[name] for name in self._reached & brought.keys()}
        for name, value in values.items():
            several = isinstance(value, tuple) and value and all(isinstance(one, type) for one in value)
            if several or isinstance(value, _UNIONS):
                self.doubt(f"{name} of {module} is several classes", f"{name} =")
            elif isinstance(value, type) and value.__name__ != name:
                alike = [one for one in values.values() if one is value]
                builtin = value.__module__ == "builtins" and (name, value) not in _LIBRARY_NAMES
                if builtin or len(alike) > 1:
                    self.doubt(f"{name} of {module} is {value.__name__}", f"{name} =")

    def _hold(self, place: int) -> None:
        self._result.held[self._places[place]] = None

    def _doubt(self, place: int, kind: type, method: str, what: str) -> None:
        """Doubt what objects of a class answer, unless the problem's files have that method already."""
        code = getattr(getattr(kind, method, None), "__code__", None)
        text = self._blocks.get(code)
        if text is None:
            lines = [f"{line}\n" for line in python_lines(self._texts.get(getattr(code, "co_filename", ""), b""))]
            text = "".join(inspect.getblock(lines[code.co_firstlineno - 1 :])) if code is not None else ""
            self._blocks[code] = text
        self._result.doubts[f"objects of {kind.__qualname__} {what} ({self._places[place]})", text] = None

    def _is_true(self, compare: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
        """Whether a comparison says yes. What it builds from its operands, such as a query, says nothing."""
        try:
            found = compare(left, right)
            if isinstance(found, bool) or not self._is_yes(found):
                return found is True
            again = compare(left, Other())
            return again is found or (_id(type(found)) in _SCALAR_IDS and type(again) is type(found) and again == found)
        except Exception:
            return False

    def _is_yes(self, found: Any) -> bool:
        """Whether the result of a comparison that is no bool would do for one."""
        return (_id(type(found)) in _PLAIN_IDS or not self._is_trusted(type(found))) and bool(found)


def _is_of_one_mock(kind: type, of_all: Any, module: types.ModuleType | None) -> bool:
    """Whether a class is the one that `unittest.mock` makes for each mock, whose methods are all written there."""
    if module is None or kind.__module__ != "unittest.mock" or of_all not in kind.__bases__:
        return False
    functions = (value for value in vars(kind).values() if isinstance(value, types.FunctionType))
    return all(function.__code__.co_filename == module.__file__ for function in functions)


class _Manager(typing.NamedTuple):
    """A context manager: whether the fix made it, and whether it is pytest's or unittest's for an expected error."""

    of_fix: bool
    expects: bool


class _Assertion:
    """A context manager that is made once per assertion, because some tests make a hundred thousand of them."""

    __slots__ = ("_place", "_recorder")

    def __init__(self, recorder: Recorder, place: int) -> None:
        self._recorder, self._place = recorder, place

    def __enter__(self) -> None:
        pass

    def __exit__(self, error: type[BaseException] | None, *_: object) -> bool:
        self._recorder.asserted |= error is None or issubclass(error, AssertionError)
        return error is not None and self._recorder.fails(self._place, error)


def _absolute_imports(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [one.name for one in node.names]
    return [node.module] if node.module and not node.level else []


def _is_of_package(value: Any) -> bool:
    """Whether a function, class or property is of an installed package, some of which replace parts of other ones."""
    if isinstance(value, property):
        return all(map(_is_of_package, filter(None, (value.fget, value.fset, value.fdel))))
    if isinstance(value, types.FunctionType):
        file = value.__code__.co_filename
    else:
        kind = value if isinstance(value, type) else type(value)
        module = sys.modules.get(kind.__module__)
        file = str(getattr(module, "__file__", None) or "") if getattr(module, kind.__name__, None) is kind else ""
    return any(part in file for part in _PACKAGES)


class _Values:
    """The values that names have in several namespaces. Compared after every call, so without a loop of Python's."""

    def __init__(self, spaces: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        rows = [(space.get, name, value) for space, known in spaces for name, value in known.items()]
        self._columns = [*zip(*rows, strict=True)] or [(), (), ()]

    def are_same(self) -> bool:
        getters, names, values = self._columns
        return _all(_map(_is, _map(_call, getters, names), values))


def _replaced(namespace: Mapping[str, Any], known: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, namespace.get(name)) for name, value in known.items() if namespace.get(name) is not value]
