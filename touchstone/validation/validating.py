"""Getting the reports on many trees: from the cache where they are known, else from validators in worker processes.

Reports are kept as they are made, so a run that was killed goes on where it stopped.
"""

import multiprocessing
import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Self

from touchstone.config import ValidationSettings
from touchstone.progress import track
from touchstone.validation.cache import ReportCache, conditions_key, report_key
from touchstone.validation.protocol import Availability, Job, Problem, Report
from touchstone.validation.registry import Batch, Station, close_station, open_station, work
from touchstone.validation.sandbox.probing import choose_sandbox
from touchstone.validation.sandbox.running import Confined
from touchstone.validation.targets import Subject
from touchstone.validation.validators.common import unavailable
from touchstone.validation.workers import ProcessWorkers, SerialWorkers, Workers

_LARGEST_BATCH = 100
# Below this many jobs, starting processes takes longer than they save.
_WORTH_A_PROCESS = 8
_BATCHED = ("hcl", "python")


@dataclass(frozen=True)
class Request:
    """A tree that is to be validated, and the key that its report is known by."""

    key: str
    validator: str
    job: Job


@dataclass(frozen=True)
class Known:
    """A report, and whether it came from the cache."""

    report: Report
    cached: bool


class Validation:
    """A sandbox, a cache and workers for one run. Each is made when it is first needed and kept until `close`.

    `fresh` validates everything once more, whatever the cache holds.
    """

    def __init__(self, settings: ValidationSettings, cache_dir: Path, scratch: Path, *, fresh: bool = False) -> None:
        self.settings, self.cache_dir, self.fresh = settings, cache_dir, fresh
        self._scratch = scratch
        self._asked: set[str] = set()
        # Decided, but not settled: the cache does not keep them, and one try per run is enough.
        self._unsettled: dict[str, Report] = {}
        self._available: dict[str, Availability] = {}
        self._conditions: dict[tuple[str, Problem], str] = {}
        self._workers: dict[type, Workers] = {}
        # Reports that all workers have made, for a display that does not wait for whole batches.
        self._made: Synchronized[int] = multiprocessing.get_context("spawn").Value("q", 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers and sandboxes."""
        for workers in self._workers.values():
            workers.close()
        self._workers.clear()
        if "station" in self.__dict__:
            self.station.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    @cached_property
    def sandbox(self) -> Confined:
        """The sandbox of this run: the first that holds, or a refusal."""
        return choose_sandbox(self._scratch, self.settings.sandbox, self.settings.unsandboxed)

    @cached_property
    def station(self) -> Station:
        """The validators as this process asks them for versions; it validates nothing itself."""
        return Station(self.sandbox, self.settings)

    def available(self, validator: str) -> Availability:
        """Whether a validator can work here."""
        if validator not in self._available:
            self._available[validator] = self.station.validator(validator).probe()
        return self._available[validator]

    def request(self, subject: Subject, content: bytes | None) -> Request:
        """The request for a problem as it came, or with another content of its file."""
        problem = subject.problem
        tree = subject.tree if content is None else subject.tree.with_file(problem.path, content)
        key = report_key(subject.hashed.hash_of(tree), self._conditions_of(problem, subject.validator))
        return Request(key, subject.validator, Job(problem, tree))

    def _conditions_of(self, problem: Problem, name: str) -> str:
        """What else the reports on a problem's fixes depend on, put together once."""
        known = self._conditions.get((name, problem))
        if known is None:
            validator, limits = self.station.validator(name), self.station.limits(name)
            known = self._conditions[name, problem] = conditions_key(problem, validator, limits, self.sandbox.name)
        return known

    def reports(self, requests: Sequence[Request], what: str) -> dict[str, Known]:
        """The report for every request, by key."""
        wanted = {request.key: request for request in requests}
        known = self._known(wanted)
        missing = [request for key, request in wanted.items() if key not in known]
        known |= {
            request.key: Known(unavailable(self.available(request.validator), ""), False)
            for request in missing
            if not self.available(request.validator).usable
        }
        with self._counting(requests, known, what) as count:
            for some in self._validate([request for request in missing if request.key not in known]):
                known.update((request.key, Known(report, False)) for request, report in some)
                count(request.key for request, _ in some)
        self._retry_alone([request for request in missing if known[request.key].report.starved], known)
        self._unsettled |= {
            request.key: report
            for request in missing
            if (report := known[request.key].report).decided and not report.settled
        }
        return known

    @contextmanager
    def _counting(
        self, requests: Sequence[Request], known: Mapping[str, Known], what: str
    ) -> Iterator[Callable[[Iterable[str]], None]]:
        """Show progress by request. Where several ask for the same tree, which is validated once, all of them count."""
        times = Counter(request.key for request in requests)
        cached = sum(times[key] for key, one in known.items() if one.cached)
        left = {key: count for key, count in times.items() if key not in known}
        before = self._made.value

        def made() -> int:
            return (self._made.value - before) * sum(left.values()) // max(len(left), 1)

        with track(what, len(requests), cached, made) as advance:
            advance(len(requests) - cached - sum(left.values()))
            yield lambda keys: advance(sum(times[key] for key in keys))

    def _known(self, keys: Collection[str]) -> dict[str, Known]:
        """The reports that need not be made: kept by the cache, or made earlier in this run."""
        with ReportCache(self.cache_dir) as cache:
            if self.fresh:
                cache.forget(set(keys) - self._asked)
            self._asked.update(keys)
            found = cache.find(keys)
        found |= {key: self._unsettled[key] for key in keys if key in self._unsettled}
        return {key: Known(report, True) for key, report in found.items()}

    def _retry_alone(self, starved: Sequence[Request], known: dict[str, Known]) -> None:
        """Validate once more, one at a time, what timed out for want of a processor: what then comes of it counts."""
        if not starved:
            return
        with track("validating again, one at a time", len(starved)) as advance:
            for request in starved:
                batch = Batch(request.validator, [request.key], [request.job])
                for _, outcome in self._here.map(work, [batch]):
                    known[request.key] = Known(_reports(outcome, 1)[0], False)
                advance(1, "")

    def _validate(self, requests: Sequence[Request]) -> Iterator[list[tuple[Request, Report]]]:
        """The reports of one batch after the other, as they are there."""
        batches = self._batches(requests)
        items = [Batch(some[0].validator, [one.key for one in some], [one.job for one in some]) for some in batches]
        for place, outcome in self._workers_for(len(requests), len(batches)).map(work, items):
            yield list(zip(batches[place], _reports(outcome, len(batches[place])), strict=True))

    def _batches(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Jobs of one validator together: one process does them in a row, and one call lints them all."""
        by_validator: dict[str, list[Request]] = {}
        for request in requests:
            by_validator.setdefault(request.validator, []).append(request)
        batches = []
        for validator, some in by_validator.items():
            fair_share = -(-len(some) // (self.worker_count * 4))
            size = min(_LARGEST_BATCH, fair_share) if validator in _BATCHED else 1
            batches += [some[start : start + size] for start in range(0, len(some), size)]
        return batches

    @property
    def worker_count(self) -> int:
        """As configured, else one per core."""
        return self.settings.workers or len(os.sched_getaffinity(0))

    def _workers_for(self, jobs: int, batches: int) -> Workers:
        if ProcessWorkers in self._workers:
            return self._workers[ProcessWorkers]
        if self.worker_count == 1 or batches == 1 or jobs < _WORTH_A_PROCESS:
            return self._here
        workers = ProcessWorkers(self.worker_count, open_station, self._station_arguments)
        return self._workers.setdefault(ProcessWorkers, workers)

    @property
    def _here(self) -> Workers:
        """This process, which does one thing after the other."""
        workers = SerialWorkers(open_station, self._station_arguments, close_station)
        return self._workers.setdefault(SerialWorkers, workers)

    @property
    def _station_arguments(self) -> tuple[object, ...]:
        return (self.sandbox.name, self._scratch, self.settings, self.cache_dir, self._made)

    def fingerprint(self, subjects: Mapping[str, object]) -> list[object]:
        """What the outcomes depend on besides attempts and problems. Who removes reports wants them made again."""
        keys = {}
        for oid, subject in subjects.items():
            keys[oid] = self.request(subject, None).key if isinstance(subject, Subject) else repr(subject)
        with ReportCache(self.cache_dir) as cache:
            edition = cache.edition
        return [self.settings.model_dump(mode="json", exclude={"workers", "cache_dir"}), keys, edition]


def _reports(outcome: list[Report] | BaseException, count: int) -> list[Report]:
    if isinstance(outcome, BaseException):
        return [Report("sandbox_error", "", note=f"{type(outcome).__name__}: {outcome}")] * count
    return outcome
