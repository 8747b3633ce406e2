"""Files and their names: atomic replacement, marks, locks, links, folders without links, text for spreadsheets."""

import hashlib
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from touchstone.errors import TouchstoneError
from touchstone.regular_files import open_regular, read_bytes

if TYPE_CHECKING:
    import polars as pl

# A spreadsheet treats a text cell that starts with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

# Writing hashes or pins takes no longer.
_WRITTEN_WITHIN_SECONDS = 3600
# Parts of tables that belong to no model. A model's name may begin with "@" too: compare whole names.
PROBLEMS_PART = "@problems"
REFUSED_PART = "@refused"
PARTS_OF_NO_MODEL = (PROBLEMS_PART, REFUSED_PART)

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}")
_MAX_MODEL_LENGTH = 200
# File systems take 255 bytes; the rest is for suffixes.
_MAX_KEY_LENGTH = 200
_KEPT = "+"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling; renamed over `path` on success, deleted on error."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield scratch
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def lock_folder(folder: Path, refusal: str, wait_seconds: float) -> Iterator[None]:
    """Lock a folder; an error that starts with `refusal` if it is locked. Ends with its process; reentrant in it."""
    # Most commands read files and lock nothing.
    import filelock

    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / "lock.holder"
    guard = filelock.FileLock(
        folder / "lock", timeout=wait_seconds, is_singleton=True, thread_local=False, fallback_to_soft=False
    )
    try:
        guard.acquire()
    except filelock.Timeout:
        raise TouchstoneError(
            f"{refusal} ({_read_holder(holder) or 'holder unknown'}); wait for it to end or use another output folder"
        ) from None
    try:
        holder.write_text(f"process {os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}")
        yield
    finally:
        guard.release()


def _read_holder(path: Path) -> str | None:
    try:
        return read_bytes(path).decode(errors="replace")
    except OSError:
        return None


def file_mark(path: Path) -> list[object]:
    """Identifies a file as it was written: its size, time of modification and SHA-256."""
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        return [status.st_size, status.st_mtime_ns, hashlib.file_digest(file, "sha256").hexdigest()]


def is_as_written(path: Path, mark: object) -> bool:
    """Whether a file still has its `file_mark`; it is read only if its time is another, as in a copied folder."""
    try:
        status = path.stat()
        if not isinstance(mark, list) or mark[:1] != [status.st_size]:
            return False
        return mark[1:2] == [status.st_mtime_ns] or mark[2:] == file_mark(path)[2:]
    except OSError:
        return False


def link_or_copy(source: Path, target: Path) -> None:
    """Make `target` a hard link to `source`, or a copy if the file system does not allow links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def replace_link(path: Path, target: Path) -> None:
    """Make `path` a symbolic link to `target`."""
    if path.is_symlink() and path.readlink() == target:
        return
    with replacing(path) as scratch:
        scratch.symlink_to(target)


def refuse_links(folder: Path, allowed: Mapping[Path, re.Pattern[str]] | None = None) -> list[Path]:
    """Raise an error if a folder is a link, or holds a link or anything else than folders and regular files.

    An output folder may come from elsewhere, and what is written through a link inside it ends up outside. `allowed`
    has the links that touchstone makes, each with the targets it may have. Returns the temporary files and folders,
    which may be links too: nothing is ever written to one that is there already.
    """
    temporary: list[Path] = []
    if folder.is_symlink():
        raise TouchstoneError(f"{folder}: is a link; links in an output folder are not followed, so remove it")
    folders = [str(folder)] if folder.is_dir() else []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.startswith(".") and entry.name.endswith(".tmp"):
                    temporary.append(Path(entry.path))
                    continue
                # Nearly all of what may be tens of thousands of entries is a file.
                if entry.is_file(follow_symlinks=False):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    continue
                target = (allowed or {}).get(Path(entry.path))
                if target is None or not entry.is_symlink() or not target.fullmatch(str(Path(entry.path).readlink())):
                    what = "a link" if entry.is_symlink() else "not a regular file"
                    raise TouchstoneError(f"{entry.path}: is {what}; touchstone made no such thing here, so remove it")
    return temporary


def remove_leftovers(temporary: Iterable[Path], spared: Collection[Path]) -> None:
    """Remove temporary files and folders of killed runs, but no new one that may yet become one of the spared files."""
    for path in temporary:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
            continue
        becomes_spared = any(path.parent == file.parent and path.name.startswith(f".{file.name}.") for file in spared)
        with suppress(FileNotFoundError):
            if not becomes_spared or time.time() - path.lstat().st_mtime > _WRITTEN_WITHIN_SECONDS:
                path.unlink()


def refuse_links_out(root: Path, *names: str) -> None:
    """Raise an error if something in an output folder or snapshot leads out of it by a link, at any step of the way."""
    inside = os.path.realpath(root)
    for name in names:
        if not Path(os.path.realpath(root / name)).is_relative_to(inside):
            raise TouchstoneError(f"{root / name}: leads out of the folder by a link, which is not followed; remove it")


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files in a table's folder, sorted; an error if it or one of them is a link or no regular file.

    Hidden files are still being written.
    """
    _refuse_linked_table(folder)
    files = sorted(file for file in folder.glob("*.parquet") if not file.name.startswith("."))
    for file in files:
        _require_regular(file)
    return files


def read_kept(file: Path, schema: "pl.Schema") -> "pl.DataFrame | None":
    """The frame that a run kept in a file; None if it is missing, damaged or has the columns of another version."""
    import polars as pl

    with suppress(OSError, pl.exceptions.PolarsError):
        kept = pl.read_parquet(file, glob=False)
        return kept if kept.schema == schema else None
    return None


def sha256_of(path: Path) -> str:
    """The hash of a regular file's content."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def table_file(file: Path) -> Path:
    """One file of a table, which may be missing; an error as in `parquet_files`."""
    _refuse_linked_table(file.parent)
    with suppress(FileNotFoundError):
        _require_regular(file)
    return file


def _refuse_linked_table(folder: Path) -> None:
    if folder.is_symlink():
        raise TouchstoneError(f"{folder}: is a link, which is not followed; put the table itself there")


def _require_regular(file: Path) -> None:
    if not stat.S_ISREG(file.lstat().st_mode):
        raise TouchstoneError(f"{file}: is not a regular file, so it is no table of touchstone; remove it")


def spreadsheet_safe(text: str) -> str:
    """The text, escaped so that a spreadsheet does not run it as a formula.

    >>> spreadsheet_safe("=1+1"), spreadsheet_safe("a=b")
    ("'=1+1", 'a=b')
    """
    return "'" + text if text.startswith(FORMULA_STARTS) else text


# Names that become file names


def check_name(name: str, what: str) -> str:
    """A name that may become a path or an SQL identifier as it is; anything else is refused.

    >>> check_name("before-4.1+tools", "pin")
    'before-4.1+tools'
    """
    if not _NAME.fullmatch(name):
        raise TouchstoneError(
            f"{what} name {name!r} is not allowed: use 1 to 100 letters, digits and . _ + - "
            "and start with a letter, digit or _"
        )
    return name


def check_model_name(name: str) -> str:
    """The name of a model, which may have slashes, colons and spaces; a name that cannot be shown is refused.

    >>> check_model_name("openai/gpt-4o"), check_model_name("Claude Opus 4.5")
    ('openai/gpt-4o', 'Claude Opus 4.5')
    """
    wrong = _wrong_model_name(name)
    if wrong:
        raise TouchstoneError(f"model name {name[:_MAX_MODEL_LENGTH]!r} is not allowed: {wrong}")
    return name


def _wrong_model_name(name: str) -> str | None:
    if not name or name != name.strip() or not name.isprintable():
        return "use printable characters, without spaces around them"
    if "..." in name:
        return "Dagster reserves '...' for ranges of models"
    if name in PARTS_OF_NO_MODEL:
        return "the name is used internally"
    if len(name) > _MAX_MODEL_LENGTH or len(file_key(name)) > _MAX_KEY_LENGTH:
        return "it is too long for a file name"
    return None


def file_key(name: str) -> str:
    """The name that stands for a model, or another part of a table, in file names.

    >>> file_key("gpt-4.1+tools"), file_key("openai/gpt-4o"), file_key(".hidden"), file_key("modèle 7b")
    ('gpt-4.1+tools', 'openai%2Fgpt-4o', '%2Ehidden', 'mod%C3%A8le%207b')
    """
    if name in PARTS_OF_NO_MODEL:
        return name
    # Not even a leading dot or dash: such a file would be hidden, or taken for an option.
    first = f"%{ord(name[0]):02X}" if name[:1] in (".", "-", "+", "~") else quote(name[:1], safe="")
    return first + quote(name[1:], safe=_KEPT).replace("~", "%7E")


def name_of_key(key: str) -> str:
    """The name that a file name stands for; the text itself if it is not such a name.

    >>> name_of_key("openai%2Fgpt-4o"), name_of_key("100%"), name_of_key("100%zz")
    ('openai/gpt-4o', '100%', '100%zz')
    """
    if "%" not in key:
        return key
    name = unquote(key, errors="replace")
    return name if file_key(name) == key else key
