"""The processes that a process has started, waiting for their end, and a port for one that serves."""

import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def descendants(process: int) -> list[int]:
    """A process and everything it has started; one that ends meanwhile has no children."""
    found = [process]
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            for child in task.read_text().split():
                found += descendants(int(child))
    return found


def kill_all(processes: list[int]) -> None:
    """Kill processes, some of which may have ended."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    wait_until_gone(processes)


def wait_until_gone(family: list[int]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{process}").exists() and not is_zombie(process) for process in family):
            return
        time.sleep(0.05)
    left = [process for process in family if Path(f"/proc/{process}").exists()]
    raise AssertionError(f"still running: {left}")


def is_zombie(process: int) -> bool:
    """Whether the process has ended, and at most waits for its parent to notice."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
