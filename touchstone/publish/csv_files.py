"""CSV files, safe to open in a spreadsheet: any table, the summary, and two files per model.

The summary has one row per model (and tier), one column per k. `<model>_outcomes.csv` has one row per attempt and,
renamed to `<model>_fixes.csv`, can itself be evaluated; `<model>_pass_at_k.csv` has the model's rows of the summary.
Both are written to the draft and published with the tables; a file whose tables did not change is not rewritten.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from touchstone.regular_files import read_json_object
from touchstone.storage.files import FORMULA_STARTS, file_key, file_mark, is_as_written, replacing, spreadsheet_safe
from touchstone.vocabulary import OUTCOMES_CSV_COLUMNS

if TYPE_CHECKING:
    from touchstone.storage.store import Store

_PIECE = 2**20


def safe_for_spreadsheets(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Prefix text cells and column names that a spreadsheet would run as a formula.

    >>> safe_for_spreadsheets(pl.LazyFrame({"a": ["=1+1", "x"], "b": [-1, 2]})).collect().rows()
    [("'=1+1", -1), ('x', 2)]
    """
    columns = frame.collect_schema()
    cells = [_safe_text(name) if dtype == pl.String else pl.col(name) for name, dtype in columns.items()]
    return frame.select(cell.alias(spreadsheet_safe(name)) for name, cell in zip(columns, cells, strict=True))


def write_csv(frame: pl.LazyFrame, path: Path) -> None:
    """Write a CSV file atomically. Infinity is `inf`, null an empty cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as scratch:
        safe_for_spreadsheets(frame).sink_csv(scratch)


def csv_text(frame: pl.LazyFrame) -> str:
    """The content of the CSV file that `write_csv` would write."""
    return safe_for_spreadsheets(frame).collect(engine="streaming").write_csv()


def csv_pieces(frame: pl.LazyFrame) -> Iterator[str]:
    """The same in pieces, for tables that are larger than memory."""
    with tempfile.TemporaryDirectory(prefix="touchstone-") as folder:
        file = Path(folder, "rows.csv")
        write_csv(frame, file)
        with file.open(encoding="utf-8", newline="") as text:
            while piece := text.read(_PIECE):
                yield piece


def _safe_text(name: str) -> pl.Expr:
    text = pl.col(name)
    return pl.when(text.str.slice(0, 1).is_in(FORMULA_STARTS)).then(pl.lit("'") + text).otherwise(text)


def summary(pass_at_k: pl.DataFrame) -> pl.DataFrame:
    """`LLM, pass@1, …, attempted, problems` and the intervals that the table has; `tier` only if there are several.

    >>> row = {"model": "m", "tier": "T0", "k": 1, "pass_at_k": .5, "ci_low": .4, "ci_high": .6,
    ...        "ci_method": "wilson", "ci_units": 9, "attempted": 9, "problems": 10}
    >>> summary(pl.DataFrame([row])).columns[-4:]
    ['pass@1_ci_low', 'pass@1_ci_high', 'pass@1_ci_method', 'pass@1_ci_units']
    """
    return _without_single_tier(_by_tier(pass_at_k))


def summaries(pass_at_k: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The summary of each model by itself, all made at once: one by one takes milliseconds each."""
    return {
        str(model): _without_single_tier(rows)
        for (model,), rows in _by_tier(pass_at_k).partition_by("LLM", as_dict=True, maintain_order=True).items()
    }


def _without_single_tier(rows: pl.DataFrame) -> pl.DataFrame:
    return rows if rows["tier"].n_unique() > 1 else rows.drop("tier")


def _by_tier(pass_at_k: pl.DataFrame) -> pl.DataFrame:
    ks = pass_at_k["k"].unique().sort().to_list()
    ends = [("low", "high"), ("method", "units")] if "ci_low" in pass_at_k.columns else []

    def at(k: int, column: str) -> pl.Expr:
        return pl.col(column).filter(pl.col("k") == k).first()

    return (
        pass_at_k.lazy()
        .group_by("model", "tier")
        .agg(
            *(at(k, "pass_at_k").alias(f"pass@{k}") for k in ks),
            pl.col("attempted", "problems").first(),
            *(at(k, f"ci_{end}").alias(f"pass@{k}_ci_{end}") for pair in ends for k in ks for end in pair),
        )
        .sort("model", "tier")
        .rename({"model": "LLM"})
        .collect()
    )


def write_summary(pass_at_k: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Write the summary CSV atomically, and return the table."""
    table = summary(pass_at_k)
    write_csv(table.lazy(), path)
    return table


# With `publish.csv = "auto"`, the files are written up to this many attempts: a second or two, and 50 MB.
MAX_ROWS = 1_000_000

_STAMPS = "csv_stamps.json"
# Version of the files' layout; increment it when that changes.
_LAYOUT = 1


def write_model_csvs(store: "Store", wanted: Literal["auto"] | bool, max_rows: int = MAX_ROWS) -> list[str]:
    """Update the CSV files in the draft and remove those of models that are gone. Returns the file names."""
    from touchstone.storage.store import CSV_FOLDER, digest  # not for `pass-at-k`, which writes the summary alone

    folder, stamps = store.draft / CSV_FOLDER, store.draft / _STAMPS
    # For each file, a digest of its source, and its mark.
    known = {name: entry for name, entry in read_json_object(stamps).items() if isinstance(entry, list)}
    models = {model: part for model, part in store.all_parts("outcomes").items() if part.rows}
    rows = sum(part.rows for part in models.values())
    if wanted is False or (wanted == "auto" and rows > max_rows):
        models = {}
    figures = summaries(store.scan("pass_at_k").collect()) if models else {}
    made: dict[str, list[object]] = {}
    for model, part in models.items():
        own = figures[model]
        content = {
            f"{file_key(model)}_outcomes.csv": digest([_LAYOUT, part.fingerprint]),
            f"{file_key(model)}_pass_at_k.csv": digest([_LAYOUT, own.columns, own.rows()]),
        }
        frames = outcomes_table(store.scan("outcomes", [model])), own.lazy()
        for (name, made_from), frame in zip(content.items(), frames, strict=True):
            before, *mark = known.get(name, [None])
            if before != made_from or not is_as_written(folder / name, mark):
                write_csv(frame, folder / name)
                known[name] = [made_from, *file_mark(folder / name)]
            made[name] = known[name]
    for path in folder.glob("*"):
        if path.name not in made:
            path.unlink()
    with replacing(stamps) as scratch:
        scratch.write_text(json.dumps(made))
    return sorted(made)


def outcomes_table(outcomes: pl.LazyFrame) -> pl.LazyFrame:
    """Outcomes that count, with the column names of a fixes file."""
    from touchstone.metrics.keys import without_excluded

    return without_excluded(outcomes).rename({"passed": "plausible_fix"}).select(OUTCOMES_CSV_COLUMNS)
