"""The tables of one run as the dashboard reads them: those that an output folder publishes, or those of a snapshot."""

import json
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.config import EvaluationConfig
from touchstone.metrics.keys import MODEL_TIER
from touchstone.publish.export import scan_table
from touchstone.publish.views import require_tables, table_files
from touchstone.storage.files import refuse_links_out
from touchstone.storage.snapshots import list_snapshots, pins
from touchstone.tables import TABLES

# Columns of a problem that are no slices: its names, and what has a filter of its own.
_NOT_SLICES = TABLES["problems"].dtypes.keys() - {"cluster"}
# A list of more values helps nobody; SQL can group by any column.
_MOST_VALUES = 200


class RunTables:
    """The tables in the folder of a run or snapshot. What every filter needs is read once and stays in memory."""

    def __init__(self, folder: Path) -> None:
        refuse_links_out(folder, "tables")
        # `tables` is a link that the next run replaces; resolved once, so that all tables come from the same run.
        self.folder, self.tables = folder, (folder / "tables").resolve()
        require_tables(self.tables)

    @property
    def is_current(self) -> bool:
        """Whether no later run has replaced these tables."""
        return (self.folder / "tables").resolve() == self.tables and self.tables.is_dir()

    def scan(self, table: str) -> pl.LazyFrame:
        """A table of the run; an error if the run has none of that name."""
        return scan_table(self.tables, table)

    def has(self, table: str) -> bool:
        """Whether the run has the table: snapshots leave out those with the texts of fixes."""
        return table in table_files(self.tables)

    @cached_property
    def problems(self) -> pl.DataFrame:
        """The table `problems`."""
        return self.scan("problems").collect()

    @cached_property
    def problem_scores(self) -> pl.DataFrame:
        """The table `problem_scores`: a row per problem, from which most figures can be made again."""
        return self.scan("problem_scores").collect()

    @cached_property
    def groups(self) -> list[tuple[str, str]]:
        """Every model and tier, sorted, even those that attempted nothing."""
        rows = self.scan("pass_at_k").select(MODEL_TIER).unique().sort(MODEL_TIER).collect()
        return [(str(model), str(tier)) for model, tier in rows.iter_rows()]

    @property
    def models(self) -> list[str]:
        """The models by name."""
        return sorted({model for model, _ in self.groups})

    @property
    def tiers(self) -> list[str]:
        """The tiers by name."""
        return sorted({tier for _, tier in self.groups})

    @cached_property
    def suites(self) -> list[str]:
        """The suites of problems and of attempts by name."""
        return sorted({*self.problems["suite"], *self.problem_scores["suite"]})

    @cached_property
    def slices(self) -> dict[str, list[str | None]]:
        """The values of every problem column that divides the problems, None last."""
        found = {}
        for name in self.problems.columns:
            values = self.problems[name].unique()
            # A column whose values hardly repeat, such as a description, divides nothing.
            few = 1 < len(values) <= min(_MOST_VALUES, max(2, self.problems.height // 2))
            if few and name not in _NOT_SLICES:
                found[name] = [*sorted(map(str, values.drop_nulls())), *([None] if values.null_count() else [])]
        return found

    @cached_property
    def config(self) -> EvaluationConfig:
        """The settings that the figures depend on; paths are not among them."""
        nested: dict[str, Any] = {"fixes_dir": ".", "output_dir": "."}
        for key, value in self.scan("settings").collect().iter_rows():
            section = nested
            *path, name = str(key).split(".")
            for part in path:
                section = section.setdefault(part, {})
            section[name] = json.loads(value)
        return EvaluationConfig.model_validate(nested)


def run_folders(data: Path) -> dict[str, Path]:
    """The folders of everything that can be shown, newest first, by the name to show: the published run, snapshots."""
    names: dict[str, list[str]] = {}
    for pin, identity in pins(data).items():
        names.setdefault(identity, []).append(pin)
    snapshots = {
        " ".join([snapshot.id, *(f"({pin})" for pin in sorted(names.get(snapshot.id, [])))]): snapshot.folder
        for snapshot in reversed(list_snapshots(data))
    }
    return {"published run": data, **snapshots}


def open_run(folder: Path) -> RunTables:
    """The tables in a folder as they are now; the same object for all pages until the next run replaces them."""
    return _opened(folder, (folder / "tables").resolve())


@lru_cache(maxsize=4)
def _opened(folder: Path, tables: Path) -> RunTables:
    return RunTables(folder)
