"""The reports on many trees: from the cache if possible, else from validators in worker processes.

Reports are cached as they are produced, so a killed run resumes where it stopped.
"""

import hashlib
import multiprocessing
import os
import shutil
from collections import ChainMap, Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Self

from touchstone.config import WorkerSettings
from touchstone.config.validation import ValidationSettings
from touchstone.progress import report_warning, track
from touchstone.text import counted
from touchstone.validation.cache import VARIABLE, ReportCache, report_key
from touchstone.validation.cluster import ValidationCluster
from touchstone.validation.files.file_identity import packages_stay
from touchstone.validation.files.working_copy import HashedTree
from touchstone.validation.fixes.apply_fix import AppliedFix
from touchstone.validation.protocol import Availability, Job, Report
from touchstone.validation.registry import ValidatorRegistry
from touchstone.validation.sandbox.runner import SandboxRunner, choose_sandbox
from touchstone.validation.targets import Target
from touchstone.validation.validators.common import unavailable
from touchstone.validation.worker import Batch, ValidationWorker, open_worker, report_on_error, validate_batch
from touchstone.workers import Workers
from touchstone.workers.processes import ProcessWorkers, SerialWorkers

# Below this many jobs, starting processes costs more time than it saves.
_MIN_JOBS_FOR_PROCESSES = 8
_BATCHED = ("hcl", "python")


@dataclass(frozen=True)
class Request:
    """A tree to validate, and the cache key of its report."""

    key: str
    validator: str
    job: Job


@dataclass(frozen=True)
class CachedReport:
    """A report, with `cached` set if it came from the cache rather than from a validator."""

    report: Report
    cached: bool


class ValidationSession:
    """The sandbox, cache and workers of one run, each created on first use and kept until `close`.

    `fresh=True` ignores cached reports and validates everything again.
    """

    def __init__(
        self,
        settings: ValidationSettings,
        cache_dir: Path,
        scratch: Path,
        *,
        fresh: bool = False,
        workers: WorkerSettings | None = None,
    ) -> None:
        self.settings, self.cache_dir, self.fresh = settings, cache_dir, fresh
        self._worker_settings = workers or WorkerSettings(count=settings.workers)
        self._scratch = scratch
        # The problems' files as they were hashed, by folder.
        self._trees: dict[Path, HashedTree] = {}
        self._requested_keys: set[str] = set()
        self._said_ignored = False
        # Decided but not settled: the cache does not store them, and one try per run is enough.
        self._unsettled: dict[str, Report] = {}
        # Settled reports on problems and their reference fixes.
        self._problem_reports: dict[str, CachedReport] = {}
        self._available: dict[str, Availability] = {}
        self._workers: dict[type, Workers] = {}
        self._cluster: ValidationCluster | None = None
        self._open = ExitStack()
        # Reports finished by all workers, so that progress does not wait for whole batches.
        self._finished_reports: Synchronized[int] = multiprocessing.get_context("spawn").Value("q", 0)

    def __enter__(self) -> Self:
        self._open.enter_context(packages_stay())
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all workers and sandboxes."""
        for workers in self._workers.values():
            workers.close()
        self._workers.clear()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
        self._open.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    @cached_property
    def sandbox(self) -> SandboxRunner:
        """The sandbox of this run. Raises TouchstoneError if no backend holds."""
        return choose_sandbox(self._scratch, self.settings.sandbox, self.settings.unsandboxed)

    @cached_property
    def registry(self) -> ValidatorRegistry:
        """The validators of this process. Those that a probe has started validate here too, if few jobs are left."""
        return self._open.enter_context(closing(ValidatorRegistry(self.sandbox, self.settings)))

    def available(self, validator: str) -> Availability:
        """Whether a validator works on this machine."""
        if validator not in self._available:
            self._available[validator] = self.registry.available(validator)
        return self._available[validator]

    def request(self, target: Target, fix: AppliedFix | bytes | None) -> Request:
        """A request for the unmodified problem (None) or a changed one; bytes replace the problem's file."""
        problem, tree = target.problem, target.tree
        self._trees[tree.root] = target.hashed
        if isinstance(fix, AppliedFix):
            tree = tree.with_changes(fix.changes, fix.executable)
        elif fix is not None:
            tree = tree.with_file(problem.path, fix)
        key = report_key(target.hashed.hash_of(tree), self.registry.conditions_key(problem, target.validator))
        return Request(key, target.validator, Job(problem, tree, is_fix=fix is not None))

    def reports(self, requests: Sequence[Request], what: str, retried: Collection[str] = ()) -> dict[str, CachedReport]:
        """The report of every request, by key. `retried`: keys whose timeouts are never settled."""
        wanted = {request.key: request for request in requests}
        known = self._reusable_reports(wanted, retried)
        missing = [request for key, request in wanted.items() if key not in known]
        known |= {
            request.key: CachedReport(unavailable(self.available(request.validator), ""), False)
            for request in missing
            if not self.available(request.validator).usable
        }
        with self._counting(requests, known, what) as count:
            for some in self._validate([request for request in missing if request.key not in known]):
                known.update((request.key, CachedReport(report, False)) for request, report in some)
                count(request.key for request, _ in some)
        self._retry_starved([request for request in missing if known[request.key].report.starved], known)
        self._unsettled |= {
            request.key: report
            for request in missing
            if (report := known[request.key].report).decided and not _is_final(report, request.key in retried)
        }
        return known

    def problem_reports(
        self, baselines: Sequence[Request], references: Sequence[Request] = ()
    ) -> Mapping[str, CachedReport]:
        """The reports on problems, by key. Every model's fixes need them, so settled ones are looked up once.

        A reference fix that times out stops every run, so the next run tries it again.
        """
        new = [request for request in (*baselines, *references) if request.key not in self._problem_reports]
        retried = {request.key for request in references}
        found = self.reports(new, "validating the problems", retried) if new else {}
        self._problem_reports |= {key: one for key, one in found.items() if _is_final(one.report, key in retried)}
        return ChainMap(found, self._problem_reports)

    @contextmanager
    def _counting(
        self, requests: Sequence[Request], known: Mapping[str, CachedReport], what: str
    ) -> Iterator[Callable[[Iterable[str]], None]]:
        """Show progress by request. A tree that several requests share is validated once and counts for each."""
        times = Counter(request.key for request in requests)
        cached = sum(times[key] for key, one in known.items() if one.cached)
        left = {key: count for key, count in times.items() if key not in known}
        before = self._finished_reports.value

        def finished() -> int:
            return (self._finished_reports.value - before) * sum(left.values()) // max(len(left), 1)

        with track(what, len(requests), cached, finished) as advance:
            advance(len(requests) - cached - sum(left.values()))
            yield lambda keys: advance(sum(times[key] for key in keys))

    def _reusable_reports(self, keys: Collection[str], retried: Collection[str]) -> dict[str, CachedReport]:
        """Reports that need no validation: from the cache, or from earlier in this run."""
        with ReportCache(self.cache_dir) as cache:
            if self.fresh:
                cache.forget(set(keys) - self._requested_keys)
            self._requested_keys.update(keys)
            found = cache.find(keys)
            again = {key for key in retried if key in found and found[key].status == "timeout"} - self._unsettled.keys()
            cache.forget(again)
            self._say_ignored(cache)
        found = {key: report for key, report in found.items() if key not in again}
        found |= {key: self._unsettled[key] for key in keys if key in self._unsettled}
        return {key: CachedReport(report, True) for key, report in found.items()}

    def _say_ignored(self, cache: ReportCache) -> None:
        """Say once that the cache has reports of others."""
        if cache.ignored and not self._said_ignored:
            self._said_ignored = True
            reports = counted(max(cache.ignored, cache.statistics().foreign), "report was", "reports were")
            report_warning(
                f"{cache.path}: {reports} edited or made by others, and not used; "
                f"machines that share a cache need the same {VARIABLE}"
            )

    def _retry_starved(self, starved: Sequence[Request], known: dict[str, CachedReport]) -> None:
        """Validate again, one at a time, what timed out for lack of CPU; the second result counts."""
        if not starved:
            return
        with track("validating again, one at a time", len(starved)) as advance:
            for request in starved:
                report = self._validate_alone(request)
                if report.cpu_used and report.starved:  # twice, and the machine is as busy as ever
                    report = replace(report, starved=False)
                    with ReportCache(self.cache_dir) as cache:
                        cache.keep(request.key, request.validator, report)
                known[request.key] = CachedReport(report, False)
                advance(1, "")

    def _validate_alone(self, request: Request, *, keep: bool = True) -> Report:
        [(_, outcome)] = self._map_batches(self._in_process_workers, [[request]], keep)
        return _reports(outcome, [request])[0]

    def repeats(self, requests: Iterable[Request], times: int) -> dict[str, list[Report]]:
        """So many further reports on each tree, by key. They neither come from the cache nor go into it."""
        usable = {request.key: request for request in requests if self.available(request.validator).usable}
        again = [request for request in usable.values() for _ in range(times)]
        found: dict[str, list[Report]] = {key: [] for key in usable}
        starved: list[Request] = []
        before = self._finished_reports.value
        with track("validating again", len(again), 0, lambda: self._finished_reports.value - before) as advance:
            for some in self._validate(again, keep=False):
                for request, report in some:
                    if report.starved:
                        starved.append(request)
                    else:
                        found[request.key].append(report)
                advance(len(some))
        for request in starved:
            found[request.key].append(self._validate_alone(request, keep=False))
        return found

    def _validate(self, requests: Sequence[Request], *, keep: bool = True) -> Iterator[list[tuple[Request, Report]]]:
        """Yield the reports batch by batch, as they arrive. A batch that kills its process is redone job by job."""
        cluster = self._open_cluster(requests)
        batches = self._batches(requests)
        workers = cluster or self._workers_for(len(requests), len(batches))
        while batches:
            lost: list[list[Request]] = []
            for some, outcome in self._map_batches(workers, batches, keep):
                if isinstance(outcome, BaseException) and len(some) > 1:
                    lost += [[request] for request in some]
                else:
                    yield list(zip(some, _reports(outcome, some), strict=True))
            batches = lost

    def _batches(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Batches of one validator each: one process runs a batch, and one call lints all of it."""
        by_validator: dict[str, list[Request]] = {}
        for request in requests:
            by_validator.setdefault(request.validator, []).append(request)
        batches = []
        for validator, some in by_validator.items():
            # Few environments have warm workers, and a folder is sent to every worker that needs it: those of one
            # environment and folder follow each other.
            some.sort(key=lambda one: (str(one.job.problem.environment or ""), str(one.job.tree.root)))
            size = batch_size(len(some), self.worker_count, together=validator in _BATCHED)
            batches += [some[start : start + size] for start in range(0, len(some), size)]
        return batches

    def _map_batches(
        self, workers: Workers | ValidationCluster, batches: Sequence[list[Request]], keep: bool
    ) -> Iterator[tuple[list[Request], list[Report] | BaseException]]:
        items = [
            Batch(some[0].validator, [one.key for one in some], [one.job for one in some], keep) for some in batches
        ]
        mapped = workers.map(items) if isinstance(workers, ValidationCluster) else workers.map(validate_batch, items)
        for place, outcome in mapped:
            yield batches[place], outcome

    @property
    def worker_count(self) -> int:
        """The number of workers of a cluster, or the configured number, else one per core."""
        if self._cluster is not None:
            return self._cluster.worker_count
        one = self._worker_settings.kind == "in_process"
        return 1 if one else self._worker_settings.count or len(os.sched_getaffinity(0))

    def _workers_for(self, jobs: int, batches: int) -> Workers:
        if ProcessWorkers in self._workers:
            return self._workers[ProcessWorkers]
        kind = self._worker_settings.kind
        few = self.worker_count == 1 or batches == 1 or jobs < _MIN_JOBS_FOR_PROCESSES
        if kind == "in_process" or (few and kind == "auto"):
            return self._in_process_workers
        self.registry.close()  # others do the validating
        given = (self.sandbox.name, self._scratch, self.settings, self.cache_dir, self._finished_reports)
        return self._workers.setdefault(ProcessWorkers, ProcessWorkers(self.worker_count, open_worker, given))

    def _open_cluster(self, requests: Sequence[Request]) -> ValidationCluster | None:
        """The cluster that the configuration names, if any."""
        if self._cluster is None and self._worker_settings.kind == "dask" and requests:
            validators = sorted({request.validator for request in requests})
            self.registry.close()
            given = (self._worker_settings, self.registry, validators, self.cache_dir, self._trees)
            self._cluster = ValidationCluster(*given)
        return self._cluster

    @property
    def _in_process_workers(self) -> Workers:
        """Serial workers in this process."""
        workers = SerialWorkers(ValidationWorker, (self.registry, self.cache_dir, self._finished_reports))
        return self._workers.setdefault(SerialWorkers, workers)

    def fingerprint(self, targets: Mapping[str, object]) -> list[object]:
        """Everything besides attempts that baselines and outcomes depend on, including removals from the cache."""
        keys = {}
        for oid, target in targets.items():
            # Reports do not depend on a problem's lines or reference fix, but verdicts do.
            about = replace(target.problem, root=Path()) if isinstance(target, Target) else target
            key = self.request(target, None).key if isinstance(target, Target) else ""
            keys[oid] = hashlib.sha256(f"{key} {about!r}".encode("utf-8", "replace")).hexdigest()
        with ReportCache(self.cache_dir) as cache:
            edition = cache.edition
        # Repeats matter by the tests that they exclude, which is up to the caller.
        irrelevant = {"workers", "cache_dir", "environments_dir", "repeat", "repeat_fixes", "exclude_flaky", "mutants"}
        return [self.settings.model_dump(mode="json", exclude=irrelevant), keys, edition]


def batch_size(jobs: int, workers: int, *, together: bool) -> int:
    """How many jobs a batch has; `together`: their validator gains from batches.

    Four batches or more for each worker, so that all end at about the same time. A batch costs the scheduler of a
    cluster and this process some milliseconds, whatever its size, so many workers get large ones.

    >>> [batch_size(10**7, workers, together=True) for workers in (2, 200, 1000)]
    [100, 100, 500]
    >>> [batch_size(10**7, workers, together=False) for workers in (2, 200, 1000)]
    [1, 2, 10]
    """
    fair_share = -(-jobs // (workers * 4))
    return min(fair_share, max(100, workers // 2) if together else max(1, workers // 100))


def _is_final(report: Report, retried: bool) -> bool:
    return report.settled and not (retried and report.status == "timeout")


def _reports(outcome: list[Report] | BaseException, requests: Sequence[Request]) -> list[Report]:
    if isinstance(outcome, BaseException):
        return [report_on_error(request.job, outcome) for request in requests]
    return outcome
