"""Choose a sandbox and run code in it: a command on a working copy of a tree, or many jobs in a warm worker.

A job ends when its first process exits or a limit is exceeded, not when its pipes close, since a left-over process
could hold them open. No process survives a command or, except for the worker itself, a job.
"""

import contextlib
import json
import os
import secrets
import select
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from touchstone.errors import TouchstoneError
from touchstone.validation.files.working_copy import write_working_copy
from touchstone.validation.sandbox.backends import ENVIRONMENT, Backend, Bubblewrap, Landlock, Launch, Unsandboxed
from touchstone.validation.sandbox.command import Command, CommandResult, Limits
from touchstone.validation.sandbox.entrypoint import JOB, READY, remove_folder
from touchstone.validation.sandbox.interpreters import Interpreter, interpreter
from touchstone.validation.sandbox.processes import (
    JobClock,
    LimitExceeded,
    end_sandbox,
    has_connections,
    memory_group,
    usage,
)

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

    def start(
        self, launch: Launch, keep: contextlib.ExitStack, descriptor: int, stdout: int
    ) -> subprocess.Popen[bytes]:
        """Start a sandbox, in a control group that `keep` removes. It inherits the one descriptor."""
        limits = launch.limits
        joining = keep.enter_context(memory_group(limits.memory_bytes + limits.disk_bytes + launch.tree_bytes))
        return subprocess.Popen(
            [*joining, *self.backend.command_line(launch, in_memory_group=bool(joining))],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            pass_fds=[descriptor],
            start_new_session=True,
        )

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
            reads, writes = os.pipe()
            status = keep.enter_context(os.fdopen(reads, "rb"))
            inside = {
                "worker": None,
                "status_fd": writes,
                "arguments": _with_path(command),
                "environment": dict(command.environment),
                "directory": command.directory,
                "packages": {place: str(folder) for place, folder in command.packages.items()},
            }
            readable = (*command.readable, *command.packages.values())
            launch = Launch(limits, inside, tmp, readable=readable, tree=tree, tree_bytes=tree_bytes)
            try:
                process = self.start(launch, keep, writes, subprocess.PIPE)
            except (OSError, TouchstoneError) as error:
                return CommandResult("sandbox_error", None, note=str(error))
            finally:
                os.close(writes)
            assert process.stdout is not None and process.stderr is not None
            stdout, stderr, started = bytearray(), bytearray(), time.monotonic()
            output = {process.stdout.fileno(): stdout, process.stderr.fileno(): stderr}
            try:
                with os.fdopen(os.pidfd_open(process.pid), "rb") as ended:
                    clock = JobClock(process.pid, limits, None if self.backend.pid_namespace else tmp)
                    found = _read_until_end(ended.fileno(), output, limits.output_bytes, clock)
            finally:
                end_sandbox(process, pid_namespace=self.backend.pid_namespace)
            result = CommandResult("exited", None, bytes(stdout), bytes(stderr), time.monotonic() - started)
            if isinstance(found, LimitExceeded):
                return replace(result, **vars(found))
            return _with_status(result, status.read())


def _read_until_end(
    end: int, pipes: Mapping[int, bytearray], max_bytes: int, clock: JobClock, max_idle_seconds: float | None = None
) -> LimitExceeded | bool:
    """Read pipes until there is something to read at `end`: True, or the limit that was exceeded before.

    False if all pipes are closed and the processes have been idle for so long.
    """
    open_, looked, idle_seconds = set(pipes), time.monotonic(), 0.0
    waiting = select.poll()
    waiting.register(end, select.POLLIN)
    for pipe in pipes:
        os.set_blocking(pipe, False)
        waiting.register(pipe, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in waiting.poll(_LOOK_EVERY_SECONDS * 1000)}
        for pipe in open_.copy() if end in ready else open_ & ready:
            if _read_available(pipe, pipes[pipe], max_bytes):
                waiting.unregister(pipe)
                open_.remove(pipe)
        if any(len(content) > max_bytes for content in pipes.values()):
            return LimitExceeded("output_limit")
        if end in ready:
            return True
        if time.monotonic() - looked >= _LOOK_EVERY_SECONDS:
            looked = time.monotonic()
            if (exceeded := clock.exceeded()) is not None:
                return exceeded
            idle_seconds = idle_seconds + _LOOK_EVERY_SECONDS if not open_ and not clock.ready else 0.0
        if not open_ and max_idle_seconds is not None and idle_seconds >= max_idle_seconds:
            return False


def _read_available(pipe: int, content: bytearray, max_bytes: int) -> bool:
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


def _with_status(result: CommandResult, written: bytes) -> CommandResult:
    """The result with the status lines of the supervisor inside. The command cannot write to that pipe."""
    status: dict[str, Any] = {}
    for line in written.splitlines():
        status |= json.loads(line)
    if "error" in status:
        return replace(result, status="sandbox_error", note=status["error"])
    if "exit_code" in status:
        result = replace(result, exit_code=status["exit_code"])
        return replace(result, status="disk_limit", note="the private disk is full") if status["disk_full"] else result
    if "started" in status:
        return replace(result, status="no_report", note="the sandbox was killed from inside")
    said = "".join(f": {line}" for line in _lines(result.stderr)[-1:])
    return replace(result, status="sandbox_error", note=f"the sandbox ended without a word{said}")


def _lines(output: bytes) -> list[str]:
    return output.decode("utf-8", "replace").strip().splitlines()


def _with_path(command: Command) -> list[str]:
    """The arguments with the program as a full path, since no shell resolves it."""
    program = command.arguments[0]
    found = shutil.which(program, path=command.environment.get("PATH", os.defpath)) if "/" not in program else program
    return [found or program, *command.arguments[1:]]


# Warm workers: started once, given one job after another, replaced when they fail

# How long a worker may be idle while it starts, or cleans up after a job. On a busy machine both take long, but the
# worker is then runnable, not idle: so load changes no verdict, and a worker that its job has stopped blocks nothing.
_START_IDLE_SECONDS = 60.0
_END_IDLE_SECONDS = 2.0
_LONGEST_SECONDS = 600.0


class WorkerLostError(Exception):
    """The worker exited, or could not be started."""


@dataclass(frozen=True)
class Borrowed:
    """Modules that are imported from a folder that is not on the path: always from there, or only as a last resort."""

    folder: Path
    first: tuple[str, ...]
    last: tuple[str, ...]


@dataclass(frozen=True)
class JobAnswer:
    """A job's output, the limit that it exceeded first, and how its process ended: None if that is not known."""

    content: bytes
    exceeded: LimitExceeded | None = None
    exit_code: int | None = None


@dataclass
class WarmWorker:
    """One worker (`module:function`) in one sandbox, which is given one job after another."""

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
    _tmp: Path | None = None

    def answer(self, payload: Any, limits: Limits, max_bytes: int) -> JobAnswer:
        """Give the worker a job and wait for its answer. A limit that it exceeds ends the worker.

        A job has ended when its fork server says so, not when the pipe closes: a process that it left behind may hold
        that open.
        """
        if self._control is None or self._served >= self.jobs_before_replaced:
            self.close()
            self._start()
        assert self._control is not None
        control, content, idle = self._control, bytearray(), _END_IDLE_SECONDS if self._forks else 0.0
        # Before the job starts, so that all of its time counts.
        clock = JobClock(self.process, limits, self._tmp)
        reads, writes = os.pipe()
        with os.fdopen(reads, "rb"):
            try:
                self._send(control, payload, writes)
            finally:
                os.close(writes)
            found = _read_until_end(control.fileno(), {reads: content}, max_bytes, clock, idle)
        # Nothing if the worker itself has ended.
        ended = json.loads(self._receive(_END_IDLE_SECONDS) or "{}") if found is True else {}
        exceeded, exit_code = LimitExceeded("disk_limit") if ended.get("disk_full") else None, ended.get("exit_code")
        if isinstance(found, LimitExceeded):
            exceeded = found
        if exceeded is not None:
            self.close()
        elif self._forks and (exit_code is None or self._receive(_END_IDLE_SECONDS) is None):
            self.close()
            exit_code = None
        elif self._forks and has_connections(self.process):
            # The next job would find their ports in use.
            self.close()
        return JobAnswer(bytes(content), exceeded, exit_code)

    def _send(self, control: socket.socket, payload: Any, answer: int) -> None:
        """Send a job and the descriptor of its answer."""
        self._served += 1
        file = os.memfd_create("job")
        try:
            with os.fdopen(file, "wb", closefd=False) as writing:
                writing.write(json.dumps(payload).encode())
            os.lseek(file, 0, os.SEEK_SET)
            socket.send_fds(control, [JOB], [file, answer])
        except OSError as error:
            self.close()
            raise WorkerLostError(str(error)) from None
        finally:
            os.close(file)

    @property
    def process(self) -> int:
        """The process id of the sandbox; 0 if none runs."""
        return self._process.pid if self._process is not None else 0

    def close(self) -> None:
        """Kill the worker and everything in its sandbox."""
        if self._process is not None:
            if self._control is not None:
                self._control.close()
            if not self.sandbox.backend.pid_namespace:
                self._process.kill()
            end_sandbox(self._process, pid_namespace=self.sandbox.backend.pid_namespace)
        self._process, self._control, self._served = None, None, 0
        self._keep.close()

    def _start(self) -> None:
        sandbox, borrowed = self.sandbox, self.borrowed
        self._tmp = None if sandbox.backend.pid_namespace else self._keep.enter_context(sandbox.folder())
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        inside = {
            "worker": self.worker,
            "control_fd": theirs.fileno(),
            "paths": list(self.paths),
            "borrowed": asdict(borrowed) if borrowed is not None else None,
        }
        readable = [*self.paths, *([borrowed.folder] if borrowed is not None else [])]
        launch = Launch(self.limits, inside, self._tmp, self.python, readable)
        with theirs:
            process = self._process = sandbox.start(launch, self._keep, theirs.fileno(), subprocess.DEVNULL)
        self._control = ours
        ready = self._receive(_START_IDLE_SECONDS)
        self._forks = ready == READY
        assert process.stderr is not None
        with process.stderr:
            if ready is None:
                process.kill()
                said = _lines(process.stderr.read())
                self.close()
                raise WorkerLostError(f"the sandbox could not be started: {said[-1] if said else 'no word'}")

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


# Choosing a sandbox by probing it: inside, attempt everything that must be denied and use what must work. An installed
# backend that does not isolate is worse than none, so checking for the program is not enough.

BACKENDS: tuple[type[Backend], ...] = (Bubblewrap, Landlock)
INSTALL = "apt-get install bubblewrap (Debian, Ubuntu), or dnf install bubblewrap (Fedora)"
_PROBE_SECONDS = 20.0

# The backends that this process has seen hold.
_held: set[type[Backend]] = set()


def choose_sandbox(scratch: Path, wanted: str = "auto", unsandboxed: bool = False) -> SandboxRunner:
    """The first backend that holds; raises TouchstoneError if none does. No isolation only if `unsandboxed` is set."""
    if unsandboxed:
        return SandboxRunner(Unsandboxed(), scratch)
    tried = []
    for backend in (kind() for kind in BACKENDS):
        if wanted in ("auto", backend.name):
            failure = backend.missing() if type(backend) in _held else probe_backend(backend, scratch)
            if failure is None:
                _held.add(type(backend))
                return SandboxRunner(backend, scratch)
            tried.append(f"{backend.name}: {failure}")
    raise TouchstoneError(
        f"no sandbox works here, so nothing is validated ({'; '.join(tried)}); install bubblewrap: {INSTALL}, "
        "or set 'validation.unsandboxed' to true in the config if you trust every fix"
    )


def probe_backend(backend: Backend, scratch: Path) -> str | None:
    """Start a worker in the sandbox that tries to escape; returns why the backend does not hold, None if it does."""
    missing = backend.missing()
    if missing is not None:
        return missing
    scratch.mkdir(parents=True, exist_ok=True)
    limits = Limits(processes=16, seconds=_PROBE_SECONDS)
    sandbox = SandboxRunner(backend, scratch)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    with tempfile.NamedTemporaryFile(dir=scratch) as secret, contextlib.closing(listener):
        os.chmod(secret.name, 0o666)  # noqa: PTH101
        Path(secret.name).write_text("secret")
        payload = {"secret": secret.name, "port": listener.getsockname()[1], "parent": os.getpid()}
        os.environ["TOUCHSTONE_PROBE_SECRET"] = secrets.token_hex()
        worker = WarmWorker(sandbox, "touchstone.validation.sandbox.entrypoint:serve_probe", limits)
        try:
            answer = worker.answer(payload, limits, 10_000)
            results = json.loads(answer.content) if answer.exit_code == 0 and answer.content else {"an answer": False}
        except (WorkerLostError, TouchstoneError) as error:
            return str(error)
        finally:
            worker.close()
            del os.environ["TOUCHSTONE_PROBE_SECRET"]
        if Path(secret.name).read_text() != "secret":
            results["no write outside"] = False
    failed = [name for name, good in results.items() if not good]
    return f"it does not hold: {', '.join(failed)}" if failed else None
