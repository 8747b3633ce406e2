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
    """How a run ended: the checks, what failed, and how many parts were made or reused."""

    checks: Sequence[CheckOutcome]
    failures: Sequence[str]
    made: int
    reused: int

    @property
    def good(self) -> bool:
        """Whether nothing failed that must not fail."""
        return not self.failures and all(check.passed or not check.error for check in self.checks)
