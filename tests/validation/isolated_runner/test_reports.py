"""What is reported: broken files, missing tests, limits, and nothing of the job before."""

import pytest

from tests.validation.isolated_runner.support import Run, assert_all_pass, job_of, report_on, words
from touchstone.validation.protocol import Diagnostic
from touchstone.validation.sandbox.interpreters import interpreter
from touchstone.validation.sandbox.processes import end_sandbox
from touchstone.validation.validators.python import PythonValidator


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

    def test_a_candidate_that_exits_while_imported_did_not_compile(self, run: Run) -> None:
        report = run("import os\nos._exit(0)", "import solution\ndef test_it(): pass")
        found = Diagnostic("error", "ended at import", "The process ended while the file was imported.", "solution.py")
        assert (report.status, report.compiled, report.diagnostics) == ("failed", False, (found,))

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
        assert report.duration_seconds > 0.6
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

    @pytest.mark.nightly
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

    @pytest.mark.parametrize("deaths", [1, 2])
    def test_a_worker_that_dies_after_a_complete_report_is_replaced_and_the_job_repeated(
        self, validator: PythonValidator, monkeypatch: pytest.MonkeyPatch, deaths: int
    ) -> None:
        """The exit code is then unknown, though the fix did nothing but fail. A second time it is still a failure."""
        worker = validator._pairs.get((interpreter(), False)).tests
        ask_end, left = worker.ask_end, [None] * deaths

        def die_first(*, at_once: bool = False) -> None:
            if left:
                left.pop()
                end_sandbox(worker._process, pid_namespace=worker.sandbox.backend.pid_namespace)
            ask_end(at_once=at_once)

        monkeypatch.setattr(worker, "ask_end", die_first)
        files = {"solution.py": "X = 1", "test_solution.py": "import solution\ndef test_it(): assert solution.X == 2"}
        report = report_on(validator, job_of(files, "solution.py"))
        assert report.tests == {"test_it": False} and left == []
        assert (report.status, report.consistent) == (("failed", True) if deaths == 1 else ("no_report", False))
