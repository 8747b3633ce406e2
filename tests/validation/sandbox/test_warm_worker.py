"""The answer of a job: all that its process wrote, however much, until that process ends or reaches a limit."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.validation.attacks.arena import wait_for_none
from tests.validation.pytest_runner.support import sandbox_or_skip
from tests.validation.sandbox.writing_worker import LINE
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.processes import LimitExceeded, descendants
from touchstone.validation.sandbox.runner import JobAnswer, SandboxRunner, WarmWorker

LIMITS = Limits(wall_seconds=50)
WAITED = LimitExceeded("timeout", "took more than 0.3 s of wall time; it was waiting, not computing")


@pytest.fixture
def worker(sandbox_runner: SandboxRunner) -> Iterator[WarmWorker]:
    made = WarmWorker(sandbox_runner, "writing_worker:serve", LIMITS, paths=[Path(__file__).parent])
    yield made
    made.close()


@pytest.fixture
def bubblewrap_worker(tmp_path: Path) -> Iterator[WarmWorker]:
    made = WarmWorker(
        sandbox_or_skip(tmp_path, "bubblewrap"), "writing_worker:serve", LIMITS, paths=[Path(__file__).parent]
    )
    yield made
    made.close()


def ask(worker: WarmWorker, lines: int, then: str = "", limits: Limits = LIMITS) -> JobAnswer:
    return worker.answer({"lines": lines, "then": then}, limits, 2_000_000)


def test_an_answer_is_what_the_process_of_the_job_wrote(worker: WarmWorker) -> None:
    for lines in (0, 10, 10_000):
        assert ask(worker, lines) == JobAnswer(LINE * lines, exit_code=0)
    assert ask(worker, 1, "fail") == JobAnswer(LINE, exit_code=3)
    if worker.sandbox.name != "landlock":
        before = set(descendants(os.getpid()))
        assert ask(worker, 1, "leave a process") == JobAnswer(LINE, exit_code=0)
        assert wait_for_none(set(), before) == []
    assert ask(worker, 1, "wait", Limits(wall_seconds=0.3)) == JobAnswer(LINE, WAITED)
    too_long = ask(worker, 30_000)
    assert too_long.exceeded == LimitExceeded("output_limit") and len(too_long.content) > 2_000_000
    assert ask(worker, 1) == JobAnswer(LINE, exit_code=0)


def test_the_ports_of_one_job_are_free_for_the_next(bubblewrap_worker: WarmWorker) -> None:
    for _ in range(3):
        assert ask(bubblewrap_worker, 1, "serve at a port") == JobAnswer(2 * LINE, exit_code=0)


def test_what_waits_in_sockets_is_memory(bubblewrap_worker: WarmWorker) -> None:
    limits = Limits(wall_seconds=50, memory_bytes=200 * 2**20)
    assert ask(bubblewrap_worker, 1, "fill sockets", limits).exceeded == LimitExceeded("memory_limit")
    assert ask(bubblewrap_worker, 1) == JobAnswer(LINE, exit_code=0)


@pytest.mark.nightly
def test_nobody_waits_for_a_job_that_has_closed_its_answer_and_sleeps(worker: WarmWorker) -> None:
    assert ask(worker, 1, "close and wait") == JobAnswer(LINE)
