"""Archives: the files in a `.zip`, `.tar`, `.tar.gz` or `.tar.zst`, unpacked for as long as the process runs.

They are read like those of a folder and are called `archive.zip/path/in/it`. Binary files that are compressed, such as
`log.eval.gz`, are archives of one file. Only regular files are unpacked, below a new folder of this user: no links, no
names that lead elsewhere, no more than the limits allow. One damaged file refuses the archive, so no part is missing.
"""

import re
import stat
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from touchstone.errors import UNPACKED, InputFileError
from touchstone.ingest.adapters.zip_archive import ZipArchive
from touchstone.ingest.compressed import STILL_WRITTEN, open_input, uncompressed_name
from touchstone.ingest.csv_rows import readable
from touchstone.ingest.limits import limits, require_file_size, too_much_unpacked
from touchstone.ingest.unchanged import Mark, mark_of
from touchstone.progress import report_step
from touchstone.regular_files import open_regular

MAX_FILES = 100_000
_NAME = re.compile(
    r"\.(?:zip|(?P<tar>tar|tgz|tzst|tar\.gz|tar\.zst)|(?:eval|parquet|db|sqlite3?)\.(?:gz|zst))$", re.IGNORECASE
)
_CHUNK = 1 << 20
_HEADER_BYTES = 1 << 20
_Content = Iterator[bytes]


@dataclass(frozen=True)
class Unpacked:
    """The folder with the files of an archive, and the names of the links in it, which are left out."""

    folder: Path
    links: tuple[str, ...]


# By archive: the mark of the file that was unpacked, and the folder, which is removed at the end of the process.
_unpacked: dict[Path, tuple[Mark | None, Unpacked, "tempfile.TemporaryDirectory[str]"]] = {}


def is_archive(path: Path) -> bool:
    """Whether a file is an archive by its name.

    >>> [is_archive(Path(name)) for name in ("logs.tar.gz", "log.eval.gz", "log.eval", "m_fixes.csv.gz")]
    [True, True, False, False]
    """
    return _NAME.search(path.name) is not None


def unpack(archive: Path) -> Unpacked:
    """Unpack an archive, once for all that ask while it does not change; `InputFileError` says why it is refused."""
    mark = mark_of(archive)
    known = _unpacked.get(archive)
    if known is None or known[0] != mark:
        report_step(f"unpacking {archive.name}")
        kept = tempfile.TemporaryDirectory(prefix="touchstone-archive-", ignore_cleanup_errors=True)
        # Some readers take the name of the folder for that of the model.
        folder = Path(kept.name, _NAME.sub("", archive.name) or "archive")
        folder.mkdir()
        known = _unpacked[archive] = mark, Unpacked(folder, tuple(_write_members(archive, folder))), kept
        UNPACKED[folder] = archive
    return known[1]


def _write_members(archive: Path, folder: Path) -> Iterator[str]:
    """Write every file of the archive below the folder; yields the names of links."""
    seen: set[str] = set()
    unpacked = 0
    try:
        most = limits().unpacked_bytes(archive.stat().st_size)
        for name, content in _members(archive):
            place = PurePosixPath(name)
            if place.is_absolute() or ".." in place.parts or "\0" in name or not place.parts:
                raise InputFileError(f"{archive}: {name[:200]!r} leads out of the archive; not read")
            if str(place) in seen:
                raise InputFileError(f"{archive}: holds {name[:200]!r} twice; write the archive again")
            seen.add(str(place))
            if len(seen) > MAX_FILES:
                raise InputFileError(f"{archive}: more than {MAX_FILES:,} files; unpack it, and name a folder of it")
            if content is None:
                yield name
                continue
            target = folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                for chunk in content:
                    unpacked += file.write(chunk)
                    require_file_size(archive, unpacked)
                    if unpacked > most:
                        raise too_much_unpacked(archive)
    except OSError as error:
        raise InputFileError(f"{archive}: cannot be unpacked ({error.strerror or error})") from None
    except (tarfile.TarError, ValueError) as error:
        raise InputFileError(f"{archive}: not a whole TAR file ({error}); {STILL_WRITTEN}") from None


def _members(archive: Path) -> Iterable[tuple[str, _Content | None]]:
    """The name and content of every file in the archive; None as the content of a link."""
    found = _NAME.search(archive.name)
    if found is not None and found["tar"]:
        return _tar_members(archive)
    return _zip_members(archive) if archive.suffix.lower() == ".zip" else _single_member(archive)


def _zip_members(archive: Path) -> Iterator[tuple[str, _Content | None]]:
    with readable(archive), open_regular(archive) as file:
        opened = ZipArchive(archive, file)
        if opened.repeated:
            raise InputFileError(f"{archive}: holds {opened.repeated:,} names twice; write the archive again")
        for name, member in opened.members.items():
            if not name.endswith("/"):
                yield name, None if stat.S_ISLNK(member.mode) else opened.chunks(name)


def _single_member(archive: Path) -> Iterator[tuple[str, _Content | None]]:
    with readable(archive), open_input(archive) as file:
        yield uncompressed_name(archive), iter(partial(file.read, _CHUNK), b"")


def _tar_members(archive: Path) -> Iterator[tuple[str, _Content | None]]:
    with (
        readable(archive),
        open_input(archive) as file,
        tarfile.open(fileobj=file, mode="r|", tarinfo=_TarMember) as opened,
    ):
        for member in opened:
            if not member.isdir():
                content = opened.extractfile(member) if member.isreg() else None
                yield member.name, None if content is None else iter(partial(content.read, _CHUNK), b"")
        while rest := opened.fileobj.read(_CHUNK):
            if rest.strip(b"\0"):
                raise ValueError("there is more after its end")


class _TarMember(tarfile.TarInfo):
    """A header of a TAR file, which must be intact: `tarfile` takes a damaged one for the end of the file."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_TarMember":
        try:
            found = super().frombuf(buf, encoding, errors)
        except tarfile.TarError as error:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                raise
            raise ValueError(str(error)) from None
        # Long names and attributes are held in memory.
        if found.size < 0 or (found.type not in tarfile.REGULAR_TYPES and found.size > _HEADER_BYTES):
            raise ValueError("a header has no plausible size")
        return found
