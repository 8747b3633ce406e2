"""What the validators that run an installed toolchain share: probing it, and one sandboxed command per job."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Generic, TypeVar

from touchstone.validation.protocol import Availability, Job, Problem, Report
from touchstone.validation.sandbox.command import Command, CommandResult, Limits, Sandbox
from touchstone.validation.validators import common

Tool = TypeVar("Tool")


class ToolchainValidator(ABC, Generic[Tool]):
    """Runs an installed tool on each tree. `tool` is None if it was not found; `version` is then empty."""

    name: str
    # A correct tree, which a working tool passes.
    sample: ClassVar[Job]

    def __init__(self, sandbox: Sandbox, limits: Limits, tool: Tool | None, version: str) -> None:
        self._sandbox, self._limits = sandbox, limits
        self._tool, self.version = tool, version

    @abstractmethod
    def _find(self) -> Availability:
        """Whether the tool and everything it needs is installed, without running it in the sandbox."""

    @abstractmethod
    def _command(self, job: Job, tool: Tool) -> Command:
        """The command that validates one job."""

    @abstractmethod
    def _build_report(self, result: CommandResult, job: Job) -> Report:
        """The report on one job, from the result of its command."""

    def probe(self) -> Availability:
        """Whether the tool is installed and passes a correct sample in the sandbox."""
        found = self._find()
        if not found.usable or self._tool is None:
            return found
        return common.confirm_in_sandbox(found, self._report(self.sample, self._tool), self._sandbox.name)

    def fidelity(self, problem: Problem) -> str:
        """Always full: the real tool runs."""
        return common.FULL_FIDELITY

    def validate(self, jobs: Sequence[Job]) -> Iterator[Report]:
        """Yield one report per job."""
        availability = self._find()
        for job in jobs:
            if not availability.usable or self._tool is None:
                yield common.unavailable(availability, common.FULL_FIDELITY)
            else:
                yield self._report(job, self._tool)

    def close(self) -> None:
        """Nothing is kept running."""

    def _report(self, job: Job, tool: Tool) -> Report:
        return self._build_report(self._sandbox.run(self._command(job, tool), self._limits), job)
