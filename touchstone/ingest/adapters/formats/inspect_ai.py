"""Adapter for logs of Inspect AI: `.eval` archives and `.json` files, one task with one model each.

A sample is a problem and an epoch an attempt. Ids of samples are unique within a task, so the oid is
`<task>/<sample id>` and the task is the suite. One score decides: the wanted one, else the headline or the first of
the log's results with a metric; a value of at least 1 (or "C") is a pass. All scores are kept as `score_<name>`.

A scorer gives every sample one value, or a dictionary or list of values, each of which is a score of its own: `tests`,
`review/style`, `review[0]`. Numbers follow Inspect's `value_to_float`: C is 1, P is 0.5, I and N are 0.

Errors are infrastructure: Inspect leaves such samples out of its metrics, and here they are undecided. A limit is the
model's own failure unless the sample was scored as passed. Inputs and targets are not kept, nor are transcripts, which
are read for the audit.

The figures that a log reports are computed again by Inspect's own rules: it reduces the epochs of each sample to one
value, leaves out samples without one, and takes a metric over the others. An epoch without a value (an error, NaN)
drops out of its sample; `pass_at_k` needs k epochs with a value.

`run_id` is Inspect's run, `eval_id` the log. A log made by `eval-retry` has the `task_id` of the first one and copies
of its finished samples, which keep their `sample_uuid`; a log of an independent run has a `task_id` of its own.
"""

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions, not_evaluated
from touchstone.ingest.adapters.exported import KEY, exported_model, restore
from touchstone.ingest.adapters.formats.inspect_files import (
    ARCHIVE_MARK,
    HEADER,
    START,
    Key,
    Log,
    Object,
    RawSample,
    open_log,
    sample_key,
)
from touchstone.ingest.adapters.json_files import (
    Number,
    digest_of,
    identifier_of,
    inside,
    number_of,
    objects_of,
    shown_json,
    stated_settings,
    text_of,
)
from touchstone.ingest.adapters.steps import Step, message_steps
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    Record,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    table_from_records,
    without_garbage_collection,
    words,
)
from touchstone.ingest.adapters.tool_figures import estimate
from touchstone.ingest.archives import ZipArchive
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH
from touchstone.regular_files import open_regular
from touchstone.vocabulary import Dimension

PASS_VALUE = 1.0

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
# How many names a message lists.
_LISTED = 10
MAX_TEXT_LENGTH = 1000
_ASKED_LENGTH = 5000
_GENERATION = (
    "temperature top_p top_k max_tokens reasoning_effort reasoning_tokens effort seed frequency_penalty "
    "presence_penalty num_choices"
)
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
LEFT_OUT = "transcripts, inputs and targets of samples are not kept"
_KNOWN_VERSIONS = ("1", "2", "3")
_FINE = ("success", None)
NO_SAMPLES = "the log has no samples"
# The values of one score: for each sample, those of its epochs.
Epochs = Mapping[str, Sequence[object]]
Reducer = Callable[[Sequence[object]], float | None]
_WITH_K = re.compile(r"(pass_at|pass_k|at_least)_(\d{1,6})")
_METRICS = ("accuracy", "mean", "stderr")
FORMAT = "inspect"
COLUMNS = words(
    "oid iteration_id llm_name suite run_id passed classification weighted_score input_tokens output_tokens "
    "cache_read_tokens cache_write_tokens cost_usd duration_seconds error score answer limit retries sample_uuid"
)
# A few kilobytes of each are kept in memory.
_MAX_SAMPLES = 500_000
# How many keys of scores and of sample metadata become columns.
_MAX_SCORES = 50
_MAX_METADATA = 50
_MAX_KEY_LENGTH = 60
# Of the log's `eval`.
_SPEC = {
    "eval_id": "eval_id",
    "task_id": "task_id",
    "task_version": "task_version",
    "task_args": "task_args",
    "tags": "tags",
    "eval_metadata": "metadata",
    "generate_config": "model_generate_config",
    "created": "created",
}


class ScoreName(NamedTuple):
    """A scorer, and the key of one of its values if it gives several."""

    scorer: str
    key: str | None = None

    def __str__(self) -> str:
        if self.key is None:
            return self.scorer
        return self.scorer + (self.key if self.key.startswith("[") else f"/{self.key}")


@lru_cache(maxsize=1000)
def plain_name(scorer: str) -> ScoreName:
    """The name of the only score of a scorer; every sample has the same few."""
    return ScoreName(scorer)


def values_of(scorer: str, value: dict[str, object] | list[object]) -> Iterator[tuple[ScoreName, object]]:
    """The scores in a value that is several.

    >>> [(str(name), value) for name, value in values_of("review", {"style": True, "length": None})]
    [('review/style', True), ('review/length', None)]
    """
    if isinstance(value, dict):
        yield from ((ScoreName(scorer, str(key)), each) for key, each in value.items())
    else:
        yield from ((ScoreName(scorer, f"[{place}]"), each) for place, each in enumerate(value))


def is_unscored(value: object) -> bool:
    """Whether a value is NaN, by which a scorer says that it could not decide."""
    return isinstance(value, Number) and math.isnan(float(value))


def known_number(value: object) -> float | None:
    """A value as Inspect's metrics count it; None if it is a word or structure that they cannot convert.

    >>> known_number("C"), known_number("yes"), known_number(True), known_number("0.5"), known_number("left")
    (1.0, 1.0, 1.0, 0.5, None)
    """
    if isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return None
    if isinstance(value, Number):
        return float(value)
    number = _LETTERS.get(value, _WORDS.get(value.lower()))
    return number_of(value) if number is None else number


def to_float(value: object) -> float:
    """A value as Inspect's metrics count it: what they cannot convert is 0."""
    return known_number(value) or 0.0


def reported_name(entry: Mapping[str, object], available: Collection[ScoreName]) -> ScoreName:
    """The score that an entry of the log's results is about; for a key of a dictionary, the entry has that name."""
    name = str(entry.get("name"))
    scorer = str(entry.get("scorer") or name)
    own = ScoreName(scorer)
    return (
        own
        if name == scorer and (own in available or ScoreName(scorer, name) not in available)
        else ScoreName(scorer, name)
    )


def choose_score(
    where: str, available: Sequence[ScoreName], reported: Sequence[ScoreName], wanted: str | None
) -> ScoreName | None:
    """The score that decides: the wanted one, else the first that the log reports on, else the first of all.

    A reported score that gives several values is returned as such, although no value has its name: none of them is
    the one to be preferred.
    """
    if wanted is not None:
        return _find(where, available, wanted)
    for name in reported:
        parts = [each for each in available if each.scorer == name.scorer and name.key in (None, each.key)]
        if parts:
            return parts[0] if len(parts) == 1 else name
    return available[0] if available else None


def _find(where: str, available: Sequence[ScoreName], wanted: str) -> ScoreName:
    exact = [name for name in available if str(name) == wanted]
    matching = exact or [name for name in available if wanted in (name.key, name.scorer)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise InputFileError(f"{where}: the score {wanted!r} is ambiguous; choose one of {listed(matching)}")
    raise InputFileError(f"{where}: no score {wanted!r}; it has {listed(available) or 'none'}")


def listed(names: Sequence[ScoreName]) -> str:
    """The first of these names, for a message."""
    return ", ".join(map(str, names[:_LISTED])) + (", …" if len(names) > _LISTED else "")


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
    # What Touchstone added to a sample that it wrote.
    exported: object = None


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
        "asked_sha": _asked(sample.get("input")),
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


def _digest_or_none(scorer: Object) -> str:
    """A digest of a scorer's options, in which there may be secrets."""
    return digest_of(shown_json(scorer["options"])) if scorer.get("options") else "none"


def _asked(value: object) -> str | None:
    """A digest of the start of what the model was asked: a text, or the texts of messages, whose ids are random.

    Summaries cut long inputs, and logs may have a reference in place of a text: then it is not known.
    """
    messages = value if isinstance(value, list) else [{"content": value}]
    parts = [_texts(each.get("content")) for each in messages if isinstance(each, dict)]
    text = "\n".join(texts for texts in parts if texts)[:_ASKED_LENGTH]
    return digest_of(text) if text and "attachment://" not in text else None


def _texts(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(each.get("text")) for each in content if isinstance(each, dict) and each.get("text"))
    return content if isinstance(content, str) else ""


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
    totals = [_tokens(each["total_tokens"]) for each in usage.values()]
    return {**own, "total_tokens": str(sum(totals)) if totals else None}


def _tokens(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < _MAX_DIGITS else 0


def verdict_cells(attempt: Attempt, name: ScoreName | None, *, is_reported: bool, scores_errors: bool) -> Cells:
    """The outcome by this score: `passed` and `classification`, or why it is undecided in `error`.

    `is_reported` says that the log has a metric of the score, which counts unknown words as 0; `scores_errors` that
    the run scores samples with errors, too.
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
    if name is not None and _is_own_failure(attempt, name):
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


def _is_own_failure(attempt: Attempt, name: ScoreName) -> bool:
    """Whether an unscored sample of a log with scores failed by what the model did."""
    if attempt.limit is not None and attempt.limit != _OPERATOR:
        return True
    return attempt.reasons.get(name.scorer) in _MODELS_REASONS


def _undecided_reason(attempt: Attempt, name: ScoreName | None, value: object) -> str:
    if name is None or name not in attempt.values:
        several = any(each.scorer == name.scorer for each in attempt.values) if name is not None else False
        return f"the score {name} has several values; choose one with --scorer" if several else "not scored"
    if value is None or is_unscored(value):
        return f"not scored ({attempt.reasons.get(name.scorer, 'no value')})"
    return f"the score {name} is {short(text_of(value))!r}, which is no verdict"


def why_no_samples(header: Object, *, finished: bool) -> str:
    """Why a log has no samples: the run ended too early, or they were not written or removed."""
    status, none = text_of(header.get("status")), "before it finished a sample"
    if inside(header, "eval", "config").get("log_samples") is False:
        return "the log has no samples: it was written with --no-log-samples"
    if not finished or status == "started":
        return "the run did not end, and finished no sample: it was killed or is still going on"
    if status == "error":
        message = short(text_of(inside(header, "error").get("message")))
        return f"the run ended with an error {none}" + (f": {message}" if message else "")
    if status not in _FINE:
        return f"the run was {status} {none}"
    count = _count(inside(header, "results").get("completed_samples")) or _planned(header)
    return (
        f"the log has none of its {count:,} samples: somebody removed them; use the whole log" if count else NO_SAMPLES
    )


def run_notes(header: Object, attempts: int, *, finished: bool) -> Iterator[str]:
    """How the run ended, and whether the file has all of it."""
    version = text_of(header.get("version"))
    if version not in _KNOWN_VERSIONS:
        yield f"log version {version} is not one that was tested ({', '.join(_KNOWN_VERSIONS)})"
    status = text_of(header.get("status"))
    if not finished or status == "started":
        yield "the run did not end: it was killed or is still going on"
    elif status not in _FINE:
        message = short(text_of(inside(header, "error").get("message")))
        yield f"the run ended with status {status}" + (f": {message}" if message else "")
    total = _planned(header)
    if total > attempts:
        yield f"{attempts:,} of {total:,} attempts are in the file"


def _planned(header: Object) -> int:
    """How many attempts the run was to have; 0 if the log does not say."""
    total = inside(header, "results").get("total_samples")
    if isinstance(total, Number):
        return _count(total)
    spec = inside(header, "eval")
    ids = inside(spec, "dataset").get("sample_ids")
    return len(ids) * (_count(inside(spec, "config").get("epochs")) or 1) if isinstance(ids, list) else 0


def _count(value: object) -> int:
    return int(value) if isinstance(value, Number) and value.isdecimal() and len(value) < 16 else 0


def score_notes(attempts: Collection[Attempt], scores: Sequence[ScoreName], chosen: ScoreName | None) -> Iterator[str]:
    """Which of several scores decides, where they disagree, and values that are not plain verdicts."""
    if chosen is None:
        yield "no sample has a score, so every attempt is undecided"
        return
    others = [name for name in scores if name != chosen]
    if chosen not in scores:
        yield f"the score {chosen} has several values and decides nothing; --scorer chooses one: {listed(others)}"
    elif others:
        yield f"the score {chosen} decides; --scorer chooses another one: {listed(others)}"
    for name in others[:5]:
        both = [(attempt.values.get(chosen), attempt.values.get(name)) for attempt in attempts]
        pairs = [(one, other) for one, other in ((known_number(a), known_number(b)) for a, b in both)]
        differ = sum((a >= PASS_VALUE) != (b >= PASS_VALUE) for a, b in pairs if a is not None and b is not None)
        if differ:
            yield f"the score {name} disagrees on whether an attempt passed for {differ:,} of {len(attempts):,}"
    values = [attempt.values[chosen] for attempt in attempts if chosen in attempt.values]
    numbers = [number for number in map(known_number, values) if number is not None]
    if any(number > PASS_VALUE or number < 0 for number in numbers):
        yield f"the score {chosen} has values from {min(numbers):g} to {max(numbers):g}; at least 1 counts as passed"
    words = sorted({value for value in values if isinstance(value, str) and known_number(value) is None})
    if words:
        yield f"the score {chosen} has values that Inspect counts as 0: {', '.join(map(repr, words[:5]))}"


def reported_figures(
    model: str,
    suite: str,
    entries: Sequence[Mapping[str, object]],
    scores: Mapping[ScoreName, Epochs],
    *,
    unreduced: bool,
) -> Iterator[ReportedFigure]:
    """One figure for every metric of every reported score. `unreduced` says that no reducer was in use."""
    for entry in entries:
        name = reported_name(entry, scores)
        reducer = entry.get("reducer")
        each_epoch = reducer is None and (unreduced or _has_reducers(entries, entry))
        epochs = scores.get(name, {})
        values = _every_epoch(epochs) if each_epoch else _reduced(epochs, str(reducer or "mean"))
        metrics = entry.get("metrics")
        for key, metric in metrics.items() if isinstance(metrics, dict) else ():
            if isinstance(metric, dict):
                label = "every epoch" if each_epoch else str(reducer or "mean")
                plain = not metric.get("params") and metric.get("group") is None
                computed = _metric(str(key), values) if plain and values is not None else None
                note = _note(label, epochs) if computed is not None else "this metric is not computed here"
                yield ReportedFigure(model, f"{name} {key} ({label})", _stated(metric), computed, suite, note)


def _has_reducers(entries: Sequence[Mapping[str, object]], entry: Mapping[str, object]) -> bool:
    """Whether the same score is reported by a named reducer, too: then this entry is over all epochs."""
    same = ("name", "scorer")
    return any(
        other.get("reducer") is not None and all(other.get(key) == entry.get(key) for key in same) for other in entries
    )


def _stated(metric: Mapping[str, object]) -> float | None:
    value = metric.get("value")
    number = float(value) if isinstance(value, Number) else math.nan
    return number if math.isfinite(number) else None


def _every_epoch(epochs: Epochs) -> list[float]:
    return [to_float(value) for values in epochs.values() for value in values if not is_unscored(value)]


def _reduced(epochs: Epochs, name: str) -> list[float] | None:
    """The value of each sample that has one; None if the reducer is not known here."""
    reduce = _reducer(name)
    if reduce is None:
        return None
    scored = ([value for value in values if not is_unscored(value)] for values in epochs.values())
    reduced = (reduce(values) for values in scored if values)
    return [value for value in reduced if value is not None]


def _reducer(name: str) -> Reducer | None:
    if match := _WITH_K.fullmatch(name):
        return partial(_of_k, match[1], int(match[2]))
    simple: dict[str, Reducer] = {
        "mean": lambda values: statistics.fmean(map(to_float, values)),
        "median": lambda values: statistics.median(map(to_float, values)),
        "max": lambda values: max(map(to_float, values)),
        "mode": lambda values: to_float(Counter(map(_comparable, values)).most_common(1)[0][0]),
    }
    return simple.get(name)


def _of_k(rule: str, k: int, values: Sequence[object]) -> float | None:
    total, correct = len(values), sum(to_float(value) >= PASS_VALUE for value in values)
    if rule == "at_least":
        return float(correct >= k)
    if total < k:
        return None
    return estimate(total, correct, k) if rule == "pass_at" else math.comb(correct, k) / math.comb(total, k)


def _comparable(value: object) -> object:
    """Numbers are counted as equal however they are written."""
    return Number(float(value)) if isinstance(value, Number | bool) else str(value)


def _metric(name: str, values: Sequence[float]) -> float | None:
    if name not in _METRICS or not values or not all(map(math.isfinite, values)):
        return None
    if name == "stderr":
        return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return statistics.fmean(values)


def _note(label: str, epochs: Epochs) -> str | None:
    """Why pass@k of the same attempts is another figure."""
    scored = [[value for value in sample if not is_unscored(value)] for sample in epochs.values()]
    reasons = []
    if len(set(map(len, scored))) > 1 or sum(map(len, scored)) < sum(map(len, epochs.values())):
        reasons.append("attempts without a score are left out here and undecided there")
    partial = any(0 < to_float(value) < PASS_VALUE for values in scored for value in values)
    if partial and not label.startswith(("pass_", "at_least")):
        reasons.append("partial credit counts here, and only a value of at least 1 is a pass")
    if label not in ("mean", "every epoch") and not label.startswith(("pass_at", "pass_k")):
        reasons.append(f"the reducer {label} is not a share of attempts")
    return "; ".join(reasons) or None


def read_inspect(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read a log into rows of text cells."""
    with without_garbage_collection():
        return _read(path, options or ReadOptions())


def _read(path: Path, options: ReadOptions) -> AdapterTable:
    reading = _Reading(path)
    with open_log(path) as opened:
        reading.take(opened)
    log = _Log(path, opened.header, reading.attempts.values(), options.score)
    if not reading.attempts and not reading.refused:
        raise InputFileError(f"{path}: {why_no_samples(log.header, finished=opened.finished)}")
    is_graded = log.is_graded()
    records = [log.record(position, attempt, is_graded=is_graded) for position, attempt in reading.attempts.items()]
    records = sorted((*records, *reading.refused), key=lambda record: record.line)
    notes = (
        *opened.notes,
        *run_notes(log.header, len(records), finished=opened.finished),
        *score_notes(log.attempts, log.scores, log.score),
        *reading.notes(scored=log.score is not None),
        *([f"only {_MAX_SCORES} of {len(log.scores):,} scores are kept"] if len(log.scores) > _MAX_SCORES else []),
        LEFT_OUT,
    )
    table = table_from_records(path, FORMAT, COLUMNS, records, _raw, shared=log.shared)
    return table.stating(log.figures(), log.settings(), notes)


def _recognizes(head: Head) -> bool:
    if head.data.startswith(ARCHIVE_MARK):
        return head.path.suffix == ".eval" or START.encode() in head.data[:100] or _is_log_archive(head.path)
    if head.has_keys("status", "eval") and ("eval", "task") in head.key_paths:
        # The ids of a large dataset may come before the model's name, which is then beyond the head.
        return not head.key_paths.isdisjoint({("eval", "model"), ("eval", "task_id")})
    # An empty or damaged log is named by its reader, too.
    return head.path.suffix == ".eval" and not head.is_folder


def _is_log_archive(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return {HEADER, START} & ZipArchive(path, file).members.keys() != set()
    except (OSError, InputFileError):
        return False


def _transcripts(table: AdapterTable) -> Iterator[tuple[int, Iterable[Step]]]:
    with open_log(table.path, keep_chat=True) as log:
        for position, sample in _numbered(log):
            if isinstance(sample.content, Mapping) and sample.content.get("messages"):
                attachments = inside(sample.content, "attachments")
                yield position, message_steps(sample.content.get("messages"), attachments=attachments)


ADAPTER = Adapter(FORMAT, "an Inspect AI log", _recognizes, read_inspect, transcripts=_transcripts)


def _recognizes_index(head: Head) -> bool:
    """Whether this is `logs.json` or `listing.json`, which have the headers of logs by file, or an `eval-set.json`."""
    logs = {path[0] for path in head.key_paths if path[1:] in (("eval",), ("eval_id",))}
    return head.has_keys("eval_set_id", "tasks") or any(name.endswith((".eval", ".json")) for name in logs)


INDEX = not_evaluated(
    "inspect-index",
    "a list of Inspect AI logs",
    _recognizes_index,
    "a list of Inspect logs; the attempts are in the logs",
    "ignored",
)


def _raw(path: Path, lines: set[int]) -> dict[int, str]:
    with open_log(path, keep_text=True) as log:
        return {
            position: sample.text[: 4 * MAX_RAW_LENGTH].decode(errors="replace")[:MAX_RAW_LENGTH]
            for position, sample in _numbered(log)
            if position in lines
        }


def _numbered(log: Log) -> Iterator[tuple[int, RawSample]]:
    return enumerate(log.samples(), start=1)


@dataclass
class _Reading:
    """All samples of one log; the verdicts follow when they and the header have been read."""

    path: Path
    attempts: dict[int, Attempt] = field(default_factory=dict)
    refused: list[Record] = field(default_factory=list)
    metadata: set[str] = field(default_factory=set)
    replaced: int = 0

    def take(self, log: Log) -> None:
        latest: dict[Key, int] = {}
        for position, sample in _numbered(log):
            if position > _MAX_SAMPLES:
                raise InputFileError(f"{self.path}: over {_MAX_SAMPLES:,} samples; split the log")
            try:
                if isinstance(sample.content, RefusedRecordError):
                    raise sample.content
                attempt = attempt_of(sample.content)
            except RefusedRecordError as refusal:
                self.refused.append(Record(position, kind=refusal.kind, reason=refusal.reason))
                continue
            attempt.cells |= self._metadata_cells(sample.content.get("metadata"))
            attempt.exported = inside(sample.content, "metadata").get(KEY)
            earlier = latest.get(attempt.key) if log.replaces else None
            if earlier is not None:
                del self.attempts[earlier]
                self.replaced += 1
            latest[attempt.key] = position
            self.attempts[position] = attempt

    def notes(self, *, scored: bool) -> Iterator[str]:
        """Notes on samples that were replaced, reached a limit though the log has scores, or have too many keys."""
        if self.replaced:
            yield f"{self.replaced:,} samples were recorded again later; the last record counts, as in Inspect"
        unscored = [attempt for attempt in self.attempts.values() if attempt.limit is not None and not attempt.values]
        if unscored and scored:
            yield f"{len(unscored):,} attempts reached a limit and have no score; they count as failed"
        if len(self.metadata) >= _MAX_METADATA:
            yield f"at most {_MAX_METADATA} keys of the samples' metadata are kept"

    def _metadata_cells(self, metadata: object) -> Cells:
        """Short values that a user may group by."""
        cells: Cells = {}
        for key, value in metadata.items() if isinstance(metadata, dict) else ():
            if isinstance(value, str | bool) and len(key) <= _MAX_KEY_LENGTH:
                if len(self.metadata) < _MAX_METADATA:
                    self.metadata.add(key)
                if key in self.metadata:
                    cells[f"metadata_{text_of(key)}"] = short(text_of(value))
        return cells


def _reported_scores(results: Object) -> Sequence[Object]:
    """The entries of the results, which version 1 has only one of."""
    if "metrics" in results:
        return [{"name": ONLY_SCORE, "metrics": results["metrics"]}]
    return objects_of(results.get("scores"))


class _Log:
    """The facts of a whole log: the score that decides, and the cells that all of its attempts share."""

    def __init__(self, path: Path, header: Object, attempts: Collection[Attempt], wanted: str | None) -> None:
        self.header = header
        self.attempts = attempts
        spec = inside(header, "eval")
        try:
            self.model, self.task = identifier_of(spec, "model"), identifier_of(spec, "task")
        except RefusedRecordError as refusal:
            raise InputFileError(f"{path}: not an Inspect log: in `eval`, {refusal.reason}") from None
        self.entries = _reported_scores(inside(header, "results"))
        self.scores = list(dict.fromkeys(name for attempt in attempts for name in attempt.values))
        known = frozenset(self.scores)
        self.reported = [reported_name(entry, known) for entry in self._with_metrics()]
        self.score = choose_score(str(path), self.scores, self.reported, wanted)
        self.shared = self._shared_cells(spec)
        # Asked for every attempt.
        self._is_reported = self.score in self.reported
        self._scores_errors = inside(header, "eval", "config").get("score_on_error") is True
        self._score_columns = [(name, f"score_{text_of(str(name))}") for name in self.scores[:_MAX_SCORES]]

    def _with_metrics(self) -> Iterator[Object]:
        """The scores that have a metric: first the headline, then by the results, or by the plan of a killed run."""
        headline = inside(self.header, "results", "headline")
        if headline:
            yield {"name": headline.get("score"), "scorer": headline.get("scorer")}
        yield from (entry for entry in self.entries if entry.get("metrics"))
        for scorer in objects_of(inside(self.header, "eval").get("scorers")):
            name, metrics = str(scorer.get("name")), scorer.get("metrics")
            # Old plans do not list metrics.
            by_score = metrics if isinstance(metrics, dict) else {name: metrics is None or metrics}
            yield from ({"name": each, "scorer": name} for each, found in by_score.items() if found)

    def _shared_cells(self, spec: Object) -> Cells:
        return {
            "llm_name": self.model,
            "suite": self.task,
            "run_id": text_of(spec.get("run_id")),
            "score": None if self.score is None else short(text_of(str(self.score))),
            "log_status": text_of(self.header.get("status")),
            "dataset": text_of(inside(spec, "dataset").get("name")),
            **{name: short(text_of(spec.get(key))) for name, key in _SPEC.items()},
        }

    def settings(self) -> list[StatedSetting]:
        """How the model was run and scored. What an evaluation does not set is Inspect's default."""
        spec, plan = inside(self.header, "eval"), inside(self.header, "plan")
        found: list[StatedSetting] = []
        if exported_model(spec):
            return found

        def add(dimension: Dimension, values: Object, names: str, unset: str | None = None) -> None:
            found.extend(stated_settings(self.model, dimension, values, names, self.task, unset))

        if isinstance(spec.get("model_generate_config"), Mapping):
            generation = {**inside(plan, "config"), **inside(spec, "model_generate_config")}
            add("generation", generation, _GENERATION, "default")
        if isinstance(spec.get("config"), Mapping):
            limits = "message_limit token_limit time_limit working_limit cost_limit"
            add("limits", inside(spec, "config"), limits, "none")
        own = self.score.scorer if self.score else None
        options = [_digest_or_none(each) for each in objects_of(spec.get("scorers")) if each.get("name") == own]
        add("scorer", {"score": self.shared["score"], "options": options[0] if options else None}, "score options")
        solvers = [str(step.get("solver")) for step in objects_of(plan.get("steps"))]
        add("agent", {"solver": " > ".join(solvers) or spec.get("solver")}, "solver")
        add("task_version", self.shared, "task_version")
        add("harness", inside(spec, "packages"), "inspect_ai")
        arguments = digest_of(shown_json(spec["task_args"])) if spec.get("task_args") else None
        add("harness", {"task_args": arguments, "dataset": self.shared["dataset"]}, "task_args dataset")
        return found

    def record(self, position: int, attempt: Attempt, *, is_graded: bool) -> Record:
        cells = attempt.cells
        cells |= usage_cells(attempt, self.model)
        cells["oid"] = f"{self.task}/{text_of(attempt.key[0])}"
        cells |= verdict_cells(attempt, self.score, is_reported=self._is_reported, scores_errors=self._scores_errors)
        if self.score is not None:
            cells["answer"] = attempt.answers.get(self.score.scorer)
            number = known_number(attempt.values.get(self.score)) if is_graded else None
            if number is not None and 0 <= number <= 1 and cells.get("passed") is not None:
                cells["weighted_score"] = str(number)
        for name, column in self._score_columns:
            cells[column] = short(text_of(attempt.values.get(name)))
        restore(cells, attempt.exported)
        return Record(position, cells)

    def is_graded(self) -> bool:
        """Whether the score that decides gives partial credit."""
        numbers = (known_number(attempt.values.get(self.score)) for attempt in self.attempts if self.score)
        return any(number is not None and 0 < number < PASS_VALUE for number in numbers)

    def figures(self) -> list[ReportedFigure]:
        epochs: dict[ScoreName, dict[str, list[object]]] = {}
        # Which of several modes is reported depends on the order of epochs.
        for attempt in sorted(self.attempts, key=lambda each: (len(each.key[1]), each.key[1])):
            for name, value in attempt.values.items():
                epochs.setdefault(name, {}).setdefault(attempt.key[0], []).append(value)
        unreduced = inside(self.header, "eval", "config").get("epochs_reducer") == []
        figures = reported_figures(self.model, self.task, self.entries, epochs, unreduced=unreduced)
        finished = _count(inside(self.header, "results").get("completed_samples"))
        if finished <= len(self.attempts):
            return list(figures)
        note = f"the file has {len(self.attempts):,} of {finished:,} attempts, so the figure cannot be computed from it"
        return [replace(figure, recomputed=None, note=note) for figure in figures]
