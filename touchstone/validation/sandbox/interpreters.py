"""The Python interpreters that run inside a sandbox, and the files that each of them needs.

Only those are shown, never a whole prefix: an interpreter may be installed in a home folder, beside private keys.
"""

import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from touchstone.errors import TouchstoneError

_ASK_SECONDS = 120
_OLDEST = (3, 11)
# Without `site` first, so that what it adds to the path is known.
_ASK = """
import json, sys
before = list(sys.path)
import site
site.main()
added = [path for path in sys.path if path not in before]
version = sys.version.split()[0]
print()
print(json.dumps([sys.executable, sys.prefix, sys.base_prefix, sys._base_executable, version, added]))
"""
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
# Shared libraries beside the standard library: its own, and in a conda environment those of its packages.
_LIBRARIES = ("*.so", "*.so.*")


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter that runs inside the sandbox: its executable, and the files and folders it needs.

    `packages` are the folders that its installed packages are imported from.
    """

    program: Path
    folders: tuple[Path, ...]
    version: str
    packages: tuple[Path, ...] = ()

    @property
    def library(self) -> str:
        """The name of the folder of its standard library and packages, such as python3.11."""
        return _library(self.version)

    def packages_in(self, environment: Path) -> Path:
        """The folder of an environment's packages for it."""
        return environment / "lib" / self.library / "site-packages"


@functools.cache
def interpreter(program: Path | None = None) -> Interpreter:
    """The Python of this process without its packages, or the one at the given path with them."""
    if program is None:
        base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        version = sys.version.split()[0]
        return Interpreter(base, _needed({base}, {Path(sys.base_prefix).resolve()}, version), version)
    try:
        asked = subprocess.run([program, "-I", "-S", "-c", _ASK], capture_output=True, check=True, timeout=_ASK_SECONDS)
        executable, prefix, base_prefix, original, version, added = json.loads(asked.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        raise TouchstoneError(f"{program}: is no Python that can be run ({error})") from None
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise TouchstoneError(f"{program}: is Python {version}; 3.11 or later is needed")
    programs = {Path(executable), Path(original)}
    prefixes = {Path(prefix), Path(base_prefix), Path(original).resolve().parent.parent}
    packages = tuple(_package_folders([Path(path) for path in added], prefixes))
    needed = {*_needed(programs, prefixes, version), *packages}
    return Interpreter(Path(executable), tuple(sorted(needed)), version, packages)


def _package_folders(added: list[Path], prefixes: set[Path]) -> Iterator[Path]:
    """Of the folders that `site` adds, those of the environment and its base; `.pth` files may name any other."""
    roots = prefixes | {prefix.resolve() for prefix in prefixes}
    sites = [path for path in added if path.name in _PACKAGE_FOLDERS and not roots.isdisjoint(path.parents)]
    return (path for path in added if path in sites or not set(sites).isdisjoint(path.parents))


@functools.lru_cache(maxsize=1000)
def with_environment(python: Interpreter, environment: Path) -> Interpreter:
    """The same interpreter with the packages of an environment instead of its own. Nothing in there is run here."""
    packages = python.packages_in(environment)
    found = [path for pattern in _LIBRARIES for path in (environment / "lib").glob(pattern)]
    # A link could show any other file.
    libraries = [path for path in found if path.resolve().parent == (environment / "lib").resolve()]
    return replace(python, folders=tuple(sorted({*python.folders, packages, *libraries})), packages=(packages,))


def editable_installs(python: Interpreter) -> list[str]:
    """The packages that are only links to a folder elsewhere, which no sandbox shows: by distribution name."""
    found = []
    for about in (path for site in python.packages for path in site.glob("*.dist-info/direct_url.json")):
        with suppress(OSError, ValueError, AttributeError):
            if json.loads(about.read_bytes()).get("dir_info", {}).get("editable"):
                found.append(about.parent.name.partition("-")[0])
    return sorted(found)


def _needed(programs: set[Path], prefixes: set[Path], version: str) -> tuple[Path, ...]:
    """The executables with the links that lead to them, and of each prefix the library and its settings."""
    found = {step for program in programs for step in _links(program)}
    for prefix in prefixes | {prefix.resolve() for prefix in prefixes}:
        library = _library(version)
        found |= {prefix / "pyvenv.cfg", prefix / "lib" / library, prefix / "lib64" / library}
        found |= {path for pattern in _LIBRARIES for path in (prefix / "lib").glob(pattern)}
    return tuple(sorted(path for path in found if path.exists()))


def _library(version: str) -> str:
    return f"python{'.'.join(version.split('.')[:2])}"


def _links(program: Path) -> Iterator[Path]:
    """A program and what it links to, link by link: it finds its libraries from where it really is."""
    seen: set[Path] = set()
    while program not in seen:
        seen.add(program)
        yield program
        if program.is_symlink():
            program = program.parent / program.readlink()
