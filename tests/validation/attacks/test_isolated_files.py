"""Files of the tests that a fix must not patch or read, and files named like installed modules."""

import textwrap
from pathlib import Path

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import GOOD, Arena, job_of, validate_fix

CHECKED = {
    "solution.py": "def add(a, b): return a - b\n",
    "checks.py": """
        import solution
        def check(got, wanted): assert got == wanted
        def run(a, b): return solution.add(a, b)
    """,
    "test_solution.py": """
        import json
        from pathlib import Path
        from checks import check, run
        from solution import add
        def test_it(): check(add(1, 2), 3)
        def test_run(): check(run(2, 3), 5)
    """,
}


class TestFilesOfTheTests:
    @pytest.mark.parametrize("module", ["checks", "lib.checks"])
    def test_helpers_beside_the_file_are_not_patched(self, arena: Arena, tmp_path: Path, module: str) -> None:
        files = {name.replace("checks", module.replace(".", "/")): text for name, text in CHECKED.items()}
        files["test_solution.py"] = files["test_solution.py"].replace("from checks", f"from {module}")
        if module != "checks":
            files |= {"lib/__init__.py": ""}
        cheat = f"""
            import sys
            import {module} as checks
            checks.check = lambda *_: None
            checks.run = lambda *_: 5
            def add(a, b): return 0
        """
        report = validate_fix(arena, tmp_path, files, cheat)
        assert (report.status, report.tests) == ("failed", {"test_it": False, "test_run": False})
        assert validate_fix(arena, tmp_path, files, GOOD).status == "passed"

    def test_helpers_in_the_package_of_the_file(self, arena: Arena, tmp_path: Path) -> None:
        files = {
            "shop/__init__.py": "",
            "shop/cart.py": "from shop.money import cents\ndef total(xs): return 0\n",
            "shop/money.py": "def cents(x): return round(x * 100)\n",
            "shop/checks.py": "from . import cart\ndef check(xs, wanted): assert cart.total(xs) == wanted\n",
            "test_cart.py": """
                import shop.checks
                from shop.checks import check
                from shop import money
                def test_it(): check([1, 2], 300)
                def test_by_name(): shop.checks.check([1], 100)
                def test_shared(): assert money.cents(1) == 100
            """,
        }
        head = "from shop.money import cents\nimport shop.checks\nshop.checks.check = lambda *_: None\n"
        report = validate_fix(arena, tmp_path, files, f"{head}def total(xs): return 0\n", "shop/cart.py")
        assert report.tests == {"test_it": False, "test_by_name": False, "test_shared": True}
        right = f"{head}def total(xs): return cents(sum(xs))\n"
        assert validate_fix(arena, tmp_path, files, right, "shop/cart.py").status == "passed"

    def test_objects_of_a_helper_are_used_by_the_fix(self, arena: Arena, tmp_path: Path) -> None:
        files = {
            "solution.py": "def total(orders): return 0\n",
            "orders.py": """
                import dataclasses
                @dataclasses.dataclass
                class Order:
                    price: float
                    paid: bool = False
                    def __add__(self, other): return Order(self.price + other.price)
                    def __lt__(self, other): return self.price < other.price
                    def __len__(self): return int(self.price)
                    def __getitem__(self, key): return key
            """,
            "test_solution.py": """
                from orders import Order
                from solution import cheapest, has, pay, total
                ORDERS = [Order(2), Order(1)]
                def test_total(): assert total(ORDERS) == 3
                def test_cheapest(): assert cheapest(ORDERS) is ORDERS[1]
                def test_has(): assert has(ORDERS, Order(1)) and not has(ORDERS, Order(3))
                def test_pay():
                    pay(ORDERS[0])
                    assert ORDERS[0].paid
                def test_sum(): assert (ORDERS[0] + ORDERS[1]).price == 3
            """,
        }
        fix = """
            def total(orders): return (orders[0] + orders[1]).price
            def cheapest(orders): return sorted(orders)[0]
            def has(orders, order): return order in orders and len(order) == order[len(order)]
            def pay(order): order.paid = True
        """
        report = validate_fix(arena, tmp_path, files, fix)
        assert report.status == "passed", report.diagnostics

    @pytest.mark.parametrize(
        ("data", "tests"),
        [
            ("expected.json", "test_solution.py"),
            ("tests/expected.json", "tests/test_solution.py"),
            ("tests/data/expected.json", "tests/test_solution.py"),
            ("cases/expected.json", "test_solution.py"),
        ],
    )
    def test_data_beside_the_tests_is_not_read(self, arena: Arena, tmp_path: Path, data: str, tests: str) -> None:
        files = {
            "solution.py": "def add(a, b): return open('rates.txt').read()\n",
            "rates.txt": "1",
            data: '{"sum": 3}',
            tests: f"""
                import json
                from pathlib import Path
                from solution import add
                EXPECTED = json.loads(Path({data!r}).read_text())
                def test_it(): assert add(1, 2) == EXPECTED["sum"]
            """,
        }
        cheat = """
            import json, pathlib
            def add(a, b):
                (found,) = pathlib.Path.cwd().rglob("expected.json")
                return json.loads(found.read_text())["sum"]
        """
        report = validate_fix(arena, tmp_path, files, cheat)
        assert (report.status, report.tests) == ("failed", {"test_it": False})
        right = "def add(a, b): return a + b * int(open('rates.txt').read())\n"
        assert validate_fix(arena, tmp_path, files, right).status == "passed"

    @pytest.mark.parametrize("given", ["tests/in/a.txt", "tests/in"])
    def test_data_is_lent_when_the_tests_name_it(self, arena: Arena, tmp_path: Path, given: str) -> None:
        files = {
            "solution.py": "def lines(path): return []\n",
            "tests/in/a.txt": "a\nb\n",
            "tests/in/wanted.txt": "2\n",
            "tests/test_solution.py": f"""
                from solution import lines
                def test_it(): assert lines({given!r}) == ["a", "b"] == lines(path=[{given!r}])
            """,
        }
        fix = """
            import os
            def lines(path):
                path = path if isinstance(path, str) else path[0]
                path = os.path.join(path, "a.txt") if os.path.isdir(path) else path
                with open(path) as file: return file.read().splitlines()
        """
        report = validate_fix(arena, tmp_path, files, fix)
        assert report.status == "passed", report.diagnostics


class TestNamesOfInstalledModules:
    # Large and small, in C, packages, of the tests' own side.
    BY_DAY = ("queue.py", "types.py", "math.py", "json/__init__.py", "json/part.py", "touchstone/part.py")

    @pytest.mark.parametrize(
        "path",
        nightly_but(
            BY_DAY, [*BY_DAY, "calendar.py", "string.py", "asyncio.py", "traceback.py", "codeop.py", "pytest.py"]
        ),
    )
    def test_the_file_is_judged_and_not_the_installed_module(self, arena: Arena, path: str) -> None:
        name = path.partition("/")[0].removesuffix(".py")
        module = f"{name}.part" if "part" in path else name
        tests = f"""
            import importlib
            import {module}
            import {module} as again
            from {module} import double
            def test_it(): assert double(2) == 4 and {module}.double(3) == 6 and again.double(0) == 0
            def test_by_name(): assert importlib.import_module({module!r}).double(2) == 4
            async def test_library():
                import code, datetime
                assert code.compile_command("1")
                assert datetime.datetime.strptime("2024-02-29", "%Y-%m-%d").day == 29
        """
        more = {f"{name}/__init__.py": ""} if "part" in path else {}
        for code, good in (("def double(x): return 2 * x\n", True), ("def double(x): return x\n", False)):
            files = {**more, path: code, "test_it.py": textwrap.dedent(tests)}
            (report,) = arena.validator.validate([job_of(files, path)])
            wanted = {"test_it": good, "test_by_name": good, "test_library": True}
            assert report.tests == wanted, report.diagnostics
