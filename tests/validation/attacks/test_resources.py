"""Resource exhaustion: processes, memory, disk, time, output. None passes, affects the outside or leaves anything."""

import os
import resource
import shutil

import pytest

from tests.validation.attacks.arena import MILLION, Arena

STOPPED = ("failed", "memory_limit", "timeout", "no_report")


def own_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class TestProcesses:
    def test_fork_bomb(self, arena: Arena) -> None:
        report = arena.cheat("""
            import os

            def add(a, b):
                while True:
                    os.fork()
        """)
        assert report.status in STOPPED

    @pytest.mark.nightly
    def test_fork_bomb_that_swallows_refusals(self, arena: Arena) -> None:
        report = arena.cheat("""
            import os

            while True:
                try:
                    os.fork()
                except OSError:
                    pass
        """)
        assert report.status in ("timeout", "memory_limit")

    def test_threads_without_end(self, arena: Arena) -> None:
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

    @pytest.mark.parametrize("when", ["import", "call"])
    def test_a_daemon_of_two_forks_and_a_session(self, arena: Arena, when: str) -> None:
        daemon = """
            import os, signal, time

            def leave():
                for _ in range(2):
                    try:
                        if os.fork():
                            return
                    except OSError:
                        return
                    os.setsid()
                for number in range(1, 65):
                    try:
                        signal.signal(number, signal.SIG_IGN)
                    except (OSError, ValueError):
                        pass
                while True:
                    time.sleep(0.01)
                    open("left", "a").write("x")
        """
        now = "leave()\n" if when == "import" else ""
        report = arena.validate(
            f"""{daemon}
            {now}
            def add(a, b):
                {"pass" if now else "leave()"}
                return a + b
            """
        )
        assert report.status in ("passed", "failed", "timeout", "no_report")

    def test_a_child_that_will_not_die(self, arena: Arena) -> None:
        arena.validate("""
            import os, signal

            def add(a, b):
                try:
                    child = os.fork()
                except OSError:
                    return a + b
                if child == 0:
                    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
                        signal.signal(number, signal.SIG_IGN)
                    while True:
                        pass
                return a + b
        """)


class TestMemory:
    @pytest.fixture(autouse=True)
    def _ours_stays(self) -> object:
        before = own_memory()
        yield
        assert own_memory() - before < 64 * MILLION

    @pytest.mark.parametrize(
        "bomb",
        [
            "held = bytearray(1 << 30)",
            "held = []\nwhile True: held.append(b'x' * (1 << 20))",
            pytest.param("held = 'x' * (1 << 33)", marks=pytest.mark.nightly),
            pytest.param("held = [0] * (1 << 31)", marks=pytest.mark.nightly),
        ],
    )
    def test_one_process(self, arena: Arena, bomb: str) -> None:
        report = arena.cheat(f"def add(a, b):\n    return 0\n\n{bomb}\n")
        assert report.status in ("memory_limit", "timeout")

    def test_at_a_call_with_the_error_swallowed(self, arena: Arena) -> None:
        report = arena.cheat("""
            held = []

            def add(a, b):
                while True:
                    try:
                        held.append(bytearray(1 << 20))
                    except MemoryError:
                        pass
        """)
        assert report.status in ("memory_limit", "timeout")

    def test_many_processes(self, arena: Arena) -> None:
        report = arena.cheat(
            """
            import os, time

            try:
                for _ in range(8):
                    if os.fork() == 0:
                        held = bytearray(b"x") * (100 << 20)
                        time.sleep(600)
                        os._exit(0)
            except OSError:
                raise SystemExit
            time.sleep(600)
        """,
            patient=True,
        )
        assert report.status == ("memory_limit" if arena.backend == "bubblewrap" else "failed")

    def test_shared_anonymous_memory(self, arena: Arena) -> None:
        report = arena.cheat(
            """
            import mmap

            held = []
            while True:
                held.append(mmap.mmap(-1, 16 << 20))
                for place in range(0, 16 << 20, 4096):
                    held[-1][place] = 1
        """,
            patient=True,
        )
        assert report.status in ("memory_limit", "failed")

    @pytest.mark.parametrize("make", ["os.memfd_create('x')", "libc.syscall(447, 0)"])
    def test_files_in_memory(self, arena: Arena, make: str) -> None:
        """They would count for no process."""
        report = arena.cheat(f"""
            import ctypes, os
            libc = ctypes.CDLL(None)
            for _ in range(40):
                file = {make}
                os.write(file, b"x" * (8 << 20))
            add = int.__add__
        """)
        assert report.status == "failed"

    def test_pipes_and_sockets(self, arena: Arena) -> None:
        """What the kernel holds for the candidate is bounded by its descriptors."""
        report = arena.validate(
            """
            import fcntl, os, socket

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

            def add(a, b):
                return a + b if len(held) < 100 else 0
        """,
            patient=True,
        )
        assert report.status == "passed"


class TestDisk:
    @pytest.fixture(autouse=True)
    def _the_host_has_its_room(self) -> object:
        before = shutil.disk_usage("/tmp").free
        yield
        assert before - shutil.disk_usage("/tmp").free < 512 * MILLION

    def test_one_file(self, arena: Arena) -> None:
        report = arena.cheat("""
            with open("large", "wb") as file:
                while True:
                    file.write(b"x" * (1 << 20))
        """)
        assert report.status in ("disk_limit", "failed", "no_report")

    def test_many_files(self, arena: Arena) -> None:
        waits = """
            import itertools, time

            for number in itertools.count():
                try:
                    with open(f"file{number}", "wb") as file:
                        file.write(b"x" * (1 << 20))
                except OSError:
                    time.sleep(5)
        """
        report = arena.cheat(waits, wall_seconds=None if arena.backend == "landlock" else 3)
        assert report.status in (("disk_limit",) if arena.backend == "landlock" else ("disk_limit", "timeout"))

    def test_a_full_disk_is_told(self, arena: Arena) -> None:
        report = arena.cheat(
            """
            import time

            def add(a, b):
                for number in range(100):
                    with open(f"file{number}{a}", "wb") as file:
                        file.write(b"x" * (1 << 20))
                time.sleep(600)
        """,
            patient=True,
        )
        assert report.status == "disk_limit"

    def test_files_deleted_while_they_are_open(self, arena: Arena) -> None:
        report = arena.cheat("""
            import os, time

            def add(a, b):
                for number in range(20):
                    file = os.open("file", os.O_RDWR | os.O_CREAT)
                    os.unlink("file")
                    os.write(file, b"x" * (10 << 20))
                time.sleep(5)
        """)
        assert report.status in ("disk_limit", "failed", "timeout")

    def test_other_places(self, arena: Arena) -> None:
        arena.probe("""
            def attack():
                got = []
                for place in ("/dev/shm", "/run", "/var/tmp", "/run/lock", "/dev", "/dev/mqueue", "/dev/hugepages"):
                    got += works(place, lambda: open(f"{place}/attack", "wb").write(b"x" * 100))
                return got
        """)

    def test_a_sparse_file(self, arena: Arena) -> None:
        report = arena.cheat("""
            with open("sparse", "wb") as file:
                file.truncate(1 << 40)
        """)
        assert report.status == "failed"

    @pytest.mark.nightly
    def test_many_empty_files(self, arena: Arena) -> None:
        waits = """
            import itertools, os, time

            os.mkdir("many")
            for number in itertools.count():
                os.mknod(f"many/{number}")
                if number > 30000:
                    time.sleep(5)
        """
        report = arena.cheat(waits, wall_seconds=3)
        assert report.status in ("disk_limit", "timeout")

    def test_too_deep_to_be_measured(self, arena: Arena) -> None:
        """Room that is used deeper than any path can name."""
        report = arena.cheat("""
            import os, time

            def add(a, b):
                for _ in range(50):
                    os.mkdir("d" * 200)
                    os.chdir("d" * 200)
                for number in range(12):
                    open(str(number), "wb").write(b"x" * (2 << 20))
                time.sleep(5)
        """)
        assert report.status in ("disk_limit", "failed")


class TestTime:
    @pytest.mark.nightly
    @pytest.mark.parametrize("when", ["import", "call"])
    def test_an_endless_loop_that_ignores_signals(self, arena: Arena, when: str) -> None:
        report = arena.cheat(f"""
            import signal

            def loop(*_):
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
                    signal.signal(number, signal.SIG_IGN)
                while True:
                    pass

            {"loop()" if when == "import" else "add = loop"}
        """)
        assert report.status == "timeout"

    def test_a_loop_in_c(self, arena: Arena) -> None:
        assert arena.cheat("import re\nre.match('(a+)+$', 'a' * 64 + 'b')\n", seconds=0.5).status == "timeout"

    def test_an_endless_thread_behind_a_right_answer(self, arena: Arena) -> None:
        report = arena.validate("""
            import threading

            def loop():
                while True:
                    pass

            threading.Thread(target=loop).start()

            def add(a, b):
                return a + b
        """)
        assert report.status in ("passed", "timeout")

    def test_never_an_answer(self, arena: Arena) -> None:
        report = arena.cheat("import time\n\ndef add(a, b):\n    time.sleep(1e6)\n", wall_seconds=1)
        assert report.status == "timeout"

    def test_a_stopped_process(self, arena: Arena) -> None:
        stops = "import os, signal\n\ndef add(a, b):\n    os.kill(os.getpid(), signal.SIGSTOP)\n"
        report = arena.cheat(stops, wall_seconds=1 if arena.backend == "bubblewrap" else None)
        assert report.status == ("timeout" if arena.backend == "bubblewrap" else "failed")


class TestOutput:
    def test_a_gigabyte(self, arena: Arena) -> None:
        report = arena.validate(
            """
            import os, sys

            def add(a, b):
                line = b"x" * (16 << 20)
                for _ in range(32):
                    os.write(1, line)
                    os.write(2, line)
                print("y" * 1000000)
                print("y" * 1000000, file=sys.stderr)
                return a + b
        """,
            patient=True,
        )
        assert report.status == "passed"

    def test_an_answer_that_is_too_long_to_pass(self, arena: Arena) -> None:
        report = arena.cheat("def add(a, b):\n    return 'x' * (60 << 20)\n")
        assert report.status in ("failed", "memory_limit", "timeout")

    @pytest.mark.nightly
    def test_an_exception_of_megabytes(self, arena: Arena) -> None:
        report = arena.cheat("def add(a, b):\n    raise ValueError('x' * (20 << 20))\n")
        assert len(str(report)) < 10_000

    def test_an_exception_of_half_characters_and_escapes(self, arena: Arena) -> None:
        report = arena.cheat("def add(a, b):\n    raise ValueError('\\ud800\\x00\\x1b[2J\\r\\n{\"test\": 1}')\n")
        assert report.status == "failed" and "test_small" in report.tests and str(report).encode("utf-8")
