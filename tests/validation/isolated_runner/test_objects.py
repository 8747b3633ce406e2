"""Exceptions and objects of the candidate, as the tests see them."""

from tests.validation.isolated_runner.support import Run, words


class TestExceptions:
    def test_built_in_ones(self, run: Run) -> None:
        report = run(
            """
            import json
            def fail(kind, *args): raise kind(*args)
            def look(d, k): return d[k]
            def parse(text): return json.loads(text)
            def decode(b): return b.decode()
            def leave(): raise SystemExit(3)
            def read(): return open("nothing.txt")
            """,
            """
            import json
            import pytest
            import solution
            def test_raises():
                with pytest.raises(KeyError) as caught: solution.look({}, "k")
                assert caught.value.args == ("k",) and str(caught.value) == "'k'"
            def test_base():
                with pytest.raises(LookupError): solution.look([], 0)
            def test_match():
                with pytest.raises(ValueError, match=r"^at 1\\.5$"): solution.fail(ValueError, "at 1.5")
            def test_caught():
                try: solution.fail(ZeroDivisionError, "z")
                except ArithmeticError as error: assert error.args == ("z",)
                else: raise AssertionError
            def test_library():
                with pytest.raises(json.JSONDecodeError) as caught: solution.parse("{")
                assert caught.value.pos == 1 and caught.value.lineno == 1
            def test_unicode():
                with pytest.raises(UnicodeDecodeError) as caught: solution.decode(b"a\\xff")
                assert caught.value.start == 1
            def test_file():
                with pytest.raises(FileNotFoundError) as caught: solution.read()
                assert caught.value.errno == 2
            def test_exit():
                with pytest.raises(SystemExit) as caught: solution.leave()
                assert caught.value.code == 3
            def test_wrong_kind():
                with pytest.raises(KeyError): solution.fail(ValueError)
            def test_none_raised():
                with pytest.raises(KeyError): solution.look({"k": 1}, "k")
            """,
        )
        failed = {name for name, passed in report.tests.items() if not passed}
        assert failed == {"test_wrong_kind", "test_none_raised"}, words(report)
        assert words(report)["test_wrong_kind"] == "ValueError"
        assert words(report)["test_none_raised"].startswith("Failed: DID NOT RAISE")

    def test_those_of_the_candidate(self, run: Run) -> None:
        report = run(
            """
            class Broke(Exception):
                def __init__(self, balance, needed):
                    super().__init__(f"{needed - balance} short")
                    self.balance = balance
            class VeryBroke(Broke, ValueError):
                def __str__(self): return f"very: {self.balance}"
            class Account:
                class Closed(RuntimeError): pass
                def close(self): raise self.Closed("closed")
            def pay(balance, needed):
                if balance < 0: raise VeryBroke(balance, needed)
                if balance < needed: raise Broke(balance, needed)
                return balance - needed
            def kind_of(error): return error.__name__, issubclass(error, Broke)
            """,
            """
            import pytest
            import solution
            from solution import Account, Broke, VeryBroke, pay
            def test_raises():
                with pytest.raises(Broke, match="^3 short$") as caught: pay(2, 5)
                assert caught.value.balance == 2 and not isinstance(caught.value, VeryBroke)
            def test_caught():
                try: pay(2, 5)
                except VeryBroke: raise AssertionError
                except Broke as error: assert isinstance(error, solution.Broke) and type(error) is Broke
            def test_base():
                with pytest.raises(Broke, match="very: -1") as caught: pay(-1, 5)
                assert isinstance(caught.value, VeryBroke) and issubclass(VeryBroke, Broke)
            def test_inner():
                with pytest.raises(Account.Closed): Account().close()
            def test_handed_back(): assert solution.kind_of(VeryBroke) == ("VeryBroke", True)
            def test_unexpected(): pay(2, 5)
            """,
        )
        assert [name for name, passed in report.tests.items() if not passed] == ["test_unexpected"], words(report)
        assert words(report)["test_unexpected"] == "solution.Broke: 3 short"


class TestObjectsOfTheCandidate:
    def test_attributes_properties_and_methods(self, run: Run) -> None:
        report = run(
            """
            import dataclasses, enum
            class Colour(enum.Enum):
                RED = 1
            @dataclasses.dataclass
            class Item:
                name: str
                price: float = 1.0
                tags: list = dataclasses.field(default_factory=list)
                limit = 10
                @property
                def label(self): return f"{self.name}: {self.price}"
                @label.setter
                def label(self, text): self.name, self.price = text.split(": ")
                @classmethod
                def free(cls, name): return cls(name, 0.0)
                @staticmethod
                def tax(price): return price / 2
            class Cheap(Item): pass
            def paint(x): return Colour.RED
            """,
            """
            import pytest
            from solution import Cheap, Colour, Item, paint
            def test_attributes():
                item = Item("pen")
                assert (item.name, item.price, item.limit, Item.limit) == ("pen", 1.0, 10, 10)
                item.price += 1
                assert item.label == "pen: 2.0"
            def test_property():
                item = Item("pen")
                item.label = "ink: 3"
                assert item.name == "ink"
                del item.price
                assert item.price == 1.0
            def test_methods(): assert Item.free("x").price == 0.0 and Item.tax(4) == 2
            def test_isinstance():
                assert isinstance(Cheap("x"), Item) and not isinstance(Item("x"), Cheap) and not isinstance(3, Item)
                assert isinstance(Item("x"), (int, Item))
                assert issubclass(Cheap, Item) and not issubclass(Item, Cheap) and not issubclass(int, Item)
            def test_same_object():
                item = Item("x")
                assert item == item and item is not Item("x") and {item: 1}[item] == 1
                assert paint(1) is Colour.RED and paint(1) == Colour.RED and Colour(1).name == "RED"
            def test_missing():
                with pytest.raises(AttributeError, match="nothing"): Item("x").nothing
                assert not hasattr(Item("x"), "nothing") and getattr(Item("x"), "nothing", 5) == 5
            def test_text():
                assert repr(Item("x")) == "Item(name='x', price=1.0, tags=[])" and str(Colour.RED) == "Colour.RED"
            def test_handed_back(): assert Item("x", tags=[Colour.RED]).tags[0] is Colour.RED
            """,
        )
        assert (report.status, words(report)) == ("passed", {})

    def test_containers_and_arithmetic(self, run: Run) -> None:
        report = run(
            """
            class Vector:
                def __init__(self, *xs): self.xs = list(xs)
                def __len__(self): return len(self.xs)
                def __getitem__(self, i): return self.xs[i]
                def __setitem__(self, i, x): self.xs[i] = x
                def __delitem__(self, i): del self.xs[i]
                def __contains__(self, x): return x in self.xs
                def __bool__(self): return any(self.xs)
                def __add__(self, other): return Vector(*map(sum, zip(self.xs, other.xs)))
                def __radd__(self, other): return Vector(*(other + x for x in self.xs))
                def __sub__(self, other): return Vector(*(a - b for a, b in zip(self.xs, other.xs)))
                def __mul__(self, n): return Vector(*(n * x for x in self.xs))
                __rmul__ = __mul__
                def __neg__(self): return self * -1
                def __abs__(self): return sum(x * x for x in self.xs) ** 0.5
                def __matmul__(self, other): return sum(a * b for a, b in zip(self.xs, other.xs))
                def __call__(self, i): return self.xs[i]
                def __reversed__(self): return iter(self.xs[::-1])
                def __int__(self): return int(abs(self))
                def __float__(self): return float(abs(self))
                def __format__(self, spec): return spec.join(map(str, self.xs))
                def __or__(self, other): return Vector(*self.xs, *other.xs)
                def __iadd__(self, x): self.xs.append(x); return self
            """,
            """
            import pytest
            from solution import Vector
            def test_items():
                v = Vector(1, 2, 3)
                v[0] = 5
                del v[1]
                assert len(v) == 2 and v[0] == 5 and v[0:2] == [5, 3] and 3 in v and 4 not in v
                assert list(v) == [5, 3] and list(reversed(v)) == [3, 5] and v(1) == 3
                with pytest.raises(IndexError): v[2]
            def test_sums(): assert (Vector(1, 2) + Vector(3, 4) - Vector(1, 1)).xs == [3, 5]
            def test_products():
                assert (Vector(1, 2) * 3).xs == [3, 6] == (3 * Vector(1, 2)).xs and Vector(1, 2) @ Vector(3, 4) == 11
            def test_right(): assert (1 + Vector(1, 2)).xs == [2, 3]
            def test_in_place():
                v = w = Vector(1)
                v += 2
                assert v is w and w.xs == [1, 2]
            def test_others(): assert (Vector(1) | Vector(2)).xs == [1, 2] and f"{Vector(1, 2):-}" == "1-2"
            def test_one():
                assert (-Vector(3)).xs == [-3] and abs(Vector(3, 4)) == 5 == int(Vector(3, 4)) == float(Vector(3, 4))
            def test_truth(): assert Vector(1) and not Vector(0)
            def test_compared():
                with pytest.raises(TypeError, match="cannot be compared here"): Vector(1) < Vector(2)
            """,
        )
        assert (report.status, words(report)) == ("passed", {})

    def test_two_objects_are_never_equal_since_the_candidate_would_say_so_itself(self, run: Run) -> None:
        report = run(
            "class Yes:\n    def __eq__(self, other): return True",
            "from solution import Yes\ndef test_it(): assert Yes() == 5\ndef test_two(): assert Yes() == Yes()",
        )
        assert report.tests == {"test_it": False, "test_two": False}
