"""Inputs in object storage, mirrored into local files: what changed since the last time is downloaded, nothing else.

A mirror is the same tree of files as the objects, so that everything else reads it like a local folder. An index beside
it says which version of each object a file is. One process at a time brings a bucket's mirror up to date.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from touchstone.errors import TouchstoneError
from touchstone.locations import address_of, is_mirror, objects_folder
from touchstone.progress import report_step
from touchstone.regular_files import read_json_object
from touchstone.storage.files import replacing
from touchstone.storage.object_store import Bucket, Object, ObjectChangedError, each_at_once, one_at_a_time

_MAX_OBJECTS = 100_000


def fetch(paths: Iterable[Path], optional: Iterable[Path] = (), left_out: Path | None = None) -> None:
    """Bring the mirrored ones of these files and folders up to date; an error if nothing is stored at one of `paths`.

    `left_out` is an output folder, which is not mirrored if it is inside one of them.
    """
    required, others = ([path for path in each if is_mirror(path)] for each in (paths, optional))
    if not required and not others:
        return
    skipped = address_of(left_out) if left_out is not None else None
    by_bucket: dict[Path, list[Path]] = {}
    for path in [*required, *others]:
        by_bucket.setdefault(_bucket_folder(path), []).append(path)
    objects_folder()
    for folder, wanted in by_bucket.items():
        index = folder.parent / ".index" / folder.name
        with one_at_a_time(index, f"{folder}: another process is downloading from this bucket"):
            _Mirror(folder, index / "index.json", skipped).update(wanted, set(required))


def _bucket_folder(path: Path) -> Path:
    """The folder of a bucket's mirror: `inputs/<site>/<bucket>`."""
    depth = len(objects_folder().parts) + 3
    return Path(*path.parts[:depth])


class _Mirror:
    """The mirror of one bucket, which is locked. `skipped` is the address of a folder that is not mirrored."""

    def __init__(self, folder: Path, index: Path, skipped: str | None) -> None:
        self._folder, self._index = folder, index
        self._bucket = Bucket(str(address_of(folder)))
        self._skipped = f"{skipped}/" if skipped else None

    def update(self, paths: Sequence[Path], required: set[Path]) -> None:
        """Make the files below the paths those of the bucket."""
        for attempt in ("first", "second"):
            listed = self._listed(paths, required)
            self._remove_others(paths, {self._folder / key for key in listed})
            try:
                self._download(listed)
                return
            except ObjectChangedError as changed:
                if attempt == "second":
                    raise TouchstoneError(
                        f"{changed}: changed twice while it was downloaded; run again once it is complete"
                    ) from None

    def _listed(self, paths: Sequence[Path], required: set[Path]) -> dict[str, Object]:
        """The objects at and below the paths by key; an error if there is none at a required one."""
        listed: dict[str, Object] = {}
        for path in paths:
            report_step(f"listing {address_of(path)}")
            key = "" if path == self._folder else path.relative_to(self._folder).as_posix()
            file = self._bucket.find(key) if key else None
            below = self._bucket.list(key, _MAX_OBJECTS)
            found = [each for each in (file, *below) if each is not None and not self._is_left_out(each)]
            if not found and path in required:
                raise TouchstoneError(f"{path}: no such object or folder in the bucket; check the address")
            listed |= {each.key: each for each in found}
        folders = {parent.as_posix() for key in listed for parent in PurePosixPath(key).parents}
        for key in sorted(folders.intersection(listed)):
            raise TouchstoneError(f"{self._folder / key}: an object and a folder of objects have this name; rename one")
        return listed

    def _is_left_out(self, found: Object) -> bool:
        """Whether an object is none of the inputs: results of a run, or what stands for an empty folder."""
        in_output = self._skipped is not None and f"{self._bucket.address}/{found.key}".startswith(self._skipped)
        return in_output or found.key.endswith("/")

    def _download(self, listed: Mapping[str, Object]) -> None:
        index = read_json_object(self._index)
        stale = [each for each in listed.values() if index.get(each.key) != [each.version, *_mark(self._path(each))]]
        if not stale:
            return

        def download(each: Object) -> None:
            path = self._path(each)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._bucket.download(each, path)
            except FileNotFoundError:
                raise ObjectChangedError(f"{self._bucket.address}/{each.key}") from None
            index[each.key] = [each.version, *_mark(path)]

        try:
            each_at_once("downloading inputs", download, stale)
        finally:
            self._write_index(index)

    def _remove_others(self, paths: Sequence[Path], kept: set[Path]) -> None:
        """Remove every file below the paths that is not one of the bucket, and the folders that this empties."""
        for path in paths:
            if path.is_file() and path not in kept:
                path.unlink()
            for folder, _, names in os.walk(path, topdown=False):
                for name in names:
                    if Path(folder, name) not in kept:
                        Path(folder, name).unlink()
                with suppress(OSError):
                    Path(folder).rmdir()

    def _path(self, found: Object) -> Path:
        return self._folder / found.key

    def _write_index(self, index: Mapping[str, list[object]]) -> None:
        existing = {key: mark for key, mark in index.items() if (self._folder / key).exists()}
        with replacing(self._index) as scratch:
            scratch.write_text(json.dumps(existing))


def _mark(path: Path) -> list[int]:
    """The size, time and inode by which a file is recognized as the one that was downloaded."""
    try:
        found = path.stat()
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns, found.st_ino]
