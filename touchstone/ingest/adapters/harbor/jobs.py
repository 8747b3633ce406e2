"""Adapter for Harbor: a job's folder, a folder of jobs, or the `result.json` of a job or of a single trial.

A trial is an attempt; those of a model at a task are numbered by their start, across all jobs that are read together.
It passed if its reward is at least 1. Several rewards need `--scorer` unless one is called `reward`. A task is unique
within its dataset (`source`), which is the suite. Transcripts and configurations are left out.

Only the `result.json` of a trial's own folder is read: what is below it may have been written by the agent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, ReadOptions
from touchstone.ingest.adapters.folders import (
    bounded_document,
    is_file,
    object_in,
    raw_from_elements,
    refuse,
    scalar_of,
    some_subfolders,
    subfolders,
)
from touchstone.ingest.adapters.harbor.figures import job_figures
from touchstone.ingest.adapters.harbor.trial import COLUMNS, trial_cells
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.json_values import object_of
from touchstone.ingest.adapters.table import AdapterTable, Record, RefusedRecordError, table_from_records
from touchstone.ingest.adapters.tool_figures import number_of
from touchstone.ingest.adapters.trials import number_by_time, separate_agents
from touchstone.text import counted_of
from touchstone.vocabulary import MAX_COUNT

FORMAT = "harbor"
_RESULT = "result.json"


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
    records = [_record(line, trial, options.score) for line, trial in enumerate(trials, start=1)]
    if not records:
        raise InputFileError(f"{path}: the job has no finished trial")
    _keep_scores_if_graded(records)
    notes = [*(note for job in jobs for note in job.notes), *separate_agents(records)]
    accepted = [(record, trial) for record, trial in zip(records, trials, strict=True) if record.kind is None]
    number_by_time(
        (record, trial.get("started_at"), record.cells["trial_name"] or "")
        for record, trial in accepted
        if isinstance(trial, dict)
    )
    done = 0
    figures = []
    for job in jobs:
        figures += job_figures(job.result, records[done : done + len(job.trials)])
        done += len(job.trials)
    return table_from_records(
        path,
        FORMAT,
        COLUMNS,
        records,
        raw_from_elements(lambda _: enumerate(trials, start=1)),
        files=[file for job in jobs for file in job.files],
        figures=figures,
        notes=notes,
    )


def _recognizes(head: Head) -> bool:
    if head.is_folder:
        return _is_job(head.path) or _is_trial(head.path) or any(map(_is_job, some_subfolders(head.path)))
    return _is_job_result(head) or _is_trial_result(head)


ADAPTER = Adapter(FORMAT, "Harbor results", _recognizes, read_harbor)


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
    embedded = job.result.get("trial_results")
    for trial in embedded if isinstance(embedded, list) else []:
        if not isinstance(trial, dict) or scalar_of(trial.get("trial_name")) not in known:
            job.trials.append(trial)


def _note_unfinished(job: _Job, folder: Path) -> None:
    total = number_of(job.result.get("n_total_trials"))
    if total is not None and len(job.trials) < total <= MAX_COUNT:
        unfinished = counted_of(int(total) - len(job.trials), int(total), "trial")
        job.notes.append(f"{folder.name}: {unfinished} did not finish, and so are left out")


def _record(line: int, trial: object, score: str | None) -> Record:
    record = Record(line)
    try:
        if isinstance(trial, RefusedRecordError):
            raise trial
        trial_cells(record, object_of(trial, "trial"), score)
    except RefusedRecordError as refusal:
        refuse(record, refusal)
    return record


def _keep_scores_if_graded(records: list[Record]) -> None:
    """Rewards of 0 and 1 are outcomes, not graded scores."""
    scores = {number_of(record.cells.get("weighted_score")) for record in records}
    if scores <= {None, 0.0, 1.0}:
        for record in records:
            record.cells.pop("weighted_score", None)
