"""The validators by name: which one judges a language, those of one process, and which work on this machine."""

import tempfile
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from touchstone.config.validation import LimitSettings, ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.validation.cache import conditions_key
from touchstone.validation.protocol import Availability, Problem, Validator
from touchstone.validation.sandbox.command import REMEDY, Limits, too_low
from touchstone.validation.sandbox.runner import BACKENDS, INSTALL, SandboxRunner, choose_sandbox, probe_backend
from touchstone.validation.validators.command import COMMAND_LIMITS, CommandValidator
from touchstone.validation.validators.hcl import HclValidator
from touchstone.validation.validators.python import PYTEST_LIMITS, PythonValidator
from touchstone.validation.validators.rust import RUST_LIMITS, RustValidator
from touchstone.validation.validators.terraform import PROVIDER_LIMITS, TerraformValidator

LANGUAGES = {".tf": "terraform", ".tf.json": "terraform", ".tofu": "terraform", ".py": "python", ".rs": "rust"}
# For Terraform, the one that is always there; `terraform_choice` prefers Terraform itself.
DEFAULT_VALIDATORS = {"terraform": "hcl", "python": "python", "rust": "rust"}
VALIDATORS = ("hcl", "python", "terraform", "rust", "command")


def validator_for(language: str, settings: ValidationSettings) -> str | None:
    """The name of the validator for a language: the configured one, else the default, else None.

    >>> validator_for("terraform", ValidationSettings(validators={"terraform": "command"}))
    'command'
    """
    return {**DEFAULT_VALIDATORS, **settings.validators}.get(language)


_LIMITS = {
    "python": PYTEST_LIMITS,
    "rust": RUST_LIMITS,
    "terraform": PROVIDER_LIMITS,
    "command": COMMAND_LIMITS,
}


def limits_for(validator: str, given: LimitSettings) -> Limits:
    """A validator's default limits, overridden by the configured ones."""
    own = _LIMITS.get(validator, Limits())
    million = 2**20
    return replace(
        own,
        seconds=given.seconds or own.seconds,
        seconds_per_test=0.0 if given.seconds else own.seconds_per_test,
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
        self._conditions: dict[tuple[str, Problem], str] = {}

    def validator(self, name: str) -> Validator:
        """The validator of that name, created on first use."""
        if name not in self._validators:
            self._validators[name] = self._make(name)
        return self._validators[name]

    def available(self, name: str) -> Availability:
        """Whether a validator works on this machine, and in a process with the limits of this one."""
        limited = too_low(self.limits(name))
        return self.validator(name).probe() if limited is None else Availability(False, limited, REMEDY)

    def limits(self, name: str) -> Limits:
        """The resource limits of a validator."""
        return limits_for(name, self.settings.limits)

    def conditions_key(self, problem: Problem, name: str) -> str:
        """A hash of everything besides the tree that a validator's report on a problem depends on; computed once."""
        if (name, problem) not in self._conditions:
            given = (problem, self.validator(name), self.limits(name), self.sandbox.name, self.settings)
            self._conditions[name, problem] = conditions_key(*given)
        return self._conditions[name, problem]

    def _make(self, name: str) -> Validator:
        settings, sandbox, limits = self.settings, self.sandbox, self.limits(name)
        match name:
            case "hcl":
                return HclValidator(sandbox, limits)
            case "python":
                forgiving = settings.exclude_flaky or settings.success not in ("plausible", "clean")
                controls = {"controls": settings.controls, "control_failures": forgiving}
                return PythonValidator(sandbox, limits, settings.python, **controls)
            case "terraform":
                blocks = HclValidator(sandbox, self.limits("hcl"))
                return TerraformValidator(sandbox, limits, settings.terraform, blocks)
            case "rust":
                return RustValidator(sandbox, limits, settings.rust)
            case "command":
                return CommandValidator(sandbox, limits, settings.command, settings.python.interpreter)
        raise KeyError(name)

    def close(self) -> None:
        """Stop all warm workers; they start again when they are next used."""
        for validator in self._validators.values():
            validator.close()


def language_of(problem_language: str | None, filename: str) -> str:
    """The language that a problem names, else the one its file extension implies.

    >>> language_of(None, "src/lib.rs"), language_of("Python", "solution.txt"), language_of(None, "package.json")
    ('rust', 'python', '')
    """
    named = (problem_language or "").strip().lower()
    return named or next((language for ending, language in LANGUAGES.items() if filename.endswith(ending)), "")


# What works on this machine

_TERRAFORM_USE = {
    "terraform": "terraform, where all problems initialise offline",
    "hcl": "terraform, where that cannot",
}
_FIDELITY = {"hcl": "static or static+schema", "command": "as configured"}


@dataclass(frozen=True)
class Capability:
    """One sandbox or validator: whether it is usable, and if not, what to do."""

    kind: str
    name: str
    usable: bool
    fidelity: str
    detail: str


def probe_capabilities(settings: ValidationSettings) -> list[Capability]:
    """Probe all sandboxes, then all validators in the best sandbox."""
    with tempfile.TemporaryDirectory(prefix="touchstone-") as folder:
        scratch = Path(folder)
        entries = []
        for backend in (kind() for kind in BACKENDS):
            failure = probe_backend(backend, scratch)
            detail = failure or "holds"
            detail += f"; {INSTALL}" if failure is not None and backend.name == "bubblewrap" else ""
            entries.append(Capability("sandbox", backend.name, failure is None, "", detail))
        try:
            sandbox = choose_sandbox(scratch, settings.sandbox, settings.unsandboxed)
        except TouchstoneError as error:
            return [*entries, *(Capability("validator", name, False, "", str(error)) for name in VALIDATORS)]
        with closing(ValidatorRegistry(sandbox, settings)) as registry:
            return [*entries, *(_validator(registry, name, settings) for name in VALIDATORS)]


def _validator(registry: ValidatorRegistry, name: str, settings: ValidationSettings) -> Capability:
    languages = sorted(
        language for language, chosen in {**DEFAULT_VALIDATORS, **settings.validators}.items() if chosen == name
    )
    used = f"used for {', '.join(languages)}; " if languages else ""
    if "terraform" not in settings.validators and name in _TERRAFORM_USE:
        used = f"used for {_TERRAFORM_USE[name]}; "
    try:
        found = registry.available(name)
    except TouchstoneError as error:
        return Capability("validator", name, False, _FIDELITY.get(name, "full"), str(error))
    detail = found.detail if found.usable or not found.remedy else f"{found.detail}; {found.remedy}"
    return Capability("validator", name, found.usable, _FIDELITY.get(name, "full"), used + detail)
