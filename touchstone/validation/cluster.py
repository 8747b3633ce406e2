"""Validation on a Dask cluster, seen from the machine that runs the evaluation."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from touchstone.config.validation import ValidationSettings
from touchstone.config.workers import WorkerSettings
from touchstone.validation.cache import ReportCache
from touchstone.validation.carried_files import FilesToCarry
from touchstone.validation.cluster_worker import CarriedBatch, identity_facts, open_cluster_worker, validate_carried
from touchstone.validation.files.working_copy import HashedTree
from touchstone.validation.protocol import Problem, Report
from touchstone.validation.registry import DEFAULT_VALIDATORS, ValidatorRegistry
from touchstone.validation.sandbox.probe import choose_sandbox
from touchstone.validation.worker import Batch
from touchstone.workers.cluster import running_workers
from touchstone.workers.dask import DaskWorkers


class ValidationCluster:
    """Sends batches to a cluster with what its workers need, and keeps their reports in the cache of this machine."""

    def __init__(
        self,
        workers: WorkerSettings,
        registry: ValidatorRegistry,
        validators: Sequence[str],
        cache_dir: Path,
        conditions: Callable[[Problem, str], str],
    ) -> None:
        self._files, self._cache_dir, self._conditions = FilesToCarry(), cache_dir, conditions
        arguments = _arguments(registry, validators)
        self._workers = DaskWorkers(workers, open_cluster_worker, arguments, self._files.parts)
        self.worker_count = min(len(running_workers(self._workers.client)) or 1, workers.count or 10**9)

    def map(
        self, batches: Sequence[Batch], trees: Mapping[Path, HashedTree]
    ) -> Iterator[tuple[int, list[Report] | BaseException]]:
        """Yield the index and the reports of each batch; `trees` are the problems' folders as they were hashed."""
        carried = [self._carried(batch, trees) for batch in batches]
        for place, outcome in self._workers.map(validate_carried, carried):
            batch = batches[place]
            if batch.keep and not isinstance(outcome, BaseException):
                with ReportCache(self._cache_dir) as cache:
                    cache.keep_all(batch.validator, zip(batch.keys, outcome, strict=True))
            yield place, outcome

    def _carried(self, batch: Batch, trees: Mapping[Path, HashedTree]) -> CarriedBatch:
        folders = [self._files.name_of(job.tree.root, trees[job.tree.root]) for job in batch.jobs]
        return CarriedBatch(batch, folders, [self._conditions(job.problem, batch.validator) for job in batch.jobs])

    def close(self) -> None:
        """Leave the cluster."""
        self._workers.close()


def check_cluster(workers: WorkerSettings, settings: ValidationSettings) -> dict[str, tuple[str, str | None]]:
    """Every worker's name and why it would be refused, None if it would not, by address."""
    validators = sorted(set({**DEFAULT_VALIDATORS, **settings.validators}.values()))
    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        sandbox = choose_sandbox(Path(scratch), settings.sandbox, settings.unsandboxed)
        with closing(ValidatorRegistry(sandbox, settings)) as registry:
            arguments = _arguments(registry, validators)
            with closing(DaskWorkers(workers, open_cluster_worker, arguments)) as cluster:
                return cluster.check()


def _arguments(
    registry: ValidatorRegistry, validators: Sequence[str]
) -> tuple[str, ValidationSettings, dict[str, str], Sequence[str]]:
    """What a worker is set up with: the sandbox, the settings, and what must be the same there."""
    names = sorted(set(validators))
    return registry.sandbox.name, registry.settings, identity_facts(registry, names), names
