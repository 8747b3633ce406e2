"""Adapter for Harbor: a job's folder, a folder of jobs, or the `result.json` of a job or of a single trial.

A trial is an attempt; those of a model at a task are numbered by their start, across all jobs that are read together.
It passed if its reward is at least 1. Several rewards need `--scorer` unless one is called `reward`. A task is unique
within its dataset (`source`), which is the suite. Transcripts are not kept, nor are configurations. A regrade verifies
the work of an earlier trial again (`config.source_trial`): it takes that trial's place.

Harbor's own table says whose failure an exception is. It takes a reward as valid if the agent produced the trajectory
on its own: without an exception, at a limit of its budget, or when it refused. Otherwise (sandbox, model provider,
Harbor itself, verifier, cancelled) the reward says nothing, whichever it is, and the trial is undecided. Two rules
differ:

- What an agent can provoke is a failure: a verifier that times out, a sandbox without memory.
- For an exception without a class (`NonZeroAgentExitCodeError`, or an unknown one) Harbor grades the trial but doubts
  the reward. The verifier has judged the agent's work, so its reward counts; without one the trial is undecided.

Only the `result.json` of a trial's own folder decides: what is below it may have been written by the agent. The
trajectory there (`agent/trajectory.json`) is read for the audit, which can lower a figure and never raise one.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions
from touchstone.ingest.adapters.folders import bounded_document, is_file, object_in, some_subfolders, subfolders
from touchstone.ingest.adapters.formats.terminal_bench import (
    agent_with_options,
    number_by_time,
    seconds_between,
    separate_agents,
    without_copies,
)
from touchstone.ingest.adapters.json_files import (
    GENERATION,
    identifier_of,
    inside,
    list_of,
    number_of,
    object_of,
    object_records,
    raw_values,
    scalar_of,
    section_of,
    stated_settings,
    text_of,
)
from touchstone.ingest.adapters.steps import Step, atif_steps
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    Record,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    records_of,
    table_from_records,
    undecide_failures,
    words,
)
from touchstone.ingest.adapters.tool_figures import (
    count_by_problem,
    mean,
    pass_at_k,
    reported_pass_at_k,
    tokens_without_cache,
)
from touchstone.ingest.csv_rows import LINE
from touchstone.text import counted, counted_of
from touchstone.vocabulary import MAX_COUNT

# Of the sandbox, the model's provider, Harbor itself, the verifier, and of a person who stopped the trial.
_UNDECIDED = {
    *words(
        "EnvironmentStartTimeoutError SandboxBuildFailedError AgentSetupTimeoutError HealthcheckError SSHAccessError "
        "GKEExecStreamClosedError GKEPodNotFoundError RuntimeRequestError AddTestsDirError DownloadVerifierDirError"
    ),
    *words(
        "ApiError ApiRateLimitError ApiInternalServerError ApiOverloadedError ApiConnectionClosedError "
        "ApiResponseStalledError UnknownApiError NetworkConnectionError ApiConnectionError ApiUsageLimitError "
        "RateLimitError InternalServerError ServiceUnavailableError APIConnectionError APIError Timeout "
        "BadRequestError UnprocessableEntityError UnsupportedParamsError APIResponseValidationError "
        "BudgetExceededError AgentAuthenticationError ModelNotFoundError ApiProviderResourceNotFoundError "
        "AuthenticationError PermissionDeniedError NotFoundError"
    ),
    *words("ServiceOperationsUnsupportedError VercelScopeError DspyImportError MissingExtraError RegradeError"),
    *words("RewardFileNotFoundError RewardFileEmptyError VerifierOutputParseError"),
    "CancelledError",
}
# The agent's files run in the verifier and the sandbox: it may hang the one and exhaust the other's memory.
_PROVOKED = {
    "VerifierTimeoutError": "timeout",
    "MemoryLimitExceededError": "crash",
    "SandboxLikelyOutOfMemoryError": "crash",
}
# The agent's own ends, with the class of the failure.
_OWN = {
    "AgentTimeoutError": "timeout",
    "ContextWindowExceededError": "error",
    "OutputTokenExceededError": "error",
    "ContextLengthExceededError": "error",
    "OutputLengthExceededError": "error",
    "AgentSafetyRefusalError": "refusal",
    "ContentPolicyViolationError": "refusal",
}
COLUMNS = words(
    "oid iteration_id llm_name tier suite run_id passed classification weighted_score reward error exception_type "
    "input_tokens output_tokens cache_read_tokens cost_usd started_at duration_seconds agent_seconds agent "
    "agent_version trial_name evals_key sample_uuid"
)
_USAGE = ("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd")
_MESSAGE_LENGTH = 500
FORMAT = "harbor"
_RESULT, _TRAJECTORY = "result.json", "trajectory.json"


def outcome(reward: float | None, exceptions: Sequence[str]) -> tuple[bool | None, str | None]:
    """Whether a trial passed (None: undecided) and its class, from the reward and the exceptions it recorded.

    >>> outcome(1.0, ["AgentTimeoutError"]), outcome(0.0, ["ApiRateLimitError"]), outcome(None, ["AgentTimeoutError"])
    ((True, 'pass'), (None, None), (False, 'timeout'))
    """
    if not _UNDECIDED.isdisjoint(exceptions):
        return None, None
    provoked = next((_PROVOKED[name] for name in exceptions if name in _PROVOKED), None)
    if provoked is not None:
        return False, provoked
    own = next((_OWN[name] for name in exceptions if name in _OWN), None)
    if reward is None:
        is_own = own is not None and all(name in _OWN for name in exceptions)
        return (False, own) if is_own else (None, None)
    if reward >= 1:
        return True, "pass"
    return False, own or ("crash" if exceptions else "fail")


def _fill(score: str | None, cells: Cells, trial: Mapping[str, object]) -> None:
    """Fill the cells of a record; `score` chooses one of several rewards."""
    agent = section_of(trial, "agent_info") or {}
    config = section_of(trial, "config") or {}
    cells["llm_name"] = _model_of(agent, config)
    task, source = identifier_of(trial, "task_name"), text_of(trial.get("source"))
    exceptions = _exceptions(trial)
    reward = _reward(section_of(trial, "verifier_result") or {}, score)
    number = None if reward is None else number_of(reward)
    if reward is not None and number is None:
        raise RefusedRecordError("bad_number", f"the reward {reward!r} is not a number")
    types = [identifier_of(each, "exception_type") for each in exceptions]
    phase = section_of(trial, "agent_execution") or {}
    passed, word = outcome(number, types)
    cells |= {
        "oid": f"{source}/{task}" if source else task,
        "suite": source,
        "run_id": text_of(config.get("job_id")),
        "passed": text_of(passed),
        "classification": word,
        "weighted_score": reward if passed is not None and number is not None and 0 <= number <= 1 else None,
        "reward": reward,
        "error": _message(exceptions[0]) if exceptions else None,
        "exception_type": types[0] if types else None,
        "started_at": text_of(trial.get("started_at")),
        "duration_seconds": seconds_between(trial.get("started_at"), trial.get("finished_at")),
        "agent_seconds": seconds_between(phase.get("started_at"), phase.get("finished_at")),
        "agent": agent_with_options(agent.get("name"), inside(config, "agent", "kwargs")),
        "agent_version": text_of(agent.get("version")),
        "trial_name": identifier_of(trial, "trial_name"),
        "evals_key": _evals_key(agent, source),
        "sample_uuid": text_of(trial.get("id")),
        "asked_sha": text_of(trial.get("task_checksum")),
        **_usage_cells(trial),
    }


def _model_of(agent: Mapping[str, object], config: Mapping[str, object]) -> str:
    """The model as it was asked for, else as the agent reports it, else the agent, which may need none."""
    asked = text_of((section_of(config, "agent") or {}).get("model_name"))
    info = section_of(agent, "model_info") or {}
    name, provider = text_of(info.get("name")), text_of(info.get("provider"))
    reported = f"{provider}/{name}" if provider and name else name
    return next((each for each in (asked, reported) if each and each.strip()), None) or identifier_of(agent, "name")


def _evals_key(agent: Mapping[str, object], source: str | None) -> str:
    """The key of the trial's figures in the result of its job."""
    name = text_of((section_of(agent, "model_info") or {}).get("name"))
    return "__".join(filter(None, (text_of(agent.get("name")), name, source or "adhoc")))


def _steps(trial: Mapping[str, object]) -> list[dict[str, object]]:
    return [object_of(step, "step") for step in list_of(trial.get("step_results"))]


def _exceptions(trial: Mapping[str, object]) -> list[dict[str, object]]:
    """The trial's exception first, then those of its steps."""
    found = [section_of(each, "exception_info") for each in (trial, *_steps(trial))]
    return [each for each in found if each is not None]


def _message(exception: Mapping[str, object]) -> str | None:
    kind, message = text_of(exception.get("exception_type")), text_of(exception.get("exception_message"))
    return f"{kind}: {message}"[:_MESSAGE_LENGTH] if message else kind


def _reward(verified: Mapping[str, object], score: str | None) -> str | None:
    rewards = section_of(verified, "rewards")
    if not rewards:
        return None
    name = score or ("reward" if "reward" in rewards else next(iter(rewards)))
    if score is None and name != "reward" and len(rewards) > 1:
        names = ", ".join(sorted(rewards))
        raise RefusedRecordError("bad_number", f"the trial has the rewards {names}; choose one with --scorer")
    if name not in rewards:
        raise RefusedRecordError("bad_number", f"the trial has no reward {name!r}, but {', '.join(sorted(rewards))}")
    return text_of(rewards[name])


def _usage_cells(trial: Mapping[str, object]) -> Cells:
    """Tokens and cost of the trial, or the sums of its steps. Harbor counts cached tokens as input."""
    whole = section_of(trial, "agent_result")
    parts = [whole] if whole is not None else [section_of(step, "agent_result") or {} for step in _steps(trial)]
    total = {name: _sum([part.get(name) for part in parts]) for name in _USAGE}
    cached = total["n_cache_tokens"]
    return {
        "input_tokens": tokens_without_cache(total["n_input_tokens"], cached),
        "output_tokens": total["n_output_tokens"],
        "cache_read_tokens": cached,
        "cost_usd": total["cost_usd"],
    }


def _sum(values: list[object]) -> str | None:
    given = [value for value in values if value is not None]
    numbers = [number_of(value) for value in given]
    # Anything but a number is refused by the rule of its column.
    odd = next((value for value, number in zip(given, numbers, strict=True) if number is None), None)
    if odd is not None or len(given) < 2:
        return text_of(odd if odd is not None else next(iter(given), None))
    total = math.fsum(number for number in numbers if number is not None)
    return str(int(total)) if total.is_integer() else str(total)


def job_figures(
    result: Mapping[str, object], records: Sequence[Record], score: str | None = None
) -> tuple[list[ReportedFigure], list[str]]:
    """The mean reward and pass@k of every agent, model and dataset, and notes. Harbor counts a missing reward as 0."""
    by_key: dict[str, list[Cells]] = {}
    for record in records:
        if record.kind is None:
            by_key.setdefault(record.cells["evals_key"] or "", []).append(record.cells)
    # Some versions write a model `z-ai/glm-5` as `z-ai-glm-5` in the key.
    plain = Counter(map(_plain_key, by_key))
    for key in [key for key in by_key if plain[_plain_key(key)] == 1]:
        by_key.setdefault(_plain_key(key), by_key[key])
    figures: list[ReportedFigure] = []
    notes: list[str] = []
    for key, stated in inside(result, "stats", "evals").items():
        trials = by_key.get(key) or by_key.get(_plain_key(key))
        if isinstance(stated, dict) and trials:
            figures += _eval_figures(stated, trials, score)
        else:
            notes.append(f"the job states figures of {key[:_MESSAGE_LENGTH]}, of which it has no trial")
    return figures, notes


def _plain_key(key: str) -> str:
    return key.replace("/", "-")


def _eval_figures(stated: Mapping[str, object], trials: Sequence[Cells], score: str | None) -> list[ReportedFigure]:
    model, suite, note = trials[0]["llm_name"] or "", trials[0]["suite"], _note(trials)
    rewards = [number_of(cells["reward"]) or 0.0 for cells in trials]
    figures = [ReportedFigure(model, "mean", _stated_mean(stated, score or "reward"), mean(rewards), suite, note)]
    counts = count_by_problem((cells["oid"], reward == 1) for cells, reward in zip(trials, rewards, strict=True))
    figures += [
        ReportedFigure(model, f"pass_at_{k}", reported, pass_at_k(counts, k), suite, note)
        for k, reported in reported_pass_at_k(stated.get("pass_at_k")).items()
    ]
    return figures


def _stated_mean(stated: Mapping[str, object], score: str) -> float | None:
    """The mean among the metrics of the job; with several rewards each has its own, under the reward's name."""
    metrics = map(inside, list_of(stated.get("metrics")))
    means = (number_of(metric.get("mean", metric.get(score))) for metric in metrics)
    return next((value for value in means if value is not None), None)


def _note(trials: Sequence[Cells]) -> str | None:
    undecided = sum(cells["passed"] is None for cells in trials)
    if not undecided:
        return None
    which = counted(undecided, "undecided trial", "undecided trials")
    return f"Harbor counts {which} (sandbox, provider, verifier) with its reward, or 0; Touchstone leaves them out"


@dataclass
class _Job:
    """A job's result, and its trials, each an object or why it cannot be read."""

    result: Mapping[str, object] = field(default_factory=dict)
    trials: list[object] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_harbor(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the trials of one or more jobs into rows of text cells."""
    jobs = list(_jobs(path))
    trials = [trial for job in jobs for trial in job.trials]
    records = list(object_records(enumerate(trials, start=1), "trial", partial(_fill, options.score)))
    if not records:
        raise InputFileError(f"{path}: the job has no finished trial")
    _require_choice(path, records)
    _keep_scores_if_graded(records)
    raw = raw_values(lambda _: enumerate(trials, start=1))
    files = [file for job in jobs for file in (*job.files, *_trajectories(job.files))]
    table = table_from_records(path, FORMAT, COLUMNS, records, raw, files=files)
    table, several = separate_agents(table)
    # A job can be run without its verifier.
    waiting = pl.col("passed").is_null() & pl.col("exception_type").is_null()
    table, unjudged = undecide_failures(table, pl.col("reward").is_not_null(), waiting)
    settled = records_of(table, words("oid llm_name suite passed reward evals_key"))
    table, copies = without_copies(table)
    table, regraded = _without_regraded(table, trials)
    table = number_by_time(table)
    notes = [*(note for job in jobs for note in job.notes), *several, *unjudged, *copies, *regraded]
    figures = []
    for job in jobs:
        found, missing = job_figures(job.result, list(islice(settled, len(job.trials))), options.score)
        figures += found
        notes += missing
    settings = [
        each
        for record, trial in zip(records, trials, strict=True)
        if record.kind is None and isinstance(trial, dict)
        for each in _settings(record.cells, trial)
    ]
    return table.stating(figures, settings, notes)


def _require_choice(path: Path, records: Sequence[Record]) -> None:
    """Refuse a source in which no reward can be read: trials that failed without one would be the whole figure."""
    refused = next((record.reason for record in records if record.kind == "bad_number"), None)
    if refused and not any(record.cells.get("reward") for record in records):
        raise InputFileError(f"{path}: {refused}")


def _without_regraded(table: AdapterTable, trials: Iterable[object]) -> tuple[AdapterTable, list[str]]:
    """Leave out trials whose work another one verified again; returns notes."""
    sources = (text_of(inside(trial, "config", "source_trial").get("trial_id")) for trial in trials)
    is_regraded = pl.col("sample_uuid").is_in([source for source in sources if source]).fill_null(False)
    with table.reading():
        count = table.rows.filter(is_regraded).select(pl.len()).collect().item()
    if not count:
        return table, []
    which = counted(count, "trial was", "trials were")
    return replace(table, rows=table.rows.filter(~is_regraded)), [f"{which} graded again: the regrade counts"]


def _trajectories(files: Iterable[Path]) -> list[Path]:
    return [found for file in files if is_file(found := file.parent / "agent" / _TRAJECTORY)]


def _settings(cells: Cells, trial: Mapping[str, object]) -> list[StatedSetting]:
    """How the agent was run: its options, and the timeouts and resources that were not the task's own."""
    config, model, suite = inside(trial, "config"), cells["llm_name"] or "", cells["suite"]
    multipliers = "timeout_multiplier agent_timeout_multiplier verifier_timeout_multiplier"
    environment = inside(config, "environment")
    resources = "environment override_cpus override_memory_mb override_storage_mb override_gpus"
    timeouts = "override_timeout_sec max_timeout_sec"
    return [
        *stated_settings(model, "generation", inside(config, "agent", "kwargs"), GENERATION, suite),
        *stated_settings(model, "limits", config, multipliers, suite),
        *stated_settings(model, "limits", inside(config, "agent"), timeouts, suite),
        *stated_settings(model, "limits", {**environment, "environment": environment.get("type")}, resources, suite),
    ]


def _recognizes(head: Head) -> bool:
    if head.is_folder:
        return _is_job(head.path) or _is_trial(head.path) or any(map(_is_job, some_subfolders(head.path)))
    return _is_job_result(head) or _is_trial_result(head)


def _transcripts(table: AdapterTable) -> Iterator[tuple[int, Iterable[Step]]]:
    """The trajectories of trials, which are numbered as in `read_harbor`."""
    by_name = dict(table.rows.select("trial_name", LINE).drop_nulls().collect().iter_rows())
    for file in (file for file in table.files if file.name == _TRAJECTORY):
        line = by_name.get(file.parent.parent.name)
        if line is not None:
            yield line, atif_steps(object_in(file, "trajectory").get("steps"))


ADAPTER = Adapter(FORMAT, "Harbor results", _recognizes, read_harbor, transcripts=_transcripts)


def _is_job_result(head: Head) -> bool:
    return head.has_keys("n_total_trials", "stats")


def _is_trial_result(head: Head) -> bool:
    return head.has_keys("task_name", "trial_name", "task_checksum")


def _is_trial(folder: Path) -> bool:
    return is_file(folder / _RESULT) and _is_trial_result(Head(folder / _RESULT))


def _is_job(folder: Path) -> bool:
    """Whether a folder is a job's; one that was killed early has trials only."""
    if is_file(folder / _RESULT):
        return _is_job_result(Head(folder / _RESULT))
    return any(map(_is_trial, some_subfolders(folder)))


def _jobs(path: Path) -> Iterator[_Job]:
    folder = path if path.is_dir() else path.parent
    if not path.is_dir() and _is_trial_result(Head(path)):
        yield _Job(trials=[_trial(path)], files=[path])
    elif not path.is_dir() or _is_job(folder):
        yield _job(folder, path if not path.is_dir() else folder / _RESULT)
    elif _is_trial(folder):
        yield _Job(trials=[_trial(folder / _RESULT)], files=[folder / _RESULT])
    else:
        for each in subfolders(folder):
            if _is_job(each):
                yield _job(each, each / _RESULT)


def _job(folder: Path, file: Path) -> _Job:
    job = _Job()
    if is_file(file):
        result = bounded_document(file)
        if not isinstance(result, dict):
            raise InputFileError(f"{file}: the result of a job is an object")
        job.result = result
        job.files.append(file)
    files = [each / _RESULT for each in subfolders(folder)]
    finished = [each for each in files if is_file(each)]
    job.files += finished
    job.trials = [_trial(each) for each in finished]
    _add_embedded(job, {each.parent.name for each in finished})
    _note_unfinished(job, folder)
    return job


def _trial(file: Path) -> object:
    try:
        return object_in(file, "trial")
    except RefusedRecordError as refusal:
        return refusal


def _add_embedded(job: _Job, known: set[str]) -> None:
    """Add the trials that the job's file holds and no folder does."""
    for trial in list_of(job.result.get("trial_results")):
        if not isinstance(trial, dict) or scalar_of(trial.get("trial_name")) not in known:
            job.trials.append(trial)


def _note_unfinished(job: _Job, folder: Path) -> None:
    total = number_of(job.result.get("n_total_trials"))
    if total is not None and len(job.trials) < total <= MAX_COUNT:
        unfinished = counted_of(int(total) - len(job.trials), int(total), "trial")
        job.notes.append(f"{folder.name}: {unfinished} did not finish, and so are left out")


def _keep_scores_if_graded(records: list[Record]) -> None:
    """Rewards of 0 and 1 are outcomes, not graded scores."""
    scores = {number_of(record.cells.get("weighted_score")) for record in records}
    if scores <= {None, 0.0, 1.0}:
        for record in records:
            record.cells.pop("weighted_score", None)
