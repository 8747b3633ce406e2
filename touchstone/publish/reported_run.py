"""The run that is shown: its tables, checks and snapshot, wherever the folder with them is."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.locations import address_of
from touchstone.metrics.keys import without_excluded
from touchstone.storage.files import file_key, parquet_files, refuse_links_out
from touchstone.storage.snapshots import Snapshot, list_snapshots
from touchstone.storage.store import kept_outcomes
from touchstone.tables import TABLES
from touchstone.tables.checks import CheckOutcome
from touchstone.tables.presentation import percent

Row = dict[str, Any]

# Names of output folders that say nothing about the evaluation.
_PLAIN_NAMES = ("results", "my_results", "touchstone-results", "output", "out")


def require_this_version(tables: Path) -> None:
    """Refuse tables of an earlier version, which lack columns: a null instead would be a wrong figure."""
    for name, table in TABLES.items():
        for file in parquet_files(tables / name)[:1]:
            if lacking := table.dtypes.keys() - pl.read_parquet_schema(file).keys():
                raise TouchstoneError(
                    f"{tables.parent}: results of an earlier version (the table {name} has no column {min(lacking)}); "
                    "`touchstone run` brings them up to date"
                )


@dataclass
class ReportedRun:
    """The results in `folder`, which has `tables`. A table that was not made is empty: a gate may have stopped the run.

    The folder may be an output folder, the draft of a run that is being published, or a copy of either.
    """

    folder: Path
    # Links to the attempts that the page shows, by model, tier and problem.
    case_links: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _tables: dict[str, pl.DataFrame] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        refuse_links_out(self.folder, "tables")
        if not (self.folder / "tables").is_dir():
            raise TouchstoneError(f"{self.folder}: no results here; give the output folder of a run")
        require_this_version(self.folder / "tables")

    def scan(self, name: str, models: Iterable[str] | None = None) -> pl.LazyFrame:
        """The contract's columns of a table.

        Of a table that has a file per model, `models` are the only ones that are read.
        """
        dtypes = TABLES[name].dtypes
        files = parquet_files(self.folder / "tables" / name)
        if models is not None:
            wanted = {file_key(model) for model in models}
            files = [file for file in files if file.stem in wanted]
        if not files:
            return pl.LazyFrame(schema=dtypes)
        return pl.scan_parquet(files, glob=False, schema=dtypes, extra_columns="ignore")

    def table(self, name: str) -> pl.DataFrame:
        """All rows of a table that is small enough to be read whole."""
        if name not in self._tables:
            self._tables[name] = self.scan(name).collect()
        return self._tables[name]

    def has(self, name: str) -> bool:
        """Whether there is such a table, in this version and in these results."""
        return name in TABLES and bool(parquet_files(self.folder / "tables" / name))

    @cached_property
    def name(self) -> str:
        """The name of the evaluation: as configured, else that of its output folder or a folder above it."""
        root = self._roots[-1].absolute()
        parts = (address_of(root) or root.as_posix()).split("/")
        folders = [part for part in parts if part and part.lower() not in _PLAIN_NAMES]
        return str(self.settings.get("name") or (folders[-1] if folders else "Evaluation"))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings that the figures depend on, by their dotted keys."""
        return {key: json.loads(value) for key, value in self.table("settings").iter_rows()}

    @property
    def confidence(self) -> str:
        """The confidence level of all intervals, such as `95%`."""
        return percent(float(self.settings.get("intervals.confidence", 0.95)))

    @property
    def alpha(self) -> float:
        """The level of the tests. Intervals that are adjusted for several pairs have the confidence level 1 - alpha."""
        return float(self.settings.get("comparison.alpha", 0.05))

    @cached_property
    def _store(self) -> Path:
        """The folder of the checks: that of the draft, or of the published run."""
        return next((place for place in (self.folder / ".store/current", self.folder) if place.is_dir()), self.folder)

    @cached_property
    def checks(self) -> list[CheckOutcome]:
        """The results of the checks; empty if they were not kept with the tables."""
        return kept_outcomes(self._store)

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that froze these results; None if there is none."""
        shown = self.scan("history").select("snapshot", "made_at").sort("made_at", "snapshot").last().collect()
        found = {each.id: each for root in self._roots for each in list_snapshots(root)}
        return found.get(shown["snapshot"][0]) if shown.height else None

    @property
    def _roots(self) -> tuple[Path, ...]:
        """The folders that may have the snapshots: this one, or in the output folder that a draft belongs to."""
        return (self.folder, self.folder.parent.parent) if self.folder.parent.name == ".store" else (self.folder,)

    @cached_property
    def outcome_counts(self) -> pl.DataFrame:
        """How many attempts that count ended how, per model and tier: status, passed, validator, fidelity and `len`."""
        keys = ("model", "tier", "status", "passed", "validator", "fidelity")
        return without_excluded(self.scan("outcomes")).group_by(keys).len().sort(keys).collect(engine="streaming")

    @cached_property
    def has_tiers(self) -> bool:
        """Whether there is more than one tier."""
        return self.table("pass_at_k")["tier"].n_unique() > 1

    def side_name(self, model: str, tier: str) -> str:
        """A model, with its tier if there are several."""
        return f"{model} {tier}" if self.has_tiers else model

    @cached_property
    def sides(self) -> list[tuple[str, str]]:
        """Every model and tier, best first by pass@k of the smallest k."""
        rows = self.table("pass_at_k")
        best_first = rows.filter(pl.col("k") == pl.col("k").min()).sort(
            "pass_at_k", "model", "tier", descending=[True, False, False], nulls_last=True
        )
        return [(model, tier) for model, tier in best_first.select("model", "tier").iter_rows()]
