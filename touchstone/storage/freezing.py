"""Making snapshots: a finished run's tables kept, and the history of every figure over all of them.

A snapshot is made under another name and renamed, and never written again. Finding one is in `snapshots`.
"""

import json
import platform
import shutil
import time
from dataclasses import asdict
from pathlib import Path

import duckdb
import polars as pl
import polars.selectors as cs

from touchstone import __version__
from touchstone.compare.validation_differences import validators_used
from touchstone.contracts import TABLES, Table
from touchstone.storage.files import link_or_copy, replacing
from touchstone.storage.snapshots import FOLDER, MANIFEST, Snapshot, list_snapshots
from touchstone.storage.store import Store, digest

_FIGURES = "figures.parquet"
# Tables whose parts are made from input files.
_READ_FROM_FILES = ("problems", "attempts")
# Tables that hold the texts of fixes, that no comparison needs, or that speak of another snapshot.
_LEFT_OUT = (
    "attempts",
    "outcomes",
    "quarantine",
    "baseline_verdicts",
    "regressions",
    "regression_counts",
    "history",
    "problem_history",
)


def freeze(store: Store, config_hash: str) -> Snapshot:
    """Keep the run's tables. A run that made the same as the last one is that one."""
    tables = [name for name in TABLES if name not in _LEFT_OUT]
    fingerprint = digest([config_hash, {name: store.fingerprint(name) for name in tables}])
    last = next(iter(reversed(list_snapshots(store.root))), None)
    if last is not None and last.fingerprint == fingerprint:
        return last
    now = time.time()
    made_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    identity = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{fingerprint[:8]}"
    folder = store.root / FOLDER / identity
    scratch = folder.with_name(f".{identity}.tmp")
    shutil.rmtree(scratch, ignore_errors=True)
    rows = {name: _link_table(store, name, scratch / "tables" / name) for name in tables}
    validation = validators_used(store.scan("outcomes"))
    made = Snapshot(
        id=identity,
        folder=folder,
        made_at=made_at,
        fingerprint=fingerprint,
        config_hash=config_hash,
        inputs=store.inputs(*_READ_FROM_FILES),
        versions=_versions(validation),
        rows=rows,
        validation=validation.to_dicts(),
    )
    manifest = {name: value for name, value in asdict(made).items() if name != "folder"}
    (scratch / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True))
    scratch.rename(folder)
    return made


def history(root: Path) -> pl.LazyFrame:
    """Every figure of a model and tier in every snapshot, in long form."""
    parts = [_kept_figures(snapshot) for snapshot in list_snapshots(root)]
    return pl.concat([pl.LazyFrame(schema=TABLES["history"].dtypes), *parts])


def _kept_figures(snapshot: Snapshot) -> pl.LazyFrame:
    """A snapshot's figures, which are gathered once: it never changes."""
    path = snapshot.folder / _FIGURES
    if not path.is_file():
        with replacing(path) as scratch:
            _figures(snapshot).write_parquet(scratch)
    return pl.scan_parquet(path, glob=False)


def _figures(snapshot: Snapshot) -> pl.DataFrame:
    empty = pl.DataFrame(schema=TABLES["history"].dtypes)
    # Figures of single problems and attempts would be most of it; they are compared, not plotted.
    told = [table for table in TABLES.values() if {"model", "tier"} <= set(table.key) and "oid" not in table.key]
    return pl.concat([empty, *(_long(snapshot, table) for table in told if table.name not in _LEFT_OUT)])


def _long(snapshot: Snapshot, table: Table) -> pl.DataFrame:
    files = sorted((snapshot.tables / table.name).glob("*.parquet"))
    if not files:
        return pl.DataFrame(schema=TABLES["history"].dtypes)
    rows = pl.concat([pl.read_parquet(file, glob=False) for file in files], how="diagonal")
    others = [pl.col(name).cast(pl.String) for name in table.key if name not in ("model", "tier")]
    item = pl.concat_str(others, separator=" ", ignore_nulls=True) if others else pl.lit("")
    figures = rows.select(~cs.by_name(table.key) & cs.numeric()).columns
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


def _link_table(store: Store, table: str, target: Path) -> int:
    rows = 0
    target.parent.mkdir(parents=True, exist_ok=True)
    for part in store.parts(table):
        made = store.part(table, part)
        assert made is not None
        link_or_copy(made.path, target / made.path.name)
        rows += made.rows
    return rows


def _versions(validation: pl.DataFrame) -> dict[str, str]:
    named = validation.select("validator", "validator_version").unique().sort("validator", "validator_version")
    validators = [" ".join(part for part in row if part) for row in named.iter_rows()]
    return {
        "touchstone": __version__,
        "python": platform.python_version(),
        "polars": pl.__version__,
        "duckdb": duckdb.__version__,
        "validators": "; ".join(validators),
    }
