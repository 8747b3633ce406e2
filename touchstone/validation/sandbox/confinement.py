"""The kernel's means by which a process restricts itself: seccomp for system calls, landlock for files.

Standard library only: this runs inside the sandbox.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterable

_PR_SET_NO_NEW_PRIVS = 38

# System calls: a deny list, not an allow list, because the calls that interpreters and compilers need differ too much
# between versions. Denied are calls that reach other processes, the kernel's configuration, other namespaces or a
# network. Most return EPERM, so that a program can continue without them.

_Numbers = tuple[int | None, int | None]


def _calls(table: str) -> list[_Numbers]:
    """System call numbers on x86_64 and aarch64, after the name of the call; `-` if the architecture lacks it."""
    words = table.split()
    x86, arm = ([None if word == "-" else int(word) for word in words[first::3]] for first in (1, 2))
    return list(zip(x86, arm, strict=True))


# Other processes and their priority; mounts and namespaces; the kernel, its modules, keys and clocks; files by handle;
# messages and memory that outlive a process, or are charged to none.
_DENIED = _calls("""
    ptrace 101 117  process_vm_readv 310 270  process_vm_writev 311 271  process_madvise 440 440
    process_mrelease 448 448  migrate_pages 256 238  move_pages 279 239  setpriority 141 140  ioprio_set 251 30
    sched_setparam 142 118  sched_setscheduler 144 119  sched_setattr 314 274  sched_setaffinity 203 122
    pidfd_getfd 438 438  kcmp 312 272
    mount 165 40  umount2 166 39  pivot_root 155 41  chroot 161 51  open_tree 428 428  move_mount 429 429
    fsopen 430 430  fsconfig 431 431  fsmount 432 432  fspick 433 433  mount_setattr 442 442
    setns 308 268  unshare 272 97
    init_module 175 105  finit_module 313 273  delete_module 176 106  kexec_load 246 104  kexec_file_load 320 294
    bpf 321 280  perf_event_open 298 241  userfaultfd 323 282  add_key 248 217  request_key 249 218  keyctl 250 219
    io_uring_setup 425 425  io_uring_enter 426 426  io_uring_register 427 427
    name_to_handle_at 303 264  open_by_handle_at 304 265
    acct 163 89  swapon 167 224  swapoff 168 225  reboot 169 142  settimeofday 164 170  clock_settime 227 112
    adjtimex 159 171  clock_adjtime 305 266  sethostname 170 161  setdomainname 171 162  iopl 172 -  ioperm 173 -
    modify_ldt 154 -  quotactl 179 60  quotactl_fd 443 443  syslog 103 116  vhangup 153 58  personality 135 92
    fanotify_init 300 262
    shmget 29 194  shmat 30 196  shmctl 31 195  semget 64 190  semop 65 193  semctl 66 191  semtimedop 220 192
    msgget 68 186  msgsnd 69 189  msgrcv 70 188  msgctl 71 187  mq_open 240 180  mq_unlink 241 181
    memfd_create 319 279  memfd_secret 447 447
""")
# Not covered by landlock: permissions, owner, times and attributes of files of the same user.
_ATTRIBUTES = _calls("""
    chmod 90 -  fchmod 91 52  fchmodat 268 53  fchmodat2 452 452  chown 92 -  lchown 94 -  fchown 93 55
    fchownat 260 54  utime 132 -  utimes 235 -  futimesat 261 -  utimensat 280 88  setxattr 188 5  lsetxattr 189 6
    fsetxattr 190 7  setxattrat 463 463  removexattr 197 14  lremovexattr 198 15  fremovexattr 199 16
    removexattrat 466 466  file_setattr 469 469
""")
_SIGNALS = _calls("""
    kill 62 129  tkill 200 130  tgkill 234 131  rt_sigqueueinfo 129 138  rt_tgsigqueueinfo 297 240
    pidfd_send_signal 424 424
""")
_FORKS = _calls("fork 57 -  vfork 58 -")
_CLONE, _CLONE3 = (56, 220), (435, 435)
_SOCKET, _SOCKETPAIR = (41, 198), (53, 199)
_PRCTL, _PRLIMIT, _IOCTL, _FCNTL = (157, 167), (302, 261), (16, 29), (72, 25)
_SETSOCKOPT, _FALLOCATE = (54, 208), (285, 47)

_NEW_NAMESPACES = 0x7E020000
_CLONE_THREAD = 0x00010000
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCKET_KIND, _STREAM, _DATAGRAM = 0xF, 1, 2
_TCP, _UDP = 6, 17
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
# SO_SNDBUF, SO_RCVBUF and their privileged forms: what a socket holds counts for no process.
_BUFFER_SIZES = (7, 8, 32, 33)
# Encryption and other protocols inside the kernel.
_TCP_ULP = 31
# Datagram sockets: they could send to any other socket by name.
_WITHOUT_CONNECTION = 0b10
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15
# Terminal input injection; signal owner of a file; flags, attributes and verity of a read-only file.
_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP = 0x5412, 0x541C, 0x8901, 0x8902
_SET_FLAGS, _SET_ATTRIBUTES, _ENABLE_VERITY = 0x40086602, 0x401C5820, 0x40806685
_REFUSED_REQUESTS = (_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP, _SET_FLAGS, _SET_ATTRIBUTES, _ENABLE_VERITY)
# The same as fallocate, by way of ioctl: reserve, reserve (64 bits) and zero a range.
_PREALLOCATE_REQUESTS = (0x40305828, 0x4030582A, 0x40305839)

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32_CALLS = 0x40000000

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 24, 32

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2


def system_calls_known() -> bool:
    """Whether the system call numbers of this architecture are known."""
    return os.uname().machine in _MACHINES


def build_filter(
    *, sockets: bool, processes: bool, signals: bool, attributes: bool, preallocation: bool, hiding: bool
) -> bytes:
    """Build the BPF program of the filter.

    With `sockets`, which is for a network namespace of its own, there are Unix, TCP and UDP sockets; without, only
    connected pairs. Without `processes`, no process can be started (threads can) and this one cannot outlive its
    parent. Without `signals`, none can be sent. Without `attributes`, changing a file's permissions, owner or times has
    no effect but reports success, so that copying a file with its metadata still works. Without `preallocation`, disk
    space is taken only by writing, which takes time. Without `hiding`, the supervisor can count the sockets of every
    process. Socket buffers keep their default size.
    """
    machine, architecture = _MACHINES[os.uname().machine]
    refuse, ignore = _step(_RETURN, _ERRNO | errno.EPERM), _step(_RETURN, _ERRNO)
    program = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, architecture, then=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
    ]

    def answer(calls: Iterable[_Numbers], result: bytes) -> None:
        for number in (numbers[machine] for numbers in calls):
            if number is not None:
                program.extend([_step(_EQUAL, number, otherwise=1), result])

    def on_argument(call: tuple[int, int], argument: int, *rule: bytes) -> None:
        """Apply a rule to a call's argument, then reload the call number for the rules that follow."""
        inside = [_step(_LOAD, argument), *rule, _step(_LOAD, _NUMBER)]
        program.extend([_step(_EQUAL, call[machine], otherwise=len(inside)), *inside])

    if machine == 0:
        program += [_step(_AT_LEAST, _X32_CALLS, otherwise=1), _step(_RETURN, _KILL)]
    answer([*_DENIED, *([] if signals else _SIGNALS), *([] if processes else _FORKS)], refuse)
    answer([] if attributes else _ATTRIBUTES, ignore)
    # The flags of clone3 are in memory that a filter cannot read; on ENOSYS, libraries fall back to clone.
    answer([_CLONE3], _step(_RETURN, _ERRNO | errno.ENOSYS))
    on_argument(_CLONE, _FIRST_ARGUMENT, _step(_ANY_BIT, _NEW_NAMESPACES, otherwise=1), refuse)
    on_argument(_PRLIMIT, _FIRST_ARGUMENT, _step(_EQUAL, 0, then=1), refuse)  # its own limits
    for request in () if signals else (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX):
        on_argument(_FCNTL, _SECOND_ARGUMENT, _step(_EQUAL, request, otherwise=1), refuse)
    if not processes:
        on_argument(_CLONE, _FIRST_ARGUMENT, _step(_ANY_BIT, _CLONE_THREAD, then=1), refuse)
        on_argument(_PRCTL, _FIRST_ARGUMENT, _step(_EQUAL, _PR_SET_PDEATHSIG, otherwise=1), refuse)
    if sockets:
        # `then` and `otherwise` lead to the next test, past the refusal or to it.
        on_argument(
            _SOCKET,
            _FIRST_ARGUMENT,
            _step(_EQUAL, _AF_UNIX, then=11),
            _step(_EQUAL, _AF_INET, then=1),
            _step(_EQUAL, _AF_INET6, otherwise=8),
            _step(_LOAD, _SECOND_ARGUMENT),
            _step(_AND, _SOCKET_KIND),
            _step(_EQUAL, _STREAM, then=1),
            _step(_EQUAL, _DATAGRAM, otherwise=4),
            _step(_LOAD, _THIRD_ARGUMENT),
            _step(_EQUAL, 0, then=3),
            _step(_EQUAL, _TCP, then=2),
            _step(_EQUAL, _UDP, then=1),
            refuse,
        )
        on_argument(_SETSOCKOPT, _THIRD_ARGUMENT, _step(_EQUAL, _TCP_ULP, otherwise=1), refuse)
    else:
        answer([_SOCKET], refuse)
        on_argument(_SOCKETPAIR, _SECOND_ARGUMENT, _step(_ANY_BIT, _WITHOUT_CONNECTION, otherwise=1), refuse)
    if not hiding:  # by prctl(PR_SET_DUMPABLE, 0), which hides a process's descriptors
        visible = (_step(_LOAD, _SECOND_ARGUMENT), _step(_EQUAL, 1, then=1), refuse)
        on_argument(_PRCTL, _FIRST_ARGUMENT, _step(_EQUAL, _PR_SET_DUMPABLE, otherwise=len(visible)), *visible)
    for option in _BUFFER_SIZES:
        on_argument(_SETSOCKOPT, _THIRD_ARGUMENT, _step(_EQUAL, option, otherwise=1), ignore)
    answer([] if preallocation else [_FALLOCATE], _step(_RETURN, _ERRNO | errno.EOPNOTSUPP))
    for request in _REFUSED_REQUESTS if preallocation else (*_REFUSED_REQUESTS, *_PREALLOCATE_REQUESTS):
        on_argument(_IOCTL, _SECOND_ARGUMENT, _step(_EQUAL, request, otherwise=1), refuse)
    program.append(_step(_RETURN, _ALLOW))
    return b"".join(program)


def install_filter(program: bytes) -> None:
    """Install the filter on this thread permanently; its children inherit it."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    libc = ctypes.CDLL(None, use_errno=True)
    given = Program(len(program) // 8, program)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(given), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the seccomp filter was refused")


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)


# Files: landlock needs neither namespaces nor privileges.

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _DEVICE_IOCTL = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_IOCTL
# The number of file access rights in each ABI version; their bits are contiguous.
_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
_LATEST_RIGHTS = 16
_SCOPES = 0b11
# From this ABI version on, signals and abstract sockets can be restricted too.
_SCOPED = 6


def landlock_version() -> int:
    """The kernel's Landlock ABI version; 0 if there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)))


def restrict_files(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Restrict this process and its children to these files and folders. Missing paths are ignored."""
    known = landlock_version()
    if known == 0:
        raise OSError("the kernel has no landlock")
    handled = (1 << _RIGHTS_BY_VERSION.get(known, _LATEST_RIGHTS)) - 1
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("=QQQ", handled, 0, _SCOPES if known >= _SCOPED else 0)
    size = 8 if known < 4 else (16 if known < _SCOPED else 24)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, size, 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock refused the rules")
    for path in readable:
        _allow(libc, ruleset, path, _READ & handled)
    for path in writable:
        _allow(libc, ruleset, path, handled & ~_DEVICE_IOCTL)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(_RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "landlock could not be put in force")
    os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        rights &= _FILE_RIGHTS
    rule = struct.pack("=Qi", rights, place)
    if libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0):
        raise OSError(ctypes.get_errno(), f"landlock refused the rule for {path}")
    os.close(place)
