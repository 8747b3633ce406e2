"""A worker kept warm in a sandbox: started once, given one job after another, replaced when it fails."""

import contextlib
import json
import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from touchstone.validation.sandbox.backends import ENVIRONMENT, Borrowed, Interpreter, Launch, interpreter
from touchstone.validation.sandbox.clock import JobClock, LimitExceeded
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.folders import folder_bytes
from touchstone.validation.sandbox.fork_server import END, ENDING_SECONDS, JOB
from touchstone.validation.sandbox.memory_group import memory_group
from touchstone.validation.sandbox.processes import (
    deleted_file_bytes,
    descendants,
    end_sandbox,
    resident_bytes,
    usage,
)
from touchstone.validation.sandbox.runner import SandboxRunner

# How long a worker may be idle while it starts or ends a job. On a busy machine both take long, but the worker is then
# runnable, not idle: so load changes no verdict, and a stopped worker blocks nothing.
_START_IDLE_SECONDS = 60.0
_KILL_IDLE_SECONDS = 2.0
# A worker that waits for its job to finish sleeps, and answers when it gives up: longer than that it is not waited for.
_END_IDLE_SECONDS = ENDING_SECONDS + _KILL_IDLE_SECONDS
_LONGEST_SECONDS = 600.0
_LOOK_EVERY_SECONDS = 0.1


class WorkerLostError(Exception):
    """The worker exited, or could not be started."""


@dataclass
class WarmWorker:
    """One worker in one sandbox, which is given one job after another."""

    sandbox: SandboxRunner
    worker: str
    limits: Limits
    python: Interpreter = field(default_factory=interpreter)
    paths: Sequence[Path] = ()
    borrowed: Borrowed | None = None
    readable: Sequence[Path] = ()
    jobs_before_replaced: int = 1000
    _process: subprocess.Popen[bytes] | None = None
    _control: socket.socket | None = None
    _served: int = 0
    _keep: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    tmp: Path | None = None
    # The worker's processes while no job runs.
    processes: Sequence[int] = ()

    def answer(self, payload: Any, limits: Limits, max_bytes: int) -> tuple[bytes, LimitExceeded | None]:
        """Give the worker a job; returns its answer, and the limit that it exceeded first, which ends the worker."""
        reads, writes = os.pipe()
        try:
            try:
                self._send(payload, writes)
            finally:
                os.close(writes)
            clock = JobClock([self.process], limits, self.processes)
            answer, exceeded = read_until_closed(
                reads, max_bytes, lambda: self._exceeded_limit(limits) or clock.exceeded()
            )
        finally:
            os.close(reads)
        if exceeded is not None:
            self.close()
        return answer, exceeded

    def _exceeded_limit(self, limits: Limits) -> LimitExceeded | None:
        if resident_bytes(self.process) > limits.memory_bytes:
            return LimitExceeded("memory_limit")
        if self.tmp is not None:
            used = folder_bytes(self.tmp) + deleted_file_bytes(self.process, self.tmp)
            if used > limits.disk_bytes:
                return LimitExceeded("disk_limit")
        return None

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

    def end_job(self) -> dict[str, Any]:
        """How the process that a fork server runs the job in ended. A worker that does not say in time is replaced."""
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.send(END)
        message = self._receive(_END_IDLE_SECONDS)
        if message is None:
            self.close()
            return {"exit_code": None, "disk_full": False}
        return dict(json.loads(message))

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
            readable=self.readable,
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
        if self._receive(_START_IDLE_SECONDS) is None:
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


def read_until_closed(
    pipe: int, max_bytes: int, exceeded_limit: Callable[[], LimitExceeded | None]
) -> tuple[bytes, LimitExceeded | None]:
    """Read a pipe until its other end closes; also returns the limit that was exceeded first, if any.

    A quick job wakes it once, at the end, and only a longer one for every line.
    """
    answer = bytearray()
    os.set_blocking(pipe, False)
    waiting = select.poll()
    waiting.register(pipe, select.POLLHUP)
    looked = time.monotonic()
    while True:
        if not waiting.poll(_LOOK_EVERY_SECONDS * 1000):
            waiting.modify(pipe, select.POLLIN | select.POLLHUP)
        if _read_available(pipe, answer, max_bytes):
            return bytes(answer), None
        if len(answer) > max_bytes:
            return bytes(answer), LimitExceeded("output_limit")
        if time.monotonic() - looked >= _LOOK_EVERY_SECONDS:
            looked = time.monotonic()
            if (exceeded := exceeded_limit()) is not None:
                return bytes(answer), exceeded


def _read_available(pipe: int, answer: bytearray, max_bytes: int) -> bool:
    """Append what is in the pipe, hardly more than `max_bytes` in all; True if its other end is closed."""
    try:
        while len(answer) <= max_bytes:
            chunk = os.read(pipe, 65_536)
            if not chunk:
                return True
            answer += chunk
    except BlockingIOError:
        pass
    return False
