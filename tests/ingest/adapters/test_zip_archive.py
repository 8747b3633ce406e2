"""Members of ZIP files: the same bytes as `zipfile`, Zstandard besides, and nothing unbounded."""

import struct
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from tests.ingest.adapters.inspect_files import REAL, header, sample, write_archive
from touchstone.config import InputLimits
from touchstone.errors import InputFileError
from touchstone.ingest import archives
from touchstone.ingest.adapters import read_adapted
from touchstone.ingest.archives import DamagedMemberError, ZipArchive

CONTENT = b"0123456789" * 300_000


def archive(path: Path, method: int = zipfile.ZIP_DEFLATED, content: bytes = CONTENT) -> Path:
    with zipfile.ZipFile(path, "w", method) as writer:
        writer.writestr("../a/é.json", content)
        writer.writestr("b", b"second")
    return path


def read(path: Path, name: str) -> bytes:
    with path.open("rb") as file:
        return b"".join(ZipArchive(path, file).chunks(name))


def changed(path: Path, offset: int, data: bytes) -> Path:
    content = bytearray(path.read_bytes())
    content[offset : offset + len(data)] = data
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members(tmp_path: Path, method: int) -> None:
    path = archive(tmp_path / "a.zip", method)
    assert read(path, "../a/é.json") == CONTENT
    assert read(path, "b") == b"second"


def zstandard(path: Path, packed: bytes, content: bytes) -> Path:
    """An archive with one member that Python's `zipfile` cannot write."""
    path.write_bytes(b"")
    with zipfile.ZipFile(path, "w") as writer:
        writer.writestr("a", packed)
    data = path.read_bytes()
    entry = data.index(b"PK\x01\x02")
    fields = struct.pack("<H4xLLL", 93, zlib.crc32(content), len(packed), len(content))
    return changed(path, entry + 10, fields)


def test_zstandard_across_frames(tmp_path: Path) -> None:
    packed = b"".join(pa.compress(part, "zstd", asbytes=True) for part in (CONTENT, b"end"))
    assert read(zstandard(tmp_path / "a.zip", packed, CONTENT + b"end"), "a") == CONTENT + b"end"


def test_a_member_of_a_real_log() -> None:
    assert read(REAL / "letters.eval", "header.json").startswith(b'{"version":2,"status":"success"')


def test_the_large_form_of_sizes(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as writer, writer.open("a", "w", force_zip64=True) as member:
        member.write(CONTENT)
    assert read(path, "a") == CONTENT


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_data(tmp_path: Path, method: int) -> None:
    path = changed(archive(tmp_path / "a.zip", method), 100, b"\xff\x00\xff")
    with pytest.raises(DamagedMemberError, match="is damaged"):
        read(path, "../a/é.json")
    assert read(path, "b") == b"second"


def test_damaged_zstandard(tmp_path: Path) -> None:
    path = zstandard(tmp_path / "a.zip", b"\xff" * 100, CONTENT)
    with pytest.raises(DamagedMemberError, match="'a' is damaged"):
        read(path, "a")


def test_a_member_that_is_longer_than_it_says(tmp_path: Path) -> None:
    packed = pa.compress(CONTENT, "zstd", asbytes=True)
    with pytest.raises(DamagedMemberError, match="longer than the ZIP file says"):
        read(zstandard(tmp_path / "a.zip", packed, CONTENT[:100]), "a")


def test_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "limits", lambda: InputLimits(unpack_free_mb=1))
    with pytest.raises(InputFileError, match="unpacks to over 250 times its size"):
        read(archive(tmp_path / "a.zip", content=bytes(20 << 20)), "../a/é.json")


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        (20, struct.pack("<L", 1 << 31), "end of the ZIP file is missing or damaged"),
        (24, struct.pack("<L", 0xFFFFFFFF), "0xx"),
        (42, struct.pack("<L", 1 << 31), "end of the ZIP file is missing or damaged"),
        (8, struct.pack("<H", 1), "is encrypted"),
        (10, struct.pack("<H", 99), "compression method 99 is not supported"),
    ],
)
def test_a_directory_that_lies(tmp_path: Path, field: int, value: bytes, reason: str) -> None:
    path = archive(tmp_path / "a.zip")
    entry = path.read_bytes().index(b"PK\x01\x02")
    expected = r"at most [0-9,]+ are read|is damaged" if reason == "0xx" else reason
    with pytest.raises(InputFileError, match=expected):
        read(changed(path, entry + field, value), "../a/é.json")


def test_members_that_overlap(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", content=b"x")
    second = path.read_bytes().rindex(b"PK\x01\x02")
    with pytest.raises(InputFileError, match="members of the ZIP file overlap"):
        read(changed(path, second + 42, struct.pack("<L", 1)), "b")


def test_a_directory_that_is_too_large_to_be_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "ZIP_DIRECTORY_BYTES", 50)
    with pytest.raises(InputFileError, match="its ZIP directory has 105 bytes; at most 50 are read"):
        read(archive(tmp_path / "a.zip"), "b")


def test_a_directory_that_says_it_is_larger_than_the_file(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip")
    end = path.read_bytes().rindex(b"PK\x05\x06")
    with pytest.raises(InputFileError, match="the directory at the end of the ZIP file is missing or damaged"):
        read(changed(path, end + 12, struct.pack("<L", 0xF0000000)), "b")


def test_names_that_are_not_marked_as_utf_8(tmp_path: Path) -> None:
    """As many programs write them; what is no UTF-8 is read as old DOS programs wrote it."""
    for name, written in (("é", "é".encode()), ("é", b"\x82"), ("ü", b"\x81")):
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w") as writer:
            writer.writestr("x" * len(written), b"content")
        path.write_bytes(path.read_bytes().replace(b"x" * len(written), written))
        assert read(path, name) == b"content"


def test_a_name_that_is_damaged_beside_its_content(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip")
    changed(path, path.read_bytes().index("é".encode()), b"\xff")
    with pytest.raises(DamagedMemberError, match="is damaged"):
        read(path, "../a/é.json")
    assert read(path, "b") == b"second"


def test_an_archive_within_a_log_is_never_opened(tmp_path: Path) -> None:
    """As a member of its own it is ignored, and in place of a sample it is no JSON."""
    bomb = archive(tmp_path / "bomb.zip", content=bytes(20 << 20)).read_bytes()
    members: list[tuple[str, object]] = [("header.json", header()), ("summaries.json", [sample()])]
    path = write_archive(tmp_path / "log.eval", [*members, ("nested.zip", bomb), ("samples/b_epoch_1.json", bomb)])
    rows = read_adapted(path).frame
    assert rows.select("oid", "__kind").rows() == [("fix/a", None), (None, "ragged")]
