"""Finding and opening files: paths and addresses that a user may write, own folders, the project's files.

Inputs in object storage are mirrored, and results are worked on and read, in folders below the user's cache folder. The
name of such a folder tells its address, so all other modules work with local paths, and messages show the address:

```
<cache>/touchstone/objects/inputs/<site>/<bucket>/<key>                a mirrored object
<cache>/touchstone/objects/outputs/<site>/<bucket and prefix>/working_copy  an output folder while a run works on it
<cache>/touchstone/objects/outputs/<site>/<bucket and prefix>/views/…  published results as they are read
```

Nothing here talks to a server; `touchstone.storage.object_store` does. A wheel carries the project's files that are not
Python in `touchstone/project`; in a checkout they are at the top of the repository and in `data/sample`.
"""

import os
import re
import stat
from pathlib import Path

from touchstone.errors import SCHEMES, UNPACKED, WORKING_COPY, TouchstoneError, objects_root, shown

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

SAMPLE_NAME = "evaluation_config.json"

_PACKAGED = Path(__file__).with_name("project")
_CHECKOUT = Path(__file__).parents[1]
# `Path` turns the two slashes into one.
_PLACE = r"(?:/(?:tree|blob|resolve)/(?P<revision>[^/?#]+)(?:/(?P<below>[^?#]*))?)?/?(?:[?#].*)?"
_HUGGING_FACE = re.compile(
    r"https?:/+(?:huggingface|hf)\.co/(?:(?P<kind>dataset|space)s/)?(?P<name>[\w.-]+(?:/[\w.-]+)?)" + _PLACE
)
_GITHUB = re.compile(r"https?:/+github\.com/(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?" + _PLACE)
_CACHED = re.compile(r"(?:dataset|model|space)s--.+")


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
    """The local path of an input: the path itself, what is on disk of a web address, or the mirror of objects."""
    on_disk = downloaded(text)
    found = None if on_disk else address(text)
    if found is None:
        return on_disk or Path(text)
    scheme, _, rest = found.partition("://")
    return objects_root() / "inputs" / _site(scheme) / rest


def output_location(text: str | Path) -> Path:
    """The local path of an output folder: the path itself, or the working copy of the one at an address."""
    found = address(text)
    if found is None:
        return Path(text)
    from urllib.parse import quote

    scheme, _, rest = found.partition("://")
    name = quote(rest, safe="")
    if len(name) > _MAX_NAME:
        raise TouchstoneError(f"{found}: the address of an output folder is too long; use one below {_MAX_NAME} bytes")
    return objects_root() / "outputs" / _site(scheme) / name / WORKING_COPY


def refuse_address(text: str | Path, what: str) -> None:
    """Raise an error if `text` is an address where only a local path will do."""
    if address(text) is not None:
        raise TouchstoneError(f"{what}: {address(text)} is in object storage; give a local path")


def address_of(path: Path) -> str | None:
    """The address that a local path stands for; None for any other path.

    >>> address_of(input_location("s3://bucket/a/b.csv")), address_of(output_location("gs://bucket/out"))
    ('s3://bucket/a/b.csv', 'gs://bucket/out')
    >>> address_of(Path("a"))
    """
    text = str(path)
    if not text.startswith(f"{objects_root()}{os.sep}"):
        return None
    found = shown(text)
    return None if found == text else found


def archive_of(path: Path) -> Path | None:
    """The archive that a file was unpacked from; None for any other file."""
    return next((UNPACKED[each] for each in (path, *path.parents) if each in UNPACKED), None) if UNPACKED else None


def objects_folder() -> Path:
    """The folder of everything that stands for an address, made for this user alone."""
    folder = objects_root()
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
    return path.is_relative_to(objects_root() / "inputs") and address_of(path) is not None


def is_working_copy(path: Path) -> bool:
    """Whether a path is that of an output folder in object storage."""
    return (
        path.name == WORKING_COPY and path.is_relative_to(objects_root() / "outputs") and address_of(path) is not None
    )


def _site(scheme: str) -> str:
    """The scheme, and a hash of the server if it is not the usual one: the same bucket elsewhere is another bucket."""
    named = [os.environ.get(name, "") for name in _SITE_VARIABLES[scheme]]
    if not any(named):
        return scheme
    import hashlib

    return f"{scheme}@{hashlib.sha256(' '.join(named).encode()).hexdigest()[:8]}"


# The user's own folders, for what must not be among results, which may come from somebody else. Caches can be made
# again; state cannot.


def cache_folder() -> Path | None:
    """`$XDG_CACHE_HOME/touchstone`, made if need be; None if it cannot be made or others can write to it."""
    return _own_folder("XDG_CACHE_HOME", "~/.cache")


def state_folder() -> Path | None:
    """`$XDG_STATE_HOME/touchstone`, made if need be; None if it cannot be made or others can write to it."""
    return _own_folder("XDG_STATE_HOME", "~/.local/state")


def _own_folder(variable: str, default: str) -> Path | None:
    try:
        base = Path(os.environ.get(variable) or Path(default).expanduser())
        if not base.is_absolute():
            return None
        folder = base / "touchstone"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except (OSError, RuntimeError):  # the latter without a home
        return None
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return folder if own else None


# The project's files that are not Python


def is_installed() -> bool:
    """Whether this is an installed package rather than a checkout (or an editable install of one)."""
    return (_PACKAGED / "dagster.yaml").is_file()


def dagster_settings() -> Path:
    """The `dagster.yaml` of the default Dagster home."""
    return (_PACKAGED if is_installed() else _CHECKOUT) / "dagster.yaml"


def sample_folder() -> Path:
    """The sample of recorded outcomes: `problems.csv`, `<model>_fixes.csv` and a configuration."""
    return _PACKAGED / "sample" if is_installed() else _CHECKOUT / "data" / "sample"


def sample_config() -> Path:
    """The configuration of the sample."""
    return sample_folder() / SAMPLE_NAME


def sample_output() -> Path | None:
    """The output folder of the sample: the sample's own setting in a checkout, never inside an installation."""
    return Path.cwd() / "touchstone_sample" if is_installed() else None


def commented_config() -> Path:
    """The configuration that `touchstone init` writes, with comments."""
    return _PACKAGED / "evaluation_config.toml"


def queries_page() -> Path:
    """The page of example queries, `docs/queries.md`."""
    return _PACKAGED / "queries.md" if is_installed() else _CHECKOUT / "docs" / "queries.md"


# Web addresses that people paste: what is on this disk of them (Hugging Face's cache, clones from GitHub)


def downloaded(text: str | Path) -> Path | None:
    """The local path of a data set or repository on the web; None for any other text.

    >>> downloaded("logs/run.eval")
    """
    for pattern, find in ((_HUGGING_FACE, _in_hub_cache), (_GITHUB, _in_clone)):
        if address := pattern.fullmatch(str(text)):
            from urllib.parse import unquote

            folder, below = find(address), unquote(address["below"] or "")
            if folder is None or not (folder / below).exists():
                raise TouchstoneError(f"{address[0]}: not on this disk; run `{_command(address)}` first")
            return folder / below
    return None


def in_hub_cache(path: Path) -> bool:
    """Whether a path is in a folder of Hugging Face's cache, which is not for results."""
    return any(_CACHED.fullmatch(part) for part in path.parts)


def snapshot_of(folder: Path, revision: str = "main") -> Path | None:
    """The files of a revision in a folder of Hugging Face's cache; without a `main`, the newest ones are that."""
    snapshots, ref = folder / "snapshots", folder / "refs" / revision
    if not _CACHED.fullmatch(folder.name) or not snapshots.is_dir():
        return None
    wanted = snapshots / (ref.read_text().strip() if ref.is_file() else revision)
    newest = sorted(snapshots.iterdir(), key=lambda each: each.stat().st_mtime) if revision == "main" else []
    return wanted if wanted.is_dir() else next(reversed(newest), None)


def _in_hub_cache(address: re.Match[str]) -> Path | None:
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    name = f"{address['kind'] or 'model'}s/{address['name']}".replace("/", "--")
    return snapshot_of(cache / name, address["revision"] or "main")


def _in_clone(address: re.Match[str]) -> Path | None:
    """A clone or an unpacked download in the current folder, of the branch that the address names."""
    name, revision = address["name"].rpartition("/")[2], address["revision"]
    head, settings = Path(name, ".git", "HEAD"), Path(name, ".git", "config")
    if settings.is_file() and address["name"] in settings.read_text() and (revision or "") in head.read_text():
        return Path(name)
    branches = [revision] if revision else ["main", "master"]
    return next((place for branch in branches if (place := Path(f"{name}-{branch}")).is_dir()), None)


def _command(address: re.Match[str]) -> str:
    revision = address["revision"]
    if address.re is _GITHUB:
        return f"git clone --depth 1 {f'--branch {revision} ' if revision else ''}https://github.com/{address['name']}"
    of_revision = f" --revision {revision}" if revision not in (None, "main") else ""
    return f"hf download {address['name']} --repo-type {address.groupdict()['kind'] or 'model'}{of_revision}"
