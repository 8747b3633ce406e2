"""The resource limits that this process was started with (ulimit, a job scheduler's).

No process can raise its own. One that is below the limits of a validation would decide verdicts: a right fix would fail
for want of memory on one machine and pass on another.
"""

import resource

from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.fork_server import INTERPRETER_BYTES

REMEDY = "raise that limit, or lower validation.limits"
_MEBIBYTE = 2**20


def too_low(limits: Limits) -> str | None:
    """Which inherited limit is below what a validation may use; None if none is.

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
