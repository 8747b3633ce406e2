"""What every format starts from, the folder that it ends in, and Touchstone's own formats: its input and its files."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.ingest.sources import model_of
from touchstone.metrics.counting import without_excluded
from touchstone.names import file_key
from touchstone.publish.export import scan_table
from touchstone.publish.formats import saving_folder
from touchstone.storage.files import table_file
from touchstone.storage.snapshots import FOLDER
from touchstone.storage.store import PUBLISHED_NAMES
from touchstone.vocabulary import PASS_CLASS

KEY = ["model", "tier", "oid", "iteration_id"]
STATUS = "outcome_status"


@dataclass(frozen=True)
class Run:
    """The published tables of a run."""

    tables_dir: Path

    def rows(self, model: str | None = None) -> pl.LazyFrame:
        """Every attempt with the outcome that counts, which validation may have found, in order of its key."""
        attempts = self._scan("attempts", model).drop("passed")
        outcomes = without_excluded(self._scan("outcomes", model)).select(
            *KEY, "passed", pl.col("status").alias(STATUS)
        )
        number = pl.col("iteration_id").cast(pl.Int64, strict=False)
        return attempts.join(outcomes, on=KEY).sort("model", "tier", "oid", number, "iteration_id")

    def _scan(self, table: str, model: str | None) -> pl.LazyFrame:
        """A table, or only the part of one model: with a thousand models, each is looked up in its own file."""
        if model is None:
            return scan_table(self.tables_dir, table)
        return pl.scan_parquet(table_file(self.tables_dir / table / f"{file_key(model)}.parquet"), glob=False)

    def models(self) -> list[str]:
        """The models that have attempts."""
        names = scan_table(self.tables_dir, "attempts", ["model"]).unique().collect(engine="streaming")
        return names["model"].sort().to_list()

    def table(self, name: str) -> pl.LazyFrame:
        """Any other table of the run."""
        return scan_table(self.tables_dir, name)


# Writes the files of one format into an empty folder, and says what a user should know about them.
Writer = Callable[[Run, Path], list[str]]


def save_folder(run: Run, path: Path, write: Writer) -> list[str]:
    """Write a folder atomically: beside its place first, renamed when it is complete. Returns the notes."""
    with saving_folder(path) as scratch:
        return write(run, scratch)


def undecided_note(undecided: int, total: int, what: str) -> list[str]:
    """A note on the attempts that a format cannot express."""
    return [f"{undecided:,} of {total:,} attempts are undecided; {what}"] if undecided else []


_NEEDED = ("oid", "iteration_id", "tier", "suite", "passed")
# Made by reading; an input has no such columns.
_MADE = ("model", "fix_sha", STATUS)


def write_native_csv(run: Run, folder: Path) -> list[str]:
    """Write the problems and one fixes file per model."""
    run.table("problems").sink_csv(folder / "problems.csv")
    for model in run.models():
        name = f"{file_key(model)}_fixes.csv"
        if model_of(Path(name)) != model:
            raise TouchstoneError(f"the model '{model}' cannot be named in a CSV file's name; export another format")
        rows = _as_input(run.rows(model))
        filled = rows.select(pl.all().count() > 0).collect(engine="streaming").row(0, named=True)
        kept = [column for column, has_values in filled.items() if has_values]
        rows.select(*dict.fromkeys([*_NEEDED, *kept])).sink_csv(folder / name)
    return []


def _as_input(rows: pl.LazyFrame) -> pl.LazyFrame:
    """A class that contradicts the outcome would be refused; without an outcome, other columns must not imply one."""
    is_pass = pl.col("classification") == PASS_CLASS
    return rows.drop(_MADE).with_columns(
        pl.when(is_pass == pl.col("passed")).then("classification").alias("classification"),
        pl.when(pl.col("passed").is_not_null()).then("compiled").alias("compiled"),
    )


def write_published_files(run: Run, folder: Path) -> list[str]:
    """Copy every published file. The copy can be read, compared and queried, but a run in it starts from scratch."""
    results = run.tables_dir.parent
    for name in (*PUBLISHED_NAMES, FOLDER):
        # Not what is still being written, such as an unfinished snapshot.
        if (results / name).is_dir():
            shutil.copytree(results / name, folder / name, ignore=shutil.ignore_patterns(".*"))
        elif (results / name).is_file():
            shutil.copy2(results / name, folder / name)
    return []
