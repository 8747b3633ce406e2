"""Compressed inputs: the text of a gzip or Zstandard file as a stream, never more of it than the limits allow.

The first bytes of a file decide whether it is compressed; its name counts without the ending, so that `m_fixes.csv.gz`
is read like `m_fixes.csv`. Line numbers are those of the decompressed text.
"""

import io
from pathlib import Path
from typing import Any

from touchstone.errors import InputFileError
from touchstone.ingest.limits import limits, require_file_size, too_much_unpacked
from touchstone.regular_files import open_regular

STILL_WRITTEN = "if the file is still being written, run again when it is complete"
ENDINGS = (".gz", ".zst")
CSV_SUFFIXES = (".csv", ".tsv", ".tab")
_TABLES = (*CSV_SUFFIXES, ".jsonl", ".ndjson", ".parquet")
_CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_CHUNK = 1 << 20


def uncompressed_name(path: Path) -> str:
    """The name of a file without the ending of its compression.

    >>> uncompressed_name(Path("in/m_fixes.csv.gz")), uncompressed_name(Path("m.jsonl"))
    ('m_fixes.csv', 'm.jsonl')
    """
    ending = next((each for each in ENDINGS if path.name.lower().endswith(each)), "")
    return path.name[: len(path.name) - len(ending)]


def data_suffix(path: Path) -> str:
    """The ending of the name without that of the compression, in lower case and whether or not it is compressed.

    >>> data_suffix(Path("m.CSV.gz")), data_suffix(Path("m.parquet")), data_suffix(Path("notes"))
    ('.csv', '.parquet', '')
    """
    return Path(uncompressed_name(path)).suffix.lower()


def table_stem(path: Path) -> str:
    """The name of a table without its endings; the whole name of any other file.

    >>> [table_stem(Path(name)) for name in ("m_fixes.csv", "m_fixes.jsonl.zst", "m-4.1", "m.json")]
    ['m_fixes', 'm_fixes', 'm-4.1', 'm.json']
    """
    name = uncompressed_name(path)
    return Path(name).stem if data_suffix(path) in _TABLES else path.name


def open_input(path: Path) -> io.BufferedReader:
    """Open an input file as the bytes of its text; reading raises `InputFileError` if it is damaged or a bomb."""
    file = open_regular(path)
    try:
        codec = _codec(file)
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        if codec is None:
            require_file_size(path, size)
            return file
        return io.BufferedReader(_Unpacked(path, file, codec, size), _CHUNK)
    except BaseException:
        file.close()
        raise


def damage_of(path: Path) -> str:
    """Why a compressed file cannot be unpacked to its end; empty if it can, or is not compressed."""
    try:
        with open_regular(path) as packed, open_input(path) as file:
            while _codec(packed) is not None and file.read(_CHUNK):
                pass
    except InputFileError as error:
        return str(error)
    except OSError:
        pass
    return ""


def open_text(path: Path, encoding: str = "utf-8-sig") -> io.TextIOWrapper:
    """Open an input file as text, with the line endings that it has."""
    return io.TextIOWrapper(open_input(path), encoding=encoding, newline="")


def _codec(file: io.BufferedReader) -> str | None:
    start = file.peek(4)[:4]
    return next((codec for magic, codec in _CODECS.items() if start.startswith(magic)), None)


class _Unpacked(io.RawIOBase):
    """The decompressed bytes; counted as they come, so that a bomb is refused before it has unpacked."""

    def __init__(self, path: Path, file: io.BufferedReader, codec: str, packed: int) -> None:
        self._path, self._codec = path, codec
        self._most = limits().unpacked_bytes(packed)
        self._start(file)

    def _start(self, file: io.BufferedReader) -> None:
        import pyarrow as pa

        self._file, self._read = file, 0
        # Reads on across members and frames.
        self._stream: Any = pa.CompressedInputStream(pa.PythonFile(file, "r"), self._codec)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._read

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Unpack up to a place, from the start for one that is behind; the end is not known."""
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the end of compressed data is not known")
        place = offset + (self._read if whence == io.SEEK_CUR else 0)
        if place < self._read:
            self._stream.close()
            self._start(open_regular(self._path))
        while self._read < place and self.readinto(bytearray(min(_CHUNK, place - self._read))):
            pass
        return self._read

    def readinto(self, buffer: Any) -> int:
        try:
            data: bytes = self._stream.read(len(buffer))
        except OSError as error:
            # Damaged data has no error number; a disk that fails has one.
            if error.errno is not None:
                raise
            raise InputFileError(f"{self._path}: {self._damage(str(error))}") from None
        self._read += len(data)
        if self._read > self._most:
            raise too_much_unpacked(self._path)
        require_file_size(self._path, self._read)
        buffer[: len(data)] = data
        return len(data)

    def _damage(self, reason: str) -> str:
        if "truncated" in reason.lower():
            return f"the {self._codec} data is cut off; {STILL_WRITTEN}"
        return f"damaged {self._codec} data ({reason.splitlines()[0][:200]}); write or copy the file again"

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._file.close()
        super().close()
