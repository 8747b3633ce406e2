"""One sample of an Inspect log as an attempt: its cells, and its verdict once it is known which score decides.

Errors are infrastructure: Inspect leaves such samples out of its metrics, and here they are undecided. A limit is the
model's own failure unless the sample was scored as passed. Transcripts, inputs and targets are not kept.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from touchstone.ingest.adapters.inspect_ai.scores import (
    PASS_VALUE,
    ScoreName,
    is_unscored,
    known_number,
    plain_name,
    values_of,
)
from touchstone.ingest.adapters.inspect_ai.source import Key, sample_key
from touchstone.ingest.adapters.json_values import text_of
from touchstone.ingest.adapters.lossless_json import Number
from touchstone.ingest.adapters.table import Cells, RefusedRecordError

MAX_TEXT_LENGTH = 1000
# Until May 2024 (version 1), a sample had one score without a name.
ONLY_SCORE = "score"

_CARRIED = ("started_at", "completed_at", "working_time", "message_count", "turn_count", "retries")
_USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "input_tokens_cache_read",
    "cache_write_tokens": "input_tokens_cache_write",
    "reasoning_tokens": "reasoning_tokens",
    "total_tokens": "total_tokens",
    "cost_usd": "total_cost",
}
# A score's `reason`, as a class of failure, where the model caused it.
_MODELS_REASONS = {"refusal": "refusal", "invalid_response_format": "wrong_format", "no_response": "fail"}
_MAX_DIGITS = 20
_TIME_LIMITS = ("time", "working")
# A person ended the sample; that says nothing about the model.
_OPERATOR = "operator"


@dataclass(slots=True)
class Attempt:
    """One epoch of one sample."""

    key: Key
    cells: Cells
    # Tokens and cost by model.
    usage: dict[str, Cells] = field(default_factory=dict)
    values: dict[ScoreName, object] = field(default_factory=dict)
    # Of each scorer: why it gave an unusual score, in Inspect's words or the scorer's.
    reasons: dict[str, str] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    error: str | None = None
    limit: str | None = None
    invalidated: bool = False


def attempt_of(sample: Mapping[str, object]) -> Attempt:
    """The attempt that a sample or its summary describes; raises `RefusedRecordError`."""
    limit = sample.get("limit")
    limit = text_of(limit.get("type") if isinstance(limit, dict) else limit)
    _require_id(sample)
    cells: Cells = {
        "iteration_id": _epoch(sample),
        "duration_seconds": text_of(sample.get("total_time")),
        "limit": limit,
        "sample_uuid": text_of(sample.get("uuid")),
        **{name: text_of(sample.get(name)) for name in _CARRIED},
    }
    attempt = Attempt(sample_key(sample), cells, limit=limit, error=_error(sample.get("error")))
    attempt.invalidated = sample.get("invalidation") is not None
    usage = sample.get("model_usage")
    for model, each in usage.items() if isinstance(usage, dict) else ():
        if isinstance(each, dict):
            attempt.usage[model] = {name: text_of(each[key]) if key in each else None for name, key in _USAGE.items()}
    scores = sample.get("scores")
    if scores is None and sample.get("score") is not None:
        scores = {ONLY_SCORE: sample["score"]}
    for scorer, score in scores.items() if isinstance(scores, dict) else ():
        _add_score(attempt, str(scorer), score)
    return attempt


def short(text: str | None) -> str | None:
    """Text of a bounded length."""
    return text if text is None or len(text) <= MAX_TEXT_LENGTH else text[:MAX_TEXT_LENGTH] + "…"


def _require_id(sample: Mapping[str, object]) -> None:
    """An id is a text or a number."""
    value = sample.get("id")
    if not isinstance(value, str) or not value.strip():
        raise RefusedRecordError("bad_id", f"id: {short(text_of(value))!r} is neither a text nor a number")


def _epoch(sample: Mapping[str, object]) -> str:
    value = sample.get("epoch")
    if not isinstance(value, Number) or not value.isdecimal():
        raise RefusedRecordError("bad_id", f"epoch: {short(text_of(value))!r} is not a whole number from 1")
    return str(value)


def _error(value: object) -> str | None:
    """The message of an error; summaries have it as text."""
    if isinstance(value, dict):
        value = value.get("message") or "error without a message"
    return short(text_of(value))


def _add_score(attempt: Attempt, scorer: str, score: object) -> None:
    if not isinstance(score, dict):
        raise RefusedRecordError("ragged", f"the score {scorer!r} is not an object")
    value = score.get("value")
    if isinstance(value, dict | list):
        attempt.values.update(values_of(scorer, value))
    else:
        attempt.values[plain_name(scorer)] = value
    metadata = score.get("metadata")
    reason = score.get("reason") or (metadata.get("unscored_reason") if isinstance(metadata, dict) else None)
    for value, texts in ((reason, attempt.reasons), (score.get("answer"), attempt.answers)):
        text = short(text_of(value))
        if text is not None:
            texts[scorer] = text


def usage_cells(attempt: Attempt, model: str) -> Cells:
    """Tokens and cost of the evaluated model; those of graders and other helpers are in `total_tokens` only.

    Inspect does not count cached tokens as input tokens, and neither do prices.
    """
    usage = attempt.usage
    # A provider may answer under another name than it was asked by.
    own = usage.get(model) or (next(iter(usage.values())) if len(usage) == 1 else {})
    totals = [_count(each["total_tokens"]) for each in usage.values()]
    return {**own, "total_tokens": str(sum(totals)) if totals else None}


def _count(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < _MAX_DIGITS else 0


def verdict_cells(attempt: Attempt, name: ScoreName | None, *, is_reported: bool, scores_errors: bool) -> Cells:
    """The outcome by this score: `passed` and `classification`, or why it is undecided in `error`.

    `is_reported` says that the log has a metric of the score, which counts unknown words as 0; `scores_errors` that
    the run was told to score samples with errors, too.
    """
    value = attempt.values.get(name) if name is not None else None
    number = _number(value, is_reported=is_reported)
    error = attempt.error
    if attempt.invalidated:
        return {"error": error or "the sample was invalidated"}
    if error is not None and not (scores_errors and number is not None):
        return {"error": error}
    if number is not None:
        return {**_decided(attempt, name, number >= PASS_VALUE), "error": error}
    if _is_own_failure(attempt, name):
        return _decided(attempt, name, passed=False)
    return {"error": _undecided_reason(attempt, name, value)}


def _number(value: object, *, is_reported: bool) -> float | None:
    number = known_number(value)
    if number is None and is_reported and isinstance(value, str):
        return 0.0
    return number if number is not None and math.isfinite(number) else None


def _decided(attempt: Attempt, name: ScoreName | None, passed: bool) -> Cells:
    reason = attempt.reasons.get(name.scorer, "") if name else ""
    timeout = "timeout" if attempt.limit in _TIME_LIMITS else "fail"
    word = "pass" if passed else _MODELS_REASONS.get(reason, timeout)
    return {"passed": "true" if passed else "false", "classification": word}


def _is_own_failure(attempt: Attempt, name: ScoreName | None) -> bool:
    """Whether an unscored sample failed by what the model did."""
    if attempt.limit is not None and attempt.limit != _OPERATOR:
        return True
    return name is not None and attempt.reasons.get(name.scorer) in _MODELS_REASONS


def _undecided_reason(attempt: Attempt, name: ScoreName | None, value: object) -> str:
    if name is None or name not in attempt.values:
        several = any(each.scorer == name.scorer for each in attempt.values) if name is not None else False
        return f"the score {name} has several values; choose one with --scorer" if several else "not scored"
    if value is None or is_unscored(value):
        return f"not scored ({attempt.reasons.get(name.scorer, 'no value')})"
    return f"the score {name} is {short(text_of(value))!r}, which is no verdict"
