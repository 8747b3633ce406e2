"""A command as a process of its own: how long it took, its processor time and its peak memory."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One finished process: wall seconds, CPU seconds (user and system) and peak memory, its children included."""

    seconds: float
    cpu: float
    peak_mb: float
    output: str


def run(command: Sequence[str], scratch: Path, environment: Mapping[str, str] | None = None) -> Run:
    """Run a command to its end; stop everything where it fails.

    A process's peak memory counts that of its parent at the start, so the caller must stay small.
    """
    out, err = scratch / "stdout.txt", scratch / "stderr.txt"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=stdout, stderr=stderr, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed with {child.returncode}:\n{err.read_text()}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, megabytes(usage.ru_maxrss), out.read_text())


def megabytes(maxrss: int) -> float:
    """The `ru_maxrss` of this platform in megabytes."""
    return maxrss / (1e6 if sys.platform == "darwin" else 1e6 / 1024)
