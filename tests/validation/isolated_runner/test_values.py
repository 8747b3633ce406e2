"""Values between tests and candidate: every plain value survives the round trip, and nothing else gets through."""

import collections
import contextlib
import datetime
import decimal
import enum
import fractions
import json
import math
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.validation.isolated_runner.values import NotPlainError, decode, encode, replace_content

Point = collections.namedtuple("Point", ["x", "y"])
Renamed = collections.namedtuple("Renamed", ["x", "class", "x"], rename=True)


def refuse(value: object) -> object:
    raise AssertionError(f"{value!r} was taken for no plain value")


def over_the_wire(value: Any) -> Any:
    return decode(json.loads(json.dumps(encode(value, refuse))), refuse)


def same(one: Any, two: Any) -> bool:
    return canonical(one) == canonical(two)


def canonical(value: Any) -> str:
    """The type and the bits of a value, also where == looks away: -0.0, nan, the order of keys, time zones."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{type(value).__name__}{value._fields}{canonical(tuple(value))}"
    if isinstance(value, list | tuple | collections.deque):
        return f"{type(value).__name__}[{', '.join(map(canonical, value))}]"
    if isinstance(value, dict):
        return f"{type(value).__name__}{canonical(list(value.items()))}"
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}{sorted(map(canonical, value))}"
    if isinstance(value, int | fractions.Fraction):
        return f"{type(value).__name__} {hex(value.numerator)}/{hex(value.denominator)}"
    if isinstance(value, range):
        return f"range{canonical([value.start, value.stop, value.step])}"
    if isinstance(value, slice):
        return f"slice{canonical([value.start, value.stop, value.step])}"
    if isinstance(value, complex):
        return f"complex{canonical([value.real, value.imag])}"
    return f"{type(value).__name__} {value!r}"


def unfolded(time: Any) -> Any:
    """`fold` says which of two equal times is meant; == does not look at it, and it is not passed on."""
    return time.replace(fold=0)


zones = st.none() | st.integers(-86_399, 86_399).map(lambda s: datetime.timezone(datetime.timedelta(seconds=s)))
texts = st.text(st.characters(exclude_categories=()), max_size=5)
hashable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | texts
    | st.binary(max_size=5)
    | st.just(...)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.dates()
    | st.times(timezones=zones).map(unfolded)
    | st.datetimes(timezones=zones).map(unfolded)
    | st.timedeltas()
    | st.builds(range, st.integers(), st.integers(), st.integers(min_value=1))
    | st.sampled_from([int, str, list, dict, decimal.Decimal, datetime.date, collections.Counter, object]),
    lambda inner: (
        st.tuples(inner, inner)
        | st.builds(Point, inner, inner)
        | st.builds(Renamed, inner, inner, inner)
        | st.frozensets(inner, max_size=3)
    ),
    max_leaves=4,
)
values = st.recursive(
    hashable
    | st.binary(max_size=5).map(bytearray)
    | st.sampled_from([decimal.Decimal("NaN"), decimal.Decimal("sNaN")]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.sets(hashable, max_size=3)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.dictionaries(texts, inner, max_size=3).map(collections.OrderedDict)
        | st.dictionaries(hashable, st.integers(), max_size=3).map(collections.Counter)
        | st.lists(inner, max_size=3).map(collections.deque)
    ),
    max_leaves=10,
)


@given(values)
def test_every_plain_value_comes_out_as_it_went_in(value: Any) -> None:
    assert same(over_the_wire(value), value)


HUGE = 7 * 10**5_000 + 1


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        5e-324,
        complex(math.nan, -0.0),
        2**53,
        -(2**53),
        HUGE,
        -HUGE,
        fractions.Fraction(HUGE, 3),
        range(-HUGE, HUGE, HUGE - 1),
        decimal.Decimal("1e-400"),
        decimal.Decimal("-0.00"),
        decimal.Decimal("1" * 5_000),
        datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.timezone(datetime.timedelta(seconds=-1))),
        datetime.datetime.min,
        datetime.timedelta.max,
        {frozenset({1, 2}), frozenset()},
        {(1, ("a", frozenset({b"x"}))): [{"k": {1.5}}]},
        collections.OrderedDict([("b", 1), ("a", 2)]),
        collections.Counter("abracadabra"),
        collections.deque([[1], [2]]),
        "\ud800 and \x00",
        Point(1, [2]),
        Renamed(1, 2, 3),
        slice(None, HUGE, -1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_at_the_edges(value: Any) -> None:
    assert same(over_the_wire(value), value)


def test_a_default_dict_keeps_a_plain_factory_and_no_other() -> None:
    kept = over_the_wire(collections.defaultdict(list, {"a": [1]}))
    assert same(kept, collections.defaultdict(list, {"a": [1]})) and kept["b"] == []
    assert same(over_the_wire(collections.defaultdict(lambda: 5, {"a": 1})), {"a": 1})


def test_the_length_of_a_deque_stays_limited() -> None:
    assert over_the_wire(collections.deque([1, 2], maxlen=2)).maxlen == 2


@pytest.mark.parametrize("hours", [0, 2, -5.5])
def test_time_zones(hours: float) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    named = datetime.timezone(datetime.timedelta(hours=hours), "local")
    assert over_the_wire(zone) == zone and over_the_wire(named).tzname(None) == "local"
    assert over_the_wire(datetime.UTC) is datetime.UTC


def test_nesting_has_an_end_on_both_sides() -> None:
    def nested(depth: int) -> list[Any]:
        value: list[Any] = []
        for _ in range(depth):
            value = [value]
        return value

    assert over_the_wire(nested(200)) == nested(200)
    with pytest.raises(ValueError, match="nested too deeply"):
        encode(nested(201), refuse)
    itself: list[Any] = []
    itself.append(itself)
    with pytest.raises(ValueError, match="nested too deeply"):
        encode(itself, refuse)
    plain: Any = None
    for _ in range(5_000):
        plain = ["list", [plain]]
    with pytest.raises(NotPlainError, match="nested too deeply"):
        decode(plain, refuse)


class EqualToAll(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Colour(enum.Enum):
    RED = 1


class Strings(list[str]):
    pass


class Fields(tuple[int, ...]):
    _fields = ("a",)


class OfPoint(Point):
    pass


class Method(NamedTuple):
    x: int


class Shouting(dict[str, int]):
    def items(self) -> Any:
        raise AssertionError("a method of the candidate was called")


class Mixed(enum.StrEnum):
    A = "a"


@pytest.mark.parametrize(
    "value",
    [
        EqualToAll(1),
        Colour.RED,
        Mixed.A,
        Strings(["a"]),
        Shouting(a=1),
        OfPoint(1, 2),
        True.__class__.__add__,
        len,
        EqualToAll,
        ValueError,
        ValueError("x"),
        json,
        iter([1]),
        memoryview(b"x"),
        type("Tz", (datetime.tzinfo,), {})(),
        type("Day", (datetime.date,), {})(2024, 1, 1),
        object(),
        lambda: 1,
    ],
    ids=lambda value: type(value).__name__,
)
def test_everything_else_passes_as_a_reference(value: object) -> None:
    exported: list[object] = []

    def export(one: object) -> str:
        exported.append(one)
        return "number 7"

    assert encode([value], export) == ["list", [["reference", "number 7"]]]
    assert exported[0] is value
    assert decode(["list", [["reference", "number 7"]]], lambda plain: (plain, "adopted")) == [("number 7", "adopted")]


def test_a_tuple_with_fields_of_its_own_is_told_by_its_fields_only() -> None:
    assert over_the_wire(Method(3)) == (3,)
    assert over_the_wire(Method(3)).x == 3


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
names = st.sampled_from(
    [
        "list",
        "tuple",
        "set",
        "frozenset",
        "deque",
        "dict",
        "OrderedDict",
        "Counter",
        "bytes",
        "bytearray",
        "complex",
        "range",
        "ellipsis",
        "Decimal",
        "Fraction",
        "date",
        "time",
        "datetime",
        "timedelta",
        "int",
        "float",
        "namedtuple",
        "type",
        "unknown",
        "__class__",
    ]
)
nearly_plain = st.recursive(
    st.tuples(names, json_values).map(list) | json_values,
    lambda inner: st.tuples(names, inner | st.lists(inner, max_size=3)).map(list),
    max_leaves=6,
)


@given(json_values | nearly_plain)
def test_what_is_malformed_raises_one_error_only(plain: Any) -> None:
    with contextlib.suppress(NotPlainError):
        decode(plain, refuse)


@pytest.mark.parametrize(
    "plain",
    [
        1.5,
        [],
        ["list"],
        ["list", [], []],
        {"list": []},
        [["list"], []],
        ["unknown", []],
        ["list", 1],
        ["set", [["list", []]]],
        ["dict", [[["list", []], 1]]],
        ["dict", [[1, 2, 3]]],
        ["int", "not hex"],
        ["int", 5],
        ["float", 1.5],
        ["float", "0x1p+99999"],
        ["complex", ["0x0p+0"]],
        ["bytes", "ä"],
        ["bytes", "a"],
        ["range", ["0x1", "0x2", "0x0"]],
        ["range", [1, 2, 3]],
        ["slice", []],
        ["slice", [1, 2, 3, 4]],
        ["Fraction", ["0x1", "0x0"]],
        ["Fraction", "1e999999999999"],
        ["Decimal", "one"],
        ["date", "2024-02-30"],
        ["datetime", None],
        ["time", "25:00"],
        ["timedelta", [10**12, 0, 0]],
        ["timedelta", [0, 0, 0, 0, 0, 0, 0, 0]],
        ["type", "eval"],
        ["type", []],
        ["namedtuple", ["Point", ["x"], []]],
        ["namedtuple", ["not a name", ["x"], [1]]],
        ["namedtuple", ["P", ["fi", "\ufb01"], [1, 2]]],
        ["namedtuple", ["P", 5, [1, 2]]],
        ["namedtuple", []],
    ],
    ids=repr,
)
def test_malformed(plain: Any) -> None:
    with pytest.raises(NotPlainError):
        decode(plain, refuse)


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ([1, 2], [3]),
        ({"a": 1}, {"b": [2]}),
        ({1}, set()),
        (bytearray(b"a"), bytearray(b"bc")),
        (collections.deque([1]), collections.deque([2, 1])),
        (collections.Counter("aab"), collections.Counter("c")),
        (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=3, a=4)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_mutable_value_becomes_another_of_its_kind(value: Any, other: Any) -> None:
    alias = value
    replace_content(value, other)
    assert same(alias, other)


def test_a_default_dict_stays_one() -> None:
    value = collections.defaultdict(list, a=[1])
    replace_content(value, {"b": [2]})
    assert value["c"] == [] and value["b"] == [2] and "a" not in value


@pytest.mark.parametrize(("value", "other"), [([1], (1,)), ([1], {"a": 1}), ((1,), (2,)), ("a", "b"), ({1}, [1])])
def test_nothing_becomes_of_another_kind(value: Any, other: Any) -> None:
    with pytest.raises(NotPlainError):
        replace_content(value, other)
