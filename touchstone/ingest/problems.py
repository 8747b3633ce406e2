"""The problems file: the list of what is to be solved, and so the denominator of every figure."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.cells import Rule, identifier
from touchstone.ingest.quarantine import quarantine_frame
from touchstone.ingest.staging import find_duplicates, stage, without
from touchstone.ingest.text import LINE, TextTable, open_table, require_columns
from touchstone.vocabulary import DEFAULT_SUITE

_OWN = ("oid", "filename", "suite", "cluster")


@dataclass(frozen=True)
class IngestedProblems:
    """The problems that were accepted, in the order of their ids, and the rows that were not."""

    problems: pl.LazyFrame
    quarantine: pl.DataFrame
    rows: int


def open_problems(path: Path) -> TextTable:
    """Open a problems file and refuse it where it lacks what every problem needs."""
    table = open_table(path)
    require_columns(table, "oid", "filename")
    return table


def read_problems(path: Path, scratch: Path) -> IngestedProblems:
    """Read `problems.csv`. A file without a single good row, or with two problems of one id, is refused."""
    table = open_problems(path)
    cluster = next((name for name in ("cluster", "project_name") if name in table.columns), None)
    rules: list[Rule] = [identifier("oid")]
    also = {
        "filename": pl.col("filename"),
        "suite": pl.col("suite").fill_null(DEFAULT_SUITE) if "suite" in table.columns else pl.lit(DEFAULT_SUITE),
        "cluster": pl.col(cluster) if cluster else pl.lit(None, pl.String),
        **{name: pl.col(name) for name in table.columns if name not in _OWN},
    }
    staged = stage(table, rules, also, scratch)
    duplicates = find_duplicates(staged.accepted, ["oid"])
    conflict = next((refusal for refusal in duplicates if refusal.kind == "conflict"), None)
    if conflict is not None:
        raise InputFileError(f"{path}, line {conflict.line}: two different problems have the same oid; make it unique")
    accepted = without(staged.accepted, duplicates).drop(LINE).sort("oid")
    refused = [*staged.refusals, *duplicates]
    if staged.rows == len(refused):
        raise InputFileError(f"{path}: there is no problem in the file; it needs at least one good row")
    return IngestedProblems(accepted, quarantine_frame(table, refused), staged.rows)
