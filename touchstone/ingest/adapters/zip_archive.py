"""Members of a ZIP file as streams of bytes, including Zstandard, which Python's `zipfile` reads only from 3.14 on.

Nothing is extracted to disk, so the names of members are only names. Sizes are checked before anything is allocated:
an archive cannot make its reader keep or decompress more than the limits below.
"""

import io
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from touchstone.errors import InputFileError
from touchstone.ingest.limits import ZIP_DIRECTORY_BYTES, ZIP_MEMBER_BYTES, limits, too_much_unpacked

STORED, DEFLATED, ZSTANDARD = 0, 8, 93

_CHUNK = 1 << 20

_END = struct.Struct("<4s4H2LH")
_END_64_LOCATOR = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_MAX_COMMENT = 0xFFFF
_IN_EXTRA_64 = 0xFFFFFFFF
_EXTRA_64 = 1
_ENCRYPTED = 1


class DamagedMemberError(InputFileError):
    """Raised for a member whose bytes cannot be read; other members may be intact."""


class Member(NamedTuple):
    """One entry of the directory."""

    name: str
    flags: int
    method: int
    checksum: int
    packed_size: int
    size: int
    offset: int
    mode: int


class ZipArchive:
    """The directory of an archive, and its members as chunks of bytes; of several with one name, the last counts."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        try:
            entries = list(self._entries())
        except (struct.error, EOFError):
            raise InputFileError(f"{path}: the directory of the ZIP file is damaged; copy the file again") from None
        self._refuse_overlaps(entries)
        self.members = {entry.name: entry for entry in entries}
        self.repeated = len(entries) - len(self.members)
        self._budget = limits().unpacked_bytes(self._size)

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of a member, at most 1 MiB at a time; raises `DamagedMemberError` if it is not intact."""
        member = self.members[name]
        if member.size > ZIP_MEMBER_BYTES:
            raise InputFileError(
                f"{self.path}: {name!r} has {member.size:,} bytes; at most {ZIP_MEMBER_BYTES:,} are read"
            )
        checksum = length = 0
        try:
            for chunk in _decompressed(self._section(member), member.method):
                checksum = zlib.crc32(chunk, checksum)
                length += len(chunk)
                self._budget -= len(chunk)
                if length > member.size:
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
        if length != member.size or checksum != member.checksum:
            raise DamagedMemberError(f"{self.path}: {name!r} is damaged (its checksum differs)")

    def _section(self, member: Member) -> "_Section":
        if member.flags & _ENCRYPTED:
            raise DamagedMemberError(f"{self.path}: {member.name!r} is encrypted")
        signature, *_, name_length, extra_length = _LOCAL.unpack(self._read(member.offset, _LOCAL.size))
        if signature != b"PK\x03\x04":
            raise EOFError("no local header")
        start = member.offset + _LOCAL.size + name_length + extra_length
        return _Section(self._file, start, member.packed_size)

    def _read(self, offset: int, size: int) -> bytes:
        if offset < 0 or offset + size > self._size:
            raise EOFError("outside the file")
        self._file.seek(offset)
        return self._file.read(size)

    def _directory(self) -> tuple[bytes, int]:
        """The bytes of the directory, and where it starts."""
        tail_start = max(0, self._size - _END.size - _MAX_COMMENT)
        tail = self._read(tail_start, self._size - tail_start)
        found = tail.rfind(b"PK\x05\x06")
        if found < 0:
            raise InputFileError(f"{self.path}: the end of the ZIP file is missing; the copy is incomplete")
        *_, size, offset, _ = _END.unpack_from(tail, found)
        locator = tail_start + found - _END_64_LOCATOR.size
        if locator >= 0 and self._read(locator, 4) == b"PK\x06\x07":
            end_64 = _END_64_LOCATOR.unpack(self._read(locator, _END_64_LOCATOR.size))[2]
            *_, size, offset = _END_64.unpack(self._read(end_64, _END_64.size))
        if size > ZIP_DIRECTORY_BYTES:
            raise InputFileError(
                f"{self.path}: its ZIP directory has {size:,} bytes; at most {ZIP_DIRECTORY_BYTES:,} are read"
            )
        return self._read(offset, size), offset

    def _entries(self) -> Iterator[Member]:
        directory, start = self._directory()
        place = 0
        while place < len(directory):
            signature, *fields = _ENTRY.unpack_from(directory, place)
            _, _, flags, method, _, _, checksum, packed, size, name_length, extra_length, comment_length, *rest = fields
            if signature != b"PK\x01\x02":
                raise EOFError("no entry")
            name_end = place + _ENTRY.size + name_length
            name = directory[place + _ENTRY.size : name_end].decode("utf-8", "replace")
            extra = directory[name_end : name_end + extra_length]
            size, packed, offset = _large_sizes(extra, size, packed, rest[-1])
            if offset + _LOCAL.size + packed > start:
                raise EOFError("a member outside the file")
            yield Member(name, flags, method, checksum, packed, size, offset, rest[-2] >> 16)
            place = name_end + extra_length + comment_length

    def _refuse_overlaps(self, entries: list[Member]) -> None:
        """Members that share their bytes are how a small archive unpacks to an enormous one."""
        end = 0
        for entry in sorted(entries, key=lambda each: each.offset):
            if entry.offset < end:
                raise InputFileError(f"{self.path}: members of the ZIP file overlap; not read")
            end = entry.offset + _LOCAL.size + entry.packed_size


def _large_sizes(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Size, packed size and offset; those that do not fit into 32 bits are in the extra field."""
    values = [size, packed, offset]
    place = 0
    while _IN_EXTRA_64 in values and place + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, place)
        if kind == _EXTRA_64:
            large = iter(struct.unpack_from(f"<{length // 8}Q", extra, place + 4))
            return tuple(next(large, value) if value == _IN_EXTRA_64 else value for value in values)  # type: ignore[return-value]
        place += 4 + length
    return size, packed, offset


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
