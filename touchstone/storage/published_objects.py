"""Results in object storage: immutable objects, and one manifest that says which of them are the published run.

```
<output>/manifest.json               every published path: its key, size, SHA-256 and time
<output>/versions/<version>/<path>   what a version added or changed; never written twice
```

Publishing uploads what is new under the key of a new version, then replaces the manifest on the condition that it is
still the one that the run started from. So a reader sees all of a run or nothing of it, a killed writer leaves the last
run in place, and of two writers one fails. `sweep` removes objects that no manifest names any more.

The run log goes on after the run is published. `publish_log` switches to a manifest of the same version that names
another object for it, in the same way; a writer that started from the version takes that for no change.
"""

import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from touchstone.errors import TouchstoneError
from touchstone.storage.files import link_or_copy
from touchstone.storage.object_store import Bucket, Object, ObjectChangedError, Tag, each_at_once
from touchstone.vocabulary import VERSION

MANIFEST = "manifest.json"
_VERSIONS = "versions"
_RUN_LOG = "tables/run_log/"
_LOGS = (_RUN_LOG, ".store/draft/stamps/run_log/")
# How often a switch is tried again because a run log was published meanwhile.
_ATTEMPTS = 5
_FORMAT = 1
# Longer than publishing or downloading takes: younger objects may belong to a run that is about to be published.
GRACE = timedelta(days=1)
_PLAIN_KEY = re.compile(r"[\w./=+-]+", re.ASCII)


# Whether a published file, by its path, is wanted.
PathFilter = Callable[[str], bool]


@dataclass(frozen=True)
class StoredFile:
    """A published file: the key of its object below the output's address, and what the object holds."""

    key: str
    size: int
    sha256: str
    modified_ns: int = 0


@dataclass(frozen=True)
class Manifest:
    """The published files. `tag` is the manifest object's own version, which the next writer must still find."""

    version: str
    files: Mapping[str, StoredFile]
    snapshot: str | None = None
    published_at: str = ""
    tag: Tag = field(default_factory=dict, compare=False)

    @property
    def log(self) -> str | None:
        """The published path of the run log."""
        return next((path for path in self.files if path.startswith(_RUN_LOG)), None)


@dataclass(frozen=True)
class LocalFile:
    """A file to be published, with its content's hash."""

    path: Path
    sha256: str


class PublishedObjects:
    """The results at one address. `blobs` is a local folder in which objects are kept by their SHA-256."""

    def __init__(self, address: str, blobs: Path) -> None:
        self.address, self._blobs = address, blobs
        self._bucket = Bucket(address)
        self._prefix = address.removeprefix(self._bucket.address).strip("/")

    def manifest(self) -> Manifest | None:
        """The manifest; None if nothing is published."""
        found = self._bucket.read(self._key(MANIFEST))
        return None if found is None else _parsed(self.address, *found)

    def publish(self, files: Mapping[str, LocalFile], base: Manifest | None, snapshot: str | None) -> Manifest:
        """Upload what `base` does not have, and switch from `base` to these files, by their published paths."""
        contents = {path: file.sha256 for path, file in files.items()}
        if base is not None:
            published = {path: stored.sha256 for path, stored in base.files.items()}
            if _figures(published) == _figures(contents):
                return base
        version = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"
        keys = {stored.sha256: stored.key for stored in base.files.values()} if base is not None else {}
        new: dict[str, LocalFile] = {}
        # An object that several paths have is called by its place in the published run.
        for path, file in sorted(
            files.items(), key=lambda item: (item[0].startswith((".store", "snapshots")), item[0])
        ):
            if file.sha256 not in keys:
                keys[file.sha256] = _object_key(version, path, file.sha256)
                new[keys[file.sha256]] = file
        each_at_once("uploading results", lambda key: self._bucket.upload(self._key(key), new[key].path), list(new))
        stored = {path: _stored(keys[file.sha256], file) for path, file in sorted(files.items())}
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return self._switch(Manifest(version, stored, snapshot, now), base)

    def publish_log(self, version: str, file: LocalFile) -> None:
        """Publish another run log with a version, unless another version has been published meanwhile."""
        key = f"{_VERSIONS}/{version}/run_log/{file.sha256}.parquet"
        for _ in range(_ATTEMPTS):
            found = self.manifest()
            path = found.log if found is not None and found.version == version else None
            if found is None or path is None or found.files[path].sha256 == file.sha256:
                return
            self._bucket.upload(self._key(key), file.path)
            with suppress(ObjectChangedError):
                self._replace(replace(found, files={**found.files, path: _stored(key, file)}), found)
                return

    def _switch(self, new: Manifest, base: Manifest | None) -> Manifest:
        """Replace the manifest if it is still `base`, or a version of it with another run log."""
        for _ in range(_ATTEMPTS):
            try:
                return self._replace(new, base)
            except ObjectChangedError:
                # A switch whose answer was lost is repeated by the client, and then finds its own manifest.
                found = self.manifest()
                if found is None:
                    raise TouchstoneError(
                        f"{self.address}: the published results were removed during the run; run again"
                    ) from None
                if found.version == new.version:
                    return found
                if base is None or found.version != base.version:
                    break
                base = found
        raise TouchstoneError(
            f"{self.address}: another run has published here in the meantime, and its results are kept; run again to "
            "start from them"
        )

    def _replace(self, new: Manifest, base: Manifest | None) -> Manifest:
        tag = self._bucket.replace(self._key(MANIFEST), _content(new), None if base is None else base.tag)
        return replace(new, tag=tag)

    def fetch(self, manifest: Manifest, wanted: PathFilter) -> None:
        """Download the wanted files' objects that are not among the blobs."""
        missing = {
            stored.sha256: stored
            for path, stored in manifest.files.items()
            if wanted(path) and not self._is_kept(stored)
        }
        self._blobs.mkdir(parents=True, exist_ok=True)
        each_at_once("downloading results", self._fetch_one, missing.values())

    def _fetch_one(self, stored: StoredFile) -> None:
        place = self.blob(stored)
        try:
            content = self._bucket.download(
                Object(self._key(stored.key), stored.size, "", datetime.now(UTC)), place.with_suffix(".new")
            )
        except (FileNotFoundError, ObjectChangedError):
            content = ""
        if content != stored.sha256:
            place.with_suffix(".new").unlink(missing_ok=True)
            raise TouchstoneError(
                f"{self.address}/{stored.key}: missing or damaged; try again, and if that does not help, "
                f"remove {self.address}/{MANIFEST} and run again"
            )
        place.with_suffix(".new").replace(place)

    def keep(self, files: Iterable[LocalFile]) -> None:
        """Keep what was uploaded among the blobs, so that reading it here downloads nothing."""
        for file in files:
            if not (self._blobs / file.sha256).exists():
                link_or_copy(file.path, self._blobs / file.sha256)

    def blob(self, stored: StoredFile) -> Path:
        """The key under which the content of a published file is kept."""
        return self._blobs / stored.sha256

    def _is_kept(self, stored: StoredFile) -> bool:
        place = self.blob(stored)
        return place.is_file() and place.stat().st_size == stored.size

    def sweep(self, grace: timedelta = GRACE) -> int:
        """Remove the objects that the manifest does not name and that are older than `grace`; returns their number.

        Nothing that a writer may still publish is removed: what it uploads is young, and what it takes over from its
        base is named by the manifest, or the manifest is another one by now and the writer fails.
        """
        manifest = self.manifest()
        if manifest is None:
            return 0
        named = {self._key(stored.key) for stored in manifest.files.values()}
        before = datetime.now(UTC) - grace
        listed = self._bucket.list(self._key(_VERSIONS))
        unused = [each.key for each in listed if each.key not in named and each.modified < before]
        self._bucket.delete(unused)
        return len(unused)

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name


def _figures(contents: Mapping[str, str]) -> dict[str, str]:
    """All but the run log: it differs after every run, and goes along when anything else is published."""
    return {path: content for path, content in contents.items() if not path.startswith(_LOGS)}


def _stored(key: str, file: LocalFile) -> StoredFile:
    status = file.path.stat()
    return StoredFile(key, status.st_size, file.sha256, status.st_mtime_ns)


def _object_key(version: str, path: str, sha256: str) -> str:
    """A readable key where the path allows it."""
    plain = _PLAIN_KEY.fullmatch(path) is not None and len(path) < 500
    return f"{_VERSIONS}/{version}/{path if plain else sha256 + PurePosixPath(path).suffix}"


def _content(manifest: Manifest) -> bytes:
    content = {
        "format": _FORMAT,
        "version": manifest.version,
        "published_at": manifest.published_at,
        "touchstone": VERSION,
        "snapshot": manifest.snapshot,
        "files": {path: asdict(stored) for path, stored in manifest.files.items()},
    }
    return json.dumps(content, indent=0).encode()


def _parsed(address: str, content: bytes, tag: Tag) -> Manifest:
    """The manifest; an error if it is damaged, or names a path or key that leaves its folder."""
    place = f"{address}/{MANIFEST}"
    try:
        stated = json.loads(content)
        if stated["format"] != _FORMAT:
            raise TouchstoneError(f"{place}: format {stated['format']} needs a newer version of Touchstone; update it")
        files = {str(path): StoredFile(**stored) for path, stored in stated["files"].items()}
        version = str(stated["version"])
        wrong = [path for path, stored in files.items() if not (_is_inside(path) and _is_sound(stored))]
        if wrong or not re.fullmatch(r"[\w-]+", version):
            raise ValueError(f"invalid entry {wrong[:1]}")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:100]
        raise TouchstoneError(f"{place}: not a Touchstone manifest ({reason}); choose another address") from None
    return Manifest(version, files, stated.get("snapshot"), str(stated.get("published_at")), tag)


def _is_inside(path: str) -> bool:
    return not any(part in ("", ".", "..") for part in path.split("/")) and "\0" not in path


def _is_sound(stored: StoredFile) -> bool:
    text, numbers = (stored.key, stored.sha256), (stored.size, stored.modified_ns)
    typed = all(isinstance(each, str) for each in text) and all(type(each) is int for each in numbers)
    is_object = typed and stored.key.startswith(f"{_VERSIONS}/") and _is_inside(stored.key)
    return is_object and re.fullmatch("[0-9a-f]{64}", stored.sha256) is not None and stored.size >= 0
