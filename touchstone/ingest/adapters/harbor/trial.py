"""One trial of Harbor as the cells of an attempt."""

import math
from collections.abc import Mapping

from touchstone.ingest.adapters.harbor.causes import outcome
from touchstone.ingest.adapters.json_values import identifier_of, object_of, section_of, text_of
from touchstone.ingest.adapters.table import Cells, Record, RefusedRecordError
from touchstone.ingest.adapters.tool_figures import number_of, tokens_without_cache
from touchstone.ingest.adapters.trials import seconds_between

COLUMNS = (
    "oid",
    "iteration_id",
    "llm_name",
    "tier",
    "suite",
    "run_id",
    "passed",
    "classification",
    "weighted_score",
    "reward",
    "error",
    "exception_type",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cost_usd",
    "duration_seconds",
    "agent_seconds",
    "agent",
    "agent_version",
    "trial_name",
    "evals_key",
    "sample_uuid",
)
_USAGE = ("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd")
_MESSAGE_LENGTH = 500


def trial_cells(record: Record, trial: Mapping[str, object], score: str | None) -> None:
    """Fill the cells of a record; `score` chooses one of several rewards."""
    agent = section_of(trial, "agent_info") or {}
    config = section_of(trial, "config") or {}
    record.cells["llm_name"] = _model_of(agent, config)
    task, source = identifier_of(trial, "task_name"), text_of(trial.get("source"))
    exceptions = _exceptions(trial)
    reward = _reward(section_of(trial, "verifier_result") or {}, score)
    number = None if reward is None else number_of(reward)
    if reward is not None and number is None:
        raise RefusedRecordError("bad_number", f"the reward {reward!r} is not a number")
    types = [identifier_of(each, "exception_type") for each in exceptions]
    passed, word = outcome(number, types)
    record.cells |= {
        "oid": f"{source}/{task}" if source else task,
        "suite": source,
        "run_id": text_of(config.get("job_id")),
        "passed": text_of(passed),
        "classification": word,
        "weighted_score": reward if passed is not None and number is not None and 0 <= number <= 1 else None,
        "reward": reward,
        "error": _message(exceptions[0]) if exceptions else None,
        "exception_type": types[0] if types else None,
        "duration_seconds": seconds_between(trial.get("started_at"), trial.get("finished_at")),
        "agent_seconds": _seconds(section_of(trial, "agent_execution") or {}),
        "agent": text_of(agent.get("name")),
        "agent_version": text_of(agent.get("version")),
        "trial_name": identifier_of(trial, "trial_name"),
        "evals_key": _evals_key(agent, source),
        "sample_uuid": text_of(trial.get("id")),
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
    steps = trial.get("step_results")
    return [object_of(step, "step") for step in steps] if isinstance(steps, list) else []


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


def _seconds(phase: Mapping[str, object]) -> str | None:
    return seconds_between(phase.get("started_at"), phase.get("finished_at"))
