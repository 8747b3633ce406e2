"""Paths and addresses: what a user may write for a place, and the local folder that stands for an address.

Inputs in object storage are mirrored, and results are worked on and read, in folders below the user's cache folder. The
name of such a folder tells its address, so all other modules work with local paths, and messages show the address:

```
<cache>/touchstone/objects/inputs/<site>/<bucket>/<key>                a mirrored object
<cache>/touchstone/objects/outputs/<site>/<bucket and prefix>/working_copy  an output folder while a run works on it
<cache>/touchstone/objects/outputs/<site>/<bucket and prefix>/views/…  published results as they are read
```

Nothing here talks to a server; `touchstone.storage.object_store` does.
"""

import os
import re
from functools import lru_cache
from pathlib import Path

SCHEMES = ("s3", "gs", "az")
# What decides which server a bucket name belongs to.
_SITE_VARIABLES = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_ENDPOINT_URL",),
    "az": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_ENDPOINT"),
}
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
# `Path` turns the two slashes into one. No folder of such a name is ever meant.
_COLLAPSED = re.compile(r"(s3[an]?|gc?s|az(?:ure)?|adl|abfss?|wasbs?|hdfs|file|s?ftp|https?):/([^/].*)", re.DOTALL)
# A folder is named after its address, and file systems allow 255 bytes.
_MAX_NAME = 200

WORK = "working_copy"
VIEWS = "views"


def address(text: str | Path) -> str | None:
    """The normal form of an address in object storage; None for a path; an error for what is neither.

    >>> address("s3://bucket/fixes/"), address("fixes")
    ('s3://bucket/fixes', None)
    >>> address(Path("s3://bucket/fixes"))
    's3://bucket/fixes'
    >>> address("hdfs://host/fixes")
    Traceback (most recent call last):
    touchstone.errors.TouchstoneError: hdfs://host/fixes: hdfs:// is not supported; use a local path, s3://, gs:// or az://
    """
    found = _ADDRESS.fullmatch(str(text)) or _COLLAPSED.fullmatch(str(text))
    if found is None:
        return None
    from touchstone.errors import TouchstoneError

    scheme, rest = found[1].lower(), found[2].rstrip("/")
    if "@" in rest.partition("/")[0]:
        raise TouchstoneError(f"{scheme}://…: leave credentials out of the address; set them in the environment")
    if scheme not in SCHEMES:
        usable = "a local path, s3://, gs:// or az://"
        raise TouchstoneError(f"{scheme}://{rest}: {scheme}:// is not supported; use {usable}")
    if not rest or any(part in ("", ".", "..") for part in rest.split("/")):
        raise TouchstoneError(f"{scheme}://{rest}: not an address; expected {scheme}://bucket/folder")
    return f"{scheme}://{rest}"


def input_location(text: str | Path) -> Path:
    """The local path of an input: the path itself, or where objects at an address are mirrored."""
    found = address(text)
    if found is None:
        return Path(text)
    scheme, _, rest = found.partition("://")
    return _objects() / "inputs" / _site(scheme) / rest


def output_location(text: str | Path) -> Path:
    """The local path of an output folder: the path itself, or the working copy of the one at an address."""
    found = address(text)
    if found is None:
        return Path(text)
    from urllib.parse import quote

    scheme, _, rest = found.partition("://")
    name = quote(rest, safe="")
    if len(name) > _MAX_NAME:
        from touchstone.errors import TouchstoneError

        raise TouchstoneError(f"{found}: the address of an output folder is too long; use one below {_MAX_NAME} bytes")
    return _objects() / "outputs" / _site(scheme) / name / WORK


def refuse_address(text: str | Path, what: str) -> None:
    """Raise an error if `text` is an address where only a local path will do."""
    if address(text) is not None:
        from touchstone.errors import TouchstoneError

        raise TouchstoneError(f"{what}: {address(text)} is in object storage; give a local path")


def address_of(path: Path) -> str | None:
    """The address that a local path stands for; None for any other path.

    >>> address_of(input_location("s3://bucket/a/b.csv")), address_of(output_location("gs://bucket/out"))
    ('s3://bucket/a/b.csv', 'gs://bucket/out')
    >>> address_of(Path("a"))
    """
    text = str(path)
    if not text.startswith(f"{_objects()}{os.sep}"):
        return None
    told = shown(text)
    return None if told == text else told


def objects_folder() -> Path:
    """The folder of everything that stands for an address, made for this user alone."""
    from touchstone.errors import TouchstoneError

    folder = _objects()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise TouchstoneError(
            f"{folder}: cannot be created ({error.strerror}); set XDG_CACHE_HOME to a writable folder"
        ) from None
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise TouchstoneError(
            f"{folder}: other users can write to this folder; run `chmod 700` on it, or set XDG_CACHE_HOME"
        )
    return folder


def is_mirror(path: Path) -> bool:
    """Whether a path is that of mirrored inputs."""
    return path.is_relative_to(_objects() / "inputs") and address_of(path) is not None


def is_working_copy(path: Path) -> bool:
    """Whether a path is that of an output folder in object storage."""
    return path.name == WORK and path.is_relative_to(_objects() / "outputs") and address_of(path) is not None


def shown(text: str) -> str:
    """The text with the address in place of every path that stands for one.

    >>> shown(f"{input_location('s3://bucket/m_fixes.csv')}: line 3")
    's3://bucket/m_fixes.csv: line 3'
    >>> shown(f"see {output_location('s3://bucket/out') / 'tables'}")
    'see s3://bucket/out/tables'
    """
    root = str(_objects())
    return _local_paths(root).sub(_as_address, text) if root in text else text


@lru_cache(maxsize=2)
def _local_paths(root: str) -> re.Pattern[str]:
    site = rf"(?P<{{}}>{'|'.join(SCHEMES)})(?:@[0-9a-f]+)?"
    inputs = rf"inputs/{site.format('of_input')}/"
    outputs = rf"outputs/{site.format('of_output')}/(?P<name>[^/\s]+)/(?:{WORK}|{VIEWS}/[\w-]+)\b"
    return re.compile(rf"{re.escape(root)}/(?:{inputs}|{outputs})")


def _as_address(found: re.Match[str]) -> str:
    from urllib.parse import unquote

    if found["of_input"]:
        return f"{found['of_input']}://"
    return f"{found['of_output']}://{unquote(found['name'])}"


def _objects() -> Path:
    """The folder of everything that stands for an address, in the user's cache folder."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    except RuntimeError:
        # No home folder, which only object storage needs.
        base = Path(os.devnull)
    return _resolved(base / "touchstone" / "objects")


# Kept, because every error asks.
@lru_cache(maxsize=8)
def _resolved(path: Path) -> Path:
    return path.resolve()


def _site(scheme: str) -> str:
    """The scheme, and a hash of the server if it is not the usual one: the same bucket elsewhere is another bucket."""
    named = [os.environ.get(name, "") for name in _SITE_VARIABLES[scheme]]
    if not any(named):
        return scheme
    import hashlib

    return f"{scheme}@{hashlib.sha256(' '.join(named).encode()).hexdigest()[:8]}"
