"""The gate's budget of looks: what counts as a look, and what it does to verdicts night after night."""

import shutil
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.comparison.test_gate import fixes, gate_of, held, pinned, table  # noqa: F401
from tests.conftest import Folder
from tests.pipelines.test_run import evaluate, failed
from touchstone.comparison.sequential import look_at
from touchstone.storage.snapshots import list_snapshots

FIRST = "of the 60 that the budget covers: worse needs an adjusted p of at most 0.0013"
COLUMNS = ("model", "look", "level", "verdict")


@given(looks=st.integers(1, 400), alpha=st.floats(0.001, 0.5))
def test_all_looks_together_spend_at_most_alpha(looks: int, alpha: float) -> None:
    levels = [look_at(number, looks, alpha).level for number in range(1, 5 * looks + 1)]
    assert fsum(levels) / 2 <= alpha * (1 + 1e-9)
    assert levels == sorted(levels, reverse=True) and levels[-1] > 0 and levels[0] <= alpha


@pytest.mark.services
def test_every_run_since_the_pin_is_a_look_also_one_that_was_stopped(held: Folder) -> None:  # noqa: F811
    held.fixes("m", fixes(24))
    assert f"look 1 {FIRST}" in gate_of(evaluate(held))[2]
    held.fixes("m", fixes(5))
    assert f"look 2 {FIRST}" in failed(evaluate(held))["regressions.holds_against_baseline"]
    held.fixes("m", fixes(23))
    assert f"look 3 {FIRST}" in gate_of(evaluate(held))[2]
    assert "(99.87% for all differences together)" in (held.output / "comparison.md").read_text()
    rows = table(held, "sequential_verdicts")
    assert rows.select("model", "look").rows() == [("m", 1), ("m", 3), ("n", 1), ("n", 3)]
    assert set(rows["level"]) == {look_at(1, 60, 0.05).level} and set(rows["looks"]) == {60}
    baseline, first, _ = list_snapshots(held.output)
    assert rows["snapshot"].to_list() == [first.id, None] * 2 and set(rows["baseline"]) == {baseline.id}
    assert rows.filter(model="m")["difference"].to_list() == pytest.approx([-1 / 30, -2 / 30])


@pytest.mark.nightly
def test_a_second_try_and_removed_snapshots_change_no_number(held: Folder) -> None:  # noqa: F811
    held.configure(comparison={"on_worse": "fail", "looks": 2}, k_values=[1])
    for number, passing in enumerate((24, 23), 1):
        held.fixes("m", fixes(passing))
        assert f"look {number} of the 2 " in gate_of(evaluate(held))[2]
    for snapshot in list_snapshots(held.output)[1:]:
        shutil.rmtree(snapshot.folder)
    held.fixes("m", fixes(5))
    for _ in range(2):
        (message,) = failed(evaluate(held)).values()
        assert "look 3, after the 2 that the budget covers: worse needs an adjusted p of at most 0.008" in message
        assert "pin a new baseline for a new budget" in message
    assert evaluate(held, accept=True).exit_code == 0
    assert table(held, "sequential_verdicts").select(COLUMNS).row(0) == ("m", 3, 0.008, "worse")
    held.fixes("m", fixes(25))
    assert "look 4, after the 2" in gate_of(evaluate(held))[2], "stopped, then accepted: one look"
    assert table(held, "sequential_verdicts").filter(model="m")["look"].to_list() == [3, 4]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("settings", "words"), [({"baseline": "latest"}, "'latest' moves with every run"), ({"looks": 0}, "")]
)
def test_without_a_budget_the_gate_says_so(held: Folder, settings: dict[str, object], words: str) -> None:  # noqa: F811
    held.configure(comparison=settings, k_values=[1])
    held.fixes("m", fixes(24))
    message = gate_of(evaluate(held))[2]
    assert "without a budget of looks: worse needs an adjusted p of at most 0.05 in each run by itself" in message
    assert words in message and "false alarms add up" in message
    assert table(held, "sequential_verdicts").is_empty()
    assert set(table(held, "baseline_verdicts")["level"]) == {0.05}
