"""A worker whose jobs write lines and then behave as they are told. It runs in the sandbox."""

import os
import signal
import time
from typing import Any

from touchstone.validation.sandbox import entrypoint
from touchstone.validation.sandbox.entrypoint import Policy

LINE = b"x" * 99 + b"\n"


def serve(policy: Policy) -> None:
    entrypoint.serve(policy, lambda job, descriptors: _write(job, descriptors[0]))


def _write(job: dict[str, Any], answer: int) -> None:
    for _ in range(job["lines"]):
        os.write(answer, LINE)
    match job["then"]:
        case "wait":
            time.sleep(600)
        case "leave a process" if os.fork() == 0:
            signal.pause()
        case "close and wait":
            os.close(answer)
            time.sleep(600)
        case "fail":
            os._exit(3)
