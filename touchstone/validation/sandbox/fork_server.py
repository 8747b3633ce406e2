"""The fork server of a warm worker: runs each job in a forked process and leaves nothing behind between jobs.

It runs inside the sandbox. The supervisor sends file descriptors: first a file with the job, then those the job needs.
It gets two messages: how the job's process ended, once that has exited and whatever it left behind is killed; and
`READY`, as before the first job, once the folder is empty again.
"""

import gc
import json
import os
import resource
import socket
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

JOB, READY = b"job", b"ready to fork"
MAX_DESCRIPTORS = 8
# Headroom for the interpreter and its libraries, which use address space but little memory.
INTERPRETER_BYTES = 256 * 2**20

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
    limits = _prepare(policy)
    # Exclude loaded objects from garbage collection: scanning them would copy their pages in every job.
    gc.collect()
    gc.freeze()
    worker = os.getpid()
    while True:
        control.send(READY)
        message, descriptors, _, _ = socket.recv_fds(control, 16, MAX_DESCRIPTORS)
        if message != JOB:
            os._exit(0)
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
        control.send(json.dumps(_end_job(policy, child)).encode())
        if not empty_folder(policy["tmp"]):
            os._exit(0)


def close_standard_streams() -> None:
    """Connect the standard streams to nothing: the supervisor reads errors of the worker from them."""
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


def _end_job(policy: Policy, child: int) -> dict[str, Any]:
    """Wait until the job's process exits, and kill what it left behind. The supervisor kills all at a limit."""
    _, status = os.waitpid(child, 0)
    full = policy["pid_namespace"] and os.statvfs(policy["tmp"]).f_bavail == 0
    # In landlock, a job can start no process.
    if policy["pid_namespace"] or not policy["confined"]:
        kill_all_other_processes(policy)
    return {"exit_code": os.waitstatus_to_exitcode(status), "disk_full": full}
