"""Python tests on a candidate, through the real validator in a real sandbox.

The tests run in one process and the candidate in another; what is written here as one program must behave like one.
"""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from touchstone.errors import TouchstoneError
from touchstone.validation.protocol import Diagnostic, Job, Problem, Report, Tree
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.probe import choose_sandbox
from touchstone.validation.validators.python import PythonSettings, PythonValidator

Run = Callable[..., Report]


def made(scratch: Path, wanted: str, limits: Limits) -> Iterator[PythonValidator]:
    try:
        sandbox = choose_sandbox(scratch, wanted)
    except TouchstoneError as error:
        pytest.skip(str(error))
    validator = PythonValidator(sandbox, limits, PythonSettings(lint=False))
    yield validator
    validator.close()


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PythonValidator]:
    """The one that most tests share: its workers stay warm."""
    yield from made(tmp_path_factory.mktemp("sandbox"), "auto", Limits(seconds=20.0))


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[PythonValidator]:
    yield from made(tmp_path, "auto", Limits(seconds=1.5))


@pytest.fixture
def in_landlock(tmp_path: Path) -> Iterator[PythonValidator]:
    yield from made(tmp_path, "landlock", Limits(seconds=20.0))


def job_of(files: dict[str, str | bytes], filename: str, directory: str = "", **problem: tuple[str, ...]) -> Job:
    root = Path("/nonexistent")
    contents = {path: _bytes(text) for path, text in files.items()}
    return Job(Problem("p", filename, root, directory, **problem), Tree(root, tuple(sorted(contents)), contents))


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else textwrap.dedent(text).encode()


def report_on(validator: PythonValidator, job: Job) -> Report:
    (report,) = validator.validate([job])
    return report


@pytest.fixture
def run(validator: PythonValidator) -> Run:
    """A candidate in solution.py under the tests in test_solution.py."""

    def validate(candidate: str, tests: str, /, **more: tuple[str, ...]) -> Report:
        return report_on(
            validator, job_of({"solution.py": candidate, "test_solution.py": tests}, "solution.py", **more)
        )

    return validate


def words(report: Report) -> dict[str | None, str]:
    return {one.test: one.detail for one in report.diagnostics}


def assert_all_pass(report: Report, *names: str) -> None:
    assert (report.status, report.diagnostics, report.note) == ("passed", (), "")
    assert report.tests == dict.fromkeys(names, True)
    assert (report.compiled, report.consistent, report.fidelity) == (True, True, "full")


class TestWhatIsATest:
    def test_functions(self, run: Run) -> None:
        report = run(
            "def double(x): return 2 * x",
            """
            import solution
            from solution import double
            def helper(): raise AssertionError
            def test_good(): assert double(2) == 4 and solution.double("a") == "aa"
            def test_bad():
                assert double(2) == 5
            def test_words(): assert double(2) == 5, "two times two"
            """,
        )
        assert report.status == "failed"
        assert report.tests == {"test_good": True, "test_bad": False, "test_words": False}
        assert words(report) == {
            "test_bad": "AssertionError: assert double(2) == 5",
            "test_words": "AssertionError: two times two",
        }
        assert report.diagnostics[0].identity == ("error", "test", "test_bad")

    def test_methods_with_what_comes_before_and_after_each(self, run: Run) -> None:
        report = run(
            "class Stack(list): push = list.append",
            """
            from solution import Stack
            class Common:
                def test_inherited(self): assert len(self.stack) == 1
            class TestStack(Common):
                made = 0
                @classmethod
                def setup_class(cls): cls.made += 1
                def setup_method(self, method):
                    self.stack = Stack()
                    self.stack.push(1)
                def teardown_method(self):
                    assert self.stack.pop() == 1
                def test_push(self):
                    assert self.made and len(self.stack) == 1
                def test_two(self):
                    self.stack.push(2)
                def helper(self): raise AssertionError
            class Other:
                def test_not_collected(self): raise AssertionError
            """,
        )
        good = {"TestStack::test_inherited": True, "TestStack::test_push": True}
        assert report.tests == good | {"TestStack::test_two": False}

    def test_unittest(self, run: Run) -> None:
        report = run(
            "def half(x): return x // 2",
            """
            import unittest
            from solution import half
            class HalfTest(unittest.TestCase):
                @classmethod
                def setUpClass(cls): cls.shared = 4
                def setUp(self): self.four = self.shared
                def test_even(self): self.assertEqual(half(self.four), 2)
                def test_odd(self): self.assertEqual(half(3), 1.5)
                def test_many(self):
                    for given, wanted in [(2, 1), (5, 2.5), (6, 3)]:
                        with self.subTest(given=given):
                            self.assertEqual(half(given), wanted)
                def test_raises(self):
                    with self.assertRaises(TypeError): half("a")
                @unittest.skip("later")
                def test_skipped(self): pass
                @unittest.expectedFailure
                def test_better_than_expected(self): pass
            class NoTest(unittest.TestCase):
                def setUp(self): raise ValueError("no set-up")
                def test_it(self): pass
            class Later(unittest.IsolatedAsyncioTestCase):
                async def test_async(self): self.assertEqual(half(2), 1)
            """,
        )
        assert report.tests == {
            "HalfTest::test_better_than_expected": False,
            "HalfTest::test_even": True,
            "HalfTest::test_many": False,
            "HalfTest::test_odd": False,
            "HalfTest::test_raises": True,
            "HalfTest::test_skipped": False,
            "NoTest::test_it": False,
            "Later::test_async": True,
        }
        assert words(report)["HalfTest::test_odd"] == "AssertionError: AssertionError: 1 != 1.5"
        assert words(report)["HalfTest::test_skipped"] == "AssertionError: the test was skipped"
        assert "no set-up" in words(report)["NoTest::test_it"]

    def test_parametrized(self, run: Run) -> None:
        report = run(
            "def add(a, b=None): return a if b is None else a + b",
            """
            import pytest
            from solution import add
            @pytest.mark.parametrize("a", [1, pytest.param(2), pytest.param(3, id="three"), (4, 5)])
            def test_one(a): assert add(a) == a
            @pytest.mark.parametrize("a, b, wanted", [(1, 2, 3), pytest.param(1, 1, 3)])
            def test_three(a, b, wanted): assert add(a, b) == wanted
            @pytest.mark.parametrize(("a", "b"), [[1, 2]])
            @pytest.mark.parametrize(["c"], [(3,), (4,)])
            def test_stacked(a, b, c): assert add(a, b) == c
            class TestIn:
                @pytest.mark.parametrize("a", ["x", "y"])
                def test_class(self, a): assert add(a, "!") == a + "!"
            @pytest.mark.parametrize("a", [])
            def test_none(a): pass
            @pytest.mark.parametrize("a", [1])
            class TestWhole:
                def test_it(self, a): assert add(a) == 1
            """,
        )
        assert report.tests == {
            **{f"test_one[{place}]": True for place in range(4)},
            "test_three[0]": True,
            "test_three[1]": False,
            "test_stacked[0]": True,
            "test_stacked[1]": False,
            "TestIn::test_class[0]": True,
            "TestIn::test_class[1]": True,
            "TestWhole::test_it[0]": True,
        }

    def test_coroutines(self, run: Run) -> None:
        report = run(
            """
            import asyncio
            async def later(x):
                await asyncio.sleep(0)
                if x is None: raise LookupError("nothing")
                return x
            """,
            """
            import asyncio, pytest
            from solution import later
            async def test_awaited(): assert await later(3) == 3
            async def test_wrong(): assert await later(3) == 4
            async def test_gathered(): assert await asyncio.gather(later(1), later(2)) == [1, 2]
            async def test_raised():
                with pytest.raises(LookupError, match="nothing"): await later(None)
            def test_run(): assert asyncio.run(later(5)) == 5
            """,
        )
        assert report.tests == {
            "test_awaited": True,
            "test_wrong": False,
            "test_gathered": True,
            "test_raised": True,
            "test_run": True,
        }

    def test_asynchronous_contexts_and_iterators(self, run: Run) -> None:
        report = run(
            """
            import asyncio, contextlib
            class Pool:
                def __init__(self): self.lock, self.log = asyncio.Lock(), []
                async def __aenter__(self): await self.lock.acquire(); return self
                async def __aexit__(self, kind, error, trace):
                    self.lock.release()
                    self.log.append(kind.__name__ if kind else None)
                async def get(self, n): await asyncio.sleep(0); return n
            async def count(n):
                for i in range(n):
                    await asyncio.sleep(0)
                    yield i
            @contextlib.asynccontextmanager
            async def quiet():
                try: yield 1
                except ValueError: pass
            async def put(queue): await queue.put(1)
            """,
            """
            import pytest
            import solution
            async def test_with():
                pool = solution.Pool()
                async with pool as same: assert same is pool and await pool.get(3) == 3 and pool.lock.locked()
                assert not pool.lock.locked() and pool.log == [None]
            async def test_raised():
                pool = solution.Pool()
                with pytest.raises(KeyError):
                    async with pool: raise KeyError
                assert pool.log == ["KeyError"]
            async def test_quiet():
                async with solution.quiet() as one: raise ValueError
                assert one == 1
            async def test_not_quiet():
                async with solution.quiet(): assert False
            async def test_for(): assert [i async for i in solution.count(3)] == [0, 1, 2]
            async def test_next():
                it = solution.count(1)
                assert await anext(it) == 0 and await anext(it, "end") == "end"
            """,
        )
        assert [name for name, passed in report.tests.items() if not passed] == ["test_not_quiet"], words(report)
        assert len(report.tests) == 6

    def test_a_fixture_is_refused_by_its_name(self, run: Run) -> None:
        report = run(
            "",
            """
            def test_files(tmp_path): pass
            def test_default(a=1, *more, **named): assert a == 1
            class TestIn:
                def test_method(self, capsys): pass
            """,
        )
        assert report.tests == {"test_files": False, "test_default": True, "TestIn::test_method": False}
        assert (
            words(report)["test_files"]
            == "TypeError: the test needs the fixture 'tmp_path', and fixtures are not supported"
        )
        assert "'capsys'" in words(report)["TestIn::test_method"]

    def test_a_skipped_test_does_not_pass(self, run: Run) -> None:
        report = run(
            "",
            """
            import pytest, unittest
            @pytest.mark.skip
            def test_mark(): pass
            @pytest.mark.skip(reason="later")
            def test_reason(): pass
            @pytest.mark.skipif(True, reason="here")
            def test_if(): pass
            @pytest.mark.skipif(False, reason="elsewhere")
            def test_not(): pass
            def test_inside(): pytest.skip("now")
            def test_inside_too(): raise unittest.SkipTest("now")
            @pytest.mark.parametrize("a", [1, pytest.param(2, marks=pytest.mark.skip)])
            def test_row(a): pass
            @pytest.mark.skip
            class TestAll:
                def test_it(self): pass
            """,
        )
        assert [name for name, passed in report.tests.items() if passed] == ["test_not", "test_row[0]"]
        assert len(report.tests) == 9

    def test_a_whole_module_can_be_skipped(self, run: Run) -> None:
        report = run("", "import pytest\npytestmark = pytest.mark.skip\ndef test_it(): pass")
        assert report.tests == {"test_it": False}
        report = run("", "import pytest\npytest.skip('not here', allow_module_level=True)\ndef test_it(): pass")
        assert (report.status, report.tests) == ("failed", {"test_solution.py": False})

    def test_a_file_that_is_named_twice_is_run_once(self, run: Run) -> None:
        candidate = "calls = []\ndef f(): calls.append(1); return len(calls)"
        tests = "import solution\ndef test_it(): assert solution.f() == 2"
        report = run(candidate, tests, tests=("test_solution.py", "test_solution.py"))
        assert report.tests == {"test_it": False}

    def test_of_two_tests_with_one_name_the_last_counts_as_in_python(self, run: Run) -> None:
        report = run("", "def test_it(): raise ValueError\ndef test_it(): pass")
        assert_all_pass(report, "test_it")


class TestPassingThings:
    def test_plain_values_come_back_equal_and_of_their_type(self, run: Run) -> None:
        report = run(
            "def same(x): return x",
            """
            import collections, datetime, decimal, math
            from solution import same
            def test_values():
                for x in [None, True, 3, -0.0, 2**80, "é", b"x", [1, [2]], (1, (2,)), {1: {2}}, frozenset({1}), ...,
                          decimal.Decimal("0.10"), datetime.date(2024, 2, 29), collections.Counter("aab"), range(3)]:
                    assert same(x) == x and type(same(x)) is type(x)
                assert math.isnan(same(math.nan)) and str(same(-0.0)) == "-0.0"
            def test_types(): assert same(int) is int and same([str, ValueError]) == [str, ValueError]
            """,
        )
        assert_all_pass(report, "test_values", "test_types")

    def test_keyword_arguments_and_defaults(self, run: Run) -> None:
        report = run(
            "def f(a, /, b=2, *args, c, d=4, **more): return a, b, args, c, d, more",
            """
            import pytest
            from solution import f
            def test_all(): assert f(1, c=3) == (1, 2, (), 3, 4, {})
            def test_more(): assert f(1, 5, 6, c=3, on=7, name=8, op=9, self=0) == (
                1, 5, (6,), 3, 4, {"on": 7, "name": 8, "op": 9, "self": 0})
            def test_missing():
                with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'c'"): f(1)
            """,
        )
        assert_all_pass(report, "test_all", "test_more", "test_missing")

    def test_what_the_candidate_does_to_a_list_is_seen(self, run: Run) -> None:
        report = run(
            """
            def sort(xs): xs.sort()
            def put(d, *, k): d[k] = d.get(k, 0) + 1
            def rotate(grid): grid[:] = [list(row) for row in zip(*grid[::-1])]
            def drop(s, q): s.clear(); q.popleft()
            def forget(xs): xs = []
            class Bag:
                def drain(self, xs):
                    while xs: xs.pop()
            """,
            """
            import collections
            import solution
            def test_list():
                xs = alias = [3, 1, 2]
                solution.sort(xs)
                assert alias == [1, 2, 3]
            def test_dict():
                d = {"a": 1}
                solution.put(d, k="a")
                solution.put(d=d, k="b")
                assert d == {"a": 2, "b": 1}
            def test_nested():
                grid = [[1, 2], [3, 4]]
                solution.rotate(grid)
                assert grid == [[3, 1], [4, 2]]
            def test_others():
                s, q = {1}, collections.deque([1, 2])
                solution.drop(s, q)
                assert s == set() and q == collections.deque([2])
            def test_method():
                xs = [1, 2]
                solution.Bag().drain(xs)
                assert xs == []
            def test_unchanged():
                xs = [3]
                solution.forget(xs)
                assert xs == [3]
            """,
        )
        assert_all_pass(report, "test_list", "test_dict", "test_nested", "test_others", "test_method", "test_unchanged")

    def test_callbacks(self, run: Run) -> None:
        report = run(
            """
            def order(xs, key=None): return sorted(xs, key=key)
            def each(f, xs): return [f(x) for x in xs]
            def twice(f): return lambda x: f(f(x))
            def first_error(f):
                try: f()
                except ValueError as error: return str(error)
            def compose(*fs):
                def composed(x):
                    for f in fs: x = f(x)
                    return x
                return composed
            """,
            """
            import pytest
            import solution
            class Boom(Exception): pass
            class Counter:
                def __init__(self): self.seen = []
                def __call__(self, x): self.seen.append(x); return len(self.seen)
            def boom(*_): raise Boom("tests", 7)
            def test_key(): assert solution.order(["bb", "a"], key=len) == ["a", "bb"]
            def test_lambda(): assert solution.order([1, 2], key=lambda x: -x) == [2, 1]
            def test_each():
                count = Counter()
                assert solution.each(count, "ab") == [1, 2] and count.seen == ["a", "b"]
            def test_returned(): assert solution.twice(lambda x: x + [1])([]) == [1, 1]
            def test_composed(): assert solution.compose(str, len)(12345) == 5
            def test_raised_and_caught_there():
                def fail(): raise ValueError("oh")
                assert solution.first_error(fail) == "oh"
            def test_raised_through():
                with pytest.raises(Boom) as caught: solution.each(boom, [1])
                assert caught.value.args == ("tests", 7)
            def test_deeply():
                def down(n): return 0 if n == 0 else 1 + solution.each(down, [n - 1])[0]
                assert down(20) == 20
            """,
        )
        assert (report.status, words(report)) == ("passed", {})
        assert len(report.tests) == 8

    def test_decorators(self, run: Run) -> None:
        report = run(
            """
            import functools
            def logged(function):
                @functools.wraps(function)
                def inner(*args, **kwargs):
                    inner.log.append(function.__name__)
                    return function(*args, **kwargs)
                inner.log = []
                return inner
            def retry(times, on=Exception):
                def decorate(function):
                    def inner(*args):
                        for left in reversed(range(times)):
                            try: return function(*args)
                            except on:
                                if not left: raise
                    return inner
                return decorate
            """,
            """
            import pytest
            from solution import logged, retry
            @logged
            def add(a, b=1):
                "Adds."
                return a + b
            def test_names(): assert add.__name__ == "add" and add.__doc__ == "Adds." and logged.__doc__ is None
            def test_called(): assert add(1) == 2 and add(1, b=2) == 3 and add.log == ["add", "add"]
            def test_retried():
                tries = []
                @retry(3, on=(KeyError, ValueError))
                def flaky(x):
                    tries.append(x)
                    if len(tries) < 3: raise ValueError
                    return "done"
                assert flaky(7) == "done" and tries == [7, 7, 7]
            def test_given_up():
                @retry(2, on=ValueError)
                def wrong(): raise KeyError("k")
                with pytest.raises(KeyError): wrong()
            """,
        )
        assert_all_pass(report, "test_names", "test_called", "test_retried", "test_given_up")

    def test_iterators(self, run: Run) -> None:
        report = run(
            """
            def total(xs): return sum(xs)
            def head(xs): return next(iter(xs), "empty")
            def count(n):
                while n: yield n; n -= 1
            def echo():
                got = None
                while True: got = yield got
            class Repeat:
                def __init__(self, x, n): self.x, self.n = x, n
                def __iter__(self): return iter([self.x] * self.n)
            """,
            """
            import itertools
            import pytest
            import solution
            def test_in(): assert solution.total(iter([1, 2])) == 3 == solution.total(x for x in (1, 2))
            def test_in_endless(): assert solution.head(itertools.count(5)) == 5
            def test_in_empty(): assert solution.head(iter(())) == "empty"
            def test_out(): assert list(solution.count(3)) == [3, 2, 1]
            def test_out_by_hand():
                it = solution.count(1)
                assert next(it) == 1 and next(it, "end") == "end"
                with pytest.raises(StopIteration): next(it)
            def test_sent():
                it = solution.echo()
                assert next(it) is None and it.send(4) == 4
                it.close()
            def test_again():
                r = solution.Repeat("x", 2)
                assert list(r) == ["x", "x"] == [*r] and "x" in r
            def test_endless(): assert list(itertools.islice(iter(solution.echo()), 2)) == [None, None]
            def test_back_in(): assert solution.total(solution.count(3)) == 6
            """,
        )
        assert (report.status, words(report)) == ("passed", {})
        assert len(report.tests) == 9

    def test_context_managers(self, run: Run) -> None:
        report = run(
            """
            import contextlib
            log = []
            class Transaction:
                def __enter__(self): log.append("begin"); return self
                def __exit__(self, kind, error, trace): log.append(kind.__name__ if kind else "commit")
            class Mine(Exception): pass
            @contextlib.contextmanager
            def quiet(*kinds):
                try: yield "inside"
                except kinds: pass
            @contextlib.contextmanager
            def translated():
                try: yield
                except ValueError as error: raise Mine(str(error)) from error
            """,
            """
            import pytest
            import solution
            def test_commit():
                with solution.Transaction() as t: assert t
                assert solution.log == ["begin", "commit"]
            def test_rollback():
                solution.log = []
                with pytest.raises(KeyError):
                    with solution.Transaction(): raise KeyError("k")
                assert solution.log[-1] == "KeyError"
            def test_quiet():
                with solution.quiet(ValueError, solution.Mine) as word: raise ValueError
                assert word == "inside"
                with solution.quiet(solution.Mine): raise solution.Mine
            def test_not_quiet():
                with pytest.raises(KeyError, match="k"):
                    with solution.quiet(ValueError): raise KeyError("k")
            def test_translated():
                with pytest.raises(solution.Mine, match="v"):
                    with solution.translated(): raise ValueError("v")
            """,
        )
        assert_all_pass(report, "test_commit", "test_rollback", "test_quiet", "test_not_quiet", "test_translated")

    def test_a_context_swallows_what_the_tests_raise_on_purpose_and_no_failure(self, run: Run) -> None:
        report = run(
            """
            class Swallow:
                value = 5
                def __enter__(self): return self
                def __exit__(self, *error): return True
                def fail(self): raise ValueError
            """,
            """
            import pytest
            from solution import Swallow
            def test_on_purpose():
                with Swallow(): raise ValueError
            def test_assertion():
                with Swallow() as s: assert s.value == 6
            def test_candidate():
                with Swallow() as s: assert s.fail() == 5
            def test_not_raised():
                with Swallow() as s:
                    with pytest.raises(KeyError): s.value
            def test_wrong_type():
                with Swallow() as s: assert s.value["a"] == 3
            def test_compared():
                with Swallow() as s: assert s < 3
            def test_missing():
                with Swallow() as s: assert s.nothing == 3
            """,
        )
        assert [name for name, passed in report.tests.items() if passed] == ["test_on_purpose"]


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


class TestModules:
    def test_what_the_tests_set_is_seen_by_the_candidate(self, run: Run) -> None:
        report = run(
            """
            import time
            LIMIT = 3
            def limited(x): return min(x, LIMIT)
            def now(): return time.time()
            class Clock:
                def tick(self): return "tick"
            """,
            """
            import pytest
            from unittest import mock
            import solution
            def test_set():
                before, solution.LIMIT = solution.LIMIT, 10
                assert (before, solution.limited(50)) == (3, 10)
                solution.LIMIT = before
            def test_patched():
                with mock.patch("solution.LIMIT", 5): assert solution.limited(50) == 5
                assert solution.limited(50) == 3
            def test_patched_library():
                with mock.patch("solution.time.time", return_value=12.5) as clock: assert solution.now() == 12.5
                clock.assert_called_once_with()
                assert solution.now() > 1e9
            def test_patched_method():
                with mock.patch.object(solution.Clock, "tick", lambda self: "tock"):
                    assert solution.Clock().tick() == "tock"
                assert solution.Clock().tick() == "tick"
            def test_missing():
                with pytest.raises(AttributeError, match="nothing"): solution.nothing
                with pytest.raises(ImportError): from solution import nothing
            """,
        )
        assert (report.status, words(report)) == ("passed", {})

    def test_star_imports_follow_all_or_leave_private_names_out(self, run: Run) -> None:
        report = run("a, _b = 1, 2", "from solution import *\ndef test_it(): assert a == 1 and '_b' not in globals()")
        assert_all_pass(report, "test_it")
        report = run(
            "__all__ = ['_b']\na, _b = 1, 2",
            "from solution import *\ndef test_it(): assert _b == 2 and 'a' not in globals()",
        )
        assert_all_pass(report, "test_it")

    def test_packages(self, validator: PythonValidator) -> None:
        files = {
            "shop/__init__.py": "from .cart import total\nfrom . import money\nNAME = 'shop'\n__version__ = '1.2'\n",
            "shop/cart.py": "from .money import rounded\nimport shop\n"
            "def total(xs): return rounded(sum(xs))\ndef lazily(xs): return shop.cart.total(xs) + shop.deep.er.X\n",
            "shop/money.py": "def rounded(x): return round(x, 2)\n",
            "shop/deep/er.py": "X = 1\n",
            "shop/deep/__init__.py": "",
            "shop/late.py": "Y = 2\n",
            "tests/test_shop.py": """
                import shop
                import shop.late as late
                import shop.deep.er
                from shop import cart, total as again
                from shop.cart import total
                def test_names(): assert shop.NAME == "shop" and shop.total is total is again
                def test_calls(): assert total([0.1, 0.2]) == 0.3 == cart.total([0.1, 0.2]) == shop.money.rounded(0.3)
                def test_deep(): assert shop.deep.er.X == 1 and late.Y == 2 == shop.late.Y
                def test_the_candidate_still_has_its_own_modules(): assert cart.lazily([1]) == 2
                def test_dunder(): assert shop.__version__ == "1.2" and shop.__name__ == "shop"
            """,
        }
        report = report_on(validator, job_of(files, "shop/cart.py"))
        assert (report.status, words(report)) == ("passed", {})
        assert len(report.tests) == 5

    def test_an_init_file_is_repaired_under_the_name_of_its_package(self, validator: PythonValidator) -> None:
        files = {"shop/__init__.py": "X = 1", "test_shop.py": "import shop\ndef test_it(): assert shop.X == 1"}
        assert_all_pass(report_on(validator, job_of(files, "shop/__init__.py")), "test_it")

    def test_helpers_and_data_beside_the_tests(self, validator: PythonValidator) -> None:
        files = {
            "solution.py": "def lines(path):\n    with open(path) as file: return file.read().splitlines()\n",
            "data/in.txt": "a\nb\n",
            "data/raw.bin": b"\xff\xfe",
            "tests/helpers.py": """
                import pytest, solution
                def check(path, wanted): assert solution.lines(path) == wanted
            """,
            "tests/conftest.py": "raise ValueError('not looked at')",
            "tests/test_lines.py": """
                from pathlib import Path
                import pytest
                from helpers import check
                from solution import lines
                def test_both_read_it(): check("data/in.txt", Path("data/in.txt").read_text().splitlines())
                def test_bytes(): assert Path("data/raw.bin").read_bytes() == b"\\xff\\xfe"
                def test_not_text():
                    with pytest.raises(UnicodeDecodeError): lines("data/raw.bin")
                def test_each_has_its_own_copy():
                    Path("data/in.txt").write_text("changed")
                    assert lines("data/in.txt") == ["a", "b"]
                def test_beside(): assert Path(__file__).with_name("helpers.py").exists()
            """,
        }
        report = report_on(validator, job_of(files, "solution.py"))
        assert (report.status, words(report)) == ("passed", {})

    def test_a_working_directory_inside_a_project(self, validator: PythonValidator) -> None:
        files = {
            "README.md": "",
            "services/cart/cart.py": "from pathlib import Path\ndef rates(): return Path('rates.txt').read_text()",
            "services/cart/rates.txt": "7",
            "services/cart/tests/test_cart.py": """
                from pathlib import Path
                from cart import rates
                def test_rates(): assert rates() == "7" == Path("rates.txt").read_text()
                def test_above(): assert Path("../../README.md").exists()
            """,
            "services/other/test_other.py": "def test_other(): raise AssertionError",
        }
        report = report_on(validator, job_of(files, "cart.py", "services/cart"))
        assert_all_pass(report, "test_rates", "test_above")
        broken = files | {"services/cart/cart.py": "x = ("}
        (found,) = report_on(validator, job_of(broken, "cart.py", "services/cart")).diagnostics
        assert (found.file, found.line) == ("services/cart/cart.py", 1)


class TestReports:
    def test_several_test_files_have_prefixed_names(self, validator: PythonValidator) -> None:
        files = {
            "solution.py": "X = 1",
            "test_a.py": "import solution\ndef test_it(): assert solution.X == 1",
            "sub/b_test.py": "import solution\ndef test_it(): assert solution.X == 2",
            "sub/test_a.py": "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): pass",
            "check.py": "def test_it(): raise AssertionError",
        }
        report = report_on(validator, job_of(files, "solution.py"))
        wanted = {"sub/b_test.py::test_it": False, "sub/test_a.py::T::test_it": True, "test_a.py::test_it": True}
        assert (report.status, report.tests) == ("failed", wanted)

    def test_the_problem_may_name_its_tests(self, validator: PythonValidator) -> None:
        files = {"solution.py": "", "test_a.py": "def test_it(): raise ValueError", "check.py": "def test_b(): pass"}
        assert_all_pass(report_on(validator, job_of(files, "solution.py", tests=("check.py",))), "test_b")

    @pytest.mark.parametrize(
        ("tests", "kind"),
        [
            ("import nothing_like_it\ndef test_it(): pass", "ModuleNotFoundError"),
            ("def test_it(: pass", "SyntaxError"),
            ("raise SystemExit(0)", "SystemExit"),
            ("from solution import missing", "ImportError"),
            (b"\xff\xfe\x00", "SyntaxError"),
        ],
    )
    def test_tests_that_cannot_be_imported_fail_by_their_file(
        self, validator: PythonValidator, tests: str | bytes, kind: str
    ) -> None:
        report = report_on(validator, job_of({"solution.py": "", "test_solution.py": tests}, "solution.py"))
        assert (report.status, report.tests, report.compiled) == ("failed", {"test_solution.py": False}, True)
        assert words(report)["test_solution.py"].startswith(kind)

    def test_one_broken_file_of_two_does_not_hide_the_other(self, validator: PythonValidator) -> None:
        files = {"solution.py": "", "test_a.py": "x = (", "test_b.py": "def test_it(): pass"}
        report = report_on(validator, job_of(files, "solution.py"))
        assert report.tests == {"test_a.py::test_a.py": False, "test_b.py::test_it": True}

    def test_without_tests_there_is_no_report(self, validator: PythonValidator) -> None:
        report = report_on(validator, job_of({"solution.py": "", "check.py": "def test_it(): pass"}, "solution.py"))
        assert (report.status, report.note) == ("no_report", "there is no test (test_*.py or *_test.py)")
        report = report_on(validator, job_of({"solution.py": "", "test_solution.py": "x = 1"}, "solution.py"))
        assert (report.status, report.note) == ("no_report", "no test was found in the test files")

    def test_a_named_test_file_that_is_not_there_is_no_report(self, validator: PythonValidator) -> None:
        report = report_on(validator, job_of({"solution.py": ""}, "solution.py", tests=("test_gone.py",)))
        assert report.status == "no_report"
        assert "test_gone.py" in report.note

    def test_a_fix_to_a_test_is_not_validated_by_that_test(self, validator: PythonValidator) -> None:
        report = report_on(validator, job_of({"test_a.py": "def test_it(): pass"}, "test_a.py"))
        assert (report.status, report.note) == ("unsafe_input", "test_a.py is itself a test")

    @pytest.mark.parametrize(
        ("candidate", "found"),
        [
            (
                "x = 1\ndef f(:\n",
                Diagnostic("error", "SyntaxError", "SyntaxError: invalid syntax", "solution.py", 2, 2),
            ),
            (
                "def f():\n  x\n y\n",
                Diagnostic(
                    "error",
                    "IndentationError",
                    "IndentationError: unindent does not match any outer indentation level",
                    "solution.py",
                    3,
                    3,
                ),
            ),
            (
                "import nothing_like_it",
                Diagnostic(
                    "error",
                    "ModuleNotFoundError",
                    "ModuleNotFoundError: No module named 'nothing_like_it'",
                    "solution.py",
                ),
            ),
            ("1 / 0", Diagnostic("error", "ZeroDivisionError", "ZeroDivisionError: division by zero", "solution.py")),
            ("raise SystemExit(0)", Diagnostic("error", "SystemExit", "SystemExit: 0", "solution.py")),
        ],
        ids=lambda value: value.summary if isinstance(value, Diagnostic) else "",
    )
    def test_a_candidate_that_cannot_be_imported_did_not_compile(
        self, run: Run, candidate: str, found: Diagnostic
    ) -> None:
        report = run(candidate, "import solution\ndef test_it(): pass", expected_tests=("test_it",))
        assert (report.status, report.compiled, report.tests) == ("failed", False, {"test_it": False})
        assert report.diagnostics == (found,)

    def test_expected_tests_that_are_missing_fail(self, run: Run) -> None:
        report = run("", "def test_a(): pass\ndef test_b(): pass", expected_tests=("test_b", "test_c"))
        assert (report.status, report.tests) == ("failed", {"test_a": True, "test_b": True, "test_c": False})
        assert words(report) == {"test_c": "it did not report"}

    def test_what_is_printed_is_ignored(self, run: Run) -> None:
        forged = '{"test": "test_bad", "passed": true}'
        report = run(
            f"""
            import os, sys
            print('{forged}')
            os.write(1, b'{forged}')
            def f(): print('{forged}' * 10_000, file=sys.stderr)
            """,
            f"""
            import sys
            from solution import f
            print('{forged}')
            def test_good(): f(); print("x", file=sys.stderr)
            def test_bad(): print('{forged}'); raise ValueError
            """,
        )
        assert (report.status, report.tests) == ("failed", {"test_good": True, "test_bad": False})

    def test_a_large_value_fails_its_test_only(self, run: Run) -> None:
        report = run(
            "def large(): return 'x' * 40_000_000\ndef fine(): return 'x' * 5_000_000",
            """
            from solution import fine, large
            def test_before(): assert len(fine()) == 5_000_000
            def test_large(): assert len(large()) == 40_000_000
            def test_after(): assert len(fine()) == 5_000_000
            """,
        )
        assert (report.status, report.tests) == (
            "failed",
            {"test_before": True, "test_large": False, "test_after": True},
        )
        assert words(report)["test_large"] == "ValueError: the value is too large to pass"

    def test_a_candidate_that_exits_while_imported_keeps_its_published_diagnostic(self, run: Run) -> None:
        report = run("import os\nos._exit(0)", "import solution\ndef test_it(): pass")
        lost = (report.diagnostics[0].summary, report.diagnostics[0].detail)
        assert lost == ("LostError", "touchstone.validation.pytests.conversation.LostError")

    def test_a_candidate_that_ends_itself_fails_what_is_left(self, run: Run) -> None:
        report = run(
            "import os\ndef end(): os._exit(0)",
            "import solution\ndef test_a(): pass\ndef test_b(): solution.end()\ndef test_c(): solution.end",
        )
        assert (report.status, report.tests) == ("failed", {"test_a": True, "test_b": False, "test_c": False})
        assert set(words(report).values()) == {"the candidate ended before it answered"}

    def test_a_slow_candidate_is_stopped_with_the_tests_so_far(self, impatient: PythonValidator) -> None:
        files = {
            "solution.py": "def forever():\n    while True: pass",
            "test_solution.py": """
                import solution
                def test_a(): assert solution
                def test_b(): solution.forever()
                def test_c(): pass
            """,
        }
        report = report_on(impatient, job_of(files, "solution.py"))
        assert (report.status, report.compiled) == ("timeout", True)
        assert report.tests == {"test_a": True, "test_b": False, "test_c": False}
        assert report.duration_seconds > 1.4
        good = files | {"solution.py": "def forever(): pass"}
        assert report_on(impatient, job_of(good, "solution.py")).status == "passed"

    def test_jobs_leave_nothing_to_the_next_one(self, validator: PythonValidator) -> None:
        first = {
            "solution.py": """
                import os, sys
                sys.modules["left"] = sys
                os.environ["LEFT"] = "1"
                open(os.environ["TMPDIR"] + "/left", "w").close()
            """,
            "left.txt": "",
            "test_solution.py": "import sys, solution\ndef test_it(): sys.modules['left_by_test'] = sys",
        }
        second = {
            "solution.py": """
                import os, sys
                def left():
                    file = os.environ["TMPDIR"] + "/left"
                    return "left" in sys.modules, "LEFT" in os.environ, os.listdir("."), os.path.exists(file)
            """,
            "test_solution.py": """
                import sys
                from pathlib import Path
                from solution import left
                def test_there(): assert left() == (False, False, ["solution.py"], False)
                def test_here(): assert "left_by_test" not in sys.modules and not Path("left.txt").exists()
            """,
        }
        jobs = [job_of(first, "solution.py"), job_of(second, "solution.py")]
        assert [report.status for report in validator.validate(jobs)] == ["passed", "passed"]

    def test_random_numbers_are_the_same_every_time(self, run: Run) -> None:
        candidate = "import random\ndef roll(): return random.random()"
        report = run(candidate, "from solution import roll\ndef test_it(): assert roll() == 0.8444218515250481")
        assert_all_pass(report, "test_it")

    def test_landlock_gives_the_same_reports(self, in_landlock: PythonValidator) -> None:
        files = {
            "solution.py": """
                import asyncio, os, tempfile, threading
                async def later(x):
                    await asyncio.sleep(0.01)
                    return x
                def threaded(xs):
                    found = []
                    threads = [threading.Thread(target=found.append, args=(x,)) for x in xs]
                    for thread in threads: thread.start()
                    for thread in threads: thread.join()
                    return sorted(found)
                def stored(text):
                    with tempfile.NamedTemporaryFile("w+") as file:
                        file.write(text)
                        file.seek(0)
                        return file.read() + open("data.txt").read()
                def wrong(): return os.getpid() and None
            """,
            "data.txt": "!",
            "test_solution.py": """
                import pytest
                from solution import later, stored, threaded, wrong
                async def test_later(): assert await later(3) == 3
                def test_threads(): assert threaded([3, 1, 2]) == [1, 2, 3]
                def test_files(): assert stored("x") == "x!"
                def test_callback():
                    with pytest.raises(TypeError): threaded(3)
                def test_wrong(): assert wrong()
            """,
        }
        first, second = (report_on(in_landlock, job_of(files, "solution.py")) for _ in range(2))
        assert [name for name, passed in first.tests.items() if not passed] == ["test_wrong"], words(first)
        assert first.tests == second.tests and len(first.tests) == 5
