"""Tests as people write them: every right fix passes, every wrong one fails, and nothing is left undecided."""

import textwrap
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Folder
from tests.pipelines.test_retrying import table
from tests.validation.pytest_runner.problem_set import FILES, FIXTURES, PROBLEMS, UNPARSABLE_CLASS
from tests.validation.pytest_runner.support import sandbox_or_skip
from touchstone.config.validation import LimitSettings, PythonProgram, ValidationSettings
from touchstone.evaluation import evaluate
from touchstone.validation.outcomes import outcome_rows
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Targets

Rows = dict[tuple[str, str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The outcome of every fix in the set, by problem, model and iteration."""
    folder = tmp_path_factory.mktemp("problems")
    for problem in PROBLEMS:
        problem.write(folder / "clones")
    settings = ValidationSettings(python=PythonProgram(lint=False), workers=1, limits=LimitSettings(seconds=60))
    attempts = [attempt for problem in PROBLEMS for attempt in problem.attempts]
    targets = Targets(folder / "clones", settings).find([problem.row for problem in PROBLEMS])
    sandbox_or_skip(folder / "probe")
    with ValidationSession(settings, folder / "cache", folder / "scratch") as session:
        rows = outcome_rows(attempts, targets, session)
    return {(row["oid"], row["model"], row["iteration_id"]): row for row in rows}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_right_fixes_pass_and_wrong_ones_fail(problem: Any, rows: Rows) -> None:
    for row in rows.values():
        if row["oid"] == problem.name:
            assert row["passed"] is (row["model"] == "right"), row
            assert row["controlled_tests"] == (row["tests_passed"] if row["passed"] else None), row


@pytest.mark.nightly
def test_the_figures_of_three_ordinary_problems_without_a_reference_fix(tmp_path: Path) -> None:
    """A model that is right three times out of four, and one that is right once out of four."""
    problems = [FIXTURES, FILES, UNPARSABLE_CLASS]
    for problem in problems:
        problem.write(tmp_path / "clones")
    folder = Folder(tmp_path)
    folder.problems(table(tuple(problems[0].row), *(tuple(problem.row.values()) for problem in problems)))
    for model, right in (("strong", 3), ("weak", 1)):
        rows = []
        for problem, place in product(problems, range(4)):
            text = textwrap.dedent((problem.right if place < right else problem.wrong)[0])
            rows.append((problem.name, place, f"{text}\n# attempt {place}\n"))
        folder.fixes(model, table(("oid", "iteration_id", "fixed_file"), *rows))
    settings = {"limits": {"seconds": 60}, "workers": 1}
    results = evaluate(folder.configure(clones_dir="clones", k_values=[1], validation=settings))
    figures = results["pass_at_k"].select("model", "pass_at_k").rows()
    assert dict(figures) == pytest.approx({"strong": 0.75, "weak": 0.25})
