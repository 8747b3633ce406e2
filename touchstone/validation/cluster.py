"""Validation on a Dask cluster: a worker on another machine answers as one here would, or it is refused.

It has nothing of ours but the installed packages. The problems' files are sent to it, each folder once, by the hash of
its files. Programs, Python packages and prepared environments must have the same paths and contents there, which the
cache keys show; what must be the same for all problems is compared before the first job.
"""

import hashlib
import os
import platform
import shutil
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from touchstone.config import WorkerSettings
from touchstone.config.validation import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.regular_files import open_beneath
from touchstone.validation.cache import ReportCache, validation_code
from touchstone.validation.files.file_identity import packages_identity
from touchstone.validation.files.working_copy import HashedTree
from touchstone.validation.protocol import Job, Report, Tree
from touchstone.validation.registry import DEFAULT_VALIDATORS, ValidatorRegistry
from touchstone.validation.sandbox.command import REMEDY, too_low
from touchstone.validation.sandbox.runner import choose_sandbox, probe_backend
from touchstone.validation.worker import Batch, open_registry, validate_each
from touchstone.vocabulary import VERSION
from touchstone.workers import Outcomes, WorkerRefusedError, WorkerState
from touchstone.workers.cluster import running_workers
from touchstone.workers.dask import DaskWorkers

_PART_BYTES = 4 << 20
# A worker keeps folders up to this size, those that were used last.
_KEPT_BYTES = 4 << 30


@dataclass(frozen=True)
class CarriedFile:
    """One file of a folder, which goes by its name."""

    folder: str
    path: str
    content: bytes
    mode: int
    modified_ns: int


class FilesToCarry:
    """The folders that jobs refer to, by hash. Their files are read when a worker asks for them."""

    def __init__(self) -> None:
        self._folders: dict[str, tuple[Path, HashedTree]] = {}
        self._names: dict[Path, str] = {}

    def name_of(self, root: Path, hashed: HashedTree) -> str:
        """The hash by which a folder goes."""
        if root not in self._names:
            name = hashed.hash_of(Tree(root, hashed.files))
            self._folders[name] = root, hashed
            self._names[root] = name
        return self._names[root]

    def parts(self, names: Sequence[str]) -> Iterator[list[CarriedFile]]:
        """The files of folders, a few at a time. Raises TouchstoneError if one is no longer what was hashed."""
        part: list[CarriedFile] = []
        size = 0
        for name in names:
            root, hashed = self._folders[name]
            for path in hashed.files:
                part.append(_read(name, root, path, hashed))
                size += len(part[-1].content)
                if size > _PART_BYTES:
                    yield part
                    part, size = [], 0
        yield part


def _read(folder: str, root: Path, path: str, hashed: HashedTree) -> CarriedFile:
    try:
        with open_beneath(root, path) as file:
            found = os.fstat(file.fileno())
            content = file.read()
    except OSError as error:
        raise TouchstoneError(f"{root / path}: cannot be read ({error.strerror}); run again") from None
    if not hashed.has(path, hashlib.sha256(content).hexdigest(), executable=bool(found.st_mode & 0o111)):
        raise TouchstoneError(f"{root / path}: changed during validation; run again")
    return CarriedFile(folder, path, content, found.st_mode & 0o777, found.st_mtime_ns)


@dataclass(frozen=True)
class CarriedBatch:
    """A batch with, for every job, the name of its problem's folder and the conditions that its report depends on."""

    batch: Batch
    folders: Sequence[str]
    conditions: Sequence[str]


@dataclass
class ClusterWorker(WorkerState):
    """The validators of this process, and the folders that were carried here, below a folder of its own."""

    registry: ValidatorRegistry
    folder: Path
    kept_bytes: int = _KEPT_BYTES
    stopped: threading.Event = field(default_factory=threading.Event)
    # The sizes of the folders by name; the one that was used last is last.
    _sizes: dict[str, int] = field(default_factory=dict)

    def missing(self, item: CarriedBatch) -> list[str]:
        """The folders that the batch needs and that were not received, or have been removed since."""
        names = list(dict.fromkeys(item.folders))
        self._sizes |= {name: self._sizes.pop(name) for name in names if name in self._sizes}
        return [name for name in names if name not in self._sizes]

    def root(self, name: str) -> Path:
        """The path of a received folder."""
        return self.folder / "files" / name

    def receive(self, part: Sequence[CarriedFile]) -> None:
        """Write some files of folders that are not complete yet."""
        for file in part:
            if file.folder in self._sizes:
                continue
            target = self.root(f"{file.folder}.part") / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(file.mode | 0o400)
            os.utime(target, ns=(file.modified_ns, file.modified_ns))

    def complete(self, names: Sequence[str]) -> None:
        """All files of these folders were written; others are removed if there is too much."""
        for name in [name for name in names if name not in self._sizes]:
            partial = self.root(f"{name}.part")
            partial.mkdir(parents=True, exist_ok=True)
            partial.rename(self.root(name))
            self._sizes[name] = sum(file.stat().st_size for file in self.root(name).rglob("*"))
        for name in [name for name in self._sizes if name not in names]:
            if sum(self._sizes.values()) <= self.kept_bytes:
                break
            del self._sizes[name]
            shutil.rmtree(self.root(name), ignore_errors=True)

    def stop(self) -> None:
        """Give up a batch after the job in hand."""
        self.stopped.set()

    def close(self) -> None:
        """Stop the validators, and remove all files."""
        self.registry.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def require_conditions(self, job: Job, validator: str, expected: str) -> None:
        """Refuse this worker if a report made here would not be the one that was asked for."""
        if self.registry.conditions_key(job.problem, validator) != expected:
            raise WorkerRefusedError(
                f"programs, packages or environments that the validator {validator} uses for the problem "
                f"{job.problem.oid} differ from those here"
            )


def open_cluster_worker(
    backend: str, settings: ValidationSettings, expected: Mapping[str, str], validators: Sequence[str]
) -> ClusterWorker:
    """Try the sandbox, compare this machine with the one that asks, and prepare for `validate_carried`."""
    folder = Path(tempfile.mkdtemp(prefix="touchstone-"))
    try:
        folder.chmod(0o711)
        registry = open_registry(backend, folder, settings)
        if not settings.unsandboxed:
            failure = probe_backend(registry.sandbox.backend, folder)
            if failure is not None:
                raise WorkerRefusedError(f"the sandbox {backend} does not work there: {failure}")
        for limited in filter(None, (too_low(registry.limits(name)) for name in validators)):
            raise WorkerRefusedError(f"{limited}; {REMEDY}")
        differs = difference(expected, identity_facts(registry, validators))
        if differs is not None:
            raise WorkerRefusedError(differs)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return ClusterWorker(registry, folder)


def validate_carried(worker: ClusterWorker, carried: CarriedBatch) -> list[Report]:
    """The reports on a batch's jobs, in order."""
    batch, reports = carried.batch, []
    jobs = [_moved(job, worker.root(name)) for job, name in zip(batch.jobs, carried.folders, strict=True)]
    for job, expected in zip(jobs, carried.conditions, strict=True):
        worker.require_conditions(job, batch.validator, expected)
    for report in validate_each(worker.registry.validator(batch.validator), jobs):
        if worker.stopped.is_set():
            raise InterruptedError("the client has left")
        reports.append(report)
    return reports


def _moved(job: Job, root: Path) -> Job:
    return replace(job, problem=replace(job.problem, root=root), tree=replace(job.tree, root=root))


def identity_facts(registry: ValidatorRegistry, validators: Iterable[str]) -> dict[str, str]:
    """The identity of this machine: versions, code, packages, and the version of each validator."""
    packages = Path(sysconfig.get_path("platlib"))
    facts = {
        "Touchstone": VERSION,
        "the code of the validators": validation_code(),
        "Python": sys.version.split()[0],
        "the build of Python": sys.version,
        "the processor": platform.machine(),
        "the folder of Python packages": str(packages),
        "the content of that folder": packages_identity(packages),
    }
    return facts | {f"the validator {name}": registry.validator(name).version for name in sorted(set(validators))}


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str | None:
    """The first fact that differs, in words; None if all agree.

    >>> difference({"Python": "3.12.1"}, {"Python": "3.11.7"})
    'Python is 3.11.7 there, 3.12.1 here'
    """
    for name, expected in here.items():
        found = there.get(name, "unknown")
        if found != expected:
            return f"{name} is {_short(found)} there, {_short(expected)} here"
    return None


def _short(value: str) -> str:
    """A value in a sentence: hashes by their first digits."""
    one_line = " ".join(value.split()) or "absent"
    return one_line[:12] if len(one_line) == 64 and one_line.isalnum() else one_line[:80]


class ValidationCluster:
    """Sends batches to a cluster with what its workers need, and keeps their reports in the cache of this machine.

    `trees` are the problems' folders as they were hashed.
    """

    def __init__(
        self,
        workers: WorkerSettings,
        registry: ValidatorRegistry,
        validators: Sequence[str],
        cache_dir: Path,
        trees: Mapping[Path, HashedTree],
    ) -> None:
        self._registry, self._cache_dir, self._trees = registry, cache_dir, trees
        self._files = FilesToCarry()
        arguments = _arguments(registry, validators)
        self._workers = DaskWorkers(
            workers, open_cluster_worker, arguments, self._files.parts, lambda carried: carried.folders
        )
        self.worker_count = min(len(running_workers(self._workers.client)) or 1, workers.count or 10**9)

    def map(self, batches: Sequence[Batch]) -> Outcomes[list[Report]]:
        """Yield the index and the reports of each batch."""
        carried = [self._carried(batch) for batch in batches]
        for place, outcome in self._workers.map(validate_carried, carried):
            batch = batches[place]
            if batch.keep and not isinstance(outcome, BaseException):
                with ReportCache(self._cache_dir) as cache:
                    cache.keep_all(batch.validator, zip(batch.keys, outcome, strict=True))
            yield place, outcome

    def _carried(self, batch: Batch) -> CarriedBatch:
        folders = [self._files.name_of(job.tree.root, self._trees[job.tree.root]) for job in batch.jobs]
        conditions = [self._registry.conditions_key(job.problem, batch.validator) for job in batch.jobs]
        return CarriedBatch(batch, folders, conditions)

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
    """The setup of a worker: the sandbox, the settings, and the identity that it must share."""
    names = sorted(set(validators))
    return registry.sandbox.name, registry.settings, identity_facts(registry, names), names
