"""What a candidate must not reach in other processes and in the kernel."""

import os
import platform

import pytest

from tests.validation.attacks.arena import Arena
from tests.validation.attacks.system_calls import numbers


class TestProcesses:
    def test_descriptors(self, arena: Arena) -> None:
        """Nothing but /dev/null, pytest's captured output in the private folder, and one pipe for the results."""
        arena.probe("""
            import fcntl
            pipes = 0
            nothing, private = os.stat("/dev/null").st_rdev, os.stat(os.environ["TMPDIR"]).st_dev
            for number in range(1024):
                try:
                    found = os.fstat(number)
                except OSError:
                    continue
                captured = stat.S_ISREG(found.st_mode) and found.st_dev == private and found.st_nlink == 0
                pipes += stat.S_ISFIFO(found.st_mode)
                if not (captured or stat.S_ISFIFO(found.st_mode) or found.st_rdev == nothing):
                    got.append(f"descriptor {number}: {found}")
                if stat.S_ISFIFO(found.st_mode) and fcntl.fcntl(number, fcntl.F_GETFL) & 3 != os.O_WRONLY:
                    got.append(f"descriptor {number} can be read")
            got += [] if pipes == 1 else [f"{pipes} pipes"]
        """)

    def test_memory_of_other_processes(self, arena: Arena) -> None:
        arena.probe(f"""
            buffer = ctypes.create_string_buffer(16)
            vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 16)
            for process in (os.getppid(), {os.getpid()}, 1, 2):
                for request in (0, 16, 0x4206):
                    trace = lambda: syscall("ptrace", request, process, 0, 0)
                    got += works(f"ptrace {{request}} {{process}}", trace)
                for call in ("process_vm_readv", "process_vm_writev"):
                    got += works(f"{{call}} {{process}}", lambda: syscall(call, process, vector, 1, vector, 1, 0))
                got += works(f"mem {{process}}", lambda: open(f"/proc/{{process}}/mem", "r+b"))
                got += works(f"descriptors {{process}}", lambda: os.listdir(f"/proc/{{process}}/fd"))
                got += works(f"advise {{process}}", lambda: syscall("process_madvise", process, vector, 1, 21, 0))
                with contextlib.suppress(OSError):
                    handle = os.pidfd_open(process)
                    got += works(f"take a descriptor of {{process}}", lambda: syscall("pidfd_getfd", handle, 3, 0))
        """)

    def test_limits_and_priorities_of_other_processes(self, arena: Arena) -> None:
        """What is changed at the worker would be inherited by every later candidate."""
        arena.probe(f"""
            import resource
            for process in (os.getppid(), {os.getpid()}, 1, 2):
                got += works(f"limits of {{process}}", lambda: resource.prlimit(process, resource.RLIMIT_CORE))
                got += works(f"priority of {{process}}", lambda: os.setpriority(os.PRIO_PROCESS, process, 0))
                same = os.sched_param(0)
                got += works(f"processors of {{process}}", lambda: os.sched_setaffinity(process, range(1024)))
                got += works(f"class of {{process}}", lambda: os.sched_setscheduler(process, os.SCHED_OTHER, same))
                got += works(f"disk priority of {{process}}", lambda: syscall("ioprio_set", 1, process, 0))
            got += works("priority of the user", lambda: os.setpriority(os.PRIO_USER, 0, 0))
        """)

    def test_signals(self, arena: Arena) -> None:
        """Signal 0 does nothing: it only says whether another one would arrive."""
        if arena.backend == "landlock":
            arena.probe(f"""
                import fcntl
                for process in (os.getppid(), {os.getpid()}, -1, os.getpid(), 0):
                    got += works(f"kill {{process}}", lambda: os.kill(process, 0))
                    got += works(f"tkill {{process}}", lambda: syscall("tkill", process, 0))
                    got += works(f"tgkill {{process}}", lambda: syscall("tgkill", process, process, 0))
                with contextlib.suppress(OSError):
                    got += works("pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0))
                ours, theirs = socket.socketpair()
                for process in (os.getppid(), {os.getpid()}):
                    got += works(f"owner {{process}}", lambda: fcntl.fcntl(ours, fcntl.F_SETOWN, process))
                    for request in (0x8901, 0x8902):
                        number = ctypes.c_int(process)
                        got += works(f"owner by {{request:x}}", lambda: fcntl.ioctl(ours, request, number))
                    whole = (ctypes.c_int * 2)(1, process)
                    got += works(f"owner in full {{process}}", lambda: fcntl.fcntl(ours, 15, whole))
            """)
        else:
            arena.probe(f"""
                # As an ordinary user, it is the same user; `test_undecided` shows that this helps no fix.
                got += works("init", lambda: os.kill(1, 0)) if {os.getuid()} == 0 else []
                got += works("the supervisor", lambda: os.kill({os.getpid()}, 0))
            """)


DENIED = """
    clone3 unshare setns mount umount2 pivot_root chroot open_tree fsopen mount_setattr bpf ptrace io_uring_setup
    userfaultfd keyctl add_key request_key perf_event_open init_module kexec_load open_by_handle_at personality
    syslog fanotify_init memfd_create memfd_secret settimeofday sethostname reboot quotactl acct
    shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink
"""


class TestKernel:
    def test_system_calls(self, arena: Arena) -> None:
        """Each is denied before its arguments are checked."""
        arena.probe(f"""
            for name, number in {numbers(*DENIED.split())!r}.items():
                result = libc.syscall(number, 0, 0, 0, 0, 0)
                if result != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
                    got.append(f"{{name}}: {{result}} {{errno.errorcode.get(ctypes.get_errno())}}")
        """)

    def test_new_namespaces_by_clone(self, arena: Arena) -> None:
        arena.probe("""
            for bit in (17, 25, 26, 27, 28, 29, 30):
                child = libc.syscall(CALLS["clone"], 1 << bit | signal.SIGCHLD, 0, 0, 0, 0)
                if child == 0:
                    os._exit(0)
                if child != -1 or ctypes.get_errno() != errno.EPERM:
                    got.append(f"a namespace: {bit}")
        """)

    def test_calls_of_another_machine(self, arena: Arena) -> None:
        """The numbers of x32 and of 32-bit programs would pass by a filter that knows others."""
        if platform.machine() != "x86_64":
            pytest.skip("only x86_64 has a second set of numbers for its own programs")
        assert arena.cheat(
            "import ctypes\n\ndef add(a, b):\n    ctypes.CDLL(None).syscall(0x40000000 + 39)\n    return a + b\n"
        ).tests == {"test_small": False, "test_negative": False}

    def test_capabilities_and_users(self, arena: Arena) -> None:
        arena.probe("""
            if os.getuid() != 0:
                got += works("setuid", lambda: os.setuid(0)) + works("setresuid", lambda: os.setresuid(0, 0, 0))
                got += works("setgroups", lambda: os.setgroups([0])) + works("setgid", lambda: os.setgid(0))
            for program in ("/usr/bin/su", "/usr/bin/sudo", "/usr/bin/mount"):
                if os.path.exists(program):
                    got += works(program, lambda: subprocess.run([program, "-c", "id"], check=True, timeout=1))
            header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
            if libc.capget(header, data) or any(data):
                got.append(f"capabilities {list(data)}")
            all_of_them = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
            got += [] if libc.capset(header, all_of_them) else ["capset"]
        """)
