"""Members of a ZIP file as streams of bytes, including Zstandard, which Python's `zipfile` reads only from 3.14 on.

Nothing is extracted to disk, so the names of members are only names. Sizes are checked before anything is allocated:
an archive cannot make its reader keep or decompress more than the limits below.
"""

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from touchstone.errors import InputFileError
from touchstone.ingest.limits import ZIP_DIRECTORY_BYTES, ZIP_MEMBER_BYTES, limits, too_much_unpacked

STORED, DEFLATED, ZSTANDARD = 0, 8, 93

_CHUNK = 1 << 20
_LOCAL = struct.Struct("<4s5H3L2H")
_ENCRYPTED = 1
_NO_END = "File is not a zip file"


class DamagedMemberError(InputFileError):
    """Raised for a member whose bytes cannot be read; other members may be intact."""


class ZipArchive:
    """The directory of an archive, and its members as chunks of bytes; of several with one name, the last counts."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        entries = self._entries()
        self._refuse_overlaps(entries)
        self.members = {entry.filename: entry for entry in entries}
        self._budget = limits().unpacked_bytes(self._size)

    def _entries(self) -> list[zipfile.ZipInfo]:
        damaged = InputFileError(f"{self.path}: the directory of the ZIP file is damaged; copy the file again")
        try:
            with zipfile.ZipFile(_BoundedReads(self.path, self._file)) as archive:
                entries = archive.infolist()
        except zipfile.BadZipFile as error:
            if str(error) != _NO_END:
                raise damaged from None
            raise InputFileError(f"{self.path}: the end of the ZIP file is missing; the copy is incomplete") from None
        # Sizes, offsets, names and versions that cannot be.
        except (struct.error, ValueError, OverflowError, NotImplementedError, EOFError):
            raise damaged from None
        ends = (entry.header_offset + _LOCAL.size + entry.compress_size for entry in entries)
        if any(entry.header_offset < 0 for entry in entries) or any(end > self._size for end in ends):
            raise damaged
        return entries

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of a member, at most 1 MiB at a time; raises `DamagedMemberError` if it is not intact."""
        member = self.members[name]
        if member.file_size > ZIP_MEMBER_BYTES:
            raise InputFileError(
                f"{self.path}: {name!r} has {member.file_size:,} bytes; at most {ZIP_MEMBER_BYTES:,} are read"
            )
        checksum = length = 0
        try:
            for chunk in _decompressed(self._section(member), member.compress_type):
                checksum = zlib.crc32(chunk, checksum)
                length += len(chunk)
                self._budget -= len(chunk)
                if length > member.file_size:
                    raise DamagedMemberError(f"{self.path}: {name!r} is longer than the ZIP file says")
                if self._budget < 0:
                    raise too_much_unpacked(self.path)
                yield chunk
        except (zlib.error, struct.error, EOFError) as error:
            raise DamagedMemberError(f"{self.path}: {name!r} is damaged ({error})") from None
        except OSError as error:
            # pyarrow raises it for damaged Zstandard data, without an error number.
            if error.errno is not None:
                raise
            raise DamagedMemberError(f"{self.path}: {name!r} is damaged ({error})") from None
        if length != member.file_size or checksum != member.CRC:
            raise DamagedMemberError(f"{self.path}: {name!r} is damaged (its checksum differs)")

    def _section(self, member: zipfile.ZipInfo) -> "_Section":
        if member.flag_bits & _ENCRYPTED:
            raise DamagedMemberError(f"{self.path}: {member.filename!r} is encrypted")
        signature, *_, name_length, extra_length = _LOCAL.unpack(self._read(member.header_offset, _LOCAL.size))
        if signature != b"PK\x03\x04":
            raise EOFError("no local header")
        start = member.header_offset + _LOCAL.size + name_length + extra_length
        return _Section(self._file, start, member.compress_size)

    def _read(self, offset: int, size: int) -> bytes:
        if offset < 0 or offset + size > self._size:
            raise EOFError("outside the file")
        self._file.seek(offset)
        return self._file.read(size)

    def _refuse_overlaps(self, entries: list[zipfile.ZipInfo]) -> None:
        """Members that share their bytes are how a small archive unpacks to an enormous one."""
        end = 0
        for entry in sorted(entries, key=lambda each: each.header_offset):
            if entry.header_offset < end:
                raise InputFileError(f"{self.path}: members of the ZIP file overlap; not read")
            end = entry.header_offset + _LOCAL.size + entry.compress_size


class _BoundedReads(io.RawIOBase):
    """The file for `zipfile`, which reads the directory in one go, whatever its size."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

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


def _decompressed(section: _Section, method: int) -> Iterator[bytes]:
    if method == STORED:
        yield from iter(lambda: section.read(_CHUNK), b"")
    elif method == DEFLATED:
        yield from _inflated(section)
    elif method == ZSTANDARD:
        yield from _zstandard(section)
    else:
        raise EOFError(f"compression method {method} is not supported")


def _inflated(section: _Section) -> Iterator[bytes]:
    decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
    while not decompressor.eof:
        packed = decompressor.unconsumed_tail or section.read(_CHUNK)
        chunk = decompressor.decompress(packed or b"", _CHUNK)
        if not packed and not chunk:
            raise EOFError("it ends early")
        yield chunk


def _zstandard(section: _Section) -> Iterator[bytes]:
    import pyarrow as pa

    # Reads on across frames, of which Inspect starts a new one every 200 MiB.
    with pa.CompressedInputStream(pa.PythonFile(section, "r"), "zstd") as stream:
        yield from iter(lambda: stream.read(_CHUNK), b"")
