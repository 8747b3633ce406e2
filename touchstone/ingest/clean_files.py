"""Fast path for clean fixes CSVs: the attempts of one or many files from one query, without lines and reasons.

The query also finds everything doubtful. A file with a single refused cell, unknown problem or repeated attempt is left
to `attempts`, which finds and explains it. So the fast path never decides which rows are accepted; it only detects
files in which every row is. A file of ten million rows takes 6 seconds of CPU this way, and 22 with the careful reader.
"""

import functools
import operator
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from touchstone.ingest import cells
from touchstone.ingest.attempts import (
    ATTEMPT_KEY,
    PROBLEM_SUITE,
    IngestedAttempts,
    as_attempts,
    extra_columns,
    file_notes,
    keys_increase,
    open_fixes,
    read_attempts,
    repeats_previous,
    rules_for,
    sort_attempts,
)
from touchstone.ingest.csv_rows import TextTable, scan_text
from touchstone.ingest.quarantine import SCHEMA as QUARANTINE_SCHEMA
from touchstone.storage.batches import batches, block_sizes
from touchstone.vocabulary import DEFAULT_TIER

_PATH, _DOUBT, _KNOWN, _MODEL = "__path", "__doubt", "__known", "__model"
# A row with the text of a fix weighs as much as several without one.
_ROW_BYTES = 64


def read_fixes_csv(
    path: Path,
    model: str,
    problems: pl.LazyFrame,
    scratch: Path,
    key: str = "oid",
    renames: Mapping[str, str] | None = None,
) -> IngestedAttempts:
    """Read one fixes CSV: all rows at once if every one is accepted, else as `read_attempts` does."""
    table = open_fixes(path, key, renames)
    for batch in clean_batches({model: table}):
        attempts = read_clean_files(batch, problems, key)
        if not attempts.is_empty():
            nothing, rows = pl.DataFrame(schema=QUARANTINE_SCHEMA), attempts.height
            return IngestedAttempts(attempts.lazy(), nothing, rows, rows, file_notes(table))
    return read_attempts(table, model, problems, scratch, key)


def clean_batches(tables: Mapping[str, TextTable]) -> Iterator[dict[str, TextTable]]:
    """The plain files by model, in batches of bounded size whose files all have the same columns."""
    by_columns: dict[tuple[str, ...], dict[str, TextTable]] = {}
    for model, table in tables.items():
        if table.plain and table.lines > 1:
            by_columns.setdefault(table.columns, {})[model] = table
    for alike in by_columns.values():
        sizes = {model: max(table.lines, table.size // _ROW_BYTES) for model, table in alike.items()}
        for models in batches(sizes):
            yield {model: alike[model] for model in models}


def read_clean_files(tables: Mapping[str, TextTable], problems: pl.LazyFrame, key: str = "oid") -> pl.DataFrame:
    """The attempts of the models whose file is clean, each model's sorted by key; `tables` is a batch of files."""
    try:
        rows = _with_model(_typed_rows(tables, problems, key).collect(), tables)
    except (pl.exceptions.PolarsError, OSError):
        # A row is too long, or a file is gone; the careful reader finds out which.
        return pl.DataFrame(schema={"model": pl.String})
    rows = _without_models(rows, _doubtful_models(rows, tables)).drop(_DOUBT, _KNOWN)
    if not keys_increase(rows.lazy(), _MODEL):
        rows = sort_attempts(rows.lazy(), _MODEL).collect()
        rows = _without_models(rows, rows.filter(repeats_previous(_MODEL, *ATTEMPT_KEY))[_MODEL].unique().to_list())
    # Columns that no file has are made last: until they are written, each is a single null.
    return as_attempts(rows.lazy(), pl.col(_MODEL)).collect()


def _typed_rows(tables: Mapping[str, TextTable], problems: pl.LazyFrame, key: str) -> pl.LazyFrame:
    """The rows of all files with their path, problem and whether a rule refuses them."""
    some = next(iter(tables.values()))
    rules = [
        cells.spelled_boolean(rule.column) if rule.kind == "bad_boolean" else rule for rule in rules_for(some, key)
    ]
    columns = {rule.column: rule.value for rule in rules} | extra_columns(some, rules, key)
    assumed = [rule.assumed.fill_null(False) for rule in rules if rule.assumed is not None]
    rows = scan_text([table.path for table in tables.values()], some.columns, include_file_paths=_PATH).select(
        _PATH,
        functools.reduce(operator.or_, [*(rule.refused for rule in rules), *assumed]).alias(_DOUBT),
        *(value.alias(name) for name, value in columns.items()),
    )
    if "tier" not in some.columns:
        rows = rows.with_columns(tier=pl.lit(DEFAULT_TIER))
    known = problems.select("oid", pl.col("suite").alias(PROBLEM_SUITE), pl.lit(True).alias(_KNOWN))
    return rows.rename({key: "oid"}).join(known, on="oid", how="left", maintain_order="left")


def _with_model(rows: pl.DataFrame, tables: Mapping[str, TextTable]) -> pl.DataFrame:
    """The rows with their model in place of their path, looked up once per run of rows from the same file."""
    models = {str(table.path): model for model, table in tables.items()}
    runs = rows[_PATH].rle().struct.unnest()
    names = runs.select(pl.col("value").replace_strict(models, return_dtype=pl.String)).to_series()
    places = np.repeat(np.arange(runs.height), runs["len"].to_numpy())
    return rows.drop(_PATH).with_columns(names.gather(places).alias(_MODEL))


def _doubtful_models(rows: pl.DataFrame, tables: Mapping[str, TextTable]) -> list[str]:
    """The models whose file has a refused row, an unknown problem, or not one row per line."""
    doubts = rows.filter((pl.col(_DOUBT) | pl.col(_KNOWN).is_null()).fill_null(True))[_MODEL].unique()
    counts = block_sizes(rows[_MODEL])
    doubtful = {model for model, table in tables.items() if counts.get(model) != table.lines - 1}
    return sorted(doubtful.union(doubts))


def _without_models(rows: pl.DataFrame, models: list[str]) -> pl.DataFrame:
    return rows.filter(~pl.col(_MODEL).is_in(models)) if models else rows
