"""Reading trajectories of SWE-agent and mini-swe-agent: patches without verdicts."""

import json
from pathlib import Path
from typing import Any

import pytest

from touchstone.ingest.adapters import detect_format, read_adapted


def trajectory(exit_status: str | None = "submitted", submission: str | None = "diff\n") -> dict[str, Any]:
    stats = {"instance_cost": 0.75, "tokens_sent": 120_000, "tokens_received": 900, "api_calls": 14}
    return {
        "trajectory": [{"action": "ls", "observation": "a.py", "thought": "look"}],
        "history": [{"role": "system", "content": "You are"}],
        "info": {"exit_status": exit_status, "submission": submission, "model_stats": stats},
        "replay_config": json.dumps({"agent": {"model": {"name": "acme/fixer", "temperature": 0.0}}}),
        "environment": "swe_main",
    }


MINI = {
    "info": {
        "exit_status": "Submitted",
        "submission": "diff\n",
        "model_stats": {"instance_cost": 0.1, "api_calls": 3},
        "config": {"model": {"model_name": "acme/mini"}},
    },
    "messages": [{"role": "system", "content": "You are"}],
    "trajectory_format": "mini-swe-agent-1",
}


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def test_a_run_of_swe_agent(tmp_path: Path) -> None:
    run = tmp_path / "my-run"
    write(run / "acme__tool-1" / "acme__tool-1.traj", trajectory())
    write(run / "acme__tool-2" / "acme__tool-2.traj", trajectory("exit_cost", None))
    (run / "acme__tool-3").mkdir()
    assert detect_format(run) == "swe-agent"
    table = read_adapted(run)
    columns = ["oid", "llm_name", "iteration_id", "passed", "classification", "exit_status", "model_patch"]
    assert table.frame.select(columns).rows() == [
        ("acme__tool-1", "acme/fixer", "1", None, None, "submitted", "diff\n"),
        ("acme__tool-2", "acme/fixer", "1", None, None, "exit_cost", None),
    ]
    usage = table.frame.select("cost_usd", "input_tokens", "output_tokens", "api_calls").row(0)
    assert usage == ("0.75", "120000", "900", "14")
    assert [file.name for file in table.files] == ["acme__tool-1.traj", "acme__tool-2.traj"]


def test_one_run_report_beside_the_trajectories_judges_them(tmp_path: Path) -> None:
    """As mini-swe-agent's users have it: patches, trajectories and the report of their evaluation in one folder."""
    run, oids = tmp_path / "my-run", [f"acme__tool-{number}" for number in range(1, 5)]
    for oid in oids[:3]:
        write(run / oid / f"{oid}.traj.json", MINI)
    lists = {"resolved_ids": oids[:1], "unresolved_ids": oids[1:2], "error_ids": oids[2:3], "empty_patch_ids": oids[3:]}
    counts = {"total_instances": 4, "submitted_instances": 4, "resolved_instances": 1}
    file = write(run / "acme__mini.v1.json", counts | lists)
    table = read_adapted(run)
    found = table.frame.select("oid", "llm_name", "run_id", "passed", "cost_usd").rows()
    verdicts = zip(oids, ["true", "false", None, "false"], ["0.1", "0.1", "0.1", None], strict=True)
    assert found == [(oid, "acme/mini", "v1", passed, cost) for oid, passed, cost in verdicts]
    assert [(figure.reported, figure.recomputed) for figure in table.figures] == [(1, 1), (0.25, 0.25)]
    assert file in table.files
    write(run / "acme__mini.v2.json", counts | lists)
    assert read_adapted(run).frame["passed"].to_list() == [None] * 3


@pytest.mark.parametrize("name", ["acme__tool-1.traj", "acme__tool-1/acme__tool-1.traj"])
def test_without_a_configuration_the_run_is_the_model(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "gpt4__lite" / name, trajectory() | {"replay_config": None})
    for each in (path, tmp_path / "gpt4__lite"):
        assert detect_format(each) == "swe-agent"
        assert read_adapted(each).frame.select("oid", "llm_name").row(0) == ("acme__tool-1", "gpt4__lite")


def test_mini_swe_agent(tmp_path: Path) -> None:
    path = write(tmp_path / "acme__tool-1.traj.json", MINI)
    assert detect_format(path) == "swe-agent"
    assert read_adapted(path).frame.select("oid", "llm_name", "model_patch").row(0) == (
        "acme__tool-1",
        "acme/mini",
        "diff\n",
    )


@pytest.mark.parametrize(
    ("exit_status", "passed", "word"),
    [
        ("submitted", "false", "wrong_format"),
        ("exit_context", "false", "wrong_format"),
        ("exit_format", "false", "wrong_format"),
        ("LimitsExceeded", "false", "wrong_format"),
        ("RepeatedFormatError", "false", "wrong_format"),
        ("TimeExceeded", "false", "timeout"),
        ("exit_total_execution_time", "false", "timeout"),
        ("exit_api", None, None),
        ("exit_environment_error", None, None),
        ("RateLimitError", None, None),
        (None, None, None),
    ],
)
def test_without_a_patch(tmp_path: Path, exit_status: str | None, passed: str | None, word: str | None) -> None:
    path = write(tmp_path / "p-1.traj", trajectory(exit_status, ""))
    assert read_adapted(path).frame.select("passed", "classification").row(0) == (passed, word)


@pytest.mark.parametrize("text", ["provider returned 500", ""], ids=["mini-swe-agent 1", "mini-swe-agent 2"])
def test_an_error_of_the_provider_stays_undecided(tmp_path: Path, text: str) -> None:
    """mini-swe-agent 1 writes its message as the submission; the harness sees a patch that fails or is empty."""
    info = {"exit_status": "RuntimeError", "submission": text, "traceback": "Traceback (most recent call last): …"}
    write(tmp_path / "run" / "p-1" / "p-1.traj.json", MINI)
    write(tmp_path / "run" / "p-2" / "p-2.traj.json", MINI | {"info": MINI["info"] | info})
    expected = [("p-1", None, "diff\n"), ("p-2", None, None)]
    assert read_adapted(tmp_path / "run").frame.select("oid", "passed", "model_patch").rows() == expected
    counts = {"total_instances": 2, "submitted_instances": 2, "resolved_instances": 1}
    lists = {"resolved_ids": ["p-1"], "unresolved_ids": [], "empty_patch_ids": ["p-2"]}
    write(tmp_path / "run" / "acme__mini.v1.json", counts | lists)
    table = read_adapted(tmp_path / "run")
    assert table.frame.select("oid", "passed", "run_id").rows() == [("p-1", "true", "v1"), ("p-2", None, "v1")]


def test_a_broken_trajectory_refuses_its_instance(tmp_path: Path) -> None:
    write(tmp_path / "run" / "p-1.traj", trajectory())
    write(tmp_path / "run" / "p-2.traj", {"steps": []})
    (tmp_path / "run" / "p-3.traj").write_text("{")
    good, other, broken = read_adapted(tmp_path / "run").frame["__broken"]
    assert (good, other) == (None, "p-2.traj: it has no info, so it is not a trajectory")
    assert broken.startswith("run/p-3.traj: broken JSON at line 1")
    assert read_adapted(tmp_path / "run").models() == ["acme/fixer"]
