"""The limits of one job. CPU time decides, so that a verdict does not depend on the machine's load.

A job that waits instead of computing is ended by the wall-clock limit. Its processes are sampled to tell whether it
slept or lacked CPU: a process that is runnable but gets no CPU time is starved.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.processes import cpu_seconds, exceeded_space, usage

# Starved: the job was runnable but not running for this share of the limit.
_STARVED_SHARE = 0.1


@dataclass(frozen=True)
class LimitExceeded:
    """A limit that a job exceeded. `starved`: a time limit, on a machine too busy to tell whether the job is slow.

    `cpu_used`: it used up its CPU time.
    """

    status: str
    note: str = ""
    starved: bool = False
    cpu_used: bool = False


class JobClock:
    """Measures one job since construction, over a process and its descendants.

    `before`: all processes that existed before the job, if known; finding them takes longer. `folder`: the private one
    that it writes to, where no file system limits that.
    """

    def __init__(
        self, process: int, limits: Limits, before: Sequence[int] | None = None, folder: Path | None = None
    ) -> None:
        self._process, self._limits, self._folder = process, limits, folder
        self._started = self._looked = time.monotonic()
        self._ready_seconds = 0.0
        self._cpu_before = usage(process).cpu_seconds if before is None else cpu_seconds(before)

    @property
    def seconds_left(self) -> float:
        """Seconds until the wall-clock limit."""
        return self._started + self._limits.wall - time.monotonic()

    def exceeded(self) -> LimitExceeded | None:
        """The limit that the job has exceeded, if any. Call it several times per second."""
        if (status := exceeded_space(self._process, self._limits, self._folder)) is not None:
            return LimitExceeded(status)
        now, used = time.monotonic(), usage(self._process)
        spent = used.cpu_seconds - self._cpu_before
        if used.ready:
            self._ready_seconds += now - self._looked
        self._looked = now
        # No measured times in the notes: they are stored in outcomes, and equal outcomes must compare equal.
        waited = self._ready_seconds - spent
        if spent > self._limits.seconds:
            # CPU time is used up faster where neighbours share the processor.
            starved = waited > _STARVED_SHARE * self._limits.seconds
            return LimitExceeded("timeout", f"used more than {self._limits.seconds:g} s of CPU time", starved, True)
        if now - self._started <= self._limits.wall:
            return None
        starved = waited > _STARVED_SHARE * self._limits.wall
        why = "it was waiting for a processor" if starved else "it was waiting, not computing"
        return LimitExceeded("timeout", f"took more than {self._limits.wall:g} s of wall time; {why}", starved)
