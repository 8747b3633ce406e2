"""The fork server of a warm worker: runs each job in a forked process and leaves nothing behind between jobs.

It runs inside the sandbox. The supervisor sends file descriptors: first a file with the job, then those the job needs.
Another message asks for the end of the job; the reply says how its process ended.
"""

import gc
import json
import os
import resource
import signal
import socket
import time
from collections.abc import Callable
from typing import Any, NoReturn

from touchstone.validation.sandbox.entrypoint import (
    Policy,
    be_visible,
    confine,
    die_with_parent,
    kill_all_other_processes,
    resource_limits,
)
from touchstone.validation.sandbox.folders import empty_folder

JOB, END = b"job", b"end"
MAX_DESCRIPTORS = 8
# Headroom for the interpreter and its libraries, which use address space but little memory.
INTERPRETER_BYTES = 256 * 2**20

# A process that has sent its answer still needs a moment to exit, on a busy machine a long one.
ENDING_SECONDS = 60.0

Payload = Any
ResourceLimits = list[tuple[int, tuple[int, int]]]


def serve(policy: Policy, job: Callable[[Payload, list[int]], None]) -> NoReturn:
    """Run each job in a forked process. `job` gets the decoded payload and its descriptors."""
    payload, descriptors = wait_for_job(policy)
    try:
        job(payload, descriptors)
    finally:
        os._exit(0)


def wait_for_job(policy: Policy, prepare: Callable[[Payload], None] | None = None) -> tuple[Payload, list[int]]:
    """Fork a process for each job until the supervisor disconnects. Returns only in such a process, with its job.

    `prepare` gets the payload before the fork, so that what several jobs need is made once; it runs nothing of a fix.
    """
    control = socket.socket(fileno=policy["control_fd"])
    child: int | None = None
    limits = _prepare(policy)
    # Exclude loaded objects from garbage collection: scanning them would copy their pages in every job.
    gc.collect()
    gc.freeze()
    worker = os.getpid()
    control.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 16, MAX_DESCRIPTORS)
        if message == JOB:
            payload = json.loads(os.read(descriptors[0], os.fstat(descriptors[0]).st_size))
            if prepare is not None:
                prepare(payload)
            child = os.fork()
            if child == 0:
                control.close()
                os.close(descriptors[0])
                _enter_job(policy, worker, limits)
                return payload, descriptors[1:]
            del payload
            for descriptor in descriptors:
                os.close(descriptor)
        elif message == END:
            result = _end_job(policy, child)
            child = None
            if not empty_folder(policy["tmp"]):
                os._exit(0)
            control.send(json.dumps(result).encode())
        else:
            os._exit(0)


def close_standard_streams() -> None:
    """Connect standard input and output to nothing: whoever started the worker reads its errors there."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)


def _prepare(policy: Policy) -> ResourceLimits:
    """Set up what every job inherits, and return the limits that it sets itself.

    A forked process pays for every page that it touches, so whatever is the same for all jobs happens here.
    """
    os.environ.clear()
    os.environ.update({"HOME": policy["tmp"], "TMPDIR": policy["tmp"], "LANG": "C.UTF-8"})
    close_standard_streams()
    limits = policy["limits"]
    return resource_limits(limits, address_space=limits["memory_bytes"] + INTERPRETER_BYTES)


def _enter_job(policy: Policy, worker: int, limits: ResourceLimits) -> None:
    os.setsid()
    be_visible()
    for what, pair in limits:
        resource.setrlimit(what, pair)
    if not policy["pid_namespace"]:
        die_with_parent(worker)
        confine(policy, processes=False)


def _end_job(policy: Policy, child: int | None) -> dict[str, Any]:
    """Wait for the job's process, kill it if it does not exit in time, and kill what it left behind."""
    free = os.statvfs(policy["tmp"])
    job_result: dict[str, Any] = {"exit_code": None, "disk_full": policy["pid_namespace"] and free.f_bavail == 0}
    if child is None:
        return job_result
    give_up = time.monotonic() + ENDING_SECONDS
    while job_result["exit_code"] is None:
        reaped, status = os.waitpid(child, os.WNOHANG)
        if reaped:
            job_result["exit_code"] = os.waitstatus_to_exitcode(status)
        elif time.monotonic() < give_up:
            time.sleep(0.0002)
        else:
            break
    if policy["pid_namespace"]:
        kill_all_other_processes(policy)
    elif job_result["exit_code"] is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return job_result
