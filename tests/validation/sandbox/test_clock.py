"""Time limits: CPU time counts, the wall limit ends jobs that only wait, and starved jobs are distinguished."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.load import busy
from touchstone.validation.sandbox.clock import JobClock, LimitExceeded
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.processes import usage

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"
CHILDREN = "import subprocess, sys\nfor _ in range({count}): subprocess.run([sys.executable, '-S', '-c', {code!r}])\n"


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


class TestUsage:
    def test_cpu_time_of_the_process_itself(self) -> None:
        with running(BURN.format(seconds=0.3)) as process:
            assert usage(process).cpu_seconds >= 0.25

    @pytest.mark.nightly
    def test_cpu_time_of_children_that_have_ended(self) -> None:
        code = CHILDREN.format(count=3, code=BURN.format(seconds=0.2))
        with running(code) as process:
            assert usage(process).cpu_seconds >= 0.5

    def test_cpu_time_of_children_that_live(self) -> None:
        child = BURN.format(seconds=0.3) + "print(flush=True)\ntime.sleep(600)\n"
        code = f"import subprocess, sys\nx = subprocess.Popen([sys.executable, '-S', '-c', {child!r}], stdout=-1)\n"
        with running(code + "x.stdout.readline()") as process:
            assert usage(process).cpu_seconds >= 0.25

    def test_a_sleeping_process_is_not_ready(self) -> None:
        with running("pass") as process:
            assert until_asleep(process)

    def test_a_busy_process_is_ready(self) -> None:
        with busy(1) as (process,):
            assert usage(process).ready

    def test_a_busy_thread_makes_its_process_ready(self) -> None:
        code = "import threading\ndef loop():\n    while True: pass\nthreading.Thread(target=loop, daemon=True).start()"
        with running(code) as process:
            assert usage(process).ready

    def test_a_process_that_is_gone_uses_nothing(self) -> None:
        process = subprocess.Popen(["true"])
        process.wait()
        assert (usage(process.pid).cpu_seconds, usage(process.pid).ready) == (0.0, False)


def until_asleep(process: int) -> bool:
    """It has just said that it is done, and then falls asleep."""
    while usage(process).ready:
        time.sleep(0.01)
    return True


class TestJobClock:
    def test_cpu_time_above_the_limit_is_a_timeout(self) -> None:
        with busy(1) as processes:
            found = until_exceeded(JobClock(processes, Limits(seconds=0.2)))
        assert (found.status, found.note, found.cpu_used) == ("timeout", "used more than 0.2 s of CPU time", True)

    @pytest.mark.nightly
    def test_what_was_used_before_does_not_count(self) -> None:
        with running(BURN.format(seconds=0.5)) as process:
            clock = JobClock([process], Limits(seconds=0.3))
            assert clock.exceeded() is None

    @pytest.mark.nightly
    def test_cpu_time_of_several_processes_adds_up(self) -> None:
        """Four processes that each use less than half of the limit."""
        code = f"input()\n{BURN.format(seconds=0.5)}time.sleep(600)\n"
        with ExitStack() as ending:
            processes = []
            for _ in range(4):
                process = subprocess.Popen([sys.executable, "-S", "-c", code], stdin=subprocess.PIPE)
                ending.enter_context(process)
                ending.callback(process.kill)
                processes.append(process)
            clock = JobClock([process.pid for process in processes], Limits(seconds=1.2, wall_seconds=3600))
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(b"\n")
                process.stdin.flush()
            found = until_exceeded(clock)
        assert (found.status, found.note, found.cpu_used) == ("timeout", "used more than 1.2 s of CPU time", True)

    def test_a_job_that_only_waits_ends_at_the_wall_limit(self) -> None:
        with running("pass") as process:
            until_asleep(process)
            started = time.monotonic()
            found = until_exceeded(JobClock([process], Limits(seconds=0.1, wall_seconds=0.5)))
        note = "took more than 0.5 s of wall time; it was waiting, not computing"
        assert found == LimitExceeded("timeout", note, starved=False)
        assert time.monotonic() - started >= 0.5

    @pytest.mark.nightly
    def test_a_job_that_gets_no_processor_is_starved(self) -> None:
        """Four processes on one processor: the job has at most a third of it."""
        one = min(os.sched_getaffinity(0))
        with busy(3, on=one), busy(1, on=one) as processes:
            found = until_exceeded(JobClock(processes, Limits(seconds=60, wall_seconds=2)))
            used_up = until_exceeded(JobClock(processes, Limits(seconds=0.5)))
        assert found == LimitExceeded(
            "timeout", "took more than 2 s of wall time; it was waiting for a processor", True
        )
        assert used_up == LimitExceeded("timeout", "used more than 0.5 s of CPU time", starved=True, cpu_used=True)


@pytest.mark.parametrize(("limits", "wall"), [(Limits(), 60), (Limits(seconds=3), 60), (Limits(seconds=60), 300)])
def test_the_wall_limit_is_several_times_the_cpu_limit_and_at_least_a_minute(limits: Limits, wall: float) -> None:
    assert limits.wall == wall
