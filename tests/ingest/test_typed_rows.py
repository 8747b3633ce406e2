"""Text cells through rules to typed rows: what is accepted, what is refused, and which rows are duplicates."""

from pathlib import Path

import polars as pl

from touchstone.contracts import TABLES
from touchstone.ingest import cells
from touchstone.ingest.csv_rows import LINE, open_table
from touchstone.ingest.quarantine import SCHEMA
from touchstone.ingest.typed_rows import drop_refused, find_duplicates, read_typed_rows


def test_rows_that_break_a_rule_or_the_header_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("oid,passed\na,true\nb,maybe\nc\nd,0\n")
    rules = [cells.identifier("oid"), cells.boolean("passed")]
    typed = read_typed_rows(open_table(path), rules, {"copy": pl.col("oid")}, tmp_path / "rows.parquet")
    assert typed.rows == 4
    assert typed.accepted.collect().rows() == [(2, "a", True, "a"), (5, "d", False, "d")]
    assert [(refusal.line, refusal.kind) for refusal in typed.refusals] == [(3, "bad_boolean"), (4, "ragged")]


def test_of_equal_rows_the_first_stays_and_of_different_ones_none() -> None:
    rows = pl.LazyFrame({LINE: [2, 3, 4, 5], "oid": ["a", "a", "b", "b"], "passed": [True, True, True, False]})
    refusals = find_duplicates(rows, ["oid"])
    found = [(refusal.line, refusal.kind) for refusal in refusals]
    assert found == [(3, "duplicate"), (4, "conflict"), (5, "conflict")]
    assert drop_refused(rows, refusals).collect()[LINE].to_list() == [2]


def test_quarantine_rows_have_the_columns_of_the_contract() -> None:
    assert TABLES["quarantine"].dtypes == pl.Schema(SCHEMA)
