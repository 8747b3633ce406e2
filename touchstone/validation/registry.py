"""The validators of one process, created on first use, in the sandbox chosen for the run.

Workers map `validate_batch` over batches of jobs, after `open_registry` has been called once in each process.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from touchstone.config.validation import LimitSettings, ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.validation.cache import ReportCache
from touchstone.validation.files.open_beneath import UnsafePathError
from touchstone.validation.protocol import Job, Report, Validator
from touchstone.validation.report_shape import well_formed
from touchstone.validation.sandbox.backends import Backend, Bubblewrap, Landlock, Unsandboxed
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.validators.command import CommandSettings, CommandValidator
from touchstone.validation.validators.hcl import HclValidator
from touchstone.validation.validators.python import PythonSettings, PythonValidator
from touchstone.validation.validators.rust import RUST_LIMITS, RustSettings, RustValidator
from touchstone.validation.validators.terraform import PROVIDER_LIMITS, TerraformSettings, TerraformValidator

LANGUAGES = {".tf": "terraform", ".tf.json": "terraform", ".tofu": "terraform", ".py": "python", ".rs": "rust"}
# For Terraform, the one that is always there; `terraform_choice` prefers Terraform itself.
DEFAULT_VALIDATORS = {"terraform": "hcl", "python": "python", "rust": "rust"}
_WRITE_EVERY_SECONDS = 0.5
_MAX_NOTE = 500
# The machine lacks something, whatever the fix says.
_MACHINE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EROFS)
VALIDATORS = ("hcl", "python", "terraform", "rust", "command")
_BACKENDS: dict[str, type[Backend]] = {kind.name: kind for kind in (Bubblewrap, Landlock, Unsandboxed)}


def validator_for(language: str, settings: ValidationSettings) -> str | None:
    """The name of the validator for a language: the configured one, else the default, else None.

    >>> validator_for("terraform", ValidationSettings(validators={"terraform": "command"}))
    'command'
    """
    return {**DEFAULT_VALIDATORS, **settings.validators}.get(language)


def limits_for(validator: str, given: LimitSettings) -> Limits:
    """A validator's default limits, overridden by the configured ones."""
    own = {"rust": RUST_LIMITS, "terraform": PROVIDER_LIMITS}.get(validator, Limits())
    million = 2**20
    return replace(
        own,
        seconds=given.seconds or own.seconds,
        wall_seconds=given.wall_seconds or (None if given.seconds else own.wall_seconds),
        memory_bytes=(given.memory_mb or 0) * million or own.memory_bytes,
        disk_bytes=(given.disk_mb or 0) * million or own.disk_bytes,
        output_bytes=(given.output_mb or 0) * million or own.output_bytes,
        processes=given.processes or own.processes,
    )


@dataclass
class ValidatorRegistry:
    """A sandbox and the validators that run in it."""

    sandbox: SandboxRunner
    settings: ValidationSettings

    def __post_init__(self) -> None:
        self._validators: dict[str, Validator] = {}

    def validator(self, name: str) -> Validator:
        """The validator of that name, created on first use."""
        if name not in self._validators:
            self._validators[name] = self._make(name)
        return self._validators[name]

    def limits(self, name: str) -> Limits:
        """The resource limits of a validator."""
        return limits_for(name, self.settings.limits)

    def _make(self, name: str) -> Validator:
        settings, sandbox, limits = self.settings, self.sandbox, self.limits(name)
        makers: dict[str, Callable[[], Validator]] = {
            "hcl": lambda: HclValidator(sandbox, limits),
            "python": lambda: PythonValidator(
                sandbox,
                limits,
                PythonSettings(settings.python.interpreter, settings.python.lint, settings.python.doctest),
            ),
            "terraform": lambda: TerraformValidator(
                sandbox,
                limits,
                TerraformSettings(settings.terraform.program, settings.terraform.plugin_dir),
                HclValidator(sandbox, self.limits("hcl")),
            ),
            "rust": lambda: RustValidator(sandbox, limits, RustSettings(settings.rust.cargo, settings.rust.vendor_dir)),
            "command": lambda: CommandValidator(sandbox, limits, _command_settings(settings)),
        }
        return makers[name]()

    def close(self) -> None:
        """Stop all warm workers."""
        for validator in self._validators.values():
            validator.close()
        self._validators.clear()


def _command_settings(settings: ValidationSettings) -> CommandSettings:
    given = settings.command
    return CommandSettings(
        arguments=tuple(given.arguments),
        version_arguments=tuple(given.version_arguments),
        report=given.report,
        fidelity=given.fidelity,
        readable=tuple(given.readable),
        environment=given.environment,
        report_file=given.report_file,
    )


def language_of(problem_language: str | None, filename: str) -> str:
    """The language that a problem names, else the one its file extension implies.

    >>> language_of(None, "src/lib.rs"), language_of("Python", "solution.txt"), language_of(None, "package.json")
    ('rust', 'python', '')
    """
    named = (problem_language or "").strip().lower()
    return named or next((language for ending, language in LANGUAGES.items() if filename.endswith(ending)), "")


@dataclass(frozen=True)
class Batch:
    """Jobs for one validator, to be run by one process, and the cache keys of their reports.

    `keep=False` leaves the reports out of the cache.
    """

    validator: str
    keys: Sequence[str]
    jobs: Sequence[Job]
    keep: bool = True


_registry: ValidatorRegistry | None = None
_cache_dir: Path | None = None
_finished_reports: "Synchronized[int] | None" = None


def open_registry(
    backend: str, scratch: Path, settings: ValidationSettings, cache_dir: Path, finished_reports: "Synchronized[int]"
) -> None:
    """Prepare this process for `validate_batch`, which counts its reports in `finished_reports`."""
    global _registry, _cache_dir, _finished_reports
    _finished_reports = finished_reports
    _registry = ValidatorRegistry(SandboxRunner(_BACKENDS[backend](), scratch / str(os.getpid())), settings)
    _cache_dir = cache_dir


def close_registry() -> None:
    """Stop everything that this process keeps running for `validate_batch`."""
    global _registry
    if _registry is not None:
        _registry.close()
        _registry = None


def validate_batch(batch: Batch) -> list[Report]:
    """The reports on a batch's jobs, in order. Each reaches the cache within half a second."""
    assert _registry is not None and _cache_dir is not None and _finished_reports is not None, (
        "call open_registry first"
    )
    reports: list[Report] = []
    kept, kept_at = 0, time.monotonic()
    with ReportCache(_cache_dir) as cache:
        for report in _validate_each(_registry.validator(batch.validator), batch.jobs):
            reports.append(report)
            with _finished_reports.get_lock():
                _finished_reports.value += 1
            done = len(reports) == len(batch.jobs)
            if batch.keep and (done or time.monotonic() - kept_at > _WRITE_EVERY_SECONDS):
                with cache.transaction():
                    for key, made in zip(batch.keys[kept:], reports[kept:], strict=False):
                        cache.keep(key, batch.validator, made)
                kept, kept_at = len(reports), time.monotonic()
    return reports


def _validate_each(validator: Validator, jobs: Sequence[Job]) -> Iterator[Report]:
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
