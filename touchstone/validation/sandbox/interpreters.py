"""The Python interpreters that run inside a sandbox, and the files that each of them needs.

Only those are shown, never a whole prefix: an interpreter may be installed in a home folder, beside private keys.
"""

import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from touchstone.errors import TouchstoneError

_ASK_SECONDS = 120
_OLDEST = (3, 11)
_ASK = (
    "import json, sys; "
    "print(json.dumps([sys.executable, sys.prefix, sys.base_prefix, sys._base_executable, sys.version.split()[0]]))"
)
# Shared libraries beside the standard library: its own, and in a conda environment those of its packages.
_LIBRARIES = ("*.so", "*.so.*")


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter that runs inside the sandbox: its executable, and the files and folders it needs."""

    program: Path
    folders: tuple[Path, ...]
    version: str


@functools.cache
def interpreter(program: Path | None = None) -> Interpreter:
    """The Python of this process, or the one at the given path."""
    if program is None:
        base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        version = sys.version.split()[0]
        return Interpreter(base, _needed({base}, {Path(sys.base_prefix).resolve()}, version), version)
    try:
        asked = subprocess.run([program, "-I", "-c", _ASK], capture_output=True, check=True, timeout=_ASK_SECONDS)
        executable, prefix, base_prefix, original, version = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise TouchstoneError(f"{program}: is no Python that can be run ({error})") from None
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise TouchstoneError(f"{program}: is Python {version}; 3.11 or later is needed")
    programs = {Path(executable), Path(original)}
    prefixes = {Path(prefix), Path(base_prefix), Path(original).resolve().parent.parent}
    return Interpreter(Path(executable), _needed(programs, prefixes, version), version)


def _needed(programs: set[Path], prefixes: set[Path], version: str) -> tuple[Path, ...]:
    """The executables with the links that lead to them, and of each prefix the library and its settings."""
    found = {step for program in programs for step in _links(program)}
    for prefix in prefixes | {prefix.resolve() for prefix in prefixes}:
        library = f"python{'.'.join(version.split('.')[:2])}"
        found |= {prefix / "pyvenv.cfg", prefix / "lib" / library, prefix / "lib64" / library}
        found |= {path for pattern in _LIBRARIES for path in (prefix / "lib").glob(pattern)}
    return tuple(sorted(path for path in found if path.exists()))


def _links(program: Path) -> Iterator[Path]:
    """A program and what it links to, link by link: it finds its libraries from where it really is."""
    seen: set[Path] = set()
    while program not in seen:
        seen.add(program)
        yield program
        if program.is_symlink():
            program = program.parent / program.readlink()
