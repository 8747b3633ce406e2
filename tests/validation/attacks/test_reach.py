"""What a candidate must not reach: network, files outside, environment."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import touchstone
from tests.validation.attacks.arena import PROBE, PROBE_TESTS, Arena, Canary
from tests.validation.attacks.conftest import SECRET
from tests.validation.attacks.system_calls import numbers

CHANGES = """
    chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat setxattr lsetxattr
    fsetxattr removexattr lremovexattr fremovexattr
"""


class TestNetwork:
    @pytest.fixture
    def listener(self) -> Iterator[socket.socket]:
        with socket.create_server(("127.0.0.1", 0)) as made:
            made.settimeout(0.05)
            yield made
            with pytest.raises(TimeoutError):
                made.accept()

    def test_a_connection_to_loopback(self, arena: Arena, listener: socket.socket) -> None:
        arena.probe(f"""
            address = ("127.0.0.1", {listener.getsockname()[1]})
            got += works("TCP", lambda: socket.create_connection(address, 5))
        """)

    def test_datagrams_and_other_families(self, arena: Arena) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
            receiver.bind(("127.0.0.1", 0))
            receiver.settimeout(0.05)
            own = arena.backend == "bubblewrap"
            arena.probe(f"""
                def send():
                    address = ("127.0.0.1", {receiver.getsockname()[1]})
                    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", address)

                assert works("UDP", send) == (["UDP"] if {own} else [])
                loopback = [(family, kind) for family in (2, 10) for kind in (1, 2)] if {own} else []
                for family in {[2, 10, 16, 17, 40]!r}:
                    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
                        if (family, kind) not in loopback:
                            got += works(f"{{family}} {{kind}}", lambda: socket.socket(family, kind))
                for protocol in (1, 33, 58, 132, 136, 255, 262):
                    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                        got += works(f"{{protocol}}", lambda: socket.socket(socket.AF_INET, kind, protocol))
            """)
            with pytest.raises(TimeoutError):
                receiver.recv(1)

    @pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET"])
    def test_unix_sockets_outside(self, arena: Arena, kind: str) -> None:
        number = getattr(socket, kind)
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, number) as receiver:
            Path(folder).chmod(0o777)
            place = f"{folder}/socket"
            receiver.bind(place)
            Path(place).chmod(0o777)
            with socket.socket(socket.AF_UNIX, number) as abstract:
                abstract.bind(f"\0{place}")
                for each in (receiver, abstract):
                    each.settimeout(0.05)
                    if kind != "SOCK_DGRAM":
                        each.listen()
                arena.probe(f"""
                    for place in ({place!r}, chr(0) + {place!r}):
                        got += works(place, lambda: socket.socket(socket.AF_UNIX, socket.{kind}).connect(place))
                        pair = lambda kind=socket.{kind}: socket.socketpair(socket.AF_UNIX, kind)[0]
                        if socket.{kind} == socket.SOCK_DGRAM:
                            got += works(f"pair to {{place}}", lambda: pair().sendto(b"x", place))
                            got += works(f"raw {{place}}", lambda: pair(socket.SOCK_RAW).sendto(b"x", place))
                        got += works(f"pair connects to {{place}}", lambda: pair().connect(place))
                """)
                for each in (receiver, abstract):
                    with pytest.raises(TimeoutError):
                        each.recv(1) if kind == "SOCK_DGRAM" else each.accept()


class TestReading:
    def test_files_outside(self, arena: Arena, canary: Canary) -> None:
        arena.probe(f"""
            home = {str(Path.home())!r}
            places = ["/etc/shadow", "/etc/passwd", "/etc/hostname", "/proc/self/environ", home + "/.bashrc"]
            places.append({str(canary.secret)!r})
            got = [name for place in places for name in works(place, lambda: Path(place).read_bytes())]
            for folder in ({str(canary.folder)!r}, home, "/var/log", "/run", "/sys/kernel"):
                got += works(folder, lambda: [] != os.listdir(folder) or 1 / 0)
            if {arena.backend == "bubblewrap"}:
                names = (home + "/.bashrc", "/etc/passwd", "/proc/1", "/var", "/home", "/sys")
                got += [f"the name {{place}}" for place in names if os.path.exists(place)]
            return [name for name in got if name != home]
        """)

    def test_the_environment(self, arena: Arena) -> None:
        report = arena.cheat(f"""
            import ctypes, os

            found = dict(os.environ)
            for process in ("self", os.getppid(), {os.getpid()}, 1, 2):
                try:
                    with open(f"/proc/{{process}}/environ") as file:
                        found[process] = file.read()
                except OSError:
                    pass
            memory = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
            place = 0
            while memory and memory[place]:
                found[place] = memory[place]
                place += 1
            raise ValueError(repr(found)[:450])
        """)
        assert report.diagnostics and "HOME" in report.diagnostics[0].detail
        assert SECRET not in str(report) and "TOUCHSTONE" not in str(report)


class TestWriting:
    def test_files_outside(self, arena: Arena, canary: Canary) -> None:
        package = Path(touchstone.__file__).parent
        mark = f"attack-{os.getpid()}"
        places = [str(canary.folder), "/usr", "/usr/lib", "/", "/etc", "/dev", "/var/tmp", str(package)]
        places += [str(Path.home()), str(Path(os.__file__).parent), "/run", "/run/lock", "/proc/self"]
        places += ["/dev/mqueue", "/dev/hugepages"]
        # They are private, or not writable.
        shared = [tempfile.gettempdir(), "/tmp", "/dev/shm"]
        arena.probe(f"""
            got += works("canary", lambda: Path({str(canary.secret)!r}).write_text("changed"))
            got += works("module", lambda: Path(os.__file__).open("a"))
            got += works("package", lambda: Path({touchstone.__file__!r}).open("a"))
            for place in {places!r}:
                got += works(f"new file in {{place}}", lambda: Path(place, {mark!r}).write_text("x"))
                got += works(f"new folder in {{place}}", lambda: Path(place, {mark!r}).mkdir())
                got += works(f"new link in {{place}}", lambda: Path(place, {mark!r}).symlink_to("/etc"))
                got += works(f"new device in {{place}}", lambda: os.mknod(Path(place, {mark!r}), stat.S_IFIFO))
            for place in {shared!r}:
                with contextlib.suppress(OSError):
                    Path(place, {mark!r}).write_text("x")
        """)
        for place in [*places, *shared]:
            assert not Path(place, mark).exists() and not Path(place, mark).is_symlink()

    def test_rights_owner_times_and_links_of_files_outside(self, arena: Arena, canary: Canary) -> None:
        """Some of it is answered as if it were done; the canary tells whether it was."""
        arena.probe(f"""
            for place in ({str(canary.secret)!r}, {str(canary.folder)!r}):
                for change in (
                    lambda: os.chmod(place, 0o700),
                    lambda: os.chown(place, 12345, 12345),
                    lambda: os.lchown(place, 12345, 12345),
                    lambda: os.utime(place, ns=(1, 1)),
                    lambda: os.utime(place, ns=(1, 1), follow_symlinks=False),
                    lambda: os.setxattr(place, "user.attack", b"x"),
                ):
                    works("change", change)
                got += works(f"rename {{place}}", lambda: os.rename(place, place + "x"))
                got += works(f"truncate {{place}}", lambda: os.truncate(place, 0))
                got += works(f"link {{place}}", lambda: os.link(place, "link"))
            for number, place in enumerate(["/etc/passwd", {str(canary.secret)!r}, "/usr/bin/env", os.__file__]):
                got += works(f"hard link to {{place}}", lambda: os.link(place, f"hard{{number}}"))
                os.symlink(place, f"soft{{number}}")
                got += works(f"write through a symlink to {{place}}", lambda: open(f"soft{{number}}", "a"))
        """)

    def test_no_call_that_changes_a_file_without_opening_it(self, arena: Arena) -> None:
        """Landlock does not guard these, so there they must not even look at their arguments."""
        if arena.backend == "landlock":
            arena.probe(f"""
                for name, number in {numbers(*CHANGES.split())!r}.items():
                    if libc.syscall(number, -1, -1, -1, -1, -1, -1) != 0 and ctypes.get_errno() != errno.EPERM:
                        got.append(f"{{name}}: {{errno.errorcode.get(ctypes.get_errno())}}")
                import fcntl
                file = os.open(os.__file__, os.O_RDONLY)
                for request in (0x40086602, 0x401C5820, 0x40806685):
                    libc.ioctl(file, ctypes.c_ulong(request), None)
                    if ctypes.get_errno() != errno.EPERM:
                        got.append(f"ioctl {{request:x}}: {{errno.errorcode.get(ctypes.get_errno())}}")
            """)

    def test_a_copy_that_keeps_rights_and_times_still_works(self, arena: Arena) -> None:
        report = arena.validate("""
            import pathlib, shutil

            def add(a, b):
                pathlib.Path("one").write_text(str(a + b))
                shutil.copy2("one", "two")
                return int(pathlib.Path("two").read_text())
        """)
        assert report.status == "passed", report

    def test_its_own_folder_replaced_by_a_symlink(self, arena: Arena, canary: Canary) -> None:
        arena.cheat(f"""
            import os, pathlib

            def add(a, b):
                here = pathlib.Path.cwd()
                here.rename(here.with_name("elsewhere"))
                here.symlink_to({str(canary.folder)!r})
                (here.parent / "another").symlink_to({str(canary.secret)!r})
                return 0
        """)


@pytest.mark.nightly
def test_the_probe_would_tell() -> None:
    """An attack that succeeds fails its test; it does not pass silently."""
    space: dict[str, object] = {}
    exec(PROBE + "def attack():\n    return works('reading', lambda: Path('/').stat())\n", space)
    assert "attack" in PROBE_TESTS and space["attack"]() == ["reading"]  # type: ignore[operator]
