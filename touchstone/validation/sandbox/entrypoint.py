"""The first code that runs inside a sandbox: it gives up every right that is left, then hands over.

It runs in a fresh interpreter with nothing but the standard library and is told by a policy what to give up: the
user, capabilities, memory and process limits, files (landlock) and system calls (seccomp). Then it either serves as a
warm worker in this process, or starts a command and stays behind as its keeper, which nothing of the command survives.
"""

import ctypes
import importlib
import json
import os
import resource
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from touchstone.validation.sandbox import landlock, seccomp

Policy = dict[str, Any]

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER = 1, 4, 24, 36
_CAPABILITIES = 41
# In a process namespace of bubblewrap's, its own init is 1 and this is 2.
_FIRST_IN_NAMESPACE = 2


def enter(policy: Policy) -> NoReturn:
    """Do what the policy says; never returns."""
    sys.path.extend(policy["paths"])
    if policy["worker"] is not None:
        _serve(policy)
    _keep(policy)


def _serve(policy: Policy) -> NoReturn:
    """Become a warm worker: `module:function` is called with the policy and serves until its control socket closes."""
    module, _, function = policy["worker"].partition(":")
    serve = getattr(importlib.import_module(module), function)
    # What runs for a candidate has this user too: without this it could write to the worker's memory.
    switch_user(policy)
    if not policy["pid_namespace"]:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_PR_SET_DUMPABLE, 0)
    os.chdir(policy["tmp"])
    confine(policy, processes=True)
    serve(policy)
    os._exit(0)


def switch_user(policy: Policy) -> None:
    """Drop to the sandbox's own user, or as root without capabilities where its files could not be read then."""
    if policy["uid"] is not None:
        os.setgroups([])
        os.setresgid(policy["uid"], policy["uid"], policy["uid"])
        os.setresuid(policy["uid"], policy["uid"], policy["uid"])
    if policy["confined"]:
        _drop_capabilities()


def confine(policy: Policy, *, processes: bool) -> None:
    """Give up files and system calls. What was given up stays so; a second call can only take more."""
    if policy["landlock"] is not None:
        landlock.restrict(policy["landlock"]["readable"], policy["landlock"]["writable"])
    if policy["confined"]:
        allowed = seccomp.build(
            unix_sockets=policy["unix_sockets"],
            processes=processes,
            signals=processes or policy["pid_namespace"],
            attributes=policy["landlock"] is None or policy["uid"] is not None,
        )
        seccomp.install(allowed)


def apply_limits(limits: dict[str, Any], *, address_space: int | None = None) -> None:
    """Put the limits on this process and what it starts."""
    for what, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_FSIZE, limits["disk_bytes"]),
        (resource.RLIMIT_DATA, limits["memory_bytes"]),
        (resource.RLIMIT_AS, address_space),
    ):
        if value is not None:
            hard = resource.getrlimit(what)[1]
            resource.setrlimit(what, (value, value) if hard == resource.RLIM_INFINITY else (min(value, hard),) * 2)


def die_with_parent(parent: int) -> None:
    """Let the kernel end this process when its parent ends, which may have happened already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def kill_all_other_processes(policy: Policy) -> None:
    """End every process of the sandbox but this one."""
    if policy["pid_namespace"]:
        # Without a namespace of our own this call would end every process of the user.
        if os.getpid() != _FIRST_IN_NAMESPACE:
            raise RuntimeError("this is not the first process of its own namespace")
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    while True:
        if not policy["pid_namespace"]:
            for child in _children():
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _keep(policy: Policy) -> NoReturn:
    """Run the command in a child and stay behind to end whatever it leaves, then tell how it ended."""
    status = policy["status_fd"]
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # The command may have the same user: without this it could write to the status pipe through /proc.
    _prctl(_PR_SET_DUMPABLE, 0)

    def leave(*_: object) -> None:
        kill_all_other_processes(policy)
        os._exit(1)

    for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(stop, leave)
    if not policy["pid_namespace"]:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    child = os.fork()
    if child == 0:
        _become_command(policy)
    _, ended = os.waitpid(child, 0)
    kill_all_other_processes(policy)
    free = os.statvfs(policy["tmp"])
    full = policy["pid_namespace"] and (free.f_bavail == 0 or free.f_favail == 0)
    report = {"exit_code": os.waitstatus_to_exitcode(ended), "disk_full": full}
    os.write(status, json.dumps(report).encode() + b"\n")
    os._exit(0)


def _become_command(policy: Policy) -> NoReturn:
    status = policy["status_fd"]
    try:
        for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(stop, signal.SIG_DFL)
        os.setsid()
        os.set_inheritable(status, False)
        switch_user(policy)
        work = Path(policy["tmp"]) / "work"
        shutil.copytree(policy["tree"], work, copy_function=_copy)
        os.chdir(work / policy["directory"])
        apply_limits(policy["limits"])
        confine(policy, processes=True)
        os.execve(policy["arguments"][0], policy["arguments"], policy["environment"])
    except BaseException as error:
        os.write(status, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
    os._exit(127)


def _copy(source: str, target: str) -> None:
    shutil.copyfile(source, target)
    Path(target).chmod(0o755 if os.access(source, os.X_OK) else 0o644)


def _children() -> list[int]:
    """The children of this process. Orphans among its descendants become its children, since it is a subreaper."""
    me, found = os.getpid(), []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                after_name = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                if int(after_name[1]) == me:
                    found.append(int(entry.name))
    return found


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option} was refused")


def _drop_capabilities() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(_CAPABILITIES):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if libc.capset(header, nothing):
        raise OSError(ctypes.get_errno(), "the capabilities could not be given up")
