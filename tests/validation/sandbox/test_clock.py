"""Time limits: which processes count as ready, that only a job's own time counts, and which jobs are starved.

That CPU time and the wall limit end jobs is tested with commands and warm workers.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.load import busy
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.processes import JobClock, LimitExceeded, usage

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"


@contextmanager
def running(code: str) -> Iterator[int]:
    """A Python process that has done what the code says and sleeps; ended afterwards, with its children."""
    script = f"{code}\nprint('done', flush=True)\nimport time\ntime.sleep(600)\n"
    command = [sys.executable, "-S", "-c", script]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def until_exceeded(clock: JobClock) -> LimitExceeded:
    while (found := clock.exceeded()) is None:
        time.sleep(0.05)
    return found


def until_asleep(process: int) -> bool:
    """It has just said that it is done, and then falls asleep."""
    while usage(process).ready:
        time.sleep(0.01)
    return True


class TestUsage:
    def test_whoever_computes_is_ready(self) -> None:
        thread = "import threading\ndef loop():\n    while True: pass\n"
        with (
            busy(1) as (computing,),
            running(thread + "threading.Thread(target=loop, daemon=True).start()") as in_a_thread,
            running("pass") as asleep,
        ):
            assert usage(computing).ready and usage(in_a_thread).ready and until_asleep(asleep)

    def test_a_process_that_is_gone_uses_nothing(self) -> None:
        process = subprocess.Popen(["true"])
        process.wait()
        assert (usage(process.pid).cpu_seconds, usage(process.pid).ready) == (0.0, False)


class TestJobClock:
    @pytest.mark.nightly
    def test_what_was_used_before_does_not_count(self) -> None:
        with running(BURN.format(seconds=0.5)) as process:
            clock = JobClock(process, Limits(seconds=0.3))
            assert clock.exceeded() is None

    @pytest.mark.services
    def test_a_job_that_gets_no_processor_is_starved_and_one_that_sleeps_is_not(self) -> None:
        one = min(os.sched_getaffinity(0))
        with busy(1, on=one), busy(1, on=one) as (starved,), running("pass") as asleep:
            os.sched_setscheduler(starved, os.SCHED_IDLE, os.sched_param(0))
            assert until_asleep(asleep)
            starting = time.monotonic()
            clocks = [JobClock(process, Limits(wall_seconds=0.2)) for process in (starved, asleep)]
            longest = JobClock(starved, Limits(wall_seconds=0.05))
            assert until_exceeded(clocks[1]).note == "took more than 0.2 s of wall time; it was waiting, not computing"
            while time.monotonic() - starting < 0.5:
                assert clocks[0].exceeded() is None
                time.sleep(0.05)
            assert until_exceeded(longest).starved

    @pytest.mark.nightly
    def test_cpu_time_that_is_used_up_beside_neighbours_is_starved_too(self) -> None:
        one = min(os.sched_getaffinity(0))
        with busy(3, on=one), busy(1, on=one) as (process,):
            used_up = until_exceeded(JobClock(process, Limits(seconds=0.5)))
        assert used_up == LimitExceeded("timeout", "used more than 0.5 s of CPU time", starved=True, cpu_used=True)
