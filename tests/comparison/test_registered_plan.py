"""Registered plans: what a plan fixes, and whether a run or a comparison departs from it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.test_plan import three_models
from tests.conftest import Command, Folder
from tests.storage.test_model_rows import made
from touchstone.comparison.compare import CompareOptions, compare
from touchstone.comparison.families import ComparisonSettings
from touchstone.comparison.registered_plan import compare_with_plan, plan_sentence, problems_digest
from touchstone.comparison.report import FORMATS, format_report
from touchstone.config import RegisteredPlan
from touchstone.tables.checks import CHECKS, CheckResult

__all__ = ["three_models"]
PLAN: dict[str, Any] = {"metric": "pass@k", "k": 1, "margin": 0.05, "alpha": 0.05, "power": 0.8, "pairs": 1}
DONE: tuple[Any, ...] = (ComparisonSettings(), 1, ["b", "a"], [2, 2], ["n", "m"])


def sentence(**fixed: object) -> str:
    return plan_sentence(compare_with_plan(RegisteredPlan.model_validate(PLAN | fixed), *DONE))


def test_what_a_plan_leaves_open_is_no_departure() -> None:
    assert sentence() == "as planned"


def test_what_is_done_as_planned_is_no_departure() -> None:
    digest = problems_digest(["a", "b"])
    assert sentence(problems=2, problems_digest=digest, attempts_per_problem=2, models=("m", "n")) == "as planned"


def test_every_departure_is_named() -> None:
    other = problems_digest(["a", "c"])
    assert sentence(margin=0.03, pairs=3, problems_digest=other, attempts_per_problem=5, models=("m",)) == (
        f"not as planned: margin: planned 0.03, used 0.05; pairs: planned 3, used 1; problems digest: planned "
        f"{other[:12]}, used {problems_digest('ab')[:12]}; attempts per problem: planned 5, used 2; "
        "models: planned m, used m, n"
    )


@given(st.sets(st.text(max_size=3)), st.sets(st.text(max_size=3)))
def test_a_digest_tells_sets_of_problems_apart(a: set[str], b: set[str]) -> None:
    plain = {each for each in a | b if "\n" not in each and each}
    assert (problems_digest(a & plain) == problems_digest(b & plain)) == (a & plain == b & plain)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not valid JSON"),
        ("[]", "the plan must be an object"),
        ('{"metric": "pass@k"}', "not a plan: k: Field required; write one with `touchstone plan"),
        (json.dumps(PLAN | {"margin": 2}), "not a plan: margin: Input should be less than or equal to 1"),
        (json.dumps(PLAN | {"k": 5}), "not a plan: k: Input should be 1"),
        (json.dumps(PLAN | {"weather": 1}), "not a plan: weather: Extra inputs are not permitted"),
        (json.dumps(PLAN | {"problems_digest": "x"}), "not a plan: problems_digest: String should match"),
    ],
)
def test_a_malformed_plan_is_refused_in_one_line(
    tmp_path: Path, finished: Folder, touchstone: Command, content: str, message: str
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(content)
    done = touchstone("compare", finished.output, finished.output, "--plan", plan)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
    assert touchstone("run", "--config", finished.config, "--plan", plan).returncode == 2


def test_a_plan_from_data_is_kept_by_the_comparison_that_it_is_about(
    tmp_path: Path, touchstone: Command, three_models: Path
) -> None:
    plan = tmp_path / "plan.json"
    sides = ("--model", "atlas-large", "--against", "cedar-coder", "--tier", "T0")
    asked = ("plan", "--detect", 0.1, "--data", three_models, *sides, "--problems", 40, "--save-to", plan)
    done = touchstone(*asked)
    assert done.returncode == 0 and f"registered: hold a run or a comparison to it with --plan {plan}" in done.stdout
    fixed = json.loads(plan.read_text())
    assert (fixed["margin"], fixed["problems"], fixed["models"]) == (0.1, 40, ["atlas-large", "cedar-coder"])
    both = [str(three_models)] * 2
    seen = touchstone("compare", *both, "--plan", plan, "--model", "atlas-large", "--tier", "T0").stdout
    assert "not as planned: " in seen and "models: planned atlas-large, cedar-coder, used atlas-large" in seen
    assert "problems digest" not in seen and "margin" not in seen


def test_a_comparison_says_that_it_is_as_planned(tmp_path: Path, finished: Folder, touchstone: Command) -> None:
    fixed, plan = PLAN | {"margin": 0.03, "problems": 2, "attempts_per_problem": 2}, tmp_path / "plan.json"
    plan.write_text(json.dumps(fixed))
    shown = touchstone("compare", finished.output, finished.output, "--plan", plan).stdout
    options, both = CompareOptions(plan=RegisteredPlan.model_validate(fixed)), [str(finished.output)] * 2
    report = compare(*both, options, ComparisonSettings(relevant=0.03)).report
    for text in (shown, *(format_report(report, format) for format in FORMATS)):
        assert "as planned" in text and "not as planned" not in text


def test_a_run_is_held_to_its_plan(evaluated: Folder) -> None:
    plan = evaluated.root / "plan.json"
    plan.write_text(json.dumps(PLAN | {"pairs": 1, "problems": 3}))
    evaluated.configure(comparison={"plan": "plan.json"}, publish={"warehouse": False, "report": False})
    departures = "not as planned: pairs: planned 1, used 0; problems: planned 3, used 2"
    found = checked_plan(evaluated)
    assert (found.passed, found.error, found.message) == (False, False, departures)
    evaluated.fixes("n", "oid,iteration_id,plausible_fix\na,1,true\na,2,false\nb,1,true\nb,2,true\n")
    plan.write_text(json.dumps(PLAN | {"problems": 2, "attempts_per_problem": 2, "models": ["m", "n"]}))
    assert checked_plan(evaluated).message == "as planned"


def checked_plan(folder: Folder) -> CheckResult:
    """What the check of the plan says of the files as they are now."""
    [check] = [check for check in CHECKS if check.name == "as_planned"]
    return made(folder, check.table, *check.reads).check(check)


@pytest.mark.services
def test_the_command_and_the_report_say_it(evaluated: Folder, touchstone: Command) -> None:
    plan = evaluated.root / "plan.json"
    plan.write_text(json.dumps(PLAN | {"problems": 3}))
    seen = touchstone("run", "--config", evaluated.config, "--plan", plan)
    assert seen.returncode == 0
    assert "check warning registered_plan.as_planned: not as planned: pairs: planned 1, used 0" in seen.stdout
    written = touchstone("report", "--data", evaluated.output, "--format", "markdown").stdout
    assert "This is not as planned: pairs: planned 1, used 0; problems: planned 3, used 2." in written
