"""The sandbox interface: commands, limits and results. Implementations belong in `backends` and `runner`."""

import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from touchstone.validation.protocol import Tree
from touchstone.validation.sandbox.entrypoint import INTERPRETER_BYTES, WORK

# Placeholder in arguments and environment for the private folder, the only one the command may write to.
TMP = "@TMP@"
# The folder in it with the copy of the tree.
WORK_FOLDER = f"{TMP}/{WORK}"
# That folder as bubblewrap mounts it.
BOX = "/box"


# Default wall-clock limit: enough for a job that gets a small share of a busy machine.
_LEAST_WALL_SECONDS = 60.0
_WALL_PER_CPU_SECOND = 5.0


@dataclass(frozen=True)
class Limits:
    """Resource limits of one validation. A job that exceeds one is killed.

    `seconds` is CPU time over all processes, so that a busy machine changes no verdict. `wall_seconds` ends a job that
    waits forever; the default, `wall`, is several times as long. Many tests have `seconds_per_test` each, where that is
    more than `seconds`.
    """

    seconds: float = 10.0
    seconds_per_test: float = 0.0
    wall_seconds: float | None = None
    memory_bytes: int = 2 * 2**30
    disk_bytes: int = 512 * 2**20
    output_bytes: int = 4 * 2**20
    processes: int = 256
    open_files: int = 1024

    @property
    def wall(self) -> float:
        """The wall-clock limit in seconds.

        >>> Limits().wall, Limits(seconds=100).wall, Limits(wall_seconds=2).wall
        (60.0, 500.0, 2)
        """
        return self.wall_seconds or max(_LEAST_WALL_SECONDS, _WALL_PER_CPU_SECOND * self.seconds)


@dataclass(frozen=True)
class Command:
    """A program to run on a private, writable copy of a tree. It can read only the system and the `readable` paths.

    The program starts in the tree's `directory`. `environment` is its whole environment, besides TMPDIR. `TMP` in the
    environment or the arguments is replaced by the path of the private temporary folder. `packages` are folders of
    installed packages by their place in the copy: there it has links to what they contain.
    """

    arguments: Sequence[str]
    tree: Tree
    directory: str = ""
    readable: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class CommandResult:
    """How a command ended.

    `status` is `exited`; timeout, memory_limit, output_limit or disk_limit; sandbox_error if it never started; or
    no_report if its sandbox was killed from inside. `note` has details. A negative exit code is the signal that killed
    it. `starved`: the machine was too busy for a timeout to mean anything. `cpu_used`: it used up its CPU time.
    """

    status: str
    exit_code: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0
    note: str = ""
    starved: bool = False
    cpu_used: bool = False


class Sandbox(Protocol):
    """Runs untrusted commands."""

    @property
    def name(self) -> str:
        """The name stored in the outcomes."""

    def run(self, command: Command, limits: Limits) -> CommandResult:
        """Run a command until it exits or exceeds a limit. No process survives it."""


REMEDY = "raise that limit, or lower validation.limits"
_MEBIBYTE = 2**20


def too_low(limits: Limits) -> str | None:
    """Which limit of this process (ulimit, a job scheduler's) is below what a validation may use; None if none is.

    No process can raise its own limits, and one that is too low would decide verdicts: a right fix would fail for want
    of memory on one machine and pass on another.

    >>> too_low(Limits(open_files=1))
    """
    needed = (
        ("ulimit -v", resource.RLIMIT_AS, limits.memory_bytes + INTERPRETER_BYTES, "MiB of address space"),
        ("ulimit -d", resource.RLIMIT_DATA, limits.memory_bytes, "MiB of memory"),
        ("ulimit -f", resource.RLIMIT_FSIZE, limits.disk_bytes, "MiB in a file"),
        ("ulimit -n", resource.RLIMIT_NOFILE, limits.open_files, "open files"),
        ("ulimit -u", resource.RLIMIT_NPROC, limits.processes, "processes"),
    )
    for option, what, wanted, unit in needed:
        soft, hard = resource.getrlimit(what)
        # The sandbox sets the others, up to the hard limit.
        allowed = soft if what == resource.RLIMIT_AS else hard
        if allowed != resource.RLIM_INFINITY and allowed < wanted:
            size = _MEBIBYTE if unit.startswith("MiB") else 1
            return f"`{option}` allows {allowed // size:,} {unit}, a validation may use {wanted // size:,}"
    return None
