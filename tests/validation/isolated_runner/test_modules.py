"""Modules, packages and files of the candidate."""

from tests.validation.isolated_runner.support import Run, assert_all_pass, job_of, report_on, words
from touchstone.validation.validators.python import PythonValidator


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


def test_a_job_finds_no_trace_of_what_its_worker_ran_before(run: Run) -> None:
    report = run(
        """
        import linecache, os, sys
        def strangers(): return [name for name in sys.modules if "rehears" in name and "touchstone" not in name]
        def places(): return [path for path in [*sys.path, *sys.path_importer_cache] if "rehears" in path]
        def files(): return sorted(os.listdir(".."))
        """,
        """
        import sys
        import solution
        def test_candidate(): assert (solution.strangers(), solution.places(), solution.files()) == ([], [], ["work"])
        def test_tests():
            assert not [name for name in sys.modules if "rehears" in name and "touchstone" not in name]
            assert not [path for path in [*sys.path, *sys.path_importer_cache] if "rehears" in path]
            assert len([one for one in sys.meta_path if type(one).__name__ == "CandidateFinder"]) == 1
        """,
    )
    assert_all_pass(report, "test_candidate", "test_tests")
