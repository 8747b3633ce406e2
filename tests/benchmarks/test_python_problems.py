"""The 164 Python problems of the benchmark: all different, all broken, and all repaired by their references."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from touchstone.config import load_config
from touchstone.config.validation import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.ingest.attempts import read_fixes
from touchstone.ingest.discovery import discover
from touchstone.ingest.problems import read_problems
from touchstone.validation.outcomes import baseline_rows
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Targets

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "python_problems.py"))
PROBLEMS = list(SCRIPT["make_problems"]())


@pytest.fixture
def validation(tmp_path: Path) -> Iterator[ValidationSession]:
    with ValidationSession(ValidationSettings(), tmp_path / "cache", tmp_path / "scratch") as made:
        try:
            assert made.sandbox
        except TouchstoneError as error:
            pytest.skip(f"no sandbox works on this machine: {error}")
        yield made


def test_no_two_of_the_164_problems_are_the_same() -> None:
    assert len(PROBLEMS) == 164
    for part in ("oid", "name", "broken", "reference", "tests"):
        assert len({getattr(problem, part) for problem in PROBLEMS}) == 164, part


def test_every_problem_is_a_module_with_three_to_six_tests() -> None:
    for problem in PROBLEMS:
        for part in (problem.broken, problem.reference, problem.tests):
            compile(part, problem.name, "exec")
            assert "$" not in part, problem.name
        assert 3 <= problem.tests.count("\ndef test_") <= 6, problem.name
        assert problem.broken != problem.reference, problem.name


@pytest.mark.nightly
def test_baselines_fail_and_reference_solutions_pass(tmp_path: Path, validation: ValidationSession) -> None:
    problems = SCRIPT["write_problems"](tmp_path)
    targets = Targets(tmp_path / "clones", validation.settings).find(problem.row for problem in problems)
    rows = baseline_rows(targets, validation)
    assert len(rows) == 164
    wrong = [
        row
        for row in rows
        if (row["baseline_status"], row["fails_as_recorded"], row["reference_status"]) != ("failed", True, "passed")
    ]
    assert wrong == []


def test_every_row_is_accepted(tmp_path: Path) -> None:
    SCRIPT["write_problems"](tmp_path)
    config = load_config(tmp_path / "evaluation_config.json")
    assert list(discover(config).sources) == ["reference"]
    problems = read_problems(tmp_path / "problems.csv", tmp_path / "problems")
    fixes = read_fixes(tmp_path / "reference_fixes.csv", "reference", problems.problems, tmp_path / "fixes")
    assert (problems.rows, fixes.attempts.collect().height) == (164, 164)
    assert problems.quarantine.is_empty() and fixes.quarantine.is_empty()
