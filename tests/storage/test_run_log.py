"""The run log: a row per step of every run, which changes no figure and no other table."""

from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Command, Folder, copy_of
from tests.pipelines.test_run import evaluate
from touchstone.storage import run_log
from touchstone.storage.run_log import RunLog
from touchstone.storage.snapshots import find
from touchstone.storage.store import Store
from touchstone.tables import TABLES


def log_of(folder: Folder) -> pl.DataFrame:
    return pl.read_parquet(folder.output / "tables" / "run_log" / "*.parquet")


def run_of(log: pl.DataFrame, place: int) -> pl.DataFrame:
    return log.filter(pl.col("run_id") == log["run_id"][place])


def test_every_step_of_every_run_has_a_row(finished_with_warehouse: Folder, tmp_path: Path) -> None:
    evaluated = copy_of(finished_with_warehouse, tmp_path / "copy")
    first = run_of(log_of(evaluated), 0)
    assert first["stage"].to_list() == [*TABLES, "report", "warehouse"]
    assert "failed" not in first["status"] and set(first["snapshot"]) == {find(evaluated.output, "latest").id}
    assert first.filter(pl.col("stage") == "outcomes")["rows"].to_list() == [4]
    assert first["seconds"].min() >= 0 and first.filter(pl.col("stage") == "outcomes")["bytes"].item() > 0
    warehouse = (evaluated.output / "warehouse.duckdb").stat()
    outcome = evaluate(evaluated)
    assert outcome.made == 0 and outcome.reused > 0
    both = log_of(evaluated)
    assert both.head(first.height).equals(first), "what was logged stays"
    again = run_of(both, -1)
    kept = dict(again.select("stage", "status").iter_rows())
    assert {kept[table] for table in ("attempts", "outcomes", "pass_at_k", "history")} == {"kept"}
    assert (evaluated.output / "warehouse.duckdb").stat().st_ino == warehouse.st_ino, "nothing else changed"


def test_a_step_that_failed_says_why(evaluated: Folder) -> None:
    evaluated.problems("oid,filename\na,x\na,y\n")
    assert evaluate(evaluated).exit_code == 2
    *_, last = log_of(evaluated).iter_rows(named=True)
    assert (last["stage"], last["status"], last["rows"], last["snapshot"]) == ("problems", "failed", None, None)
    assert "two different problems" in last["message"]


def test_it_is_a_table_like_any_other(evaluated: Folder, touchstone: Command) -> None:
    query = "SELECT stage, status FROM run_log WHERE stage = 'pass_at_k'"
    done = touchstone("sql", query, "--data", evaluated.output, "--format", "csv")
    assert done.stdout.splitlines()[:2] == ["stage,status", "pass_at_k,made"]


@pytest.mark.parametrize("damage", [b"", b"no Parquet"])
def test_it_is_bounded_and_begins_anew_if_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    monkeypatch.setattr(run_log, "_MAX_RUNS", 3)
    store = Store(tmp_path)
    store.draft.mkdir(parents=True)

    def log_a_run() -> pl.DataFrame:
        log = RunLog(store)
        with log.step("pass_at_k"), log.step("tiers"):
            pass
        log.save()
        return log.table()

    tables = [log_a_run() for _ in range(5)]
    assert [table.height for table in tables] == [2, 4, 6, 6, 6]
    (tmp_path / ".store" / "run_log.parquet").write_bytes(damage)
    assert log_a_run().height == 2
