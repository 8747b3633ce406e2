"""Whether keys increase: the quick proof that no attempt is there twice, whatever iterations are called."""

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.ingest import attempts as attempts_module
from touchstone.ingest.attempts import ATTEMPT_KEY, keys_increase, keys_increase_streamed, sort_attempts, sort_read
from touchstone.ingest.checks import unique_keys
from touchstone.ingest.csv_rows import SCRATCH_FORMAT

KEY = ["model", *ATTEMPT_KEY]
word = st.sampled_from(["a", "b", ""])
iteration = st.sampled_from(["1", "2", "10", "01", "-3", "x", "run-1", "run-2", ""])
attempts = st.lists(st.tuples(word, word, word, iteration), max_size=12)


def frame(rows: list[tuple[str, str, str, str]]) -> pl.LazyFrame:
    return pl.LazyFrame(rows, schema=dict.fromkeys(KEY, pl.String), orient="row")


@given(attempts)
def test_sorted_keys_increase_exactly_if_none_is_repeated(rows: list[tuple[str, str, str, str]]) -> None:
    ordered = sort_attempts(frame(rows), "model")
    assert keys_increase(ordered) == (len(set(rows)) == len(rows))


@given(attempts)
def test_keys_that_increase_are_unique_and_sorted(rows: list[tuple[str, str, str, str]]) -> None:
    if keys_increase(frame(rows)):
        assert len(set(rows)) == len(rows)
        assert sort_attempts(frame(rows), "model").collect().rows() == rows


@pytest.mark.parametrize(
    ("rows", "unique"),
    [
        ([], True),
        ([("m", "t", "a", str(place)) for place in range(7)], True),
        ([("m", "t", "a", "1"), ("m", "t", "a", "1")], False),
        ([("m", "t", "a", "1"), ("m", "t", "b", "1"), ("n", "t", "a", "1"), ("n", "t", "a", "1")], False),
    ],
)
def test_a_batch_is_compared_with_the_end_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch, rows: list[tuple[str, str, str, str]], unique: bool
) -> None:
    for size in (1, 2, 3, 100):
        monkeypatch.setattr(attempts_module, "_BATCH_ROWS", size)
        assert keys_increase_streamed(frame(rows)) == unique, size
    assert unique_keys(frame(rows)).passed == unique


def test_unsorted_keys_are_counted_one_by_one() -> None:
    rows = [("m", "t", "b", "1"), ("m", "t", "a", "1"), ("m", "t", "b", "1")]
    assert unique_keys(frame(rows[:2])).passed
    assert unique_keys(frame(rows)).figures == {"duplicate_keys": 1}


@given(attempts, st.integers(1, 400))
def test_parts_are_sorted_as_the_whole(rows: list[tuple[str, str, str, str]], at_once: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "rows.parquet"
        given = frame(rows).unique(ATTEMPT_KEY, keep="first", maintain_order=True)
        given.sink_parquet(scratch)
        (parts, _), whole = sort_read(given, scratch.parent, at_once), sort_attempts(given)
        assert parts.collect().equals(whole.collect())
        assert parts.select("oid").collect(engine="streaming").equals(whole.select("oid").collect())
        several = pl.col("iteration_id") > "1"
        assert parts.filter(several).select("oid").collect().equals(whole.filter(several).select("oid").collect())


def test_rows_that_compress_well_are_sorted_in_parts(tmp_path: Path) -> None:
    rows = pl.LazyFrame({"tier": "T0", "oid": [f"{place:05}" for place in range(10_000)], "iteration_id": "1"})
    rows = rows.with_columns(fixed_code=pl.format("{}{}", pl.lit("x" * 500), "oid"))
    rows.sink_parquet(tmp_path / "rows.parquet", **SCRATCH_FORMAT)
    assert (tmp_path / "rows.parquet").stat().st_size < 1_000_000
    ordered, at_once = sort_read(rows, tmp_path, 1_000_000)
    assert at_once is not None and ordered.select("oid").collect().equals(rows.select("oid").collect())
