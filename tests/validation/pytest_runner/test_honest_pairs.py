"""Honest fixes: every right one passes and is controlled, every wrong one fails, as plain pytest says."""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.validation.pytest_runner.honest_pairs import PAIRS, Pair
from tests.validation.pytest_runner.support import run_pytest
from touchstone.validation.judging.known_tests import hold_to_known_tests
from touchstone.validation.protocol import Report
from touchstone.validation.validators.python import PythonValidator


def _run_together(validator: PythonValidator, state: str) -> Report:
    """The report on all pairs as one problem, which takes a few runs instead of hundreds."""
    files = {path: text for number, pair in enumerate(PAIRS) for path, text in pair.as_part(number, state).items()}
    judge_files = tuple(path for path in files if "/solution_" not in path)
    return run_pytest(validator, files, "pair0/solution_0.py", is_fix=state != "before", judge_files=judge_files)


@pytest.fixture(scope="module")
def baseline(validator: PythonValidator) -> Report:
    return _run_together(validator, "before")


def _of_pair(number: int, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(f"pair{number}/")]


def test_every_right_fix_passes_and_is_controlled(validator: PythonValidator, baseline: Report) -> None:
    report = hold_to_known_tests(_run_together(validator, "right"), baseline, None)
    assert [(each.summary, each.detail) for each in report.diagnostics] == []
    assert report.status == "passed" and report.control is not None
    for number, pair in enumerate(PAIRS):
        uncontrolled = {*_of_pair(number, report.tests)} - {*_of_pair(number, report.control)}
        assert len(uncontrolled) == pair.uncontrolled, (pair.name, uncontrolled)


def test_every_wrong_fix_fails(validator: PythonValidator, baseline: Report) -> None:
    report = hold_to_known_tests(_run_together(validator, "wrong"), baseline, None)
    results = {pair.name: [report.tests[name] for name in _of_pair(n, report.tests)] for n, pair in enumerate(PAIRS)}
    assert [name for name, passed in results.items() if all(passed)] == []


@pytest.mark.nightly
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_alone_as_plain_pytest_says(pair: Pair, validator: PythonValidator, tmp_path: Path) -> None:
    """Each pair by itself, from several states of the problem."""
    states = {pair.before, pair.wrong, pair.right, ""}
    baselines = [run_pytest(validator, {"solution.py": code, **pair.files}, is_fix=False) for code in states]
    for fix, status in ((pair.right, "passed"), (pair.wrong, "failed")):
        files = {"solution.py": fix, **pair.files}
        report, plain = run_pytest(validator, files), _plain_pytest(tmp_path / status, files)
        for baseline in baselines:
            found = hold_to_known_tests(report, baseline, None)
            assert (found.status, found.tests) == (status, plain), baseline


def _plain_pytest(folder: Path, files: dict[str, str]) -> dict[str, bool]:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-rA", "-q", "--tb=no", "-o", "anyio_mode=auto", "test_solution.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    lines = re.findall(r"^(PASSED|FAILED) test_solution\.py::(.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    # anyio, which runs coroutines here, says in which loop.
    return {name.removesuffix("[asyncio]"): outcome == "PASSED" for outcome, name in lines}
