"""A package that the environment lacks leaves a fix undecided; a wrong import that the fix leaves is its failure."""

from pathlib import Path

import pytest

from tests.validation.attacks.arena import BAD, GOOD, TESTS, outcomes_of
from tests.validation.validators.support import tree_of


@pytest.mark.parametrize("test_command", ["", pytest.param("python -m pytest", marks=pytest.mark.nightly)])
def test_a_project_whose_package_is_not_installed_is_undecided(tmp_path: Path, test_command: str) -> None:
    needs = "import requests_of_nobody\n\n\n"
    tree_of(tmp_path / "clones" / "one", {"solution.py": needs + BAD, "test_solution.py": TESTS})
    row = {"oid": "one", "filename": "solution.py", "test_command": test_command}
    (outcome,) = outcomes_of(tmp_path, row, [needs + GOOD])
    assert outcome["status"] == "validator_unavailable"
    assert "without 'requests_of_nobody'" in outcome["diagnostics"], outcome
