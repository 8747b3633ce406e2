"""Which validator a language gets, under which limits, and that each is made once."""

from pathlib import Path

import pytest

from touchstone.config.validation import LimitSettings, ValidationSettings
from touchstone.validation.protocol import Job, Problem, Tree
from touchstone.validation.registry import VALIDATORS, ValidatorRegistry, language_of, limits_for, validator_for
from touchstone.validation.sandbox.backends import Unsandboxed
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.validators.rust import RUST_LIMITS


@pytest.fixture
def sandbox(tmp_path: Path) -> SandboxRunner:
    return SandboxRunner(Unsandboxed(), tmp_path)


@pytest.mark.parametrize(
    ("named", "filename", "language"),
    [
        (None, "main.tf", "terraform"),
        (None, "main.tf.json", "terraform"),
        (None, "main.tofu", "terraform"),
        (" ", "a/b.py", "python"),
        ("RUST ", "a.py", "rust"),
        (None, "Makefile", ""),
    ],
)
def test_the_language_is_the_one_that_is_named_else_that_of_the_ending(
    named: str | None, filename: str, language: str
) -> None:
    assert language_of(named, filename) == language


def test_a_configured_validator_goes_before_the_default() -> None:
    settings = ValidationSettings(validators={"terraform": "terraform"})
    assert (validator_for("terraform", settings), validator_for("python", settings)) == ("terraform", "python")
    assert validator_for("cobol", settings) is None


def test_configured_limits_go_on_top_of_the_validators_own() -> None:
    assert limits_for("python", LimitSettings()) == Limits(seconds=10, seconds_per_test=0.1)
    assert limits_for("python", LimitSettings(seconds=10)) == Limits(seconds=10)
    assert limits_for("rust", LimitSettings()) == RUST_LIMITS
    given = limits_for("rust", LimitSettings(seconds=7, memory_mb=64))
    assert (given.seconds, given.memory_bytes, given.disk_bytes) == (7, 64 * 2**20, RUST_LIMITS.disk_bytes)
    assert given.wall_seconds is None, "a validator's own wall limit belongs to its own CPU limit"


def test_every_validator_is_made_once(sandbox: SandboxRunner) -> None:
    registry = ValidatorRegistry(sandbox, ValidationSettings.model_validate({"command": {"arguments": ["true"]}}))
    for name in VALIDATORS:
        assert registry.validator(name).name == name
        assert registry.validator(name) is registry.validator(name)


def test_a_command_without_arguments_needs_the_problems_own(sandbox: SandboxRunner, tmp_path: Path) -> None:
    validator = ValidatorRegistry(sandbox, ValidationSettings()).validator("command")
    (report,) = validator.validate([Job(Problem("p", "a.txt", tmp_path), Tree(tmp_path, ()))])
    remedy = "give the problem one, or set validation.command.arguments"
    assert (report.status, report.note) == ("validator_unavailable", f"the problem has no test_command; {remedy}")
