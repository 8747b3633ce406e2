"""Wrong fixes that put something else in place of the tests, or keep their lines from running. None passes."""

import pytest

from tests.validation.pytest_runner.support import judged, run_pytest
from tests.validation.pytest_runner.test_forgery import GOOD, TESTS
from touchstone.validation.validators.python import PythonValidator

LINES = {
    "test_it.py": "from solution import add\n\n\ndef test_it(capsys):\n    x = add(2, 3)\n    assert x == 5\n    pass\n"
}
COROUTINE = {
    "test_it.py": "from solution import wait\n\n\nasync def test_it(tmp_path):\n    assert await wait() == 5\n"
}
TEST_CASE = {
    "test_it.py": """
        import unittest
        from solution import wait

        class TestIt(unittest.IsolatedAsyncioTestCase):
            async def test_it(self):
                assert await wait() == 5
        """
}
# Right for the first file of tests, wrong for the second.
HALF = "\ndef add(a, b):\n    return 5\n"
WRONG = "\ndef add(a, b):\n    return 0\n\nasync def wait():\n    return 0\n"
FORGED = """
import builtins, importlib, importlib.abc, importlib.machinery, sys, types

def forge(names, name="test_second"):
    def test_negative(tmp_path): pass
    names.update(test_negative=test_negative, __file__=__file__.replace("solution", name))

def module(name="test_second"):
    made = types.ModuleType(name)
    forge(vars(made))
    return made
"""
IMPORTER = """
class Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name == "test_second":
            return importlib.machinery.ModuleSpec(name, self, origin=__file__.replace("solution", name))

    def exec_module(self, module):
        forge(vars(module))

sys.meta_path.insert(0, Importer())
"""
IMPORT_MODULE = """
known = importlib.import_module

def import_module(name, package=None):
    return sys.modules.setdefault(name, module()) if name == "test_second" else known(name, package)

importlib.import_module = import_module
"""
EXEC = """
known = builtins.exec

def run(code, *names):
    second = getattr(code, "co_filename", "").endswith("test_second.py")
    return forge(names[0]) if second else known(code, *names)

builtins.exec = run
"""
PARSE = """
import ast
known = ast.parse
ast.parse = lambda text, *more, **names: known("def test_negative(tmp_path): pass\\n", *more, **names)
"""
JUMP = """
import sys

def jump(frame, event, value):
    if event == "line":
        try:
            frame.f_lineno = 7
        except ValueError:
            pass
        sys.settrace(None)
    return jump
"""
ATTACKS = {
    "a module of the tests' name": (TESTS, FORGED + "sys.modules['test_second'] = module()\n" + HALF),
    "an importer": (TESTS, FORGED + IMPORTER + HALF),
    "another import_module": (TESTS, FORGED + IMPORT_MODULE + HALF),
    "another exec": (TESTS, FORGED + EXEC + HALF),
    "another parser": (TESTS, PARSE + HALF),
    "lines skipped by a tracer": (LINES, JUMP + "sys.settrace(lambda frame, *more: jump)\n" + WRONG),
    "lines skipped by a tracer of the caller": (
        LINES,
        JUMP
        + "def add(a, b):\n    sys._getframe(1).f_trace = jump\n    sys.settrace(lambda *more: None)\n    return 0\n",
    ),
    "coroutines that are not run": (COROUTINE, "import asyncio\nasyncio.run = lambda it, **more: it.close()\n" + WRONG),
    "coroutines that are not run, by other code": (
        COROUTINE,
        f"import asyncio\nasyncio.run.__code__ = (lambda main, **more: main.close()).__code__\n{WRONG}",
    ),
    "coroutines that unittest does not run": (
        TEST_CASE,
        f"import asyncio\nasyncio.Runner.run = lambda self, it, **more: it.close()\n{WRONG}",
    ),
    "coroutines in another runner": (
        TEST_CASE,
        f"import asyncio\nclass Runner(asyncio.Runner):\n    def run(self, it, **more):\n        it.close()\n{WRONG}"
        "asyncio.Runner = Runner\n",
    ),
}


@pytest.mark.parametrize("how", ATTACKS)
def test_a_wrong_fix_does_not_pass(validator: PythonValidator, how: str) -> None:
    tests, code = ATTACKS[how]
    found = judged(validator, WRONG, code, tests)
    assert found.status in ("failed", "no_report") or found.doubts, found


TRACING = """
import sys
from solution import add

def test_it(tmp_path):
    sys.settrace(None)
    assert add(2, 3) == 5
"""
DECORATED = """
import functools
from solution import add

def same(function):
    return functools.wraps(function)(lambda *arguments: function(*arguments))

class TestIt:
    @same
    def test_it(self):
        assert add(2, 3) == 5
"""
SOUND = {
    "tests that trace": {"test_it.py": TRACING},
    "a test file that imports another": {**TESTS, "test_more.py": "from test_second import *\n"},
    "plain assertions": {**TESTS, "pytest.ini": "[pytest]\naddopts = --assert=plain\n"},
    "another way of importing": {**TESTS, "pytest.ini": "[pytest]\naddopts = --import-mode=importlib\n"},
    "doctests in files of tests": {**TESTS, "pytest.ini": "[pytest]\naddopts = --doctest-modules\n"},
    "tests in a package": {"tests/__init__.py": "", **{f"tests/{name}": text for name, text in TESTS.items()}},
    "tests in a class behind a decorator": {"test_it.py": DECORATED},
}


@pytest.mark.parametrize("what", SOUND)
def test_a_right_fix_passes(validator: PythonValidator, what: str) -> None:
    tests = tuple(name for name in SOUND[what] if "test_" in name)
    report = run_pytest(validator, {"solution.py": GOOD, **SOUND[what]}, tests=tests)
    assert report.status == "passed", report
