"""The files of problems on their way to workers that have none: read here, written there, each folder once.

A folder goes by the hash of its files. Names, contents and modes are carried, and the times of last change.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from touchstone.errors import TouchstoneError
from touchstone.validation.files.open_beneath import open_beneath
from touchstone.validation.files.working_copy import HashedTree
from touchstone.validation.protocol import Tree

_PART_BYTES = 4 << 20
# A worker keeps folders up to this size, those that were used last.
_KEPT_BYTES = 4 << 30


@dataclass(frozen=True)
class CarriedFile:
    """One file of a folder, which goes by its name."""

    folder: str
    path: str
    content: bytes
    mode: int
    modified_ns: int


class FilesToCarry:
    """The folders that jobs refer to, by hash. Their files are read when a worker asks for them."""

    def __init__(self) -> None:
        self._folders: dict[str, tuple[Path, HashedTree]] = {}
        self._names: dict[Path, str] = {}

    def name_of(self, root: Path, hashed: HashedTree) -> str:
        """The hash by which a folder goes."""
        if root not in self._names:
            name = hashed.hash_of(Tree(root, hashed.files))
            self._folders[name] = root, hashed
            self._names[root] = name
        return self._names[root]

    def parts(self, names: Sequence[str]) -> Iterator[list[CarriedFile]]:
        """The files of folders, a few at a time. Raises TouchstoneError if one is no longer what was hashed."""
        part: list[CarriedFile] = []
        size = 0
        for name in names:
            root, hashed = self._folders[name]
            for path in hashed.files:
                part.append(_read(name, root, path, hashed))
                size += len(part[-1].content)
                if size > _PART_BYTES:
                    yield part
                    part, size = [], 0
        yield part


def _read(folder: str, root: Path, path: str, hashed: HashedTree) -> CarriedFile:
    try:
        with os.fdopen(open_beneath(root, path), "rb") as file:
            found = os.fstat(file.fileno())
            content = file.read()
    except OSError as error:
        raise TouchstoneError(f"{root / path}: cannot be read ({error.strerror}); run again") from None
    if not hashed.has(path, hashlib.sha256(content).hexdigest(), executable=bool(found.st_mode & 0o111)):
        raise TouchstoneError(f"{root / path}: changed during validation; run again")
    return CarriedFile(folder, path, content, found.st_mode & 0o777, found.st_mtime_ns)


class CarriedFiles:
    """The folders that a worker has received, below a folder of its own."""

    def __init__(self, folder: Path, kept_bytes: int = _KEPT_BYTES) -> None:
        self._folder, self._kept_bytes = folder, kept_bytes
        # Sizes by name; the folder that was used last is last.
        self._sizes: dict[str, int] = {}

    def missing(self, names: Sequence[str]) -> list[str]:
        """The folders among these that were not received, or have been removed since."""
        for name in [name for name in dict.fromkeys(names) if name in self._sizes]:
            self._sizes[name] = self._sizes.pop(name)
        return [name for name in dict.fromkeys(names) if name not in self._sizes]

    def root(self, name: str) -> Path:
        """Where a received folder is."""
        return self._folder / name

    def receive(self, part: Sequence[CarriedFile]) -> None:
        """Write some files of folders that are not complete yet."""
        for file in part:
            if file.folder in self._sizes:
                continue
            target = self._folder / f"{file.folder}.part" / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(file.mode | 0o400)
            os.utime(target, ns=(file.modified_ns, file.modified_ns))

    def complete(self, names: Sequence[str]) -> None:
        """All files of these folders were written; others are removed if there is too much."""
        for name in [name for name in names if name not in self._sizes]:
            partial = self._folder / f"{name}.part"
            partial.mkdir(parents=True, exist_ok=True)
            partial.rename(self.root(name))
            self._sizes[name] = sum(file.stat().st_size for file in self.root(name).rglob("*"))
        for name in [name for name in self._sizes if name not in names]:
            if sum(self._sizes.values()) <= self._kept_bytes:
                break
            del self._sizes[name]
            shutil.rmtree(self.root(name), ignore_errors=True)
