"""Reading tau-bench and tau2-bench: rewards of 1 pass, and pass^k by the rule of each."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable, detect_format, read_adapted

MADE = Path(__file__).parent / "made"
TAU2 = MADE / "tau2-bench" / "trajectories" / "fixer-large_retail_2trials.json"
INDEX = MADE / "tau2-voice" / "results.json"


def figures(table: AdapterTable) -> dict[str, float | None]:
    return {each.name: each.recomputed for each in table.figures}


def trial(task: int, number: int, reward: Any) -> dict[str, Any]:
    return {"task_id": task, "trial": number, "reward": reward, "info": {}, "traj": []}


def read_tau(folder: Path, trials: list[dict[str, Any]]) -> AdapterTable:
    path = folder / "results.json"
    path.write_text(json.dumps(trials))
    assert detect_format(path) == "tau-bench"
    return read_adapted(path)


def test_tasks_that_call_no_tool_have_no_domain(tmp_path: Path) -> None:
    table = read_tau(tmp_path, [trial(0, 0, 1.0)])
    assert table.frame["oid", "suite"].rows() == [("0", None)]


@pytest.mark.parametrize(
    ("reward", "passed"), [(1, "true"), (0.9999995, "true"), (0.999, "false"), (1.5, "false"), (None, None)]
)
def test_a_reward_of_one_passes(tmp_path: Path, reward: float | None, passed: str | None) -> None:
    assert read_tau(tmp_path, [trial(0, 0, reward)]).frame["passed"].to_list() == [passed]


def test_pass_hat_k_of_tau_bench_counts_missing_trials_as_failed(tmp_path: Path) -> None:
    table = read_tau(tmp_path, [trial(0, 0, 1.0), trial(0, 1, 1.0), trial(1, 0, 1.0)])
    assert figures(table) == {"average reward": 1, "pass^1": 0.75, "pass^2": 0.5}


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=6))
def test_pass_hat_k_falls_to_the_tasks_that_always_pass(
    tmp_path_factory: pytest.TempPathFactory, tasks: list[list[bool]]
) -> None:
    trials = [trial(task, number, float(ok)) for task, row in enumerate(tasks) for number, ok in enumerate(row)]
    found = figures(read_tau(tmp_path_factory.getbasetemp(), trials))
    rates = [found[f"pass^{k}"] or 0.0 for k in (1, 2, 3)]
    assert rates == sorted(rates, reverse=True)
    assert rates[2] == pytest.approx(sum(map(all, tasks)) / len(tasks))
    assert found["average reward"] == pytest.approx(rates[0])


@pytest.mark.parametrize("reason", ["infrastructure_error", "context_window_exceeded"])
def test_a_reward_of_a_trial_that_was_stopped_decides_nothing(tmp_path: Path, reason: str) -> None:
    content = json.loads(TAU2.read_text())
    content["simulations"][5]["termination_reason"] = reason
    (tmp_path / "run.json").write_text(json.dumps(content))
    table = read_adapted(tmp_path / "run.json")
    assert table.frame["reward", "passed"].row(5) == ("0.0", None)
    assert figures(table) == {"average reward": pytest.approx(3 / 5), "pass^1": 0.5}


def test_simulations_without_their_tasks(tmp_path: Path) -> None:
    content = json.loads(TAU2.read_text())
    del content["tasks"]
    (tmp_path / "run.json").write_text(json.dumps(content, sort_keys=True))
    assert detect_format(tmp_path / "run.json") == "tau2-bench"
    assert read_adapted(tmp_path / "run.json").frame.equals(read_adapted(TAU2).frame)


def test_tau2_bench_counts_a_trial_without_a_reward_as_failed(tmp_path: Path) -> None:
    content = json.loads(TAU2.read_text())
    content["simulations"] = content["simulations"][:2]
    content["simulations"][1]["reward_info"] = None
    (tmp_path / "run.json").write_text(json.dumps(content))
    table = read_adapted(tmp_path / "run.json")
    assert table.frame["passed"].to_list() == ["true", None]
    assert figures(table) == {"average reward": 1, "pass^1": 0.5}
    assert table.figures[1].note == "counts 1 without a reward as failed; Touchstone leaves them out"


@pytest.mark.parametrize("path", [*INDEX.parent.glob("simulations/*"), TAU2.parents[1] / "submission.json"])
def test_a_part_of_a_run_says_where_its_attempts_are(path: Path) -> None:
    with pytest.raises(InputFileError, match="the results of the run have its attempts"):
        read_adapted(path)
