"""The gates of validation: what cannot be trusted stops the scores."""

from pathlib import Path

import pytest

from tests.conftest import Folder
from tests.pipelines.test_retrying import table
from tests.pipelines.test_run import evaluate, failed
from tests.pipelines.test_validation import COLUMNS, GOOD, TESTS, WRONG, make_repairs, outcomes


@pytest.fixture
def repairs(tmp_path: Path) -> Folder:
    return make_repairs(tmp_path)


def stopped(folder: Folder, gate: str) -> str:
    outcome = evaluate(folder)
    assert outcome.stopped and outcome.exit_code == 1 and not outcome.failures
    assert not (folder.output / "summary_pass_at_k.csv").exists()
    return failed(outcome)[gate]


def test_a_problem_without_its_error_stops_the_scores(repairs: Folder) -> None:
    (repairs.root / "clones" / "calc" / "calc.py").write_text(GOOD)
    message = stopped(repairs, "baselines.baselines_fail_as_recorded")
    assert "1 of 1 problem: validation does not show the recorded error (for example p" in message


@pytest.mark.nightly
def test_a_reference_fix_that_fails_stops_the_scores(repairs: Folder) -> None:
    repairs.problems(table(COLUMNS, ("p", "calc.py", "calc", WRONG)))
    assert "rejects the reference fix (for example p: " in stopped(repairs, "baselines.reference_fixes_pass")


@pytest.mark.nightly
def test_too_many_undecided_outcomes_stop_the_scores(repairs: Folder) -> None:
    repairs.problems(table(COLUMNS, ("p", "calc.py", "calc", GOOD), ("q", "gone.py", "calc", "")))
    lines = [("p", 1, GOOD), ("q", 1, GOOD)]
    repairs.fixes("m", table(("oid", "iteration_id", "fixed_code"), *lines))
    message = stopped(repairs, "outcomes.undecided_share")
    assert "1 of 2 fixes given to validators was not decided (validator_unavailable 1:" in message
    assert "gone.py" in message


@pytest.mark.nightly
def test_figures_of_two_fidelities_stop_the_scores(repairs: Folder) -> None:
    lines = [("p", 1, GOOD, ""), ("p", 2, GOOD, "true")]
    repairs.fixes("m", table(("oid", "iteration_id", "fixed_code", "passed"), *lines))
    message = stopped(repairs, "outcomes.one_fidelity")
    assert "m T0: full, recorded" in message


@pytest.mark.nightly
def test_untrusted_problems_may_be_allowed_and_are_then_left_out(repairs: Folder) -> None:
    good = repairs.root / "clones" / "good"
    good.mkdir()
    (good / "calc.py").write_text(GOOD)
    (good / "test_calc.py").write_text(TESTS)
    repairs.problems(table(COLUMNS, ("p", "calc.py", "calc", GOOD), ("q", "calc.py", "good", "")))
    repairs.fixes("m", table(("oid", "iteration_id", "fixed_code"), ("p", 1, GOOD), ("q", 1, GOOD)))
    limits = {"max_untrusted_share": 0.5, "max_undecided_share": 0.5}
    repairs.configure(clones_dir="clones", k_values=[1], checks=limits)
    assert evaluate(repairs).exit_code == 0
    assert outcomes(repairs)["passed"].to_list() == [True, None]
