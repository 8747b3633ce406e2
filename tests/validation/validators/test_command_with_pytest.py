"""The command validator with the real pytest: a fix that ends the process, and one that still fails, never pass."""

import sys
from pathlib import Path

import pytest

from tests.validation.validators.support import job_of, report_on, tree_of
from touchstone.validation.judging.verdicts import Verdict, compute_verdict
from touchstone.validation.protocol import Job, Report
from touchstone.validation.sandbox.command import Limits, Sandbox
from touchstone.validation.validators.command import CommandSettings, CommandValidator
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


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return job_of(tree_of(tmp_path, {"shop.py": BROKEN, "test_shop.py": TESTS}), "shop.py")


def reports(sandbox: Sandbox, job: Job, *fixes: str, arguments: tuple[str, ...] = PYTEST) -> list[Report]:
    settings = CommandSettings(arguments, readable=READABLE, environment=ENVIRONMENT)
    validator = CommandValidator(sandbox, LIMITS, settings)
    trees = [job.tree, *(job.tree.with_file("shop.py", text.encode()) for text in fixes)]
    return [report_on(validator, Job(job.problem, tree)) for tree in trees]


def verdict(sandbox: Sandbox, job: Job, fix: str, success: Success = "plausible") -> Verdict:
    baseline, report = reports(sandbox, job, fix)
    return compute_verdict(baseline, report, job.problem, 1, 2, success)


@pytest.mark.parametrize(
    "fix",
    [
        "import os\nos._exit(0)\n",
        "import os\n\ndef total(prices):\n    os._exit(0)\n",
        "import atexit, os\natexit.register(os._exit, 0)\n" + BROKEN,
    ],
    ids=["at import", "in a test", "at exit"],
)
def test_ending_the_process_with_zero_is_no_pass(sandbox: Sandbox, job: Job, fix: str) -> None:
    assert verdict(sandbox, job, fix).status in ("failed", "no_report")


@pytest.mark.parametrize("success", ["plausible", "clean", "fixed", "strict_block", "strict_module"])
def test_a_run_that_fails_in_other_words_has_fixed_nothing(sandbox: Sandbox, job: Job, success: Success) -> None:
    judged = verdict(sandbox, job, "def total(prices):\n    return 7\n", success)
    assert (judged.status, judged.fixed) == ("failed", False)


def test_the_right_fix_passes(sandbox: Sandbox, job: Job) -> None:
    assert verdict(sandbox, job, RIGHT).status == "passed"


UNITTEST = (sys.executable, "-m", "unittest", "-q", "checks")
CHECKS = """
import unittest, shop

class Checks(unittest.TestCase):
    def test_two(self):
        self.assertEqual(shop.total([1, 2]), 3)
"""


def test_unittest_that_is_ended_early_is_no_pass(sandbox: Sandbox, job: Job) -> None:
    job = Job(job.problem, job.tree.with_file("checks.py", CHECKS.encode()))
    leaving = "import os\nos._exit(0)\n"
    statuses = [report.status for report in reports(sandbox, job, RIGHT, leaving, arguments=UNITTEST)]
    assert statuses == ["failed", "passed", "no_report"]
