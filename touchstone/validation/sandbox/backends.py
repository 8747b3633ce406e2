"""The isolation backends: bubblewrap, landlock, and none.

A backend turns a `Launch` into a command line and a policy for `entrypoint.enter`. It starts nothing itself: running
commands and warm workers belongs in `runner`, and choosing a backend in `probe`.
"""

import itertools
import json
import os
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from touchstone.errors import TouchstoneError
from touchstone.validation.sandbox import confinement
from touchstone.validation.sandbox.command import BOX, TMP, Limits
from touchstone.validation.sandbox.interpreters import Interpreter, interpreter

_PACKAGE = Path(__file__).parents[2]
_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin")
# Public settings, of programs (Debian keeps those of Java here) and of Python's `mimetypes` and `socket`.
_SYSTEM_FILES = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"),
    *("/etc/fonts", "/etc/maven", "/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/ssl/openssl.cnf"),
    *sorted(map(str, Path("/etc").glob("java-*"))),
)
# What programs read about the machine and themselves. The rest of /proc shows the processes of others.
_PROC = ("cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "sys/kernel", "sys/vm", "self")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_TREE = "/tree"
# Unused user ids. Each sandbox gets its own, because the kernel counts processes per user.
_FIRST_USER = 2_000_000
_counter = itertools.count()
# The whole environment of a launch. A fixed hash seed keeps the order of sets, so verdicts do not vary by worker.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}

_BOOT = (
    "import json, sys; sys.path.insert(0, sys.argv[1]); "
    "from touchstone.validation.sandbox.entrypoint import enter; enter(json.loads(sys.argv[2]))"
)


@dataclass(frozen=True)
class Launch:
    """A command to start on a tree, or without a tree a warm worker. `inside`: the policy's statements about it."""

    limits: Limits
    inside: Mapping[str, Any]
    tmp: Path | None = None
    python: Interpreter = field(default_factory=interpreter)
    readable: Sequence[Path] = ()
    tree: Path | None = None
    tree_bytes: int = 0

    @property
    def folders(self) -> list[Path]:
        """The folders that must be readable inside, besides the system's."""
        return [*self.python.folders, _PACKAGE, *self.readable]


class Backend(ABC):
    """A way to isolate a process.

    `pid_namespace`: it has its own, so killing its first process kills all of it, and a private file system to write
    to. Without one, it writes to the folder `Launch.tmp`.
    """

    name: str
    pid_namespace: bool

    def missing(self) -> str | None:
        """Why it cannot work here, as far as is known without trying it; None if nothing is missing."""
        known = confinement.system_calls_known()
        return None if known else "the system calls of this kind of machine are not known"

    @abstractmethod
    def wrap(self, launch: Launch) -> tuple[list[str], dict[str, Any]]:
        """The command-line prefix before the interpreter, and backend-specific policy entries."""

    def user(self, launch: Launch) -> int | None:
        """The user id to switch to inside: an unused one if we are root, else None."""
        return _FIRST_USER + os.getpid() % 20_000 * 50 + next(_counter) % 50 if os.getuid() == 0 else None

    def command_line(self, launch: Launch, *, in_memory_group: bool) -> list[str]:
        """The whole command line."""
        before, extra = self.wrap(launch)
        limits = asdict(launch.limits)
        if in_memory_group and launch.tree is not None:
            # What is only reserved is not used: sanitizers of C reserve terabytes.
            limits["memory_bytes"] = None
        policy: dict[str, Any] = {
            "pid_namespace": self.pid_namespace,
            "confined": True,
            "sockets": False,
            "landlock": None,
            "uid": None,
            "limits": limits,
            "tree": str(launch.tree),
            **launch.inside,
            **extra,
        }
        if launch.tree is not None:
            tmp, variables = policy["tmp"], {"TMPDIR": TMP, **policy["environment"]}
            policy["arguments"] = [part.replace(TMP, tmp) for part in policy["arguments"]]
            policy["environment"] = {name: value.replace(TMP, tmp) for name, value in variables.items()}
        # Not -I: it ignores PYTHONHASHSEED, and with it the fixed order of sets.
        python = [str(launch.python.program), "-P", "-s", "-S", "-B"]
        return [*before, *python, "-c", _BOOT, str(_PACKAGE.parent), json.dumps(policy, default=str)]


class Bubblewrap(Backend):
    """Separate namespaces for files, processes, network and more, created by `bwrap`."""

    name = "bubblewrap"
    pid_namespace = True

    def missing(self) -> str | None:
        """Check for the program."""
        if shutil.which("bwrap") is None:
            return "bwrap is not installed (Debian and Ubuntu: apt-get install bubblewrap)"
        return super().missing()

    def wrap(self, launch: Launch) -> tuple[list[str], dict[str, Any]]:
        """Everything read-only except a private folder of limited size; own user and loopback, no capabilities."""
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
        # By default, bubblewrap creates parent folders that other users cannot read.
        for parent in sorted(
            {parent for path in [*folders, *map(Path, _SYSTEM_FILES), Path("/dev/x")] for parent in path.parents}
        ):
            line += ["--perms", "0755", "--dir", str(parent)]
        # Shared memory and semaphores are files in /dev/shm: there they count with the private folder, and go with it.
        for place in ("/tmp", "/dev/shm"):
            if not any(folder.is_relative_to(place) for folder in folders):
                line += ["--symlink", BOX, place]
        line += ["--hostname", "localhost", "--ro-bind", str(Path(__file__).with_name("hosts")), "/etc/hosts"]
        for path in _SYSTEM_FILES:
            line += ["--ro-bind-try", path, path]
        for folder in folders:
            link = folder.is_symlink()
            line += ["--symlink", str(folder.readlink()), str(folder)] if link else ["--ro-bind", *[str(folder)] * 2]
        for path in _DEVICES:
            line += ["--dev-bind", path, path]
        if launch.tree is not None:
            line += ["--proc", "/proc", "--ro-bind", str(launch.tree), _TREE]
            # Of bubblewrap itself, which no filter restrains: a command of the same user could write to its memory.
            line += ["--size", "4096", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1"]
        size = launch.limits.disk_bytes + launch.tree_bytes
        line += ["--perms", "1777", "--size", str(size), "--tmpfs", BOX, "--remount-ro", "/", "--chdir", BOX]
        return [*line, "--"], {"uid": user, "tmp": BOX, "tree": _TREE, "sockets": True}


class Landlock(Backend):
    """Landlock restricts files and seccomp system calls; a supervisor process limits and kills processes."""

    name = "landlock"
    pid_namespace = False

    def missing(self) -> str | None:
        """Ask the kernel."""
        if confinement.landlock_version() == 0:
            return "the kernel has no landlock (Linux 5.13 or later, with landlock in the list of security modules)"
        return super().missing()

    def user(self, launch: Launch) -> int | None:
        """An unused user id, but only if that user can still read the interpreter and the other folders."""
        return super().user(launch) if self._closed_to_others(launch) is None else None

    def _closed_to_others(self, launch: Launch) -> str | None:
        """A reason why another user could not run it, if there is one."""
        for path in (launch.python.program, *launch.folders):
            if not readable_by_others(path):
                return f"{path}: other users cannot read it"
        for folder in launch.tmp.parents if launch.tmp is not None else ():
            if not folder.stat().st_mode & stat.S_IXOTH:
                return f"{folder}: other users cannot enter it"
        return None

    def wrap(self, launch: Launch) -> tuple[list[str], dict[str, Any]]:
        """No prefix: the rules are applied inside, by the policy."""
        assert launch.tmp is not None
        user = self.user(launch)
        if launch.tree is not None and user is None and os.getuid() == 0:
            raise TouchstoneError(
                f"{self._closed_to_others(launch)}, so root cannot run commands in landlock; open it to them, or "
                "install bubblewrap (Debian and Ubuntu: apt-get install bubblewrap)"
            )
        if user is not None:
            os.chown(launch.tmp, user, user)
        readable = [*_SYSTEM, *_SYSTEM_FILES, *_DEVICES, *(str(path) for path in launch.folders)]
        if launch.tree is not None:
            readable += [str(launch.tree), *(f"/proc/{name}" for name in _PROC)]
        limits = asdict(launch.limits)
        if user is None:
            # The kernel counts all processes of a user, and this user has others.
            limits["processes"] += _tasks_of(os.getuid())
        rules = {"readable": readable, "writable": [str(launch.tmp), "/dev/null"]}
        return [], {"uid": user, "tmp": str(launch.tmp), "landlock": rules, "limits": limits}


class Unsandboxed(Backend):
    """No isolation, only limits. For trusted code, and only if the configuration says so."""

    name = "none"
    pid_namespace = False

    def wrap(self, launch: Launch) -> tuple[list[str], dict[str, Any]]:
        """No prefix, and no restrictions besides the limits."""
        limits = asdict(launch.limits) | {"processes": None}
        return [], {"confined": False, "tmp": str(launch.tmp), "limits": limits}


def readable_by_others(path: Path) -> bool:
    """Whether an unprivileged user can reach and read a file or folder.

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
    """The folders and files, without those inside another one or inside a system folder."""
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
