"""Reading Terminal-Bench runs: trials as attempts, runs in folders, and trials without a verdict."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable, detect_format, read_adapted

RUNS = Path(__file__).parent / "files" / "terminal-bench" / "runs"
NAME = "2026-05-01__09-00-00"
RUN = RUNS / NAME
RESULTS: dict[str, Any] = json.loads((RUN / "results.json").read_text())
ROWS: list[dict[str, Any]] = RESULTS["results"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of the run."""
    return Path(shutil.copytree(RUN, tmp_path / "runs" / NAME))


def read(path: Path) -> AdapterTable:
    assert detect_format(path) == "terminal-bench"
    return read_adapted(path)


def trial_file(run: Path, row: dict[str, Any]) -> Path:
    """Write a row where the harness writes the results of its trial."""
    file = run / row["task_id"] / row["trial_name"] / "results.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(row))
    return file


@pytest.mark.parametrize("path", [RUNS, RUN / "results.json"], ids=["runs", "file"])
def test_a_run_at_every_level(path: Path) -> None:
    table, run = read(path), read(RUN)
    assert table.frame.equals(run.frame)
    assert set(table.files) == set(run.files)


@pytest.mark.parametrize(
    ("resolved", "mode", "passed", "word"),
    [
        (True, "unknown_agent_error", "true", "pass"),
        (False, "unset", "false", "fail"),
        (False, "test_timeout", "false", "timeout"),
        (False, "unknown_agent_error", "false", "crash"),
        (False, "context_length_exceeded", "false", "error"),
        (False, "agent_installation_failed", None, None),
        (None, "test_timeout", "false", "timeout"),
        (None, "agent_timeout", "false", "timeout"),
        (None, "fatal_llm_parse_error", "false", "wrong_format"),
        (None, "unknown_agent_error", None, None),
        (None, "parse_error", None, None),
        (None, "unset", None, None),
        (None, None, None, None),
    ],
)
def test_failure_modes(run: Path, resolved: object, mode: str | None, passed: str | None, word: str | None) -> None:
    row = ROWS[0] | {"is_resolved": resolved, "failure_mode": mode}
    (run / "results.json").write_text(json.dumps(RESULTS | {"results": [row]}))
    assert read(run).frame.select("passed", "classification").row(0) == (passed, word)


def test_folders_of_trials_repeat_the_rows_of_their_run(run: Path) -> None:
    for row in ROWS:
        trial_file(run, row)
    assert read(run).frame.equals(read(RUN).frame)


def test_a_run_that_was_interrupted_has_trials_only(run: Path) -> None:
    for row in ROWS:
        trial_file(run, row)
    (run / "results.json").unlink()
    table = read(run)
    assert sorted(table.frame["trial_name"]) == sorted(row["trial_name"] for row in ROWS)
    assert table.figures == ()


def test_a_trial_that_contradicts_its_run(run: Path) -> None:
    trial_file(run, ROWS[0] | {"is_resolved": False})
    refused = read(run).frame.drop_nulls("__broken")
    assert refused["__kind"].to_list() == ["contradiction"]
    assert refused["trial_name"].to_list() == [ROWS[0]["trial_name"]]


def test_a_single_trial_belongs_to_the_run_above_it(run: Path) -> None:
    table = read(trial_file(run, ROWS[1]))
    assert table.frame.select("llm_name", "iteration_id", "run_id").rows() == [("anthropic/claude-x", "2", NAME)]


def test_runs_of_one_model_are_attempts_in_the_order_of_time(run: Path) -> None:
    # An earlier run, nested in the later one.
    earlier = [
        row
        | {
            "trial_name": row["trial_name"].replace("05-01", "04-30"),
            "trial_started_at": row["trial_started_at"].replace("05-01", "04-30"),
        }
        for row in ROWS[:2]
    ]
    inner = run / "2026-04-30__09-00-00"
    inner.mkdir()
    (inner / "results.json").write_text(json.dumps(RESULTS | {"results": earlier}))
    metadata = json.loads((run / "run_metadata.json").read_text())
    (inner / "run_metadata.json").write_text(json.dumps(metadata | {"run_id": inner.name}))
    table = read(run.parent)
    hello = table.frame.filter(table.frame["oid"] == "tiny-core/hello-fix").sort("iteration_id")
    assert hello.select("iteration_id", "run_id").rows() == [
        ("1", inner.name),
        ("2", inner.name),
        ("3", NAME),
        ("4", NAME),
    ]
    assert table.frame.height == 8
    assert "2 runs: the trials of a model at a task are numbered in the order of time" in table.notes


@pytest.mark.parametrize(
    "dated",
    [True, pytest.param(False, marks=pytest.mark.nightly)],
    ids=["the run is in the trials' names", "the run is the file's name"],
)
def test_dated_results_of_one_submission_are_further_attempts(tmp_path: Path, touchstone: Command, dated: bool) -> None:
    """Files of several runs in one folder, without metadata."""
    folder = tmp_path / "20260501_agent_model"
    folder.mkdir()
    for day in range(1, 6):
        run = f".2026-05-0{day}__09-00-00" if dated else ""
        rows = json.loads(json.dumps(ROWS).replace(f".{NAME}", run))
        for row in rows:
            row["id"] = f"{row['id']}-{day}"
        (folder / f"{day}.json").write_text(json.dumps(RESULTS | {"results": rows}))
    done = touchstone("pass-at-k", folder, "--k-values", "1", "10", "--json")
    assert done.returncode == 0, done.stderr
    figures = {row["k"]: row for row in json.loads(done.stdout)}
    # Ten attempts at each of two tasks, of which half pass; the third was never judged.
    assert (figures[1]["pass_at_k"], figures[10]["eligible"]) == (0.5, 2)


@pytest.mark.parametrize(
    ("change", "tier"),
    [
        ({"agent_name": "codex"}, "codex"),
        ({"agent_kwargs": {"reasoning_effort": "high"}}, "terminus, reasoning_effort high"),
    ],
)
def test_several_agents_of_one_model_are_tiers(run: Path, change: dict[str, object], tier: str) -> None:
    other = Path(shutil.copytree(run, run.with_name("other")))
    metadata = json.loads((run / "run_metadata.json").read_text())
    (other / "run_metadata.json").write_text(json.dumps(metadata | change | {"run_id": "other"}))
    table = read(run.parent)
    assert set(table.frame.select("tier", "run_id").rows()) == {(tier, "other"), ("terminus", NAME)}
    assert "several agents drive anthropic/claude-x; each is a tier" in table.notes


@pytest.mark.parametrize(
    ("change", "model"), [({"model_name": None}, "terminus"), ({"model_name": None, "agent_name": None}, NAME)]
)
def test_runs_without_a_model(run: Path, change: dict[str, object], model: str) -> None:
    file = run / "run_metadata.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert read(run).frame["llm_name"].unique().to_list() == [model]


def test_results_without_metadata_belong_to_their_folder(run: Path) -> None:
    (run / "run_metadata.json").unlink()
    table = read(run / "results.json")
    assert table.frame.select("llm_name", "oid", "suite").row(0) == (NAME, "hello-fix", None)
    assert table.notes[0] == f"there is no run_metadata.json; the folder '{NAME}' is taken as the model"


def test_a_copy_of_a_run_adds_no_attempt(run: Path) -> None:
    before = read(run).frame
    shutil.copytree(run, run.with_name("copy"))
    table = read(run.parent)
    assert table.frame["sample_uuid"].sort().to_list() == before["sample_uuid"].sort().to_list()
    assert f"{len(ROWS)} trials are copies of another, with its identifier, and so left out" in table.notes


def test_runs_of_a_submission_belong_to_its_folder(run: Path) -> None:
    """The leaderboard keeps them without metadata, as `<date>_<agent>_<model>/<run>/results.json`."""
    (run / "run_metadata.json").unlink()
    submission = run.parent / "20250811_cursor-cli_claude-4"
    for name in ("run1", "run2"):
        shutil.copytree(run, submission / name)
    rerun = [row | {"id": f"{row['id']}-2"} for row in ROWS]
    (submission / "run2" / "results.json").write_text(json.dumps(RESULTS | {"results": rerun}))
    rows = read(submission).frame.filter(trial_name=ROWS[0]["trial_name"])
    assert rows.select("llm_name", "iteration_id").rows() == [(submission.name, "1"), (submission.name, "2")]


@pytest.mark.parametrize(
    ("results", "message"),
    [(RESULTS | {"results": []}, "there is no trial in it"), (RESULTS | {"results": [None]}, None)],
)
def test_runs_without_trials(run: Path, results: object, message: str | None) -> None:
    (run / "results.json").write_text(json.dumps(results))
    if message is None:
        assert read(run).frame["__kind"].to_list() == ["ragged"]
        return
    with pytest.raises(InputFileError, match=message):
        read(run)
