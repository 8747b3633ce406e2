"""Small Parquet files that claim to hold more than memory: refused by their footer, before anything is decoded."""

from pathlib import Path

import polars as pl
import pytest

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import parquet_files, read_adapted

ROWS = 77


def varint(number: int) -> bytes:
    """A number as Thrift's compact protocol writes it."""
    left, data = number << 1, bytearray()
    while left > 127:
        data.append(left & 127 | 128)
        left >>= 7
    return bytes([*data, left])


def claiming(path: Path, rows: int) -> Path:
    """A whole file of 77 rows whose footer claims another number of rows, for itself and its row groups."""
    numbers = [str(place) for place in range(ROWS)]
    pl.DataFrame({"oid": "a", "iteration_id": numbers, "passed": True}).write_parquet(path, statistics=False)
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    assert varint(ROWS) in footer
    # The type of a field of 64 bits comes before its value.
    changed = footer.replace(b"\x16" + varint(ROWS), b"\x16" + varint(rows))
    path.write_bytes(data[: -8 - length] + changed + len(changed).to_bytes(4, "little") + b"PAR1")
    return path


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (10**12, "1,000,000,000,000 rows; at most 1,000,000,000 are read"),
        (900_000_000, "claim to hold 900,000,000 rows, over 1,000 cells a byte"),
        (2**62, "rows; at most 1,000,000,000 are read"),
    ],
)
def test_a_footer_that_claims_more_rows_than_fit(tmp_path: Path, rows: int, reason: str) -> None:
    with pytest.raises(InputFileError) as refused:
        read_adapted(claiming(tmp_path / "m.parquet", rows))
    assert reason in str(refused.value) and "\n" not in str(refused.value)


def test_a_footer_that_claims_a_few_rows_too_many_is_broken(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="broken Parquet"):
        read_adapted(claiming(tmp_path / "m.parquet", ROWS + 50))


def test_long_runs_of_one_value_count_as_the_cells_that_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.parquet"
    run = pl.select(pl.repeat("a", 200_000).alias("oid"), iteration_id=pl.lit("1"), passed=pl.lit(True))
    run.write_parquet(path, row_group_size=200_000, statistics=False)
    assert read_adapted(path).models() == ["m"]
    monkeypatch.setattr(parquet_files, "PARQUET_FREE_CELLS", 1_000)
    monkeypatch.setattr(parquet_files, "PARQUET_CELLS_PER_BYTE", 100)
    with pytest.raises(InputFileError, match=r"bytes claim to hold 200,000 rows"):
        read_adapted(path)


def test_one_text_that_stands_in_every_row_counts_in_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.parquet"
    rows = pl.select(pl.repeat("x" * 100_000, 500).alias("oid"), iteration_id=pl.lit("1"), passed=pl.lit(True))
    rows.write_parquet(path, statistics=False)
    monkeypatch.setattr(parquet_files, "PARQUET_FREE_TEXT", 1 << 20)
    with pytest.raises(InputFileError, match=r"bytes unpack to 50,002,500 bytes of text, over 1,000 times its size"):
        read_adapted(path)


def test_a_large_group_is_refused_whatever_the_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "PARQUET_GROUP_BYTES", 100)
    with pytest.raises(InputFileError, match="write smaller row groups"):
        read_adapted(claiming(tmp_path / "m.parquet", ROWS))
