"""Answers of a fix that steer the tests: exceptions that end loops, and objects that answer in their place."""

import textwrap
from pathlib import Path

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import GOOD, Arena, validate_fix
from touchstone.validation.protocol import Job, Problem, Tree

LOOPS = """
import asyncio, itertools
from concurrent.futures import ThreadPoolExecutor
import pytest
from solution import add

PAIRS = [(1, 2), (3, 4)]
ONE_THREAD = ThreadPoolExecutor(1)

class Sums:
    def __init__(self): self.left = iter(PAIRS)
    def __iter__(self): return self
    def __next__(self): return add(*next(self.left))

class LaterSums:
    def __init__(self): self.left = list(PAIRS)
    def __aiter__(self): return self
    async def __anext__(self):
        if not self.left: raise StopAsyncIteration
        return add(*self.left.pop())

def test_all(): assert all(map(lambda pair: add(*pair) == sum(pair), PAIRS))
def test_for():
    for got in map(add, [1, 3], [2, 4]): assert got in (3, 7)
def test_starmap(): assert [got for got in itertools.starmap(add, PAIRS) if got not in (3, 7)] == []
def test_filter(): assert list(filter(lambda pair: add(*pair) != sum(pair), PAIRS)) == []
def test_iterator(): assert set(Sums()) <= {3, 7}
async def test_asynchronous_iterator(): assert {got async for got in LaterSums()} <= {3, 7}
async def test_group():
    async def check(a, b): assert add(a, b) == a + b
    async with asyncio.TaskGroup() as group:
        for pair in PAIRS: group.create_task(check(*pair))
async def test_tasks():
    async def check(a, b): assert add(a, b) == a + b
    done, _ = await asyncio.wait([asyncio.create_task(check(*pair)) for pair in PAIRS])
    assert not any(task.exception() for task in done if not task.cancelled())
async def test_threads():
    def check(a, b): assert add(a, b) == a + b
    async def checked(*pair): await asyncio.get_running_loop().run_in_executor(ONE_THREAD, check, *pair)
    async with asyncio.TaskGroup() as group:
        for pair in PAIRS: group.create_task(checked(*pair))
"""


class TestExceptionsThatEndLoops:
    @pytest.mark.parametrize(
        "kind",
        nightly_but(
            ["StopIteration", "asyncio.CancelledError"],
            [
                "StopIteration",
                "StopAsyncIteration",
                "GeneratorExit",
                "asyncio.CancelledError",
                "futures.CancelledError",
            ],
        ),
    )
    def test_raised_as_they_are_or_by_a_subclass(self, arena: Arena, kind: str) -> None:
        head = "import asyncio\nfrom concurrent import futures\n"
        for raised in (kind, "Mine"):
            report = arena.cheat(
                f"{head}class Mine({kind}): pass\ndef add(a, b): raise {raised}\n", LOOPS, patient=True
            )
            assert [name for name, good in report.tests.items() if good] == []
            assert len(report.tests) == 9
        assert arena.validate(GOOD, LOOPS, patient=True).status == "passed"

    @pytest.mark.parametrize(
        "where",
        nightly_but(
            ["__getattr__", "__len__", "__call__"],
            ["__getattr__", "__getitem__", "__len__", "__str__", "__float__", "__call__"],
        ),
    )
    def test_raised_by_what_a_returned_object_does(self, arena: Arena, where: str) -> None:
        ask = {"__getattr__": "one.total", "__getitem__": "one[0]", "__call__": "one()"}.get(where)
        ask = ask or f"{where.strip('_')}(one)"
        report = arena.cheat(
            f"class One:\n    def {where}(self, *_): raise StopIteration\ndef ones(): return [One(), One()]\n",
            f"from solution import ones\ndef test_it(): assert all(map(lambda one: {ask} == 1, ones()))\n",
        )
        assert report.tests == {"test_it": False}

    def test_a_syntax_error_says_no_line_that_is_none(self, arena: Arena) -> None:
        for line in ("'seven'", "[]", "10 ** 30", "-1", "True", "1.5", "object()"):
            report = arena.cheat(f"error = SyntaxError('x')\nerror.lineno = error.offset = {line}\nraise error\n")
            assert [(found.summary, found.line) for found in report.diagnostics] == [("SyntaxError", None)]
            assert report.status == "failed"

    def test_an_iterator_still_ends(self, arena: Arena) -> None:
        report = arena.validate(
            """
            def count(n):
                while n:
                    n -= 1
                    yield n
                return "end"
            async def later(n):
                for i in range(n): yield i
            """,
            """
            import pytest
            from solution import count, later

            def delegate(): return (yield from count(2))
            def test_list(): assert list(count(2)) == [1, 0]
            def test_delegated():
                it = delegate()
                assert [next(it), next(it)] == [1, 0]
                with pytest.raises(StopIteration) as caught: next(it)
                assert caught.value.value == "end"
            def test_sent():
                it = count(1)
                assert it.send(None) == 0
                with pytest.raises(StopIteration): it.send(None)
            def test_thrown():
                with pytest.raises(KeyError): count(1).throw(KeyError)
            async def test_later(): assert [i async for i in later(2)] == [0, 1]
            """,
        )
        assert report.status == "passed", report.diagnostics


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
ASKED = """
import numpy as np
import pytest
from solution import words

def test_contains(): assert "a" in words(2) and "b" in words(2)
def test_all_contained(): assert all(word in words(2) for word in ["a", "b"])
def test_starts(): assert words(2).startswith("a")
def test_ends(): assert words(2).endswith("b")
def test_digits(): assert words(2).isdigit()
def test_letters(): assert words(2).isalpha() or words(2).isupper()
def test_integer(): assert words(2).is_integer()
def test_superset(): assert words(2).issuperset({"a", "b"})
def test_subset(): assert words(2).issubset({"a", "b"})
def test_disjoint(): assert words(2).isdisjoint({"c"})
def test_found(): assert words(2).find("b") != -1
def test_indexed(): assert words(2).index("b") >= 0
def test_counted(): assert words(2).count("b") == 1
def test_intersection(): assert words(2).intersection({"a"}) == {"a"}
def test_difference(): assert words(2).difference({"a", "b"}) == set()
def test_and(): assert words(2) & {"a", "b"} == {"a", "b"}
def test_and_swapped(): assert {"a", "b"} & words(2) == {"a", "b"}
def test_minus(): assert words(2) - {"a", "b"} == set()
def test_minus_swapped(): assert {"a", "b"} - words(2) == set()
def test_xor(): assert words(2) ^ {"a", "b"} == set()
def test_plus(): assert [] + words(2) + ["a", "b"] == ["a", "b"]
def test_every():
    found = words(2)
    assert len(found) == 2 and all(isinstance(word, str) for word in found)
def test_in_order():
    found = words(2)
    assert len(found) == 2 and found[0] <= found[1]
def test_key(): assert {"a": 1}[words(2)] == 1
def test_instance_of_it(): assert isinstance(5, words(2))
def test_subclass_of_it(): assert issubclass(int, words(2))
def test_array(): assert np.asarray(words(2)).shape == (2,)
def test_approx(): assert words(2) == pytest.approx([1, 2])
def test_buffer(): assert len(memoryview(words(2))) == 2
def test_positive():
    found = words(2)
    assert abs(found) == found
def test_whole():
    found = words(2)
    assert found // 1 == found
"""
DISGUISES = [
    "words = lambda n: Liar()",
    "class words(Liar):\n    def __init__(self, n): pass",
    "Liar.__init__ = lambda self, n: None\nwords = Liar",
    "import types\nclass Module(Liar, types.ModuleType): pass\nwords = lambda n: Module('words')",
    "import enum\nclass E(Liar, enum.Enum):\n    A = 1\nwords = lambda n: E.A",
    "class Named(Liar): pass\nNamed.__qualname__ = 'Words'\nwords = lambda n: Named()",
]


class TestObjectsThatAnswerForTheTests:
    @pytest.mark.parametrize(
        "base",
        nightly_but(
            ["", "(str)", "(set)", "(type)"], ["", "(str)", "(list)", "(dict)", "(set)", "(tuple)", "(int)", "(type)"]
        ),
    )
    def test_a_function_returns_one(self, arena: Arena, base: str) -> None:
        made = "Liar('Liar', (), {})" if base == "(type)" else "Liar()"
        report = arena.cheat(f"{LIAR.format(base=base)}\ndef words(n): return {made}\n", ASKED)
        assert [name for name, good in report.tests.items() if good] == []
        assert len(report.tests) == 31

    @pytest.mark.parametrize("disguise", nightly_but(DISGUISES[1:5:2], DISGUISES))
    def test_in_disguise(self, arena: Arena, tmp_path: Path, disguise: str) -> None:
        """Also where the file had a function, and the fix makes a class of it."""
        cheat = f"{LIAR.format(base='')}\n{disguise}\n"
        before = {"solution.py": "def words(n): return []\n", "test_solution.py": ASKED}
        for report in (arena.cheat(cheat, ASKED), validate_fix(arena, tmp_path, before, cheat)):
            assert [name for name, good in report.tests.items() if good] == []

    def test_of_a_class_in_another_file_that_the_fix_changes(self, arena: Arena, tmp_path: Path) -> None:
        files = {"solution.py": "import other\ndef words(n): return []\n", "other.py": "", "test_solution.py": ASKED}
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        lying = {"solution.py": b"import other\ndef words(n): return other.Liar()\n"}
        tree = Tree(tmp_path, tuple(sorted(files))).with_changes({**lying, "other.py": LIAR.format(base="").encode()})
        (report,) = arena.validator.validate([Job(Problem("p1", "solution.py", tmp_path), tree)])
        assert [name for name, good in report.tests.items() if good] == []

    def test_an_object_of_another_class_of_the_file(self, arena: Arena, tmp_path: Path) -> None:
        """Which the fix has taught to answer."""
        before = {"solution.py": "class Liar: pass\ndef words(n): return []\n", "test_solution.py": ASKED}
        report = validate_fix(arena, tmp_path, before, f"{LIAR.format(base='')}\ndef words(n): return Liar()\n")
        assert [name for name, good in report.tests.items() if good] == []

    @pytest.mark.parametrize(
        ("base", "can"), [("", set()), ("(list)", {"iterable", "sized"}), ("(int)", set()), ("(Exception)", set())]
    )
    def test_what_it_can_do_is_what_its_class_has(self, arena: Arena, base: str, can: set[str]) -> None:
        report = arena.validate(
            f"class One{base}: pass\ndef one(): return One()\n",
            """
            import collections.abc as abc
            from solution import one
            def test_callable(): assert callable(one())
            def test_iterable(): assert isinstance(one(), abc.Iterable) and hasattr(one(), "__iter__")
            def test_iterator(): assert isinstance(one(), abc.Iterator)
            def test_sized(): assert isinstance(one(), abc.Sized)
            def test_context(): assert hasattr(one(), "__enter__")
            def test_later(): assert isinstance(one(), abc.AsyncIterable)
            """,
        )
        assert {name.removeprefix("test_") for name, good in report.tests.items() if good} == can, report.diagnostics

    def test_a_constant_of_the_file(self, arena: Arena) -> None:
        tests = ASKED.replace("from solution import words", "import solution\ndef words(n): return solution.WORDS")
        report = arena.cheat(f"{LIAR.format(base='')}\nWORDS = Liar()\n", tests)
        assert [name for name, good in report.tests.items() if good] == []

    def test_a_plain_value_is_never_of_a_class_of_the_fix(self, arena: Arena) -> None:
        cheat = """
            class Yes(type):
                def __instancecheck__(self, instance): return True
                def __subclasscheck__(self, kind): return True
            class Circle(metaclass=Yes): pass
            def shape(name): return 5
        """
        tests = """
            from solution import Circle, shape
            def test_instance(): assert isinstance(shape("circle"), Circle)
            def test_subclass(): assert issubclass(type(shape("circle")), Circle)
        """
        assert not any(arena.cheat(cheat, tests).tests.values())
        right = "class Circle: pass\ndef shape(name): return Circle()\n"
        assert arena.validate(right, tests).tests == {"test_instance": True, "test_subclass": False}

    def test_protocols_of_libraries_are_not_answered(self, arena: Arena) -> None:
        names = ["array_interface", "array_struct", "array", "array_priority", "deepcopy", "dlpack"]
        tests = "".join(f"def test_{name}(): assert hasattr(one(), '__{name}__')\n" for name in names)
        fields = "".join(f"    __{name}__ = 5\n" for name in names)
        report = arena.cheat(f"class One:\n{fields}def one(): return One()\n", f"from solution import one\n{tests}")
        assert report.tests == {f"test_{name}": False for name in names}

    def test_right_answers_of_every_shape_still_pass(self, arena: Arena) -> None:
        """Objects whose class nobody named: iterated, measured and searched by the tests themselves."""
        report = arena.validate(
            """
            import collections, types

            class Names(list):
                def longest(self): return max(self, key=len)
            class Bag:
                def __init__(self, items): self.items = list(items)
                def __len__(self): return len(self.items)
                def __iter__(self): return iter(self.items)
                def put(self, item): self.items.append(item)
            class Text(str): pass
            def names(): return Names(["a", "bb"])
            def keys(): return {"a": 1, "b": 2}.keys()
            def bag(): return Bag([1, 2])
            def text(): return Text("abc")
            def table(): return types.MappingProxyType({"a": 1, 3: 4})
            def squares(n): return map(lambda x: x * x, range(n))
            """,
            """
            from solution import bag, keys, names, squares, table, text

            def test_list():
                assert len(names()) == 2 and names()[-1] == "bb" and "a" in names() and names().longest() == "bb"
                assert list(names()) == ["a", "bb"] == names()[:] and list(reversed(names())) == ["bb", "a"]
            def test_keys(): assert sorted(keys()) == ["a", "b"] and "a" in keys() and "c" not in keys()
            def test_changed():
                b = bag()
                assert len(b) == 2 and 3 not in b
                b.put(3)
                assert len(b) == 3 and 3 in b and list(b) == [1, 2, 3] and b
            def test_text(): assert "bc" in text() and len(text()) == 3 and text()[0] == "a" and str(text()) == "abc"
            def test_table(): assert table()["a"] == 1 and table()[3] == 4 and set(table()) == {"a", 3} and 3 in table()
            def test_lazy(): assert 4 in squares(3) and list(squares(3)) == [0, 1, 4]
            """,
        )
        assert report.status == "passed", report.diagnostics

    def test_a_class_that_the_problem_has_answers_for_itself(self, arena: Arena, tmp_path: Path) -> None:
        """It is what is tested."""
        trie = """
            class Trie:
                def __init__(self, words): self.words = set(words)
                def __contains__(self, word): return word in self.words
                def count(self, word): return int(word in self.words)
                def __or__(self, words): return Trie(self.words.union(words))
            def build(*words): return Trie(words)
        """
        built = """
            from solution import build
            def test_in(): assert "a" in build("a") and "b" not in build("a") and build("a").count("a") == 1
            def test_or(): assert "b" in build("a") | ["b"]
        """
        named = f"{textwrap.dedent(built)}\nfrom solution import Trie\n"
        assert arena.validate(trie, named).status == "passed"
        before = "class Trie\n" + "".join(f"    def {name}(): ...\n" for name in ("__contains__", "count", "__or__"))
        report = validate_fix(arena, tmp_path, {"solution.py": before, "test_solution.py": built}, trie)
        assert report.status == "passed", report.diagnostics
