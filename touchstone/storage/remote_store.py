"""Output folders in object storage: a local working copy for runs, and local views for readers of the results.

```
<address>/working_copy/        a working copy, laid out like a local output folder; the validation cache stays here
<address>/views/<version>/     published files as they are read, each version in a folder of its own
<address>/blobs/<sha256>       the objects behind both, linked from there
```

A run locks its working copy, brings it to what is published, works in it as in any output folder, and publishes before
it switches the working copy. So a working copy that is behind or ahead of the published run is made again.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path

from touchstone.errors import VIEWS, TouchstoneError
from touchstone.locations import address_of, objects_folder
from touchstone.progress import report_step
from touchstone.regular_files import read_json_object
from touchstone.storage.files import link_or_copy, replacing, sha256_of
from touchstone.storage.object_store import one_at_a_time
from touchstone.storage.published_objects import MANIFEST, LocalFile, Manifest, PathFilter, PublishedObjects
from touchstone.storage.snapshots import FOLDER, list_snapshots
from touchstone.storage.store import DRAFT, REPORT, Store

# Of the draft: tables are published anyway, and the rest is about this machine only.
_NOT_PUBLISHED = ("tables", "scratch", "hashes.json")
_OLD_VIEW_SECONDS = 7 * 86_400


def is_published(root: Path) -> bool:
    """Whether there are results at the address of a working copy."""
    return _objects(root).manifest() is not None


def nothing_here(root: Path) -> TouchstoneError:
    """The error for readers of an address where nothing is published."""
    return TouchstoneError(f"{root}: no results here (no {MANIFEST}); run `touchstone run` first or check the address")


def _objects(root: Path) -> PublishedObjects:
    objects_folder()
    return PublishedObjects(str(address_of(root)), root.parent / "blobs")


def _using_blobs(root: Path) -> AbstractContextManager[None]:
    return one_at_a_time(root.parent / "reading", f"{root}: another process is downloading from here")


class View:
    """Published results of one version, as local files that are downloaded when they are asked for."""

    def __init__(self, root: Path) -> None:
        self._root, self._objects = root, _objects(root)
        manifest = self._objects.manifest()
        if manifest is None:
            raise nothing_here(root)
        self._manifest = manifest
        self.folder = root.parent / VIEWS / manifest.version
        for path in manifest.files:
            if path.startswith("tables/"):
                (self.folder / path).parent.mkdir(parents=True, exist_ok=True)

    def fetch(self, wanted: PathFilter) -> Path:
        """Have the wanted files in the folder."""
        with _using_blobs(self._root):
            self._objects.fetch(self._manifest, wanted)
            for path, stored in self._manifest.files.items():
                # The run log of a version goes on.
                if wanted(path) and (path == self._manifest.log or not (self.folder / path).exists()):
                    _replace_with_link(self._objects.blob(stored), self.folder / path)
            os.utime(self.folder)
            _remove_old(self._root, self._manifest)
        return self.folder


class RemoteStore(Store):
    """A working copy, which publishes to object storage."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._base: Manifest | None = None
        self._locks = 0
        # Says which published version the working copy is made from.
        self._base_record = self._home / "base.json"

    @cached_property
    def objects(self) -> PublishedObjects:
        """The published objects."""
        return _objects(self.root)

    @contextmanager
    def lock(self, wait_seconds: float = 0) -> Iterator[None]:
        """Lock the working copy, which holds off other runs on this machine, and bring it to what is published."""
        objects_folder()
        with super().lock(wait_seconds):
            if self._locks == 0:
                self._refresh()
            self._locks += 1
            try:
                yield
            finally:
                self._locks -= 1

    def is_latest(self) -> bool:
        """Whether nobody else has published since this working copy did."""
        manifest = self.objects.manifest()
        return manifest is not None and manifest.version == self._base_version()

    def publish(self, fill: Callable[[Path], None]) -> Path:
        """Publish to object storage, and only then switch the working copy."""

        def fill_and_upload(generation: Path) -> None:
            fill(generation)
            self._upload(generation)

        generation = super().publish(fill_and_upload)
        self._record_base()
        return generation

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Publish what the block changes in the snapshots; if that fails, the working copy is made again next time."""
        with self.lock():
            if not self.has_published:
                raise nothing_here(self.root)
            self._base_record.unlink()
            yield
            self._upload(self.current_link.resolve())
            self._record_base()

    def publish_log(self, log: Path) -> None:
        """Publish the log with what this working copy is made from. A failure here does not fail the run."""
        if self._base is not None:
            with suppress(TouchstoneError, OSError):
                self.objects.publish_log(self._base.version, LocalFile(log, sha256_of(log)))

    def _upload(self, generation: Path) -> None:
        report_step(f"publishing to {self.objects.address}")
        files = self._hashed(self._files(generation))
        snapshots = list_snapshots(self.root)
        self._base = self.objects.publish(files, self._base, snapshots[-1].id if snapshots else None)
        with _using_blobs(self.root):
            self.objects.keep(files.values())

    def _files(self, generation: Path) -> dict[str, Path]:
        """Everything that is published, by its published path: the run, its snapshots, and what the next run reuses."""
        draft = [
            file
            for entry in sorted(self.draft.iterdir())
            if entry.name not in _NOT_PUBLISHED
            for file in _all_files(entry)
        ]
        snapshots = [file for each in list_snapshots(self.root) for file in _all_files(each.folder)]
        singles = [self.root / REPORT, self.root / FOLDER / "pins.json"]
        return {
            **{file.relative_to(generation).as_posix(): file for file in _all_files(generation)},
            **{file.relative_to(self.root).as_posix(): file for file in (*draft, *snapshots)},
            **{file.relative_to(self.root).as_posix(): file for file in singles if file.is_file()},
        }

    def _hashed(self, files: Mapping[str, Path]) -> dict[str, LocalFile]:
        """The files with their hashes; those of files that are the same as last time are not computed again."""
        place = self._home / "published_hashes.json"
        known = read_json_object(place)
        hashes: dict[str, str] = {}
        hashed = {}
        for path, file in files.items():
            status = file.stat()
            # Parts are replaced and never written to, so this identifies their content; links change other times.
            mark = f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
            hashes[mark] = hashes.get(mark) or known.get(mark) or sha256_of(file)
            hashed[path] = LocalFile(file, hashes[mark])
        with replacing(place) as scratch:
            scratch.write_text(json.dumps(hashes))
        return hashed

    def _base_version(self) -> str | None:
        found = read_json_object(self._base_record).get("version")
        return None if found is None else str(found)

    def _record_base(self) -> None:
        with replacing(self._base_record) as scratch:
            scratch.write_text(json.dumps({"version": self._base.version if self._base else None}))

    def _refresh(self) -> None:
        """Make the working copy from what is published, unless it is already, or both are empty."""
        report_step(f"looking at {self.objects.address}")
        self._base = self.objects.manifest()
        self._fetch_log()
        mine = self._base_version()
        if (self._base.version if self._base else None) == mine and self._has_snapshots():
            return
        self._clear()
        if self._base is not None:
            self._restore(self._base)

    def _fetch_log(self) -> None:
        """Have the published run log, with the runs of other machines, beside that of this machine."""
        manifest = self._base
        if manifest is None or manifest.log is None:
            return
        stored = manifest.files[manifest.log]
        with suppress(TouchstoneError), _using_blobs(self.root):
            self.objects.fetch(manifest, lambda path: path == manifest.log)
            _replace_with_link(self.objects.blob(stored), self.published_log)

    def _has_snapshots(self) -> bool:
        """Whether the published snapshots are all here: programs that clean cache folders remove what seems old.

        Everything else that is missing is made again; a snapshot cannot be.
        """
        published = self._base.files if self._base is not None else {}
        return all(
            _size(self.root / path) == stored.size
            for path, stored in published.items()
            if path.startswith(f"{FOLDER}/")
        )

    def _clear(self) -> None:
        """Remove everything but the validation cache, environments, hashes of inputs and the configuration."""
        self._base_record.unlink(missing_ok=True)
        self.run_record.unlink(missing_ok=True)
        for place in (self._home / "published", self.unpublished, self.root / FOLDER):
            shutil.rmtree(place, ignore_errors=True)
        for entry in self.draft.iterdir() if self.draft.is_dir() else ():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry != self.content_hashes:
                entry.unlink()
        self.current_link.unlink(missing_ok=True)
        (self.root / REPORT).unlink(missing_ok=True)

    def _restore(self, manifest: Manifest) -> None:
        generation = self._home / "published" / "1"
        with _using_blobs(self.root):
            self.objects.fetch(manifest, lambda path: True)
            for path, stored in manifest.files.items():
                outside = path.startswith((DRAFT, f"{FOLDER}/")) or path == REPORT
                targets = [self.root / path] if outside else [generation / path]
                if path.startswith("tables/"):
                    targets.append(self.draft / path)
                for target in targets:
                    link_or_copy(self.objects.blob(stored), target)
                # The warehouse is only reused if it is as old as its stamp says.
                os.utime(targets[0], ns=(stored.modified_ns, stored.modified_ns))
            _remove_old(self.root, manifest)
        self._switch_to(generation)
        self._record_base()


def _all_files(place: Path) -> list[Path]:
    """The files in a folder, or the file itself; not those that a killed process left unfinished."""
    found = (
        [place] if place.is_file() else [Path(folder, name) for folder, _, names in os.walk(place) for name in names]
    )
    return sorted(file for file in found if not file.name.endswith(".tmp"))


def _replace_with_link(source: Path, target: Path) -> None:
    """Make `target` a link to `source`, in place of what it was before."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as scratch:
        link_or_copy(source, scratch)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _remove_old(root: Path, manifest: Manifest) -> None:
    """Remove views that nobody used for a week, and blobs that nothing uses any more."""
    views = root.parent / VIEWS
    before = time.time() - _OLD_VIEW_SECONDS
    for view in views.iterdir() if views.is_dir() else ():
        if view.name != manifest.version and view.stat().st_mtime < before:
            shutil.rmtree(view, ignore_errors=True)
    published = {stored.sha256 for stored in manifest.files.values()}
    for blob in (root.parent / "blobs").iterdir():
        if blob.name not in published and blob.stat().st_nlink == 1:
            blob.unlink()
