"""What passes between tests and candidate: values, callbacks, iterators and context managers."""

from tests.validation.isolated_runner.support import Run, assert_all_pass, words


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
