"""One bucket or container of S3, Google Cloud Storage or Azure, through obstore, with errors of one line.

Credentials come from the environment, as obstore takes them, and are never shown: of what a server answers, only its
error code is. Keys are chosen in `input_mirror` and `published_objects`.
"""

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from touchstone.errors import TouchstoneError, UnreachableError
from touchstone.progress import track
from touchstone.storage.files import lock_folder, replacing

T = TypeVar("T")

_AT_ONCE = 8
_THREADS = threading.RLock()
_WAIT_SECONDS = 3600.0
_CHUNK = 8 * 2**20
_RETRIES: dict[str, Any] = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=5), "base": 2},
}
# A large object may take long, but not without any byte arriving.
_TIMEOUTS = {"connect_timeout": "10s", "read_timeout": "60s", "timeout": "6h"}
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_ENDPOINTS = {"s3": "AWS_ENDPOINT_URL", "gs": "the network", "az": "AZURE_STORAGE_ACCOUNT_NAME"}
_ALLOW_HTTP = {"s3": "AWS_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP"}


# What identifies one version of an object to its server: an ETag, in Google Cloud Storage a generation.
Tag = Mapping[str, str]


class ObjectChangedError(Exception):
    """An object is no longer the one that was listed or read before."""


@dataclass(frozen=True)
class Object:
    """An object of a bucket. `version` changes with its content."""

    key: str
    size: int
    version: str
    modified: datetime


class Bucket:
    """The objects of one bucket by their whole keys."""

    def __init__(self, address: str) -> None:
        self.scheme, _, rest = address.partition("://")
        self.name = rest.partition("/")[0]
        self.address = f"{self.scheme}://{self.name}"
        with self._explained(self.address):
            self._store: Any = _open(self.scheme, self.address)

    def list(self, prefix: str, limit: int | None = None) -> list[Object]:
        """The objects below a folder, sorted by key; an error if there are more than `limit`."""
        import obstore

        found: list[Object] = []
        with self._explained(f"{self.address}/{prefix}".rstrip("/")):
            for batch in obstore.list(self._store, prefix or None):
                found += [_object(meta) for meta in batch]
                if limit is not None and len(found) > limit:
                    raise TouchstoneError(
                        f"{self.address}/{prefix}: more than {limit:,} objects; name the folder that has the inputs"
                    )
        return sorted(found, key=lambda each: each.key)

    def find(self, key: str) -> Object | None:
        """The object of that key, if there is one."""
        import obstore

        with suppress(FileNotFoundError), self._explained(f"{self.address}/{key}"):
            return _object(obstore.head(self._store, key))
        return None

    def read(self, key: str) -> tuple[bytes, Tag] | None:
        """The content and tag of a small object; None if there is none."""
        import obstore

        with suppress(FileNotFoundError), self._explained(f"{self.address}/{key}"):
            got = obstore.get(self._store, key)
            return bytes(got.bytes()), _tag(got.meta)
        return None

    def download(self, wanted: Object, target: Path) -> str:
        """Write an object to a file, atomically; returns its SHA-256. An error if it changed since it was listed."""
        import obstore

        hashed, size = hashlib.sha256(), 0
        with self._explained(f"{self.address}/{wanted.key}"), replacing(target) as scratch:
            got = obstore.get(self._store, wanted.key, options=_if_unchanged(wanted.version))
            with scratch.open("wb") as file:
                for chunk in got.stream(min_chunk_size=_CHUNK):
                    hashed.update(chunk)
                    size += file.write(chunk)
            if wanted.version not in ("", _object(got.meta).version) or size != wanted.size:
                raise ObjectChangedError(f"{self.address}/{wanted.key}")
        return hashed.hexdigest()

    def upload(self, key: str, file: Path) -> None:
        """Store a file under a new key."""
        import obstore

        with self._explained(f"{self.address}/{key}"):
            obstore.put(self._store, key, file, chunk_size=_CHUNK, max_concurrency=2)

    def replace(self, key: str, content: bytes, tag: Tag | None) -> Tag:
        """Store an object in place of the one with that tag, or as the first if None; returns the new tag.

        `ObjectChangedError` if it was replaced or removed in the meantime.
        """
        import obstore

        try:
            with self._explained(f"{self.address}/{key}"):
                mode: Any = "create" if tag is None else dict(tag)
                return _tag(obstore.put(self._store, key, content, mode=mode, use_multipart=False))
        except FileNotFoundError:
            raise ObjectChangedError(f"{self.address}/{key}") from None

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects."""
        import obstore

        with self._explained(self.address):
            if keys:
                obstore.delete(self._store, list(keys))

    @contextmanager
    def _explained(self, place: str) -> Iterator[None]:
        """Turn an error of obstore into one line; a missing object is a `FileNotFoundError` or a changed one."""
        try:
            yield
        except (TouchstoneError, ObjectChangedError):
            raise
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "obstore":
                raise
            raise TouchstoneError(f"{place}: object storage needs obstore: pip install 'touchstone[s3]'") from None
        except Exception as error:
            # What follows repeats the settings of the client.
            kind, text = type(error).__name__, str(error).partition("\n\nDebug source")[0]
            if not isinstance(error, OSError) and not type(error).__module__.startswith("obstore"):
                raise
            if kind in ("PreconditionError", "AlreadyExistsError") or "ConditionalRequestConflict" in text:
                raise ObjectChangedError(place) from None
            if isinstance(error, FileNotFoundError) and not _NO_BUCKET.search(text):
                raise
            if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
                raise TouchstoneError(f"{place}: cannot be written to {error.filename} ({error.strerror})") from None
            if reason := _outage(self.scheme, text):
                raise UnreachableError(f"{place}: {reason}") from None
            raise TouchstoneError(f"{place}: {_reason(self, kind, text)}") from None


_NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|bucket does not exist")
_DENIED = re.compile("PermissionDenied|Unauthenticated|403 Forbidden|401 Unauthorized|AccessDenied")
_NO_CREDENTIALS = re.compile(r"(?i)credential|169\.254|MissingAccount|Account must be specified|metadata\.google")
_UNREACHABLE = re.compile("(?i)error sending request|connect|dns error|timed? ?out")
_CODE = re.compile(r"<Code>(\w+)</Code>")
# The answers of a server that is overloaded or broken.
_FAILING = re.compile(r"status code: (?:429|5\d\d)")
_STATUS = re.compile(r"status code: (\d+ [A-Za-z ]+)")


def _outage(scheme: str, text: str) -> str | None:
    """Advice for a server that may answer later; None for any other error."""
    if _FAILING.search(text):
        return f"the server is overloaded or failing ({_code(text)}); try again later"
    if _UNREACHABLE.search(text) and not _STATUS.search(text) and not _NO_CREDENTIALS.search(text):
        return f"the server cannot be reached; check {_ENDPOINTS[scheme]} and try again"
    return None


def _code(text: str) -> str | None:
    """The error code of a server's answer, or else its HTTP status."""
    return next((found[1].strip() for found in (_CODE.search(text), _STATUS.search(text)) if found), None)


def _reason(bucket: Bucket, kind: str, text: str) -> str:
    """The error and its remedy, without the text of the answer, which may have parts of credentials."""
    scheme = bucket.scheme
    code = _code(text) or kind
    if _NO_BUCKET.search(text):
        return f"no such bucket: {bucket.name}; check the address"
    if _DENIED.search(kind + text):
        return f"access denied ({code}); check the credentials in the environment and the bucket's policy"
    if "builder error" in text and "http://" in text:
        return f"the endpoint is plain HTTP; set {_ALLOW_HTTP[scheme]}=true if you trust the network"
    if _NO_CREDENTIALS.search(text):
        return f"no credentials found; set {_CREDENTIALS[scheme]}"
    if kind == "InvalidPathError":
        return "an object's key has an empty part, '.' or '..' and cannot become a file; rename or remove the object"
    return f"the server refused the request ({code}); check the address and the settings in the environment"


def _open(scheme: str, address: str) -> Any:
    from obstore.store import from_url

    options: Any = dict(_TIMEOUTS)
    # Options that are given replace those from the environment.
    if os.environ.get(_ALLOW_HTTP[scheme], "").lower() in ("1", "true", "yes"):
        options["allow_http"] = True
    retries: Any = _RETRIES
    return from_url(address, client_options=options, retry_config=retries)


def _object(meta: Any) -> Object:
    # Without an ETag, the time of the last change has to do.
    return Object(meta["path"], meta["size"], meta["e_tag"] or str(meta["last_modified"]), meta["last_modified"])


def _tag(meta: Any) -> Tag:
    return {name: meta[name] for name in ("e_tag", "version") if meta[name] is not None}


def _if_unchanged(version: str) -> Any:
    return {"if_match": version} if version.startswith('"') else {}


@contextmanager
def one_at_a_time(folder: Path, refusal: str) -> Iterator[None]:
    """Let one thread of one process use the folder of downloaded objects; the others wait."""
    # The folder's lock is the process's: it would let in a second thread.
    with _THREADS, lock_folder(folder, refusal, _WAIT_SECONDS):
        yield


def each_at_once(what: str, work: Callable[[T], object], items: Iterable[T]) -> None:
    """Do the work for every item, several at a time, with a progress bar; the first error ends it."""
    waiting = list(items)
    with track(what, len(waiting)) as advance, ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            for _ in pool.map(work, waiting):
                advance(1)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
