"""What a program or folder on this machine contains, as one hash: the part of the cache key that lies on disk."""

import base64
import csv
import hashlib
import os
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from operator import itemgetter
from pathlib import Path

# Above this size a file or folder is identified by sizes and times: reading it would cost more than the cache saves.
_MAX_BYTES_READ = 2**30

# Every program and folder of packages whose identity this process has asked for, and when it last did.
_identified: dict[Path, int] = {}


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
    files = [(name, Path(file.path), file.stat(follow_symlinks=False)) for name, file in files_in(path)]
    if sum(found.st_size for _, _, found in files) > _MAX_BYTES_READ:
        return _digest(sorted(f"{name} {_size_and_times(found)}\n" for name, _, found in files))
    return _digest(sorted(f"{name} {_file_identity(file)}\n" for name, file, _ in files))


def packages_identity(folder: Path) -> str:
    """A hash of the packages installed in a folder such as `site-packages`.

    Each package's RECORD has the hashes of its files. Only files without one, and those changed after their package was
    installed, are read.
    """
    _identified[folder] = time.monotonic_ns()
    return _hash_of_packages(folder)


def _hash_of_packages(folder: Path) -> str:
    recorded: dict[str, tuple[int, str]] = {}
    lines = []
    for record in sorted(folder.glob("*.dist-info/RECORD")):
        installed_at, text = record.stat().st_mtime_ns, record.read_text(encoding="utf-8", errors="replace")
        recorded |= {row[0]: (installed_at, row[1]) for row in csv.reader(text.splitlines()) if len(row) > 1}
        lines.append(f"{record.parent.name} {hashlib.sha256(text.encode()).hexdigest()}\n")
    for name, file in sorted(files_in(folder), key=itemgetter(0)):
        installed_at, expected = recorded.get(name, (0, ""))
        if not expected and name.endswith(".dist-info/RECORD"):
            continue  # it has no hash of its own
        if not expected or file.stat(follow_symlinks=False).st_mtime_ns > installed_at:
            found = _file_identity(Path(file.path))
            lines += [f"{name} {found}\n"] if found != _hexadecimal(expected) else []
    return _digest(lines)


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def _hexadecimal(recorded: str) -> str:
    """A hash as RECORD has it (`sha256=` and base64 without padding), in hexadecimal."""
    kind, _, value = recorded.partition("=")
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex() if kind == "sha256" else ""


def files_in(folder: Path, left_out: Container[str] = ("__pycache__",)) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything in a folder that is not a folder, at any depth, by relative path, without some folders."""
    directories = [""]
    while directories:
        directory = directories.pop()
        with suppress(PermissionError), os.scandir(folder / directory) as entries:
            for entry in entries:
                name = f"{directory}{entry.name}"
                if not entry.is_dir(follow_symlinks=False):
                    yield name, entry
                elif entry.name not in left_out:
                    directories.append(f"{name}/")


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
