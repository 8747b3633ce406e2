"""Fast path for clean fixes CSVs: the attempts of one or many files from one query, without lines and reasons.

The query also finds everything doubtful. A file with a single refused cell, unknown problem or repeated attempt is left
to `attempts`, which finds and explains it. So the fast path never decides which rows are accepted; it only detects
files in which every row is. A file of ten million rows takes 6 seconds of CPU this way, and 22 with the careful reader.
"""

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from touchstone.ingest import cells
from touchstone.ingest.attempts import (
    ATTEMPT_KEY,
    ITERATION,
    PROBLEM_SUITE,
    IngestedAttempts,
    as_attempts,
    extra_columns,
    file_notes,
    keys_increase,
    read_attempts,
    repeats_previous,
    rules_for,
    sort_attempts,
)
from touchstone.ingest.csv_rows import TextTable, scan_text
from touchstone.ingest.fix_columns import CLASS_COLUMN, outcome_columns
from touchstone.ingest.quarantine import SCHEMA as QUARANTINE_SCHEMA
from touchstone.storage.batches import batches, block_sizes
from touchstone.vocabulary import DEFAULT_TIER, MAX_ID_LENGTH

_PATH, _DOUBT, _KNOWN, _MODEL = "__path", "__doubt", "__known", "__model"
# A row with the text of a fix weighs as much as several without one.
_ROW_BYTES = 64
# Powers of two in a sum of 64 bits.
_BITS = 62


def read_fixes_csv(
    table: TextTable, model: str, problems: pl.LazyFrame, scratch: Path, key: str = "oid"
) -> IngestedAttempts:
    """Read one fixes CSV: all rows at once if every one is accepted, else as `read_attempts` does."""
    for batch in clean_batches({model: table}):
        attempts = read_clean_files(batch, problems, key)
        if not attempts.is_empty():
            nothing, rows = pl.DataFrame(schema=QUARANTINE_SCHEMA), attempts.height
            return IngestedAttempts(attempts.lazy(), nothing, rows, rows, file_notes(table))
    return read_attempts(table, model, problems, scratch, key)


def count_clean_file(table: TextTable, model: str, problems: pl.LazyFrame) -> pl.DataFrame | None:
    """Decided attempts n and passed attempts c per problem, from one streaming query; None if a row is doubtful.

    Only for the usual file: one outcome, true or false, and whole numbers as iterations. It takes half of the time and
    a tenth of the memory of `read_clean_files`. A sum of powers of two has as many ones as terms only if all differ, so
    it shows that no iteration is repeated.
    """
    stated = outcome_columns(table.columns)
    if not table.plain or len(stated) != 1 or not {"tier", CLASS_COLUMN}.isdisjoint(table.columns):
        return None
    types = {ITERATION: pl.Int64, stated[0]: pl.Boolean}
    rules = [rule for rule in _quick_rules(table) if rule.column not in ("oid", *types)]
    number, passed = pl.col(ITERATION), pl.col(stated[0])
    counted = (
        scan_text([table.path], table.columns, types)
        .group_by("oid", word=number // _BITS)
        .agg(
            rows=pl.len(),
            n=passed.count().cast(pl.Int64),
            c=passed.sum().cast(pl.Int64),
            bits=pl.lit(2, pl.Int64).pow(number % _BITS).sum(),
            doubts=_doubts(rules).sum(),
        )
    )
    known = problems.select("oid", pl.lit(True).alias(_KNOWN))
    clean = (pl.col("bits").bitwise_count_ones() == pl.col("rows")) & (pl.col("word") >= 0) & (pl.col("doubts") == 0)
    per_problem = counted.group_by("oid").agg(pl.col("rows", "n", "c").sum(), clean=clean.fill_null(False).all())
    try:
        counts = per_problem.join(known, on="oid", how="left").collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError):
        return None
    is_clean = pl.col("clean") & pl.col(_KNOWN) & (pl.col("oid").str.len_chars() <= MAX_ID_LENGTH)
    if counts["rows"].sum() != table.lines - 1 or not counts.select(is_clean.fill_null(False).all()).item():
        return None
    return counts.select(pl.lit(model).alias("model"), pl.lit(DEFAULT_TIER).alias("tier"), "oid", "n", "c")


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
    rules = _quick_rules(some, key)
    columns = {rule.column: rule.value for rule in rules} | extra_columns(some, rules, key)
    rows = scan_text([table.path for table in tables.values()], some.columns, include_file_paths=_PATH).select(
        _PATH, _doubts(rules).alias(_DOUBT), *(value.alias(name) for name, value in columns.items())
    )
    if "tier" not in some.columns:
        rows = rows.with_columns(tier=pl.lit(DEFAULT_TIER))
    known = problems.select("oid", pl.col("suite").alias(PROBLEM_SUITE), pl.lit(True).alias(_KNOWN))
    return rows.rename({key: "oid"}).join(known, on="oid", how="left", maintain_order="left")


def _quick_rules(table: TextTable, key: str = "oid") -> list[cells.Rule]:
    """The rules for a file, of which those for booleans know the usual spellings only."""
    rules = rules_for(table, key)
    return [cells.spelled_boolean(rule.column) if rule.kind == "bad_boolean" else rule for rule in rules]


def _doubts(rules: Sequence[cells.Rule]) -> pl.Expr:
    """Whether a rule refuses a row or must assume something."""
    assumed = [rule.assumed.fill_null(False) for rule in rules if rule.assumed is not None]
    return functools.reduce(operator.or_, [*(rule.refused for rule in rules), *assumed], pl.lit(False))


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
