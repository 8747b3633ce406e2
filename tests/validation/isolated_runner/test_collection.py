"""What is a test: functions, methods, unittest, parametrized tests and coroutines."""

from tests.validation.isolated_runner.support import Run, assert_all_pass, words


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
