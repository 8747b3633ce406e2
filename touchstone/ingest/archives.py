"""Archives: the files in a `.zip`, `.tar`, `.tar.gz` or `.tar.zst`, unpacked for as long as the process runs.

They are read like those of a folder and are called `archive.zip/path/in/it`. Binary files that are compressed, such as
`log.eval.gz`, are archives of one file. Only regular files are unpacked, below a new folder of this user: no links, no
names that lead elsewhere, no more than the limits allow. One damaged file refuses the archive, so no part is missing.

Members of a ZIP file are streams of bytes, including Zstandard, which Python's `zipfile` reads only from 3.14 on. Sizes
are checked before anything is allocated: an archive cannot make its reader keep or decompress more than the limits.
"""

import io
import os
import re
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from touchstone.errors import UNPACKED, InputFileError
from touchstone.ingest.compressed import STILL_WRITTEN, open_input, uncompressed_name
from touchstone.ingest.csv_rows import readable
from touchstone.ingest.limits import ZIP_DIRECTORY_BYTES, ZIP_MEMBER_BYTES, limits, require_file_size, too_much_unpacked
from touchstone.ingest.sources import Mark, mark_of
from touchstone.progress import report_step
from touchstone.regular_files import open_regular

MAX_FILES = 100_000
_NAME = re.compile(
    r"\.(?:zip|(?P<tar>tar|tgz|tzst|tar\.gz|tar\.zst)|(?:eval|parquet|db|sqlite3?)\.(?:gz|zst))$", re.IGNORECASE
)
_CHUNK = 1 << 20
_HEADER_BYTES = 1 << 20
_Content = Iterator[bytes]

ZSTANDARD = 93
_ENCRYPTED = 1
# The header before the data of a member: its signature, and the lengths of two fields that follow it.
_LOCAL = struct.Struct("<4s22x2H")


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
                yield name, None if stat.S_ISLNK(member.external_attr >> 16) else opened.chunks(name)


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


class DamagedMemberError(InputFileError):
    """Raised for a member whose bytes cannot be read; other members may be intact."""


class ZipArchive:
    """The directory of an archive, and its members as chunks of bytes; of several with one name, the last counts."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._zip = self._open()
        entries = self._zip.infolist()
        self._refuse_overlaps(entries)
        self.members = {entry.filename: entry for entry in entries}
        self.repeated = len(entries) - len(self.members)
        self._budget = limits().unpacked_bytes(self._size)

    def _open(self) -> zipfile.ZipFile:
        limited = cast(IO[bytes], _LimitedReads(self.path, self._file))
        try:
            try:
                # Many programs write UTF-8 without saying so.
                return zipfile.ZipFile(limited, metadata_encoding="utf-8")
            except UnicodeDecodeError:
                return zipfile.ZipFile(limited)
        except (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError):
            raise self._damaged() from None

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of a member, at most 1 MiB at a time; raises `DamagedMemberError` if it is not intact."""
        member = self.members[name]
        if member.file_size > ZIP_MEMBER_BYTES:
            raise InputFileError(
                f"{self.path}: {name!r} has {member.file_size:,} bytes; at most {ZIP_MEMBER_BYTES:,} are read"
            )
        if member.flag_bits & _ENCRYPTED:
            raise DamagedMemberError(f"{self.path}: {name!r} is encrypted")
        checksum = length = 0
        try:
            with self._zstandard(member) if member.compress_type == ZSTANDARD else self._zip.open(member) as content:
                while chunk := content.read(_CHUNK):
                    checksum = zlib.crc32(chunk, checksum)
                    length += len(chunk)
                    self._budget -= len(chunk)
                    if length > member.file_size:
                        raise DamagedMemberError(f"{self.path}: {name!r} is longer than the ZIP file says")
                    if self._budget < 0:
                        raise too_much_unpacked(self.path)
                    yield chunk
        except NotImplementedError:
            method = f"compression method {member.compress_type} is not supported"
            raise DamagedMemberError(f"{self.path}: {name!r} is damaged ({method})") from None
        except (zipfile.BadZipFile, UnicodeDecodeError, zlib.error, struct.error, EOFError) as error:
            raise DamagedMemberError(f"{self.path}: {name!r} is damaged ({error})") from None
        except OSError as error:
            # pyarrow raises it for damaged Zstandard data, without an error number.
            if error.errno is not None:
                raise
            raise DamagedMemberError(f"{self.path}: {name!r} is damaged ({error})") from None
        if length != member.file_size or checksum != member.CRC:
            raise DamagedMemberError(f"{self.path}: {name!r} is damaged (its checksum differs)")

    def _zstandard(self, member: zipfile.ZipInfo) -> Any:
        """A stream that reads on across frames, of which Inspect starts a new one every 200 MiB."""
        import pyarrow as pa

        self._file.seek(member.header_offset)
        signature, name_length, extra_length = _LOCAL.unpack(self._file.read(_LOCAL.size))
        if signature != b"PK\x03\x04":
            raise EOFError("no local header")
        start = member.header_offset + _LOCAL.size + name_length + extra_length
        section = _Section(self._file, start, member.compress_size)
        return pa.CompressedInputStream(pa.PythonFile(section, "r"), "zstd")

    def _refuse_overlaps(self, entries: Iterable[zipfile.ZipInfo]) -> None:
        """Members that share their bytes are how a small archive unpacks to an enormous one."""
        end = 0
        for entry in sorted(entries, key=lambda each: each.header_offset):
            start, end_before = entry.header_offset, end
            end = start + _LOCAL.size + entry.compress_size
            if end > self._size:
                raise self._damaged()
            if start < end_before:
                raise InputFileError(f"{self.path}: members of the ZIP file overlap; not read")

    def _damaged(self) -> InputFileError:
        return InputFileError(
            f"{self.path}: the directory at the end of the ZIP file is missing or damaged; copy the file again"
        )


class _LimitedReads:
    """A file that refuses to be read whole: `zipfile` takes the size of the directory from the file."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > ZIP_DIRECTORY_BYTES:
            raise InputFileError(
                f"{self._path}: its ZIP directory has {size:,} bytes; at most {ZIP_DIRECTORY_BYTES:,} are read"
            )
        return self._file.read(size)


class _Section(io.RawIOBase):
    """A part of a file as a file."""

    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file = file
        self._place = start
        self._end = start + size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        # Other members may be read in between.
        self._file.seek(self._place)
        data = self._file.read(min(len(buffer), self._end - self._place))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)
