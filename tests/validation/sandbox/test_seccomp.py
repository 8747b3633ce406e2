"""The seccomp filter, installed for real in a forked child: what it denies, and what must still work."""

import ctypes
import errno
import json
import os
import platform
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from touchstone.validation.sandbox import seccomp

pytestmark = pytest.mark.skipif(not seccomp.supported(), reason="the system calls of this machine are not known")

EVERYTHING = {
    "unix_sockets": True,
    "processes": True,
    "signals": True,
    "attributes": True,
    "preallocation": True,
    "hiding": True,
}
_PTRACE_TRACEME, _CLONE_NEWUSER, _CLONE_NEWPID = 0, 0x10000000, 0x20000000


def in_child(attempt: Callable[[], Any], **allowed: bool) -> Any:
    """What an attempt came to in a process with the filter: its result, or the name of its error."""
    program = seccomp.build(**{**EVERYTHING, **allowed})
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            seccomp.install(program)
            try:
                found = attempt()
            except OSError as error:
                found = errno.errorcode[error.errno or 0]
            os.write(writes, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    assert said, "the child died"
    return json.loads(said)


def call(name: str, *arguments: int) -> Callable[[], str]:
    """A function of the C library; its error as an exception."""

    def attempt() -> str:
        libc = ctypes.CDLL(None, use_errno=True)
        if getattr(libc, name)(*arguments) == -1:
            raise OSError(ctypes.get_errno(), name)
        return "done"

    return attempt


def a_socket(family: socket.AddressFamily) -> Callable[[], str]:
    def attempt() -> str:
        socket.socket(family).close()
        return "done"

    return attempt


def a_process() -> str:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "done"


def a_thread() -> list[str]:
    done: list[str] = []
    thread = threading.Thread(target=done.append, args=("in a thread",))
    thread.start()
    thread.join()
    return done


def test_the_network_is_denied_and_unix_sockets_are_a_choice() -> None:
    for allowed in (True, False):
        assert in_child(a_socket(socket.AF_INET), unix_sockets=allowed) == "EPERM"
        assert in_child(a_socket(socket.AF_INET6), unix_sockets=allowed) == "EPERM"
    assert in_child(a_socket(socket.AF_UNIX), unix_sockets=True) == "done"
    assert in_child(a_socket(socket.AF_UNIX), unix_sockets=False) == "EPERM"


@pytest.mark.parametrize(
    "attempt",
    [
        call("ptrace", _PTRACE_TRACEME, 0, 0, 0),
        call("unshare", _CLONE_NEWUSER),
        call("unshare", 0),
        call("setns", -1, 0),
        call("mount", 0, 0, 0, 0, 0),
        call("chroot", 0),
        call("personality", 0xFFFFFFFF),
        call("sethostname", 0, 0),
    ],
    ids=["ptrace", "unshare", "unshare nothing", "setns", "mount", "chroot", "personality", "sethostname"],
)
def test_what_reaches_others_or_the_kernel_is_denied(attempt: Callable[[], str]) -> None:
    assert in_child(attempt) == "EPERM"


def test_namespaces_are_denied_also_by_way_of_clone() -> None:
    clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
    assert in_child(call("syscall", clone, _CLONE_NEWPID | signal.SIGCHLD, 0, 0, 0, 0)) == "EPERM"


def test_clone3_is_as_if_it_were_not_there() -> None:
    assert in_child(call("syscall", 435, 0, 0)) == "ENOSYS"


def test_processes_are_a_choice_and_threads_always_work() -> None:
    assert in_child(a_process, processes=True) == "done"
    assert in_child(a_process, processes=False) == "EPERM"
    assert in_child(a_thread, processes=True) == ["in a thread"]
    assert in_child(a_thread, processes=False) == ["in a thread"]


def test_without_processes_nobody_outlives_its_parent() -> None:
    assert in_child(call("prctl", 1, 0, 0, 0, 0), processes=True) == "done"
    assert in_child(call("prctl", 1, 0, 0, 0, 0), processes=False) == "EPERM"


def test_signals_are_a_choice() -> None:
    def to_itself() -> str:
        os.kill(os.getpid(), 0)
        return "done"

    assert in_child(to_itself, signals=True) == "done"
    assert in_child(to_itself, signals=False) == "EPERM"


def test_a_filter_can_be_put_on_top_of_another_and_only_takes_more() -> None:
    def twice() -> str:
        seccomp.install(seccomp.build(**EVERYTHING))
        return a_process()

    assert in_child(twice, processes=True) == "done"
    assert in_child(twice, processes=False) == "EPERM"


def test_disk_space_is_taken_ahead_only_where_it_is_limited(tmp_path: Path) -> None:
    """The C library then writes zeros instead, which takes time and can be watched."""
    fallocate = {"x86_64": 285, "aarch64": 47}[platform.machine()]
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    for request in (call("syscall", fallocate, file, 0, 0, 4096), call("ioctl", file, 0x40305828, 0)):
        assert in_child(request, preallocation=False) in ("ENOTSUP", "EPERM")
        assert in_child(request, preallocation=True) in ("done", "EFAULT", "ENOTSUP")
    assert in_child(call("posix_fallocate", file, 0, 4096), preallocation=False) == "done"
    assert os.fstat(file).st_size == 4096
    os.close(file)


def test_socket_buffers_keep_their_size() -> None:
    def grow() -> bool:
        one, _ = socket.socketpair()
        before = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * before)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        return one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > before

    assert in_child(grow) is False


def test_hiding_descriptors_is_a_choice() -> None:
    assert in_child(call("prctl", 4, 0, 0, 0, 0), hiding=True) == "done"
    assert in_child(call("prctl", 4, 0, 0, 0, 0), hiding=False) == "EPERM"
    assert in_child(call("prctl", 4, 1, 0, 0, 0), hiding=False) == "done"


def test_ordinary_work_goes_on() -> None:
    def work() -> list[Any]:
        reads, writes = os.pipe()
        os.write(writes, b"x")
        return [os.read(reads, 1).decode(), sum(range(10)), os.getpid() > 0, os.path.exists("/")]  # noqa: PTH110

    quiet = {
        "unix_sockets": False,
        "processes": False,
        "signals": False,
        "attributes": False,
        "preallocation": False,
        "hiding": False,
    }
    assert in_child(work, **quiet) == ["x", 45, True, True]


def test_the_filter_is_whole_instructions() -> None:
    program = seccomp.build(**EVERYTHING)
    assert len(program) % 8 == 0 and len(program) // 8 < 4096
