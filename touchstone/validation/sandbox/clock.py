"""The time limits of one job: CPU seconds decide, so that a verdict does not depend on what else the machine does.

A job that waits instead of computing is ended by the wall limit. Whether it waited of its own accord or for a
processor is found by looking at its processes now and then: one that is ready to run and gets no CPU time is starved.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.processes import Usage, cpu_seconds, usage

# Starved: for this share of the wall limit, the job was ready to run and was not running.
_STARVED_SHARE = 0.1


@dataclass(frozen=True)
class LimitExceeded:
    """A limit that was passed. `starved`: a time limit, on a machine too busy to tell whether the job is slow."""

    status: str
    note: str = ""
    starved: bool = False


class JobClock:
    """The time of one job since this was made, over the given processes and all below them.

    `before`: all processes that are there before the job, where that is known; to look for them takes longer.
    """

    def __init__(self, processes: Sequence[int], limits: Limits, before: Sequence[int] | None = None) -> None:
        self._processes, self._limits = processes, limits
        self._started = self._looked = time.monotonic()
        self._ready_seconds = 0.0
        self._cpu_before = self._look().cpu_seconds if before is None else cpu_seconds(before)

    @property
    def seconds_left(self) -> float:
        """Until the wall limit."""
        return self._started + self._limits.wall - time.monotonic()

    def exceeded(self) -> LimitExceeded | None:
        """The time limit that the job is beyond, if any. To be asked every fraction of a second."""
        now, used = time.monotonic(), self._look()
        spent = used.cpu_seconds - self._cpu_before
        if used.ready:
            self._ready_seconds += now - self._looked
        self._looked = now
        # The notes have no measured figures: they are part of an outcome, and equal outcomes must be equal.
        if spent > self._limits.seconds:
            return LimitExceeded("timeout", f"used more than {self._limits.seconds:g} s of CPU time")
        if now - self._started <= self._limits.wall:
            return None
        starved = self._ready_seconds - spent > _STARVED_SHARE * self._limits.wall
        why = "it was waiting for a processor" if starved else "it was waiting, not computing"
        return LimitExceeded("timeout", f"took more than {self._limits.wall:g} s of wall time; {why}", starved)

    def _look(self) -> Usage:
        used = [usage(process) for process in self._processes]
        return Usage(sum(each.cpu_seconds for each in used), any(each.ready for each in used))
