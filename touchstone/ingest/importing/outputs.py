"""Plain model outputs as an evaluation folder: a problem, the number of the attempt, and the text that a model wrote.

The text stays as it is. Which part of it is code is decided when the fix is applied (`validation.fixes.extract_code`):
its only fenced block, or all of it if it has none.
"""

import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.adapters.json_files import text_of
from touchstone.ingest.cells import read_any_rows
from touchstone.ingest.compressed import data_suffix
from touchstone.ingest.csv_rows import LINE, ROW_ERROR, open_table, read_rows
from touchstone.ingest.dialect import MODEL_COLUMNS
from touchstone.ingest.fix_columns import FIX_COLUMNS, NATIVE_COLUMNS
from touchstone.ingest.importing.evaluation_folder import (
    ImportedEvaluation,
    ImportedProblem,
    Row,
    SourceRecord,
    read_records,
)
from touchstone.ingest.problems import open_problems
from touchstone.ingest.sources import model_of
from touchstone.text import counted

TEXT_COLUMNS = ("output", "response", "completion", "answer", "text", "raw_response", "generated_code")
_FENCES = ("```", "~~~")
_SUFFIXES = ("_outputs", "_responses")
# Outcomes are measured here, so they are not kept; a fix in another column would be taken instead of the text.
_KEPT = tuple(
    name
    for name in NATIVE_COLUMNS
    if name not in (*FIX_COLUMNS, "oid", "iteration_id", "llm_name", "model", "fix_sha", "passed", "plausible_fix")
    and name not in ("compiled", "tests_passed", "tests_failed", "lint_warnings", "classification")
)


@dataclass
class Outputs:
    """The rows of each model's fixes file, and what to tell about them."""

    fixes: dict[str, list[Row]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def import_outputs(
    problems: Path,
    outputs: Sequence[Path],
    models: Sequence[str],
    clones: Path | None,
    folder: Path,
    *,
    key: str = "oid",
    text: str | None = None,
) -> tuple[ImportedEvaluation, list[str]]:
    """Write an evaluation folder for a problems file and outputs; returns what was written, and notes."""
    table = open_problems(problems, key)
    rows = read_any_rows(table, lambda rows: rows.select(table.columns).collect())
    listed = [ImportedProblem({n: v for n, v in row.items() if v is not None}) for row in rows.iter_rows(named=True)]
    read = read_outputs(outputs, models, set(rows[key].drop_nulls()), key=key, text=text)
    place = os.path.relpath((clones or problems.parent).resolve(), folder.resolve())
    evaluation = ImportedEvaluation(listed, read.fixes, {"clones_dir": place}, key)
    evaluation.write(folder)
    return evaluation, read.notes


def read_outputs(
    paths: Sequence[Path],
    models: Sequence[str],
    problems: Collection[str],
    *,
    key: str = "oid",
    text: str | None = None,
) -> Outputs:
    """The rows of fixes files with the outputs of one or more models; `models` names them in the order of the files."""
    if models and len(models) != len(paths):
        raise TouchstoneError("give --model once for each file of outputs, in the same order, or not at all")
    found, attempts, unnumbered, unclear = Outputs(), Counter[tuple[str, str]](), 0, 0
    for path, given in zip(paths, models or [""] * len(paths), strict=True):
        records = _records(path, key)
        column = _text_column(path, records, text)
        for record in records:
            values = {name: text_of(value) for name, value in record.values.items()}
            oid = values.get(key) or ""
            if oid not in problems:
                raise record.error(
                    f"the {key} {oid[:100]!r} is not among the problems" if oid else f"the {key} is missing"
                )
            model = given or next((values[name] for name in MODEL_COLUMNS if values.get(name)), None) or _model(path)
            attempts[model, oid] += 1
            number = values.get("iteration_id")
            unnumbered += number is None
            answer = values.get(column) or ""
            unclear += _has_several_blocks(answer)
            kept = {name: values[name] or "" for name in _KEPT if values.get(name)}
            row = {key: oid, "iteration_id": number or str(attempts[model, oid]), "llm_name": model, **kept}
            found.fixes.setdefault(model, []).append(row | {"fixed_code": answer})
    if unnumbered:
        without = counted(unnumbered, "output has", "outputs have")
        found.notes.append(f"{without} no iteration_id; attempts are numbered in the order of the file")
    if unclear:
        several = counted(unclear, "output has", "outputs have")
        found.notes.append(f"{several} more than one fenced block; which one is the fix is not guessed")
    return found


def _records(path: Path, key: str) -> list[SourceRecord]:
    if data_suffix(path) != ".csv":
        return read_records(path, key)
    rows: pl.DataFrame = read_rows(open_table(path), lambda rows: rows.collect())
    records = []
    for row in rows.iter_rows(named=True):
        record = SourceRecord(f"{path}, line {row[LINE]}", {n: v for n, v in row.items() if not n.startswith("__")})
        if row[ROW_ERROR] is not None:
            raise record.error(row[ROW_ERROR])
        records.append(record)
    if not records:
        raise InputFileError(f"{path}: there is no output in the file")
    return records


def _text_column(path: Path, records: Sequence[SourceRecord], given: str | None) -> str:
    """The column with the text: the named one, or the only one with a usual name."""
    columns = {name for record in records for name in record.values}
    usual = [name for name in (*TEXT_COLUMNS, *FIX_COLUMNS) if name in columns]
    if given is not None and given not in columns:
        raise TouchstoneError(f"{path}: there is no column '{given}'; it has {', '.join(sorted(columns))}")
    if given is None and len(usual) != 1:
        there = f"more than one column may be the text ({', '.join(usual)})" if usual else "no column is the text"
        raise TouchstoneError(f"{path}: {there}; name it with --text")
    return given or usual[0]


def _model(path: Path) -> str:
    """The model that a file's name gives: `gpt-4_outputs.jsonl` has those of gpt-4.

    >>> _model(Path("gpt-4_outputs.jsonl")), _model(Path("gpt-4.csv"))
    ('gpt-4', 'gpt-4')
    """
    name = model_of(path.with_suffix(".jsonl") if path.suffix == ".json" else path)
    return name.removesuffix(next((suffix for suffix in _SUFFIXES if name.endswith(suffix)), ""))


def _has_several_blocks(text: str) -> bool:
    """Whether a text has more fences than the two of one block, in which case none is chosen."""
    return sum(line.lstrip(" ").startswith(_FENCES) for line in text.split("\n")) > 2
