"""Negative controls: what a test looks like with its expectations made false, and what that says of a fix."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import job_of
from tests.validation.pytest_runner.support import judged, run_pytest
from touchstone.config.validation import PythonProgram
from touchstone.validation.judging.known_tests import hold_to_known_tests
from touchstone.validation.protocol import Report
from touchstone.validation.pytest_runner.recorder import Recorder
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.processes import LimitExceeded
from touchstone.validation.sandbox.runner import JobAnswer, WarmWorker
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


IMPORTS = "import unittest\nimport pytest\nfrom solution import add\n\n\n"
FUNCTION = {"test_it.py": f"{IMPORTS}{TESTS['function']}"}


@pytest.fixture(scope="module")
def of_every_kind(validator: PythonValidator) -> list[Report]:
    """The reports on a right fix and on one that equals everything, with the tests of all kinds."""
    files = {f"test_{number}.py": f"{IMPORTS}{tests}" for number, tests in enumerate(TESTS.values())}
    lie = f"{HEAD}def add(a, b):\n    return Equal() if b else 0\n"
    return [judged(validator, BAD, fix, files) for fix in (GOOD, lie)]


@pytest.mark.parametrize("kind", TESTS)
def test_a_right_fix_is_controlled_and_an_object_that_equals_everything_is_not(
    of_every_kind: list[Report], kind: str
) -> None:
    right, forged = of_every_kind
    tests = {name for name in right.tests if name.startswith(f"test_{[*TESTS].index(kind)}.py")}
    assert tests and right.status == "passed" and right.control is not None and tests <= right.control.keys()
    said = {found.test: found.summary for found in forged.diagnostics}
    assert {name: said.get(name) for name in tests} == {name: f"forged pass: {name}" for name in tests}


@pytest.mark.parametrize("at_once", [True, False])
def test_an_expectation_asks_a_few_objects_of_a_class_and_not_thousands(tmp_path: Path, at_once: bool) -> None:
    text = "asked = []\nclass Lie:\n    def __eq__(self, other): return asked.append(self) is None\n"
    fix: dict[str, Any] = {"__name__": "solution"}
    exec(compile(text, tmp_path / "solution.py", "exec"), fix)
    recorder = Recorder(str(tmp_path))
    place = recorder.add_place("test_it.py", 1)
    lies = [fix["Lie"]() for _ in range(5_000)]
    for _ in range(2):
        recorder.start()
        for value in [lies] if at_once else lies:
            recorder.look(place, value)
        assert recorder.finish().held
        assert 0 < len(fix["asked"]) < 1_000
        # The next test has as many.
        fix["asked"].clear()


READERS = {
    "frames": "found = sys._getframe(1).f_locals",
    "the stack": "found = inspect.stack()[1]",
    "a summary of the stack": "found = traceback.extract_stack()[-2].line",
    "a traceback": """
            try: raise OSError
            except OSError as error: found = error.__traceback__.tb_frame.f_back""",
    "the test's file": "found = pathlib.Path('test_it.py').read_text()",
    "the test's source": "found = inspect.getsource(sys.modules['test_it'].test_it)",
    "the test's code": "found = sys.modules['test_it'].test_it.__code__.co_consts",
    "the test's module": "found = sys.modules['test_it'].WANTED",
    "the module's names": "found = vars(sys.modules['test_it'])",
    "all objects": "found = gc.get_objects()",
    "a tracer": "found = sys.settrace(None)",
}


# By frames, files, the compiled source, names of a module, the collector and a tracer.
BY_DAY = ("frames", "the test's file", "the test's source", "the test's module", "all objects", "a tracer")


@pytest.mark.parametrize("how", nightly_but(BY_DAY, READERS))
def test_the_pass_of_a_fix_that_looks_at_its_judges_is_doubted(validator: PythonValidator, how: str) -> None:
    reader = f"""
        import gc, inspect, pathlib, sys, traceback
        def add(a, b):
            {READERS[how]}
            return a + b
        """
    files = {"test_it.py": "from solution import add\nWANTED = 5\ndef test_it(): assert add(2, 3) == WANTED\n"}
    found = judged(validator, BAD, reader, files)
    assert found.status == "passed" and "looks at what judges it" in str(found.doubts), found
    # Not if the problem itself does, unless a control has nothing to read.
    of_problem = judged(validator, reader.replace("a + b", "a - b"), reader, files).doubts
    assert of_problem == () or ("getsource" in READERS[how] and "does not pass again" in str(of_problem))


def test_libraries_may_look_for_themselves(validator: PythonValidator) -> None:
    honest = """
        import collections, dataclasses, enum, inspect, logging, os, traceback, typing, warnings
        log = logging.getLogger(__name__)
        Pair = collections.namedtuple("Pair", "a b")
        Typed = typing.NamedTuple("Typed", [("a", int)])
        Colour = enum.Enum("Colour", "red")
        def call(function, *given):
            inspect.signature(function)
            function.__code__.co_argcount
            log.warning("called", stack_info=True)
            warnings.warn("deprecated", DeprecationWarning, stacklevel=2)
            try:
                return function(*given)
            except ValueError:
                log.exception("failed")
                return traceback.format_exc()[:9]
            finally:
                dict(os.environ)
        """
    tests = """
        from solution import call
        def fails(): raise ValueError
        def test_it():
            assert call(lambda a, b: a + b, 2, 3) == 5
            assert call(fails) == "Traceback"
    """
    found = judged(validator, "def call(*_): ...\n", honest, {"test_it.py": tests})
    assert (found.status, found.doubts) == ("passed", ()) and len(found.control or ()) == 1


def test_a_method_that_the_problem_has_may_be_mended(validator: PythonValidator) -> None:
    near = """
        class Near(float):
            __hash__ = float.__hash__
            def __eq__(self, other): return abs(self - other) < {tolerance}
        def near(x): return Near(x)
        """
    tests = {"test_it.py": "from solution import near\ndef test_it(): assert near(1.0) == 1.0000001\n"}
    wrong, right = near.format(tolerance=1e-9), near.format(tolerance=1e-6)
    mended = judged(validator, wrong, right, tests)
    assert (mended.status, mended.doubts) == ("passed", ()) and mended.control
    # Not if the fix brings it.
    brought = judged(validator, "def near(x): return x\n", right, tests)
    assert brought.status == "passed" and "answer for themselves, by __eq__" in str(brought.doubts)


def test_a_fix_that_changes_a_class_that_it_is_given_is_not_accused(validator: PythonValidator) -> None:
    wraps = """
        calls = []
        def trace(kind):
            real = kind.go
            kind.go = lambda self: calls.append(1) or real(self)
        """
    tests = """
        from solution import calls, trace
        class Box:
            def go(self): return 1
        def test_it():
            trace(Box)
            assert Box().go() == 1 and len(calls) == 1
        """
    found = judged(validator, "calls = []\ndef trace(kind): raise NotImplementedError\n", wraps, {"test_it.py": tests})
    assert found.status == "passed" and "go was replaced" in str(found.doubts), found


def test_the_equality_of_a_class_that_the_tests_name_may_be_inherited(validator: PythonValidator) -> None:
    shapes = """
        class Shape:
            def __init__(self, x): self.x = x
            def __eq__(self, other): return isinstance(other, Shape) and self.x == other.x
        class Hidden(Shape): pass
        def shape(x): return Hidden(x)
        """
    tests = {
        "test_it.py": "from solution import Shape, shape\ndef test_it(): assert shape(1) == Shape(1) != shape(2)\n"
    }
    found = judged(validator, "", shapes, tests)
    assert (found.status, found.doubts) == ("passed", ()) and found.control


def test_controls_can_be_turned_off(validator: PythonValidator) -> None:
    with patch.object(validator, "_controls", False):
        report = run_pytest(validator, {"solution.py": f"{HEAD}def add(a, b):\n    return Equal()\n", **FUNCTION})
    assert (report.status, report.control) == ("passed", None)


@pytest.mark.services
def test_doctests_count_on_request_and_have_a_control(validator: PythonValidator) -> None:
    code = 'def add(a, b):\n    """Add.\n\n    >>> add(1, 2)\n    3\n    """\n    return a + b\n'
    liar = "import doctest\ndoctest.OutputChecker.check_output = lambda *_: True\n" + code.replace("a + b", "a")
    with patch.object(validator, "_settings", PythonProgram(lint=False, doctest=True)):
        tests = {"test_it.py": "def test_it(): pass\n"}
        before = code.replace("a + b", "a - b")
        broken = run_pytest(validator, {"solution.py": before, **tests})
        assert (broken.status, broken.tests) == ("failed", {"solution.py::solution.add": False, "test_it": True})
        right = judged(validator, before, code, tests)
        assert right.status == "passed" and right.control is not None and len(right.control) == 2
        assert judged(validator, before, liar, tests).status == "failed"
        changed = before.replace("    3", "    -1")
        report, tree = run_pytest(validator, {"solution.py": changed, **tests}), job_of({"solution.py": before}).tree
        found = hold_to_known_tests(report, broken, None, {"solution.py": changed.encode()}, tree)
        assert found.status == "passed" and "changes the example add(1, 2)" in str(found.doubts)


def test_a_module_that_no_test_reaches_may_be_broken(validator: PythonValidator) -> None:
    tests = {**FUNCTION, "unused.py": "raise ImportError\n"}
    assert judged(validator, BAD, GOOD, tests).status == "passed"


@pytest.mark.parametrize("busy_after", [0, 1], ids=["first control", "confirmation"])
def test_a_machine_too_busy_for_a_control_leaves_a_pass_undecided_and_to_be_tried_again(
    validator: PythonValidator, monkeypatch: pytest.MonkeyPatch, busy_after: int
) -> None:
    """Whether the processor was shared is the machine's doing, so it is put in place of the real one."""
    answer, controls = WarmWorker.answer, count()

    def answer_late(worker: WarmWorker, payload: Any, limits: Limits, max_bytes: int) -> JobAnswer:
        found = answer(worker, payload, limits, max_bytes)
        late = payload["control"] and next(controls) >= busy_after
        return replace(found, exceeded=LimitExceeded("timeout", starved=True)) if late else found

    monkeypatch.setattr(WarmWorker, "answer", answer_late)
    tests = f"from solution import add\n{TESTS['function']}"
    # It fails in controls, for which the tests' files are empty, so they are repeated.
    code = GOOD.replace("return", "return open('test_it.py').read()[0] and") if busy_after else GOOD
    report = run_pytest(validator, {"solution.py": code, "test_it.py": tests})
    assert (report.status, report.settled, report.starved) == ("sandbox_error", False, True)
    assert "too busy" in report.note
