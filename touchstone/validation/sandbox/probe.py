"""Choose a sandbox by probing it: inside, attempt everything that must be denied and use what must work.

An installed backend that does not isolate is worse than none, so checking for the program is not enough.
"""

import contextlib
import json
import os
import secrets
import socket
import tempfile
from pathlib import Path

from touchstone.errors import TouchstoneError
from touchstone.validation.sandbox.backends import Backend, Bubblewrap, Landlock, Unsandboxed
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.sandbox.warm_worker import WarmWorker, WorkerLostError

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
        worker = WarmWorker(sandbox, "touchstone.validation.sandbox.escape_attempts:serve", limits)
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
