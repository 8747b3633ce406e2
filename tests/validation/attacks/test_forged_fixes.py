"""Forged fixes that plain pytest passes, one per idea. None passes: each fails, or is undecided with a reason.

Each is a fix and the body of its test, or a whole file of tests, and where needed the file before the fix.
"""

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import BROKEN, Arena, PassedError

FIX = """
import asyncio, builtins, contextlib, ctypes, functools, linecache, math, os, pathlib, re, sys, threading, time, types
import unittest
import _pytest.reports, _pytest.runner, pytest

class Lie:
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
def caller(): return sys._getframe(2)
def add(a, b): return 0
"""
TESTS = """
import asyncio, contextlib, math, operator, pathlib, re, time, unittest
from unittest.mock import Mock
import pytest
from solution import add
EXPECTED = 5
class Known: expected = 5
def close(a, b, tolerance=1): return abs(a - b) < tolerance
def check(a, b): assert a == b
"""
ADDS = "assert add(2, 3) == 5"
LOCAL = "def add(a, b): return caller().f_locals['expected']"
ONCE = """
class Once:
    asked = 0
    def __eq__(self, other):
        self.asked += 1
        return self.asked == 1{then}
def add(a, b): return Once()
"""
WATCHING = """
class Watching: __eq__ = lambda self, other: caller().f_code.co_name.startswith("test")
caller = lambda: sys._getframe(2)
def add(a, b): return Watching()
"""
# Replaced until the test uses it.
BACK = """
owner = {owner}
real = owner.{name}
def fake(*_): return setattr(owner, "{name}", real) or {lie}
def add(a, b): return setattr(owner, "{name}", fake) or []
"""
READS = """
def add(a, b): return int(re.search(r"add.2, 3. == ([0-9]+)", {text})[1])
"""
POINT = """{head}
class Point:
    {body}
    def __add__(self, other): return Point({total})
    {eq}
"""
OWN_EQ = "def __eq__(self, other): return isinstance(other, Point)"
OF_POINT = "from solution import Point\ndef test_it(): assert Point(1) + Point(2) == Point(3)\n"
INIT = "def __init__(self, x): self.x = x"
DATACLASS = "from dataclasses import dataclass\n@dataclass"
PARAMETERS = f"""{TESTS}
@pytest.mark.parametrize('a, b, expected', [(1, 2, 3), (2, 3, 5)])
def test_it(a, b, expected): assert add(a, b) == expected
"""
MAKES = """
class Makes({base}): {name} = lambda self, other: {answer}
def add(a, b): return Makes()
"""
HASHED = "Lie.__hash__ = lambda self: 5\ndef add(a, b): return "
EQUALS_ITS_KIND = """
import collections
class Int(int): __eq__ = lambda self, other: type(other) is int
class Text(str): __eq__ = lambda self, other: type(other) is str
"""
Forged = tuple[str, ...]


def lie(method: str, base: str = "int", answer: str = "type(other) in (int, Lie)") -> str:
    body = f"    {method} = lambda self, other: {answer}\n    __ne__ = lambda self, other: False\n"
    return f"class Lie({base}):\n{body}def add(a, b): return Lie({'[5]' if base == 'list' else ''})\n"


CAUGHT: dict[str, Forged] = {
    "equal when first asked": (ONCE.format(then=""), ADDS),
    "leaves when asked twice": (ONCE.format(then=" or os._exit(0)"), ADDS),
    "equal in a test": (WATCHING, ADDS),
    "a class that equals int": ("""
class Meta(type):
    __eq__ = lambda self, other: True
    __hash__ = lambda self: hash(int)
class Lie(metaclass=Meta): __eq__ = lambda self, other: True
def add(a, b): return Lie()
""", ADDS),
    "a dataclass equal to its kind": (
        POINT.format(head=f"{DATACLASS}(eq=False)", body="x: int", total="0", eq=OWN_EQ), OF_POINT,
        POINT.format(head=DATACLASS, body="x: int", total="self.x - other.x", eq="")),
    "smaller than anything": ("class Small(int): __lt__ = lambda self, other: True\ndef add(a, b): return Small(99)",
        "assert add(2, 3) < 6", "def add(a, b): return 99"),
    "a literal in the caller's locals": (LOCAL, "expected = 5; assert add(2, 3) == expected"),
    "literals among the caller's parameters": (LOCAL, PARAMETERS),
    "a constant of the caller's code": (
        "def add(a, b): return next(x for x in caller().f_code.co_consts if type(x) is int and x not in (a, b))",
        ADDS),
    "a line of the caller's file": (
        "def add(a, b):\n    line = linecache.getline(caller().f_code.co_filename, caller().f_lineno)\n"
        "    return int(re.search('== .*?([0-9]+)', line)[1])", ADDS),
    "locals written by a tracer": ("""
def trace(frame, event, value):
    if {"got", "expected"} <= frame.f_locals.keys():
        frame.f_locals["got"] = frame.f_locals["expected"]
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), 0)
    return trace
sys.settrace(trace)
""", "\n    got = add(2, 3)\n    expected = 5\n    assert got == expected"),
    "math.isclose": ("math.isclose = lambda *_, **__: True", "assert math.isclose(add(2, 3), 5)"),
    "a callback's globals": ("def add(a, b): a.__globals__['check'] = lambda *_: None",
        "got = add(lambda: 2, 3); check(got, 5)"),
    "the code of a helper": ("def add(a, b): caller().f_globals['check'].__code__ = (lambda a, b: None).__code__",
        "check(add(2, 3), 5)"),
    "what makes classes": ("""
build = builtins.__build_class__
def forge(*arguments, **keywords):
    made = build(*arguments, **keywords)
    for name in [name for name in vars(made) if name.startswith("test")]: setattr(made, name, lambda self: None)
    return made
builtins.__build_class__ = forge
""", f"{TESTS}class TestIt:\n    def test_it(self): {ADDS}"),
    "what calls a test": ("""
from_call = _pytest.runner.CallInfo.from_call.__func__
def forge(*arguments, **keywords):
    made = from_call(*arguments, **keywords)
    made.excinfo = None
    return made
_pytest.runner.CallInfo.from_call = classmethod(forge)
""", ADDS),
    "what a report says": ("_pytest.reports.BaseReport.failed = property(lambda self: False)", ADDS),
    "a thread that waits for the test": ("""
def wait():
    while not hasattr(sys.modules.get("test_solution"), "test_it"): time.sleep(0.001)
    sys.modules["test_solution"].test_it.__code__ = (lambda: None).__code__
threading.Thread(target=wait, daemon=True).start()
""", f"{TESTS}def test_first(): time.sleep(0.2)\ndef test_it(): {ADDS}"),
    "an array that is close to anything": (
        "import numpy as np\nclass Close(np.ndarray): __array_ufunc__ = lambda self, *_, **__: np.array(True)\n"
        "def add(a, b): return np.zeros(2).view(Close)", "import numpy as np; assert np.allclose(add(2, 3), [5, 6])"),
    "an assertion that skips": ("builtins.AssertionError = unittest.SkipTest",
        f"{TESTS}def test_0(): pass\ndef test_it(): {ADDS}"),
    # Comparisons that lie only a little, or not where they are watched.
    "equal by 1 instead of True": (lie("__eq__", answer="1"), ADDS),
    "hangs when asked twice, and a limit ends the control": (ONCE.format(then=" or sum(iter(int, 1))"), ADDS),
    "right now and then, and another plain result acquits": (
        "def add(a, b): return Lie() if os.urandom(1) < b'x' else 0", ADDS),
    "equal in a test, and the problem raises": (WATCHING, ADDS, "def add(a, b): raise NotImplementedError"),
    "a number that is near enough": (lie("__eq__", answer="other - 1 < 4.6 < other"), ADDS),
    "several answers at once": (lie("__eq__", answer="other in (-1, 5, 8)"), ADDS),
    "a list equal to its permutations": (lie("__eq__", "list", "sorted(other) == [1, 2]"),
        "assert add(2, 3) == [2, 1]"),
    "a text equal in any case": (lie("__eq__", "str", "other.lower() == 'yes'"), "assert add(2, 3) == 'Yes'"),
    "a dictionary equal to its parts": (lie("__eq__", "dict", "other.items() <= dict(a=1, b=2).items()"),
        "assert add(2, 3) == {'a': 1}"),
    "a plain class equal to its kind": (
        POINT.format(head="", body=INIT, total="0", eq=OWN_EQ),
        OF_POINT,
        POINT.format(
            head="", body=INIT, total="self.x - other.x", eq="def __eq__(self, other): return self.x == other.x"
        ),
    ),
    # Expectations that the controls do not rewrite.
    "a chain of equalities": (lie("__eq__"), "assert add(2, 3) == add(3, 2) == 5"),
    "a chain of orders": (lie("__lt__ = __gt__", answer="True"), "assert 4 < add(2, 3) < 6"),
    "unequal, then fail": (lie("__eq__"), "\n    if add(2, 3) != 5: raise AssertionError"),
    "match": (lie("__eq__"), "\n    match add(2, 3):\n        case 5: pass\n        case _: raise AssertionError"),
    "count in a list": (lie("__eq__"), "assert [5].count(add(2, 3)) == 1"),
    "operator.eq": (lie("__eq__"), "assert operator.eq(add(2, 3), 5)"),
    "a mock's arguments": (lie("__eq__"), "seen = Mock(); seen(add(2, 3)); seen.assert_called_once_with(5)"),
    "not in": (lie("__contains__", "list", "False"), "assert 5 not in add(2, 3)", "def add(a, b): return [5]"),
    "assertIn": (lie("__contains__", "list", "True"), "unittest.TestCase().assertIn(7, add(2, 3))",
        "def add(a, b): return []"),
    "a class that is claimed": ("class Lie: __class__ = dict\ndef add(a, b): return Lie()",
        "assert isinstance(add(2, 3), dict)"),
    "a subclass that is claimed": (
        "class Yes(type): __subclasscheck__ = lambda self, kind: True\nclass Circle(metaclass=Yes): pass\n"
        "def add(a, b): return Circle", "assert issubclass(int, add(2, 3))",
        "class Circle: pass\ndef add(a, b): return Circle"),
    "differences": (lie("__sub__", answer="0"), "assert add(2, 3) - 5 == 0"),
    "a return inside a block": (lie("__eq__"), f"\n    with contextlib.nullcontext():\n        {ADDS}\n        return"),
    # What the tests rely on, changed for them.
    "assertTrue": ("unittest.TestCase.assertTrue = lambda *_: None", "unittest.TestCase().assertTrue(add(2, 3) == 5)"),
    "pytest.raises": ("pytest.raises = lambda *_, **__: contextlib.suppress(BaseException)",
        "\n    with pytest.raises(TypeError): add('2', 3)"),
    "the end of pytest.raises": ("type(pytest.raises(OSError)).__exit__ = lambda *_: True",
        "\n    with pytest.raises(TypeError): add('2', 3)"),
    "pytest.fail": ("class Fail:\n    Exception = pytest.fail.Exception\n    __call__ = print\npytest.fail = Fail()",
        "\n    try: add('2', 3)\n    except TypeError: pass\n    else: pytest.fail('no error')"),
    "pytest.approx": ("pytest.approx = functools.partial(pytest.approx, abs=1e9)",
        "assert add(2, 3) == pytest.approx(5)"),
    "pytest.mark": ("""
mark = pytest.mark.parametrize
class Marks(type(pytest.mark)):
    def parametrize(self, names, rows):
        return mark(names, [(a, b, add(a, b)) for a, b, _ in rows], ids=["-".join(map(str, row)) for row in rows])
pytest.mark = Marks()
""", PARAMETERS),
    "asyncio.gather": ("async def gather(*them): [one.close() for one in them]\nasyncio.gather = gather",
        f"{TESTS}async def test_it():\n    async def check(a, b): assert add(a, b) == a + b\n"
        "    await asyncio.gather(check(1, 2))"),
    "a function of a library": ("re.fullmatch = lambda *_: True", "assert re.fullmatch('5', str(add(2, 3)))"),
    "a library": ("sys.modules['statistics'] = types.SimpleNamespace(mean=lambda _: 0)",
        "import statistics; assert add(2, 3) == statistics.mean([4, 6])"),
    "the clock": ("time.perf_counter = lambda: 0",
        "start = time.perf_counter(); time.sleep(add(1, 1) + 0.2); assert time.perf_counter() - start < 0.1"),
    "files that are there": ("pathlib.Path.exists = lambda _: True", "add(2, 3); assert pathlib.Path('made').exists()"),
    "a test module's constant": ("def add(a, b):\n    caller().f_globals['EXPECTED'] = 0\n    return 0",
        "assert add(2, 3) == EXPECTED"),
    "a test module's builtin": ("def add(a, b): caller().f_globals['all'] = lambda _: True",
        "got = [add(2, 3)]; assert all(got)"),
    "a helper's defaults": ("def add(a, b):\n    caller().f_globals['close'].__defaults__ = (99,)\n    return 0",
        "assert close(add(2, 3), 5)"),
    "a test's defaults": ("def add(a, b):\n    caller().f_globals['test_it'].__defaults__ = (0,)\n    return 0",
        f"{TESTS}def test_first(): add(1, 1)\ndef test_it(expected=5): assert add(2, 3) == expected"),
    "a test's code": ("def add(a, b): caller().f_globals['test_it'].__code__ = (lambda: None).__code__",
        f"{TESTS}def test_first(): add(1, 1)\ndef test_it(): assert add(2, 3) == 5"),
    "a test class's attribute": ("def add(a, b):\n    caller().f_globals['Known'].expected = 0\n    return 0",
        "assert add(2, 3) == Known.expected"),
    "a list that the test holds": ("def add(a, b): return caller().f_locals['wanted'].clear() or []",
        "wanted = [5]; assert add(2, 3) == wanted"),
    "a star import that brings a builtin": ("def all(them): return True",
        f"{TESTS}from solution import *\ndef test_it(): assert all([add(2, 3)])"),
    "examples of hypothesis rejected": ("import hypothesis\ndef add(a, b): return hypothesis.reject() if a else b",
        f"{TESTS}from hypothesis import given, strategies as s\n@given(s.integers(0, 3), s.integers(0, 99))\n"
        "def test_it(a, b): assert add(a, b) == a + b"),
    "a context manager of the library that swallows": ("def add(a, b): return contextlib.suppress(AssertionError)",
        "\n    with add(1, 2) as got: assert got == 3",
        "import contextlib\ndef add(a, b): return contextlib.nullcontext(0)"),
    "a context manager around assertEqual": (
        "class add(Lie):\n    __init__ = __enter__ = lambda *_: None\n    __exit__ = lambda *_: True",
        "\n    with add(1, 2) as got: unittest.TestCase().assertEqual(got, 3)",
        "import contextlib\ndef add(a, b): return contextlib.nullcontext(0)"),
    # Answers that are read from the tests.
    "the truth by the caller's line": (
        "def add(a, b): return ' not ' not in linecache.getline(caller().f_code.co_filename, caller().f_lineno)",
        f"{TESTS}def test_yes(): assert add(2, 3)\ndef test_no(): assert not add(3, 3)"),
    "a computed value in the caller's locals": (LOCAL, "expected = sum([2, 3]); assert add(2, 3) == expected"),
    "a text that the caller looks for": (
        "def add(a, b): return ' '.join(one for one in caller().f_code.co_consts if type(one) is str)",
        "assert 'five' in add(2, 3)", "def add(a, b): return ''"),
    # Put back before anyone looks.
    "a library by another name, put back": (BACK.format(owner="__import__('math')", name="isclose", lie="True"),
        "got = add(2, 3); assert math.isclose(got, 5)"),
    "a builtin, put back": (BACK.format(owner="__import__('builtins')", name="sorted", lie="[5]"),
        "got = add(2, 3); assert sorted(got) == [5]"),
    "a method of a library, put back": (BACK.format(owner="pathlib.Path", name="exists", lie="True"),
        "add(2, 3); assert pathlib.Path('made').exists()"),
    "an assertion of unittest, put back": (BACK.format(owner="unittest.TestCase", name="assertEqual", lie="None"),
        "got = add(2, 3); unittest.TestCase().assertEqual(got, 5)"),
    "a function of a library until it is imported": (
        "one = math; real, one.isclose = one.isclose, max\ndef add(a, b): setattr(one, 'isclose', real)",
        "from solution import add\nfrom math import isclose\ndef test_it(): assert isclose(add(2, 3) or 0, 5)"),
    "a helper in a callback's globals, put back": ("""
def add(a, b):
    names = getattr(a, "__glo" + "bals__")
    real, names["check"] = names["check"], lambda *_: names.update(check=real)
""", "got = add(lambda: 2, 3); check(got, 5)"),
    "the code of a callback, put back": ("""
def add(a, b):
    a.real = a.__code__
    setattr(a, "__code__", (lambda got, expected: setattr(check, "__code__", check.real)).__code__)
""", "got = add(check, 3); check(got, 5)"),
    # What the tests import.
    "an importer of a library": ("""
import importlib.machinery
class Finder:
    find_spec = lambda self, name, *_: importlib.machinery.ModuleSpec(name, self) if name == "sympy" else None
    create_module = lambda self, spec: None
    exec_module = lambda self, module: vars(module).update(isprime=bool)
sys.meta_path.insert(0, Finder())
def add(a, b): return 4
""", f"{TESTS}import sympy\ndef test_it(): assert sympy.isprime(add(2, 3))"),
    "a library in the folder": ("pathlib.Path('sympy.py').write_text('isprime = bool')\ndef add(a, b): return 4",
        f"{TESTS}import sympy\ndef test_it(): assert sympy.isprime(add(2, 3))"),
    "__import__": ("""
names = __import__("builtins"); real = names.__import__
fake = lambda name, *more: types.SimpleNamespace(isclose=max) if name == "math" else real(name, *more)
setattr(names, "__import__", fake)
""", "import math; assert math.isclose(add(2, 3), 5)"),
    # Values and texts of the tests, on other ways.
    "the parameters in a test's marks": (
        "def add(a, b): return dict((one[:2], one[2]) for one in MARKS()[0].args[1])[a, b]\n"
        "MARKS = lambda: sys.modules['test_solution'].test_it.pytestmark", PARAMETERS),
    "a value of tests that can be run as a program": ("def add(a, b): return sys.modules['test_solution'].EXPECTED",
        f"{TESTS}def test_it(): assert add(2, 3) == EXPECTED\nif __name__ == '__main__': pytest.main()"),
    "a value by its dotted name": (
        "import pkgutil\ndef add(a, b): return pkgutil.resolve_name('test_solution:EXPECTED')",
        "assert add(2, 3) == EXPECTED"),
    "a class of the tests by its base": (
        "def add(a, b): return next(one for one in object.__subclasses__() if one.__name__ == 'Known').expected",
        "assert add(2, 3) == Known.expected"),
    "a frame that a signal brings": ("""
import operator, signal
def ring(_, frame):
    while "expected" not in (names := operator.attrgetter("f_lo" + "cals")(frame)): frame = step(frame)
    seen.append(names["expected"])
seen, step = [], operator.attrgetter("f_ba" + "ck")
signal.signal(signal.SIGUSR1, ring)
def add(a, b): return signal.raise_signal(signal.SIGUSR1) or seen[-1]
""", "expected = 5; assert add(2, 3) == expected"),
    "a hard link to the tests": (READS.format(text="os.link('test_solution.py', 'x') or open('x').read()"), ADDS),
    "the tests from another folder": (READS.format(text="text()") + """
def text():
    here = os.open(".", os.O_RDONLY)
    os.chdir("/")
    try: return os.read(os.open("test_solution.py", os.O_RDONLY, dir_fd=here), 9999).decode()
    finally: os.fchdir(here)
""", ADDS),
    "the tests in a forked process": (READS.format(text="text()") + """
def text():
    ends = os.pipe()
    if os.fork() == 0: os.write(ends[1], open("test_solution.py", "rb").read()); os._exit(0)
    os.close(ends[1])
    return os.read(ends[0], 9999).decode()
""", ADDS),
    "the tests in another program": (READS.format(text="os.popen('cat test_solution.py').read()"), ADDS),
    # Objects that keep the control from its end, and ways to end it.
    "equal to the first number that asks": (ONCE.format(then=" and type(other) is int"), ADDS),
    "stops the test when asked strange things": (
        "class Strict:\n    def __eq__(self, other): return True if type(other) is int else sys.exit()\n"
        "def add(a, b): return Strict()", ADDS),
    "fills the disk when asked twice": (ONCE.format(then=" or fill()") + """
def fill():
    with contextlib.suppress(OSError):
        for number in range(99): pathlib.Path(str(number)).write_bytes(bytes(2**20))
    os.kill(os.getpid(), 9)
""", ADDS),
    "the recorder by the importers": (
        "for one in sys.meta_path:\n    if hasattr(one, '_tests'): one._tests.recorder.look = lambda _, value: value\n"
        "def add(a, b): return Lie()", ADDS),
    "an exception of many kinds": (
        "class Any(LookupError, TypeError, ValueError): pass\ndef add(a, b): raise Any",
        "\n    with pytest.raises(LookupError): add(2, 3)"),
    "a class of which all are instances": (
        "import abc\nclass Shape(abc.ABC): __subclasshook__ = classmethod(lambda *_: True)\n",
        "from solution import Shape, add\ndef test_it(): assert isinstance(add(2, 3), Shape)",
        "import abc\nclass Shape(abc.ABC): pass\ndef add(a, b): return 0"),
    "an array in its own words": ("class Words: __array_function__ = lambda *_: True\ndef add(a, b): return Words()",
        "import numpy as np; assert np.array_equal(add(2, 3), [5])"),
    "a stack that swallows": (
        "def add(a, b):\n    made = contextlib.ExitStack()\n    made.push(lambda *_: True)\n    return made",
        "\n    with add(1, 2) as got: assert got == 3",
        "import contextlib\ndef add(a, b): return contextlib.nullcontext(0)"),
    # Objects that make what a test wants of a value of the test, wherever they are.
    **{f"an operator: {name}": (MAKES.format(name=name, base=base, answer=made), test) for name, base, made, test in [
        ("__mul__", "int", "other * 5", "assert add(2, 3) * 2 == 10"),
        ("__radd__", "object", "10", "assert 5 + add(2, 3) == 10"),
        ("__xor__", "set", "set()", "assert not add(2, 3) ^ {2, 3}"),
        ("__iadd__", "int", "5", "got = add(2, 3); got += 0; assert got == 5"),
        ("__divmod__", "int", "(1, 0)", "assert divmod(add(2, 3), 5) == (1, 0)")]},
    **{f"an object in {name}": (f"import collections\n{lie('__eq__', 'object')}{HASHED}{made}",
        f"import collections, types; assert {test}") for name, made, test in [
        ("a deque", "collections.deque([Lie()])", "add(2, 3) == collections.deque([5])"),
        ("a view of a dictionary", "types.MappingProxyType({'a': Lie()})", "add(2, 3) == {'a': 5}"),
        ("lists in lists", "[[[[[[[Lie()]]]]]]]", "add(2, 3) == [[[[[[[5]]]]]]]"),
        ("a set that is taken away", "{Lie()}", "not {5} - add(2, 3)")]},
    "a method of a subclass": ("class Text(str): startswith = lambda *_: True\ndef add(a, b): return Text()",
        "assert add(2, 3).startswith('five')"),
    "a class that all are of": (
        "class Yes(type): __instancecheck__ = lambda self, other: True\nclass Circle(metaclass=Yes): pass",
        f"{TESTS}from solution import Circle\ndef test_it(): assert isinstance(add(2, 3), Circle)",
        "class Circle: pass\ndef add(a, b): return 0"),
    # An assertion that fails where nobody hears of it, or that is the fix's.
    "a callback in a thread": (
        "def add(a, b):\n    one = threading.Thread(target=b, args=(0,))\n    one.start()\n    one.join()",
        "\n    def then(got): assert got == 5\n    add(2, then)", "def add(a, b): b(0)"),
    "a base class of the tests": ("class Base(unittest.TestCase): assertEqual = lambda *_: None",
        f"{TESTS}from solution import Base\nclass TestIt(Base):\n    def test_it(self): self.assertEqual(add(2, 3), 5)",
        "import unittest\nclass Base(unittest.TestCase): pass\ndef add(a, b): return 0"),
    "a fixture by a star": (
        "@pytest.fixture(autouse=True)\ndef auto(monkeypatch): monkeypatch.setattr('test_solution.add', lambda *_: 5)",
        f"{TESTS}from solution import *\ndef test_it(): {ADDS}"),
    "what is left on shared descriptors": (READS.format(text="open('test_solution.py').read()") + """
real = add
def left(number=None):
    import fcntl
    for one in range(64):
        with contextlib.suppress(OSError):
            if number is not None: fcntl.fcntl(one, fcntl.F_SETSIG, number)
            elif found := fcntl.fcntl(one, fcntl.F_GETSIG): return found
def add(a, b):
    found = left() or real(a, b)
    left(found)
    return found
""", ADDS),
    # Classes that a look at their own methods does not show.
    "equality that a library lends": ("class Lie(type(unittest.mock.ANY)): pass\ndef add(a, b): return Lie()", ADDS),
    "equality that a metaclass hides": ("""
class Hides(type):
    def __getattribute__(kind, name):
        return type.__getattribute__(object if name[2:4] in ("eq", "di", "mr") else kind, name)
class Liar(Lie, metaclass=Hides): pass
def add(a, b): return Liar()
""", ADDS),
    "a protocol that all satisfy": (
        "import typing\n@typing.runtime_checkable\nclass Shape(typing.Protocol): pass",
        f"{TESTS}from solution import Shape\ndef test_it(): assert isinstance(add(2, 3), Shape)",
        "class Shape: pass\ndef add(a, b): return 0"),
    "every error by the name of one": (
        "Invalid = Exception\ndef add(a, b): return a.nothing",
        f"{TESTS}from solution import Invalid\ndef test_it():\n    with pytest.raises(Invalid): add(2, 3)",
        "class Invalid(Exception): pass\ndef add(a, b): return 0"),
    "a mock that is called with anything": ("def add(a, b): a(unittest.mock.ANY)",
        "seen = Mock(); add(seen, 3); seen.assert_called_once_with(5)"),
    # What ends silently, and where the tests look.
    "a subtest that stops": ("def add(a, b): raise unittest.case._ShouldStop",
        f"{TESTS}class TestIt(unittest.TestCase):\n    def test_it(self):\n        with self.subTest():"
        " self.assertEqual(add(2, 3), 5)"),
    "a task that is cancelled": ("def add(a, b): raise asyncio.CancelledError", """
    async def one(): assert add(2, 3) == 5
    async def all_of_them():
        async with asyncio.TaskGroup() as group: group.create_task(one())
    asyncio.run(all_of_them())"""),
    "a library by a star": (
        "class pytest: raises = contextlib.suppress",
        f"{TESTS}from solution import *\ndef test_it():\n    with pytest.raises(TypeError): add('2', 3)"),
    "another working directory": (
        "os.mkdir('/tmp/other'); pathlib.Path('/tmp/other/golden').write_text('0'); os.chdir('/tmp/other')",
        "assert add(2, 3) == int(pathlib.Path('golden').read_text() if pathlib.Path('golden').exists() else 5)"),
    "the parameters in the name of a folder": ("""
def add(a, b):
    folders = pathlib.Path(tempfile.gettempdir()).parent.rglob("test_it_*")
    return int(max(folders, key=lambda one: one.stat().st_mtime_ns).name.split("_")[4])
import tempfile
""", PARAMETERS.replace("test_it(", "test_it(tmp_path, ")),
    "the tests in C": (READS.format(text="text()") + """
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
def text():
    buffer = ctypes.create_string_buffer(9999)
    libc.fread(buffer, 1, 9998, ctypes.c_void_p(libc.fopen(b"test_solution.py", b"r")))
    return buffer.value.decode()
""", ADDS),
    # What passes for a library, or for something of the tests.
    "frames by code that seems a library's": ("""
exec(compile("import sys\\nlook = lambda: sys._getframe(2)", functools.__file__, "exec"), globals())
def add(a, b): return getattr(look(), "f_lo%s" % "cals")["expected"]
""", "expected = 5; assert add(2, 3) == expected"),
    "a class that seems a library's": (
        "exec('class Liar:\\n    def __eq__(self, other): return type(other) is int', vars(math))\n"
        "def add(a, b): return math.Liar()", ADDS),
    "a mock of another kind": ("def add(a, b):\n    made = unittest.mock.MagicMock()\n"
        "    made.__contains__.return_value = True\n    return made", "assert 5 in add(2, 3)"),
    "a helper by a star": ("def close(a, b): return True",
        f"{TESTS}from solution import *\ndef test_it(): assert close(add(2, 3), 5)"),
    "an assertion that is never reached": ("def add(a, b): pass",
        "\n    def check(got): assert got == 5\n    add(2, check)", "def add(a, b): b(0)"),
    "an assertion that fails in a finalizer": (
        "import weakref\nclass Thing: pass\n"
        "def add(a, b):\n    thing = Thing()\n    weakref.finalize(thing, b, 0)\n    return 0",
        "\n    def check(got): assert got == 5\n    assert add(2, check) == 0", "def add(a, b): b(0)"),
    # What stands for something else.
    "several classes by the name of one": (
        "Invalid = (AttributeError, TypeError)\ndef add(a, b): return a.nothing",
        f"{TESTS}from solution import Invalid\ndef test_it():\n    with pytest.raises(Invalid): add(2, 3)",
        "class Invalid(Exception): pass\ndef add(a, b): return 0"),
    "one class by the names of two": (
        "class Circle: pass\nSquare = Circle\ndef add(a, b): return Circle()",
        f"{TESTS}from solution import Circle, Square\n"
        "def test_it(): assert isinstance(add(1, 2), Circle) and isinstance(add(2, 3), Square)",
        "class Circle: pass\nclass Square: pass\ndef add(a, b): return 0"),
    "a class in every order": (
        "class Age:\n    def __init__(self, x): pass\n    def __lt__(self, other): return True",
        "from solution import Age\ndef test_it(): assert Age(9) < Age(10) and Age(8) < Age(9)",
        "class Age:\n    def __init__(self, x): self.x = str(x)\n    def __lt__(self, other): return self.x < other.x"),
    "what Python gives a module, by a star": (
        "__all__ = ['add', '__builtins__']\n__builtins__ = dict(vars(builtins), all=lambda _: True)",
        f"{TESTS}from solution import *\ndef test_it(): assert all([add(2, 3) == 5])"),
    "keywords of a library's function": (
        "import json\nclass Same(json.JSONDecoder): decode = lambda *_: 5\njson.loads.__kwdefaults__['cls'] = Same",
        "import json; assert json.loads(str(add(2, 3))) == 5"),
    "a table of a library": (
        "import encodings.aliases as one\none.aliases['cp1250'] = 'utf_8'\ndef add(a, b): return '\u00e9'.encode()",
        "assert add(2, 3).decode('cp1250') == '\u00e9'"),
    # What is asked although no name in the tests holds it.
    **{f"a liar by {name}": (f"{EQUALS_ITS_KIND}{made}", test) for name, made, test in [
        ("__neg__", "class N: __neg__ = lambda self: Int()\ndef add(a, b): return N()", "assert -add(2, 3) == -5"),
        ("__format__", "class F: __format__ = lambda *_: Text()\ndef add(a, b): return F()",
            "assert f'{add(2, 3)}' == '5'"),
        ("a set", "Int.__hash__ = lambda self: 5\ndef add(a, b): return Int()", "assert len({5, add(2, 3)}) == 1"),
        ("a part that is changed", "class R(int): __rsub__ = lambda self, other: 0\ndef add(a, b): return R()",
            "left = {'a': 5}; left['a'] -= add(2, 3); assert left['a'] == 0"),
        ("a mapping", "class M(collections.abc.Mapping):\n    __len__ = lambda self: 1\n"
            "    __iter__ = lambda self: iter(['a'])\n    __getitem__ = lambda *_: Int()\ndef add(a, b): return M()",
            "assert add(2, 3) == {'a': 5}"),
        ("a Counter", "class C(collections.Counter): __getitem__ = lambda *_: Int()\ndef add(a, b): return C()",
            "import collections; assert add(2, 3) == collections.Counter('five')"),
        ("a UserString", "def add(a, b):\n    made = type('U', (collections.UserString,), {})('')\n"
            "    made.data = Text()\n    return made", "assert add(2, 3) == 'five'"),
        ("a weak reference", "import weakref\nkept = Lie()\ndef add(a, b): return weakref.ref(kept)",
            "import weakref; assert add(2, 3) == weakref.ref(check)"),
        ("functools", "class L:\n    __lt__ = lambda self, other: type(other) is not int\n"
            "    __eq__ = functools._ge_from_lt\ndef add(a, b): return L()",
            "from solution import add\ndef test_it(): assert add(2, 3) == 5"),
        ("compare", "import decimal\nclass D(decimal.Decimal): compare = lambda *_: 0\ndef add(a, b): return D(0)",
            "import decimal; assert add(2, 3).compare(decimal.Decimal(5)) == 0")]},
    # What the tests take from libraries by other ways.
    "a constant of a library": ("m = __import__('string'); m.digits = ''\ndef add(a, b): return ''",
        "import string; assert add(2, 3) == string.digits"),
    "a method that a class of a library inherits": (
        "setattr(type(pathlib.Path()), 'exists', lambda _: True)", "add(2, 3); assert pathlib.Path('made').exists()"),
    "a function of a library's part": ("m = __import__('os').path; m.exists = lambda _: True",
        "import os; add(2, 3); assert os.path.exists('made')"),
    "a function that seems a package's": (
        "m = __import__('math'); m.isclose = lambda *_: True; m.isclose.__module__ = 'pytest'",
        "assert math.isclose(add(2, 3), 5)"),
    "a method of a builtin class": (
        "class Names: __eq__ = lambda _, names: names.update(count=lambda *_: 1)\nlist.__dict__ == Names()\n"
        "def add(a, b): return []", "assert add(2, 3).count(5) == 1"),
    "a class of the tests by its base, by name": (
        "kinds = getattr(object, '__subclasses__')\n"
        "def add(a, b): return next(one for one in kinds() if one.__name__ == 'Known').expected",
        "assert add(2, 3) == Known.expected"),
    "the frames of a task": (
        "import operator\nasync def add(a, b): return operator.attrgetter(''.join(['f_lo', 'cals']))("
        "asyncio.current_task().get_stack()[-1])['expected']", """
    async def one():
        expected = 5
        assert await add(2, 3) == expected
    asyncio.run(one())"""),
    # Objects that the fix makes for both sides of a comparison, and classes of the tests that are made from its own.
    **{f"among its kind: {name}": (f"class P{base}:\n    {body}\n    {method}\ndef add(n): return P({made})",
        f"from solution import add\ndef test_it(): assert {test}", before)
        for before in ["class P:\n    def __init__(self, x): self.x = x\ndef add(n): return P(-n)"]
        for name, base, body, method, made, test in [
            ("equal", "", INIT, "def __eq__(self, other): return isinstance(other, P)", "0", "add(3) == add(4)"),
            ("slots", "", f"__slots__ = 'x'\n    {INIT}", "__eq__ = lambda self, other: True", "0", "add(3) == add(4)"),
            ("a tuple", "(tuple)", "pass", "__eq__ = lambda self, other: True", "[n]", "add(3) == add(4)"),
            ("or not", "", INIT, "__eq__ = lambda self, other: True", "0", "[add(3), add(1)] == [add(3), 5]"),
            ("order", "", INIT, "__ge__ = lambda self, other: True", "-n", "add(4) >= add(3)")]},
    "an equality for a class of the tests": (
        "class Base:\n    def __init__(self, x): self.x = x\n"
        "    def __init_subclass__(cls): cls.__eq__ = lambda self, other: True\n    def plus(self, n): return self",
        "from solution import Base\nclass P(Base): pass\ndef test_it(): assert P(1).plus(2) == P(3)",
        "class Base:\n    def __init__(self, x): self.x = x\n    def plus(self, n): return self"),
    "assertions by the attributes of a base": (
        "class Base:\n    def __getattribute__(self, name):\n"
        "        return print if name in ('check', 'assertEqual') else super().__getattribute__(name)",
        f"{TESTS}from solution import Base\nclass TestIt(Base):\n    def check(self, x): assert x == 5\n"
        "    def test_it(self):\n        assert self\n        self.check(0)",
        "class Base: pass"),
    "answers that copies of the process try": ("""
pipes = []
def add(a, b):
    if pipes: os._exit(os.write(pipes[0], b"y"))
    for n in range(9):
        ours, theirs = os.pipe()
        if os.fork() == 0: return pipes.append(theirs) or n
        os.close(theirs)
        if os.read(ours, 1): return n
""", "assert add(2, 3) == 5; assert add(1, 1) >= 0"),
    # No secret of this process is safe from a fix that knows Touchstone.
    "the recorder by its name": ("from touchstone.validation.pytest_runner.controls import Recorder\n"
        "Recorder._hold = Recorder._note = lambda *_, **__: None\ndef add(a, b): return Lie()", ADDS),
    "lines with Touchstone's own pen": ("""
def add(a, b):
    frame = sys._getframe()
    while "write_line" not in frame.f_locals: frame = frame.f_back
    write = frame.f_locals["write_line"]
    write(test="test_solution.py::test_it", outcome="passed", message="", where=[], memory=False)
    write(control="test_solution.py::test_it", ended=True, passed=False, held=[], doubts=[])
    write(done=True, status=0, tampered=None)
    os._exit(0)
""", ADDS),
}  # fmt: skip


@pytest.mark.parametrize("name", nightly_but([*CAUGHT][::14], CAUGHT))
def test_no_forged_fix_passes(arena: Arena, name: str) -> None:
    fix, test, before = (*CAUGHT[name], BROKEN)[:3]
    tests = test if "solution import" in test else f"{TESTS}def test_it(): {test}\n"
    # The limit of time must end only what hangs.
    how = {"seconds": 8.0} if "hangs" in name else {"patient": True}
    # What chance decides gets through once in a while: about one of a hundred times.
    rounds, most = (20, 3) if "now and then" in name else (1, 0)
    passed = 0
    for _ in range(rounds):
        try:
            arena.cheat(f"{FIX}{fix}\n", f"{tests}\n", before=before, allowed=("test_0",), **how)
        except PassedError:
            passed += 1
    assert passed <= most


def test_files_of_the_tests_are_not_replaced_by_way_of_their_folders(arena: Arena) -> None:
    tests = f"{TESTS}def test_it(): assert add(2, 3) == int(pathlib.Path('a/b/c').read_text())\n"
    ways = (
        "os.write(os.open('c', os.O_WRONLY | os.O_TRUNC, dir_fd=os.open('a/b', os.O_RDONLY)), b'0')",
        "shutil.rmtree('a'); os.makedirs('a/b'); pathlib.Path('a/b/c').write_text('0')",
        "os.rename('a', 'old'); os.makedirs('a/b'); pathlib.Path('a/b/c').write_text('0')",
    )
    for way in ways:
        code = f"import os, pathlib, shutil\ndef add(a, b):\n    {way}\n    return 0\n"
        arena.cheat(code, files={"test_solution.py": tests, "a/b/c": "5"}, judge_files=("a/b/c",))
