"""What pytest does for a problem's tests, and what of its configuration is ignored."""

from pathlib import Path
from unittest.mock import patch

import pytest

from tests.validation.pytest_runner.support import judged, run_pytest, warm_validator
from touchstone.validation.judging.known_tests import hold_to_known_tests
from touchstone.validation.protocol import Report
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.validators.python import PythonValidator

ADD = "def add(a, b):\n    return a + b\n"


def outcomes(report: Report) -> tuple[str, dict[str, bool], tuple[str, ...]]:
    return report.status, dict(report.tests), report.skipped


def test_ids_are_those_of_pytest_without_the_only_file(validator: PythonValidator) -> None:
    tests = """
        import pytest
        from solution import add

        @pytest.mark.parametrize("a, b", [(1, 2), pytest.param(3, 4, id="three")])
        def test_add(a, b):
            assert add(a, b) == a + b

        class TestMore:
            def test_zero(self):
                assert add(0, 0) == 0
        """
    report = run_pytest(validator, {"solution.py": ADD, "test_it.py": tests})
    assert outcomes(report) == (
        "passed",
        {"test_add[1-2]": True, "test_add[three]": True, "TestMore::test_zero": True},
        (),
    )


def test_a_project_with_packages_in_src_and_its_own_configuration(validator: PythonValidator) -> None:
    files = {
        "project/pyproject.toml": """
            [tool.pytest.ini_options]
            pythonpath = ["src"]
            addopts = ["-m", "not slow", "--runslow", "--strict-markers"]
            markers = ["slow: takes long"]
            """,
        "project/src/shop/__init__.py": "",
        "project/src/shop/cart.py": ADD,
        "project/tests/__init__.py": "",
        "project/tests/helpers.py": "FIVE = 5\n",
        "project/tests/conftest.py": """
            import pytest

            def pytest_addoption(parser):
                parser.addoption("--runslow", action="store_true")

            @pytest.fixture
            def wanted(pytestconfig):
                from tests.helpers import FIVE
                return FIVE if pytestconfig.getoption("--runslow") else 0
            """,
        "project/tests/test_cart.py": """
            import pytest
            from shop.cart import add

            def test_add(wanted):
                assert add(2, 3) == wanted

            @pytest.mark.slow
            def test_slow():
                assert False
            """,
    }
    for tests in ("tests/test_cart.py", "tests", "./tests/"):
        report = run_pytest(validator, files, "src/shop/cart.py", working_directory="project", tests=(tests,))
        assert outcomes(report) == ("passed", {"test_add": True}, ())


@pytest.mark.parametrize("name", ["calendar", "statistics", "queue", "dataclasses"])
def test_a_file_named_like_a_loaded_module_is_the_one_that_is_tested(validator: PythonValidator, name: str) -> None:
    tests = f"import {name}\n\ndef test_add(tmp_path):\n    assert {name}.add(1, 2) == 3\n"
    report = run_pytest(validator, {f"{name}.py": ADD, "test_it.py": tests}, f"{name}.py")
    assert outcomes(report) == ("passed", {"test_add": True}, ())


def test_a_file_that_does_not_parse_fails_and_has_not_compiled(validator: PythonValidator) -> None:
    files = {"solution.py": "def add(a, b)\n", "test_it.py": "from solution import add\n\ndef test_it(): pass\n"}
    report = run_pytest(validator, files)
    assert (report.status, report.compiled, dict(report.tests)) == ("failed", False, {})
    assert [(one.test, one.detail) for one in report.diagnostics] == [("test_it.py", "SyntaxError: expected ':'")]


def test_a_conftest_that_cannot_import_the_fix_fails(validator: PythonValidator) -> None:
    tests = {"conftest.py": "from solution import add\n", "test_it.py": "def test_it(): pass\n"}
    report = run_pytest(validator, {"solution.py": "", **tests})
    assert (report.status, report.compiled) == ("failed", False)
    assert [one.test for one in report.diagnostics] == ["conftest.py"]


def test_a_plugin_that_is_required_and_not_there_leaves_it_undecided(validator: PythonValidator) -> None:
    ini = "[pytest]\nrequired_plugins = surely-not-installed\n"
    report = run_pytest(validator, {"solution.py": ADD, "test_it.py": "def test_it(): pass\n", "pytest.ini": ini})
    assert report.status == "validator_unavailable"
    assert "surely-not-installed" in report.note


def test_skipping_everything_leaves_it_undecided(validator: PythonValidator) -> None:
    tests = "import pytest\npytest.importorskip('surely_not_installed')\n\ndef test_it(): pass\n"
    report = run_pytest(validator, {"solution.py": ADD, "test_it.py": tests})
    assert (report.status, report.note) == ("validator_unavailable", "every test was skipped")


def test_a_failing_teardown_fails_its_test(validator: PythonValidator) -> None:
    tests = """
        import pytest

        @pytest.fixture
        def once():
            yield
            assert False

        def test_it(once):
            pass
        """
    report = run_pytest(validator, {"solution.py": ADD, "test_it.py": tests})
    assert outcomes(report) == ("failed", {"test_it": False}, ())


FAILURES = """
    import pytest
    from solution import add

    def hidden():
        __tracebackhide__ = True
        raise LookupError("hidden")

    def endless(depth):
        endless(depth + 1)

    def test_assertion():
        assert add(1, 1) == 3

    def test_cause():
        try:
            add(1, None)
        except TypeError as error:
            raise KeyError("key") from error

    def test_fail():
        pytest.fail("said so", pytrace=False)

    def test_fixture(request):
        request.getfixturevalue("nowhere")

    def test_group():
        raise ExceptionGroup("two", [ValueError("one"), TypeError("other")])

    def test_hidden():
        hidden()

    def test_recursion():
        endless(0)
    """


def test_failures_have_the_message_of_pytest(validator: PythonValidator) -> None:
    report = run_pytest(validator, {"solution.py": ADD, "test_it.py": FAILURES})
    assert {one.test: one.detail for one in report.diagnostics} == {
        "test_assertion": "assert 2 == 3\n +  where 2 = add(1, 1)",
        "test_cause": "KeyError: 'key'",
        "test_fail": "Failed: said so",
        "test_fixture": "fixture 'nowhere' not found",
        "test_group": "ExceptionGroup: two (2 sub-exceptions)",
        "test_hidden": "LookupError: hidden",
        "test_recursion": "RecursionError: maximum recursion depth exceeded",
    }


SKIPS = """
    import pytest
    import solution

    @pytest.mark.skipif(solution.VALUE == 2, reason="two")
    def test_skipped():
        assert solution.VALUE == 1

    def test_other():
        assert solution.VALUE
    """


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [(2, 2, "passed"), (2, 1, "passed"), (1, 2, "failed"), (3, 2, "failed"), (3, 1, "passed")],
)
def test_a_test_that_only_the_fix_skips_is_no_pass(
    validator: PythonValidator, before: int, after: int, status: str
) -> None:
    values = (f"VALUE = {value}\n" for value in (before, after))
    assert judged(validator, *values, {"test_it.py": SKIPS}).status == status


MUST_FAIL = """
    import pytest
    import solution

    def test_it():
        assert solution.VALUE

    @pytest.mark.xfail(strict=True)
    def test_must_fail():
        assert solution.VALUE < 2

    @pytest.mark.xfail(raises=ZeroDivisionError)
    def test_must_raise():
        1 / (2 - solution.VALUE)
        raise ValueError
    """


@pytest.mark.parametrize(("before", "after", "status"), [(1, 2, "passed"), (0, 2, "passed"), (2, 1, "failed")])
def test_a_test_that_must_fail_is_held_to_that(
    validator: PythonValidator, before: int, after: int, status: str
) -> None:
    values = (f"VALUE = {value}\n" for value in (before, after))
    held = judged(validator, *values, {"test_it.py": MUST_FAIL})
    assert (held.status, held.tests.get("test_must_fail", False)) == (status, status == "passed")


@pytest.mark.parametrize(
    "files",
    [
        {"tox.ini": "[pytest]\npython_files = check_*.py\n", "check_it.py": "from test_it import test_it\n"},
        {"setup.cfg": "[tool:pytest]\ntestpaths = tests\n", "tests/test_one.py": "from test_it import test_it\n"},
        {
            "pytest.ini": "[pytest]\naddopts = --doctest-modules\n",
            "more.py": "'>>> import test_it; test_it.test_it()'\n",
        },
        {"test_it.txt": ">>> import test_it\n>>> test_it.test_it()\n"},
    ],
    ids=["python_files", "testpaths", "doctest-modules", "text"],
)
def test_the_configuration_says_where_tests_are(validator: PythonValidator, files: dict[str, str]) -> None:
    """The file `test_it.py` is a test only where the configuration does not say otherwise."""
    tests = {"test_it.py": "from solution import add\ndef test_it(): assert add(1, 2) == 3\n", **files}
    tests |= {"conftest.py": "import sys, os\nsys.path.insert(0, os.path.dirname(__file__))\n"}
    broken = {"examples/test_broken.py": "assert 0\n"} if "setup.cfg" in files else {}
    for code, status in ((ADD, "passed"), (ADD.replace("+", "-"), "failed")):
        report = run_pytest(validator, {"solution.py": code, **tests, **broken})
        assert report.status == status
        found = {name.partition("::")[0] for name in (*report.tests, *(one.test or "" for one in report.diagnostics))}
        assert found & files.keys()


def test_a_fix_may_bring_doctests_that_pass(validator: PythonValidator) -> None:
    tests = {"pytest.ini": "[pytest]\naddopts = --doctest-modules\n", "test_it.py": "def test_it(): pass\n"}
    baseline = run_pytest(validator, {"solution.py": ADD, **tests}, is_fix=False)
    for said, status in (("3", "passed"), ("4", "failed")):
        fix = ADD.replace("\n", f"\n    '>>> add(1, 2)\\n{said}'\n", 1)
        report = run_pytest(validator, {"solution.py": fix, **tests})
        assert hold_to_known_tests(report, baseline, None, {"solution.py": fix.encode()}).status == status


@pytest.mark.parametrize(
    ("tests", "note"),
    [
        (
            {"pytest.ini": "[pytest]\nasyncio_mode = auto\nfilterwarnings = error\n", "test_it.py": "def test(): 0\n"},
            "pytest cannot be started: PytestConfigWarning: Unknown config option: asyncio_mode",
        ),
        ({"check_it.py": "def check(): pass\n"}, "there is no test"),
        ({"test_it.py": "def check(): pass\n"}, "pytest finds no test"),
        ({"test_it.py": "def test_it(: pass\n"}, "test_it.py cannot be compiled: SyntaxError: invalid syntax"),
        ({"test_it.py": "import socket\ndef test_it(): socket.create_connection(('1.2.3.4', 5))\n"}, "needs a network"),
        (
            {"test_it.py": "import asyncio\nasync def test_it(): await asyncio.open_connection('1.2.3.4', 5)\n"},
            "needs a network",
        ),
    ],
)
def test_what_cannot_be_tested_is_undecided(validator: PythonValidator, tests: dict[str, str], note: str) -> None:
    report = run_pytest(validator, {"solution.py": ADD, **tests}, is_fix=False)
    assert report.status == "validator_unavailable"
    assert note in report.note


SERVED = """
    import asyncio, http.server, socket, threading, urllib.request
    from solution import add

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(str(add(1, 2)).encode())

    def test_threads():
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, args=(0.01,)).start()
            try:
                assert urllib.request.urlopen(f"http://localhost:{server.server_port}").read() == b"3"
            finally:
                server.shutdown()

    def test_streams():
        async def answer(reader, writer):
            writer.write(str(add(1, 2)).encode())
            writer.close()

        async def ask():
            async with await asyncio.start_server(answer, socket.gethostname(), 0) as server:
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
                assert await reader.read() == b"3"

        asyncio.run(ask())
    """


@pytest.mark.services
@pytest.mark.parametrize("sandbox", ["bubblewrap", pytest.param("landlock", marks=pytest.mark.nightly)])
def test_tests_have_a_network_of_their_own_where_the_sandbox_has_one(tmp_path: Path, sandbox: str) -> None:
    for validator in warm_validator(tmp_path, sandbox=sandbox, controls=False):
        for code, status in ((ADD, "passed"), (ADD.replace("+", "-"), "failed")):
            report = run_pytest(validator, {"solution.py": code, "test_it.py": SERVED})
            if sandbox == "bubblewrap":
                assert (report.status, len(report.tests)) == (status, 2), report
            else:
                assert report.status == "validator_unavailable" and "needs a network" in report.note


def test_a_file_that_the_fix_renames_is_tested_where_it_is_now(validator: PythonValidator) -> None:
    tests = {"test_it.py": "from shop import add\ndef test_it(): assert add(1, 2) == 3\n"}
    report = run_pytest(validator, {"shop/__init__.py": "from .cart import add\n", "shop/cart.py": ADD, **tests})
    assert outcomes(report) == ("passed", {"test_it": True}, ())


def test_expected_tests_that_do_not_report_fail(validator: PythonValidator) -> None:
    files = {"solution.py": ADD, "test_it.py": "def test_one(): pass\n"}
    report = run_pytest(validator, files, expected_tests=("test_it.py::test_one", "test_two"))
    assert outcomes(report) == ("failed", {"test_one": True, "test_two": False}, ())


@pytest.mark.nightly
def test_every_fixture_works_in_landlock(tmp_path: Path) -> None:
    tests = """
        def test_it(tmp_path, capfd, monkeypatch, caplog, recwarn):
            monkeypatch.setenv("A", "b")
            (tmp_path / "x").write_text("y")
            print("z")
            assert capfd.readouterr().out == "z\\n"
        """
    for validator in warm_validator(tmp_path, sandbox="landlock"):
        report = run_pytest(validator, {"solution.py": ADD, "test_it.py": tests})
        assert outcomes(report) == ("passed", {"test_it": True}, ())


def test_a_hundred_threads_and_hundreds_of_open_files_are_within_the_limits(validator: PythonValidator) -> None:
    tests = """
        import threading
        from solution import add

        def test_threads():
            all_run = threading.Barrier(150, timeout=60)
            threads = [threading.Thread(target=all_run.wait) for _ in range(149)]
            for one in threads:
                one.start()
            all_run.wait()
            assert add(2, 3) == 5

        def test_files(tmp_path):
            files = [open(tmp_path / f"{number}", "w") for number in range(500)]
            assert add(len(files), 1) == 501

        def test_large_file(tmp_path):
            (tmp_path / "large").write_bytes(bytes(100 * 2**20))
            assert add(1, 1) == 2
        """
    with patch.object(validator, "_controls", False):
        report = run_pytest(validator, {"solution.py": ADD, "test_it.py": tests})
    assert outcomes(report) == ("passed", {"test_threads": True, "test_files": True, "test_large_file": True}, ())


@pytest.mark.services
@pytest.mark.parametrize(("per_test", "status"), [(0.0, "timeout"), (0.3, "passed")])
def test_a_long_suite_has_time_for_every_test(validator: PythonValidator, per_test: float, status: str) -> None:
    tests = """
        import time
        import pytest
        from solution import add

        @pytest.mark.parametrize("number", range(60))
        def test_add(number):
            end = time.process_time() + 0.02
            while time.process_time() < end:
                assert add(number, 1) == number + 1
        """
    limits = Limits(seconds=0.4, seconds_per_test=per_test)
    with patch.multiple(validator, _limits=limits, _controls=False):
        report = run_pytest(validator, {"solution.py": ADD, "test_it.py": tests})
    assert report.status == status and len(report.tests) == 60
    assert report.steady == (status == "timeout")


def test_an_endless_test_is_told_from_a_limit_too_low_for_all(validator: PythonValidator) -> None:
    tests = "from solution import add\ndef test_one(): assert add(1, 2) == 3\ndef test_two(): assert add(2, 2) == 4\n"
    endless = "def add(a, b):\n    while a == b: pass\n    return a + b\n"
    with patch.multiple(validator, _limits=Limits(seconds=0.5), _controls=False):
        report = run_pytest(validator, {"solution.py": endless, "test_it.py": tests})
    assert (report.status, report.steady) == ("timeout", False)
