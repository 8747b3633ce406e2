"""A file's rows through the rules: what is accepted, what is refused and why, and which rows repeat each other."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from touchstone.ingest import cells
from touchstone.ingest.csv_rows import LINE, open_table
from touchstone.ingest.quarantine import SCHEMA
from touchstone.ingest.typed_rows import TypedRows, read_typed_rows
from touchstone.tables import TABLES

RULES = [cells.identifier("oid"), cells.boolean("passed")]


def staged(folder: Path, text: str) -> TypedRows:
    (folder / "m.csv").write_text(text)
    double = {"twice": pl.col("oid") + pl.col("oid")}
    return read_typed_rows(open_table(folder / "m.csv"), RULES, double, folder / "scratch.parquet")


def test_accepted_rows_are_typed_and_know_their_line(tmp_path: Path) -> None:
    found = staged(tmp_path, "oid,passed\na,yes\nb,\n")
    assert (found.rows, found.refusals) == (2, [])
    assert found.accepted.collect().to_dicts() == [
        {LINE: 2, "oid": "a", "passed": True, "twice": "aa"},
        {LINE: 3, "oid": "b", "passed": None, "twice": "bb"},
    ]


@pytest.mark.parametrize("quoted", ["c", '"c"'])
def test_every_row_is_accepted_or_refused_with_a_reason(tmp_path: Path, quoted: str) -> None:
    """Quotes make the difference between the quick reader and the careful one."""
    found = staged(tmp_path, f"oid,passed\na,maybe\n,true\nb,1,2\n{quoted},0\n")
    assert found.accepted.select(LINE, "oid", "passed").collect().rows() == [(5, "c", False)]
    assert [(refusal.line, refusal.kind) for refusal in found.refusals] == [
        (2, "bad_boolean"), (3, "bad_id"), (4, "ragged"),
    ]  # fmt: skip
    assert "'maybe' is not a boolean" in found.refusals[0].reason
    assert found.rows == 4


def test_what_polars_writes_after_the_quick_reader_failed_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that fails leaves tasks behind, which write to its file while the careful reader is at work."""
    sink, files = pl.LazyFrame.sink_parquet, list[Path]()

    def noting(frame: pl.LazyFrame, path: Path, **options: Any) -> None:
        files.append(path)
        sink(frame, path, **options)

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", noting)
    found = staged(tmp_path, "oid,passed\na,1,2\nb\nc,1\n")
    failed, _ = files
    failed.write_bytes(b"PAR1 and the rest, too late")
    assert found.accepted.select("oid").collect().rows() == [("c",)]
    assert [refusal.line for refusal in found.refusals] == [2, 3]


def test_quarantine_rows_have_the_columns_of_the_contract() -> None:
    assert TABLES["quarantine"].dtypes == pl.Schema(SCHEMA)
