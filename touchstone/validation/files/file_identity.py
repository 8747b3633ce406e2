"""Programs, folders and packages on this machine as one hash each: the part of the cache key that is on disk."""

import base64
import csv
import functools
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from operator import attrgetter, itemgetter
from pathlib import Path

from touchstone.locations import cache_folder
from touchstone.regular_files import open_regular, read_json
from touchstone.storage.files import replacing

# Above this size a file or folder is identified by sizes and times: reading it would cost more than the cache saves.
_MAX_BYTES_READ = 2**30
_SETTLE_NS = 2_000_000_000
_EMPTY = hashlib.sha256(b"").digest()

# Every program and folder of packages whose identity this process has asked for, and when it last did.
_identified: dict[Path, int] = {}
# While packages stay as they are: below which folders, and the hashes found since.
_staying: list[tuple[tuple[Path, ...], dict[Path, str]]] = []


def identified_since(moment: int) -> frozenset[Path]:
    """The programs and folders whose identity was asked for since a moment of `time.monotonic_ns`."""
    return frozenset(path for path, asked in _identified.items() if asked >= moment)


def content_identity(path: Path) -> str:
    """A hash of a file's bytes, or of the names and bytes of all files in a folder; "absent" if there is nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "check.py").write_text("pass")
    ...     content_identity(Path(folder) / "check.py")[:8], content_identity(Path(folder) / "none")
    ('d74ff0ee', 'absent')
    """
    _identified[path] = time.monotonic_ns()
    if not path.is_dir():
        return _file_identity(path)
    files = [(name, Path(file.path), stat_of(file)) for name, file in files_in(path, follow=True)]
    if sum(found.st_size for _, _, found in files) > _MAX_BYTES_READ:
        return _digest(sorted(f"{name} {_size_and_times(found)}\n" for name, _, found in files))
    return _digest(sorted(f"{name} {_file_identity(file)}\n" for name, file, _ in files))


def packages_identity(folder: Path) -> str:
    """A hash of the packages installed in a folder such as `site-packages`.

    Each package's RECORD has the hashes of its files. Only files without one, and those that may have changed since
    their package was installed, are read. The hash is remembered for as long as no file changes.
    """
    _identified[folder] = time.monotonic_ns()
    for below, found in _staying:
        if any(map(folder.is_relative_to, below)):
            if folder not in found:
                found[folder] = _hash_of_packages(folder)
            return found[folder]
    return _hash_of_packages(folder)


@contextmanager
def packages_stay(*below: Path) -> Iterator[None]:
    """Look at each folder of packages once until the end, or only at those below some folders: nothing is installed."""
    staying: tuple[tuple[Path, ...], dict[Path, str]] = (below or (Path("/"),), {})
    _staying.append(staying)
    try:
        yield
    finally:
        _staying.remove(staying)


def _hash_of_packages(folder: Path) -> str:
    began, newest = time.time_ns(), 0
    marks = []
    for name, file in files_in(folder, follow=True):
        found = stat_of(file)
        newest = max(newest, found.st_ctime_ns)
        marks.append(f"{name} {_size_and_times(found)} {found.st_ino}\n")
    seen, place = _digest([_own_code(), *sorted(marks)]), str(folder.absolute())
    known = _remembered_hashes()
    if place not in known or known[place][0] != seen:
        known[place] = (seen, _read_packages(folder))
        # A change within the resolution of the clock leaves the times as they are.
        if newest < began - _SETTLE_NS:
            _remember_hashes(known)
    return known[place][1]


def _read_packages(folder: Path) -> str:
    recorded: dict[str, tuple[int, str]] = {}
    lines = []
    for record in sorted(folder.glob("*.dist-info/RECORD")):
        installed_at, text = record.stat().st_mtime_ns, record.read_text(encoding="utf-8", errors="replace")
        recorded |= {row[0]: (installed_at, row[1]) for row in csv.reader(text.splitlines()) if len(row) > 1}
        lines.append(f"{record.parent.name} {hashlib.sha256(text.encode()).hexdigest()}\n")

    @functools.cache
    def changed_at(directory: str) -> int:
        """When a directory below the folder, or one around it, last changed: it may have been moved there."""
        if not directory:
            return 0
        return max((folder / directory).stat().st_ctime_ns, changed_at(directory.rpartition("/")[0]))

    for name, file in sorted(files_in(folder, follow=True), key=itemgetter(0)):
        installed_at, expected = recorded.pop(name, (0, ""))
        if not expected and name.endswith(".dist-info/RECORD"):
            continue  # it has no hash of its own
        found = stat_of(file)
        # Not the time of modification alone: an older file in its place brings its own.
        changed = max(found.st_mtime_ns, found.st_ctime_ns, changed_at(name.rpartition("/")[0]))
        if not expected or changed >= installed_at:
            content = _file_identity(Path(file.path))
            lines += [f"{name} {content}\n"] if content != _recorded_identity(expected) else []
    return _digest([*lines, *(f"{name} is gone\n" for name in sorted(recorded) if _is_below(name))])


def _is_below(recorded: str) -> bool:
    """Whether a path in a RECORD is that of a file which `files_in` finds."""
    parts = recorded.split("/")
    return not {"..", "", "__pycache__"}.intersection(parts)


@functools.cache
def _own_code() -> str:
    """A hash of this module: another one may hash otherwise."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _memory_file() -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / "packages.json"


def _remembered_hashes() -> dict[str, tuple[str, str]]:
    """For each folder of packages, the state in which it was last hashed, and the hash."""
    file = _memory_file()
    with suppress(OSError, ValueError, AttributeError, TypeError):
        found = read_json(file) if file is not None else {}
        return {place: (str(seen), str(content)) for place, (seen, content) in found.items()}
    return {}


def _remember_hashes(known: Mapping[str, tuple[str, str]]) -> None:
    file = _memory_file()
    if file is not None:
        with suppress(OSError), replacing(file) as scratch:
            scratch.write_text(json.dumps({place: pair for place, pair in known.items() if Path(place).is_dir()}))


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def _recorded_identity(recorded: str) -> str:
    """`_file_identity` of a file whose hash RECORD has as `sha256=` and base64 without padding."""
    kind, _, value = recorded.partition("=")
    digest = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)) if kind == "sha256" else b""
    return "empty" if digest == _EMPTY else digest.hex()


def files_in(
    folder: Path, left_out: Container[str] = ("__pycache__",), *, follow: bool = False
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything in a folder that is not a folder, at any depth, by relative path, without some folders.

    `follow` looks into linked folders too, each once, unless they contain the folder itself.
    """
    directories, followed = [""], {os.path.realpath(folder)}
    while directories:
        directory = directories.pop()
        with suppress(PermissionError), os.scandir(f"{folder}/{directory}") as entries:
            for entry in sorted(entries, key=attrgetter("name")) if follow else entries:
                name = f"{directory}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in left_out:
                        directories.append(f"{name}/")
                elif follow and entry.is_symlink() and _leads_to_another(entry.path, folder, followed):
                    directories.append(f"{name}/")
                else:
                    yield name, entry


def _leads_to_another(link: str, folder: Path, followed: set[str]) -> bool:
    """Whether a link leads to a folder that was not yet looked into and does not contain `folder`."""
    target = Path(os.path.realpath(link))
    try:
        wanted = target.is_dir() and str(target) not in followed and target not in folder.resolve().parents
    except OSError:
        return False
    followed.add(str(target))
    return wanted


def stat_of(entry: os.DirEntry[str]) -> os.stat_result:
    """The file that a directory entry leads to; of a broken link, the link itself."""
    try:
        return entry.stat()
    except OSError:
        return entry.stat(follow_symlinks=False)


def _file_identity(path: Path) -> str:
    try:
        if not path.is_file():
            return "not a file" if path.exists() else "absent"
        found = path.stat()
        # The kernel's files, in /proc for instance, have no size, and reading one may wait forever.
        if found.st_size > _MAX_BYTES_READ or found.st_size == 0:
            return _size_and_times(found) if found.st_size else "empty"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _size_and_times(found: os.stat_result) -> str:
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


# Programs that a command names

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
    own, base = program.parent.parent, program.resolve().parent.parent
    prefixes = {own} if _is_isolated(own) else {own, base}
    for prefix in sorted(prefixes | ({Path("/usr/local")} if Path("/usr") in prefixes else set())):
        # `lib64` may be a link to `lib`.
        found = sorted(prefix.glob("lib*/p*/*-packages"), reverse=True)
        yield from sorted({folder.resolve(): folder for folder in found}.values())


def _is_isolated(prefix: Path) -> bool:
    """Whether a folder is a virtual environment that does not see the packages of the Python that it was made with."""
    try:
        settings = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    found = re.search(r"(?im)^include-system-site-packages\s*=\s*(\w*)", settings)
    return found is not None and found[1].lower() != "true"
