"""The work of a worker process on batches of jobs: validate each, check the shape of its report, and keep it.

`open_worker` is called once in each process; then workers map `validate_batch` over batches.
"""

import errno
import functools
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from touchstone.config.validation import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.regular_files import UnsafePathError
from touchstone.validation.cache import ReportCache
from touchstone.validation.protocol import Job, Report, Validator
from touchstone.validation.registry import ValidatorRegistry
from touchstone.validation.sandbox.backends import Backend, Bubblewrap, Landlock, Unsandboxed
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.vocabulary import STATUSES
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


# The shape of a report, checked where it comes from a sandbox. The fix may have run there, so nothing about its report
# is taken for granted: every type, length and count. What the contents mean belongs in `judging`.

# Far more than any validator reports, and few enough to be kept and compared.
_MAX_ENTRIES = 50_000
_MAX_TEXT = 1_000_000
_MAX_TOTAL_TEXT = 16_000_000
_MAX_NUMBER = 2**31
_PLAIN_VALUES: dict[Any, Callable[[Any], bool]] = {
    str: lambda value: isinstance(value, str) and len(value) <= _MAX_TEXT,
    # Lines, columns and counts. Parsers number lines from -1, 0 or 1.
    int: lambda value: isinstance(value, int) and not isinstance(value, bool) and -1 <= value <= _MAX_NUMBER,
    float: lambda value: isinstance(value, int | float) and math.isfinite(value),
    bool: lambda value: isinstance(value, bool),
    NoneType: lambda value: value is None,
}


def well_formed(report: Report) -> Report:
    """The report itself; or `no_report`, which is a failure, if a field has another type or size than it should.

    >>> from touchstone.validation.protocol import Diagnostic
    >>> well_formed(Report("failed", "full", (Diagnostic("error", "x", line="3"),))).note  # type: ignore[arg-type]
    'the report is malformed: diagnostics'
    """
    faults = (name for name, hint in _field_hints(Report).items() if not _fits(getattr(report, name), hint))
    fault = next(faults, None)
    if fault is None and report.status not in STATUSES:
        fault = "status"
    if fault is None and sum(len(one.summary) + len(one.detail) for one in report.diagnostics) > _MAX_TOTAL_TEXT:
        fault = f"diagnostics of more than {_MAX_TOTAL_TEXT:,} characters"
    if fault is None:
        return report
    fidelity = report.fidelity if _fits(report.fidelity, str) else ""
    return Report("no_report", fidelity, note=f"the report is malformed: {fault}")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what its type hint says, at every depth, and not too large."""
    if (check := _PLAIN_VALUES.get(hint)) is not None:
        return check(value)
    origin, kinds = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return any(_fits(value, kind) for kind in reversed(kinds))
    if origin is Literal:
        return value in kinds
    if origin is None:  # a dataclass
        return isinstance(value, hint) and all(_fits(getattr(value, name), h) for name, h in _field_hints(hint).items())
    if not isinstance(value, origin) or len(value) > _MAX_ENTRIES:
        return False
    if origin is Mapping:
        return all(_fits(name, kinds[0]) and _fits(one, kinds[1]) for name, one in value.items())
    each = kinds[:1] * len(value) if kinds[-1] is Ellipsis else kinds
    return len(each) == len(value) and all(map(_fits, value, each))


@functools.cache
def _field_hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
