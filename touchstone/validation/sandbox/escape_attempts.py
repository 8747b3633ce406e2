"""The probe's attempts to escape, made inside a sandbox. Each result is named after what must hold."""

import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from touchstone.validation.sandbox import fork_server
from touchstone.validation.sandbox.entrypoint import Policy


def serve(policy: Policy) -> None:
    """The warm worker of the probe."""
    fork_server.serve(policy, lambda payload, descriptors: _attempt_all(policy, payload, descriptors[0]))


def _attempt_all(policy: Policy, payload: dict[str, Any], answer: int) -> None:
    results = {
        "no read of a file outside": not _works(lambda: Path(payload["secret"]).read_text()),
        "no write outside": not _works(lambda: Path(payload["secret"]).write_text("changed")),
        "no read of /etc/shadow": not _works(lambda: Path("/etc/shadow").read_text()),
        "no network": not _works(lambda: socket.create_connection(("127.0.0.1", payload["port"]), 1)),
        "no secret in the environment": "TOUCHSTONE_PROBE_SECRET" not in os.environ,
        "no signal to the supervisor": not _works(lambda: os.kill(payload["parent"], 0)),
        "no endless processes": _is_stopped_forking(policy["limits"]["processes"]),
        "a private folder to write in": _works(lambda: Path(policy["tmp"], "note").write_text("x")),
    }
    os.write(answer, json.dumps(results).encode())


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def _is_stopped_forking(limit: int | None) -> bool:
    if limit is None:
        return False
    children = []
    try:
        for _ in range(limit + 1):
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
    except OSError:
        return True
    finally:
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
    return False
