"""The three ways to start a process apart from everything: bubblewrap, landlock, and not apart at all.

A backend turns a `Launch` into a command line and a policy for `inside.enter`. It starts nothing itself: running a
command is in `running`, keeping a worker warm in `warm`, and choosing a backend in `probing`.
"""

import functools
import itertools
import json
import os
import shutil
import stat
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from touchstone.errors import TouchstoneError
from touchstone.validation.sandbox import landlock, seccomp
from touchstone.validation.sandbox.command import TMP, Limits

_PACKAGE = Path(__file__).parents[2]
_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin")
_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_TREE, _BOX = "/tree", "/box"
# Users that no account has. Every sandbox gets another one, since the kernel counts processes per user.
_FIRST_USER = 2_000_000
_counter = itertools.count()
_ASK_SECONDS = 120
# All of the environment that a launch gets. Sets keep one order, or a verdict could depend on the worker.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}

_BOOT = (
    "import json, sys; sys.path.insert(0, sys.argv[1]); "
    "from touchstone.validation.sandbox.entrypoint import enter; enter(json.loads(sys.argv[2]))"
)


@dataclass(frozen=True)
class Interpreter:
    """A Python that runs inside: its program and the folders it is made of."""

    program: Path
    folders: tuple[Path, ...]
    version: str


@functools.cache
def interpreter(program: Path | None = None) -> Interpreter:
    """The Python of this process, or another one by its path."""
    if program is None:
        base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        return Interpreter(base, (Path(sys.base_prefix).resolve(),), sys.version.split()[0])
    ask = (
        "import json, sys; "
        "print(json.dumps([sys.executable, sys.prefix, sys.base_prefix, sys._base_executable, sys.version.split()[0]]))"
    )
    try:
        asked = subprocess.run([program, "-I", "-c", ask], capture_output=True, check=True, timeout=_ASK_SECONDS)
        executable, prefix, base, original, version = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise TouchstoneError(f"{program}: is no Python that can be run ({error})") from None
    if tuple(int(part) for part in version.split(".")[:2]) < (3, 11):
        raise TouchstoneError(f"{program}: is Python {version}; 3.11 or later is needed")
    folders = {Path(prefix), Path(base), Path(original).resolve().parent.parent}
    return Interpreter(Path(executable), tuple(sorted(folders)), version)


@dataclass(frozen=True)
class Launch:
    """What is to be started: a command on a tree, or a warm worker (`module:function`)."""

    limits: Limits
    tmp: Path | None = None
    python: Interpreter = field(default_factory=interpreter)
    paths: Sequence[Path] = ()
    readable: Sequence[Path] = ()
    worker: str | None = None
    control_fd: int | None = None
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    tree: Path | None = None
    tree_bytes: int = 0
    directory: str = ""
    status_fd: int | None = None
    mount_proc: bool = False

    @property
    def folders(self) -> list[Path]:
        """Everything that must be readable inside, besides the system."""
        return [*self.python.folders, *self.paths, _PACKAGE, *self.readable]


class Backend(ABC):
    """A way to start a process apart. `pid_namespace`: it has a process namespace, so ending it ends all of it."""

    name: str
    pid_namespace: bool
    needs_folder: bool

    @abstractmethod
    def missing(self) -> str | None:
        """Why it cannot work here, as far as can be seen without trying; None where nothing speaks against it."""

    @abstractmethod
    def wrap(self, launch: Launch) -> tuple[list[str], dict[str, Any]]:
        """What stands before the interpreter on the command line, and what the policy says besides."""

    def user(self, launch: Launch) -> int | None:
        """The user to become inside: one of its own where we may choose, else none."""
        return _FIRST_USER + os.getpid() % 20_000 * 50 + next(_counter) % 50 if os.getuid() == 0 else None

    def command_line(self, launch: Launch) -> list[str]:
        """The whole command line."""
        before, extra = self.wrap(launch)
        limits = asdict(launch.limits)
        policy = {
            "paths": [str(path) for path in launch.paths],
            "worker": launch.worker,
            "control_fd": launch.control_fd,
            "status_fd": launch.status_fd,
            "arguments": list(launch.arguments),
            "environment": dict(launch.environment),
            "directory": launch.directory,
            "pid_namespace": self.pid_namespace,
            "confined": True,
            "unix_sockets": False,
            "landlock": None,
            "uid": None,
            "limits": limits,
            **extra,
        }
        policy["arguments"] = [part.replace(TMP, policy["tmp"]) for part in policy["arguments"]]
        policy["environment"] = {
            name: value.replace(TMP, policy["tmp"]) for name, value in {"TMPDIR": TMP, **policy["environment"]}.items()
        }
        # -I would leave the environment unread, and with it the fixed order of sets.
        python = [str(launch.python.program), "-P", "-s", "-S", "-B"]
        boot = [*python, "-c", _BOOT, str(_PACKAGE.parent), json.dumps(policy)]
        return [*before, *boot]


class Bubblewrap(Backend):
    """Namespaces of its own for files, processes, network and more, made by the program `bwrap`."""

    name = "bubblewrap"
    pid_namespace = True
    needs_folder = False

    def missing(self) -> str | None:
        """Looks for the program and for a machine whose system calls are known."""
        if shutil.which("bwrap") is None:
            return "bwrap is not installed (Debian and Ubuntu: apt-get install bubblewrap)"
        return None if seccomp.supported() else "the system calls of this kind of machine are not known"

    def wrap(self, launch: Launch) -> tuple[list[str], dict[str, Any]]:
        """Everything read-only but a private folder of limited size; own user, no network, no capability."""
        user = self.user(launch)
        program = shutil.which("bwrap") or "bwrap"
        namespaces = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        line = [program, "--die-with-parent", "--new-session", "--cap-drop", "ALL", *namespaces]
        if user is None:
            line += ["--unshare-user"]
        else:
            line += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_KILL"]
        for path in _SYSTEM:
            if Path(path).is_symlink():
                line += ["--symlink", str(Path(path).readlink()), path]
            elif Path(path).is_dir():
                line += ["--ro-bind", path, path]
        folders = _outermost(launch.folders)
        # Left to itself, bubblewrap makes the folders on the way with rights for nobody else.
        for parent in sorted(
            {parent for path in [*folders, Path("/etc/x"), Path("/dev/x")] for parent in path.parents}
        ):
            line += ["--perms", "0755", "--dir", str(parent)]
        if not any(folder.is_relative_to("/tmp") for folder in folders):
            line += ["--symlink", _BOX, "/tmp"]
        for path in _SYSTEM_FILES:
            line += ["--ro-bind-try", path, path]
        for folder in folders:
            line += ["--ro-bind", str(folder), str(folder)]
        for path in _DEVICES:
            line += ["--dev-bind", path, path]
        if launch.mount_proc:
            line += ["--proc", "/proc"]
        if launch.tree is not None:
            line += ["--ro-bind", str(launch.tree), _TREE]
        size = launch.limits.disk_bytes + launch.tree_bytes
        line += ["--perms", "1777", "--size", str(size), "--tmpfs", _BOX, "--remount-ro", "/", "--chdir", _BOX]
        return [*line, "--"], {"uid": user, "tmp": _BOX, "tree": _TREE, "unix_sockets": True}


class Landlock(Backend):
    """Files taken away by landlock, system calls by seccomp; processes are counted and ended by a keeper."""

    name = "landlock"
    pid_namespace = False
    needs_folder = True

    def missing(self) -> str | None:
        """Asks the kernel."""
        if landlock.version() == 0:
            return "the kernel has no landlock (Linux 5.13 or later, with landlock in the list of security modules)"
        return None if seccomp.supported() else "the system calls of this kind of machine are not known"

    def user(self, launch: Launch) -> int | None:
        """A user of its own only where that user could still read the interpreter and what else is needed."""
        needed = [launch.python.program, *launch.folders, *([launch.tmp.parent] if launch.tmp else [])]
        return super().user(launch) if all(readable_by_others(path) for path in needed) else None

    def wrap(self, launch: Launch) -> tuple[list[str], dict[str, Any]]:
        """Nothing before the interpreter; the rules are put in force inside."""
        assert launch.tmp is not None
        user = self.user(launch)
        if launch.worker is None and user is None and os.getuid() == 0:
            raise TouchstoneError(
                f"{launch.python.program}: other users cannot read it, so root cannot run commands in landlock; "
                "install bubblewrap (Debian and Ubuntu: apt-get install bubblewrap)"
            )
        if user is not None:
            os.chown(launch.tmp, user, user)
        readable = [*_SYSTEM, *_SYSTEM_FILES, *_DEVICES, *(str(path) for path in launch.folders)]
        readable += [str(launch.tree)] if launch.tree is not None else []
        readable += ["/proc"] if launch.mount_proc else []
        limits = asdict(launch.limits)
        if user is None:
            # The kernel counts all processes of a user, and here the user has others.
            limits["processes"] += _tasks_of(os.getuid())
        rules = {"readable": readable, "writable": [str(launch.tmp), "/dev/null"]}
        tree = str(launch.tree) if launch.tree is not None else None
        return [], {"uid": user, "tmp": str(launch.tmp), "tree": tree, "landlock": rules, "limits": limits}


class Unsandboxed(Backend):
    """No sandbox: only limits. For code that is trusted, and only where the configuration says so."""

    name = "none"
    pid_namespace = False
    needs_folder = True

    def missing(self) -> str | None:
        """Nothing is needed."""
        return None

    def wrap(self, launch: Launch) -> tuple[list[str], dict[str, Any]]:
        """Nothing is given up but what the limits say."""
        limits = asdict(launch.limits) | {"processes": None}
        tree = str(launch.tree) if launch.tree is not None else None
        return [], {"confined": False, "tmp": str(launch.tmp), "tree": tree, "limits": limits}


def readable_by_others(path: Path) -> bool:
    """Whether a user without any rights of its own can get to a file or folder and read it.

    >>> readable_by_others(Path("/usr/bin"))
    True
    """
    path = path.resolve()
    if not all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents):
        return False
    mode = path.stat().st_mode
    wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
    return mode & wanted == wanted


def _outermost(folders: Sequence[Path]) -> list[Path]:
    """The folders without those that lie in another one or in the system's."""
    seen = {folder.resolve() for folder in folders} | {folder for folder in folders if folder.is_absolute()}
    kept = [folder for folder in seen if not any(parent in seen for parent in folder.parents)]
    return sorted(folder for folder in kept if not any(folder.is_relative_to(system) for system in _SYSTEM))


def _tasks_of(user: int) -> int:
    count = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == user:
                    count += len(os.listdir(f"/proc/{entry.name}/task"))  # noqa: PTH208
            except OSError:
                continue
    return count
