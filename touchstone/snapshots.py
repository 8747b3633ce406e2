"""Snapshots: what a finished run found, frozen under `snapshots/<id>/` of the output folder, so that any two compare.

```
snapshots/<id>/tables/<table>/*.parquet   hard links to the run's tables, without the texts of fixes
snapshots/<id>/manifest.json              when, from which config and inputs, by which versions
snapshots/<id>/figures.parquet            its figures per model and tier in long form, for the table `history`
snapshots/pins.json                       names that people gave
```

A snapshot is made under another name and renamed, never written again, and removed only by command. Comparing two
of them belongs in `touchstone.metrics`.
"""

import json
import platform
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import polars.selectors as cs

from touchstone import __version__
from touchstone.contracts import TABLES, Table
from touchstone.errors import TouchstoneError
from touchstone.files import link_or_copy, replacing
from touchstone.ingest.sources import check_name
from touchstone.store import Store, digest

FOLDER = "snapshots"
_MANIFEST, _PINS, _FIGURES = "manifest.json", "pins.json", "figures.parquet"
# Tables that hold the texts of fixes, that no comparison needs, or that speak of another snapshot.
_LEFT_OUT = ("attempts", "outcomes", "quarantine", "baseline_verdicts", "regressions", "history")
RESERVED = ("latest", "previous")


@dataclass(frozen=True)
class Snapshot:
    """A frozen run. `fingerprint` is the same for two runs that made the same tables."""

    id: str
    made_at: str
    fingerprint: str
    config_hash: str
    inputs: Mapping[str, str]
    versions: Mapping[str, str]
    rows: Mapping[str, int]
    folder: Path = field(compare=False)

    @property
    def tables(self) -> Path:
        """Where its tables lie."""
        return self.folder / "tables"


def freeze(store: Store, config_hash: str, inputs: Mapping[str, str], validators: Sequence[str]) -> Snapshot:
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
    made = Snapshot(identity, made_at, fingerprint, config_hash, dict(inputs), _versions(validators), rows, folder)
    manifest = {name: value for name, value in asdict(made).items() if name != "folder"}
    (scratch / _MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True))
    scratch.rename(folder)
    return made


def list_snapshots(root: Path) -> list[Snapshot]:
    """All snapshots of an output folder, oldest first. A folder without a readable manifest is none."""
    found = []
    for manifest in sorted((root / FOLDER).glob(f"*/{_MANIFEST}")):
        try:
            told = json.loads(manifest.read_text())
            found.append(Snapshot(folder=manifest.parent, **told))
        except (OSError, ValueError, TypeError):
            continue
    return sorted(found, key=lambda snapshot: (snapshot.made_at, snapshot.id))


def find(root: Path, name: str) -> Snapshot:
    """A snapshot by its id or the beginning of it, as `latest` or `previous`, or by a pinned name."""
    snapshots = list_snapshots(root)
    if not snapshots:
        raise TouchstoneError(f"{root}: there are no snapshots; every finished `touchstone run` makes one")
    if name in RESERVED:
        place = -1 if name == "latest" else -2
        if len(snapshots) < -place:
            raise TouchstoneError(f"{root}: there is only one snapshot, so there is no previous one")
        return snapshots[place]
    wanted = pins(root).get(name, name)
    matching = [snapshot for snapshot in snapshots if snapshot.id.startswith(wanted)]
    if len(matching) != 1:
        what = "no snapshot or pin" if not matching else "more than one snapshot"
        raise TouchstoneError(f"{root}: {what} is called '{name}'; see `touchstone snapshots list --data {root}`")
    return matching[0]


def pins(root: Path) -> dict[str, str]:
    """Pinned names and the ids that they stand for."""
    try:
        told = json.loads((root / FOLDER / _PINS).read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise TouchstoneError(f"{root / FOLDER / _PINS}: cannot be read ({error})") from None
    return {str(name): str(identity) for name, identity in told.items()}


def pin(root: Path, which: str, name: str) -> Snapshot:
    """Give a snapshot a name, or move the name to it."""
    if check_name(name, "pin") in RESERVED:
        raise TouchstoneError(f"'{name}' always means what it says; choose another name")
    snapshot = find(root, which)
    with replacing(root / FOLDER / _PINS) as scratch:
        scratch.write_text(json.dumps({**pins(root), name: snapshot.id}, indent=1, sort_keys=True))
    return snapshot


def prune(root: Path, keep: int) -> list[str]:
    """Remove all but the newest and the pinned ones; returns the ids that are gone."""
    pinned = set(pins(root).values())
    snapshots = list_snapshots(root)
    old = snapshots[: len(snapshots) - keep] if keep else snapshots
    gone = [snapshot for snapshot in old if snapshot.id not in pinned]
    for snapshot in gone:
        shutil.rmtree(snapshot.folder)
    return [snapshot.id for snapshot in gone]


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


def _versions(validators: Sequence[str]) -> dict[str, Any]:
    return {
        "touchstone": __version__,
        "python": platform.python_version(),
        "polars": pl.__version__,
        "duckdb": duckdb.__version__,
        "validators": "; ".join(validators),
    }
