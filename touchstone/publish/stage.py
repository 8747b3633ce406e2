"""The publish stage: the tables of a finished run become a snapshot, a summary and a warehouse, switched in at once."""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.config import EvaluationConfig
from touchstone.errors import shown
from touchstone.publish.csv_files import write_model_csvs, write_summary
from touchstone.publish.warehouse import Warehouse, publish_warehouse
from touchstone.storage.batches import batches
from touchstone.storage.code_version import table_code_version
from touchstone.storage.history import failure_modes, history, update_problem_history
from touchstone.storage.run_log import PART as RUNS
from touchstone.storage.run_log import TABLE as RUN_LOG
from touchstone.storage.run_log import RunLog
from touchstone.storage.snapshots import Snapshot, create_snapshot, list_snapshots, pins
from touchstone.storage.store import SUMMARY, WAREHOUSE, Part, Store, digest
from touchstone.tables import TABLES
from touchstone.validation.validators_used import SCHEMA as VALIDATORS
from touchstone.validation.validators_used import validators_used

# Paths, retention, worker counts and gates do not affect figures; of `validation`, a part does.
_LEFT_OUT = {"fixes_dir", "output_dir", "rulings", "publish", "retention", "validation", "workers", "gates", "alerts"}


@dataclass
class PublishStage:
    """Writes to the draft what people read, and publishes it. `snapshot` is that of this run, once there is one."""

    config: EvaluationConfig
    store: Store
    log: RunLog
    snapshot: Snapshot | None = None

    def summary(self) -> pl.DataFrame:
        """The summary CSV, one row per model."""
        self.store.require("pass_at_k")
        return write_summary(self.store.scan("pass_at_k").collect(), self.store.draft / SUMMARY)

    def model_csvs(self) -> list[str]:
        """Outcomes and pass@k of every model as CSV files."""
        self.store.require("outcomes", "pass_at_k")
        return write_model_csvs(self.store, self.config.publish.csv)

    def report(self) -> Path | None:
        """The report on the run; None if it is not wanted, or could not be drawn, which loses no results."""
        # By its name: no table depends on the code of the report, which an import here would make it seem.
        stage = import_module("touchstone.publish.report.stage")
        with self.log.step("report") as step:
            page: Path | None = stage.write_report(self.store, self.config.publish, self.version())
            step.bytes = None if page is None else page.stat().st_size
        return page

    def history(self) -> Part:
        """Every figure of every snapshot. Making it freezes the run as a snapshot first."""
        settings = self.config.model_dump(mode="json", exclude=_LEFT_OUT)
        settings["validation"] = self.config.validation.model_dump(
            mode="json", exclude={"workers", "cache_dir", "environments_dir", "kept_characters"}
        )
        # The same on every machine, also if it is a local copy of an object.
        settings["problems_csv"] = settings["problems_csv"] and shown(settings["problems_csv"])
        self.snapshot = create_snapshot(self.store, settings, self._validators())
        fingerprint = digest(["history", self._kept, table_code_version("history")])
        current = self.store.current("history", fingerprint)
        return current or self.store.write("history", history(self.store, self._snapshots), fingerprint)

    @cached_property
    def _snapshots(self) -> list[Snapshot]:
        """All snapshots; this run is one by now."""
        return list_snapshots(self.store.root)

    @property
    def _kept(self) -> list[str]:
        return [snapshot.id for snapshot in self._snapshots]

    @cached_property
    def _trends(self) -> Any:
        # By its name, as above: its code matters to these two tables alone, which declare it.
        series, root = import_module("touchstone.trends.series"), self.store.root
        return series.find_trends(self.store.scan("history"), self._snapshots, pins(root))

    def trends(self) -> Part:
        """The headline figures of every snapshot with their intervals, as lines to draw."""
        made_from = [self.store.fingerprint("history"), pins(self.store.root), table_code_version("trends")]
        current = self.store.current("trends", fingerprint := digest(["trends", *made_from]))
        return current or self.store.write("trends", self._trends.trends.lazy(), fingerprint)

    def change_points(self) -> Part:
        """Changes in the level of a headline figure, by how much, and what else changed then."""
        fingerprint = digest(["change_points", self.store.fingerprint("trends")])
        current = self.store.current("change_points", fingerprint)
        return current or self.store.write("change_points", self._trends.change_points.lazy(), fingerprint)

    def _validators(self) -> pl.DataFrame:
        """Every validator that decided an attempt, per model and tier."""
        rows = {model: part.rows for model, part in self.store.all_parts("outcomes").items()}
        used = [validators_used(self.store.scan("outcomes", batch)) for batch in batches(rows)]
        return pl.concat([pl.DataFrame(schema=VALIDATORS), *used]).sort(list(VALIDATORS))

    def failure_modes(self) -> Part:
        """Every way in which attempts of this run or of a snapshot fail. The run is a snapshot by now."""
        read = [self.store.fingerprint(table) for table in ("failures", "failure_changes")]
        fingerprint = digest(["failure_modes", self._kept, read, table_code_version("failure_modes")])
        current = self.store.current("failure_modes", fingerprint)
        if current is not None:
            return current
        failures, changes = (self.store.scan(table).collect() for table in ("failures", "failure_changes"))
        modes = failure_modes(self._snapshots, failures, changes)
        return self.store.write("failure_modes", modes.lazy(), fingerprint)

    def problem_history(self) -> dict[str, Part]:
        """Every problem's figures in every snapshot."""
        return update_problem_history(self.store, self._snapshots)

    def run_log(self) -> Part:
        """Time and memory of each step of each run, as far as this run has got."""
        self.log.snapshot = self.snapshot.id if self.snapshot is not None else ""
        return self.store.write(RUN_LOG, self.log.table().lazy(), self.log.run_id, RUNS)

    def version(self) -> str:
        """A digest of every table of a published run but the run log."""
        return digest({table: self.store.fingerprint(table) for table in TABLES if table != RUN_LOG})

    def all(self) -> Warehouse:
        """Write the CSV files and publish the run."""
        self.summary()
        self.model_csvs()
        self.report()
        return self.publish()

    def publish(self) -> Warehouse:
        """Replace tables, CSV files and the DuckDB file, if it is wanted, in the output folder in one step."""
        made = Warehouse([], {})

        def fill(generation: Path) -> None:
            nonlocal made
            path, tables, last = generation / WAREHOUSE, generation / "tables", self.store.root / WAREHOUSE
            if self.config.publish.warehouse:
                made = publish_warehouse(path, tables, last, self.version(), self._too_large())

        with self.log.step("warehouse") as step:
            file = self.store.publish(fill) / WAREHOUSE
            step.bytes = file.stat().st_size if file.exists() else None
        return made

    def _too_large(self) -> dict[str, int]:
        """The row counts of the tables that are too large for the warehouse."""
        rows = {table: sum(part.rows for part in self.store.all_parts(table).values()) for table in TABLES}
        return {table: count for table, count in rows.items() if count > self.config.publish.warehouse_max_rows}
