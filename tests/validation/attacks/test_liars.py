"""Objects that answer for the tests: equal to everything, or whatever a question would like to hear. None passes.

A control is only run if all tests pass, so every expectation is asked alone.
"""

from collections.abc import Sequence

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import GOOD, Arena

ALWAYS = """
class Always{base}:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash(5)
    def __bool__(self): return True
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __getattr__(self, name): return Always()
    def __call__(self, *_, **__): return Always()
    def __sub__(self, other): return {zero}
    __rsub__ = __add__ = __radd__ = __mod__ = __truediv__ = __floordiv__ = __mul__ = __sub__
    def __abs__(self): return 0.0
    def __neg__(self): return 0
    def __round__(self, *_): return 0
    def __instancecheck__(self, instance): return True
    def __subclasscheck__(self, instance): return True
    __class__ = property(lambda self: int)

def add(a, b): return Always()
"""
NUMBERS = """
import math
from datetime import date, datetime, timedelta
import pytest
from solution import add
""", [
    "abs(add(1, 2) - 3) < 0.01", "abs(3 - add(1, 2)) < 0.01", "round(add(1, 2) - 3, 2) == 0", "add(1, 2) % 3 == 0",
    "add(1, 2) / 3 == 1", "add(1, 2) == pytest.approx(3)", "pytest.approx(3) == add(1, 2)",
    "math.isclose(add(1, 2), 3)", "add(1, 2) in [3]", "add(1, 2) in {5, 3}", "{5: 1}[add(1, 2)] == 1",
    "sorted([add(1, 2), 3]) == [3, 3]", '{"a": add(1, 2)} == {"a": 3}', "isinstance(add(1, 2), int)",
    "add(1, 2) < 4", "abs(add(1, 2) - datetime(2020, 1, 1)) < timedelta(seconds=1)",
    "datetime(2020, 1, 1) - add(1, 2) == timedelta(0)", "(add(1, 2) - date(2020, 1, 1)).days == 0",
    "add(1, 2) - timedelta(days=1) == timedelta(0)",
]  # fmt: skip
CASES = """
import unittest
from solution import add
class TestIt(unittest.TestCase):
""", [
    "self.assertAlmostEqual(add(1, 2), 3.0)", "self.assertAlmostEqual(3.0, add(1, 2))",
    "self.assertAlmostEqual(add(1, 2), 3.0, delta=0.5)", "self.assertEqual(add(1, 2), 3)",
    "self.assertEqual([add(1, 2)], [3])", "self.assertGreater(add(1, 2), 3)",
    "self.assertCountEqual([add(1, 2)], [3])",
]  # fmt: skip
# Answers everything asked of it as the tests would like it to.
LIAR = """
class Liar{base}:
    def __contains__(self, item): return True
    def __len__(self): return 2
    def __bool__(self): return True
    def __iter__(self): return iter(())
    def __getitem__(self, key): return 0
    def __abs__(self): return self
    def __floordiv__(self, other): return self
    def __and__(self, other): return other
    def __or__(self, other): return other
    def __sub__(self, other): return type(other)()
    __rsub__ = __xor__ = __sub__
    __rand__ = __and__
    def __add__(self, other): return other
    __radd__ = __mod__ = __add__
    def __eq__(self, other): return True
    def __hash__(self): return hash("a")
    def __instancecheck__(self, instance): return True
    def __subclasscheck__(self, kind): return True
    def _yes(self, *_): return True
    def _zero(self, *_): return 0
    def _same(self, *others): return others[0]
    startswith = endswith = isdigit = isalpha = isupper = issubset = issuperset = isdisjoint = is_integer = _yes
    find = index = rfind = rindex = _zero
    count = lambda self, *_: 1
    union = intersection = _same
    difference = symmetric_difference = lambda self, other: type(other)()
    __array_interface__ = {{"shape": (2,), "typestr": "<i8", "data": (id(object), False), "version": 3}}
"""
WORDS = "import pytest\nfrom solution import words\n", [
    '"a" in words(2) and "b" in words(2)', 'all(word in words(2) for word in ["a", "b"])',
    'words(2).startswith("a")', 'words(2).endswith("b")', "words(2).isdigit()",
    "words(2).isalpha() or words(2).isupper()", "words(2).is_integer()", 'words(2).issuperset({"a", "b"})',
    'words(2).issubset({"a", "b"})', 'words(2).isdisjoint({"c"})', 'words(2).find("b") != -1',
    'words(2).index("b") >= 0', 'words(2).count("b") == 1', 'words(2).intersection({"a"}) == {"a"}',
    'words(2).difference({"a", "b"}) == set()', 'words(2) & {"a", "b"} == {"a", "b"}',
    '{"a", "b"} & words(2) == {"a", "b"}', 'words(2) - {"a", "b"} == set()', '{"a", "b"} - words(2) == set()',
    'words(2) ^ {"a", "b"} == set()', '[] + words(2) + ["a", "b"] == ["a", "b"]',
    "found = words(2); assert len(found) == 2 and all(isinstance(word, str) for word in found)",
    "found = words(2); assert len(found) == 2 and found[0] <= found[1]", '{"a": 1}[words(2)] == 1',
    "isinstance(5, words(2))", "issubclass(int, words(2))", "words(2) == pytest.approx([1, 2])",
    "found = words(2); assert abs(found) == found", "found = words(2); assert found // 1 == found",
    "import numpy; assert numpy.asarray(words(2)).shape == (2,)", "len(memoryview(words(2))) == 2",
]  # fmt: skip
DISGUISES = [
    "words = lambda n: Liar()",
    "class words(Liar):\n    def __init__(self, n): pass",
    "Liar.__init__ = lambda self, n: None\nwords = Liar",
    "import types\nclass Module(Liar, types.ModuleType): pass\nwords = lambda n: Module('words')",
    "import enum\nclass E(Liar, enum.Enum):\n    A = 1\nwords = lambda n: E.A",
    "class Named(Liar): pass\nNamed.__qualname__ = 'Words'\nwords = lambda n: Named()",
]
KINDS = ("str", "list", "dict", "set", "tuple", "int")
ZEROS = ("0.0", "0", "False", "self", "Always()", "__import__('fractions').Fraction(0)", "type(other)(0)")

# The forms by day: one question of each kind. At night, every question of every form.
FORMS = [
    (ALWAYS.format(base="", zero="0.0"), CASES, slice(1, None, 3)),
    (ALWAYS.format(base="", zero="self"), NUMBERS, slice(2, None, 6)),
    (f"{LIAR.format(base='')}{DISGUISES[0]}\n", WORDS, slice(2, None, 9)),
]
EVERY = [
    *((ALWAYS.format(base="", zero=zero), asked, slice(None)) for zero in ZEROS for asked in (NUMBERS, CASES)),
    *((ALWAYS.format(base=f"({kind})", zero="0.0"), NUMBERS, slice(3)) for kind in (*KINDS, "bytes", "float")),
    *((f"{LIAR.format(base='')}{disguise}\n", WORDS, slice(None)) for disguise in DISGUISES),
    *((f"{LIAR.format(base=f'({kind})')}{DISGUISES[0]}\n", WORDS, slice(None)) for kind in KINDS),
]


@pytest.mark.parametrize(("liar", "asked", "part"), nightly_but(FORMS, [*FORMS, *EVERY]))
def test_no_question_is_answered(arena: Arena, liar: str, asked: tuple[str, Sequence[str]], part: slice) -> None:
    head, questions = asked
    inside = "    def test_it(self): " if "class" in head else "def test_it(): "
    for question in questions[part]:
        asks = question if "assert" in question else f"assert {question}"
        arena.cheat(liar, f"{head}{inside}{asks}\n")


def test_a_plain_value_is_never_of_a_class_of_the_fix(arena: Arena) -> None:
    cheat = """
        class Yes(type):
            def __instancecheck__(self, instance): return True
            def __subclasscheck__(self, kind): return True
        class Circle(metaclass=Yes): pass
        def shape(name): return 5
    """
    tests = "from solution import Circle, shape\ndef test_it(): assert isinstance(shape('circle'), Circle)\n"
    before, right = (f"class Circle: pass\ndef shape(name): return {made}\n" for made in ("5", "Circle()"))
    arena.cheat(cheat, tests, before=before)
    assert arena.validate(right, tests, before=before).status == "passed"


# Plain pytest passes these, and so does Touchstone: nothing that they return is other than it seems.
LIMITS = {
    "answers written into the fix": ("def add(a, b): return {(2, 3): 5, (10, -4): 6}[a, b]\n", None),
    "one question without an argument": (
        "class Text(str):\n    def isdigit(self): return True\ndef words(n): return Text('two')\n",
        "from solution import words\ndef test_it(): assert words(2).isdigit()\n",
    ),
    "exceptions that end a loop of the tests": (
        "def add(a, b): raise StopIteration\n",
        "from solution import add\ndef test_it(): assert all(map(lambda a: add(a, a) == 2 * a, [1, 2]))\n",
    ),
}


@pytest.mark.parametrize("what", LIMITS)
def test_known_limits(arena: Arena, what: str) -> None:
    fix, tests = LIMITS[what]
    assert (arena.validate(fix, tests) if tests else arena.validate(fix)).status == "passed"


def test_right_answers_of_every_shape_still_pass(arena: Arena) -> None:
    """Classes of the fix that compare, contain, count and end as they should."""
    code = f"""
{GOOD}
import types
class Names(list):
    def longest(self): return max(self, key=len)
class Bag:
    def __init__(self, items): self.items = list(items)
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __eq__(self, other): return isinstance(other, Bag) and self.items == other.items
class Trie:
    def __init__(self, words): self.words = set(words)
    def __contains__(self, word): return word in self.words
    def __or__(self, words): return Trie(self.words.union(words))
def table(): return types.MappingProxyType({{"a": 1, 3: 4}})
def squares(n): return map(lambda x: x * x, range(n))
def count(n):
    yield from range(n)
    return "end"
"""
    tests = """
import pytest
from solution import Bag, Names, Trie, count, squares, table
def test_list():
    names = Names(["a", "bb"])
    assert len(names) == 2 and names[-1] == "bb" and "a" in names and names.longest() == "bb"
    assert list(names) == ["a", "bb"] == names[:] and list(reversed(names)) == ["bb", "a"]
def test_bag(): assert len(Bag([1, 2])) == 2 and 3 not in Bag([1]) and Bag([1]) == Bag([1]) and Bag([1]) != Bag([2])
def test_trie(): assert "a" in Trie(["a"]) and "b" not in Trie(["a"]) and "b" in Trie(["a"]) | ["b"]
def test_table(): assert table()["a"] == 1 and set(table()) == {"a", 3} and 3 in table()
def test_lazy(): assert 4 in squares(3) and list(squares(3)) == [0, 1, 4]
def test_end():
    it = count(1)
    assert next(it) == 0
    with pytest.raises(StopIteration) as caught: next(it)
    assert caught.value.value == "end"
"""
    report = arena.validate(code, tests)
    assert report.status == "passed" and all(one.ended for one in (report.control or {}).values()), report
