"""A right and a wrong fix for each of many problems, with tests that ask for what differs between them.

Each is plain code that a person or a model could have written: nothing here tries to pass by deceit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent


@dataclass(frozen=True)
class Pair:
    """Two fixes of `solution.py` and the tests that tell them apart.

    `before`: the unmodified problem, if it is not the wrong fix. `uncontrolled`: how many tests have no control.
    """

    name: str
    right: str
    wrong: str
    tests: str
    before: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    uncontrolled: int = 0

    def problem(self, number: int | None = None) -> dict[str, str]:
        """The files around the fix; with a number in their names and in a folder of their own, if there is one."""
        made = {"test_solution.py": self.tests, **self.files}
        return {self.place(name, number): self.numbered(text, number) for name, text in made.items()}

    def place(self, name: str, number: int | None) -> str:
        """Where a file is."""
        plain = number is None or name == "conftest.py"
        return name if number is None else f"pair{number}/{name if plain else name.replace('.', f'_{number}.')}"

    def numbered(self, text: str, number: int | None) -> str:
        """A text whose imports have the number, too."""
        text = dedent(text)
        return text if number is None else text.replace("solution", f"solution_{number}")


def _simple(name: str, right: str, wrong: str, *asserts: str, head: str = "", returns: str = "def it(x=None):") -> Pair:
    """A function `it` with one expression or body each, and one test with some assertions."""

    def code(body: str) -> str:
        lines = dedent(body).strip().splitlines()
        lines[-1:] = [lines[-1] if lines[-1].startswith(("return", "raise", " ")) else f"return {lines[-1]}"]
        return "\n".join([dedent(head), returns, *(f"    {line}" for line in lines), ""])

    body = "\n".join(f"    {line}" for text in asserts for line in dedent(text).strip().splitlines())
    return Pair(name, code(right), code(wrong), f"import pytest\nimport solution\nfrom solution import it\n\n\ndef test_it():\n{body}\n")


ALIASING = [
    Pair(
        "mutable default",
        "def collect(x, into=None):\n    into = [] if into is None else into\n    into.append(x)\n    return into\n",
        "def collect(x, into=[]):\n    into.append(x)\n    return into\n",
        """
        from solution import collect

        def test_first():
            assert collect(1) == [1]

        def test_second():
            assert collect(2) == [2]
            assert collect(3) == [3]
        """,
    ),
    _simple("aliased rows", "[[0] * x for _ in range(x)]", "[[0] * x] * x", "rows = it(2)", "rows[0][0] = 1", "assert rows == [[1, 0], [0, 0]]"),
    _simple("aliased empties", "[[] for _ in range(x)]", "[[]] * x", "rows = it(3)", "rows[1].append(4)", "assert rows == [[], [4], []]"),
    _simple("one list twice", "return [x], [x]", "one = [x]\nreturn one, one", "a, b = it(1)", "a.append(2)", "assert (a, b) == ([1, 2], [1])"),
    Pair(
        "leaked list",
        "class Bag:\n    def __init__(self):\n        self._items = []\n    def add(self, x):\n        self._items.append(x)\n    def items(self):\n        return list(self._items)\n",
        "class Bag:\n    def __init__(self):\n        self._items = []\n    def add(self, x):\n        self._items.append(x)\n    def items(self):\n        return self._items\n",
        """
        from solution import Bag

        def test_items_are_a_copy():
            bag = Bag()
            bag.add(1)
            bag.items().clear()
            assert bag.items() == [1]
        """,
    ),
    _simple("a module's dict", "dict(_SETTINGS)", "_SETTINGS", "it()['a'] = 2", "assert it() == {'a': 1}", head="_SETTINGS = {'a': 1}"),
    _simple("a kept argument", "_seen.append(list(x))\nreturn _seen", "_seen.append(x)\nreturn _seen", "given = [1]", "kept = it(given)", "given.append(2)", "assert kept == [[1]]", head="_seen = []"),
    _simple("a live view", "x.keys()", "list(x)", "d = {1: 1}", "view = it(d)", "d[2] = 2", "assert view == {1, 2}", "assert list(view) == [1, 2]"),
    _simple("nested 300 deep", "for _ in range(300):\n    x = [x]\nreturn x", "for _ in range(299):\n    x = [x]\nreturn x", "deep = it(1)", "for _ in range(300):\n    assert len(deep) == 1\n    deep = deep[0]", "assert deep == 1"),
    _simple("two that are nested 300 deep", "for _ in range(300):\n    x = [x]\nreturn x", "for _ in range(300):\n    x = [x]\nreturn [x]", "wanted = 1", "for _ in range(300):\n    wanted = [wanted]", "assert it(1) == wanted"),
    _simple("a recursive list", "x = [1]\nx.append(x)\nreturn x", "x = [1]\nx.append([1])\nreturn x", "found = it()", "assert found[1] is found", "assert found[1][1][0] == 1", "assert repr(found) == '[1, [...]]'"),
    _simple("a deep copy", "import copy\nreturn copy.deepcopy(x)", "return x.copy()", "a = {'k': [1]}", "b = it(a)", "b['k'].append(2)", "assert a == {'k': [1]} and b == {'k': [1, 2]}"),
    _simple("a sorted copy", "return sorted(x)", "x.sort()\nreturn x", "given = [3, 1, 2]", "assert it(given) == [1, 2, 3]", "assert given == [3, 1, 2]"),
    _simple("a dict changed while it is read", "return {k: v for k, v in x.items() if v}", "for k in x:\n    if not x[k]:\n        del x[k]\nreturn x", "assert it({'a': 0, 'b': 1}) == {'b': 1}"),
    _simple("late binding", "return [lambda n=n: n for n in range(x)]", "return [lambda: n for n in range(x)]", "assert [f() for f in it(3)] == [0, 1, 2]"),
    _simple("an iterator used up", "x = list(x)\nreturn sum(x) / len(x)", "return sum(x) / (len(list(x)) or 1)", "assert it(iter([1, 2, 3])) == 2.0"),
    _simple("a generator read twice", "return [n for n in x]", "return (n for n in x)", "found = it([1, 2])", "assert list(found) == [1, 2]", "assert list(found) == [1, 2]"),
    Pair(
        "a class attribute",
        "class Team:\n    def __init__(self):\n        self.members = []\n",
        "class Team:\n    members = []\n",
        """
        from solution import Team

        def test_teams_are_apart():
            a, b = Team(), Team()
            a.members.append("ann")
            assert b.members == []
            assert a.members == ["ann"]
        """,
    ),
]

KINDS = [
    _simple("IntEnum", "return Level.HIGH", "return Level.LOW", "assert it() == 2", "assert it() + 1 == 3", "assert it() in (2, 3)", head="import enum\nclass Level(enum.IntEnum):\n    LOW = 1\n    HIGH = 2"),
    _simple("StrEnum", "return Color.RED", "return Color.BLUE", "assert it() == 'red'", "assert f'{it()}!' == 'red!'", head="import enum\nclass Color(enum.StrEnum):\n    RED = 'red'\n    BLUE = 'blue'"),
    _simple("HTTPStatus", "return HTTPStatus.NOT_FOUND", "return HTTPStatus.OK", "assert it() == 404", "assert it().phrase == 'Not Found'", head="from http import HTTPStatus"),
    _simple("str subclass", "return Name(x)", "return Name(x.upper())", "assert it('ann') == 'ann'", "assert isinstance(it('ann'), str)", head="class Name(str):\n    pass"),
    _simple("case-blind str", "return Name(x)", "return x.upper()", "assert it('ann') == 'ANN'", "assert it('ann') == 'ann'", "assert it('ann') != 'bob'", head="class Name(str):\n    def __eq__(self, other):\n        return self.casefold() == other.casefold()\n    def __hash__(self):\n        return hash(self.casefold())"),
    _simple("float subclass", "return Metres(x)", "return Metres(x + 1)", "assert it(2) == 2.0", "assert repr(it(2)) == '2.0 m'", head="class Metres(float):\n    def __repr__(self):\n        return f'{float(self)} m'"),
    _simple("list subclass", "return Stack(x)", "return Stack(reversed(x))", "assert it([1, 2]) == [1, 2]", "assert it([1, 2]).top == 2", head="class Stack(list):\n    @property\n    def top(self):\n        return self[-1]"),
    _simple("dict subclass", "return Bag(a=x)", "return Bag(b=x)", "assert it(1) == {'a': 1}", "assert it(1).a == 1", head="class Bag(dict):\n    __getattr__ = dict.__getitem__"),
    _simple("UserDict", "return Lower({'A': x})", "return UserDict({'A': x})", "assert it(1) == {'a': 1}", "assert 'a' in it(1)", head="from collections import UserDict\nclass Lower(UserDict):\n    def __setitem__(self, key, value):\n        super().__setitem__(key.lower(), value)"),
    _simple("defaultdict", "found = defaultdict(lambda: 7)\nfound['a'] = x\nreturn found", "return {'a': x}", "assert it(1) == {'a': 1}", "assert it(1)['z'] == 7", head="from collections import defaultdict"),
    _simple("Counter", "return Counter(x)", "return Counter(set(x))", "assert it('aab') == {'a': 2, 'b': 1}", "assert it('aab')['z'] == 0", "assert it('aab').most_common(1) == [('a', 2)]", head="from collections import Counter"),
    _simple("dict keys", "return {**x}.keys()", "return {**x}.values()", "assert it({1: 2}) == {1}", "assert it({1: 2}) | {3} == {1, 3}"),
    _simple("mappingproxy", "return MappingProxyType(x)", "return dict(x)", "found = it({'a': 1})", "assert found == {'a': 1}", "with pytest.raises(TypeError):\n    found['a'] = 2", head="from types import MappingProxyType"),
    _simple("memoryview", "return memoryview(x)[1:]", "return memoryview(x)", "assert it(b'abc') == b'bc'", "assert it(b'abc').tobytes() == b'bc'"),
    _simple("namedtuple", "return Point(x, 2)", "return Point(2, x)", "assert it(1) == (1, 2)", "assert it(1).y == 2", "assert it(1)._replace(y=5) == solution.Point(1, 5)", head="from collections import namedtuple\nPoint = namedtuple('Point', 'x y')"),
    _simple("Decimal", "return Decimal(x) / 3", "return Decimal(float(x) / 3)", "assert it('1').quantize(solution.Decimal('0.01')) == solution.Decimal('0.33')", "assert it('3') * 3 == 3", "assert str(it('1'))[:6] == '0.3333' and len(str(it('1'))) == 30", head="from decimal import Decimal"),
    _simple("Fraction", "return Fraction(x, 3)", "return x / 3", "assert it(1) == solution.Fraction(1, 3)", "assert it(3) == 1", head="from fractions import Fraction"),
    _simple("float tolerance", "return x * 0.1", "return x // 10", "import math", "assert it(3) == pytest.approx(0.3)", "assert abs(it(3) - 0.3) < 1e-9", "assert math.isclose(it(3), 0.3)", "assert round(it(3), 5) == 0.3", "assert [it(3), it(6)] == pytest.approx([0.3, 0.6])"),
    _simple("a wide tolerance", "return x * 2.0", "return x * 20.0", "assert it(3) == pytest.approx(6, abs=4)", "assert it(3) == pytest.approx(5, rel=0.5)", "assert pytest.approx(3, abs=4) in [it(3)]", "assert abs(it(3) - 5) < 100 / it(3)"),
    _simple("infinities and NaN", "return [float('inf'), float('nan'), -0.0]", "return [float('-inf'), float('nan'), 1.0]", "import math", "a, b, c = it()", "assert a == math.inf and b != b", "assert math.isclose(a, math.inf) and math.isnan(b)", "assert c == 0", "assert it() == pytest.approx([math.inf, math.nan, 0], nan_ok=True)"),
    _simple("dates", "return x + timedelta(days=1)", "return x.replace(day=x.day + 1)", "from datetime import date, datetime", "assert it(date(2024, 2, 28)) == date(2024, 2, 29)", "assert it(date(2024, 2, 29)) == date(2024, 3, 1)", "assert it(datetime.max.replace(year=2023, month=12, day=31)).year == 2024", head="from datetime import timedelta"),
    _simple("the last day there is", "return date.max", "return date.min", "from datetime import date, timedelta", "assert it() == date.max", "assert it() - timedelta(days=1) == date(9999, 12, 30)", head="from datetime import date"),
    _simple("time zones", "return datetime(2024, 7, 1, 12, tzinfo=ZoneInfo('UTC')).astimezone(ZoneInfo(x))", "return datetime(2024, 7, 1, 12, tzinfo=ZoneInfo(x))", "from datetime import datetime, timedelta, timezone", "assert it('Europe/Berlin').hour == 14", "assert it('Europe/Berlin') == datetime(2024, 7, 1, 12, tzinfo=timezone.utc)", "assert it('Europe/Berlin').utcoffset() == timedelta(hours=2)", head="from datetime import datetime\nfrom zoneinfo import ZoneInfo"),
    _simple("sorting is stable", "return sorted(x, key=lambda row: row[0], reverse=True)", "return sorted(x, key=lambda row: row[0])[::-1]", "rows = [(1, 'a'), (2, 'b'), (1, 'c')]", "assert it(rows) == [(2, 'b'), (1, 'a'), (1, 'c')]"),
    _simple("sets", "return {w.lower() for w in x}", "return {w for w in x}", "assert it(['A', 'a', 'B', 'i', 'q', 'y']) == {'a', 'b', 'i', 'q', 'y'}", "assert it(['A', 'b']) <= {'a', 'b', 'c'}", "assert it([]) == set()"),
    _simple("sets of numbers that collide", "return {n * 8 for n in range(x)}", "return set(range(x))", "assert it(9) == {64, 56, 48, 40, 32, 24, 16, 8, 0}", "wanted = {8, 0, 16, 24}", "assert it(4) == wanted"),
    _simple("numpy", "return np.asarray(x) * 2.0", "return np.asarray(x) * 3.0", "import numpy as np", "from numpy.testing import assert_allclose, assert_array_equal", "assert (it([1, 2]) == [2, 4]).all()", "assert_array_equal(it([1, 2]), [2.0, 4.0])", "assert_allclose(it([1, 2]), np.array([2, 4]))", "assert_allclose(it([]), [])", "assert_allclose(it([np.nan, np.inf]), [np.nan, np.inf])", "assert_array_equal(it([]), np.array([]))", "np.testing.assert_equal(it([np.nan]), [np.nan])", "assert np.allclose(it([np.inf]), [np.inf]) and np.isclose(it(2.0), 4)", "assert it([1, 2]).tolist() == [2.0, 4.0] and it([1])[0] == 2", head="import numpy as np"),
    _simple("an object that equals few things", "return Version(x)", "return Version(x + '.1')", "assert it('1.0') == solution.Version('1')", "assert it('1.0') == it('1.0.0') and it('1') != it('2')", "assert it('1') < it('1.1') <= it('1.2')", "assert it('1') in [it('1.0')] and it('3') not in {it('2')}", head="import functools\n@functools.total_ordering\nclass Version:\n    def __init__(self, text):\n        self.key = text.rstrip('.0').split('.')\n    def __eq__(self, other):\n        return self.key == other.key\n    def __lt__(self, other):\n        return self.key < other.key\n    def __hash__(self):\n        return hash(tuple(self.key))"),
]

CLASSES = [
    Pair(
        "dataclass eq",
        "from dataclasses import dataclass, field\n\n@dataclass(order=True)\nclass User:\n    name: str\n    seen: int = field(default=0, compare=False)\n",
        "from dataclasses import dataclass, field\n\n@dataclass(order=True)\nclass User:\n    name: str\n    seen: int = 0\n",
        """
        import dataclasses
        from solution import User

        def test_seen_does_not_count():
            assert User("a", 1) == User("a", 2)
            assert User("a", 5) < User("b", 1)

        def test_as_dict():
            assert dataclasses.asdict(User("a", 1)) == {"name": "a", "seen": 1}
            assert dataclasses.replace(User("a"), name="b").name == "b"
        """,
    ),
    Pair(
        "dataclass with an equality of its own",
        """
        from dataclasses import dataclass
        @dataclass
        class Ratio:
            n: int
            d: int
            def __eq__(self, other):
                return self.n * other.d == other.n * self.d
            def __add__(self, other):
                return Ratio(self.n * other.d + other.n * self.d, self.d * other.d)
        """,
        """
        from dataclasses import dataclass
        @dataclass
        class Ratio:
            n: int
            d: int
            def __eq__(self, other):
                return self.n * other.d == other.n * self.d
            def __add__(self, other):
                return Ratio(self.n + other.n, self.d + other.d)
        """,
        """
        from solution import Ratio

        def test_sum():
            assert Ratio(1, 2) + Ratio(1, 2) == Ratio(1, 1)
            assert Ratio(0, 1) + Ratio(1, 2) == Ratio(2, 4)
            total = Ratio(1, 4) + Ratio(1, 4)
            assert total == Ratio(1, 2)
        """,
    ),
    Pair(
        "dataclass that clamps",
        "from dataclasses import dataclass\n\n@dataclass\nclass Level:\n    value: int\n    def __post_init__(self):\n        self.value = max(0, min(self.value, 100))\n\ndef up(level, by):\n    return Level(level.value + by)\n",
        "from dataclasses import dataclass\n\n@dataclass\nclass Level:\n    value: int\n    def __post_init__(self):\n        self.value = max(0, min(self.value, 100))\n\ndef up(level, by):\n    return level\n",
        """
        from solution import Level, up

        def test_up():
            assert up(Level(90), 50) == Level(100)
            assert up(Level(1), 1) == Level(2)
        """,
    ),
    Pair(
        "hash and eq",
        "class Key:\n    def __init__(self, a):\n        self.a = a\n    def __eq__(self, other):\n        return isinstance(other, Key) and self.a == other.a\n    def __hash__(self):\n        return hash(self.a)\n",
        "class Key:\n    def __init__(self, a):\n        self.a = a\n    def __eq__(self, other):\n        return isinstance(other, Key) and self.a == other.a\n    def __hash__(self):\n        return id(self)\n",
        """
        from solution import Key

        def test_keys():
            assert len({Key(1), Key(1), Key(2)}) == 2
            assert {Key(1): "x"}[Key(1)] == "x"
            assert Key(1) in {Key(1)} and Key(1) != Key(2)
        """,
    ),
    Pair(
        "operators",
        "class V:\n    def __init__(self, *p):\n        self.p = p\n    def __add__(self, o):\n        return V(*(a + b for a, b in zip(self.p, o.p)))\n    def __radd__(self, o):\n        return self if o == 0 else NotImplemented\n    def __eq__(self, o):\n        return self.p == o.p if isinstance(o, V) else NotImplemented\n",
        "class V:\n    def __init__(self, *p):\n        self.p = p\n    def __add__(self, o):\n        self.p = tuple(a + b for a, b in zip(self.p, o.p))\n        return self\n    def __radd__(self, o):\n        return self if o == 0 else NotImplemented\n    def __eq__(self, o):\n        return self.p == o.p if isinstance(o, V) else NotImplemented\n",
        """
        import pytest
        from solution import V

        def test_sum():
            a = V(1, 2)
            assert a + V(3, 4) == V(4, 6)
            assert a == V(1, 2)
            assert sum([a, V(1, 1)]) == V(2, 3)
            with pytest.raises(TypeError):
                1 + a
        """,
    ),
    Pair(
        "slots",
        "class P:\n    __slots__ = ('x',)\n    def __init__(self, x):\n        self.x = x\n",
        "class P:\n    def __init__(self, x):\n        self.x = x\n",
        """
        import pytest
        from solution import P

        def test_slots():
            p = P(1)
            assert p.x == 1 and not hasattr(p, "__dict__")
            with pytest.raises(AttributeError, match="y"):
                p.y = 2
        """,
    ),
    Pair(
        "property and descriptor",
        "class Positive:\n    def __set_name__(self, owner, name):\n        self.name = '_' + name\n    def __get__(self, o, kind=None):\n        return self if o is None else getattr(o, self.name)\n    def __set__(self, o, value):\n        if value < 0:\n            raise ValueError(value)\n        setattr(o, self.name, value)\n\nclass A:\n    n = Positive()\n",
        "class Positive:\n    def __set__(self, o, value):\n        self.value = value\n    def __get__(self, o, kind=None):\n        return self if o is None else self.value\n\nclass A:\n    n = Positive()\n",
        """
        import pytest
        from solution import A, Positive

        def test_apart():
            a, b = A(), A()
            a.n, b.n = 1, 2
            assert (a.n, b.n) == (1, 2)
            assert isinstance(A.n, Positive)

        def test_negative():
            with pytest.raises(ValueError) as error:
                A().n = -1
            assert error.value.args == (-1,)
        """,
    ),
    Pair(
        "weak references",
        "import weakref\n\nclass Node:\n    pass\n\nclass Registry:\n    def __init__(self):\n        self._all = weakref.WeakSet()\n    def add(self, n):\n        self._all.add(n)\n    def __len__(self):\n        return len(self._all)\n",
        "class Node:\n    pass\n\nclass Registry:\n    def __init__(self):\n        self._all = set()\n    def add(self, n):\n        self._all.add(n)\n    def __len__(self):\n        return len(self._all)\n",
        """
        import gc
        from solution import Node, Registry

        def test_forgets():
            r, n = Registry(), Node()
            r.add(n)
            assert len(r) == 1
            assert n is not None
            del n
            gc.collect()
            assert len(r) == 0
        """,
    ),
    Pair(
        "enum",
        "import enum\n\nclass Day(enum.Enum):\n    MON = 1\n    TUE = 2\n    @property\n    def next(self):\n        return Day(self.value % 2 + 1)\n",
        "import enum\n\nclass Day(enum.Enum):\n    MON = 1\n    TUE = 2\n    @property\n    def next(self):\n        return Day(self.value)\n",
        """
        import pytest
        from solution import Day

        @pytest.mark.parametrize("day, then", [(Day.MON, Day.TUE), (Day.TUE, Day.MON)])
        def test_next(day, then):
            assert day.next == then
            assert day.next is then
            assert {day: 1}[then.next] == 1
        """,
    ),
    Pair(
        "flags",
        "import enum\n\nclass May(enum.Flag):\n    READ = enum.auto()\n    WRITE = enum.auto()\n\ndef parse(text):\n    return May.READ | May.WRITE if 'w' in text else May.READ\n",
        "import enum\n\nclass May(enum.Flag):\n    READ = enum.auto()\n    WRITE = enum.auto()\n\ndef parse(text):\n    return May.WRITE if 'w' in text else May.READ\n",
        """
        from solution import May, parse

        def test_flags():
            assert parse("rw") == May.READ | May.WRITE
            assert May.READ in parse("rw") and parse("r") == May.READ
        """,
    ),
    Pair(
        "iteration and containment",
        "class Tree:\n    def __init__(self, *n):\n        self.n = sorted(n)\n    def __iter__(self):\n        return iter(self.n)\n    def __contains__(self, x):\n        return x in self.n\n    def __getitem__(self, i):\n        return self.n[i]\n    def __len__(self):\n        return len(self.n)\n",
        "class Tree:\n    def __init__(self, *n):\n        self.n = list(n)\n    def __iter__(self):\n        return iter(self.n)\n    def __contains__(self, x):\n        return x in self.n\n    def __getitem__(self, i):\n        return self.n[i]\n    def __len__(self):\n        return len(self.n)\n",
        """
        from solution import Tree

        def test_tree():
            t = Tree(3, 1, 2)
            assert 3 in t and 9 not in t
            assert list(t) == [1, 2, 3] == [*t]
            assert t[0] == 1 and t[-1] == 3 and len(t) == 3
            first, *rest = t
            assert (first, rest) == (1, [2, 3])
            match t.n:
                case [1, _, last]:
                    assert last == 3
                case _:
                    raise AssertionError(t.n)
        """,
    ),
    Pair(
        "a queue that is read by looking into it",
        "class Once:\n    def __init__(self, items):\n        self.items = list(items)\n    def __iter__(self):\n        while self.items:\n            yield self.items.pop(0)\n",
        "class Once:\n    def __init__(self, items):\n        self.items = list(items)\n    def __iter__(self):\n        while self.items:\n            yield self.items.pop()\n",
        """
        from solution import Once

        def test_once():
            stream = Once("abc")
            assert "a" in stream
            assert "b" in stream
            assert list(stream) == ["c"]
        """,
    ),
    Pair(
        "comparisons that are counted",
        "class Item:\n    asked = 0\n    def __init__(self, n):\n        self.n = n\n    def __eq__(self, other):\n        Item.asked += 1\n        return isinstance(other, Item) and self.n == other.n\n    __hash__ = None\n\ndef find(items, x):\n    return next((i for i, one in enumerate(items) if one == x), None)\n",
        "class Item:\n    asked = 0\n    def __init__(self, n):\n        self.n = n\n    def __eq__(self, other):\n        Item.asked += 1\n        return isinstance(other, Item) and self.n == other.n\n    __hash__ = None\n\ndef find(items, x):\n    return [i for i, one in enumerate(items) if one == x][0]\n",
        """
        from solution import Item, find

        def test_stops():
            items = [Item(1), Item(2), Item(3), Item(4)]
            assert find(items, Item(2)) == 1
            assert Item.asked == 2

        def test_equal():
            before = Item.asked
            assert Item(1) == Item(1)
            assert Item.asked - before == 1
            assert find([], Item(1)) is None
        """,
    ),
]

FLOW = [
    _simple("exception group", "raise ExceptionGroup('bad', [ValueError(1), KeyError(2)])", "raise ValueError(1)", "with pytest.raises(ExceptionGroup) as caught:\n    it()", "assert caught.group_contains(KeyError)", "assert [type(e) for e in caught.value.exceptions] == [ValueError, KeyError]", "try:\n    it()\nexcept* ValueError as part:\n    assert len(part.exceptions) == 1\nexcept* KeyError:\n    pass"),
    _simple("an exception that is also a KeyError", "raise Missing(x)", "raise AttributeError(x)", "with pytest.raises(KeyError):\n    it('a')", "with pytest.raises(AttributeError) as caught:\n    it('a')", "assert caught.value.args == ('a',)", head="class Missing(KeyError, AttributeError):\n    pass"),
    _simple("chained exceptions", "try:\n    return int(x)\nexcept ValueError as error:\n    raise RuntimeError('bad number') from error", "try:\n    return int(x)\nexcept ValueError:\n    raise RuntimeError('bad number') from None", "assert it('5') == 5", "with pytest.raises(RuntimeError, match='bad') as caught:\n    it('x')", "assert isinstance(caught.value.__cause__, ValueError)"),
    _simple("exception notes", "error = ValueError('no')\nerror.add_note(f'got {x}')\nraise error", "raise ValueError(f'no: got {x}')", "try:\n    it(3)\nexcept ValueError as error:\n    assert str(error) == 'no'\n    assert error.__notes__ == ['got 3']\nelse:\n    pytest.fail('nothing was raised')"),
    Pair(
        "generators",
        "def chunks(items, n):\n    items = iter(items)\n    while part := [one for _, one in zip(range(n), items)]:\n        yield part\n",
        "def chunks(items, n):\n    return [items[i:i + n] for i in range(0, len(items) - n + 1, n)]\n",
        """
        import itertools
        from solution import chunks

        def test_lazy():
            assert next(chunks(itertools.count(), 3)) == [0, 1, 2]

        def test_rest():
            assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]]
            for part in chunks("abcd", 2):
                assert len(part) == 2
        """,
    ),
    Pair(
        "send and close",
        "def mean():\n    total = count = 0\n    value = yield None\n    try:\n        while True:\n            total, count = total + value, count + 1\n            value = yield total / count\n    finally:\n        log.append('closed')\n\nlog = []\n",
        "def mean():\n    value = yield None\n    while True:\n        value = yield value\n\nlog = []\n",
        """
        import solution

        def test_mean():
            m = solution.mean()
            next(m)
            assert m.send(2) == 2
            assert m.send(4) == 3
            m.close()
            assert solution.log == ["closed"]
        """,
    ),
    Pair(
        "context managers",
        "import contextlib\n\n@contextlib.contextmanager\ndef setting(d, key, value):\n    old = d.get(key)\n    d[key] = value\n    try:\n        yield d\n    finally:\n        d[key] = old\n",
        "import contextlib\n\n@contextlib.contextmanager\ndef setting(d, key, value):\n    old = d.get(key)\n    d[key] = value\n    yield d\n    d[key] = old\n",
        """
        import pytest
        from solution import setting

        def test_restores():
            d = {"a": 1}
            with setting(d, "a", 2) as inner:
                assert inner["a"] == 2
            assert d == {"a": 1}

        def test_restores_after_an_error():
            d = {"a": 1}
            with pytest.raises(ZeroDivisionError), setting(d, "a", 2):
                assert d["a"] == 2
                1 / 0
            assert d == {"a": 1}
        """,
    ),
    Pair(
        "a manager that suppresses",
        "class ignoring:\n    def __init__(self, *kinds):\n        self.kinds = kinds\n    def __enter__(self):\n        return self\n    def __exit__(self, kind, value, trace):\n        self.caught = value\n        return kind is not None and issubclass(kind, self.kinds)\n",
        "class ignoring:\n    def __init__(self, *kinds):\n        self.kinds = kinds\n    def __enter__(self):\n        return self\n    def __exit__(self, kind, value, trace):\n        self.caught = value\n        return True\n",
        """
        import pytest
        from solution import ignoring

        def test_ignores():
            with ignoring(KeyError) as i:
                {}["a"]
            assert i.caught.args == ("a",)

        def test_not_others():
            with pytest.raises(ValueError):
                with ignoring(KeyError):
                    raise ValueError

        def test_nothing():
            with ignoring(KeyError) as i:
                assert i.kinds == (KeyError,)
            assert i.caught is None
        """,
    ),
    Pair(
        "async",
        "import asyncio\n\nasync def gather(*jobs):\n    return await asyncio.gather(*(job() for job in jobs), return_exceptions=True)\n\nasync def numbers(n):\n    for i in range(n):\n        await asyncio.sleep(0)\n        yield i\n",
        "import asyncio\n\nasync def gather(*jobs):\n    return await asyncio.gather(*(job() for job in jobs))\n\nasync def numbers(n):\n    for i in range(n):\n        yield i + 1\n",
        """
        import asyncio
        import unittest
        from solution import gather, numbers

        async def one():
            return 1

        async def bad():
            raise ValueError("no")

        def test_gather():
            a, b = asyncio.run(gather(one, bad))
            assert a == 1 and str(b) == "no"

        async def test_numbers():
            assert [n async for n in numbers(3)] == [0, 1, 2]

        class TestAll(unittest.IsolatedAsyncioTestCase):
            async def test_it(self):
                self.assertEqual(await gather(one, one), [1, 1])
                async for n in numbers(1):
                    self.assertEqual(n, 0)
        """,
    ),
    Pair(
        "threads",
        "import threading\n\nclass Counter:\n    def __init__(self):\n        self.n, self._lock = 0, threading.Lock()\n    def up(self):\n        with self._lock:\n            self.n += 1\n\ndef run(jobs):\n    errors = []\n    def safely(job):\n        try:\n            job()\n        except Exception as error:\n            errors.append(error)\n    threads = [threading.Thread(target=safely, args=(job,)) for job in jobs]\n    for t in threads: t.start()\n    for t in threads: t.join()\n    return errors\n",
        "import threading\n\nclass Counter:\n    def __init__(self):\n        self.n = 0\n    def up(self):\n        self.n = self.n\n\ndef run(jobs):\n    return []\n",
        """
        import time
        from solution import Counter, run

        def test_threads():
            c = Counter()
            started = time.monotonic()
            errors = run([c.up] * 8 + [lambda: 1 / 0])
            assert time.monotonic() - started < 30
            assert c.n == 8 and [type(e) for e in errors] == [ZeroDivisionError]
        """,
    ),
    Pair(
        "contextvars",
        "import contextvars\nuser = contextvars.ContextVar('user', default='none')\n\ndef as_user(name, f):\n    context = contextvars.copy_context()\n    context.run(user.set, name)\n    return context.run(f)\n",
        "import contextvars\nuser = contextvars.ContextVar('user', default='none')\n\ndef as_user(name, f):\n    user.set(name)\n    return f()\n",
        """
        from solution import as_user, user

        def test_user():
            assert as_user("ann", user.get) == "ann"
            assert user.get() == "none"
        """,
    ),
    Pair(
        "singledispatch",
        "import functools\n\n@functools.singledispatch\ndef show(x):\n    return 'any'\n\n@show.register\ndef _(x: list):\n    return [show(y) for y in x]\n\n@show.register\ndef _(x: bool):\n    return 'bool'\n\n@show.register\ndef _(x: int):\n    return 'int'\n",
        "import functools\n\n@functools.singledispatch\ndef show(x):\n    return 'any'\n\n@show.register\ndef _(x: int):\n    return 'int'\n",
        """
        import pytest
        from solution import show

        @pytest.mark.parametrize(("value", "wanted"), [(1, "int"), (True, "bool"), (None, "any"), ([1, "a"], ["int", "any"])], ids=repr)
        def test_show(value, wanted):
            assert show(value) == wanted
        """,
    ),
    Pair(
        "functools.cache",
        "import functools\ncalls = []\n\n@functools.cache\ndef slow(n):\n    calls.append(n)\n    return n * 2\n",
        "calls = []\n\ndef slow(n):\n    calls.append(n)\n    return n * 2\n",
        """
        import solution

        def test_called_once():
            assert solution.slow(3) == solution.slow(3) == 6
            assert solution.calls == [3]
            assert solution.slow.cache_info().hits == 1
        """,
    ),
    Pair(
        "decorators",
        "import functools\n\ndef retry(times):\n    def wrap(f):\n        @functools.wraps(f)\n        def inner(*a, **k):\n            for left in reversed(range(times)):\n                try:\n                    return f(*a, **k)\n                except ValueError:\n                    if not left:\n                        raise\n        return inner\n    return wrap\n",
        "def retry(times):\n    def wrap(f):\n        def inner(*a, **k):\n            for left in range(times):\n                try:\n                    return f(*a, **k)\n                except ValueError:\n                    pass\n        return inner\n    return wrap\n",
        """
        import pytest
        from unittest.mock import ANY, Mock, call, patch
        from solution import retry

        def test_retries():
            f = Mock(side_effect=[ValueError, 7], __name__="f")
            assert retry(2)(f)(1, k=2) == 7
            assert f.call_count == 2
            f.assert_called_with(1, k=2)
            assert f.call_args == call(ANY, k=2)
            assert f.mock_calls == [call(1, k=2), call(ANY, k=ANY)]
            assert call(1, k=ANY) in f.mock_calls
            assert f.call_args.kwargs == {"k": ANY}

        def test_name_and_last_error():
            @retry(2)
            def named():
                raise ValueError("last")
            assert named.__name__ == "named"
            with pytest.raises(ValueError, match="^last$"):
                named()

        def test_patched():
            with patch("solution.retry", return_value=5) as mocked:
                import solution
                assert solution.retry(1) == 5
            mocked.assert_called_once_with(1)
        """,
    ),
]

TESTING = [
    Pair(
        "fixtures",
        "def read(path):\n    return [line.strip() for line in path.read_text().splitlines() if line.strip()]\n\ndef shout(text):\n    import sys\n    print(text.upper())\n    print('done', file=sys.stderr)\n",
        "def read(path):\n    return path.read_text().splitlines()\n\ndef shout(text):\n    print(text.upper())\n",
        """
        import os
        import pytest
        from solution import read, shout

        closed = []

        @pytest.fixture(params=["a\\n\\nb\\n", "a\\nb"], ids=["gap", "plain"])
        def path(request, tmp_path):
            made = tmp_path / "in.txt"
            made.write_text(request.param)
            yield made
            assert made.exists()
            closed.append(made)

        @pytest.fixture
        def size(request):
            return len(request.param)

        def test_read(path):
            assert read(path) == ["a", "b"]

        def test_closed():
            assert len(closed) == 2

        @pytest.mark.parametrize("size", ["abc", "xyz"], indirect=True)
        def test_indirect(size):
            assert len(str(100)) == size

        def test_shout(capsys, monkeypatch):
            monkeypatch.setenv("X", "1")
            shout("hi")
            out, err = capsys.readouterr()
            assert (out, err) == ("HI\\n", "done\\n")
            assert os.environ["X"] == "1"
        """,
    ),
    Pair(
        "unittest",
        "import logging\n\ndef half(n):\n    if n % 2:\n        logging.getLogger('half').warning('%d is odd', n)\n        raise ValueError(f'{n} is odd')\n    return n // 2\n",
        "def half(n):\n    if n % 2:\n        raise ValueError(n)\n    return n // 2\n",
        """
        import unittest
        from solution import half

        class Base(unittest.TestCase):
            cases = {2: 1}

            def setUp(self):
                self.seen = []
                self.addCleanup(self.seen.clear)

            def test_cases(self):
                for n, wanted in self.cases.items():
                    with self.subTest(n=n):
                        self.assertEqual(half(n), wanted)
                        self.seen.append(n)
                self.assertEqual(self.seen, list(self.cases))

        class TestMore(Base):
            cases = {4: 2, 6: 3}

            def test_odd(self):
                with self.assertLogs("half", "WARNING") as logs, self.assertRaisesRegex(ValueError, "3 is odd"):
                    half(3)
                self.assertEqual(logs.output, ["WARNING:half:3 is odd"])
                self.assertIn("odd", logs.output[0])

            def test_close(self):
                self.assertAlmostEqual(half(4), 2.0000000001)
                self.assertAlmostEqual(half(4), 3, delta=5)
                self.assertAlmostEqual(half(4000), 1900, places=-3)
                self.assertCountEqual([half(2), half(4)], [2, 1])
                self.assertTrue(half(2) == 1)
        """,
    ),
    Pair(
        "tolerant equality of the tests",
        "class Box:\n    value = None\n    def fill(self):\n        self.value, self.name, self.at = 5, 'box-17', 2.5\n        return self\n",
        "class Box:\n    value = None\n    def fill(self):\n        self.value, self.name, self.at = '5', 'box', 9.5\n        return self\n",
        """
        import re
        from dataclasses import dataclass
        from solution import Box

        class AnyInt:
            def __eq__(self, other):
                return isinstance(other, int)

        class Matches(str):
            def __eq__(self, other):
                return re.fullmatch(str(self), str(other)) is not None

        @dataclass
        class Near:
            value: float
            by: float = 1.0
            def __eq__(self, other):
                return abs(self.value - other) <= self.by

        def test_box():
            box = Box().fill()
            assert box.value == AnyInt()
            assert AnyInt() == box.value
            assert box.at == Near(2.0)
            assert AnyInt() in [box.value]
            assert Near(3.0) in (box.at, None)
            wanted = {"value": AnyInt(), "at": Near(2), "name": Matches(r"box-\\d+")}
            assert vars(box) == wanted
            assert wanted == vars(box)
            got = vars(box)
            for key in wanted:
                assert got[key] == wanted[key]
            assert list(got.values()) == [AnyInt(), Matches(".*"), Near(2)]
        """,
        before="class Box:\n    value = name = at = None\n    def fill(self):\n        return self\n",
    ),
    Pair(
        "assertions that are caught",
        "def check(n):\n    assert n > 0, f'{n} is too small'\n    return n\n",
        "def check(n):\n    assert n >= 0, 'too small'\n    return n\n",
        """
        import contextlib
        import pytest
        from solution import check

        def test_caught():
            try:
                check(0)
            except AssertionError as error:
                assert str(error) == "0 is too small"
            else:
                raise RuntimeError("nothing was raised")

        def test_expected():
            with pytest.raises(AssertionError):
                assert check(1) == 2
            with contextlib.suppress(AssertionError):
                assert check(-1)
            assert check(1) == 1

        def test_tries():
            for n in (0, 1):
                try:
                    assert check(n) == 1
                    break
                except AssertionError:
                    continue
            assert n == 1
        """,
    ),
    Pair(
        "tests that read their own source",
        "def double(n):\n    return n * 2\n",
        "def double(n):\n    return n * 3\n",
        """
        import inspect
        from pathlib import Path
        from solution import double

        def test_double():
            assert double(21) == 42

        def test_source():
            assert "double(21) == 42" in inspect.getsource(test_double)
            assert "double(21) == 42" in Path(__file__).read_text()
            assert double(1) == 2
        """,
    ),
    Pair(
        "files that run in another process",
        "def double(n):\n    return n * 2\n",
        "def double(n):\n    return n * 3\n",
        """
        import subprocess, sys
        from pathlib import Path

        def test_script():
            here = Path(__file__).parent
            script = next(here.glob("script*.py"))
            done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=here)
            assert done.stdout == "right\\n"
        """,
        files={"script.py": "from solution import double\n\nprint('right' if double(21) == 42 else 'wrong')\n"},
    ),
    Pair(
        "tests that call tests",
        "def add(a, b):\n    return a + b\n",
        "def add(a, b):\n    return a - b\n",
        """
        from solution import add

        def test_one():
            assert add(1, 2) == 3

        def test_zero():
            assert add(0, 0) == 0

        def test_all():
            test_zero()
            test_one()

        def test_each():
            for n in range(3):
                check(n)

        def check(n):
            assert add(n, n) == 2 * n
        """,
    ),
    Pair(
        "early returns and branches",
        "def sign(n):\n    return (n > 0) - (n < 0)\n",
        "def sign(n):\n    return 1 if n > 0 else 0\n",
        """
        import pytest
        from solution import sign

        @pytest.mark.parametrize("n", [-2, 0, 5])
        def test_sign(n):
            if n == 0:
                assert sign(n) == 0
                return
            for step in range(3):
                if step == 2:
                    assert sign(n) == n // abs(n)
                    return

        def test_match():
            match sign(-3):
                case -1:
                    pass
                case other:
                    pytest.fail(f"got {other}")
            assert -1 <= sign(3) <= 1 == sign(7)
            assert (found := sign(-9)) == -1 and found < 0, f"got {found}"
            assert not sign(0), "zero"
            assert all(sign(n) == 1 for n in range(1, 4))
        """,
    ),
    Pair(
        "asserts with side effects",
        "def take(items):\n    return items.pop(0)\n",
        "def take(items):\n    return items[0]\n",
        """
        from solution import take

        WANTED = [1, 2, 3]
        assert WANTED, "at the level of the module"

        def test_take():
            items = list(WANTED)
            assert take(items) == 1
            assert take(items) == 2, items.clear()
            assert items == [3]
            assert [take(items) for _ in range(1)] == [3] and not items
        """,
    ),
    Pair(
        "helpers in conftest",
        "def area(w, h):\n    return w * h\n",
        "def area(w, h):\n    return w + h\n",
        """
        def test_area(check):
            check(3, 4, 12)

        def test_same(assert_equal):
            from solution import area
            assert_equal(iter([area(2, 3)]), [6])
            assert_equal(iter([area(1, 1)]), [1])

        class TestShapes:
            sides = 2, 5

            def test_it(self, check):
                check(*self.sides, wanted=10)
        """,
        files={
            "conftest.py": """
            import pytest
            from solution import area

            @pytest.fixture
            def check():
                def inner(w, h, wanted):
                    assert area(w, h) == wanted
                return inner

            @pytest.fixture
            def assert_equal():
                def inner(found, wanted):
                    assert list(found) == wanted
                return inner
            """
        },
    ),
    Pair(
        "a function of the fix that is called isclose",
        "class V:\n    def __init__(self, x):\n        self.x = x\n    def isclose(self, other, tol):\n        return abs(self.x - other.x) <= tol\n\ndef isclose(v, tol):\n    return abs(v.x) <= tol\n",
        "class V:\n    def __init__(self, x):\n        self.x = x\n    def isclose(self, other, tol):\n        return self.x == other.x\n\ndef isclose(v, tol):\n    return abs(v.x) < tol\n",
        """
        from solution import V, isclose

        def test_close():
            assert V(1).isclose(V(1.05), 0.1)
            assert not V(1).isclose(V(2), 0.1)
            assert isclose(V(0.5), 0.5) and not isclose(V(2), 1)
        """,
        before="class V:\n    def __init__(self, x):\n        self.x = x\n    def isclose(self, other, tol):\n        return None\n\ndef isclose(v, tol):\n    return None\n",
    ),
    Pair(
        "assertions of the tests' own that read a stream",
        "import io\n\ndef opened(text):\n    return io.StringIO(text.upper())\n",
        "import io\n\ndef opened(text):\n    return io.StringIO(text)\n",
        """
        import unittest
        from solution import opened

        def assert_equal(stream, wanted):
            assert stream.read() == wanted

        class TestIt(unittest.TestCase):
            def assertEqual(self, first, second, msg=None):
                super().assertEqual(first.read(), second, msg)

            def test_it(self):
                self.assertEqual(opened("a"), "A")

        def test_stream():
            assert_equal(opened("ab"), "AB")
        """,
    ),
    Pair(
        "warnings that are counted",
        "import warnings\n\nclass Old:\n    def __eq__(self, other):\n        warnings.warn('do not compare', DeprecationWarning, stacklevel=2)\n        return isinstance(other, Old)\n",
        "import warnings\n\nclass Old:\n    def __eq__(self, other):\n        return isinstance(other, Old)\n",
        """
        import warnings
        import pytest
        from solution import Old

        def test_warns_once():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert Old() == Old()
            assert len(caught) == 1
            with pytest.warns(DeprecationWarning, match="compare"):
                Old() == Old()
        """,
    ),
    Pair(
        "doctests and hypothesis",
        'def clamp(n, low, high):\n    """\n    >>> clamp(5, 0, 3)\n    3\n    """\n    return max(low, min(n, high))\n',
        'def clamp(n, low, high):\n    """\n    >>> clamp(5, 0, 3)\n    3\n    """\n    return min(n, high)\n',
        """
        import doctest
        import pytest
        import solution
        from solution import clamp

        given = pytest.importorskip("hypothesis").given
        from hypothesis import settings, strategies as st

        @settings(max_examples=20, database=None, deadline=None)
        @given(st.integers(), st.integers(-5, 5))
        def test_between(n, low):
            found = clamp(n, low, low + 3)
            assert low <= found <= low + 3
            assert clamp(found, low, low + 3) == found

        def test_docs():
            assert doctest.testmod(solution) == (0, 1)
        """,
    ),
    Pair(
        "what is compared is an expression",
        "class Column:\n    def __init__(self, name):\n        self.name = name\n    def __eq__(self, other):\n        return f'{self.name} = {other!r}'\n    def __lt__(self, other):\n        return f'{self.name} < {other!r}'\n",
        "class Column:\n    def __init__(self, name):\n        self.name = name\n    def __eq__(self, other):\n        return f'{self.name} == {other!r}'\n    def __lt__(self, other):\n        return f'{self.name} < {other!r}'\n",
        """
        from solution import Column

        def test_column():
            age = Column("age")
            assert (age == 5) == "age = 5"
            assert (age < 5) == "age < 5"
            query = age == "x"
            assert query == "age = 'x'"
            assert [age == n for n in (1, 2)] == ["age = 1", "age = 2"]
        """,
    ),
    Pair(
        "parameters that are objects",
        "def kind(x):\n    return type(x).__name__ if not isinstance(x, type) else x.__name__\n",
        "def kind(x):\n    return type(x).__name__\n",
        """
        import pytest
        from solution import kind

        class Thing:
            pass

        @pytest.mark.parametrize("x, wanted", [
            (Thing(), "Thing"), (Thing, "Thing"), pytest.param(int, "int", id="a type"), (lambda: 0, "function"),
        ])
        @pytest.mark.parametrize("calls", [1, 2])
        def test_kind(x, wanted, calls, request):
            for _ in range(calls):
                assert kind(x) == wanted
            assert request.node.name.startswith("test_kind[")

        @pytest.mark.parametrize("wanted", ["int"], ids=str.upper)
        def test_ids(wanted, request):
            assert kind(3) == wanted
        """,
    ),
    Pair(
        "formatted values",
        "def money(n):\n    return f'{n:,.2f}'\n",
        "def money(n):\n    return f'{n:.2f}'\n",
        """
        from solution import money

        def test_money():
            said = f"it is {money(1234.5) == '1,234.50'}"
            assert said == "it is True"
            assert f"{money(0)}" == "0.00", f"{money(0) == '0.00'}"
            wanted = (
                "1,000"
                ".00"
            )
            assert money(1000) == wanted
            assert money(-1) == '''-1.00'''
        """,
    ),
]

MATCHERS = [
    Pair(
        "a complement",
        "class Not:\n    def __init__(self, *x):\n        self.x = x\n    def __contains__(self, y):\n        return y not in self.x\n    def __eq__(self, y):\n        return y not in self.x\n",
        "class Not:\n    def __init__(self, *x):\n        self.x = x\n    def __contains__(self, y):\n        return y in self.x\n    def __eq__(self, y):\n        return y in self.x\n",
        """
        from solution import Not

        def test_not():
            others = Not("a", "b")
            assert "c" in others and 5 in others
            assert "a" not in others
            assert Not(5) == "c"
            assert not Not(5) == 5
        """,
    ),
    Pair(
        "ranges and kinds",
        "class Between:\n    def __init__(self, low, high):\n        self.low, self.high = low, high\n    def __eq__(self, x):\n        return self.low <= x <= self.high\n\nclass OneOf:\n    def __init__(self, *x):\n        self.x = x\n    def __eq__(self, x):\n        return x in self.x\n",
        "class Between:\n    def __init__(self, low, high):\n        self.low, self.high = low, high\n    def __eq__(self, x):\n        return self.low <= x < self.high\n\nclass OneOf:\n    def __init__(self, *x):\n        self.x = x\n    def __eq__(self, x):\n        return x == self.x[0]\n",
        """
        from solution import Between, OneOf

        def test_between():
            small = Between(1, 10)
            assert small == 5
            assert 5 == small
            assert small == 10 and small == 1.5
            assert not small == 11
            assert OneOf(1, 2, 3) == 2
            assert [OneOf(1, 2).x, 2] == [(1, 2), 2]
        """,
    ),
    Pair(
        "classes and managers in a test",
        "def load(n):\n    return {'id': n * 7, 'tags': [n]}\n",
        "def load(n):\n    return {'id': str(n), 'tags': [n]}\n",
        """
        import contextlib
        import pytest
        from solution import load

        def test_any():
            class Anything:
                def __eq__(self, other):
                    return True

            class Positive(int):
                def __eq__(self, other):
                    return other > 0

            class expected_to_fail:
                def __enter__(self):
                    return self
                def __exit__(self, kind, error, trace):
                    return kind is AssertionError

            anything = Anything()
            assert load(2)["tags"] == anything
            assert load(1) == {"id": Positive(3), "tags": Anything()}
            assert anything in load(3)["tags"]
            with expected_to_fail():
                assert load(1) == {"id": 1}
            for n in (1, 2):
                with contextlib.suppress(AssertionError):
                    assert load(n)["id"] == 14
                    break
            assert n == 2 and load(n)["id"] == 14

        @pytest.mark.parametrize("text, wanted", [("a::b", 7), ("[c::d]", 14)])
        def test_ids(text, wanted):
            def numbers():
                yield load(wanted // 7)["id"]
            assert list(numbers()) == [wanted]

        class TestOne:
            def test_basic(self):
                assert load(1)["id"] == 7

        class TestTwo:
            def test_basic(self):
                try:
                    return
                finally:
                    assert load(0)["id"] == 0
        """,
        uncontrolled=1,
    ),
]

PAIRS = [*MATCHERS, *ALIASING, *KINDS, *CLASSES, *FLOW, *TESTING]
