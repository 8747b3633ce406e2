"""The validators of one process, created on first use, in the sandbox chosen for the run."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from touchstone.config.validation import LimitSettings, ValidationSettings
from touchstone.validation.protocol import Availability, Validator
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.inherited_limits import REMEDY, too_low
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.validators.command import CommandSettings, CommandValidator
from touchstone.validation.validators.hcl import HclValidator
from touchstone.validation.validators.python import PythonSettings, PythonValidator
from touchstone.validation.validators.rust import RUST_LIMITS, RustSettings, RustValidator
from touchstone.validation.validators.terraform import PROVIDER_LIMITS, TerraformSettings, TerraformValidator

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

    def available(self, name: str) -> Availability:
        """Whether a validator works on this machine, and in a process with the limits of this one."""
        limited = too_low(self.limits(name))
        return self.validator(name).probe() if limited is None else Availability(False, limited, REMEDY)

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
                PythonSettings(
                    settings.python.interpreter,
                    settings.python.lint,
                    settings.python.doctest,
                    settings.controls,
                    control_failures=settings.exclude_flaky or settings.success not in ("plausible", "clean"),
                ),
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
        interpreter=settings.python.interpreter,
    )


def language_of(problem_language: str | None, filename: str) -> str:
    """The language that a problem names, else the one its file extension implies.

    >>> language_of(None, "src/lib.rs"), language_of("Python", "solution.txt"), language_of(None, "package.json")
    ('rust', 'python', '')
    """
    named = (problem_language or "").strip().lower()
    return named or next((language for ending, language in LANGUAGES.items() if filename.endswith(ending)), "")
