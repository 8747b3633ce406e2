"""What one candidate does to the next: kills, leftovers and traps in the same warm workers.

After every attack the arena's own check follows: a good neighbour passes and a bad one fails.
"""

import os
import textwrap
import time

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import BAD, GOOD, Arena, is_ended
from touchstone.validation.sandbox.processes import descendants


class TestKilling:
    @pytest.mark.parametrize(
        ("target", "number"),
        nightly_but(
            [("-1", "SIGKILL")],
            [
                *((target, "SIGKILL") for target in ("-1", "os.getppid()", "1", "2", "0")),
                ("os.getppid()", "SIGTERM"),
                ("-1", "SIGSTOP"),
            ],
        ),
    )
    def test_every_process_that_it_can_name(self, arena: Arena, target: str, number: str) -> None:
        """Only ever in a process namespace. Elsewhere signals are refused, which `test_signals` shows with signal 0."""
        harmless = "0" if arena.backend == "landlock" else f"signal.{number}"
        started = time.monotonic()
        arena.cheat(f"""
            import os, signal

            def add(a, b):
                try:
                    os.kill({target}, {harmless})
                except OSError:
                    pass
                return 0
        """)
        # Whoever is stopped is not waited for, long before the wall limit.
        assert time.monotonic() - started < 40

    def test_the_worker_is_killed_between_two_jobs(self, arena: Arena) -> None:
        arena.validate(GOOD)
        worker = list(arena.validator.workers.values())[-1]
        gone = set(descendants(worker.process))
        os.kill(worker.process, 9)
        while any(not is_ended(process) for process in gone):
            time.sleep(0.01)
        assert [arena.validate(code).status for code in (GOOD, BAD)] == ["passed", "failed"]

    def test_many_jobs_in_one_worker_with_killers_among_them(self, arena: Arena) -> None:
        killer = "import os\ndef add(a, b):\n    os._exit(9)\n"
        statuses = [arena.validate(code).status for code in (GOOD, killer, BAD, killer, GOOD, BAD)]
        assert statuses == ["passed", "no_report", "failed", "no_report", "passed", "failed"]


LEFTOVERS = {
    "files": "open('left.txt', 'w').write('x'); open(os.path.expanduser('~/left.txt'), 'w').write('x')",
    "a module beside the next one": (
        "[open(os.path.join(p, n), 'w').write('add = None') for p in ('.', '..', os.path.expanduser('~')) "
        "for n in ('solution.py', 'json.py', 'math.py')]"
    ),
    "folders without rights": (
        "os.makedirs('a/b/c'); os.mkdir('a/b/none', 0); os.chmod('a/b', 0); os.chmod('a', 0); os.chmod('.', 0)"
    ),
    "a private folder without rights": "os.chmod(os.path.expanduser('~'), 0)",
    "deep folders": "[(os.mkdir('d'), os.chdir('d')) for _ in range(1500)]",
    "deep folders with long names": "[(os.mkdir('d' * 250), os.chdir('d' * 250)) for _ in range(300)]",
    "deep folders without rights": "[(os.mkdir('d'), os.chdir('d'), os.chmod('..', 0)) for _ in range(50)]",
    "strange names": "[open(n, 'w') for n in (b'\\xff\\xfe', b'a\\nb', b'-rf', b' ', b'x' * 255)]; os.mkdir(b'\\xff')",
    "links in a circle": (
        "os.symlink('.', 'here'); os.symlink('loop', 'loop'); os.symlink('/', 'root'); os.symlink('..', 'up')"
    ),
    "pipes and sockets": (
        "os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('socket') if os.path.exists('/box') else None"
    ),
    "a folder in place of a file": "os.remove('solution.py'); os.mkdir('solution.py')",
    "its folder renamed": (
        "os.rename(os.getcwd(), os.path.expanduser('~/elsewhere')); os.mkdir(os.path.expanduser('~/work'))"
    ),
    "its folder taken by a file": (
        "os.rename(os.getcwd(), os.path.expanduser('~/elsewhere')); open(os.path.expanduser('~/work'), 'w')"
    ),
    "another folder": "os.chdir('/')",
    "a mask": "os.umask(0o777); os.mkdir('masked')",
    "limits": (
        "[resource.setrlimit(n, (0, 0)) for n in (resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, "
        "resource.RLIMIT_CPU, resource.RLIMIT_STACK)]"
    ),
    "no descriptors": "resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
    "an environment": "os.environ.update({'PYTHONPATH': '/', 'LD_PRELOAD': '/x', 'HOME': '/x', 'PYTHONHASHSEED': '5'})",
    "signals ignored": "[signal.signal(n, signal.SIG_IGN) for n in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGTERM)]",
    "signals blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))",
    "patched modules": "json.loads = json.dumps = os.fork = os.kill = None; sys.modules.clear()",
    "a death wish": "ctypes.CDLL(None).prctl(1, 9)",
    "a name and no dumps": (
        "[ctypes.CDLL(None).prctl(n, v, 0, 0, 0) for n, v in ((15, b'x'), (4, 1), (36, 1), (38, 1))]"
    ),
    "a filter of its own": "ctypes.CDLL(None).prctl(22, 1)",
}


class TestLeftovers:
    # Files, rights, depth, links, its own folder, limits, signals, modules, the process.
    BY_DAY = (
        *(
            "a module beside the next one",
            "folders without rights",
            "deep folders with long names",
            "links in a circle",
        ),
        *("its folder taken by a file", "limits", "signals blocked", "patched modules", "a death wish"),
    )

    @pytest.mark.parametrize("what", nightly_but(BY_DAY, LEFTOVERS))
    def test_what_is_left_is_not_found(self, arena: Arena, what: str) -> None:
        head = "import ctypes, json, os, resource, signal, socket, sys\n"
        once = f"    if a == 2:\n        {LEFTOVERS[what]}\n"
        assert arena.validate(f"{head}def add(a, b):\n{once}    return a + b\n").decided

    def test_the_next_one_sees_none_of_it(self, arena: Arena) -> None:
        places = "import builtins, tempfile\n"
        places += "places = (Path.cwd(), Path.home(), Path(tempfile.gettempdir()), Path('/tmp'), Path('/dev/shm'))\n"
        leave = """
            for place in places:
                with contextlib.suppress(OSError):
                    (place / "message").write_text("from the one before")
            builtins.message = sys.message = os.message = os.environ["message"] = "from the one before"
            sys.path.append("/message")
        """
        look = """
            got += [str(place) for place in places if (place / "message").exists()]
            got += [str(one) for one in (builtins, sys, os) if hasattr(one, "message")]
            got += [name for name in (*os.environ, *sys.path) if "message" in name]
            got += [name for name in os.listdir(Path.home()) if name != "work"]
            got += [name for name in os.listdir() if not name.endswith("solution.py")]
        """
        arena.probe(places + textwrap.dedent(leave))
        arena.probe(places + textwrap.dedent(look))

    def test_abstract_sockets_do_not_last(self, arena: Arena) -> None:
        wait = """
            import os, socket

            def add(a, b):
                one = socket.socket(socket.AF_UNIX)
                one.bind(chr(0) + "waiting")
                one.listen()
                if os.fork() == 0:
                    one.accept()[0].send(b"from the one before")
                return a + b
        """
        arena.validate(wait, wall_seconds=3)
        arena.probe("""
            got += works("met", lambda: socket.socket(socket.AF_UNIX).connect(chr(0) + "waiting"))
        """)

    def test_a_process_that_waits_for_the_next_one(self, arena: Arena) -> None:
        """It would write over the next candidate's file the moment that it appears."""
        arena.validate("""
            import os, pathlib, time

            def add(a, b):
                try:
                    if os.fork():
                        return a + b
                except OSError:
                    return a + b
                os.setsid()
                target = pathlib.Path.home() / "work" / "solution.py"
                while True:
                    try:
                        target.write_text("def add(a, b): return a + b")
                    except OSError:
                        pass
        """)
        for _ in range(3):
            assert arena.validate(BAD).status == "failed"
