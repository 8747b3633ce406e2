"""The end of a run: one sentence (who is best, how sure that is, what failed) and how to read the report."""

from pathlib import Path

import pytest

from tests.conftest import Command, Folder
from tests.publish.report.results import figure, pair, reported
from touchstone.checks import CheckOutcome
from touchstone.cli.run_tables import conclusion
from touchstone.publish.result_tables import tiers


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ({"x": 0.5}, "x is the only model: pass@1 0.500 (95% CI 0.400 to 0.600, 40 problems)"),
        ({"x": None}, "No model has a pass@1: no problem has 1 decided attempt"),
        (
            {"x": 0.8, "y": 0.5},
            "x is best: pass@1 0.800 (95% CI 0.700 to 0.900, 40 problems); "
            "it is better than y (pass@1 paired by problem)",
        ),
    ],
)
def test_the_sentence_of_the_report_what_was_refused_and_what_failed(
    tmp_path: Path, rates: dict[str, float | None], sentence: str
) -> None:
    figures = [figure(model, rate) for model, rate in rates.items()]
    pairs = [pair("y", "x", "better", pairs=1)]
    run = reported(tmp_path, pass_at_k=figures, model_comparison=pairs, quarantine=[{"reason": "r"}] * 2)
    assert conclusion(run, []) == f"{sentence}; 2 rows were refused"
    checks = [CheckOutcome("a.good", True, True, ""), CheckOutcome("b.bad", False, True, "")]
    assert conclusion(run, checks).endswith("; 2 rows were refused; 1 of 2 checks passed (failed: b.bad)")


def test_what_says_nothing_is_not_shown(touchstone: Command, folder: Folder) -> None:
    """Recorded outcomes only: no grade, no cost, one suite, and folders beside the files."""
    (folder.root / "fixes" / "clones").mkdir()
    shown = touchstone("run", "--config", folder.config).stdout
    for words in ("tiers:", "suites:", "not read", "parts", "default", "0 of 0"):
        assert words not in shown


def test_a_run_that_fails_at_once_counts_no_checks(touchstone: Command, folder: Folder) -> None:
    folder.problems("x,y\n1,2\n")
    done = touchstone("run", "--config", folder.config)
    assert done.returncode and "checks" not in done.stdout + done.stderr


def test_columns_without_figures_are_left_out(tmp_path: Path) -> None:
    row = {"model": "m", "tier": "T0", "attempts": 4, "pass_rate": 0.5, "cost_of_pass": 0.25}
    shown = tiers(reported(tmp_path / "one", tiers=[row], cross_tier=[]))
    assert [column.header for column in shown.columns] == ["model", "tier", "passed attempts", "cost of pass"]
    two = [row | {"tier": tier, "composite_median": 0.5} for tier in ("T0", "T1")]
    shown = tiers(reported(tmp_path / "two", tiers=two, cross_tier=[]))
    assert any("uplift: change of the composite from T0" in note for note in shown.notes)
