"""Run one command in a sandbox on a working copy of a tree; returns its exit code and capped output.

The job ends when its first process exits or a limit is exceeded, not when its pipes close, since a left-over process
could hold them open. No process survives the job.
"""

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from touchstone.errors import TouchstoneError
from touchstone.validation.files.working_copy import write_working_copy
from touchstone.validation.sandbox.backends import ENVIRONMENT, Backend, Launch
from touchstone.validation.sandbox.command import Command, CommandResult, Limits
from touchstone.validation.sandbox.folders import remove_folder
from touchstone.validation.sandbox.memory_group import memory_group
from touchstone.validation.sandbox.processes import JobClock, LimitExceeded, end_sandbox

_LOOK_EVERY_SECONDS = 0.1
_CHUNK = 65_536


@dataclass(frozen=True)
class SandboxRunner:
    """Runs commands with one backend; `scratch` holds the working copies."""

    backend: Backend
    scratch: Path

    @property
    def name(self) -> str:
        """The backend's name, as stored in the outcomes."""
        return self.backend.name

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A private folder for one launch, removed afterwards with all its contents."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix="job-", dir=self.scratch))
        try:
            yield made
        finally:
            remove_folder(made)

    def run(self, command: Command, limits: Limits) -> CommandResult:
        """Run a command until it exits or exceeds a limit. No process survives it.

        A sandbox that dies while the command runs is replaced once. If that one dies too, the command did it.
        """
        result = self._run_once(command, limits)
        return self._run_once(command, limits) if result.status == "no_report" else result

    def _run_once(self, command: Command, limits: Limits) -> CommandResult:
        with contextlib.ExitStack() as keep:
            folder = keep.enter_context(self.folder())
            folder.chmod(0o711)
            tree, tmp = folder / "tree", folder / "tmp"
            write_working_copy(command.tree, tree)
            tmp.mkdir(mode=0o700)
            tree_bytes = sum(path.stat().st_size + 4096 for path in tree.rglob("*"))
            memory = limits.memory_bytes + limits.disk_bytes + tree_bytes
            joining = keep.enter_context(memory_group(memory))
            reads, writes = os.pipe()
            try:
                launch = Launch(
                    limits,
                    tmp=tmp,
                    readable=command.readable,
                    arguments=_with_path(command),
                    environment=command.environment,
                    tree=tree,
                    tree_bytes=tree_bytes,
                    directory=command.directory,
                    status_fd=writes,
                    mount_proc=True,
                )
                process = subprocess.Popen(
                    [*joining, *self.backend.command_line(launch)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=ENVIRONMENT,
                    pass_fds=[writes],
                    close_fds=True,
                    start_new_session=True,
                )
            except (OSError, TouchstoneError) as error:
                os.close(reads)
                return CommandResult("sandbox_error", None, note=str(error))
            finally:
                os.close(writes)
            limited = tmp if self.backend.needs_folder else None
            started, output = time.monotonic(), {"stdout": bytearray(), "stderr": bytearray()}
            try:
                exceeded = _wait(process, limits, limited, output)
            finally:
                end_sandbox(process, pid_namespace=self.backend.pid_namespace)
                with os.fdopen(reads, "rb") as pipe:
                    written = pipe.read()
            said = (bytes(output["stdout"]), bytes(output["stderr"]), time.monotonic() - started)
            if exceeded is None:
                return _read_status(written, *said)
            why = (exceeded.note, exceeded.starved, exceeded.cpu_used)
            return CommandResult(exceeded.status, None, *said, *why)


def _wait(
    process: subprocess.Popen[bytes], limits: Limits, folder: Path | None, output: Mapping[str, bytearray]
) -> LimitExceeded | None:
    """Collect the output until the process exits, or exceeds the limit that is returned."""
    clock = JobClock(process.pid, limits, folder=folder)
    pidfd = os.pidfd_open(process.pid)
    pipes = {name: pipe for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)) if pipe is not None}
    with selectors.DefaultSelector() as ready, os.fdopen(pidfd, "rb"):
        ready.register(pidfd, selectors.EVENT_READ, None)
        for name, pipe in pipes.items():
            os.set_blocking(pipe.fileno(), False)
            ready.register(pipe, selectors.EVENT_READ, name)
        looked = time.monotonic()
        while True:
            events = ready.select(min(_LOOK_EVERY_SECONDS, max(0.0, clock.seconds_left)))
            exited = any(key.data is None for key, _ in events)
            for name in pipes if exited else [key.data for key, _ in events]:
                if read_available(pipes[name].fileno(), output[name], limits.output_bytes) and not exited:
                    ready.unregister(pipes[name])
            if any(len(text) > limits.output_bytes for text in output.values()):
                return LimitExceeded("output_limit")
            if exited:
                return None
            now = time.monotonic()
            if now - looked >= _LOOK_EVERY_SECONDS or clock.seconds_left <= 0:
                looked = now
                if (exceeded := clock.exceeded()) is not None:
                    return exceeded


def read_available(pipe: int, content: bytearray, max_bytes: int) -> bool:
    """Append what is in a pipe, up to one byte past `max_bytes` in all; True if its other end is closed."""
    try:
        while len(content) <= max_bytes:
            chunk = os.read(pipe, min(_CHUNK, max_bytes + 1 - len(content)))
            if not chunk:
                return True
            content += chunk
    except BlockingIOError:
        pass
    return False


def _read_status(written: bytes, stdout: bytes, stderr: bytes, seconds: float) -> CommandResult:
    """Parse the status lines of the supervisor inside. The command cannot write to that pipe."""
    status: dict[str, Any] = {}
    for line in written.splitlines():
        status |= json.loads(line)
    if "error" in status:
        return CommandResult("sandbox_error", None, stdout, stderr, seconds, status["error"])
    if "exit_code" not in status:
        if "started" in status:
            return CommandResult("no_report", None, stdout, stderr, seconds, "the sandbox was killed from inside")
        tail = stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        note = f"the sandbox ended without a word{': ' + tail[0] if tail else ''}"
        return CommandResult("sandbox_error", None, stdout, stderr, seconds, note)
    if status["disk_full"]:
        return CommandResult("disk_limit", status["exit_code"], stdout, stderr, seconds, "the private disk is full")
    return CommandResult("exited", status["exit_code"], stdout, stderr, seconds)


def _with_path(command: Command) -> list[str]:
    """The arguments with the program as a full path, since no shell resolves it."""
    program = command.arguments[0]
    found = shutil.which(program, path=command.environment.get("PATH", os.defpath)) if "/" not in program else program
    return [found or program, *command.arguments[1:]]
