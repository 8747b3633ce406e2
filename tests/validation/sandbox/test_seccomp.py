"""The seccomp filter, installed for real in a forked child: what is a choice, and what must still work.

What it always denies is attacked in `attacks/test_reach_processes.py` and `attacks/test_reach.py`.
"""

import ctypes
import errno
import json
import os
import platform
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from touchstone.validation.sandbox.confinement import build_filter, install_filter, system_calls_known

pytestmark = pytest.mark.skipif(not system_calls_known(), reason="the system calls of this machine are not known")

CHOICES = ("sockets", "processes", "signals", "attributes", "preallocation", "hiding")
EVERYTHING, NOTHING = dict.fromkeys(CHOICES, True), dict.fromkeys(CHOICES, False)
_FALLOCATE = {"x86_64": 285, "aarch64": 47}.get(platform.machine(), 0)


def in_child(*attempts: Callable[[], Any], **allowed: bool) -> list[Any]:
    """What each attempt came to, in one process with the filter: its result, or the name of its error."""
    program = build_filter(**{**EVERYTHING, **allowed})
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            install_filter(program)
            os.write(writes, json.dumps([_result(attempt) for attempt in attempts]).encode())
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    assert said, "the child died"
    found: list[Any] = json.loads(said)
    return found


def _result(attempt: Callable[[], Any]) -> Any:
    try:
        return attempt()
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def call(name: str, *arguments: int) -> Callable[[], str]:
    """A function of the C library; its error as an exception."""

    def attempt() -> str:
        libc = ctypes.CDLL(None, use_errno=True)
        if getattr(libc, name)(*arguments) == -1:
            raise OSError(ctypes.get_errno(), name)
        return "done"

    return attempt


def a_socket() -> str:
    socket.socket(socket.AF_UNIX).close()
    return "done"


def a_process() -> str:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "done"


def a_thread() -> str:
    done: list[str] = []
    thread = threading.Thread(target=done.append, args=("done",))
    thread.start()
    thread.join()
    return done[0]


def a_signal() -> str:
    os.kill(os.getpid(), 0)
    return "done"


def under_a_second_filter() -> str:
    install_filter(build_filter(**EVERYTHING))
    return a_process()


def test_what_only_root_can_do_is_denied_to_root_too() -> None:
    """In a sandbox the kernel itself denies it."""
    attempts = [call("mount", *[0] * 5), call("sethostname", 0, 0), call("chroot", 0), call("setns", -1, 0)]
    for allowed in (EVERYTHING, NOTHING):
        assert in_child(*attempts, **allowed) == ["EPERM"] * 4


CHOSEN = {
    "sockets": [a_socket],
    # A second filter takes away no less. Without processes, nobody outlives its parent.
    "processes": [a_process, under_a_second_filter, call("prctl", 1, 0, 0, 0, 0)],
    "signals": [a_signal],
    "hiding": [call("prctl", 4, 0, 0, 0, 0)],
}


@pytest.mark.parametrize("choice", CHOSEN)
def test_what_is_a_choice(choice: str) -> None:
    attempts = CHOSEN[choice]
    assert set(in_child(*attempts)) == {"done"}
    assert set(in_child(*attempts, **{choice: False})) == {"EPERM"}


def test_what_always_works() -> None:
    attempts = [a_thread, call("prctl", 4, 1, 0, 0, 0), call("getpid"), call("dup", 1)]
    assert in_child(*attempts, **NOTHING) == ["done"] * 4


def test_disk_space_is_taken_ahead_only_where_it_is_limited(tmp_path: Path) -> None:
    """The C library then writes zeros instead, which takes time and can be watched."""
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    requests = [call("syscall", _FALLOCATE, file, 0, 0, 4096), call("ioctl", file, 0x40305828, 0)]
    assert {*in_child(*requests, preallocation=True)} <= {"done", "EFAULT", "ENOTSUP"}
    *refused, written = in_child(*requests, call("posix_fallocate", file, 0, 4096), preallocation=False)
    assert {*refused} <= {"ENOTSUP", "EPERM"} and written == "done"
    assert os.fstat(file).st_size == 4096
    os.close(file)


def test_socket_buffers_keep_their_size() -> None:
    def grow() -> bool:
        one, _ = socket.socketpair()
        before = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * before)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        return one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > before

    assert in_child(grow) == [False]
