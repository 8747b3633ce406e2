"""Commands in processes of their own that meet a fault, and what a reader sees of an output folder afterwards.

The processes are forked from one that has loaded everything and run nothing: starting anew takes seconds each.
"""

import hashlib
import json
import multiprocessing
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl
import polars.selectors as cs

from tests.conftest import Folder, call_here
from tests.faults.hooks import Fault, install
from touchstone.storage.snapshots import list_snapshots

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.faults.preloaded"])
NO_FAULT = Fault("none")
# Tables whose rows name their snapshots, and so the time.
_OF_SNAPSHOTS = ("history", "trends", "change_points", "failure_modes", "problem_history")
# It differs in every run, and the published table goes on after the warehouse was written.
_RUN_LOG = "run_log"


@dataclass(frozen=True)
class Ended:
    """How a command ended: negative is the signal that killed it."""

    code: int
    stdout: str
    stderr: str
    operations: list[str]

    @property
    def error(self) -> str:
        """Its error, which is one line, the last, and no traceback."""
        *before, last = self.stderr.splitlines() or [""]
        assert last.startswith("error: "), self.stderr
        assert not any("Traceback" in line or line.startswith("error: ") for line in before), self.stderr
        return last.removeprefix("error: ")


Arguments = Sequence[object]


def commands(folder: Folder, lines: Sequence[Arguments], fault: Fault = NO_FAULT) -> list[Ended]:
    """Commands in one process of their own, without Dagster; the one that ended the process is the last."""
    with tempfile.TemporaryDirectory() as place:
        results, log = Path(place) / "results.jsonl", Path(place) / "operations"
        process = _PROCESSES.Process(target=_call, args=(lines, fault, folder.output, results, log))
        process.start()
        process.join()
        operations = log.read_text().splitlines()
        ended = [Ended(*json.loads(line), operations) for line in results.read_text().splitlines()]
        return ended if len(ended) == len(lines) else [*ended, Ended(process.exitcode or 0, "", "", operations)]


def _call(lines: Sequence[Arguments], fault: Fault, output: Path, results: Path, log: Path) -> None:
    with results.open("w", buffering=1) as written:
        install(fault, output, log)
        for arguments in lines:
            done = call_here(*arguments)
            written.write(json.dumps([done.returncode, done.stdout, done.stderr]) + "\n")
    os._exit(0)  # what libraries say about their own end is no part of it


def run(folder: Folder, fault: Fault = NO_FAULT, *options: str) -> Ended:
    """`touchstone run` in a process of its own."""
    (done,) = commands(folder, [("run", "--config", folder.config, *options)], fault)
    return done


def seen(output: Path) -> dict[str, str]:
    """All that a reader sees, as hashes: tables, in Parquet to the byte and in the warehouse, CSV files and history."""
    files = [*(output / "tables").rglob("*.parquet"), *(output / "csv").glob("*.csv"), output / "summary_pass_at_k.csv"]
    found = {
        str(file.relative_to(output)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.parent.name not in (*_OF_SNAPSHOTS, _RUN_LOG)
    }
    for table in _OF_SNAPSHOTS:
        found[table] = _hash(
            pl.read_parquet(output / "tables" / table / "*.parquet").drop(
                "snapshot", "made_at", cs.ends_with("_snapshot"), strict=False
            )
        )
    with duckdb.connect(str(output / "warehouse.duckdb"), read_only=True) as warehouse:
        for (table,) in warehouse.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall():
            if table != _RUN_LOG:
                parts = pl.read_parquet(output / "tables" / table / "*.parquet", missing_columns="insert")
                assert_same_rows(warehouse.table(table).pl(), parts)
    return found


def assert_same_rows(warehouse: pl.DataFrame, parquet: pl.DataFrame) -> None:
    assert warehouse.height == parquet.height
    assert sorted(map(str, warehouse.rows())) == sorted(map(str, parquet.select(warehouse.columns).rows()))


def _hash(frame: pl.DataFrame) -> str:
    return hashlib.sha256("\n".join(sorted(map(str, frame.rows()))).encode()).hexdigest()


def snapshot_ids(output: Path) -> list[str]:
    """The snapshots in order; no two of them, and no two rows of the history, are the same."""
    ids = [snapshot.id for snapshot in list_snapshots(output)]
    history = pl.read_parquet(output / "tables" / "history" / "*.parquet")
    assert history.height == history.unique(["snapshot", "table", "model", "tier", "item", "figure"]).height
    assert set(history["snapshot"]) == set(ids) and len(set(ids)) == len(ids)
    return ids
