"""A package that the environment lacks leaves a fix undecided; a wrong import that the fix leaves is its failure."""

from pathlib import Path

import pytest

from tests.pipelines.test_retrying import table
from tests.pipelines.test_run import evaluate, failed
from tests.pipelines.test_validation import make_repairs
from touchstone.validation.judging.environment import missing_package
from touchstone.validation.protocol import Diagnostic, Report

FILES = ("shop/prices.py", "tests/test_prices.py")


def failing(*modules: str, others: int = 0) -> Report:
    found = [Diagnostic("error", f"not collected: ModuleNotFoundError: No module named '{name}'") for name in modules]
    return Report("failed", "full", (*found, *[Diagnostic("error", "test failed: test_total")] * others))


@pytest.mark.parametrize("name", ["numpy", "requests", "yaml", "sklearn.tree"])
def test_a_package(name: str) -> None:
    assert missing_package(failing(name), failing(name), None, FILES) == name.partition(".")[0]
    assert missing_package(failing(name), failing(name), Report("passed", "full"), FILES) is None
    assert missing_package(failing(name), failing(name), failing(name), FILES) == name.partition(".")[0]


@pytest.mark.parametrize(
    "name", ["colections", "urllib2", "ConfigParser", "httplib", "urlparse", "price", "shop.total", "test_prices"]
)
def test_a_mistake(name: str) -> None:
    assert missing_package(failing(name), failing(name), None, FILES) is None


def test_a_fix_that_fails_otherwise_too_has_failed() -> None:
    assert missing_package(failing("numpy", others=1), failing("numpy", others=1), None, FILES) is None
    assert missing_package(failing("numpy", others=1), failing("numpy"), None, FILES) == "numpy"


def test_what_only_the_fix_imports_is_its_failure() -> None:
    assert missing_package(failing(others=1), failing("numpy"), None, FILES) is None
    assert missing_package(failing("yaml"), failing("numpy"), None, FILES) is None
    assert missing_package(failing("yaml"), failing(), None, FILES) is None


def test_node() -> None:
    before = Report("no_report", "full", note="Error: Cannot find module 'jest-circus/runner'")
    assert missing_package(before, before, None, ["index.js"]) == "jest-circus"
    own = Report("no_report", "full", note="Error: Cannot find module './totals'")
    assert missing_package(own, own, None, ["index.js"]) is None


@pytest.mark.parametrize("test_command", ["", pytest.param("python -m pytest", marks=pytest.mark.nightly)])
def test_a_project_whose_package_is_not_installed_is_undecided(tmp_path: Path, test_command: str) -> None:
    repairs = make_repairs(tmp_path)
    calc = repairs.root / "clones" / "calc" / "calc.py"
    calc.write_text("import requests_of_nobody\n\n\n" + calc.read_text())
    repairs.problems(
        table(("oid", "filename", "working_directory", "test_command"), ("p", "calc.py", "calc", test_command))
    )
    fix = "import requests_of_nobody\n\n\ndef add(a, b):\n    return a + b\n"
    repairs.fixes("m", table(("oid", "iteration_id", "fixed_code"), ("p", 1, fix)))
    outcome = evaluate(repairs)
    assert outcome.stopped and "without 'requests_of_nobody'" in failed(outcome)["outcomes.undecided_share"]
