"""Fixes of several files: whatever they change beside the problem's file, the tests stay the judge's."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.validation.attacks.conftest import USED, sandbox_runner
from touchstone.validation.fixes.apply_fix import AppliedFix, Fix, NotApplied, apply_fix
from touchstone.validation.judge_side import with_judge_side
from touchstone.validation.protocol import Job, Problem, Tree
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.validators.python import PythonSettings, PythonValidator

FILES = {
    "cart.py": "def add(a, b):\n    return a - b\n",
    "rates.py": "RATE = 1\n",
    "checks/helpers.py": "def check(found, wanted):\n    assert found == wanted\n",
    "checks/test_cart.py": """\
import json, sys
import pytest
from cart import add
import rates
sys.path.insert(0, "checks")
import helpers

def test_add(): assert add(1, 2) == 3
def test_rate(): helpers.check(add(rates.RATE, 1), 2)
def test_json(): assert json.loads("3") == add(1, 2)
def test_text():
    with pytest.raises(TypeError): add("1", 2)
""",
}
RIGHT = {
    "cart.py": "import parts\n\n\ndef add(a, b):\n    return parts.plus(a, b)\n",
    "parts.py": "from operator import add as plus\n",
}
# Puts helpers that check nothing into whatever module imports this one.
REACHING = """\
import sys, types

RATE = 1
frame = sys._getframe()
while frame is not None:
    frame.f_globals.update(helpers=types.SimpleNamespace(check=print), json=types.SimpleNamespace(loads=lambda _: -1))
    frame = frame.f_back
"""
FORGED_PYTEST = """\
class raises:
    def __init__(self, *kinds): pass
    def __enter__(self): return self
    def __exit__(self, *error): return True
"""
ATTACKS = {
    "a module that the tests import reaches into them": {"rates.py": REACHING},
    "the tests' own helper": {"checks/helpers.py": "import sys\n\n\ndef check(*arguments):\n    pass\n" + REACHING},
    "a module named like pytest": {"pytest.py": FORGED_PYTEST + REACHING},
    "a package named like pytest": {"pytest/__init__.py": FORGED_PYTEST + REACHING},
    "a module named like one of the standard library": {"json.py": "def loads(text):\n    return -1\n" + REACHING},
    "settings of the test runner": {"checks/conftest.py": REACHING},
    "another test file": {"checks/test_cart.py": "def test_add():\n    pass\n"},
}


@pytest.fixture(scope="module", params=USED)
def validator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PythonValidator]:
    runner = sandbox_runner(request.param, tmp_path_factory.mktemp("several"))
    made = PythonValidator(runner, Limits(seconds=30), PythonSettings(None, False))
    yield made
    made.close()


def status(validator: PythonValidator, tmp_path: Path, fix: dict[str, str]) -> str:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    problem = Problem("p", "cart.py", tmp_path, tests=("checks/test_cart.py",))
    tree = Tree(tmp_path, tuple(sorted(FILES)))
    problem = with_judge_side(problem, tree)
    made = apply_fix(tree, Fix(json.dumps(fix), "files"), problem)
    if isinstance(made, NotApplied):
        return made.status
    assert isinstance(made, AppliedFix)
    (report,) = validator.validate([Job(problem, tree.with_changes(made.changes))])
    return report.status


@pytest.mark.parametrize("name", ATTACKS)
def test_whatever_else_is_changed_the_tests_judge(validator: PythonValidator, tmp_path: Path, name: str) -> None:
    assert status(validator, tmp_path, ATTACKS[name]) == "failed"


def test_a_right_fix_with_a_new_module_passes(validator: PythonValidator, tmp_path: Path) -> None:
    assert status(validator, tmp_path, RIGHT) == "passed"
