"""The processes that a process has started, and waiting for their end."""

import time
from pathlib import Path


def descendants(process: int) -> list[int]:
    found = [process]
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in task.read_text().split():
            found += descendants(int(child))
    return found


def wait_until_gone(family: list[int]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{process}").exists() and not is_zombie(process) for process in family):
            return
        time.sleep(0.05)
    left = [process for process in family if Path(f"/proc/{process}").exists()]
    raise AssertionError(f"still running: {left}")


def is_zombie(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
