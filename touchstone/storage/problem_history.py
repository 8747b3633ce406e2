"""The table `problem_history`: every problem's figures in every snapshot, so that SQL can ask when a case got worse.

Each snapshot is a part of its own, written once, because a snapshot never changes: a run adds one file, however many
snapshots there are. Figures per model and tier over time are in `history`, which `freezing` makes.
"""

import polars as pl

from touchstone.contracts import TABLES
from touchstone.storage.snapshots import Snapshot, list_snapshots
from touchstone.storage.store import Part, Store, digest

TABLE = "problem_history"
_SOURCE = "problem_statistics"


def update_problem_history(store: Store) -> dict[str, Part]:
    """Add the snapshots that are missing, and forget those that were removed; returns the parts by snapshot."""
    snapshots = list_snapshots(store.root)
    store.keep_parts(TABLE, [snapshot.id for snapshot in snapshots])
    return {snapshot.id: _part(store, snapshot) for snapshot in snapshots}


def _part(store: Store, snapshot: Snapshot) -> Part:
    fingerprint = digest([snapshot.id, snapshot.fingerprint, {name: str(kind) for name, kind in _schema().items()}])
    current = store.current(TABLE, fingerprint, snapshot.id)
    return current or store.write(TABLE, _figures(snapshot), fingerprint, snapshot.id)


def _figures(snapshot: Snapshot) -> pl.LazyFrame:
    """The figures of one snapshot; what an older version did not keep is null."""
    files = sorted((snapshot.tables / _SOURCE).glob("*.parquet"))
    if not files:
        return pl.LazyFrame(schema=_schema())
    rows = pl.concat([pl.scan_parquet(file, glob=False) for file in files], how="diagonal")
    present = rows.collect_schema()
    kept = [name for name in _schema() if name in present]
    missing = [pl.lit(None).alias(name) for name in ("avg_score", "best_score") if name not in present]
    return rows.select(
        pl.lit(snapshot.id).alias("snapshot"),
        pl.lit(snapshot.made_at).alias("made_at"),
        *kept,
        *missing,
        pl.when(pl.col("n") > 0).then(pl.col("c") / pl.col("n")).alias("pass_rate"),
    ).sort("model", "tier", "oid")


def _schema() -> pl.Schema:
    return TABLES[TABLE].dtypes
