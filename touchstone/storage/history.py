"""The tables `history`, `problem_history` and `failure_modes`: what every snapshot holds, to query what changed when.

`history` has the figures per model and tier in long form. `problem_history` has a part per snapshot, written once
because a snapshot never changes: a run adds one file, however many snapshots there are.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import polars as pl
import polars.selectors as cs

from touchstone.errors import TouchstoneError, explain
from touchstone.storage.files import file_key, parquet_files, read_kept
from touchstone.storage.snapshots import Snapshot
from touchstone.storage.store import Part, Store, digest
from touchstone.tables import TABLES, Table

_PROBLEM_HISTORY = "problem_history"
_SOURCE = "problem_statistics"


def history(store: Store, snapshots: Sequence[Snapshot]) -> pl.LazyFrame:
    """Every figure of a model and tier in every snapshot, in long form.

    A snapshot never changes, so the published table has the rows of all but the newest.
    """
    schema = TABLES["history"].dtypes
    published = store.current_link / "tables" / "history" / f"{file_key('history')}.parquet"
    known = read_kept(published, schema)
    rows = {} if known is None else known.partition_by("snapshot", as_dict=True)
    parts = [rows[each.id,] if (each.id,) in rows else _gather_figures(each) for each in snapshots]
    return pl.concat([pl.DataFrame(schema=schema), *parts]).lazy()


def _gather_figures(snapshot: Snapshot) -> pl.DataFrame:
    empty = pl.LazyFrame(schema=TABLES["history"].dtypes)
    # Figures per problem or attempt would dominate the table; they are compared, not plotted.
    plotted = [
        table
        for table in TABLES.values()
        if table.in_snapshots and {"model", "tier"} <= set(table.key) and "oid" not in table.key
    ]
    with _named_if_damaged(snapshot):
        return pl.concat([empty, *(_long(snapshot, table) for table in plotted)]).collect()


def _long(snapshot: Snapshot, table: Table) -> pl.LazyFrame:
    files = parquet_files(snapshot.tables / table.name)
    if not files:
        return pl.LazyFrame(schema=TABLES["history"].dtypes)
    rows = pl.concat([pl.scan_parquet(file, glob=False) for file in files], how="diagonal")
    others = [pl.col(name).cast(pl.String) for name in table.key if name not in ("model", "tier")]
    item = pl.concat_str(others, separator=" ", ignore_nulls=True) if others else pl.lit("")
    figures = rows.select(~cs.by_name(table.key) & cs.numeric()).collect_schema().names()
    keyed = rows.select("model", "tier", pl.col(figures).cast(pl.Float64), __item=item)
    return (
        keyed.unpivot(figures, index=["model", "tier", "__item"], variable_name="figure", value_name="value")
        .select(
            pl.lit(snapshot.id).alias("snapshot"),
            pl.lit(snapshot.made_at).alias("made_at"),
            pl.lit(table.name).alias("table"),
            "model",
            "tier",
            pl.col("__item").alias("item"),
            "figure",
            "value",
        )
        .sort("model", "tier", "item", "figure")
    )


def failure_modes(snapshots: Sequence[Snapshot], failures: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """The table `failure_modes`, the most common first; modes of earlier snapshots alone have no attempts."""
    frames = [pl.DataFrame(schema={"fingerprint": pl.String, "example": pl.String, "snapshot": pl.String})]
    for snapshot in snapshots:
        # The manifest says which snapshots have any, so that the others cost nothing.
        if snapshot.rows.get("failures"):
            with _named_if_damaged(snapshot):
                rows = pl.read_parquet(parquet_files(snapshot.tables / "failures"), columns=["fingerprint", "example"])
                modes = rows.group_by("fingerprint").agg(pl.col("example").min(), snapshot=pl.lit(snapshot.id))
            frames.append(modes)
    # Snapshots are in the order of time, and the last of them is this run.
    spans = pl.concat(frames).group_by("fingerprint", maintain_order=True)
    found = spans.agg(
        pl.col("example").last(), first_snapshot=pl.col("snapshot").first(), last_snapshot=pl.col("snapshot").last()
    )
    now = failures.group_by("fingerprint").agg(
        pl.col("attempts").sum(), problems=pl.col("oid").n_unique(), models=pl.col("model").n_unique()
    )
    rows = found.join(now, on="fingerprint", how="left").join(changes.drop("example"), on="fingerprint", how="left")
    counts = pl.col("attempts", "problems", "models").fill_null(0).cast(pl.Int64)
    return (
        rows.with_columns(counts)
        .select(TABLES["failure_modes"].dtypes.names())
        .sort(-pl.col("attempts"), "fingerprint")
    )


def update_problem_history(store: Store, snapshots: Sequence[Snapshot]) -> dict[str, Part]:
    """Add missing snapshots and drop removed ones; returns the parts by snapshot."""
    store.remove_other_parts(_PROBLEM_HISTORY, [snapshot.id for snapshot in snapshots])
    return {snapshot.id: _problem_part(store, snapshot) for snapshot in snapshots}


def _problem_part(store: Store, snapshot: Snapshot) -> Part:
    fingerprint = digest([snapshot.id, snapshot.fingerprint, {name: str(kind) for name, kind in _schema().items()}])
    current = store.current(_PROBLEM_HISTORY, fingerprint, snapshot.id)
    if current is not None:
        return current
    with _named_if_damaged(snapshot):
        return store.write(_PROBLEM_HISTORY, _problem_figures(snapshot), fingerprint, snapshot.id)


@contextmanager
def _named_if_damaged(snapshot: Snapshot) -> Iterator[None]:
    """Say which snapshot to delete if its tables cannot be read."""
    try:
        yield
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        message = " ".join(str(error).split())[:200]
        raise TouchstoneError(
            explain(message)
            or f"{snapshot.folder}: a table of this snapshot is damaged ({message}); delete the folder and run again"
        ) from None


def _problem_figures(snapshot: Snapshot) -> pl.LazyFrame:
    """The figures of one snapshot; columns that an older version did not store are null."""
    files = parquet_files(snapshot.tables / _SOURCE)
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
    return TABLES[_PROBLEM_HISTORY].dtypes
