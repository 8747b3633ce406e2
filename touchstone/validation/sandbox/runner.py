"""Running one command in a sandbox: a staged tree goes in, an exit code and capped output come out.

The job ends when its first process ends or a limit is passed, never at the end of a pipe, which a left-over process
could hold open. Nothing of it is left afterwards.
"""

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from touchstone.errors import TouchstoneError
from touchstone.validation.sandbox.backends import ENVIRONMENT, Backend, Launch
from touchstone.validation.sandbox.clock import JobClock, LimitExceeded
from touchstone.validation.sandbox.command import Command, CommandResult, Limits
from touchstone.validation.sandbox.folders import folder_bytes, remove
from touchstone.validation.sandbox.processes import deleted_file_bytes, end, resident_bytes
from touchstone.validation.working_copy import write_working_copy

_LOOK_EVERY_SECONDS = 0.1
_CHUNK = 65_536


@dataclass(frozen=True)
class SandboxRunner:
    """A backend at work, with a folder for what it stages."""

    backend: Backend
    scratch: Path

    @property
    def name(self) -> str:
        """The backend's name, as it is written on every outcome."""
        return self.backend.name

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A private folder for one launch, removed whatever was left in it."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix="job-", dir=self.scratch))
        try:
            yield made
        finally:
            remove(made)

    def run(self, command: Command, limits: Limits) -> CommandResult:
        """Run a command to its end or its limits; nothing of it is left afterwards."""
        with self.folder() as folder:
            folder.chmod(0o711)
            tree, tmp = folder / "tree", folder / "tmp"
            write_working_copy(command.tree, tree)
            tmp.mkdir(mode=0o700)
            tree_bytes = sum(path.stat().st_size + 4096 for path in tree.rglob("*"))
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
                line = self.backend.command_line(launch)
                process = subprocess.Popen(
                    line,
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
            watch = _Watch(process, self.backend, limits, tmp if self.backend.needs_folder else None)
            try:
                return watch.outcome(reads)
            finally:
                watch.close()


class _Watch:
    """One running command under its limits."""

    def __init__(self, process: subprocess.Popen[bytes], backend: Backend, limits: Limits, tmp: Path | None) -> None:
        self.process, self.backend, self.limits, self.tmp = process, backend, limits, tmp
        self.output: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}

    def close(self) -> None:
        """End what is left."""
        end(self.process, pid_namespace=self.backend.pid_namespace)

    def outcome(self, status: int) -> CommandResult:
        """Wait for the end, or bring it about."""
        started = time.monotonic()
        passed = self._wait()
        self.close()
        seconds = time.monotonic() - started
        with os.fdopen(status, "rb") as pipe:
            said = pipe.read()
        stdout, stderr = bytes(self.output["stdout"]), bytes(self.output["stderr"])
        if passed is not None:
            return CommandResult(passed.status, None, stdout, stderr, seconds, passed.note, passed.starved)
        return _read_status(said, stdout, stderr, seconds)

    def _wait(self) -> LimitExceeded | None:
        """None where the process ended by itself, else the limit that it passed."""
        process = self.process
        clock = JobClock([process.pid], self.limits)
        pidfd = os.pidfd_open(process.pid)
        with selectors.DefaultSelector() as ready, os.fdopen(pidfd, "rb"):
            ready.register(pidfd, selectors.EVENT_READ, None)
            for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
                assert pipe is not None
                os.set_blocking(pipe.fileno(), False)
                ready.register(pipe, selectors.EVENT_READ, name)
            looked = time.monotonic()
            while True:
                events = ready.select(min(_LOOK_EVERY_SECONDS, max(0.0, clock.seconds_left)))
                for key, _ in events:
                    if key.data is not None and not self._read(key.data, key.fd):
                        ready.unregister(key.fileobj)
                if any(len(text) > self.limits.output_bytes for text in self.output.values()):
                    return LimitExceeded("output_limit")
                if any(key.data is None for key, _ in events):
                    self._drain()
                    return None
                now = time.monotonic()
                if now - looked >= _LOOK_EVERY_SECONDS or clock.seconds_left <= 0:
                    looked = now
                    if (passed := self._exceeded_limit() or clock.exceeded()) is not None:
                        return passed

    def _exceeded_limit(self) -> LimitExceeded | None:
        if resident_bytes(self.process.pid) > self.limits.memory_bytes:
            return LimitExceeded("memory_limit")
        if self.tmp is not None:
            used = folder_bytes(self.tmp) + deleted_file_bytes(self.process.pid, self.tmp)
            return LimitExceeded("disk_limit") if used > self.limits.disk_bytes else None
        return None

    def _read(self, name: str, descriptor: int) -> bool:
        """Take what is there, up to just past the limit; False at the end."""
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return True
        kept = self.output[name]
        kept += chunk[: self.limits.output_bytes + 1 - len(kept)]
        return bool(chunk)

    def _drain(self) -> None:
        for name, pipe in (("stdout", self.process.stdout), ("stderr", self.process.stderr)):
            assert pipe is not None
            with contextlib.suppress(OSError):
                while len(self.output[name]) <= self.limits.output_bytes:
                    chunk = os.read(pipe.fileno(), _CHUNK)
                    if not chunk:
                        break
                    self.output[name] += chunk


def _read_status(said: bytes, stdout: bytes, stderr: bytes, seconds: float) -> CommandResult:
    """What the keeper told. Its pipe is closed to the command, so nobody else can have written there."""
    try:
        told = json.loads(said.splitlines()[0])
    except (ValueError, IndexError):
        tail = stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        note = f"the sandbox ended without a word{': ' + tail[0] if tail else ''}"
        return CommandResult("sandbox_error", None, stdout, stderr, seconds, note)
    if "error" in told:
        return CommandResult("sandbox_error", None, stdout, stderr, seconds, told["error"])
    if told["disk_full"]:
        return CommandResult("disk_limit", told["exit_code"], stdout, stderr, seconds, "the private disk is full")
    return CommandResult("exited", told["exit_code"], stdout, stderr, seconds)


def _with_path(command: Command) -> list[str]:
    """The program by its full path, since it is started without a shell."""
    program = command.arguments[0]
    found = shutil.which(program, path=command.environment.get("PATH", os.defpath)) if "/" not in program else program
    return [found or program, *command.arguments[1:]]
