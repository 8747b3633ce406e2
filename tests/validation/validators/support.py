"""Shared by the validators' tests: small trees on disk, and a sandbox that replays a recorded result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from touchstone.validation.protocol import Job, Problem, Report, Tree, Validator
from touchstone.validation.sandbox.command import Command, CommandResult, Limits
from touchstone.validation.validators.rust import find_toolchain

# A crate, and what tests of one need.
MANIFEST = '[package]\nname = "demo"\nversion = "0.1.0"\nedition = "2021"\n'
needs_cargo = pytest.mark.skipif(find_toolchain(None) is None, reason="cargo is neither on PATH nor in ~/.cargo/bin")
RECORDED = Path(__file__).parent / "recorded"
STOPPED = ("timeout", "memory_limit", "output_limit", "disk_limit", "sandbox_error")


@dataclass
class Playback:
    """A sandbox that returns the same result for every command and records the commands."""

    ended: CommandResult
    name: str = "playback"
    asked: list[Command] = field(default_factory=list)

    def run(self, command: Command, limits: Limits) -> CommandResult:
        self.asked.append(command)
        return self.ended


def tree_of(root: Path, files: Mapping[str, str]) -> Tree:
    """Write the files and return them as a tree."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Tree(root, tuple(sorted(files)))


def job_of(tree: Tree, filename: str, directory: str = "", expected_tests: tuple[str, ...] = ()) -> Job:
    """A job on an unmodified tree."""
    return Job(Problem("p1", filename, tree.root, directory, expected_tests=expected_tests), tree)


def report_on(validator: Validator, job: Job) -> Report:
    """The one report on one job."""
    (report,) = validator.validate([job])
    return report
