"""Everything that runs inside a sandbox before and around untrusted code, with the standard library alone.

`enter` drops all remaining privileges, then hands over. A policy says what to drop: the user, capabilities, memory and
process limits, files (landlock) and system calls (seccomp). Then it either becomes a warm worker, most of which are
fork servers (`serve`), or starts a command and supervises it, so that no process of the command survives.
"""

import ctypes
import gc
import importlib
import importlib.machinery
import itertools
import json
import os
import resource
import signal
import socket
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from touchstone.validation.sandbox.confinement import build_filter, install_filter, restrict_files

Policy = dict[str, Any]
Payload = Any

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER = 1, 4, 24, 36
_CAPABILITIES = 41
# Opened once: a forked job uses it too.
_LIBC = ctypes.CDLL(None, use_errno=True)
# In bubblewrap's PID namespace, its own init is 1 and this process is 2.
_FIRST_IN_NAMESPACE = 2
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
JOB, READY = b"job", b"ready to fork"
MAX_DESCRIPTORS = 8
# The folder with a job's files in the private folder.
WORK = "work"
# Of hidden folders among installed packages, those without caches: npm's commands, and pnpm's packages.
_LINKED_FOLDERS = (".bin", ".pnpm")
# Headroom for the interpreter and its libraries, which use address space but little memory.
INTERPRETER_BYTES = 256 * 2**20


def enter(policy: Policy) -> NoReturn:
    """Apply the policy and hand over; never returns."""
    if policy["worker"] is not None:
        _serve_worker(policy)
    _supervise_command(policy)


def switch_user(policy: Policy) -> None:
    """Switch to the sandbox's user; if its files would be unreadable then, stay root without capabilities."""
    if policy["uid"] is not None:
        os.setgroups([])
        os.setresgid(policy["uid"], policy["uid"], policy["uid"])
        os.setresuid(policy["uid"], policy["uid"], policy["uid"])
    if policy["confined"]:
        for capability in range(_CAPABILITIES):
            _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
        header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        if _LIBC.capset(header, nothing):
            raise OSError(ctypes.get_errno(), "the capabilities could not be given up")


def confine(policy: Policy, *, processes: bool) -> None:
    """Restrict files and system calls. This cannot be undone; a second call can only restrict more."""
    if policy["landlock"] is not None:
        restrict_files(policy["landlock"]["readable"], policy["landlock"]["writable"])
    if policy["confined"]:
        allowed = build_filter(
            sockets=policy["sockets"],
            processes=processes,
            signals=processes or policy["pid_namespace"],
            attributes=policy["landlock"] is None or policy["uid"] is not None,
            preallocation=policy["landlock"] is None,
            # A command may protect one of its processes from the others, as the Rust validator does.
            hiding=policy["worker"] is None,
        )
        install_filter(allowed)


def apply_limits(limits: Mapping[str, Any], address_space: int | None = None) -> None:
    """Set the resource limits of this process and its children."""
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
            resource.setrlimit(what, (value if hard == resource.RLIM_INFINITY else min(value, hard),) * 2)


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
            # As a subreaper, this process also adopts orphaned descendants.
            for child in Path("/proc/thread-self/children").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option} was refused")


# Folders written by untrusted code, however deep they are and whatever their permissions


def empty_folder(folder: str | Path) -> bool:
    """Remove everything in a folder; returns False if something could not be removed.

    Nested folders are moved up first, so that no path grows too long. Nothing else may write to the folder meanwhile.
    Plain os calls, because this runs after every job.
    """
    names = (f"{folder}/{os.urandom(8).hex()}-{count}" for count in itertools.count())
    try:
        while inside := _remove_files(folder):
            for each in inside:
                for deeper in _remove_files(each):
                    os.rename(deeper, next(names))  # noqa: PTH104
                os.rmdir(each)  # noqa: PTH106
    except OSError:
        return False
    return True


def remove_folder(folder: Path) -> None:
    """Remove a folder and its contents, as far as possible."""
    empty_folder(folder)
    with suppress(OSError):
        folder.rmdir()


def _remove_files(folder: str | Path) -> list[str]:
    """Remove all files in a folder and return its subfolders, made accessible to their owner."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)  # noqa: PTH101
                found.append(entry.path)
            else:
                os.unlink(entry.path)  # noqa: PTH108
    return found


# Warm workers


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


def _serve_worker(policy: Policy) -> NoReturn:
    """Become a warm worker: call `module:function` with the policy; it serves until its control socket closes."""
    sys.path.extend(policy["paths"])
    if (borrowed := policy["borrowed"]) is not None:
        sys.meta_path.insert(0, _Finder(borrowed["folder"], borrowed["first"]))
        sys.meta_path.append(_Finder(borrowed["folder"], borrowed["last"]))
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


def serve(policy: Policy, job: Callable[[Payload, list[int]], None]) -> NoReturn:
    """Run each job in a forked process. `job` gets the decoded payload and its descriptors."""
    payload, descriptors = wait_for_job(policy)
    try:
        job(payload, descriptors)
    finally:
        os._exit(0)


def wait_for_job(policy: Policy, prepare: Callable[[Payload], None] | None = None) -> tuple[Payload, list[int]]:
    """Fork a process for each job until the supervisor disconnects. Returns only in such a process, with its job.

    The supervisor sends file descriptors: first a file with the job, then those the job needs. It gets two messages:
    how the job's process ended, once that has exited and whatever it left behind is killed; and `READY`, as before the
    first job, once the folder is empty again. `prepare` gets the payload before the fork, so that what several jobs
    need is made once; it runs nothing of a fix.
    """
    control = socket.socket(fileno=policy["control_fd"])
    os.environ.clear()
    os.environ.update({"HOME": policy["tmp"], "TMPDIR": policy["tmp"], "LANG": "C.UTF-8"})
    close_standard_streams()
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
            _enter_job(policy, worker)
            return payload, descriptors[1:]
        del payload
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(_end_job(policy, child))
        if not empty_folder(policy["tmp"]):
            os._exit(0)


def close_standard_streams() -> None:
    """Connect the standard streams to nothing: the supervisor reads errors of the worker from them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)


def _enter_job(policy: Policy, worker: int) -> None:
    os.setsid()
    # Let the supervisor see this process's descriptors: it inherits that its worker's are hidden.
    _prctl(_PR_SET_DUMPABLE, 1)
    apply_limits(policy["limits"], policy["limits"]["memory_bytes"] + INTERPRETER_BYTES)
    if not policy["pid_namespace"]:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != worker:  # it has exited already
            os._exit(1)
        confine(policy, processes=False)


def _end_job(policy: Policy, child: int) -> bytes:
    """Wait until the job's process exits, and kill what it left behind. The supervisor kills all at a limit."""
    _, status = os.waitpid(child, 0)
    full = policy["pid_namespace"] and os.statvfs(policy["tmp"]).f_bavail == 0
    # In landlock, a job can start no process.
    if policy["pid_namespace"] or not policy["confined"]:
        kill_all_other_processes(policy)
    return json.dumps({"exit_code": os.waitstatus_to_exitcode(status), "disk_full": full}).encode()


# The probe's attempts to escape. Each result is named after what must hold.


def serve_probe(policy: Policy) -> None:
    """The warm worker of the probe."""
    serve(policy, lambda payload, descriptors: _attempt_all(policy, payload, descriptors[0]))


def _attempt_all(policy: Policy, payload: dict[str, Any], answer: int) -> None:
    results = {
        "no read of a file outside": not _works(lambda: Path(payload["secret"]).read_text()),
        "no write outside": not _works(lambda: Path(payload["secret"]).write_text("changed")),
        "no read of /etc/shadow": not _works(lambda: Path("/etc/shadow").read_text()),
        "no network": not _works(lambda: socket.create_connection(("127.0.0.1", payload["port"]), 1)),
        "no secret in the environment": "TOUCHSTONE_PROBE_SECRET" not in os.environ,
        "no signal to the supervisor": not _works(lambda: os.kill(payload["parent"], 0)),
        "no endless processes": _is_stopped_forking(policy["limits"]["processes"]),
        "a private folder to write in": _works(lambda: Path(policy["tmp"], "note").write_text("x")),
    }
    os.write(answer, json.dumps(results).encode())


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def _is_stopped_forking(limit: int | None) -> bool:
    if limit is None:
        return False
    children = []
    try:
        for _ in range(limit + 1):
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
    except OSError:
        return True
    finally:
        for child in children:
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
    return False


# Commands


def _supervise_command(policy: Policy) -> NoReturn:
    """Run the command in a child, kill everything it leaves behind, then report its exit status.

    The status pipe gets a line when the command starts and one when it has ended, so that a supervisor that was killed
    in between can be distinguished from a sandbox that never worked.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # The command may have the same user: without this it could reach the status pipe through /proc.
    _prctl(_PR_SET_DUMPABLE, 0)

    def kill_and_exit(*_: object) -> None:
        kill_all_other_processes(policy)
        os._exit(1)

    for stop in _STOP_SIGNALS:
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
    _write_status(policy, {"exit_code": os.waitstatus_to_exitcode(ended), "disk_full": full})
    os._exit(0)


def _exec_command(policy: Policy) -> NoReturn:
    try:
        for stop in (*_STOP_SIGNALS, signal.SIGPIPE):
            signal.signal(stop, signal.SIG_DFL)
        os.setsid()
        os.set_inheritable(policy["status_fd"], False)
        switch_user(policy)
        work = Path(policy["tmp"], WORK)
        _copy_tree(policy["tree"], work)
        for place, folder in policy["packages"].items():
            with suppress(FileExistsError, NotADirectoryError):  # a fix has a file in place of the folder around it
                _link_packages(folder, work / place)
        (work / policy["directory"]).mkdir(parents=True, exist_ok=True)
        os.chdir(work / policy["directory"])
        apply_limits(policy["limits"])
        confine(policy, processes=True)
        _write_status(policy, {"started": True})
        os.execve(policy["arguments"][0], policy["arguments"], policy["environment"])
    except BaseException as error:
        _write_status(policy, {"error": f"{type(error).__name__}: {error}"})
    os._exit(127)


def _write_status(policy: Policy, status: dict[str, Any]) -> None:
    os.write(policy["status_fd"], json.dumps(status).encode() + b"\n")


def _copy_tree(source: str, target: Path) -> None:
    # Imported only for commands: the jobs of a warm worker start more slowly the more is loaded.
    import shutil

    def copy(file: str, to: str) -> None:
        shutil.copyfile(file, to)
        Path(to).chmod(0o755 if os.access(file, os.X_OK) else 0o644)

    shutil.copytree(source, target, copy_function=copy)


def _link_packages(source: str, target: Path) -> None:
    """Make a folder of links to installed packages, in which tools can keep a cache, instead of what a fix has there.

    A link among them stays as it is: it leads to another package, or to one of the tree itself.
    """
    if target.is_file():
        target.unlink()
    target.mkdir(parents=True, exist_ok=True)
    empty_folder(target)
    with os.scandir(source) as entries:
        for entry in entries:
            place = target / entry.name
            if entry.is_symlink():
                place.symlink_to(Path(entry.path).readlink())
            elif entry.name.startswith("@"):
                _link_packages(entry.path, place)
            elif not entry.name.startswith(".") or entry.name in _LINKED_FOLDERS:
                place.symlink_to(entry.path)
