"""Tests as people write them, judged in a whole session: right fixes pass, wrong ones fail, none is left undecided."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Folder
from tests.pipelines.test_retrying import table
from tests.validation.pytest_runner.honest_pairs import PAIRS, Pair
from tests.validation.pytest_runner.support import sandbox_or_skip
from tests.validation.validators.support import tree_of
from touchstone.config.validation import LimitSettings, PythonProgram, ValidationSettings
from touchstone.evaluation import evaluate
from touchstone.validation.outcomes import outcome_rows
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Targets

# Plain pytest refuses its configuration.
REFUSED = Pair(
    "skips, expected failures and coroutines",
    right="async def wait(minutes):\n    return minutes * 60\n",
    wrong="async def wait(minutes):\n    return minutes\n",
    before="async def wait(minutes):\n    return 0\n",
    files={
        "pytest.ini": "[pytest]\nmarkers =\n    slow: takes long\naddopts = -p surely_not_installed -x --tb=short\n",
        "test_solution.py": """
import sys
import pytest
from solution import wait

@pytest.mark.slow
@pytest.mark.asyncio
async def test_wait():
    assert await wait(3) == 180

async def test_zero():
    assert await wait(0) == 0

@pytest.mark.skipif(sys.platform != "win32", reason="needs Windows")
def test_elsewhere():
    assert False

@pytest.mark.xfail(reason="not written yet")
def test_later():
    assert False
""",
    },
    uncontrolled=0,
)
PLAIN = ["a class that does not parse yet", "fixtures that need a configuration", "files, output and patches"]
NAMES = [*PLAIN, REFUSED.name]
PROBLEMS = {pair.name: pair for pair in [*PAIRS, REFUSED] if pair.name in NAMES}
SKIPPING = "import pytest\n\nasync def wait(minutes):\n    pytest.skip('not today')\n"
Rows = dict[tuple[str, str, str], dict[str, Any]]


def write_problems(clones: Path, names: list[str]) -> list[dict[str, str]]:
    """Write the unmodified problems below a folder; their rows of the problems file."""
    for name in names:
        tree_of(clones / name, {**PROBLEMS[name].files, "solution.py": PROBLEMS[name].before})
    return [{"oid": name, "filename": "solution.py", "working_directory": name} for name in names]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The outcome of every fix in the set, by problem, model and iteration."""
    folder = tmp_path_factory.mktemp("problems")
    problems = write_problems(folder / "clones", NAMES)
    settings = ValidationSettings(python=PythonProgram(lint=False), workers=1, limits=LimitSettings(seconds=60))
    fixes = [(name, model, getattr(PROBLEMS[name], model)) for name in NAMES for model in ("right", "wrong")]
    attempts = [
        {"model": model, "tier": "T0", "oid": name, "iteration_id": str(place), "fixed_file": text}
        for place, (name, model, text) in enumerate([*fixes, (REFUSED.name, "wrong", SKIPPING)])
    ]
    targets = Targets(folder / "clones", settings).find(problems)
    sandbox_or_skip(folder / "probe")
    with ValidationSession(settings, folder / "cache", folder / "scratch") as session:
        rows = outcome_rows(attempts, targets, session)
    return {(row["oid"], row["model"], row["iteration_id"]): row for row in rows}


@pytest.mark.services
@pytest.mark.parametrize("name", NAMES)
def test_right_fixes_pass_and_wrong_ones_fail(name: str, rows: Rows) -> None:
    found = [row for row in rows.values() if row["oid"] == name]
    assert {row["model"] for row in found} == {"right", "wrong"}
    for row in found:
        assert row["passed"] is (row["model"] == "right"), row
        assert row["controlled_tests"] == (row["tests_passed"] if row["passed"] else None), row


@pytest.mark.nightly
def test_the_figures_of_three_ordinary_problems_without_a_reference_fix(tmp_path: Path) -> None:
    """A model that is right three times out of four, and one that is right once out of four."""
    folder = Folder(tmp_path)
    problems = write_problems(tmp_path / "clones", PLAIN)
    folder.problems(table(tuple(problems[0]), *(tuple(row.values()) for row in problems)))
    for model, right in (("strong", 3), ("weak", 1)):
        rows = []
        for name, place in product(PLAIN, range(4)):
            text = PROBLEMS[name].right if place < right else PROBLEMS[name].wrong
            rows.append((name, place, f"{text}\n# attempt {place}\n"))
        folder.fixes(model, table(("oid", "iteration_id", "fixed_file"), *rows))
    settings = {"limits": {"seconds": 60}, "workers": 1}
    results = evaluate(folder.configure(clones_dir="clones", k_values=[1], validation=settings))
    figures = results["pass_at_k"].select("model", "pass_at_k").rows()
    assert dict(figures) == pytest.approx({"strong": 0.75, "weak": 0.25})
