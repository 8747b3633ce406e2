"""The processes of `touchstone ui`, which end together: with Ctrl-C, SIGTERM, or when one of them ends by itself."""

import ctypes
import os
import signal
import subprocess
import time
from contextlib import suppress
from types import TracebackType
from typing import NoReturn, Self

from touchstone.errors import TouchstoneError

_LOOK_EVERY_SECONDS = 0.2
_PATIENCE_SECONDS = 60
_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


class Services:
    """Services by name. `kept_open` is a descriptor that stays open until the last of them has ended."""

    def __init__(self, kept_open: int) -> None:
        self._kept_open = kept_open
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self._handlers = {number: signal.signal(number, _interrupt) for number in _STOP}
        return self

    def start(self, name: str, *command: str) -> None:
        """Start a service in a session of its own: Ctrl-C in a terminal must reach this process only."""
        self._running[name] = subprocess.Popen(
            command, start_new_session=True, pass_fds=[self._kept_open], preexec_fn=_end_with_parent
        )

    def watch(self) -> None:
        """Wait a moment; an error if a service has ended."""
        time.sleep(_LOOK_EVERY_SECONDS)
        for name, process in self._running.items():
            if process.poll() is not None:
                raise TouchstoneError(f"Dagster's {name} ended with exit code {process.returncode}; see above why")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        """End all services with what they started. Ctrl-C is the usual end."""
        for number in _STOP:
            signal.signal(number, signal.SIG_IGN)
        for process in self._running.values():
            _signal_group(process, signal.SIGTERM)
        for process in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE_SECONDS)
            _signal_group(process, signal.SIGKILL)
            process.wait()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        return kind is KeyboardInterrupt


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _signal_group(process: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _end_with_parent() -> None:
    """Have the kernel end a service where this process is killed: the daemon would go on to start runs."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
