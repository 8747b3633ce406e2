"""Reading Harbor jobs: trials as attempts, rewards, and exceptions by Harbor's own table."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable, ReadOptions, detect_format, read_adapted

JOBS = Path(__file__).parent / "files" / "harbor" / "jobs"
NAME = "2026-05-01__09-00-00"
JOB = JOBS / NAME
FIRST = JOB / "fix-offbyone__bX1q9Z" / "result.json"
TRIAL: dict[str, Any] = json.loads(FIRST.read_text())


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A copy of the job."""
    return Path(shutil.copytree(JOB, tmp_path / "jobs" / NAME))


def read(path: Path, score: str | None = None) -> AdapterTable:
    assert detect_format(path) == "harbor"
    return read_adapted(path, ReadOptions(score=score))


def one(tmp_path: Path, score: str | None = None, **changes: object) -> AdapterTable:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(TRIAL | changes))
    return read(path, score)


def raised(name: str) -> dict[str, str]:
    return {"exception_type": name, "exception_message": "it happened", "occurred_at": "2026-05-01T09:00:00Z"}


@pytest.mark.parametrize("path", [JOBS, JOB / "result.json"], ids=["jobs", "file"])
def test_a_job_at_every_level(path: Path) -> None:
    table, job = read(path), read(JOB)
    assert table.frame.equals(job.frame)
    assert (set(table.files), table.notes) == (set(job.files), job.notes)


@pytest.mark.parametrize(
    ("exception", "reward", "passed", "word"),
    [
        (None, 1, "true", "pass"),
        (None, 0, "false", "fail"),
        (None, 0.5, "false", "fail"),
        (None, None, None, None),
        ("AgentTimeoutError", None, "false", "timeout"),
        ("AgentTimeoutError", 1, "true", "pass"),
        ("ContextWindowExceededError", 0, "false", "error"),
        ("AgentSafetyRefusalError", None, "false", "refusal"),
        ("ContentPolicyViolationError", 0, "false", "refusal"),
        # Neither a lucky nor an unlucky reward counts if something else ended the trial.
        ("ApiOverloadedError", 1, None, None),
        ("ApiOverloadedError", 0, None, None),
        ("SandboxBuildFailedError", None, None, None),
        ("RewardFileEmptyError", None, None, None),
        ("CancelledError", None, None, None),
        ("MissingExtraError", None, None, None),
        # What an agent can provoke is a failure.
        ("VerifierTimeoutError", None, "false", "timeout"),
        ("SandboxLikelyOutOfMemoryError", None, "false", "crash"),
        # Harbor does not know whose failure these are: the verifier's word counts if there is one.
        ("NonZeroAgentExitCodeError", 1, "true", "pass"),
        ("NonZeroAgentExitCodeError", 0, "false", "crash"),
        ("NonZeroAgentExitCodeError", None, None, None),
        ("SomethingNewError", None, None, None),
    ],
)
def test_exceptions(
    tmp_path: Path, exception: str | None, reward: float | None, passed: str | None, word: str | None
) -> None:
    verified = None if reward is None else {"rewards": {"reward": reward}}
    table = one(tmp_path, exception_info=exception and raised(exception), verifier_result=verified)
    assert table.frame.select("passed", "classification", "__broken").row(0) == (passed, word, None)


def test_several_efforts_of_one_agent_are_tiers(tmp_path: Path) -> None:
    for effort in ("high", "low"):
        agent = TRIAL["config"]["agent"] | {"kwargs": {"reasoning_effort": effort, "api_key": "x"}}
        trial = TRIAL | {"trial_name": effort, "config": TRIAL["config"] | {"agent": agent, "job_id": effort}}
        (tmp_path / effort / effort).mkdir(parents=True)
        (tmp_path / effort / effort / "result.json").write_text(json.dumps(trial))
    table = read(tmp_path)
    assert table.frame["tier", "iteration_id"].rows() == [
        ("terminus-2, reasoning_effort high", "1"),
        ("terminus-2, reasoning_effort low", "1"),
    ]


def test_exceptions_of_steps_count_too(tmp_path: Path) -> None:
    usage = {"n_input_tokens": 10, "n_cache_tokens": 4, "n_output_tokens": 3, "cost_usd": 0.25}
    steps = [
        {"step_name": "one", "agent_result": usage, "exception_info": None},
        {"step_name": "two", "agent_result": usage, "exception_info": raised("ApiRateLimitError")},
    ]
    row = one(tmp_path, agent_result=None, step_results=steps).frame.row(0, named=True)
    assert (row["passed"], row["error"]) == (None, "ApiRateLimitError: it happened")
    assert (row["input_tokens"], row["cache_read_tokens"], row["cost_usd"]) == ("12", "8", "0.5")


@pytest.mark.parametrize(
    ("info", "asked", "model"),
    [
        ({"name": "m", "provider": "p"}, None, "p/m"),
        ({"name": "m", "provider": None}, None, "m"),
        (None, "p/asked", "p/asked"),
        (None, None, "terminus-2"),
    ],
)
def test_models(tmp_path: Path, info: object, asked: str | None, model: str) -> None:
    config = TRIAL["config"] | {"agent": TRIAL["config"]["agent"] | {"model_name": asked}}
    table = one(tmp_path, agent_info=TRIAL["agent_info"] | {"model_info": info}, config=config)
    assert table.frame["llm_name"].to_list() == [model]


def test_a_graded_reward_is_a_score(tmp_path: Path) -> None:
    assert one(tmp_path, verifier_result={"rewards": {"reward": 0.25}}).frame["weighted_score"].to_list() == ["0.25"]
    assert one(tmp_path, verifier_result={"rewards": {"reward": 3}}).frame.select(
        "weighted_score", "reward", "passed"
    ).row(0) == (None, "3", "true")


def test_several_rewards(tmp_path: Path) -> None:
    both = {"rewards": {"tests": 1, "style": 0}}
    with pytest.raises(InputFileError, match="the trial has the rewards style, tests; choose one with --scorer"):
        one(tmp_path, verifier_result=both)
    assert one(tmp_path, "tests", verifier_result=both).frame["passed"].to_list() == ["true"]
    assert one(tmp_path, "style", verifier_result=both).frame["passed"].to_list() == ["false"]
    with pytest.raises(InputFileError, match="the trial has no reward 'speed', but style, tests"):
        one(tmp_path, "speed", verifier_result=both)


def test_a_job_with_several_rewards_has_no_figure_of_its_other_trials(job: Path) -> None:
    """Only those without a reward could be read, which failed: 0 of what nobody chose."""
    trials = [json.loads(file.read_text()) for file in sorted(job.glob("*/result.json"))]
    for file, trial in zip(sorted(job.glob("*/result.json")), trials, strict=True):
        rewards = (trial["verifier_result"] or {}).get("rewards")
        if rewards:
            file.write_text(
                json.dumps(trial | {"verifier_result": {"rewards": {"tests": rewards["reward"], "style": 0}}})
            )
    result = json.loads((job / "result.json").read_text())
    (stated,) = result["stats"]["evals"].values()
    stated["metrics"] = [{"style": 0.0, "tests": 0.4}]
    (job / "result.json").write_text(json.dumps(result))
    with pytest.raises(InputFileError, match="choose one with --scorer"):
        read(job)
    assert ("mean", 0.4, 0.4) in [(each.name, each.reported, each.recomputed) for each in read(job, "tests").figures]


def test_a_copy_of_a_job_adds_no_attempt(job: Path) -> None:
    before = read(job)
    shutil.copytree(job, job.with_name("copy"))
    table = read(job.parent)
    keys = ["oid", "iteration_id", "passed", "sample_uuid"]
    assert table.frame.select(keys).sort(keys).equals(before.frame.select(keys).sort(keys))
    assert f"{before.frame.height} trials are copies of another, with its identifier, and so left out" in table.notes


def test_a_regraded_trial_counts_once(job: Path) -> None:
    """A regrade is a job of its own, whose trials name those that they verified again."""
    regrade = Path(shutil.copytree(job, job.with_name("regrade")))
    before = read(job)
    for file in regrade.glob("*/result.json"):
        trial = json.loads(file.read_text())
        source = {"action": "regrade", "type": "local", "trial_id": trial["id"], "path": "/jobs/x"}
        rewards = {"verifier_result": {"rewards": {"reward": 1.0}}, "exception_info": None}
        config = trial["config"] | {"source_trial": source, "job_id": "regrade"}
        file.write_text(json.dumps(trial | rewards | {"id": f"again-{trial['id']}", "config": config}))
    table = read(job.parent)
    assert table.frame["run_id"].unique().to_list() == ["regrade"]
    assert table.frame.select("oid", "iteration_id").equals(before.frame.select("oid", "iteration_id"))
    assert f"{before.frame.height} trials were graded again: the regrade counts" in table.notes


def test_a_job_without_its_verifier_is_not_judged(tmp_path: Path) -> None:
    """A timeout fails also without a reward, and would be the whole figure."""
    for place, exception in enumerate((None, None, raised("AgentTimeoutError"))):
        trial = TRIAL | {"trial_name": f"t-{place}", "verifier_result": None, "exception_info": exception}
        (tmp_path / "job" / f"t-{place}").mkdir(parents=True)
        (tmp_path / "job" / f"t-{place}" / "result.json").write_text(json.dumps(trial))
    table = read(tmp_path / "job")
    assert table.frame["passed"].to_list() == [None, None, None]
    assert table.notes[0].startswith("not judged: 2 of 3 attempts of ")


def test_a_model_with_a_slash_keeps_the_figures_of_its_job(job: Path) -> None:
    """Harbor writes `z-ai/glm-5` as `z-ai-glm-5` in the key of the job's figures."""
    before = {(figure.name, figure.reported, figure.recomputed) for figure in read(job).figures}
    assert ("mean", 0.4, 0.4) in before
    result = json.loads((job / "result.json").read_text())
    (key,) = result["stats"]["evals"]
    agent, model, dataset = key.split("__")
    named = f"{agent}__z-ai-glm-5__{dataset}"
    result["stats"]["evals"] = {named: result["stats"]["evals"][key]}
    (job / "result.json").write_text(json.dumps(result))
    for file in job.glob("*/result.json"):
        trial = json.loads(file.read_text())
        assert trial["agent_info"]["model_info"]["name"] == model
        trial["agent_info"]["model_info"]["name"] = "z-ai/glm-5"
        file.write_text(json.dumps(trial))
    assert {(figure.name, figure.reported, figure.recomputed) for figure in read(job).figures} == before


def test_figures_without_trials_do_not_vanish_silently(job: Path) -> None:
    result = json.loads((job / "result.json").read_text())
    result["stats"]["evals"]["other__m__set"] = {"metrics": [{"mean": 0.5}]}
    (job / "result.json").write_text(json.dumps(result))
    assert "the job states figures of other__m__set, of which it has no trial" in read(job).notes


def test_jobs_of_one_model_are_numbered_by_time(job: Path) -> None:
    earlier = Path(shutil.copytree(job, job.with_name("earlier")))
    for file in earlier.glob("*/result.json"):
        trial = json.loads(file.read_text())
        trial["started_at"] = trial["started_at"].replace("05-01", "04-30")
        file.write_text(json.dumps(trial | {"config": trial["config"] | {"job_id": "earlier"}}))
    rows = read(job.parent).frame
    null = (
        rows.filter(rows["oid"] == "tiny-fixes/fix-null").sort("iteration_id").select("iteration_id", "run_id").rows()
    )
    assert [number for number, _ in null] == ["1", "2", "3", "4"]
    assert [run == "earlier" for _, run in null] == [True, True, False, False]


def test_trials_that_did_not_finish_are_counted_in_a_note(job: Path) -> None:
    (job / "fix-null__dX3q9Z" / "result.json").unlink()
    table = read(job)
    assert table.frame.height == 9
    assert table.notes == (f"{NAME}: 1 of 10 trials did not finish, and so are left out",)


def test_a_job_that_was_killed_has_trials_only(job: Path) -> None:
    (job / "result.json").unlink()
    table = read(job)
    assert table.frame.equals(read(JOB).frame)
    assert table.figures == ()


def test_trials_inside_the_file_of_the_job(job: Path) -> None:
    result = json.loads((job / "result.json").read_text())
    trials = [json.loads(file.read_text()) for file in sorted(job.glob("*/result.json"))]
    (job / "result.json").write_text(json.dumps(result | {"trial_results": trials}))
    assert read(job).frame.equals(read(JOB).frame)
    for folder in job.glob("*/"):
        shutil.rmtree(folder)
    assert read(job).frame.equals(read(JOB).frame)


def test_what_the_agent_wrote_is_not_read(job: Path) -> None:
    forged = job / "fix-null__dX3q9Z" / "agent" / "fake" / "result.json"
    forged.parent.mkdir(parents=True)
    forged.write_text(json.dumps(TRIAL | {"trial_name": "forged"}))
    assert read(job).frame.equals(read(JOB).frame)


@pytest.mark.parametrize(
    ("change", "kind", "reason"),
    [
        (lambda trial: trial | {"task_name": None}, "bad_id", "the task_name is missing"),
        (lambda trial: trial | {"agent_info": 3}, "ragged", "the agent_info is a number where an object belongs"),
        (lambda trial: trial | {"verifier_result": {"rewards": {"reward": "high"}}}, "bad_number", "is not a number"),
        (lambda trial: trial | {"exception_info": {}}, "bad_id", "the exception_type is missing"),
        (lambda _: "[", "ragged", "the trial is a text where an object belongs"),
    ],
)
def test_a_broken_trial_is_refused_alone(job: Path, change: Callable[[Any], object], kind: str, reason: str) -> None:
    file = job / FIRST.parent.name / "result.json"
    file.write_text(json.dumps(change(TRIAL)))
    table = read(job)
    refused = table.frame.drop_nulls("__broken")
    assert refused["__kind"].to_list() == [kind]
    assert reason in refused["__broken"][0]
    assert table.frame.height == 10


def test_a_job_without_trials(tmp_path: Path) -> None:
    path = Path(shutil.copy(JOB / "result.json", tmp_path))
    with pytest.raises(InputFileError, match="the job has no finished trial"):
        read(path)
