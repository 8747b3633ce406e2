"""What a sandbox is asked to run, and how that ended. Backends are in the files beside this one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from touchstone.validation.protocol import Tree

# Stands in arguments and environment for the private folder that the command may write to, and nowhere else.
TMP = "@TMP@"


# Wall time where none is given: enough for a job that gets a small share of a busy machine.
_LEAST_WALL_SECONDS = 60.0
_WALL_PER_CPU_SECOND = 5.0


@dataclass(frozen=True)
class Limits:
    """What one validation may use. Whoever goes beyond is killed.

    `seconds` is CPU time over all processes, so that a busy machine changes no verdict. `wall_seconds` ends what waits
    for ever; by default it is `wall`, several times as long.
    """

    seconds: float = 10.0
    wall_seconds: float | None = None
    memory_bytes: int = 512 * 2**20
    disk_bytes: int = 64 * 2**20
    output_bytes: int = 2**20
    processes: int = 32
    open_files: int = 256

    @property
    def wall(self) -> float:
        """The limit on wall time in seconds.

        >>> Limits().wall, Limits(seconds=100).wall, Limits(wall_seconds=2).wall
        (60.0, 500.0, 2)
        """
        return self.wall_seconds or max(_LEAST_WALL_SECONDS, _WALL_PER_CPU_SECOND * self.seconds)


@dataclass(frozen=True)
class Command:
    """A program to run on a private, writable copy of a tree, with only `readable` paths to read besides the system.

    The program starts in the tree's `directory`. `environment` is all of the environment it gets, besides TMPDIR.
    `TMP` in it or in the arguments becomes the path of the private temporary folder.
    """

    arguments: Sequence[str]
    tree: Tree
    directory: str = ""
    readable: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CommandResult:
    """How a command ended: `status` is `exited`, or one of timeout, memory_limit, output_limit, disk_limit and
    sandbox_error, of which `note` says more. A negative exit code is the signal that killed it. `starved`: the machine
    was too busy for the timeout to mean anything."""

    status: str
    exit_code: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0
    note: str = ""
    starved: bool = False


class Sandbox(Protocol):
    """A way to run what nobody vouches for."""

    @property
    def name(self) -> str:
        """What is written on every outcome."""

    def run(self, command: Command, limits: Limits) -> CommandResult:
        """Run a command to its end or its limits; nothing of it is left afterwards."""
