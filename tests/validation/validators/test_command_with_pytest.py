"""The command validator with the real pytest: a fix that ends the process, and one that still fails, never pass."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from tests.validation.validators.support import job_of, report_on, tree_of
from touchstone.config.validation import CommandProgram
from touchstone.validation.judging.verdicts import compute_verdict, only_judged
from touchstone.validation.protocol import Job, Report
from touchstone.validation.sandbox.command import Limits, Sandbox
from touchstone.validation.validators.command import CommandValidator
from touchstone.vocabulary import Success

LIMITS = Limits(seconds=60)
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py")
READABLE = (Path(sys.prefix), Path(sys.base_prefix))
ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
BROKEN = "def total(prices):\n    return 0\n"
RIGHT = "def total(prices):\n    return sum(prices)\n"
TESTS = """
import shop

def test_none():
    assert shop.total([]) == 0

def test_two():
    assert shop.total([1, 2]) == 3
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    tree = tree_of(tmp_path_factory.mktemp("shop"), {"shop.py": BROKEN, "test_shop.py": TESTS})
    return job_of(tree, "shop.py")


def reports(sandbox: Sandbox, job: Job, *fixes: str, arguments: tuple[str, ...] = PYTEST) -> list[Report]:
    settings = CommandProgram(arguments=arguments, readable=READABLE, environment=ENVIRONMENT)
    validator = CommandValidator(sandbox, LIMITS, settings)
    trees = [job.tree.with_file("shop.py", text.encode()) for text in fixes]
    return [report_on(validator, Job(job.problem, tree)) for tree in trees]


@pytest.fixture(scope="module")
def baseline(sandbox: Sandbox, job: Job) -> Report:
    (report,) = reports(sandbox, job, BROKEN)
    return report


LEAVING = "import os\nos._exit(0)\n"
ENDED = ("failed", "no_report")


@pytest.mark.parametrize(
    ("fix", "statuses"),
    [
        pytest.param(RIGHT, ("passed",), id="right"),
        pytest.param(LEAVING, ENDED, id="ended at import", marks=pytest.mark.nightly),
        pytest.param("import os\n\ndef total(prices):\n    os._exit(0)\n", ENDED, id="ended in a test"),
        pytest.param("import atexit, os\natexit.register(os._exit, 0)\n" + BROKEN, ENDED, id="ended at exit"),
    ],
)
def test_ending_the_process_with_zero_is_no_pass(
    sandbox: Sandbox, job: Job, baseline: Report, fix: str, statuses: tuple[str, ...]
) -> None:
    (report,) = reports(sandbox, job, fix)
    assert compute_verdict(baseline, report, job.problem, 1, 2, "plausible").status in statuses


def test_a_run_that_fails_in_other_words_has_fixed_nothing(sandbox: Sandbox, job: Job, baseline: Report) -> None:
    (wrong,) = reports(sandbox, job, "def total(prices):\n    return 7\n")
    for success in get_args(Success):
        judged = compute_verdict(baseline, wrong, job.problem, 1, 2, success)
        assert (judged.status, judged.fixed) == ("failed", False), success


UNITTEST = (sys.executable, "-m", "unittest", "-q", "checks")
CHECKS = """
import unittest, shop

class Checks(unittest.TestCase):
    def test_two(self):
        self.assertEqual(shop.total([1, 2]), 3)
"""


@pytest.mark.parametrize(
    "arguments",
    [pytest.param(UNITTEST, marks=pytest.mark.nightly), ("/bin/sh", "-c", f"{' '.join(UNITTEST)} 2>&1")],
    ids=["itself", "by a shell"],
)
def test_unittest_that_is_ended_early_is_no_pass(sandbox: Sandbox, job: Job, arguments: tuple[str, ...]) -> None:
    job = Job(job.problem, job.tree.with_file("checks.py", CHECKS.encode()))
    statuses = [report.status for report in reports(sandbox, job, BROKEN, RIGHT, LEAVING, arguments=arguments)]
    assert statuses == ["failed", "passed", "no_report"]


@pytest.mark.services
def test_a_test_with_a_failed_part_has_not_passed(sandbox: Sandbox, job: Job) -> None:
    """pytest lists it as passed beside its failed parts."""
    parts = CHECKS + "        with self.subTest():\n            self.assertEqual(shop.total([2]), 2)\n"
    problem = replace(job.problem, fail_to_pass=("checks.py::Checks::test_two",))
    job = Job(problem, job.tree.with_file("checks.py", parts.encode()))
    fixes = ("def total(prices):\n    return 3\n", RIGHT)
    found = reports(sandbox, job, *fixes, arguments=(*PYTEST[:-1], "checks.py"))
    assert [only_judged(report, problem).status for report in found] == ["failed", "passed"]


@pytest.mark.services
@pytest.mark.parametrize("command", ["python -m pytest -q", "pytest -q"])
def test_python_needs_no_path(sandbox: Sandbox, job: Job, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no `python` it is Touchstone's own, with its packages."""
    monkeypatch.setattr("touchstone.validation.validators.common.SYSTEM_PATH", "/nowhere")
    own = replace(job.problem, test_command=command)
    validator = CommandValidator(sandbox, LIMITS, CommandProgram(arguments=()))
    assert report_on(validator, Job(own, job.tree.with_file("shop.py", RIGHT.encode()))).status == "passed"
    assert str(Path(sys.executable).parent) in str(validator.identity(own))
