"""The two ways to read rows give the same, and a plain file is recognised exactly."""

import csv
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from touchstone.errors import InputFileError
from touchstone.ingest.csv_rows import LINE, ROW_ERROR, careful_rows, open_table, plain_rows, raw_rows, read_header
from touchstone.ingest.limits import MAX_COLUMNS

cell = st.text(alphabet="ab1 ,\"\n\r;'é\t", max_size=6)
plain_cell = st.text(alphabet="ab1 ;'é\t=.", max_size=6)


def write(path: Path, rows: list[list[str]], line_end: str = "\n") -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8", newline="")


@given(st.lists(st.lists(cell, min_size=3, max_size=3), max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_careful_rows_bring_back_what_was_written(tmp_path_factory, rows: list[list[str]], end: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("text") / "t.csv"
    write(path, [["x", "y", "z"], *rows], end)
    read = careful_rows(open_table(path)).collect()
    assert read.select("x", "y", "z").rows() == [tuple(cell or None for cell in row) for row in rows]
    assert read[ROW_ERROR].null_count() == len(rows)


@given(
    st.lists(st.lists(plain_cell, min_size=1, max_size=4), max_size=12), st.sampled_from(["\n", "\r\n"]), st.booleans()
)
@example([["a", "b", "c"], ["d", "e"], ["f", "g", "h", ""]], "\n", False)
def test_plain_and_careful_reading_agree(tmp_path_factory, rows: list[list[str]], end: str, last: bool) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("text") / "t.csv"
    text = end.join(["x,y,z", *(",".join(row) for row in rows)]) + (end if last else "")
    path.write_text(text, encoding="utf-8", newline="")
    table = open_table(path)
    careful = careful_rows(table).collect()
    ragged = [row for row in rows if len(row) != 3 and ",".join(row).strip()]
    assert careful[ROW_ERROR].count() == len(ragged)
    if not table.plain:
        return
    try:
        plain = plain_rows(table).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        assert ragged
        return
    columns = [LINE, ROW_ERROR, "x", "y", "z"]
    assert plain.select(columns).equals(careful.select(columns))


def test_line_numbers_and_raw_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'x,y\n1,"a\nb"\n\n2,c\n3\n')
    table = open_table(path)
    rows = careful_rows(table).collect()
    assert rows[LINE].to_list() == [2, 5, 6]
    assert raw_rows(table, {2, 6}) == {2: '1,"a\nb"', 6: "3"}


def test_a_long_raw_row_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1," + "z" * 5000 + "\n")
    assert len(raw_rows(open_table(path), {2})[2]) == 2000


def test_carriage_returns_across_the_edge_of_a_chunk(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    row = b"a" * 1020 + b",b\r\n"
    # The first chunk is 1 MiB and ends between a carriage return and its newline.
    path.write_bytes(b"x,y\r\n" + b"z" * (1024 - 8) + b",b\r\n" + row * 1030)
    first_chunk = path.read_bytes()[: 1 << 20]
    assert first_chunk.endswith(b"\r")
    assert open_table(path).plain
    path.write_bytes(path.read_bytes() + b"c,d\re\n")
    assert not open_table(path).plain


def test_names_that_look_like_patterns(tmp_path: Path) -> None:
    path = tmp_path / "t[1]*.csv"
    path.write_text("x,y\n1,2\n")
    assert plain_rows(open_table(path)).select("x", "y").collect().rows() == [("1", "2")]


def test_a_header_has_a_bounded_number_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"__c{place}" for place in range(MAX_COLUMNS)) + "\n")
    assert read_header(path)[-1] == f"input___c{MAX_COLUMNS - 1}"
    path.write_text(",".join(f"c{place}" for place in range(100_000)) + "\n")
    with pytest.raises(InputFileError, match="the header has 100,000 columns; at most 10,000 are read"):
        read_header(path)
