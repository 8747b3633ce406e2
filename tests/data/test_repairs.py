"""The committed repair benchmarks: made by their script, broken as they claim, and repaired by their references."""

import csv
import json
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from touchstone.config import load_config
from touchstone.ingest.attempts import read_fixes
from touchstone.ingest.discovery import discover
from touchstone.ingest.problems import read_problems
from touchstone.validation.hcl import check_module
from touchstone.validation.protocol import Diagnostic

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
SCRIPT: dict[str, Any] = runpy.run_path(str(SAMPLE / "make_repairs.py"))
SUITES = {suite.name: suite for suite in SCRIPT["SUITES"]}
MODELS = [model.name for model in SCRIPT["MODELS"]]
ATTEMPTS = {"terraform": 4, "python": 5}

# Runs the tests of one file with a third of a second of CPU time for each, and prints which of them passed.
RUNNER = """
import importlib, json, signal, sys

def give_up(*_):
    raise TimeoutError

sys.path.insert(0, "")
signal.signal(signal.SIGPROF, give_up)
passed = {}
for name, test in list(vars(importlib.import_module(sys.argv[1])).items()):
    if name.startswith("test_"):
        signal.setitimer(signal.ITIMER_PROF, 0.3)
        try:
            test()
            passed[name] = True
        except Exception:
            passed[name] = False
        signal.setitimer(signal.ITIMER_PROF, 0)
print(json.dumps(passed))
"""


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


PROBLEMS = {name: rows_of(SAMPLE / name / "problems.csv") for name in SUITES}
# Neither what never ends nor what is hostile: both need a sandbox.
PYTHON_ANSWERS = [
    pytest.param(problem, name, id=f"{problem.directory}/{name}", marks=[pytest.mark.nightly] if place > 1 else [])
    for place, problem in enumerate(SUITES["python"].problems)
    for name in sorted(path.stem for path in (SAMPLE / "python" / "fixes" / problem.slug).iterdir())
    if name.startswith(("reference", "good-", "bad-"))
]


def each(*suites: str) -> pytest.MarkDecorator:
    """The test for each problem of these suites."""
    rows = [row for suite in suites for row in PROBLEMS[suite]]
    return pytest.mark.parametrize("problem", rows, ids=[row["working_directory"] for row in rows])


def broken_file(problem: dict[str, str]) -> Path:
    return SAMPLE / problem["suite"] / "clones" / problem["working_directory"] / problem["filename"]


def outcomes(folder: Path, directory: str, filename: str, content: str) -> dict[str, bool]:
    """Which tests pass with this content in place of the file; none where its import already fails."""
    tests = f"test_{filename}"
    (folder / filename).write_text(content, encoding="utf-8")
    (folder / tests).write_bytes((SAMPLE / "python" / "clones" / directory / tests).read_bytes())
    command = [sys.executable, "-B", "-c", RUNNER, Path(tests).stem]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    return dict(json.loads(done.stdout)) if done.returncode == 0 else {}


def complaints(problem: dict[str, str], content: str) -> tuple[Diagnostic, ...]:
    """What is wrong with a module that has this content in place of its broken file."""
    files = {path.name: path.read_bytes() for path in broken_file(problem).parent.glob("*.tf")}
    return check_module({**files, problem["filename"]: content.encode()}, problem["resource_schema"]).diagnostics


def test_the_script_writes_the_committed_bytes(tmp_path: Path) -> None:
    written = SCRIPT["write_repairs"](tmp_path)
    relative = sorted(path.relative_to(tmp_path) for path in written)
    assert relative == sorted(path.relative_to(SAMPLE) for name in SUITES for path in (SAMPLE / name).glob("*.csv"))
    for path in relative:
        assert (tmp_path / path).read_bytes() == (SAMPLE / path).read_bytes(), f"{path}: run `make sample`"


@pytest.mark.parametrize("suite", SUITES)
def test_every_row_is_accepted(suite: str, tmp_path: Path) -> None:
    config = load_config(SAMPLE / suite / "evaluation_config.json")
    found = discover(config)
    assert list(found.sources) == MODELS
    assert found.refused == {}
    assert config.clones_dir == SAMPLE / suite / "clones"
    assert config.output_dir == SAMPLE.parent / "output" / suite
    assert max(config.k_values) <= ATTEMPTS[suite]
    assert set(config.scoring.prices) == set(MODELS)

    problems = read_problems(SAMPLE / suite / "problems.csv", tmp_path / "problems")
    assert problems.rows == len(SUITES[suite].problems)
    assert problems.quarantine.is_empty()
    for model in MODELS:
        fixes = read_fixes(SAMPLE / suite / f"{model}_fixes.csv", model, problems.problems, tmp_path / model)
        assert fixes.quarantine.is_empty()
        attempts = fixes.attempts.collect()
        assert Counter(attempts["oid"].value_counts()["count"]) == {ATTEMPTS[suite]: problems.rows}
        assert attempts["passed"].null_count() == attempts.height, "the outcome is for Touchstone to find"


@each("terraform", "python")
def test_a_problem_is_a_file_that_its_reference_changes(problem: dict[str, str]) -> None:
    broken = broken_file(problem).read_text(encoding="utf-8")
    assert problem["reference_fix"] != broken
    assert problem["working_directory"].startswith(f"{problem['project_name']}/")
    if problem["line_start"]:
        first, last = int(problem["line_start"]), int(problem["line_end"])
        lines, repaired = broken.splitlines(), problem["reference_fix"].splitlines()
        assert 1 <= first <= last <= len(lines)
        assert repaired[: first - 1] == lines[: first - 1]
        assert last == len(lines) or repaired[last - len(lines) :] == lines[last:]


@each("python")
def test_a_broken_function_fails_some_of_its_tests(problem: dict[str, str], tmp_path: Path) -> None:
    broken = broken_file(problem)
    assert (broken.parent / problem["tests"]).is_file()
    passed = outcomes(tmp_path, problem["working_directory"], problem["filename"], broken.read_text(encoding="utf-8"))
    assert 3 <= len(passed) <= 6
    assert set(passed.values()) == {True, False}


@pytest.mark.parametrize(("problem", "name"), PYTHON_ANSWERS)
def test_an_answer_in_python_is_worth_what_its_name_says(problem: Any, name: str, tmp_path: Path) -> None:
    suite = SUITES["python"]
    content = SCRIPT["whole_file"](suite, problem, SCRIPT["fix_text"](suite, problem, name))
    passed = outcomes(tmp_path, problem.directory, problem.filename, content)
    assert (bool(passed) and all(passed.values())) == SCRIPT["should_pass"](name), passed


@each("terraform")
def test_a_broken_module_has_the_one_error_that_is_named(problem: dict[str, str]) -> None:
    (found,) = complaints(problem, broken_file(problem).read_text(encoding="utf-8"))
    assert (found.severity, found.summary, found.file) == ("error", problem["summary"], problem["filename"])
    assert found.line is not None
    assert int(problem["line_start"]) <= found.line <= int(problem["line_end"])
    assert complaints(problem, problem["reference_fix"]) == ()


@each("terraform")
def test_answers_in_terraform_are_worth_what_their_names_say(problem: dict[str, str]) -> None:
    suite = SUITES["terraform"]
    own = next(own for own in suite.problems if own.directory == problem["working_directory"])
    for path in (SAMPLE / "terraform" / "fixes" / own.slug).iterdir():
        content = SCRIPT["whole_file"](suite, own, path.read_text(encoding="utf-8"))
        assert (complaints(problem, content) == ()) == SCRIPT["should_pass"](path.stem), path.name
