"""Landlock: restrict this process to the named files, without namespaces or privileges.

Standard library only: this runs inside the sandbox.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _DEVICE_IOCTL = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_IOCTL
# The number of file access rights in each ABI version; their bits are contiguous.
_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
_LATEST_RIGHTS = 16
_SCOPES = 0b11
# From this ABI version on, signals and abstract sockets can be restricted too.
SCOPED = 6


def version() -> int:
    """The kernel's Landlock ABI version; 0 if there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)))


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Restrict this process and its children to these files and folders. Missing paths are ignored."""
    known = version()
    if known == 0:
        raise OSError("the kernel has no landlock")
    handled = (1 << _RIGHTS_BY_VERSION.get(known, _LATEST_RIGHTS)) - 1
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("=QQQ", handled, 0, _SCOPES if known >= SCOPED else 0)
    size = 8 if known < 4 else (16 if known < SCOPED else 24)
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
