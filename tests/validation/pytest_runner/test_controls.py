"""Negative controls: what a test looks like with its expectations made false, and what that says of a fix."""

import ast
from pathlib import Path

import pytest

from tests.validation.pytest_runner.support import judged, run_pytest, warm_validator
from touchstone.validation.pytest_runner.controls import Recorder, control_file
from touchstone.validation.validators.python import PythonValidator

BAD, GOOD = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
HEAD = "import sys\n\n\nclass Equal:\n    def __eq__(self, other):\n        return True\n\n\n"
TESTS = {
    "function": "def test_it():\n    assert add(2, 3) == 5\n",
    "swapped": "def test_it():\n    assert 5 == add(2, 3)\n",
    "two names": "def test_it():\n    wanted = 5\n    got = add(2, 3)\n    assert got == wanted\n",
    "parametrised": "@pytest.mark.parametrize('a, b, c', [(2, 3, 5), (4, 5, 9)])\ndef test_it(a, b, c):\n"
    "    assert add(a, b) == c\n",
    "method": "class TestIt:\n    def test_it(self):\n        assert add(2, 3) == 5\n",
    "unittest": "class TestIt(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(add(2, 3), 5)\n",
    "coroutine": "async def test_it():\n    assert add(2, 3) == 5\n",
    "helper": "def check(got, wanted):\n    assert got == wanted\n\n\ndef test_it():\n    check(add(2, 3), 5)\n",
    "fixture": "@pytest.fixture\ndef five():\n    return 5\n\n\ndef test_it(five):\n    assert add(2, 3) == five\n",
    "nested": "def test_it():\n    assert {'sums': [1, add(2, 3)]} == {'sums': [1, 5]}\n",
    "second assertion": "def test_it():\n    assert add(0, 0) == 0\n    assert add(2, 3) == 5\n",
    "several": "def test_it():\n    assert add(0, 0) == 0 and add(2, 3) == 5\n",
    "all": "def test_it():\n    assert all(add(a, 3) == a + 3 for a in (1, 2))\n",
    "condition": "def test_it():\n    if add(2, 3) != 5:\n        pytest.fail('wrong')\n",
}


def files_of(kind: str) -> dict[str, str]:
    return {"test_it.py": f"import unittest\nimport pytest\nfrom solution import add\n\n\n{TESTS[kind]}"}


@pytest.mark.parametrize("kind", TESTS)
def test_a_right_fix_is_controlled_and_an_object_that_equals_everything_is_not(
    validator: PythonValidator, kind: str
) -> None:
    right = judged(validator, BAD, GOOD, files_of(kind))
    assert right.status == "passed" and right.control is not None
    assert right.control.keys() == right.tests.keys()
    forged = judged(validator, BAD, f"{HEAD}def add(a, b):\n    return Equal() if b else 0\n", files_of(kind))
    assert forged.status == "failed", forged
    assert any("forged pass" in found.summary or "test failed" in found.summary for found in forged.diagnostics)


@pytest.mark.parametrize("kind", ["function", "two names", "parametrised", "unittest"])
def test_a_fix_that_reads_its_answer_from_the_test_gives_the_decoy(validator: PythonValidator, kind: str) -> None:
    reader = """
        import linecache, re, sys
        def add(a, b):
            frame = sys._getframe(1)
            while "test_it" not in frame.f_code.co_name:
                frame = frame.f_back
            known = [frame.f_locals[name] for name in ("c", "wanted") if name in frame.f_locals]
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            numbers = [int(found) for found in re.findall(r"\\d+", line)]
            return known[0] if known else numbers[-1]
        """
    plain = run_pytest(validator, {"solution.py": reader, **files_of(kind)})
    assert plain.status == "passed"
    assert "forged pass" in str(judged(validator, BAD, reader, files_of(kind)).diagnostics)


def test_controls_can_be_turned_off(tmp_path: Path) -> None:
    for validator in warm_validator(tmp_path, controls=False):
        report = judged(validator, BAD, f"{HEAD}def add(a, b):\n    return Equal()\n", files_of("function"))
        assert (report.status, report.control) == ("passed", None)


def test_doctests_have_a_control(tmp_path: Path) -> None:
    code = 'def add(a, b):\n    """Add.\n\n    >>> add(1, 2)\n    3\n    """\n    return a + b\n'
    liar = "import doctest\ndoctest.OutputChecker.check_output = lambda *_: True\n" + code.replace("a + b", "a")
    for validator in warm_validator(tmp_path, doctest=True):
        tests = {"test_it.py": "def test_it(): pass\n"}
        before = code.replace("a + b", "a - b")
        right = judged(validator, before, code, tests)
        assert right.status == "passed" and right.control is not None and len(right.control) == 2
        assert judged(validator, before, liar, tests).status == "failed"


def test_a_module_that_no_test_reaches_may_be_broken(validator: PythonValidator) -> None:
    tests = {**files_of("function"), "unused.py": "raise ImportError\n"}
    assert judged(validator, BAD, GOOD, tests).status == "passed"


def test_only_expectations_become_decoys() -> None:
    text = b"def test_it():\n    w = 7\n    assert add(1, 2) == 3\n    assert add(3, 4) == w\n    print(w)\n"
    made = control_file(text, "test_it.py", frozenset({"test_it"}), Recorder("/root"), "_r")
    lines = made.text.decode().splitlines()
    assert lines[1:4] == ["    w = 7", "    assert add(1, 2) == (4)", "    assert add(3, 4) == w"]
    assert made.controlled == {"test_it"}
    assert "_r.end" in ast.unparse(made.tree)


def test_a_return_that_something_may_catch_has_no_control() -> None:
    text = b"def test_it():\n    try:\n        return\n    except AssertionError:\n        pass\n"
    made = control_file(text, "test_it.py", frozenset({"test_it"}), Recorder("/root"), "_r")
    assert (made.controlled, made.uncontrolled) == (frozenset(), {"test_it"})
