"""Wrong answers that try to pass by overwriting, leaving or reaching for the tests. Each must fail."""

import textwrap
from pathlib import Path

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks import test_rust
from tests.validation.attacks.arena import GOOD, Arena, job_of

FAILED_BOTH = {"test_small": False, "test_negative": False}


class TestOverwritingTheTests:
    @pytest.mark.parametrize("when", ["import", "call"])
    def test_everything_that_it_can_write(self, arena: Arena, when: str) -> None:
        report = arena.cheat(f"""
            import os, pathlib, sys

            FORGED = "def test_small(): pass\\ndef test_negative(): pass\\nadd = lambda a, b: [5, 6][a > 5]\\n"

            def overwrite():
                here = pathlib.Path.cwd()
                places = [here, here.parent, here.parent.parent, *map(pathlib.Path, sys.path)]
                names = ["test_solution.py", "conftest.py", "sitecustomize.py", "usercustomize.py", "forged.pth"]
                for place in [*places, pathlib.Path("/box/work"), pathlib.Path.home()]:
                    found = list(place.rglob("*.py")) if place == here else []
                    for path in [*(place / name for name in names), *found]:
                        try:
                            path.write_text(FORGED)
                        except OSError:
                            pass

            {"overwrite()" if when == "import" else ""}
            def add(a, b):
                overwrite()
                return 0
        """)
        assert (report.status, report.tests) == ("failed", FAILED_BOTH)

    def test_the_tests_are_not_there_to_be_read(self, arena: Arena) -> None:
        report = arena.cheat("""
            import pathlib
            found = [str(path) for path in pathlib.Path.home().rglob("*") if "test" in path.name]
            raise ValueError(found)
        """)
        assert "ValueError: []" in str(report.diagnostics)

    def test_the_repaired_file_is_itself_a_test(self, arena: Arena) -> None:
        for named in ((), ("test_solution.py",), ("./test_solution.py",), ("x/../test_solution.py",)):
            files = {"test_solution.py": "def test_it(): pass\n", "solution.py": GOOD}
            (report,) = arena.validator.validate([job_of(files, "test_solution.py", named)])
            assert report.status == "unsafe_input"

    def test_tests_that_load_the_file_by_its_path_do_not_run_it_where_they_are(self, arena: Arena) -> None:
        """There it could write the report itself."""
        forge = """
            import json, os

            lines = [{"imported": True}, {"collected": ["test_it"]}]
            lines += [{"test": "test_it", "passed": True}, {"done": True}]
            if __name__ != "solution":
                for number in range(3, 200):
                    try:
                        os.write(number, b"".join(json.dumps(line).encode() + b"\\n" for line in lines))
                    except OSError:
                        pass
                os._exit(0)
        """
        for load in (
            "exec(open('solution.py').read())",
            "runpy.run_path('solution.py')",
            "s = util.spec_from_file_location('s', 'solution.py'); s.loader.exec_module(util.module_from_spec(s))",
            "subprocess.run([sys.executable, 'solution.py'], check=True, close_fds=False)",
        ):
            head = "import runpy, subprocess, sys\nfrom importlib import util\n"
            report = arena.cheat(forge, f"{head}def test_it():\n    {load}\n    assert False\n")
            assert (report.status, report.tests) == ("failed", {"test_it": False})

    def test_helpers_of_the_tests_are_not_the_candidates(self, arena: Arena) -> None:
        files = {
            "solution.py": """\
import sys, types

fake = types.ModuleType("tests.helpers")
fake.check = lambda *_: None
sys.modules["tests.helpers"] = fake

def add(a, b): return 0
""",
            "tests/__init__.py": "",
            "tests/helpers.py": "def check(got, wanted):\n    assert got == wanted\n",
            "tests/test_add.py": (
                "from tests.helpers import check\nfrom solution import add\ndef test_it(): check(add(1, 2), 3)\n"
            ),
        }
        (report,) = arena.validator.validate([job_of(files)])
        assert (report.status, report.tests) == ("failed", {"test_it": False})
        (report,) = arena.validator.validate([job_of({**files, "solution.py": GOOD})])
        assert report.status == "passed", report


LEAVING = [
    "sys.exit(0)",
    "os._exit(0)",
    "raise SystemExit",
    "raise KeyboardInterrupt",
    "raise GeneratorExit",
    "os.abort()",
    "os.kill(os.getpid(), 9)",
    "os.execv('/bin/true', ['true'])",
    "ctypes.string_at(0)",
    "ctypes.CDLL(None).exit(0)",
    "signal.raise_signal(signal.SIGTERM)",
    "sys.setrecursionlimit(10 ** 9); f = lambda: f(); f()",
    "(_ for _ in ()).throw(StopIteration)",
]


# By an exception, the interpreter's end, a signal, another program, a fault.
BY_DAY = [*LEAVING[:2], *LEAVING[6:9], *LEAVING[12:]]


class TestLeaving:
    @pytest.mark.parametrize("leave", nightly_but(BY_DAY, LEAVING))
    def test_at_import_and_at_a_call(self, arena: Arena, leave: str) -> None:
        imports = "import ctypes, os, signal, sys\n"
        at_import = arena.cheat(f"{imports}{leave}\ndef add(a, b): return a + b\n")
        assert at_import.status in ("failed", "timeout", "memory_limit") and not any(at_import.tests.values())
        at_call = arena.cheat(f"{imports}def add(a, b): {leave}\n")
        assert at_call.status in ("failed", "timeout", "memory_limit") and not any(at_call.tests.values())

    @pytest.mark.parametrize("expected", ["Exception", "BaseException", "(Exception, SystemExit)"])
    def test_where_the_tests_expect_an_exception(self, arena: Arena, expected: str) -> None:
        """A process that ends raises nothing."""
        report = arena.cheat(
            "import os\ndef add(a, b): os._exit(0)\n",
            f"""
            import pytest, unittest
            from solution import add

            def test_raises():
                with pytest.raises({expected}):
                    add(1, None)

            class TestIt(unittest.TestCase):
                def test_raises(self):
                    with self.assertRaises({expected}):
                        add(1, None)

            def test_caught():
                try:
                    add(1, None)
                except {expected}:
                    return
                raise AssertionError
            """,
        )
        assert report.status == "failed" and len(report.tests) == 3 and not any(report.tests.values())

    def test_for_rust_it_is_tried_with_the_validator_of_rust(self) -> None:
        assert '"std::process::exit(0)"' in Path(test_rust.__file__).read_text()


class TestReachingForTheTests:
    @pytest.mark.parametrize(
        "walk",
        [
            "frame = sys._getframe()\nwhile frame:\n    frame.f_globals.update(FORGED)\n    frame = frame.f_back",
            (
                "for info in inspect.stack():\n    info.frame.f_globals.update(FORGED)\n    "
                "info.frame.f_builtins.update(FORGED)"
            ),
            "for one in gc.get_objects():\n    if isinstance(one, dict) and 'test_small' in one: one.update(FORGED)",
            "builtins.AssertionError = type('Quiet', (Exception,), {})\nbuiltins.__dict__.update(FORGED)",
            (
                "unittest.TestCase.assertEqual = lambda *_: None\nunittest.TestCase.run = lambda *_: None\n"
                "unittest.TestResult.wasSuccessful = lambda *_: True"
            ),
            (
                "for module in list(sys.modules.values()):\n    for name, value in list(vars(module).items()):\n     "
                "   if name in ('_run', '_collect', '_cases', 'decode', 'loads', 'say'): setattr(module, name, "
                "lambda *_, **__: {'passed': True})"
            ),
            "sys.settrace(lambda *_: None)\nsys.setprofile(lambda *_: None)\nthreading.settrace(lambda *_: None)",
            (
                "ctypes.pythonapi.PyObject_RichCompareBool = None\ntable = "
                "ctypes.py_object.from_address(id(int.__dict__) + 16).value\ntable['__eq__'] = lambda *_: True\n"
                "ctypes.pythonapi.PyType_Modified(ctypes.py_object(int))"
            ),
            "ctypes.memmove(id(0) + 24, id(5) + 24, 4)",
            "atexit.register(os._exit, 0)\nsys.excepthook = sys.unraisablehook = lambda *_: os._exit(0)",
        ],
    )
    def test_its_own_process_is_all_it_finds(self, arena: Arena, walk: str) -> None:
        head = "import atexit, builtins, ctypes, gc, inspect, os, sys, threading, types, unittest\n"
        forged = "FORGED = dict.fromkeys(['test_small', 'test_negative', 'assert_', 'abs'], lambda *_: None)\n"
        at_import = f"{head}{forged}{walk}\ndef add(a, b): return 0.5\n"
        at_call = f"{head}{forged}def add(a, b):\n{textwrap.indent(walk, '    ')}\n    return 0.5\n"
        for code in (at_import, at_call):
            report = arena.cheat(code)
            assert report.status in ("failed", "timeout", "memory_limit") and not any(report.tests.values())

    def test_star_imports_bring_nothing_that_the_tests_judge_by(self, arena: Arena) -> None:
        cheat = """
            import types

            def isclose(*_, **__): return True
            math = types.SimpleNamespace(isclose=isclose)
            def add(a, b): return 0
        """
        tests = """
            import math
            from math import isclose
            from solution import *

            def test_module(): assert math.isclose(add(1, 2), 3)
            def test_function(): assert isclose(add(1, 2), 3)
        """
        assert not any(arena.cheat(cheat, tests).tests.values())
        assert arena.validate(f"import math\nfrom math import isclose\n{GOOD}", tests).status == "passed"
        arena.cheat(
            "def abs(x): return 0\ndef add(a, b): return 7\n",
            "from solution import *\ndef test_it(): assert abs(add(1, 2) - 3) < 0.01\n",
        )
        arena.cheat(
            "__all__ = ['add', '__builtins__', '__name__']\n__name__ = 'x'\ndef add(a, b): return 7\n",
            "from solution import *\ndef test_it(): assert add(1, 2) == 3\n",
        )

    def test_objects_of_the_tests_that_were_passed(self, arena: Arena) -> None:
        """A callback can be called, and that is all."""
        report = arena.cheat(
            """
            def attack(callback, thing):
                got = []
                for one in (callback, thing.method, thing):
                    for name in ("__globals__", "__code__", "__self__", "__class__", "__dict__", "__func__", "_hidden"):
                        rpc, number = one._rpc, one._object_id
                        for request in ({"op": "get", "name": name}, {"op": "set", "name": name, "value": 1}):
                            try:
                                got.append(rpc.request(on=number, **request))
                            except Exception:
                                pass
                        for op in ("do", "import", "names", "exit", "eval"):
                            try:
                                got.append(rpc.request(op, on=number, name="getattr", args=[name]))
                            except Exception:
                                pass
                return [str(one) for one in got] or 0
            """,
            """
            from solution import attack

            class Thing:
                _hidden = 5
                def method(self): return 1

            def test_nothing():
                assert attack(lambda x: x, Thing()) == 0
                assert attack(lambda x: x, Thing()) == 1
            """,
        )
        assert "== 1" in str(report.diagnostics)
