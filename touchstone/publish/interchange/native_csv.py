"""Results as Touchstone's own input: `problems.csv` and `<model>_fixes.csv`, which evaluate to the same outcomes.

Cells are exactly what the run read, also those that a spreadsheet would take for a formula.
"""

from pathlib import Path

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.ingest.sources import model_of
from touchstone.names import file_key
from touchstone.publish.interchange.results import STATUS, Run
from touchstone.vocabulary import PASS_CLASS

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
