"""Memory and disk that the kernel holds for a fix and charges to none of its processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.validation.attacks.arena import Arena
from tests.validation.attacks.conftest import warm_arena

# Slow enough that the supervisor looks, and short enough that a limit that does not hold is seen soon.
WAIT = "__import__('time').sleep(20)"


@pytest.fixture
def landlock(tmp_path: Path) -> Iterator[Arena]:
    yield from warm_arena("landlock", tmp_path / "scratch")


TAKING = {
    "beyond the file": "libc.fallocate(file, 1, ctypes.c_long(0), ctypes.c_long(100 << 20))",
    "in the file": "libc.fallocate(file, 0, ctypes.c_long(0), ctypes.c_long(1 << 20))",
    "by ioctl": "libc.ioctl(file, ctypes.c_ulong(0x4030582A), struct.pack('hhqqiI16x', 0, 0, 0, 100 << 20, 0, 0))",
}


def test_disk_space_that_nothing_was_written_to(landlock: Arena) -> None:
    """Gigabytes within milliseconds, where only the supervisor limits the disk."""
    for way, take in TAKING.items():
        report = landlock.cheat(f"""
            import ctypes, os, struct

            libc = ctypes.CDLL(None)
            file = os.open("file", os.O_RDWR | os.O_CREAT)
            taken = {take}
            raise ValueError("held" if taken == -1 and os.fstat(file).st_blocks == 0 else "not held")
        """)
        assert "ValueError: held" in str(report.diagnostics), way


def test_socket_buffers_of_many_processes(arena: Arena) -> None:
    if arena.backend == "landlock":
        pytest.skip("a Python fix has one process there")
    report = arena.cheat(
        f"""
        import os, socket

        for _ in range(9):
            if os.fork() == 0:
                break
        held = []
        try:
            while True:
                held.append(socket.socketpair())
                for one in held[-1]:
                    one.setblocking(False)
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
                    try:
                        while True:
                            one.send(b"x" * 65536)
                    except BlockingIOError:
                        pass
        except OSError:
            pass
        {WAIT}
        """,
        patient=True,
    )
    assert report.status == "memory_limit"


@pytest.mark.nightly
def test_hundreds_of_thousands_of_empty_files(arena: Arena) -> None:
    report = arena.cheat(
        f"""
        import os

        os.mkdir("many")
        os.chdir("many")
        for number in range(160_000):
            os.mknod(str(number))
        {WAIT}
        """,
        patient=True,
    )
    assert report.status == ("memory_limit" if arena.backend == "bubblewrap" else "disk_limit")
