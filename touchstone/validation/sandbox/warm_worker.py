"""A worker kept warm in a sandbox: started once, given one job after another, replaced when it fails."""

import contextlib
import json
import os
import select
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from touchstone.validation.sandbox.backends import ENVIRONMENT, Borrowed, Launch
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.fork_server import JOB, READY
from touchstone.validation.sandbox.interpreters import Interpreter, interpreter
from touchstone.validation.sandbox.memory_group import memory_group
from touchstone.validation.sandbox.processes import JobClock, LimitExceeded, descendants, end_sandbox, usage
from touchstone.validation.sandbox.runner import SandboxRunner, read_available

# How long a worker may be idle while it starts, or cleans up after a job. On a busy machine both take long, but the
# worker is then runnable, not idle: so load changes no verdict, and a worker that its job has stopped blocks nothing.
_START_IDLE_SECONDS = 60.0
_END_IDLE_SECONDS = 2.0
_LONGEST_SECONDS = 600.0
_LOOK_EVERY_SECONDS = 0.1


class WorkerLostError(Exception):
    """The worker exited, or could not be started."""


@dataclass(frozen=True)
class JobAnswer:
    """What a job wrote, the limit that it exceeded first, and how its process ended: None if that is not known."""

    content: bytes
    exceeded: LimitExceeded | None = None
    exit_code: int | None = None


@dataclass
class WarmWorker:
    """One worker in one sandbox, which is given one job after another."""

    sandbox: SandboxRunner
    worker: str
    limits: Limits
    python: Interpreter = field(default_factory=interpreter)
    paths: Sequence[Path] = ()
    borrowed: Borrowed | None = None
    jobs_before_replaced: int = 1000
    _process: subprocess.Popen[bytes] | None = None
    _control: socket.socket | None = None
    # Whether it runs each job in a fork, and says when that has ended.
    _forks: bool = False
    _served: int = 0
    _keep: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    tmp: Path | None = None
    # The worker's processes while no job runs.
    processes: Sequence[int] = ()

    def answer(self, payload: Any, limits: Limits, max_bytes: int) -> JobAnswer:
        """Give the worker a job and wait for its answer. A limit that it exceeds ends the worker."""
        reads, writes = os.pipe()
        try:
            try:
                self._send(payload, writes)
            finally:
                os.close(writes)
            clock = JobClock(self.process, limits, self.processes, self.tmp)
            answer = self._read_answer(reads, max_bytes, clock)
        finally:
            os.close(reads)
        if answer.exceeded is not None:
            self.close()
        elif self._forks and (answer.exit_code is None or self._receive(_END_IDLE_SECONDS) is None):
            self.close()
            return JobAnswer(answer.content)
        return answer

    def _read_answer(self, pipe: int, max_bytes: int, clock: JobClock) -> JobAnswer:
        """Read what a job writes until it has ended.

        That is when a fork server says so, not when the pipe closes: a process that the job left behind may hold it
        open. A quick job wakes this once or twice, at the end, and only a longer one for every line.
        """
        assert self._control is not None
        answer, open_, idle = bytearray(), True, 0.0
        os.set_blocking(pipe, False)
        waiting = select.poll()
        waiting.register(self._control, select.POLLIN)
        waiting.register(pipe, select.POLLHUP)
        looked = time.monotonic()
        while True:
            events = waiting.poll(_LOOK_EVERY_SECONDS * 1000)
            if open_ and not events:
                waiting.modify(pipe, select.POLLIN | select.POLLHUP)
            if open_ and read_available(pipe, answer, max_bytes):
                waiting.unregister(pipe)
                open_ = False
            if len(answer) > max_bytes:
                return JobAnswer(bytes(answer), LimitExceeded("output_limit"))
            if any(descriptor != pipe for descriptor, _ in events):
                return self._end(bytes(answer))
            if not open_ and not self._forks:
                return JobAnswer(bytes(answer))
            if time.monotonic() - looked >= _LOOK_EVERY_SECONDS:
                looked = time.monotonic()
                if (exceeded := clock.exceeded()) is not None:
                    return JobAnswer(bytes(answer), exceeded)
                idle = idle + _LOOK_EVERY_SECONDS if not open_ and not usage(self.process).ready else 0.0
                if idle >= _END_IDLE_SECONDS:
                    return JobAnswer(bytes(answer))

    def _end(self, content: bytes) -> JobAnswer:
        """The answer with what the worker says about its end; nothing if the worker itself has ended."""
        message = self._receive(_END_IDLE_SECONDS)
        ended = json.loads(message) if message is not None else {"exit_code": None, "disk_full": False}
        return JobAnswer(content, LimitExceeded("disk_limit") if ended["disk_full"] else None, ended["exit_code"])

    def _send(self, payload: Any, answer: int) -> None:
        """Send a job and the descriptor of its answer."""
        if self._process is None or self._served >= self.jobs_before_replaced:
            self.close()
            self._start()
        assert self._control is not None
        self._served += 1
        file = os.memfd_create("job")
        try:
            with os.fdopen(file, "wb", closefd=False) as writing:
                writing.write(json.dumps(payload).encode())
            os.lseek(file, 0, os.SEEK_SET)
            socket.send_fds(self._control, [JOB], [file, answer])
        except OSError as error:
            self.close()
            raise WorkerLostError(str(error)) from None
        finally:
            os.close(file)

    @property
    def process(self) -> int:
        """The process id of the sandbox, for measuring memory."""
        return self._process.pid if self._process is not None else 0

    def close(self) -> None:
        """Kill the worker and everything in its sandbox."""
        if self._process is not None:
            if self._control is not None:
                self._control.close()
            if not self.sandbox.backend.pid_namespace:
                self._process.kill()
            end_sandbox(self._process, pid_namespace=self.sandbox.backend.pid_namespace)
        self._process, self._control, self._served, self.processes = None, None, 0, ()
        self._keep.close()

    def _start(self) -> None:
        self.tmp = self._keep.enter_context(self.sandbox.folder()) if self.sandbox.backend.needs_folder else None
        joining = self._keep.enter_context(memory_group(self.limits.memory_bytes + self.limits.disk_bytes))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        launch = Launch(
            self.limits,
            tmp=self.tmp,
            python=self.python,
            paths=self.paths,
            borrowed=self.borrowed,
            worker=self.worker,
            control_fd=theirs.fileno(),
        )
        with theirs:
            self._process = subprocess.Popen(
                [*joining, *self.sandbox.backend.command_line(launch)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=ENVIRONMENT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._control = ours
        ready = self._receive(_START_IDLE_SECONDS)
        self._forks = ready == READY
        if ready is None:
            assert self._process.stderr is not None
            self._process.kill()
            stderr_lines = self._process.stderr.read().decode("utf-8", "replace").strip().splitlines()
            self.close()
            raise WorkerLostError(
                f"the sandbox could not be started: {stderr_lines[-1] if stderr_lines else 'no word'}"
            )
        self.processes = list(descendants(self._process.pid))
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _receive(self, idle_seconds: float) -> bytes | None:
        """The worker's next message; None if it exited or stayed idle for that long."""
        if self._control is None:
            return None
        waiting = select.poll()
        waiting.register(self._control, select.POLLIN | select.POLLHUP)
        idle, give_up = 0.0, time.monotonic() + _LONGEST_SECONDS
        while idle < idle_seconds and time.monotonic() < give_up:
            if waiting.poll(_LOOK_EVERY_SECONDS * 1000):
                try:
                    return self._control.recv(4096) or None
                except OSError:
                    return None
            if not usage(self.process).ready:
                idle += _LOOK_EVERY_SECONDS
        return None
