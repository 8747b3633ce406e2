"""Adapter for logs of Inspect AI: `.eval` archives and `.json` files, one task with one model each.

A sample is a problem and an epoch an attempt. Ids of samples are unique within a task, so the oid is
`<task>/<sample id>` and the task is the suite. One score decides: the wanted one, else the headline or the first of
the log's results; a value of at least 1 (or "C") is a pass. All scores are kept as `score_<name>`.

`run_id` is Inspect's run, `eval_id` the log. A log made by `eval-retry` has the `task_id` of the first one and copies
of its finished samples, which keep their `sample_uuid`; a log of an independent run has a `task_id` of its own.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, ReadOptions
from touchstone.ingest.adapters.garbage import without_garbage_collection
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.inspect_ai.figures import reported_figures
from touchstone.ingest.adapters.inspect_ai.notes import LEFT_OUT, run_notes, score_notes
from touchstone.ingest.adapters.inspect_ai.samples import (
    ONLY_SCORE,
    Attempt,
    attempt_of,
    short,
    usage_cells,
    verdict_cells,
)
from touchstone.ingest.adapters.inspect_ai.scores import (
    PASS_VALUE,
    ScoreName,
    choose_score,
    known_number,
    reported_name,
)
from touchstone.ingest.adapters.inspect_ai.source import (
    ARCHIVE_MARK,
    HEADER,
    START,
    Key,
    Log,
    Object,
    RawSample,
    open_log,
    section,
)
from touchstone.ingest.adapters.json_values import identifier_of, text_of
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    Record,
    RefusedRecordError,
    ReportedFigure,
    table_from_records,
)
from touchstone.ingest.adapters.zip_archive import ZipArchive
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH
from touchstone.regular_files import open_regular

FORMAT = "inspect"
COLUMNS = (
    "oid",
    "iteration_id",
    "llm_name",
    "suite",
    "run_id",
    "passed",
    "classification",
    "weighted_score",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost_usd",
    "duration_seconds",
    "error",
    "score",
    "answer",
    "limit",
    "retries",
    "sample_uuid",
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
        raise InputFileError(f"{path}: the log has no samples; was it written with --no-log-samples?")
    is_graded = log.is_graded()
    records = [log.record(position, attempt, is_graded=is_graded) for position, attempt in reading.attempts.items()]
    records = sorted((*records, *reading.refused), key=lambda record: record.line)
    notes = (
        *opened.notes,
        *run_notes(log.header, len(records), finished=opened.finished),
        *score_notes(log.attempts, log.scores, log.score),
        *reading.notes(),
        *([f"only {_MAX_SCORES} of {len(log.scores):,} scores are kept"] if len(log.scores) > _MAX_SCORES else []),
        LEFT_OUT,
    )
    return table_from_records(
        path, FORMAT, COLUMNS, records, _raw, shared=log.shared, figures=log.figures(), notes=notes
    )


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


ADAPTER = Adapter(FORMAT, "an Inspect AI log", _recognizes, read_inspect)


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
            earlier = latest.get(attempt.key) if log.replaces else None
            if earlier is not None:
                del self.attempts[earlier]
                self.replaced += 1
            latest[attempt.key] = position
            self.attempts[position] = attempt

    def notes(self) -> Iterator[str]:
        """What was read otherwise than it stands in the file."""
        if self.replaced:
            yield f"{self.replaced:,} samples were recorded again later; the last record counts, as in Inspect"
        unscored = [attempt for attempt in self.attempts.values() if attempt.limit is not None and not attempt.values]
        if unscored:
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


def _objects(values: object) -> list[Object]:
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def _reported_scores(results: Object) -> list[Object]:
    """The entries of the results, which version 1 has only one of."""
    if "metrics" in results:
        return [{"name": ONLY_SCORE, "metrics": results["metrics"]}]
    return _objects(results.get("scores"))


class _Log:
    """What a log as a whole says: the score that decides, and the cells that all of its attempts share."""

    def __init__(self, path: Path, header: Object, attempts: Collection[Attempt], wanted: str | None) -> None:
        self.header = header
        self.attempts = attempts
        spec = section(header, "eval")
        try:
            self.model, self.task = identifier_of(spec, "model"), identifier_of(spec, "task")
        except RefusedRecordError as refusal:
            raise InputFileError(f"{path}: not an Inspect log: in `eval`, {refusal.reason}") from None
        self.entries = _reported_scores(section(header, "results"))
        self.scores = list(dict.fromkeys(name for attempt in attempts for name in attempt.values))
        known = frozenset(self.scores)
        self.reported = [reported_name(entry, known) for entry in self._with_metrics()]
        self.score = choose_score(str(path), self.scores, self.reported, wanted)
        self.shared = self._shared_cells(spec)
        # Asked for every attempt.
        self._is_reported = self.score in self.reported
        self._scores_errors = section(header, "eval", "config").get("score_on_error") is True
        self._score_columns = [(name, f"score_{text_of(str(name))}") for name in self.scores[:_MAX_SCORES]]

    def _with_metrics(self) -> Iterator[Object]:
        """The scores that have a metric: first the headline, then by the results, or by the plan of a killed run."""
        headline = section(self.header, "results", "headline")
        if headline:
            yield {"name": headline.get("score"), "scorer": headline.get("scorer")}
        yield from self.entries
        for scorer in _objects(section(self.header, "eval").get("scorers")):
            metrics = scorer.get("metrics")
            for name in metrics if isinstance(metrics, dict) else [scorer.get("name")]:
                yield {"name": name, "scorer": scorer.get("name")}

    def _shared_cells(self, spec: Object) -> Cells:
        return {
            "llm_name": self.model,
            "suite": self.task,
            "run_id": text_of(spec.get("run_id")),
            "score": None if self.score is None else short(text_of(str(self.score))),
            "log_status": text_of(self.header.get("status")),
            "dataset": text_of(section(spec, "dataset").get("name")),
            **{name: short(text_of(spec.get(key))) for name, key in _SPEC.items()},
        }

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
        unreduced = section(self.header, "eval", "config").get("epochs_reducer") == []
        return list(reported_figures(self.model, self.task, self.entries, epochs, unreduced=unreduced))
