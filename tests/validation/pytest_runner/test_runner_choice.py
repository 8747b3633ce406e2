"""The runner is chosen once per problem: isolated where it can judge every test, else pytest for all its fixes."""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from touchstone.config.validation import LimitSettings, PythonProgram, ValidationSettings
from touchstone.validation.outcomes import outcome_rows
from touchstone.validation.protocol import Problem, Tree
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import NoTarget, Targets
from touchstone.validation.validators.python_runner import isolated_obstacle

CODE = "def add(a, b):\n    return a + b\n"


def obstacle(tests: str, code: str = CODE, more: dict[str, str] | None = None, **problem: Any) -> str | None:
    files = {"solution.py": code, "test_solution.py": textwrap.dedent(tests), **(more or {})}
    content = {path: text.encode() for path, text in files.items()}
    root = Path("/nonexistent")
    return isolated_obstacle(Problem("p", "solution.py", root, **problem), Tree(root, tuple(sorted(content)), content))


@pytest.mark.parametrize(
    "tests",
    [
        "from solution import add\ndef test_it():\n    assert add(1, 2) == 3\n",
        "import math, random\nimport solution\ndef test_it():\n    assert math.isclose(solution.add(.1, .2), .3)\n",
        """
        import sys, os
        sys.path.insert(0, os.path.dirname(__file__))
        import pytest
        from solution import add

        @pytest.mark.parametrize(("a", "b"), [(1, 2), pytest.param(3, 4, id="x")])
        class TestAdd:
            def setup_method(self):
                self.zero = 0

            @pytest.mark.parametrize("c", [5])
            def test_it(self, a, b, c, d=1):
                with pytest.raises(TypeError):
                    add(a, None)
        """,
        "import unittest\nfrom solution import add\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n",
        "import asyncio\nfrom solution import add\nasync def test_it():\n    assert True\n",
    ],
)
def test_plain_values_stay_isolated(tests: str) -> None:
    assert obstacle(tests) is None


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ("def test_it(tmp_path): pass", "needs the fixture tmp_path"),
        ("class TestIt:\n    def test_it(self, capsys): pass", "needs the fixture capsys"),
        ("import pytest\n@pytest.fixture\ndef x(): pass", "uses pytest.fixture"),
        ("import pytest\n@pytest.mark.skip\ndef test_it(): pass", "uses the marker skip"),
        ("from pytest import mark\n@mark.xfail\ndef test_it(): pass", "uses mark.xfail"),
        ("from unittest import mock\ndef test_it(): pass", "uses unittest.mock"),
        ("import unittest.mock\ndef test_it(): pass", "imports unittest.mock"),
        ("import numpy\ndef test_it(): pass", "imports numpy"),
        ("import tempfile\ndef test_it(): pass", "imports tempfile"),
        ("import os\ndef test_it():\n    os.environ['A'] = 'b'", "uses os.environ"),
        ("from . import solution\ndef test_it(): pass", "imports relative to its package"),
        ("def test_it():\n    assert open('x').read()", "opens a file"),
        ("from contextlib import redirect_stdout\ndef test_it(): pass", "uses redirect_stdout"),
        ("import random\ndef test_it():\n    random.seed(1)", "uses seed"),
        ("def setup_module(): pass\ndef test_it(): pass", "uses setup_module"),
        ("from solution import Base\nclass Sub(Base): pass\ndef test_it(): pass", "derives Sub from"),
        ("from solution import Point\ndef test_it(): pass", "imports Point, which may be a class"),
    ],
)
def test_what_only_works_in_one_process_needs_pytest(tests: str, why: str) -> None:
    assert why in (obstacle(tests) or "")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("assert make().__class__.__name__ == 'A'", "uses __class__"),
        ("assert type(make()) is Box", "uses type()"),
        ("assert type(make()) is int", None),
        ("assert vars(make()) == {}", "uses vars()"),
        ("assert isinstance(make(), ValueError)", "asks if an object is ValueError"),
        ("assert Box[int]().get() == 1", "uses Box[int]"),
        ("assert make(re.compile('a')) == 1", "uses re.compile"),
        ("assert make(random.Random(1)) == 1", "uses random.Random"),
        ("class Fake: pass\n    assert make(Fake) == 1", "defines the class Fake"),
        ("async def job(): pass\n    make(job)", "defines the coroutine job"),
        ("def job(a: int): pass\n    make(job)", "defines job with annotations"),
        ("asyncio.run(asyncio.gather(make(), make()))", "uses asyncio.gather"),
        ("assert asyncio.run(make()) == 1", None),
        ("with make() as it: assert it == 1", "uses the context manager make"),
        ("with pytest.raises(BoxError) as caught: make()\n    assert caught.value.code == 1", "uses code of an"),
        ("with pytest.raises(BoxError) as caught: make()\n    assert caught.value.args == ()", None),
        ("assert BoxError(1).code == 1", "makes objects of BoxError"),
        ("assert BoxError.code == 1", "uses BoxError.code"),
        ("data = [1]\n    assert make(data) is not data", "compares by identity"),
        ("assert make() is None", None),
        ("data = make()\n    data.append(1)\n    assert make() == []", "changes data"),
        ("data = [1]\n    box = Box(data)\n    data.append(2)\n    assert box.get() == 1", "changes data"),
        ("data = [1]\n    Box(data).put(2)\n    assert data == [1]", "compares data"),
        ("box = Box()\n    box.items.append(1)\n    assert box.get() == 1", "changes box.items"),
        ("box = Box()\n    other = copy.copy(box)\n    assert other.get() == 1", "copies box"),
        ("data = [2, 1]\n    before = copy.copy(data)\n    make(data)\n    assert data == before", None),
        ("got = []\n    make(got.append)\n    got.append(1)\n    assert got == [1, 1]", None),
        ("box = Box()\n    box.add(1)\n    assert box.pop() == 1", None),
        ("assert len({Box(), Box()}) == 1", "compares objects of Box"),
    ],
)
def test_objects_that_both_sides_share_need_pytest(body: str, why: str | None) -> None:
    code = "class Box:\n    pass\nclass BoxError(Exception):\n    pass\ndef make():\n    pass\n"
    head = "import asyncio, copy, random, re\nimport pytest\nfrom solution import Box, BoxError, make\n"
    found = obstacle(f"{head}def test_it():\n    {body}\n", code)
    assert (found is None) if why is None else (why in (found or ""))


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n", "objects of P"),
        ("class P:\n    def __eq__(self, other): return True\n", "objects of P"),
        ("class P(list): pass\n", "objects of P"),
        ("import enum\nclass P(enum.IntEnum):\n    A = 1\n", "objects of P"),
        ("class P\n    pass\n", "objects of P"),
        ("import numpy as np\n", "imports the package numpy"),
        ('def add(a, b):\n    """Add\n    import duties.\n    """\n', None),
        ("class P: pass\nclass Q(P): pass\nclass OopsError(ValueError): pass\n", None),
        ("from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n", None),
    ],
)
def test_objects_that_are_compared_by_value_need_pytest(code: str, why: str | None) -> None:
    found = obstacle("import solution\ndef test_it(): pass", code)
    assert (found is None) if why is None else (why in (found or ""))


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        ("assert Stack(1) == Stack(1)", True),
        ("stack = Stack(1)\n    assert [stack] == build()", True),
        ("assert build() in (Stack(1), 5)", True),
        ("assert build(1) == build(1)", True),
        ("first = build(1)\n    assert first != build(2)", True),
        ("assert build(build(1)) == 1", False),
        ("assert build(1) == 1 and build(2) == 2", False),
        ("stack = Stack(1)\n    assert stack.pop() == 1", False),
        ("stack = Stack(1)\n    assert stack is not Stack(1)", False),
        ("assert len(Stack(1)) == 1", False),
    ],
)
def test_objects_that_a_fix_may_make_equal_need_pytest(body: str, needed: bool) -> None:
    """The bug may be that the class has no `__eq__` yet."""
    found = obstacle(f"from solution import Stack, build\n\ndef test_it():\n    {body}\n", "class Stack: pass\n")
    assert (found is not None) is needed


@pytest.mark.parametrize(
    ("name", "text", "needed"),
    [
        ("conftest.py", "", True),
        ("pytest.ini", "[pytest]\n", True),
        ("pyproject.toml", "[tool.pytest.ini_options]\n", True),
        ("pyproject.toml", "[project]\n", False),
        ("setup.cfg", "[tool:pytest]\n", True),
        ("elsewhere/conftest.py", "", False),
    ],
)
def test_files_that_pytest_reads_need_pytest(name: str, text: str, needed: bool) -> None:
    found = obstacle("def test_it(): pass", more={name: text})
    assert (found is not None) is needed


def test_the_reference_fix_counts_as_part_of_the_problem() -> None:
    reference = "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
    assert "the reference fix" in (obstacle("import solution\ndef test_it(): pass", reference_fix=reference) or "")


# The class is made by a call and compared in a helper, which no look at the files finds.
HIDDEN = """
import dataclasses

P = dataclasses.make_dataclass("P", ["x"])

def double(point):
    return P(point.x)
"""
HIDDEN_TESTS = """
import shapes

def same(one, other):
    return one == other

def test_it():
    assert same(shapes.double(shapes.P(2)), shapes.P(4))
"""


@pytest.mark.parametrize("runner", ["auto", "isolated"])
def test_what_the_unmodified_problem_shows_switches_all_fixes(runner: str, tmp_path: Path) -> None:
    folder = tmp_path / "clones" / "p"
    folder.mkdir(parents=True)
    (folder / "shapes.py").write_text(HIDDEN)
    (folder / "test_shapes.py").write_text(HIDDEN_TESTS)
    settings = ValidationSettings(
        python=PythonProgram.model_validate({"runner": runner, "lint": False}),
        workers=1,
        limits=LimitSettings(seconds=60),
    )
    targets = Targets(tmp_path / "clones", settings).find([{"oid": "p", "filename": "shapes.py"}])
    assert not isinstance(targets["p"], NoTarget) and targets["p"].problem.runner == "isolated"
    fixes = [HIDDEN.replace("point.x", change) for change in ("point.x * 2", "point.x + 1", "4")]
    attempts = [
        {"model": "m", "tier": "T0", "oid": "p", "iteration_id": str(place), "fixed_file": text}
        for place, text in enumerate(fixes)
    ]
    with ValidationSession(settings, tmp_path / "cache", tmp_path / "scratch") as session:
        rows = outcome_rows(attempts, targets, session)
    if runner == "auto":
        assert [(row["passed"], row["runner"]) for row in rows] == [(good, "pytest") for good in (True, False, True)]
    else:
        assert [row["status"] for row in rows] == ["validator_unavailable"] * 3
        assert "two objects of the candidate's classes were compared" in rows[0]["diagnostics"]
