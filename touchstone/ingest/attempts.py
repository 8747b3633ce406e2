"""Attempts of one model, from a fixes CSV or an adapter, with the outcomes that the file states or implies.

Validating a fix that has no outcome belongs in `validation`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest import cells
from touchstone.ingest.adapters.table import repeated_rows, words
from touchstone.ingest.cells import InputTable, drop_refused, find_duplicates, read_typed_rows
from touchstone.ingest.compressed import STILL_WRITTEN
from touchstone.ingest.csv_rows import LINE, SCRATCH_FORMAT, TextTable, open_table, unused_column_name
from touchstone.ingest.dialect import letters, require_fixes_columns
from touchstone.ingest.fix_columns import (
    AMOUNT_COLUMNS,
    CLASS_COLUMN,
    COUNT_COLUMNS,
    DATE_COLUMN,
    DATE_COLUMNS,
    FIX_COLUMNS,
    IMPLIED_OUTCOME_COLUMNS,
    NATIVE_COLUMNS,
    OUTCOME_COLUMNS,
    SCORE_COLUMNS,
    SHARE_COLUMN,
    TIME_COLUMNS,
    TOKEN_COLUMNS,
    outcome_columns,
)
from touchstone.ingest.quarantine import Refusal, quarantine_frame
from touchstone.vocabulary import DEFAULT_SUITE, DEFAULT_TIER, MAX_AMOUNT, PASS_CLASS

ATTEMPT_KEY = ["tier", "oid", "iteration_id"]
ITERATION = "iteration_id"
# What the audit found in the transcript of an attempt, as JSON; null if there was none to read.
TRANSCRIPT_FLAGS = "transcript_flags"
PROBLEM_SUITE = "__problem_suite"
_BATCH_ROWS = 500_000
# Bytes of typed rows: several times that in memory. More are sorted in parts.
_SORTED_AT_ONCE = 32_000_000

# Columns of the attempts table that are computed here; an input column of that name is kept under another one.
_RESERVED = ("model", "fix_sha", DATE_COLUMN, TRANSCRIPT_FLAGS)
_NAME = "llm_name"
# The names of columns that may tell models apart, or runs of one in different ways, or problems of the same number.
_CONDITIONS = words(
    "ablation agent approach arm backend bench benchmark cond condition config configuration dataset domain effort "
    "engine experiment family framework group harness language level llm method mode modelalias modelid modelname "
    "modelnameorpath modelsize modeltier modelvariant modelversion project projectname prompt promptname "
    "promptstrategy promptstyle prompttemplate prompttype promptvariant promptversion provider quant quantization "
    "reasoningeffort repo repository scaffold scenario setting setup split strategy subset suite system technique "
    "temperature thinkingbudget thinkinglevel thinkingmode tool treatment variant workflow"
)
_NUMBERED = "no iteration_id, so the rows of each problem are its attempts, in their order"


@dataclass(frozen=True)
class IngestedAttempts:
    """The accepted attempts, in any order, and the quarantined rows."""

    attempts: pl.LazyFrame
    quarantine: pl.DataFrame
    rows: int
    accepted: int
    notes: tuple[str, ...] = ()


def open_fixes(path: Path, key: str = "oid", renames: Mapping[str, str] | None = None) -> TextTable:
    """Open a fixes CSV; raises `InputFileError` if it lacks a column that every attempt needs."""
    table = open_table(path, renames, fixes_columns(key))
    require_fixes_columns(path, table.columns, key)
    # Rows are numbered by the reader that knows their lines.
    return table if ITERATION in table.columns else replace(table, plain=False)


def fixes_columns(key: str = "oid") -> set[str]:
    """The columns of a fixes file that mean something."""
    return {*NATIVE_COLUMNS, key} - ({"oid"} if key != "oid" else set())


def rules_for(table: InputTable, key: str = "oid") -> list[cells.Rule]:
    """The rules for the columns of this file; the first rule that refuses a row gives the reason."""
    has = set(table.columns)
    rules = [cells.identifier(key)]
    rules += [cells.identifier(ITERATION)] if ITERATION in has else []
    rules += [cells.identifier("tier", DEFAULT_TIER)] if "tier" in has else []
    stated = outcome_columns(has)
    rules += [cells.boolean(name) for name in (*stated, "compiled") if name in has]
    rules += [cells.contradiction("passed", "plausible_fix")] if has.issuperset(OUTCOME_COLUMNS) else []
    rules += [cells.success_beside_failures("passed", "failed")] if has.issuperset(("passed", "failed")) else []
    rules += [cells.count(name) for name in (*COUNT_COLUMNS, *TOKEN_COLUMNS) if name in has]
    rules += [cells.score(name) for name in SCORE_COLUMNS if name in has]
    rules += [cells.amount(SHARE_COLUMN, at_most=1)] if SHARE_COLUMN in has else []
    rules += [cells.outcome_class(CLASS_COLUMN, stated)] if CLASS_COLUMN in has else []
    rules += [cells.amount(name) for name in AMOUNT_COLUMNS if name in has]
    rules += [
        cells.timestamp(name) for name in TIME_COLUMNS if has.issuperset(TIME_COLUMNS) and "duration_seconds" not in has
    ]
    return rules


def extra_columns(table: InputTable, rules: list[cells.Rule], key: str = "oid") -> dict[str, pl.Expr]:
    """The columns that no rule reads, as text; one whose name is taken by a column made here is renamed."""
    ruled = {rule.column for rule in rules}
    reserved = (*_RESERVED, "oid") if key != "oid" else _RESERVED
    carried = {name: pl.col(name) for name in table.columns if name not in ruled and name not in reserved}
    renamed = {unused_column_name(name, table.columns): pl.col(name) for name in reserved if name in table.columns}
    return carried | renamed


def read_fixes(
    path: Path,
    model: str,
    problems: pl.LazyFrame,
    scratch: Path,
    key: str = "oid",
    renames: Mapping[str, str] | None = None,
) -> IngestedAttempts:
    """Read `<model>_fixes.csv`; `key` is the column that names the problem, `renames` maps their columns to ours."""
    return read_attempts(open_fixes(path, key, renames), model, problems, scratch, key)


def read_attempts(
    table: InputTable,
    model: str,
    problems: pl.LazyFrame,
    scratch: Path,
    key: str = "oid",
    flags: Mapping[int, str] | None = None,
) -> IngestedAttempts:
    """Read the attempts of one model from a table of text cells; refuses those of unknown problems.

    `flags` are those of transcripts by line.
    """
    rules = rules_for(table, key)
    typed = read_typed_rows(table, rules, extra_columns(table, rules, key), scratch)
    rows = typed.accepted.rename({key: "oid"})
    if "tier" not in table.columns:
        rows = rows.with_columns(tier=pl.lit(DEFAULT_TIER))
    appended: list[Refusal] = []
    if ITERATION not in table.columns:
        repeated = repeated_rows(rows, [name for name in FIX_COLUMNS if name in table.columns])
        appended = [Refusal(line, "duplicate", reason) for line, reason in repeated.iter_rows()]
        rows = _number_rows(table, drop_refused(rows, appended))

    known = problems.select("oid", pl.col("suite").alias(PROBLEM_SUITE))
    unknown = _unknown_problems(rows, known)
    rows = drop_refused(rows, unknown)
    duplicates = find_duplicates(rows, ATTEMPT_KEY)
    for name in _differing(table, rows, ATTEMPT_KEY) if duplicates else ():
        raise InputFileError(
            f"{table.path}: '{name}' differs between rows of one attempt; call it model or tier if it tells them apart"
        )
    rows = drop_refused(rows, duplicates)
    if flags:
        by_line = {LINE: list(flags), TRANSCRIPT_FLAGS: list(flags.values())}
        rows = rows.join(
            pl.LazyFrame(by_line, schema={LINE: pl.Int64, TRANSCRIPT_FLAGS: pl.String}), on=LINE, how="left"
        )

    refused = [*typed.refusals, *appended, *unknown, *duplicates]
    attempts = as_attempts(rows.join(known, on="oid", how="left"), pl.lit(model))
    quarantine, notes = quarantine_frame(table, refused), (*file_notes(table), *typed.notes)
    return IngestedAttempts(attempts, quarantine, typed.rows, typed.rows - len(refused), notes)


def file_notes(table: InputTable) -> tuple[str, ...]:
    """Notes on a file: the assumptions made to read it, and that its last row may be incomplete."""
    notes = [] if ITERATION in table.columns else [_NUMBERED]
    if isinstance(table, TextTable):
        notes += [*table.notes, *([] if table.complete else [f"the last line has no end; {STILL_WRITTEN}"])]
    return tuple(notes)


def _number_rows(table: InputTable, rows: pl.LazyFrame) -> pl.LazyFrame:
    """The accepted rows of each problem, numbered in their order. A file of several models has no such order."""
    named = isinstance(table, TextTable) and _NAME in table.columns
    if named and rows.select(pl.col(_NAME).n_unique()).collect().item() > 1:
        raise InputFileError(
            f"{table.path}: several models in the column '{_NAME}' and no iteration_id; rename the file so that its "
            "name does not end in _fixes, and each is read as a model"
        )
    for name in _differing(table, rows, ["tier", "oid"]):
        raise InputFileError(
            f"{table.path}: no iteration_id, and '{name}' differs between the rows of a problem, which may be of "
            f"several models or problems; call '{name}' model or tier if it tells them apart, else add iteration_id"
        )
    number = pl.int_range(1, pl.len() + 1).over("tier", "oid", order_by=LINE)
    return rows.with_columns(number.cast(pl.String).alias(ITERATION))


def _differing(table: InputTable, rows: pl.LazyFrame, key: list[str]) -> Iterator[str]:
    """The columns that may tell models or problems apart, of which the rows of a key have several values."""
    for name in (name for name in table.columns if letters(name) in _CONDITIONS):
        values = rows.group_by(key).agg(pl.col(name).drop_nulls().n_unique())
        if values.filter(pl.col(name) > 1).collect().height:
            yield name


def _unknown_problems(rows: pl.LazyFrame, known: pl.LazyFrame) -> list[Refusal]:
    """Refusals for rows of unlisted problems, with a hint if the id differs only in leading zeros or `.0`."""
    unknown = rows.join(known.select("oid"), on="oid", how="anti").select(LINE, "oid").collect()
    if unknown.is_empty():
        return []
    # A spreadsheet or pandas turns "001" into 1, or into 1.0 in a column with missing values.
    number = pl.col("oid").str.strip_chars().str.replace(r"\.0$", "").str.strip_chars_start("0").alias("number")
    numeric = pl.col("oid").str.contains(r"^\s*\d+(\.0)?\s*$")
    hint = "; it has {!r}: zeros were lost or added, keep the ids as text"
    listed = known.filter(numeric).group_by(number).agg(meant=pl.col("oid").min())
    alike = unknown.lazy().with_columns(pl.when(numeric).then(number)).join(listed, on="number", how="left")
    return [
        Refusal(
            line, "unknown_oid", f"the oid {oid!r} is not in the problems file" + (hint.format(meant) if meant else "")
        )
        for line, oid, meant in alike.select(LINE, "oid", "meant").collect().iter_rows()
    ]


def outcome(present: set[str]) -> pl.Expr:
    """The stated outcome of a row, else that of its class, else the one implied by compile and test columns."""
    found = [pl.lit(None, pl.Boolean), *map(pl.col, outcome_columns(present))]
    if CLASS_COLUMN in present:
        found.append(pl.col(CLASS_COLUMN) == PASS_CLASS)
    if present.issuperset(IMPLIED_OUTCOME_COLUMNS):
        tested = pl.col("tests_passed").is_not_null() & pl.col("tests_failed").is_not_null()
        found.append(
            pl.when(~pl.col("compiled"))
            .then(False)
            .when(pl.col("compiled") & tested)
            .then((pl.col("tests_passed") > 0) & (pl.col("tests_failed") == 0))
        )
    return pl.coalesce(found)


def as_attempts(rows: pl.LazyFrame, model: pl.Expr) -> pl.LazyFrame:
    """Accepted rows, with the suite of their problem in `PROBLEM_SUITE`, as rows of the table `attempts`."""
    present = set(rows.collect_schema().names())

    def given(name: str, dtype: type[pl.DataType]) -> pl.Expr:
        return pl.col(name) if name in present else pl.lit(None, dtype)

    suite = [pl.col("suite")] if "suite" in present else []
    scores = [pl.col(name) for name in SCORE_COLUMNS if name in present]
    typed = {
        "model": model,
        "tier": pl.col("tier"),
        "oid": pl.col("oid"),
        "iteration_id": pl.col("iteration_id"),
        "run_id": given("run_id", pl.String),
        "suite": pl.coalesce(*suite, PROBLEM_SUITE, pl.lit(DEFAULT_SUITE)),
        "fix_sha": _fix_sha([name for name in FIX_COLUMNS if name in present]),
        "passed": outcome(present),
        "compiled": given("compiled", pl.Boolean),
        **{name: given(name, pl.Int64) for name in COUNT_COLUMNS},
        "weighted_score": pl.coalesce(scores) if scores else pl.lit(None, pl.Float64),
        SHARE_COLUMN: given(SHARE_COLUMN, pl.Float64),
        CLASS_COLUMN: given(CLASS_COLUMN, pl.String),
        **{name: given(name, pl.Int64) for name in TOKEN_COLUMNS},
        **{name: given(name, pl.Float64) for name in AMOUNT_COLUMNS},
        TRANSCRIPT_FLAGS: given(TRANSCRIPT_FLAGS, pl.String),
    }
    timed = rows.collect_schema().get("end_time") == pl.Float64
    days = [cells.day(name, parsed=timed and name in TIME_COLUMNS) for name in DATE_COLUMNS if name in present]
    typed[DATE_COLUMN] = pl.coalesce(*days, pl.lit(None, pl.String))
    if timed:
        # A clock that was set back or never set gives no valid duration.
        elapsed = pl.col("end_time") - pl.col("start_time")
        typed["duration_seconds"] = pl.when(elapsed.is_between(0, MAX_AMOUNT)).then(elapsed)
    used = {*typed, *outcome_columns(present), *SCORE_COLUMNS, *(TIME_COLUMNS if timed else ())}
    extras = [name for name in rows.collect_schema().names() if name not in used and not name.startswith("__")]
    return rows.select(**typed, **{name: pl.col(name) for name in extras})


def sort_attempts(attempts: pl.LazyFrame, *first: str, stable: bool = False) -> pl.LazyFrame:
    """Sort by the `first` columns, tier, problem and iteration; numeric iterations sort as numbers.

    `stable`: several rows of an attempt keep their order.
    """
    by_number = pl.col("iteration_id").cast(pl.Int64, strict=False)
    return attempts.sort(*first, "tier", "oid", by_number, "iteration_id", nulls_last=True, maintain_order=stable)


def sort_read(attempts: pl.LazyFrame, scratch: Path, at_once: int = _SORTED_AT_ONCE) -> tuple[pl.LazyFrame, int | None]:
    """The same as `sort_attempts` for rows of files in `scratch`, with about so many bytes in memory at a time.

    The second value is the number of rows that can be written together, None for all: to write them takes several
    times their size.
    """
    files = list(scratch.glob("*.parquet"))
    # Programs compress to a tenth.
    if 10 * sum(file.stat().st_size for file in files) <= at_once or (size := _unpacked_bytes(files)) <= at_once:
        return sort_attempts(attempts), None
    counts = attempts.group_by("tier", "oid").len().sort("tier", "oid").collect(engine="streaming")
    rows_at_once = max(1, int(counts["len"].sum()) * at_once // size)
    part = ((pl.col("len").cum_sum() - 1) // rows_at_once).over("tier").alias("part")
    problems = pl.col("oid").first().alias("first"), pl.col("oid").last().alias("last")
    ranges = counts.group_by("tier", part, maintain_order=True).agg(problems).select("tier", "first", "last")
    parts = []
    for number, (tier, first, last) in enumerate(ranges.iter_rows()):
        chosen = attempts.filter(pl.col("tier") == tier, pl.col("oid").is_between(pl.lit(first), pl.lit(last)))
        unsorted, ordered = (scratch / name for name in ("unsorted", f"sorted-{number}"))
        # By way of a file: in memory, rows would keep the texts of all rows that they were read with.
        chosen.sink_parquet(unsorted, **SCRATCH_FORMAT)
        rows = sort_attempts(pl.scan_parquet(unsorted, glob=False))
        rows.sink_parquet(ordered, **SCRATCH_FORMAT)
        parts.append(ordered)
    return (pl.scan_parquet(parts, glob=False) if parts else sort_attempts(attempts)), max(1, rows_at_once // 8)


def _unpacked_bytes(files: Iterable[Path]) -> int:
    from pyarrow.parquet import read_metadata  # Here, because few files are so large.

    every = map(read_metadata, files)
    return sum(each.row_group(place).total_byte_size for each in every for place in range(each.num_row_groups))


def keys_increase(attempts: pl.LazyFrame, model: str = "model") -> bool:
    """Whether keys increase from row to row as `sort_attempts` orders them, models by name, so that none is repeated.

    Most rows follow another one of the same problem, which numbers tell; texts are compared only if they do not.

    >>> rows = pl.LazyFrame({"model": "m", "tier": "T0", "oid": ["a", "a", "b"], "iteration_id": ["9", "10", "1"]})
    >>> keys_increase(rows), keys_increase(rows.reverse()), keys_increase(pl.concat([rows, rows]))
    (True, False, False)
    >>> keys_increase(rows.with_columns(iteration_id=pl.Series(["7", "x", "x"])))
    True
    """
    number, text = pl.col("iteration_id").cast(pl.Int64, strict=False), pl.col("iteration_id")
    larger, later = number > number.shift(1), text > text.shift(1)
    # As in `sort_attempts`, texts that are not numbers come after all numbers.
    among_texts = number.is_null() & (number.shift(1).is_not_null() | later)
    of_one_number = (number == number.shift(1)) & later
    every = larger.fill_null(False) | among_texts.fill_null(False) | of_one_number.fill_null(False)
    return _rises(attempts, larger, model) or _rises(attempts, every, model)


def _rises(attempts: pl.LazyFrame, larger: pl.Expr, model: str) -> bool:
    """Whether every row has a larger key than the one before; `larger` compares the iterations of the same problem."""
    key = [model, "tier", "oid"]
    follows = larger & repeats_previous(*key)
    # The first row has none before it, and stays.
    firsts = attempts.select(*key, "iteration_id").filter(~follows.fill_null(False)).select(key)
    rises = pl.lit(False)
    for name in reversed(key):
        value, previous = pl.col(name), pl.col(name).shift(1)
        rises = (value > previous) | ((value == previous) & rises)
    return bool(firsts.select(rises.fill_null(True).all()).collect(engine="streaming").item())


def keys_increase_streamed(attempts: pl.LazyFrame) -> bool:
    """The same as `keys_increase`, with a bounded number of rows in memory."""
    last: list[pl.DataFrame] = []
    keys = attempts.select("model", *ATTEMPT_KEY)
    for rows in keys.collect_batches(maintain_order=True, chunk_size=_BATCH_ROWS, engine="streaming"):
        if not keys_increase(pl.concat([*last, rows]).lazy()):
            return False
        last = [rows.tail(1)] if rows.height else last
    return True


def repeats_previous(*columns: str) -> pl.Expr:
    """Whether a row has the same values as the row before it."""
    return pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in columns)


def _fix_sha(columns: list[str]) -> pl.Expr:
    if not columns:
        return pl.lit(None, pl.String)

    def digest(texts: pl.Series) -> pl.Series:
        hashed = [None if text is None else hashlib.sha256(text.encode()).hexdigest() for text in texts]
        return pl.Series(texts.name, hashed, dtype=pl.String)

    return pl.coalesce(columns).map_batches(digest, return_dtype=pl.String, is_elementwise=True)
