"""What a worker on another machine does with batches of jobs: the same as one here, or it is refused.

It has nothing of ours but the installed packages. The problems' files are carried to it; programs, Python packages and
prepared environments must lie at the same paths with the same content, which the cache keys show. What must be the same
for all problems, or the same fix could get two verdicts, is compared before the first job.
"""

import platform
import shutil
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from touchstone import __version__
from touchstone.config.validation import ValidationSettings
from touchstone.validation.cache_key import conditions_key, validation_code
from touchstone.validation.carried_files import CarriedFile, CarriedFiles
from touchstone.validation.files.file_identity import packages_identity
from touchstone.validation.protocol import Job, Report
from touchstone.validation.registry import ValidatorRegistry
from touchstone.validation.sandbox.inherited_limits import REMEDY, too_low
from touchstone.validation.sandbox.probe import probe_backend
from touchstone.validation.worker import Batch, open_registry, validate_each
from touchstone.workers import WorkerRefusedError, WorkerState


@dataclass(frozen=True)
class CarriedBatch:
    """A batch with, for every job, the name of its problem's folder and the conditions that its report depends on."""

    batch: Batch
    folders: Sequence[str]
    conditions: Sequence[str]


@dataclass
class ClusterWorker(WorkerState):
    """The validators of this process, and the files that were carried here."""

    registry: ValidatorRegistry
    folder: Path
    files: CarriedFiles
    stopped: threading.Event = field(default_factory=threading.Event)
    _agreed: set[str] = field(default_factory=set)

    def missing(self, item: CarriedBatch) -> Sequence[str]:
        """The folders that the batch needs and this worker has not."""
        return self.files.missing(item.folders)

    def receive(self, part: Sequence[CarriedFile]) -> None:
        """Write some files of folders."""
        self.files.receive(part)

    def complete(self, names: Sequence[str]) -> None:
        """All files of these folders are here."""
        self.files.complete(names)

    def stop(self) -> None:
        """Give up a batch after the job in hand."""
        self.stopped.set()

    def close(self) -> None:
        """Stop the validators, and remove all files."""
        self.registry.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def require_conditions(self, job: Job, validator: str, expected: str) -> None:
        """Refuse this worker if a report made here would not be the one that was asked for."""
        if expected in self._agreed:
            return
        registry = self.registry
        found = conditions_key(
            job.problem,
            registry.validator(validator),
            registry.limits(validator),
            registry.sandbox.name,
            registry.settings,
        )
        if found != expected:
            raise WorkerRefusedError(
                f"programs, packages or environments that the validator {validator} uses for the problem "
                f"{job.problem.oid} differ from those here"
            )
        self._agreed.add(expected)


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
    return ClusterWorker(registry, folder, CarriedFiles(folder / "files"))


def validate_carried(worker: ClusterWorker, carried: CarriedBatch) -> list[Report]:
    """The reports on a batch's jobs, in order."""
    batch, reports = carried.batch, []
    jobs = [_moved(job, worker.files.root(name)) for job, name in zip(batch.jobs, carried.folders, strict=True)]
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
    """What this machine answers by: versions, code, packages, and the version of each validator."""
    packages = Path(sysconfig.get_path("platlib"))
    facts = {
        "Touchstone": __version__,
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
