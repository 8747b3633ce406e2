"""What the workers of `test_workers` do: a module that their processes import in a moment, unlike pytest."""

import os
import signal
import time
from pathlib import Path

prefix = ""


def set_up(given: str) -> None:
    global prefix
    prefix = given


def tear_down() -> None:
    set_up("")


def shout(item: str) -> str:
    """The mapped function: some items raise, and some kill their process."""
    if item == "bad":
        raise ValueError("a bad item")
    if item == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    if item.startswith("deadly once"):
        marker = Path(item.partition(":")[2])
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return f"{prefix}{item.upper()}"


def sleep(item: str) -> None:
    Path(item, str(os.getpid())).touch()
    time.sleep(600)


def processors(item: str) -> list[int]:
    """The processors that this worker may use, after giving the other workers time to start."""
    time.sleep(0.3)
    return sorted(os.sched_getaffinity(0))
