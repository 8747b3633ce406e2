"""How the result of a query is written: CSV, JSON, Markdown and Parquet."""

import csv
import functools
import io
import json
import math
import os
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import query_here
from tests.publish.test_query import make_tables
from touchstone.errors import TouchstoneError
from touchstone.publish.result_formats import format_result, save_result
from touchstone.storage.files import spreadsheet_safe


@functools.cache
def result() -> pa.Table:
    """Values of every kind. Not at the top: PyArrow loads pandas for it, in every process that collects the tests."""
    return pa.table(
        {
            "text": ["=1+1", "a|b\nc", None, 'q"\\|<b>', "ü"],
            "number": pa.array([-1, 2, None, 4, 5], pa.int64()),
            "share": [0.5, math.nan, math.inf, -math.inf, None],
            "amount": pa.array(
                [Decimal("0.10"), Decimal("7"), None, Decimal("-1.5"), Decimal("0")], pa.decimal128(9, 2)
            ),
            "yes": [True, False, None, True, False],
            "day": [date(2026, 1, 2), None, None, None, None],
            "moment": [datetime(2026, 1, 2, 3, 4, 5), None, None, None, None],
            "many": pa.array([[1.0, math.nan], [], None, None, None], pa.list_(pa.float64())),
        }
    )


def test_csv() -> None:
    header, *lines = csv.reader(io.StringIO(format_result(result(), "csv"), newline=""))
    assert header == result().column_names
    assert lines == [
        ["'=1+1", "-1", "0.5", "0.10", "true", "2026-01-02", "2026-01-02T03:04:05", "[1.0, null]"],
        ["a|b\nc", "2", "nan", "7.00", "false", "", "", "[]"],
        ["", "", "inf", "", "", "", "", ""],
        ['q"\\|<b>', "4", "-inf", "-1.50", "true", "", "", ""],
        ["ü", "5", "", "0.00", "false", "", "", ""],
    ]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_cells_that_a_spreadsheet_would_run(start: str) -> None:
    assert spreadsheet_safe(start + "cmd") == "'" + start + "cmd"
    table = pa.table({start + "name": [start + "cmd", "safe" + start]})
    assert list(csv.reader(io.StringIO(format_result(table, "csv"), newline=""))) == [
        ["'" + start + "name"],
        ["'" + start + "cmd"],
        ["safe" + start],
    ]


def test_csv_of_one_column_has_no_empty_lines() -> None:
    assert format_result(pa.table({"a": [None, "", "x"]}), "csv") == 'a\n""\n""\nx\n'


def test_json_tells_infinity_from_what_is_unknown() -> None:
    shares = [row["share"] for row in json.loads(format_result(result(), "json"))]
    assert shares == [0.5, None, "Infinity", "-Infinity", None]
    assert [float(share) for share in shares[2:4]] == [math.inf, -math.inf]


def test_json() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    first, second, third, _, fifth = json.loads(format_result(result(), "json"), parse_constant=refuse)
    assert first == {
        "text": "=1+1",
        "number": -1,
        "share": 0.5,
        "amount": 0.1,
        "yes": True,
        "day": "2026-01-02",
        "moment": "2026-01-02T03:04:05",
        "many": [1.0, None],
    }
    assert (second["text"], second["amount"], fifth["text"]) == ("a|b\nc", 7, "ü")
    assert set(third.values()) == {None, "Infinity"}
    assert json.loads(format_result(result().slice(0, 0), "json")) == []


def test_markdown() -> None:
    lines = format_result(result().select(["text", "number", "yes"]), "markdown").splitlines()
    assert lines == [
        "| text | number | yes |",
        "| --- | ---: | --- |",
        "| =1+1 | -1 | true |",
        "| a\\|b<br>c | 2 | false |",
        "|  |  |  |",
        '| q"\\\\\\|\\<b\\> | 4 | true |',
        "| ü | 5 | false |",
    ]


def test_types_that_only_duckdb_has_are_written_in_every_text_format(tmp_path: Path) -> None:
    result = query_here(
        make_tables(tmp_path),
        "SELECT INTERVAL '1 month 2 days 1.5 seconds' AS i, MAP {'k': 1} AS m, {'a': [1]} AS s, 'ab'::BLOB AS b, "
        "TIME '10:00' AS t, 170141183460469231731687303715884105727::HUGEINT AS h, 'x'::ENUM('x') AS e, NULL AS n",
    )
    (record,) = json.loads(format_result(result, "json"))
    assert record == {
        "i": "P1M2DT1.5S",
        "m": [["k", 1]],
        "s": {"a": [1]},
        "b": "6162",
        "t": "10:00:00",
        "h": 170141183460469231731687303715884105727,
        "e": "x",
        "n": None,
    }
    assert format_result(result.select(["i", "m", "h", "n"]), "markdown").endswith(
        '| P1M2DT1.5S | \\[\\["k", 1\\]\\] | 170141183460469231731687303715884105727 |  |\n'
    )


def test_times_that_python_has_not_are_one_line() -> None:
    table = pa.table({"at": pa.array([2**62], pa.timestamp("us"))})
    with pytest.raises(TouchstoneError, match="column 'at' has times out of range"):
        format_result(table, "csv")


@pytest.mark.parametrize("fmt", ["csv", "json", "markdown"])
def test_saved_text_is_the_rendered_text(tmp_path: Path, fmt: str) -> None:
    path = tmp_path / "result"
    path.write_text("old")
    save_result(result(), fmt, path)
    assert path.read_bytes() == format_result(result(), fmt).encode()
    assert list(tmp_path.iterdir()) == [path]


def test_saved_parquet_is_the_table(tmp_path: Path) -> None:
    table = result().drop_columns(["share", "many"])
    save_result(table, "parquet", tmp_path / "result.parquet")
    assert pq.read_table(tmp_path / "result.parquet").equals(table)


def test_what_cannot_be_saved_is_one_line_and_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "result.parquet"
    path.write_text("old")
    os.mkfifo(tmp_path / "pipe")
    interval = pa.table({"i": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    for attempt, reason in [
        (lambda: save_result(interval, "parquet", path), "Unhandled type"),
        (
            lambda: save_result(result(), "xml", path),
            "there is no format 'xml'; choose one of csv, json, latex, markdown, parquet",
        ),
        (lambda: save_result(result(), "csv", tmp_path / "nowhere" / "x.csv"), "No such file"),
        (lambda: save_result(result(), "csv", tmp_path), "not a file"),
        (lambda: save_result(result(), "csv", tmp_path / "pipe"), "pipe: not a file"),
        (lambda: format_result(result(), "parquet"), "parquet is not text"),
    ]:
        with pytest.raises(TouchstoneError) as refused:
            attempt()
        assert reason in str(refused.value) and "\n" not in str(refused.value)
    assert path.read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["pipe", "result.parquet"]
