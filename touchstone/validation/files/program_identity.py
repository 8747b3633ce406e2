"""What the programs of this machine that a command names consist of: their files, interpreters and Python packages."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from touchstone.regular_files import open_regular
from touchstone.validation.files.file_identity import content_identity, packages_identity

# What the package managers of Debian, Alpine, Fedora and older relatives of it have installed, libraries included.
_INSTALLED = (
    "/var/lib/dpkg/status",
    "/lib/apk/db/installed",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/var/lib/rpm/rpmdb.sqlite",
    "/var/lib/rpm/Packages",
)
_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_MAX_LINE = 512


def program_identity(word: str, search: str) -> dict[str, str]:
    """The contents of a program or file by path, and of what runs it; empty if the machine has none of that name.

    `search` is the PATH of the command.
    """
    found: dict[str, str] = {}
    waiting = [word]
    while waiting:
        word = waiting.pop()
        path = Path(shutil.which(word, path=search) or word)
        if str(path) in found or not path.is_absolute() or not path.is_file():
            continue
        found[str(path)] = content_identity(path)
        found |= {str(folder): packages_identity(folder) for folder in _packages(path)}
        waiting += _interpreter(path)
    return found


def system_identity() -> dict[str, str]:
    """The packages that the system's package manager has installed."""
    return {path: content_identity(Path(path)) for path in _INSTALLED if Path(path).is_file()}


def _interpreter(program: Path) -> list[str]:
    """The words of a script's first line: its interpreter, which `env` may look up."""
    try:
        with open_regular(program) as file:
            line = file.readline(_MAX_LINE)
    except OSError:
        return []
    return line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []


def _packages(program: Path) -> Iterator[Path]:
    """The folders that a Python may import packages from. It is not asked: a problem may name any program."""
    if not _PYTHON.fullmatch(program.name):
        return
    prefixes = {program.parent.parent, program.resolve().parent.parent}
    for prefix in sorted(prefixes | ({Path("/usr/local")} if Path("/usr") in prefixes else set())):
        yield from sorted(prefix.glob("lib*/p*/*-packages"))
