"""The limits of a job that runs in one or more warm workers."""

from collections.abc import Sequence

from touchstone.validation.sandbox.clock import JobClock, LimitExceeded
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.folders import folder_bytes
from touchstone.validation.sandbox.processes import deleted_file_bytes, resident_bytes
from touchstone.validation.sandbox.warm_worker import WarmWorker


def job_clock(workers: Sequence[WarmWorker], limits: Limits) -> JobClock:
    """A clock over all workers, starting now."""
    before = [process for worker in workers for process in worker.processes]
    return JobClock([worker.process for worker in workers], limits, before)


def exceeded_limit(workers: Sequence[WarmWorker], limits: Limits) -> LimitExceeded | None:
    """The memory or disk limit that one of the workers has exceeded, if any."""
    for worker in workers:
        if resident_bytes(worker.process) > limits.memory_bytes:
            return LimitExceeded("memory_limit")
        if worker.tmp is not None:
            used = folder_bytes(worker.tmp) + deleted_file_bytes(worker.process, worker.tmp)
            if used > limits.disk_bytes:
                return LimitExceeded("disk_limit")
    return None
