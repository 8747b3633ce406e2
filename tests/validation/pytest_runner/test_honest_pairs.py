"""Honest fixes: every right one passes and is controlled, every wrong one fails, as plain pytest says."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.validation.pytest_runner.honest_pairs import PAIRS, Pair
from tests.validation.pytest_runner.support import judged, run_pytest
from touchstone.validation.judging.known_tests import hold_to_known_tests
from touchstone.validation.protocol import Report
from touchstone.validation.validators.python import PythonValidator


def _one_problem(validator: PythonValidator, fixes: str) -> Report:
    """All pairs as one problem, each in a folder of its own."""
    reports = []
    for name in ("before", fixes):
        files: dict[str, str] = {}
        for number, pair in enumerate(PAIRS):
            code = getattr(pair, name) or pair.wrong
            files |= {pair.place("solution.py", number): pair.numbered(code, number), **pair.problem(number)}
        judge_files = tuple(path for path in files if "/solution_" not in path)
        reports.append(
            run_pytest(validator, files, "pair0/solution_0.py", is_fix=name != "before", judge_files=judge_files)
        )
    return hold_to_known_tests(reports[1], reports[0], None)


def _of_pair(found: Any, number: int) -> list[str]:
    return [name for name in found if name.startswith(f"pair{number}/")]


def test_every_right_fix_passes_and_is_controlled(validator: PythonValidator) -> None:
    report = _one_problem(validator, "right")
    assert [(each.summary, each.detail) for each in report.diagnostics] == []
    assert report.status == "passed" and report.control is not None
    missing = {
        pair.name: len(_of_pair(report.tests, number)) - len(_of_pair(report.control, number))
        for number, pair in enumerate(PAIRS)
    }
    assert missing == {pair.name: pair.uncontrolled for pair in PAIRS}


def test_every_wrong_fix_fails(validator: PythonValidator) -> None:
    report = _one_problem(validator, "wrong")
    passed = [
        pair.name
        for number, pair in enumerate(PAIRS)
        if all(report.tests[name] for name in _of_pair(report.tests, number))
    ]
    assert passed == []


@pytest.mark.nightly
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_alone_as_plain_pytest_says(pair: Pair, validator: PythonValidator, tmp_path: Path) -> None:
    """Each pair by itself, from every state of the problem."""
    for code, status in ((pair.right, "passed"), (pair.wrong, "failed")):
        for before in {pair.wrong, pair.before or pair.wrong, pair.right, ""}:
            report = judged(validator, before, code, pair.problem())
            assert report.status == status, (before, report)
        plain = _plain_pytest(tmp_path / status, {"solution.py": pair.numbered(code, None), **pair.problem()})
        assert {name: report.tests[name] for name in plain} == plain
        assert plain.keys() == report.tests.keys()


def _plain_pytest(folder: Path, files: dict[str, str]) -> dict[str, bool]:
    for name, text in files.items():
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-rA", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "anyio"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    lines = re.findall(r"^(PASSED|FAILED) test_solution\.py::(.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return {name: outcome == "PASSED" for outcome, name in lines}
