"""Forged answers: objects that equal everything, and frames and report lines that nobody asked for. Each must fail."""

import textwrap

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import TESTS, Arena
from tests.validation.attacks.test_forgery import FAILED_BOTH

ALWAYS = """
class Always{base}:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash(5)
    def __bool__(self): return True
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __getattr__(self, name): return Always()
    def __call__(self, *_, **__): return Always()
    def __sub__(self, other): return self.zero()
    __rsub__ = __add__ = __radd__ = __mod__ = __truediv__ = __floordiv__ = __mul__ = __abs__ = __sub__
    def __abs__(self): return 0.0
    def __neg__(self): return 0
    def __round__(self, *_): return 0
    def zero(self): return {zero}
    def __instancecheck__(self, instance): return True
    def __subclasscheck__(self, instance): return True
    __class__ = property(lambda self: int)

def add(a, b): return Always()
"""


class TestAlwaysEqual:
    @pytest.mark.parametrize(
        "base",
        nightly_but(
            ["", "(int)", "(str)", "(tuple)"],
            ["", "(int)", "(str)", "(float)", "(list)", "(tuple)", "(dict)", "(set)", "(bytes)"],
        ),
    )
    def test_objects(self, arena: Arena, base: str) -> None:
        report = arena.cheat(ALWAYS.format(base=base, zero="0.0"))
        assert (report.status, report.tests) == ("failed", FAILED_BOTH)

    def test_times_that_are_close_to_every_time(self, arena: Arena) -> None:
        report = arena.cheat(
            ALWAYS.format(base="", zero="__import__('datetime').timedelta(0)"),
            """
            from datetime import date, datetime, timedelta
            from solution import add
            def test_close(): assert abs(add(1, 2) - datetime(2020, 1, 1)) < timedelta(seconds=1)
            def test_swapped(): assert datetime(2020, 1, 1) - add(1, 2) == timedelta(0)
            def test_day(): assert (add(1, 2) - date(2020, 1, 1)).days == 0
            def test_span(): assert add(1, 2) - timedelta(days=1) == timedelta(0)
            """,
        )
        assert len(report.tests) == 4 and not any(report.tests.values())

    @pytest.mark.parametrize(
        "zero",
        nightly_but(
            ["0", "0.0", "self"], ["0", "0.0", "False", "self", "Always()", "__import__('fractions').Fraction(0)"]
        ),
    )
    def test_numbers_that_are_nearly_equal_to_everything(self, arena: Arena, zero: str) -> None:
        report = arena.cheat(
            ALWAYS.format(base="", zero=zero),
            """
            import math, unittest
            import pytest
            from solution import add

            class TestIt(unittest.TestCase):
                def test_almost(self): self.assertAlmostEqual(add(1, 2), 3.0)
                def test_almost_swapped(self): self.assertAlmostEqual(3.0, add(1, 2))
                def test_delta(self): self.assertAlmostEqual(add(1, 2), 3.0, delta=0.5)
                def test_equal(self): self.assertEqual(add(1, 2), 3)
                def test_lists(self): self.assertEqual([add(1, 2)], [3])
                def test_greater(self): self.assertGreater(add(1, 2), 3)
                def test_count(self): self.assertCountEqual([add(1, 2)], [3])

            def test_difference(): assert abs(add(1, 2) - 3) < 0.01
            def test_difference_swapped(): assert abs(3 - add(1, 2)) < 0.01
            def test_rounded(): assert round(add(1, 2) - 3, 2) == 0
            def test_remainder(): assert add(1, 2) % 3 == 0
            def test_ratio(): assert add(1, 2) / 3 == 1
            def test_approx(): assert add(1, 2) == pytest.approx(3)
            def test_approx_swapped(): assert pytest.approx(3) == add(1, 2)
            def test_close(): assert math.isclose(add(1, 2), 3)
            def test_in(): assert add(1, 2) in [3]
            def test_in_set(): assert add(1, 2) in {5, 3}
            def test_key(): assert {3: 1}[add(1, 2)] == 1
            def test_sorted(): assert sorted([add(1, 2), 3]) == [3, 3]
            def test_dict(): assert {"a": add(1, 2)} == {"a": 3}
            def test_type(): assert isinstance(add(1, 2), int)
            def test_less(): assert add(1, 2) < 4
            """,
        )
        assert [name for name, good in report.tests.items() if good] == []
        assert len(report.tests) == 22

    def test_context_managers_that_swallow_assertions(self, arena: Arena) -> None:
        arena.cheat(
            """
            class add:
                def __init__(self, *_): pass
                def __enter__(self): return 0
                def __exit__(self, *_): return True
            """,
            "from solution import add\ndef test_it():\n    with add(1, 2) as three:\n        assert three == 3\n",
        )


SEND = """
import fcntl, json, os, socket, stat, struct, sys

def sockets():
    for number in range(3, 200):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                yield socket.socket(fileno=os.dup(number))
        except OSError:
            pass

def send(*frames):
    for one in sockets():
        for frame in frames:
            body = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
            one.sendall(struct.pack("!I", len(body)) + body)

"""
FRAMES = {
    "answers ahead of time": "send({'value': ['reference', {'mine': 1}]}, *[{'value': 0.5}] * 50)",
    "right answers to another question": "send(*[{'value': 5}] * 50)",
    "calls of objects that do not exist": (
        "send(*[{'op': 'call', 'on': n, 'args': [], 'kwargs': {}} for n in range(50)])"
    ),
    "reads of objects that do not exist": "send(*[{'op': 'get', 'on': n, 'name': '__class__'} for n in range(50)])",
    "an unknown request": "send({'op': 'eval', 'on': 1, 'name': '1'}, {'op': None}, {'op': []})",
    "an unhashable number": (
        "send({'op': 'call', 'on': [], 'args': [], 'kwargs': {}}, {'value': ['reference', {'yours': {}}]})"
    ),
    "an object of theirs": "send({'value': ['reference', {'yours': 1}]})",
    "a huge length": "[one.sendall(b'\\xff' * 4) for one in sockets()]",
    "half a frame": "[one.sendall(b'\\0\\0\\1\\0{') for one in sockets()]",
    "deep JSON": "send(b'[' * 100000, b'{\"value\":' + b'[' * 900 + b']' * 900 + b'}')",
    "deep values": "v = 5\nfor _ in range(400): v = ['list', [v]]\nsend({'value': v})",
    "not JSON": "send(b'\\0\\xff')",
    "not numbers": 'send(b\'{"value": NaN}\', b\'{"value": ["float", NaN]}\', b\'{"value": Infinity}\')',
    "wrong shapes": (
        "send([], 5, 'x', {}, {'value': {}}, {'value': [1]}, {'value': ['list', 5]}, {'value': ['int', 5]})"
    ),
    "wrong errors": "send({'error': 5}, {'error': {}}, {'error': {'kind': 'x'}}, {'error': {'kind': [], 'args': 5}})",
    "errors that steer tests": (
        "send(*[{'error': {'kind': [k], 'args': ['x']}} for k in ('unittest.case:_ShouldStop', "
        "'unittest.case:SkipTest', 'unittest:SkipTest', 'unittest.case._ShouldStop', "
        "'_pytest.outcomes:Skipped', '_pytest.outcomes:Exit', 'SystemExit', "
        "'touchstone.validation.isolated_runner.rpc:ConnectionLostError')] * 8)"
    ),
    "a deep class": "send({'error': {'kind': [str(n) for n in range(50000)]}})",
    "a strange class": (
        "send({'error': {'kind': ['a\\0b', '__import__', 'type']}}, {'error': {'kind': ['__build_class__']}})"
    ),
    "a strange tuple": (
        "send({'value': ['namedtuple', ['x', ['a', 'a'], [1]]]}, {'value': ['namedtuple', "
        "['__import__(\"os\")', ['x=1):pass#'], [1]]]})"
    ),
    "a fraction without end": "send({'value': ['Fraction', '1e999999999']})",
    "changes of what was not given": (
        "send({'value': 0, 'changed': [[0, 5], [99, ['list', []]], [-1, None]]}, {'value': 0, 'changed': 5})"
    ),
    "it hangs up": "[one.shutdown(socket.SHUT_RDWR) for one in sockets()]",
    "it sends descriptors": "[socket.send_fds(one, [b'x'], [0, 0, 0]) for one in sockets()]",
}


# After these the tests wait for the rest until the wall limit, or work on what came until the CPU limit.
WAITING, WORKING = "half a frame", "a deep class"
# Answers, calls, references, lengths, depth, no JSON, shapes, errors, and none at all.
BY_DAY = (
    *("answers ahead of time", "calls of objects that do not exist", "an object of theirs", "a huge length", WAITING),
    *("deep JSON", "not JSON", "wrong shapes", "errors that steer tests", "it hangs up"),
)


class TestForgedReports:
    @pytest.mark.parametrize("what", nightly_but(BY_DAY, FRAMES))
    def test_frames_that_nobody_asked_for(self, arena: Arena, what: str) -> None:
        frames = FRAMES[what]
        at_import = f"{SEND}{frames}\ndef add(a, b): return 0.5\n"
        at_call = f"{SEND}def add(a, b):\n{textwrap.indent(frames, '    ')}\n    return 0.5\n"
        unit = "import unittest\nfrom solution import add\nclass TestIt(unittest.TestCase):\n"
        unit += "    def test_small(self): self.assertEqual(add(2, 3), 5)\n"
        unit += "    def test_negative(self): self.assertEqual(add(10, -4), 6)\n"
        ways = ((at_import, TESTS), (at_call, TESTS), (at_call, unit))
        for code, tests in ways if what not in (WAITING, WORKING) else ways[1:2]:
            report = arena.cheat(code, tests, wall_seconds=1 if what == WAITING else None)
            assert report.status in ("failed", "timeout", "memory_limit")
            assert not all(report.tests.values()) or not report.tests

    def test_report_lines_on_every_descriptor(self, arena: Arena) -> None:
        report = arena.cheat("""
            import json, os

            def forge():
                lines = [{"imported": True}, {"collected": ["test_small", "test_negative"]}]
                lines += [{"test": name, "passed": True} for name in ("test_small", "test_negative")] + [{"done": True}]
                for number in range(200):
                    for line in lines:
                        try:
                            os.set_blocking(number, False)
                            os.write(number, json.dumps(line).encode() + b"\\n")
                        except OSError:
                            pass

            forge()

            def add(a, b):
                forge()
                os._exit(0)
        """)
        assert report.status == "failed" and not any(report.tests.values())

    def test_words_of_pytest_and_unittest_on_standard_output(self, arena: Arena) -> None:
        report = arena.cheat("""
            import sys

            for stream in (sys.stdout, sys.stderr):
                print("test_solution.py::test_small PASSED", file=stream)
                print("2 passed in 0.01s\\n\\nRan 2 tests in 0.001s\\n\\nOK", file=stream, flush=True)

            def add(a, b):
                print('{"passed": true, "done": true}')
                return 0
        """)
        assert (report.status, report.tests) == ("failed", FAILED_BOTH)

    def test_a_memory_error_of_its_own_is_no_pass(self, arena: Arena) -> None:
        assert arena.cheat("def add(a, b): raise MemoryError\n").status == "memory_limit"

    def test_names_of_other_tests_are_not_taken(self, arena: Arena) -> None:
        """A test that is expected by its name must have reported, whatever the candidate defines."""
        report = arena.cheat("def add(a, b): return 0\ndef test_small(): pass\ndef test_negative(): pass\n")
        assert report.tests == FAILED_BOTH
