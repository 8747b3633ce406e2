"""Coroutines as tests and fixtures: awaited, by a plugin if the tests mention one, or undecided; never just passed."""

import importlib.util

import pytest

from tests.conftest import nightly_but
from tests.validation.pytest_runner.support import run_pytest
from touchstone.validation.validators.python import PythonValidator

ADD = "import asyncio\n\nasync def add(a, b):\n    await asyncio.sleep(0)\n    return a + b\n"
HEAD = "import functools, unittest\nimport pytest\nfrom solution import add\n"
ASYNC_FIXTURE = "@pytest.fixture\nasync def three():\n    yield await add(1, 2)\n"
USES_IT = "async def test_it(three):\n    assert three == 3\n"
MARKED = f"@pytest.mark.asyncio\n{USES_IT}"
AUTO = {"pytest.ini": "[pytest]\nasyncio_mode = auto\n"}
HOOK = """
import asyncio, inspect, pytest

def pytest_pyfunc_call(pyfuncitem):
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        asyncio.run(pyfuncitem.obj(three=3))
        return True

@pytest.fixture
def three():
    return None
"""


def files(tests: str, **more: str) -> dict[str, str]:
    return {"solution.py": ADD, "test_it.py": HEAD + tests, **more}


RUN = {
    "on its own": "async def test_it():\n    assert await add(1, 2) == {0}\n",
    "with a marker": "@pytest.mark.asyncio\nasync def test_it():\n    assert await add(1, 2) == {0}\n",
    "in a class": "class TestIt:\n    async def test_it(self, tmp_path):\n        assert await add(1, 2) == {0}\n",
    "of unittest": (
        "class TestIt(unittest.IsolatedAsyncioTestCase):\n    async def asyncSetUp(self):\n        self.sum = await "
        "add(1, 2)\n    async def test_it(self):\n        assert self.sum == {0}\n"
    ),
    "by anyio, which is installed with Dagster": (
        "pytestmark = pytest.mark.anyio\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n\n"
        f"{ASYNC_FIXTURE}\nasync def test_it(three):\n    assert three == {{0}}\n"
    ),
}


@pytest.mark.parametrize("how", nightly_but(["on its own", "of unittest"], RUN))
def test_a_coroutine_is_awaited(validator: PythonValidator, how: str) -> None:
    right, wrong = (run_pytest(validator, files(RUN[how].format(value))) for value in (3, 4))
    assert (right.status, set(right.tests.values())) == ("passed", {True}), right
    assert (wrong.status, set(wrong.tests.values())) == ("failed", {False}), wrong


@pytest.mark.services
def test_anyio_runs_a_test_once_per_backend_as_everywhere(validator: PythonValidator) -> None:
    marked = "@pytest.mark.anyio\nasync def test_it():\n    assert await add(1, 2) == 3\n"
    assert "test_it[asyncio]" in run_pytest(validator, files(marked)).tests


def test_a_hook_of_the_problem_comes_first(validator: PythonValidator) -> None:
    assert run_pytest(validator, files(USES_IT, **{"conftest.py": HOOK})).status == "passed"


NEEDS: dict[str, tuple[dict[str, str], str]] = {
    "a fixture": (
        files(ASYNC_FIXTURE + MARKED),
        "the fixture three is asynchronous, and no plugin awaits it; add pytest-",
    ),
    "a fixture in auto mode": (files(ASYNC_FIXTURE + USES_IT, **AUTO), "add pytest-asyncio"),
    "a fixture of a sync test": (files(ASYNC_FIXTURE + "def test_it(three): pass\n"), "add pytest-asyncio"),
    "a test behind a decorator": (
        files("def same(f):\n    return functools.wraps(f)(lambda: f())\n@same\nasync def test_it():\n    assert 0\n"),
        "test_it is asynchronous, and no plugin awaits it; add pytest-asyncio",
    ),
    "a generator": (files("async def test_it():\n    assert 0\n    yield\n"), "test_it is asynchronous"),
    "trio": (files("@pytest.mark.trio\nasync def test_it():\n    pass\n"), "test_it needs trio; add pytest-trio"),
    "a test that unittest passes": (
        files("class TestIt(unittest.TestCase):\n    async def test_it(self):\n        assert 0\n"),
        "test_it is a coroutine or generator, which unittest.TestCase does not run",
    ),
    "a test that unittest passes, behind a decorator": (
        files("class TestIt(unittest.TestCase):\n    def test_it(self):\n        return add(1, 2)\n"),
        "which unittest.TestCase does not run",
    ),
    "the plugin's module": (files("import pytest_asynchronous\n" + MARKED), "the tests import pytest_asynchronous"),
    "the plugin's module in a conftest": (
        files(MARKED, **{"conftest.py": "import pytest_asynchronous\n"}),
        "the tests import pytest_asynchronous",
    ),
    "a fixture of another plugin": (files("def test_it(mocker): pass\n"), "test_it uses the fixture mocker, which no"),
}
HAS_ASYNCIO = importlib.util.find_spec("pytest_asyncio") is not None


@pytest.mark.parametrize("what", NEEDS)
def test_what_needs_a_plugin_that_is_not_there_is_undecided(validator: PythonValidator, what: str) -> None:
    if HAS_ASYNCIO and "add" in NEEDS[what][1]:
        pytest.skip("pytest-asyncio is installed")
    report = run_pytest(validator, NEEDS[what][0])
    assert report.status == "validator_unavailable", report
    assert NEEDS[what][1] in report.note


@pytest.mark.skipif(HAS_ASYNCIO, reason="pytest-asyncio is installed")
def test_a_configuration_for_a_plugin_that_is_not_there(validator: PythonValidator) -> None:
    strict = {"pytest.ini": f"{AUTO['pytest.ini']}addopts = --strict-config\n"}
    report = run_pytest(validator, files(USES_IT, **strict))
    assert report.status == "validator_unavailable" and "pytest-asyncio" in report.note, report


def test_tests_that_the_problem_does_not_name_may_need_what_they_want(validator: PythonValidator) -> None:
    tests = files("def test_one(): pass\ndef test_other(mocker): pass\n")
    assert run_pytest(validator, tests, fail_to_pass=("test_one",)).status == "failed"
    assert run_pytest(validator, tests, fail_to_pass=("test_other",)).status == "validator_unavailable"


@pytest.mark.skipif(not HAS_ASYNCIO, reason="pytest-asyncio is not installed")
@pytest.mark.parametrize(
    ("tests", "configuration"),
    [
        (ASYNC_FIXTURE + USES_IT, AUTO),
        (f"import pytest_asyncio\n{ASYNC_FIXTURE.replace('pytest.f', 'pytest_asyncio.f')}{MARKED}", {}),
        (ASYNC_FIXTURE + USES_IT, {"pyproject.toml": "[tool.pytest.ini_options]\nasyncio_mode = 'auto'\n"}),
        (USES_IT.replace("three", "").replace(" == 3", "add"), {"pytest.ini": "[pytest]\nasyncio_mode = strict\n"}),
    ],
)
def test_pytest_asyncio_is_loaded_where_the_tests_mention_it(
    validator: PythonValidator, tests: str, configuration: dict[str, str]
) -> None:
    assert run_pytest(validator, files(tests, **configuration)).status == "passed"


@pytest.mark.parametrize(
    "tests",
    [
        "class TestIt(unittest.TestCase):\n    def test_it(self):\n        yield\n",
        "def test_it():\n    assert 0\n    yield\n",
    ],
)
def test_no_test_passes_that_did_not_run(validator: PythonValidator, tests: str) -> None:
    report = run_pytest(validator, files(f"import unittest\n{tests}"))
    assert report.status in ("failed", "validator_unavailable"), report
