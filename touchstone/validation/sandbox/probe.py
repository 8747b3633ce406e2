"""Choosing a sandbox by trying it: inside, everything that must be denied is attempted, and what must work is used.

A backend whose program is there but whose walls are not is worse than none, so a look for the program is not enough.
"""

import contextlib
import json
import os
import secrets
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from touchstone.errors import TouchstoneError
from touchstone.validation.sandbox.backends import Backend, Bubblewrap, Landlock, Unsandboxed
from touchstone.validation.sandbox.clock import JobClock
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.sandbox.warm_worker import WarmWorker, WorkerLostError, read_until_closed

BACKENDS: tuple[type[Backend], ...] = (Bubblewrap, Landlock)
INSTALL = "apt-get install bubblewrap (Debian, Ubuntu), or dnf install bubblewrap (Fedora)"
_PROBE_SECONDS = 20.0


@dataclass(frozen=True)
class ProbeResult:
    """What came of trying a backend: `failure` is None where it holds."""

    name: str
    failure: str | None


def choose_sandbox(scratch: Path, wanted: str = "auto", unsandboxed: bool = False) -> SandboxRunner:
    """The first backend that holds, or a refusal that says what to install. Nothing runs unsandboxed unasked."""
    if unsandboxed:
        return SandboxRunner(Unsandboxed(), scratch)
    tried = []
    for backend in (kind() for kind in BACKENDS):
        if wanted in ("auto", backend.name):
            result = probe_backend(backend, scratch)
            if result.failure is None:
                return SandboxRunner(backend, scratch)
            tried.append(f"{backend.name}: {result.failure}")
    raise TouchstoneError(
        f"no sandbox works here, so nothing is validated ({'; '.join(tried)}); install bubblewrap: {INSTALL}, "
        "or set 'validation.unsandboxed' to true in the config if you trust every fix"
    )


def probe_backend(backend: Backend, scratch: Path) -> ProbeResult:
    """Start a worker in it that tries to get out."""
    missing = backend.missing()
    if missing is not None:
        return ProbeResult(backend.name, missing)
    scratch.mkdir(parents=True, exist_ok=True)
    limits = Limits(processes=16, seconds=_PROBE_SECONDS)
    sandbox = SandboxRunner(backend, scratch)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    with tempfile.NamedTemporaryFile(dir=scratch) as secret, contextlib.closing(listener):
        os.chmod(secret.name, 0o666)  # noqa: PTH101
        Path(secret.name).write_text("secret")
        told = {"secret": secret.name, "port": listener.getsockname()[1], "parent": os.getpid()}
        os.environ["TOUCHSTONE_PROBE_SECRET"] = secrets.token_hex()
        worker = WarmWorker(sandbox, "touchstone.validation.sandbox.escape_attempts:serve", limits)
        reads, writes = os.pipe()
        try:
            try:
                worker.job(told, [writes])
            finally:
                os.close(writes)
            answer, passed = read_until_closed(reads, 10_000, JobClock([worker.process], limits).exceeded)
            results = json.loads(answer) if passed is None and answer else {"an answer": False}
        except (WorkerLostError, TouchstoneError) as error:
            return ProbeResult(backend.name, str(error))
        finally:
            os.close(reads)
            worker.close()
            del os.environ["TOUCHSTONE_PROBE_SECRET"]
        if Path(secret.name).read_text() != "secret":
            results["no write outside"] = False
    failed = [name for name, good in results.items() if not good]
    return ProbeResult(backend.name, f"it does not hold: {', '.join(failed)}" if failed else None)
