"""The command validator with the real pytest: a fix that ends the process, and one that still fails, never pass."""

import sys
from pathlib import Path

import pytest

from tests.validation.validators.support import job_of, report_on, tree_of
from touchstone.validation.judging.verdicts import compute_verdict
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


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    tree = tree_of(tmp_path_factory.mktemp("shop"), {"shop.py": BROKEN, "test_shop.py": TESTS})
    return job_of(tree, "shop.py")


def reports(sandbox: Sandbox, job: Job, *fixes: str, arguments: tuple[str, ...] = PYTEST) -> list[Report]:
    settings = CommandSettings(arguments, readable=READABLE, environment=ENVIRONMENT)
    validator = CommandValidator(sandbox, LIMITS, settings)
    trees = [job.tree.with_file("shop.py", text.encode()) for text in fixes]
    return [report_on(validator, Job(job.problem, tree)) for tree in trees]


@pytest.fixture(scope="module")
def baseline(sandbox: Sandbox, job: Job) -> Report:
    (report,) = reports(sandbox, job, BROKEN)
    return report


@pytest.fixture(scope="module")
def wrong(sandbox: Sandbox, job: Job) -> Report:
    (report,) = reports(sandbox, job, "def total(prices):\n    return 7\n")
    return report


@pytest.mark.parametrize(
    "fix",
    [
        pytest.param("import os\nos._exit(0)\n", id="at import", marks=pytest.mark.nightly),
        pytest.param("import os\n\ndef total(prices):\n    os._exit(0)\n", id="in a test"),
        pytest.param("import atexit, os\natexit.register(os._exit, 0)\n" + BROKEN, id="at exit"),
    ],
)
def test_ending_the_process_with_zero_is_no_pass(sandbox: Sandbox, job: Job, baseline: Report, fix: str) -> None:
    (report,) = reports(sandbox, job, fix)
    assert compute_verdict(baseline, report, job.problem, 1, 2, "plausible").status in ("failed", "no_report")


@pytest.mark.parametrize("success", ["plausible", "clean", "fixed", "strict_block", "strict_module"])
def test_a_run_that_fails_in_other_words_has_fixed_nothing(
    job: Job, baseline: Report, wrong: Report, success: Success
) -> None:
    judged = compute_verdict(baseline, wrong, job.problem, 1, 2, success)
    assert (judged.status, judged.fixed) == ("failed", False)


def test_the_right_fix_passes(sandbox: Sandbox, job: Job, baseline: Report) -> None:
    (report,) = reports(sandbox, job, RIGHT)
    assert compute_verdict(baseline, report, job.problem, 1, 2, "plausible").status == "passed"


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
    statuses = [report.status for report in reports(sandbox, job, BROKEN, RIGHT, leaving, arguments=UNITTEST)]
    assert statuses == ["failed", "passed", "no_report"]
