"""Resource exhaustion: processes, memory, disk, time, output. None passes, affects the outside or leaves anything."""

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import MILLION, Arena
from tests.validation.attacks.conftest import of_landlock, warm_arena

# What the candidate does before its `add` is defined, or in a call of it.
HEAD = "import ctypes, fcntl, itertools, mmap, os, re, signal, socket, sys, threading, time\n"
TIME, MEMORY, DISK = ("timeout",), ("memory_limit",), ("disk_limit",)
FAILED = ("failed", "no_report")
BOMBS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "fork bomb": ("call", "while True: os.fork()", FAILED + TIME + MEMORY),
    "fork bomb that swallows refusals": (
        "import",
        "while True:\n    try: os.fork()\n    except OSError: pass",
        TIME + MEMORY,
    ),
    "one large object": ("import", "held = bytearray(1 << 30)", FAILED + MEMORY),
    "a large text": ("call", "held = 'x' * (1 << 33)", MEMORY),
    "a large list": ("call", "held = [0] * (1 << 31)", MEMORY),
    "many objects": ("import", "held = []\nwhile True: held.append(b'x' * (1 << 20))", FAILED + MEMORY + TIME),
    "many objects, the error swallowed": (
        "call",
        "held = []\nwhile True:\n    try: held.append(bytearray(1 << 20))\n    except MemoryError: pass",
        MEMORY + TIME,
    ),
    "memory of many processes": (
        "import",
        "try:\n    for _ in range(8):\n        if os.fork() == 0:\n            held = bytearray(b'x') * (100 << 20)\n"
        "            time.sleep(600)\n            os._exit(0)\nexcept OSError:\n    raise SystemExit\ntime.sleep(600)",
        (*MEMORY, "no_report"),
    ),
    "shared memory": (
        "import",
        "held = []\nwhile True:\n    held.append(mmap.mmap(-1, 16 << 20))\n"
        "    for place in range(0, 16 << 20, 4096): held[-1][place] = 1",
        MEMORY + FAILED,
    ),
    # They would count for no process.
    "files in memory": ("import", "[os.write(os.memfd_create('x'), b'x' * (8 << 20)) for _ in range(40)]", FAILED),
    "secret files in memory": (
        "import",
        "[os.write(ctypes.CDLL(None).syscall(447, 0), b'x' * (8 << 20)) for _ in range(40)]",
        FAILED,
    ),
    "one large file": ("import", "file = open('f', 'wb')\nwhile True: file.write(b'x' * (1 << 20))", DISK + FAILED),
    "many files": (
        "import",
        "for number in itertools.count():\n    try: open(f'file{number}', 'wb').write(b'x' * (1 << 20))\n"
        "    except OSError: time.sleep(5)",
        DISK + TIME,
    ),
    "a full disk": (
        "call",
        "for number in range(100): open(f'{number}', 'wb').write(b'x' * (1 << 20))\ntime.sleep(600)",
        DISK,
    ),
    "files deleted while they are open": (
        "call",
        "for _ in range(20):\n    file = os.open('file', os.O_RDWR | os.O_CREAT)\n    os.unlink('file')\n"
        "    os.write(file, b'x' * (10 << 20))\ntime.sleep(5)",
        DISK + FAILED + TIME,
    ),
    "files of shared memory": (
        "import",
        "for number in range(100): open(f'/dev/shm/{number}', 'wb').write(b'x' * (1 << 20))",
        DISK + FAILED,
    ),
    "socket buffers of many processes": (
        "import",
        """for _ in range(9):
    try:
        if os.fork() == 0: break
    except OSError: raise SystemExit
held = []
try:
    while True:
        held.append(socket.socketpair())
        for one in held[-1]:
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
            try:
                while True: one.send(b"x" * 65536)
            except BlockingIOError: pass
except OSError: pass
time.sleep(20)""",
        (*MEMORY, "no_report"),
    ),
    "more empty files than memory holds": (
        "import",
        "os.mkdir('many')\nos.chdir('many')\nfor number in range(160_000): os.mknod(str(number))\ntime.sleep(20)",
        MEMORY + DISK,
    ),
    "a sparse file": ("import", "open('sparse', 'wb').truncate(1 << 40)", FAILED),
    "many empty files": (
        "import",
        "os.mkdir('many')\nfor number in itertools.count():\n    os.mknod(f'many/{number}')\n"
        "    if number > 30000: time.sleep(5)",
        DISK + TIME,
    ),
    "files deeper than any path can name": (
        "call",
        "for _ in range(50): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
        "for number in range(12): open(str(number), 'wb').write(b'x' * (2 << 20))\ntime.sleep(5)",
        DISK + FAILED,
    ),
    "an endless loop at import": ("import", "while True: pass", TIME),
    "an endless loop that ignores signals": (
        "call",
        "for number in (2, 1, 14, 15): signal.signal(number, signal.SIG_IGN)\nwhile True: pass",
        TIME,
    ),
    "a loop in C": ("import", "re.match('(a+)+$', 'a' * 64 + 'b')", TIME),
    "never an answer": ("call", "time.sleep(1e6)", TIME),
    "a stopped process": ("call", "os.kill(os.getpid(), signal.SIGSTOP)", TIME + FAILED),
    "a long answer": ("call", "return 'x' * (60 << 20)", FAILED + MEMORY + TIME),
    "a long exception": ("call", "raise ValueError('x' * (20 << 20))", FAILED + MEMORY),
    "half characters": ("call", "raise ValueError('\\ud800\\x00\\x1b[2J\\r\\n{\"test\": 1}')", FAILED),
    "a gigabyte of output": (
        "call",
        "line = b'x' * (16 << 20)\nfor _ in range(32): os.write(1, line); os.write(2, line)\nprint('y' * 1000000)",
        DISK + FAILED,
    ),
}
# These must reach another limit than that of time, however slow the machine is.
PATIENT = (
    *("memory of many processes", "shared memory", "socket buffers of many processes", "a full disk"),
    *("more empty files than memory holds", "a gigabyte of output"),
)
# These reach no limit of theirs before that of time.
BRIEF = {"many files": 3, "many empty files": 3, "never an answer": 0.5, "a stopped process": 1}
# Processes, memory, disk, time and output, at import and at a call.
BY_DAY = (
    *("fork bomb", "one large object", "memory of many processes", "files in memory", "a full disk"),
    *("never an answer", "half characters"),
)


@pytest.fixture
def _room() -> Iterator[None]:
    """This process keeps its memory, and the host its disk."""
    memory, disk = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, shutil.disk_usage("/tmp").free
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 64 * 1024
    assert disk - shutil.disk_usage("/tmp").free < 512 * MILLION


@pytest.mark.usefixtures("_room")
@pytest.mark.parametrize("what", nightly_but(BY_DAY, BOMBS))
def test_bombs(arena: Arena, what: str) -> None:
    when, code, statuses = BOMBS[what]
    inside = "\n    ".join(code.splitlines())
    body = f"{code}\ndef add(a, b): return 0\n" if when == "import" else f"def add(a, b):\n    {inside}\n    return 0\n"
    seconds = 0.5 if what == "a loop in C" else None
    report = arena.cheat(HEAD + body, patient=what in PATIENT, wall_seconds=BRIEF.get(what), seconds=seconds)
    assert report.status in statuses and len(str(report)) < 10_000 and str(report).encode()


def test_threads_without_end(arena: Arena) -> None:
    if arena.backend == "landlock" and os.getuid() == 0:
        pytest.skip("the kernel counts no threads of root, and in landlock root may have to stay root")
    report = arena.cheat(
        """
        import threading, time

        started = 0
        threading.stack_size(262144)
        try:
            while started < 300:
                threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
                started += 1
        except RuntimeError:
            pass
        raise ValueError("held" if started < 100 else "not held")
        """,
        patient=True,
    )
    assert "ValueError: held" in str(report.diagnostics)


# They give right answers and leave something behind.
BOTH = ("import", "call")
STAYING = {
    "a daemon": "for _ in range(2):\n    if os.fork(): return\n    os.setsid()\ntime.sleep(600)",
    "a child that will not die": (
        "if os.fork(): return\nfor n in {*signal.Signals} - {9, 19}: signal.signal(n, signal.SIG_IGN)\nwhile True: pass"
    ),
    "an endless thread": "threading.Thread(target=lambda: sum(iter(int, 1))).start()",
}


@pytest.mark.parametrize(("what", "when"), nightly_but([("a daemon", "call")], [(w, t) for w in STAYING for t in BOTH]))
def test_what_stays(arena: Arena, what: str, when: str) -> None:
    body = "\n    ".join(STAYING[what].splitlines())
    leave = f"def leave():\n    {body}\ndef safely():\n    try: leave()\n    except OSError: pass\n"
    now, later = ("safely()\n", "") if when == "import" else ("", "safely()")
    report = arena.validate(f"{HEAD}{leave}{now}def add(a, b):\n    {later}\n    return a + b\n")
    assert report.decided


def test_pipes_and_sockets(arena: Arena) -> None:
    """What the kernel holds for the candidate is bounded by its descriptors."""
    report = arena.validate(
        """
        import socket

        held = []
        try:
            while True:
                pair = socket.socketpair()
                held.append(pair)
                pair[0].setblocking(False)
                try:
                    while True:
                        pair[0].send(b"x" * 65536)
                except BlockingIOError:
                    pass
        except OSError:
            pass
        few, held = len(held) < 100, None

        def add(a, b):
            return a + b if few else 0
        """,
        patient=True,
    )
    assert report.status == "passed"


TAKING = {
    "beyond the file": "libc.fallocate(file, 1, ctypes.c_long(0), ctypes.c_long(100 << 20))",
    "in the file": "libc.fallocate(file, 0, ctypes.c_long(0), ctypes.c_long(1 << 20))",
    "by ioctl": "libc.ioctl(file, ctypes.c_ulong(0x4030582A), struct.pack('hhqqiI16x', 0, 0, 0, 100 << 20, 0, 0))",
}


@of_landlock
def test_disk_space_that_nothing_was_written_to(tmp_path: Path) -> None:
    """Gigabytes within milliseconds, where only the supervisor limits the disk."""
    for landlock in warm_arena("landlock", tmp_path / "scratch"):
        for way, take in TAKING.items():
            report = landlock.cheat(f"""
                import ctypes, os, struct

                libc = ctypes.CDLL(None)
                file = os.open("file", os.O_RDWR | os.O_CREAT)
                taken = {take}
                raise ValueError("held" if taken == -1 and os.fstat(file).st_blocks == 0 else "not held")
            """)
            assert "ValueError: held" in str(report.diagnostics), way
