"""A package that the environment lacks leaves a fix undecided; a wrong import that the fix leaves is its failure."""

from pathlib import Path

import pytest

from tests.pipelines.test_retrying import table
from tests.pipelines.test_run import evaluate, failed
from tests.pipelines.test_validation import make_repairs


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
