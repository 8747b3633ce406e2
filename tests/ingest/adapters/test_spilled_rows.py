"""Rows that wait on disk: the same as in memory, in the same order, and gone when nobody needs them."""

import gc
import json
from pathlib import Path

import polars as pl
import pytest

from touchstone.ingest.adapters import read_adapted, spilled_rows, table
from touchstone.ingest.adapters.spilled_rows import SpilledRows


@pytest.mark.parametrize("most", [0, 200, 1 << 20])
def test_frames_with_different_columns(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(spilled_rows, "MAX_BYTES", most)
    found = SpilledRows({"line": pl.Int64})
    found.add(pl.DataFrame({"line": [1, 2], "a": ["x", None]}))
    found.add(pl.DataFrame({"line": [3], "b": ["y" * 300]}))
    found.add(pl.DataFrame({"line": [4], "a": ["z"], "c": ["w"]}))
    assert found.columns == ["line", "a", "b", "c"]
    assert found.rows().collect().rows() == [
        (1, "x", None, None),
        (2, None, None, None),
        (3, None, "y" * 300, None),
        (4, "z", None, "w"),
    ]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty temporary folder of the process."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_large_file_is_read_the_same_and_leaves_nothing_behind(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.jsonl"
    rows = [{"oid": "a", "iteration_id": place, "passed": True, f"k{place % 3}": place} for place in range(50)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "broken\n")
    in_memory = read_adapted(path).frame
    monkeypatch.setattr(spilled_rows, "MAX_BYTES", 100)
    monkeypatch.setattr(table, "_BATCH_ROWS", 7)
    found = read_adapted(path)
    of_model = found.for_model("m")
    assert len(list(temporary.rglob("*.parquet"))) == 8
    assert found.frame.equals(in_memory)
    del found
    gc.collect()
    assert of_model.frame.equals(in_memory)
    del of_model
    gc.collect()
    assert list(temporary.iterdir()) == []
