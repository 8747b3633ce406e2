"""The first code that runs inside a sandbox: it drops all remaining privileges, then hands over.

It runs in a fresh interpreter with only the standard library. A policy says what to drop: the user, capabilities,
memory and process limits, files (landlock) and system calls (seccomp). Then it either becomes a warm worker, or starts
a command and supervises it, so that no process of the command survives.
"""

import ctypes
import importlib
import importlib.machinery
import json
import os
import resource
import signal
import sys
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from touchstone.validation.sandbox import landlock, seccomp

Policy = dict[str, Any]

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER = 1, 4, 24, 36
_CAPABILITIES = 41
# Opened once: a forked job uses it too.
_LIBC = ctypes.CDLL(None, use_errno=True)
# In bubblewrap's PID namespace, its own init is 1 and this process is 2.
_FIRST_IN_NAMESPACE = 2


def enter(policy: Policy) -> NoReturn:
    """Apply the policy and hand over; never returns."""
    sys.path.extend(policy["paths"])
    if policy["borrowed"] is not None:
        _borrow_modules(policy["borrowed"])
    if policy["worker"] is not None:
        _serve_worker(policy)
    _supervise_command(policy)


class _Finder:
    """Finds the named top-level modules in one folder."""

    def __init__(self, folder: str, names: Sequence[str]) -> None:
        self._folder, self._names = folder, frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of one of the modules; their submodules are found through them."""
        if path is not None or fullname not in self._names:
            return None
        return importlib.machinery.PathFinder.find_spec(fullname, [self._folder], target)


def _borrow_modules(borrowed: Mapping[str, Any]) -> None:
    """Of Touchstone's own packages, import those in `first` always, those in `last` if they are found nowhere else."""
    sys.meta_path.insert(0, _Finder(borrowed["folder"], borrowed["first"]))
    sys.meta_path.append(_Finder(borrowed["folder"], borrowed["last"]))


def _serve_worker(policy: Policy) -> NoReturn:
    """Become a warm worker: call `module:function` with the policy; it serves until its control socket closes."""
    # What Touchstone was started with, `nohup` for instance, would be ignored by what a fix starts and wants to end.
    for stop in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(stop, signal.SIG_DFL)
    module, _, function = policy["worker"].partition(":")
    serve = getattr(importlib.import_module(module), function)
    # A candidate's processes have the same user: without PR_SET_DUMPABLE=0 they could write to this memory.
    switch_user(policy)
    if not policy["pid_namespace"]:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_DUMPABLE, 0)
    os.chdir(policy["tmp"])
    confine(policy, processes=True)
    serve(policy)
    os._exit(0)


def switch_user(policy: Policy) -> None:
    """Switch to the sandbox's user; if its files would be unreadable then, stay root without capabilities."""
    if policy["uid"] is not None:
        os.setgroups([])
        os.setresgid(policy["uid"], policy["uid"], policy["uid"])
        os.setresuid(policy["uid"], policy["uid"], policy["uid"])
    if policy["confined"]:
        _drop_capabilities()


def confine(policy: Policy, *, processes: bool) -> None:
    """Restrict files and system calls. This cannot be undone; a second call can only restrict more."""
    if policy["landlock"] is not None:
        landlock.restrict(policy["landlock"]["readable"], policy["landlock"]["writable"])
    if policy["confined"]:
        allowed = seccomp.build(
            unix_sockets=policy["unix_sockets"],
            processes=processes,
            signals=processes or policy["pid_namespace"],
            attributes=policy["landlock"] is None or policy["uid"] is not None,
            preallocation=policy["landlock"] is None,
            # A command may protect one of its processes from the others, as the Rust validator does.
            hiding=policy["worker"] is None,
        )
        seccomp.install(allowed)


def apply_limits(limits: dict[str, Any]) -> None:
    """Set the resource limits of this process and its children."""
    for what, pair in resource_limits(limits):
        resource.setrlimit(what, pair)


def resource_limits(limits: dict[str, Any], address_space: int | None = None) -> list[tuple[int, tuple[int, int]]]:
    """What `apply_limits` sets, each resource with its soft and hard limit."""
    found = []
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
            found.append((what, (value, value) if hard == resource.RLIM_INFINITY else (min(value, hard),) * 2))
    return found


def be_visible() -> None:
    """Let the supervisor see this process's descriptors; a forked process inherits that its worker's are hidden."""
    _prctl(_PR_SET_DUMPABLE, 1)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent exits, which may already have happened."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def kill_all_other_processes(policy: Policy) -> None:
    """Kill every process of the sandbox except this one."""
    if policy["pid_namespace"]:
        # Outside a PID namespace, kill(-1) would kill every process of the user.
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


def _supervise_command(policy: Policy) -> NoReturn:
    """Run the command in a child, kill everything it leaves behind, then report its exit status.

    The status pipe gets a line when the command starts and one when it has ended, so that a supervisor that was killed
    in between can be distinguished from a sandbox that never worked.
    """
    status = policy["status_fd"]
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # The command may have the same user: without this it could reach the status pipe through /proc.
    _prctl(_PR_SET_DUMPABLE, 0)

    def kill_and_exit(*_: object) -> None:
        kill_all_other_processes(policy)
        os._exit(1)

    for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(stop, kill_and_exit)
    if not policy["pid_namespace"]:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    child = os.fork()
    if child == 0:
        _exec_command(policy)
    _, ended = os.waitpid(child, 0)
    kill_all_other_processes(policy)
    free = os.statvfs(policy["tmp"])
    full = policy["pid_namespace"] and (free.f_bavail == 0 or free.f_favail == 0)
    report = {"exit_code": os.waitstatus_to_exitcode(ended), "disk_full": full}
    os.write(status, json.dumps(report).encode() + b"\n")
    os._exit(0)


def _exec_command(policy: Policy) -> NoReturn:
    status = policy["status_fd"]
    try:
        for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(stop, signal.SIG_DFL)
        os.setsid()
        os.set_inheritable(status, False)
        switch_user(policy)
        work = Path(policy["tmp"]) / "work"
        _copy_tree(policy["tree"], work)
        (work / policy["directory"]).mkdir(parents=True, exist_ok=True)
        os.chdir(work / policy["directory"])
        apply_limits(policy["limits"])
        confine(policy, processes=True)
        os.write(status, json.dumps({"started": True}).encode() + b"\n")
        os.execve(policy["arguments"][0], policy["arguments"], policy["environment"])
    except BaseException as error:
        os.write(status, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
    os._exit(127)


def _copy_tree(source: str, target: Path) -> None:
    # Imported only for commands: the jobs of a warm worker start more slowly the more is loaded.
    import shutil

    def copy(file: str, to: str) -> None:
        shutil.copyfile(file, to)
        Path(to).chmod(0o755 if os.access(file, os.X_OK) else 0o644)

    shutil.copytree(source, target, copy_function=copy)


def _children() -> list[int]:
    """The children of this process. As a subreaper it also adopts orphaned descendants."""
    me, found = os.getpid(), []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                after_name = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                if int(after_name[1]) == me:
                    found.append(int(entry.name))
    return found


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option} was refused")


def _drop_capabilities() -> None:
    for capability in range(_CAPABILITIES):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if _LIBC.capset(header, nothing):
        raise OSError(ctypes.get_errno(), "the capabilities could not be given up")
