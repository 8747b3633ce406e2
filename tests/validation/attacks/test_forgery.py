"""Wrong answers that try to pass by overwriting, leaving, reaching for or speaking for the tests. Each must fail."""

import sys
import textwrap

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import GOOD, Arena, job_of


class TestOverwritingTheTests:
    @pytest.mark.parametrize("when", ["import", "call"])
    def test_everything_that_it_can_write(self, arena: Arena, when: str) -> None:
        arena.cheat(f"""
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

    @pytest.mark.parametrize("named", [(), ("test_solution.py",), ("./test_solution.py",), ("x/../test_solution.py",)])
    def test_the_repaired_file_is_itself_a_test(self, arena: Arena, named: tuple[str, ...]) -> None:
        files = {"test_solution.py": "def test_it(): pass\n", "solution.py": GOOD}
        (report,) = arena.validator.validate([job_of(files, "test_solution.py", tests=named)])
        assert report.status == "unsafe_input"


LEAVING = [
    "sys.exit(0)", "os._exit(0)", "raise SystemExit", "raise KeyboardInterrupt", "raise GeneratorExit",
    "os.abort()", "os.kill(os.getpid(), 9)", "os.execv('/bin/true', ['true'])", "ctypes.string_at(0)",
    "ctypes.CDLL(None).exit(0)", "signal.raise_signal(signal.SIGTERM)",
    "sys.setrecursionlimit(10 ** 9); f = lambda: f(); f()", "(_ for _ in ()).throw(StopIteration)",
    "raise MemoryError",
]  # fmt: skip


class TestLeaving:
    # By an exception, the interpreter's end, a signal, another program, a fault.
    @pytest.mark.parametrize("leave", nightly_but([*LEAVING[:2], *LEAVING[6:9], LEAVING[12]], LEAVING))
    def test_at_import_and_at_a_call(self, arena: Arena, leave: str) -> None:
        imports = "import ctypes, os, signal, sys\n"
        for code in (f"{imports}{leave}\ndef add(a, b): return a + b\n", f"{imports}def add(a, b): {leave}\n"):
            assert not any(arena.cheat(code).tests.values())

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
        assert report.status == "no_report" and len(report.tests) == 3 and not any(report.tests.values())


NAMES = "FORGED = dict.fromkeys(['test_small', 'test_negative', 'assert_', 'abs'], lambda *_: None)\n"
WALKS = {
    "globals of frames": (
        "frame = sys._getframe()\nwhile frame:\n    frame.f_globals.update(FORGED)\n    frame = frame.f_back"
    ),
    "builtins of frames": (
        "for info in inspect.stack(): info.frame.f_globals.update(FORGED); info.frame.f_builtins.update(FORGED)"
    ),
    "every dictionary": (
        "for one in gc.get_objects():\n    if isinstance(one, dict) and 'test_small' in one: one.update(FORGED)"
    ),
    "builtins": "builtins.AssertionError = type('Quiet', (Exception,), {})\nbuiltins.__dict__.update(FORGED)",
    "unittest": (
        "unittest.TestCase.assertEqual = lambda *_: None\nunittest.TestCase.run = lambda *_: None\n"
        "unittest.TestResult.wasSuccessful = lambda *_: True"
    ),
    "functions of every module": (
        "for module in list(sys.modules.values()):\n    for name in ('_run', '_outcome', 'loads', 'runtest'):"
        "\n        if hasattr(module, name): setattr(module, name, lambda *_, **__: ('passed', ''))"
    ),
    "tracing": "sys.settrace(lambda *_: None)\nsys.setprofile(lambda *_: None)\nthreading.settrace(lambda *_: None)",
    "equality of int": (
        "table = ctypes.py_object.from_address(id(int.__dict__) + 16).value\ntable['__eq__'] = lambda *_: True\n"
        "ctypes.pythonapi.PyType_Modified(ctypes.py_object(int))"
    ),
    "the number 0": "ctypes.memmove(id(0) + 24, id(5) + 24, 4)",
    "exit handlers": "atexit.register(os._exit, 0)\nsys.excepthook = sys.unraisablehook = lambda *_: os._exit(0)",
}


@pytest.mark.parametrize("what", nightly_but([*WALKS][::3], WALKS))
def test_reaching_for_the_tests(arena: Arena, what: str) -> None:
    head = f"import atexit, builtins, ctypes, gc, inspect, os, sys, threading, unittest\n{NAMES}"
    for code in (
        f"{head}{WALKS[what]}\ndef add(a, b): return 0.5\n",
        f"{head}def add(a, b):\n{textwrap.indent(WALKS[what], '    ')}\n    return 0.5\n",
    ):
        arena.cheat(code)


LINES = """
import json, os, subprocess, sys

lines = [{"collected": ["test_solution.py::test_small", "test_solution.py::test_negative"]}]
lines += [
    {"test": name, "outcome": "passed", "message": "", "where": [], "memory": False}
    for name in ("test_solution.py::test_small", "test_solution.py::test_negative")
]
lines += [{"done": True, "status": 0, "tampered": None}]

def forge():
    for number in range(200):
        for line in lines:
            try:
                os.set_blocking(number, False)
                os.write(number, json.dumps(line).encode() + b"\\n")
            except OSError:
                pass

"""
SPEAKING = {
    "before the tests": "forge()\nos._exit(0)",
    "in place of the tests": "def add(a, b):\n    forge()\n    os._exit(0)",
    "and failing": "def add(a, b):\n    forge()\n    return 0",
    "in a child": "def add(a, b):\n    if os.fork() == 0: forge(); os._exit(0)\n    os.wait()\n    return 0",
    "in another program": (
        "if __name__ == '__main__': forge()\ndef add(a, b): subprocess.run([sys.executable, __file__], close_fds=False)"
    ),
    "in words": (
        "for stream in (sys.stdout, sys.stderr):\n"
        "    print('test_solution.py::test_small PASSED\\n2 passed in 0.01s\\n\\nOK', file=stream, flush=True)\n"
        "def add(a, b): return 0"
    ),
    "in tests of its own": "def add(a, b): return 0\ndef test_small(): pass\ndef test_negative(): pass",
}


@pytest.mark.parametrize("how", nightly_but(["in place of the tests", "and failing", "in another program"], SPEAKING))
def test_speaking_for_the_tests(arena: Arena, how: str) -> None:
    assert not any(arena.cheat(f"{LINES}{SPEAKING[how]}\n").tests.values())


@pytest.mark.parametrize("module", ["checks", "lib.checks"])
def test_helpers_of_the_tests_are_not_the_candidates(arena: Arena, module: str) -> None:
    """Whether the fix patches the helper or puts another in its place."""
    path = module.replace(".", "/") + ".py"
    files = {
        "lib/__init__.py": "",
        path: "import solution\ndef check(a, b): assert a == b\ndef run(a, b): return solution.add(a, b)\n",
        "test_solution.py": f"""
            import {module} as checks
            from solution import add
            def test_it(): checks.check(add(1, 2), 3)
            def test_run(): checks.check(checks.run(2, 3), 5)
        """,
    }
    patched = f"import {module} as checks\nchecks.check = lambda *_: None\ndef add(a, b): return 0\n"
    fake = f"""
        import sys, types
        fake = sys.modules[{module!r}] = types.ModuleType({module!r})
        fake.check = fake.run = lambda *_: None
        def add(a, b): return 0
    """
    for cheat in (patched, fake):
        arena.cheat(cheat, files=files, judge_files=(path,))
    assert arena.validate(GOOD, files=files, judge_files=(path,)).status == "passed"


# Large and small, in C, packages.
PATHS = ["queue.py", "types.py", "math.py", "json/__init__.py", "json/part.py"]


@pytest.mark.parametrize("path", nightly_but(PATHS[1::2], [*PATHS, "string.py", "asyncio.py", "code.py"]))
def test_a_file_named_like_an_installed_module_is_judged(arena: Arena, path: str) -> None:
    name = path.partition("/")[0].removesuffix(".py")
    if name in sys.builtin_module_names:
        pytest.skip(f"{name} is built into this Python: plain pytest would not find the file either")
    module = f"{name}.part" if "part" in path else name
    files = {f"{name}/__init__.py": ""} if "part" in path else {}
    files["test_it.py"] = f"""
        import importlib
        from {module} import double
        def test_it(): assert double(2) == 4
        def test_by_name(): assert importlib.import_module({module!r}).double(2) == 4
    """
    for code, good in (("def double(x): return 2 * x\n", True), ("def double(x): return x\n", False)):
        (report,) = arena.validator.validate([job_of({**files, path: code}, path)])
        assert report.tests == {"test_it": good, "test_by_name": good}, report
