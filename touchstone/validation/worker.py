"""What a worker process does with batches of jobs: validate each, and keep the reports.

`open_worker` is called once in each process; then workers map `validate_batch` over batches.
"""

import errno
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from touchstone.config.validation import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.validation.cache import ReportCache
from touchstone.validation.files.open_beneath import UnsafePathError
from touchstone.validation.protocol import Job, Report, Validator
from touchstone.validation.registry import ValidatorRegistry
from touchstone.validation.report_shape import well_formed
from touchstone.validation.sandbox.backends import Backend, Bubblewrap, Landlock, Unsandboxed
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.workers import WorkerState

_WRITE_EVERY_SECONDS = 0.5
_MAX_NOTE = 500
# The machine lacks something, whatever the fix says.
_MACHINE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EROFS)
_BACKENDS: dict[str, type[Backend]] = {kind.name: kind for kind in (Bubblewrap, Landlock, Unsandboxed)}


@dataclass(frozen=True)
class Batch:
    """Jobs for one validator, to be run by one process, and the cache keys of their reports.

    `keep=False` leaves the reports out of the cache.
    """

    validator: str
    keys: Sequence[str]
    jobs: Sequence[Job]
    keep: bool = True


@dataclass
class ValidationWorker(WorkerState):
    """The validators of this process, the cache that reports go into, and the counter of finished reports."""

    registry: ValidatorRegistry
    cache_dir: Path
    finished_reports: "Synchronized[int]"

    def close(self) -> None:
        """Stop everything that this process keeps running."""
        self.registry.close()


def open_registry(backend: str, scratch: Path, settings: ValidationSettings) -> ValidatorRegistry:
    """The validators of this process, in a sandbox that was chosen before."""
    return ValidatorRegistry(SandboxRunner(_BACKENDS[backend](), scratch / str(os.getpid())), settings)


def open_worker(
    backend: str, scratch: Path, settings: ValidationSettings, cache_dir: Path, finished_reports: "Synchronized[int]"
) -> ValidationWorker:
    """Prepare this process for `validate_batch`, which counts its reports in `finished_reports`."""
    return ValidationWorker(open_registry(backend, scratch, settings), cache_dir, finished_reports)


def validate_batch(worker: ValidationWorker, batch: Batch) -> list[Report]:
    """The reports on a batch's jobs, in order. Each reaches the cache within half a second."""
    reports: list[Report] = []
    kept, kept_at = 0, time.monotonic()
    with ReportCache(worker.cache_dir) as cache:
        for report in validate_each(worker.registry.validator(batch.validator), batch.jobs):
            reports.append(report)
            with worker.finished_reports.get_lock():
                worker.finished_reports.value += 1
            done = len(reports) == len(batch.jobs)
            if batch.keep and (done or time.monotonic() - kept_at > _WRITE_EVERY_SECONDS):
                cache.keep_all(batch.validator, zip(batch.keys[kept:], reports[kept:], strict=False))
                kept, kept_at = len(reports), time.monotonic()
    return reports


def validate_each(validator: Validator, jobs: Sequence[Job]) -> Iterator[Report]:
    """One well-formed report per job, in order. A job that makes the validator raise costs no other its report."""
    done = 0
    try:
        for report in validator.validate(jobs):
            done += 1
            yield well_formed(report)
    except Exception:
        # The fault may be anywhere in the batch, so each remaining job is validated alone.
        for job in jobs[done:]:
            try:
                (report,) = validator.validate([job])
            except Exception as error:
                report = report_on_error(job, error)
            yield well_formed(report)


def report_on_error(job: Job, error: BaseException) -> Report:
    """The report on a job that cannot be validated: a failure if the fix can have caused it, else undecided."""
    if isinstance(error, UnsafePathError):
        return Report("unsafe_input", "", note=str(error)[:_MAX_NOTE])
    machine = isinstance(error, TouchstoneError) or (isinstance(error, OSError) and error.errno in _MACHINE_ERRORS)
    status = "no_report" if job.is_fix and not machine else "sandbox_error"
    return Report(status, "", note=f"{type(error).__name__}: {error}"[:_MAX_NOTE])
