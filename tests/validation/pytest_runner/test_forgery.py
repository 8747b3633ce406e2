"""Wrong fixes that try to pass under pytest, where they share a process with the tests. Each must not pass."""

from pathlib import Path

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import NOWHERE
from tests.validation.pytest_runner.support import run_pytest
from tests.validation.sections import sections
from touchstone.validation.judging.known_tests import hold_to_known_tests
from touchstone.validation.protocol import Problem, Report
from touchstone.validation.sandbox.runner import JobAnswer
from touchstone.validation.validators.pytest_report import build_report, control_results
from touchstone.validation.validators.python import PythonValidator

GOOD = "def add(a, b):\n    return a + b\n"
BAD = "def add(a, b):\n    return a - b\n"
TESTS = {
    "test_first.py": "from solution import add\n\n\ndef test_small():\n    assert add(2, 3) == 5\n",
    "test_second.py": "from solution import add\n\n\ndef test_negative(tmp_path):\n    assert add(10, -4) == 6\n",
}


def validate(validator: PythonValidator, code: str) -> Report:
    return run_pytest(validator, {"solution.py": code, **TESTS})


@pytest.fixture(scope="module")
def baseline(validator: PythonValidator) -> Report:
    report = validate(validator, BAD)
    assert report.tests == {"test_first.py::test_small": False, "test_second.py::test_negative": False}
    return report


ATTACKS = sections(Path(__file__).with_suffix(".txt"))


# Siblings of others: they skip in another way. What leaves the process is in `tests/validation/attacks`.
NIGHTLY = ("unittest skip in a call", "xfail in a call")


@pytest.mark.parametrize("name", nightly_but(ATTACKS.keys() - set(NIGHTLY), ATTACKS))
def test_a_wrong_fix_does_not_pass(name: str, validator: PythonValidator, baseline: Report) -> None:
    report = hold_to_known_tests(validate(validator, ATTACKS[name]), baseline, None)
    assert report.status != "passed"
    assert report.decided, "what a fix provokes is never undecided"


def test_the_next_job_is_judged_as_ever(validator: PythonValidator) -> None:
    good = validate(validator, GOOD)
    assert (good.status, good.tests) == (
        "passed",
        {"test_first.py::test_small": True, "test_second.py::test_negative": True},
    )


def test_a_skip_is_the_fix_s_wherever_it_seems_to_be_raised(validator: PythonValidator) -> None:
    """Also if the unmodified problem cannot be collected, so that nothing is known about its tests."""
    code = """
        import pytest, sys
        def add(a, b):
            if a == 2:
                return 5
            exec(compile("raise skip", sys._getframe(1).f_code.co_filename, "exec"), {"skip": pytest.skip.Exception()})
        """
    report = validate(validator, code)
    assert (report.status, report.tests["test_second.py::test_negative"]) == ("failed", False)


CLASS_TESTS = (
    "import solution\n\n\nclass TestAll:\n    for name in solution.NAMES:\n        vars()[name] = lambda self: None\n"
)


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("['test_a', 'test_b', 'test_c']", "unknown test: TestAll::test_c"),
        ("['test_a']", "test did not report: TestAll::test_b"),
        ("['test_b', 'test_a']", None),
    ],
)
def test_ids_are_those_of_the_unmodified_problem(validator: PythonValidator, names: str, why: str | None) -> None:
    def named(code: str) -> Report:
        return run_pytest(validator, {"solution.py": f"NAMES = {code}\n", "test_it.py": CLASS_TESTS})

    report = hold_to_known_tests(named(names), named("['test_a', 'test_b']"), None)
    found = [each.summary for each in report.diagnostics]
    assert found == ([] if why is None else [why])
    assert report.status == ("passed" if why is None else "failed")


@pytest.mark.parametrize(
    "line",
    ['{"broken": "a"}', '{"test": 1, "outcome": []}', '{"done": {}}', '{"collected": 5}', "[]"],
)
def test_lines_that_the_runner_did_not_write_are_no_result(line: str) -> None:
    answer = JobAnswer(f"token{line}\n".encode(), exit_code=0)
    found = build_report(Problem("p", "solution.py", NOWHERE), ["test_it.py"], answer, "token", 10.0)
    assert found.status == "no_report"


def test_a_control_that_the_runner_did_not_write_accuses_the_fix() -> None:
    answer = JobAnswer(b'token{"control": "test_it", "ended": true}\n', exit_code=0)
    passed, problem = Report("passed", "full", tests={"test_it": True}), Problem("p", "solution.py", NOWHERE)
    assert control_results(problem, ["test_it.py"], answer, "token", passed)["test_it"].passed
