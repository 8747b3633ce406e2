"""The loop of a warm worker that runs every job in a process of its own, and leaves nothing behind between two jobs.

It runs inside the sandbox. The supervisor sends descriptors: first a file with the job, then whatever the job needs.
It asks for the end of a job with another message, when it is done or at once, and is told how the job's process ended.
"""

import gc
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from touchstone.validation.sandbox.entrypoint import (
    Policy,
    apply_limits,
    confine,
    die_with_parent,
    kill_all_other_processes,
)
from touchstone.validation.sandbox.folders import empty

JOB, END, KILL = b"job", b"end", b"kill"
MAX_DESCRIPTORS = 8
# Room for the interpreter itself and its libraries, which count as address space but hardly use memory.
_INTERPRETER_BYTES = 256 * 2**20

# A process that has said all it had to say needs a moment to be gone, and on a busy machine a long one.
_ENDING_SECONDS = 60.0

Job = Callable[[Any, list[int]], None]


def serve(policy: Policy, job: Job) -> None:
    """Take jobs until the supervisor goes away. `job` gets the decoded job and its descriptors."""
    control = socket.socket(fileno=policy["control_fd"])
    child: int | None = None
    # What is loaded by now is never freed, so no job needs to look at it, which would copy its memory.
    gc.collect()
    gc.freeze()
    worker = os.getpid()
    control.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 16, MAX_DESCRIPTORS)
        if message == JOB:
            child = os.fork()
            if child == 0:
                _run(policy, worker, control, job, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
        elif message in (END, KILL):
            ended = _end(policy, child, _ENDING_SECONDS if message == END else 0.0)
            child = None
            if not empty(Path(policy["tmp"])):
                return
            control.send(json.dumps(ended).encode())
        else:
            return


def _run(policy: Policy, worker: int, control: socket.socket, job: Job, descriptors: list[int]) -> NoReturn:
    try:
        control.close()
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        with os.fdopen(descriptors[0], "rb") as file:
            told = json.load(file)
        os.environ.clear()
        os.environ.update({"HOME": policy["tmp"], "TMPDIR": policy["tmp"], "LANG": "C.UTF-8"})
        limits = policy["limits"]
        apply_limits(limits, address_space=limits["memory_bytes"] + _INTERPRETER_BYTES)
        if not policy["pid_namespace"]:
            die_with_parent(worker)
            confine(policy, processes=False)
        job(told, descriptors[1:])
    finally:
        os._exit(0)


def _end(policy: Policy, child: int | None, wait_seconds: float) -> dict[str, Any]:
    """End the job's process, if it does not end by itself in time, and all that it left."""
    free = os.statvfs(policy["tmp"])
    told: dict[str, Any] = {"exit_code": None, "disk_full": policy["pid_namespace"] and free.f_bavail == 0}
    if child is None:
        return told
    give_up = time.monotonic() + wait_seconds
    while told["exit_code"] is None:
        reaped, status = os.waitpid(child, os.WNOHANG)
        if reaped:
            told["exit_code"] = os.waitstatus_to_exitcode(status)
        elif time.monotonic() < give_up:
            time.sleep(0.0002)
        else:
            break
    if policy["pid_namespace"]:
        kill_all_other_processes(policy)
    elif told["exit_code"] is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return told
