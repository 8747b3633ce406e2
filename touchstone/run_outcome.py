"""How a run of the graph ended, in plain data: what `pipelines` reports and the command line shows."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CheckOutcome:
    """One asset check as it came out."""

    name: str
    passed: bool
    error: bool
    message: str


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended: the checks, what failed, and how many parts were made or reused.

    `stopped`: a gate failed, so nothing after it was made and nothing was published. `published`: the output folder
    has this run's results.
    """

    checks: Sequence[CheckOutcome]
    failures: Sequence[str]
    made: int
    reused: int
    stopped: bool = False
    published: bool = True

    @property
    def exit_code(self) -> int:
        """2 where a step could not do its work (wrong input), 1 where a check of severity error failed, else 0."""
        if self.failures:
            return 2
        return int(any(check.error and not check.passed for check in self.checks))
