"""What `touchstone compare` can compare, read into the scores of its attempts.

An input is a folder with tables (an output folder or a snapshot), a fixes CSV, or a results file of another system.
Files go through the same readers and the same scoring as in a run. Nothing is validated here, so an attempt without a
recorded outcome has no score. Readers are imported only for files, because a comparison of folders should start fast.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from touchstone.compare.regressions import SCORE_COLUMNS
from touchstone.errors import TouchstoneError
from touchstone.storage.files import parquet_files
from touchstone.storage.snapshots import read_snapshot
from touchstone.validation.validators_used import SCHEMA, recorded_validators, snapshot_validators, validators_used

if TYPE_CHECKING:
    from touchstone.config import Scoring
    from touchstone.ingest.adapters import AdapterTable
    from touchstone.ingest.fixes import IngestedAttempts

INPUT_KINDS = (
    "a folder with tables, a fixes CSV, or results in a known format; `touchstone inspect-files --formats` lists them"
)

_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")


@dataclass(frozen=True)
class ComparisonInput:
    """One of the two evaluations to compare.

    `quarantine` holds the refused rows of its files. `validators` are those that decided the outcomes, or None if that
    is not known.
    """

    label: str
    attempt_scores: pl.LazyFrame
    problems: pl.LazyFrame | None = None
    quarantine: tuple[pl.DataFrame, ...] = ()
    validators: pl.DataFrame | None = None


def open_input(
    text: str, problems_csv: Path | None = None, scoring: "Scoring | None" = None, problem_key: str = "oid"
) -> ComparisonInput:
    """Open a folder or file; `problems_csv`, `scoring` and `problem_key` apply to files only.

    >>> open_input("nowhere")
    Traceback (most recent call last):
    touchstone.errors.TouchstoneError: nowhere: no such file or folder
    """
    path = Path(text)
    if not text.strip() or not path.exists():
        raise TouchstoneError(f"{text or 'the empty name'}: no such file or folder")
    if path.is_dir():
        return _open_folder(text, path)
    return _open_file(text, path, problems_csv, scoring, problem_key)


# Folders


def _open_folder(label: str, folder: Path) -> ComparisonInput:
    from touchstone.tables import TABLES

    # `tables` is a link that the next run replaces; resolved once, so that all tables come from the same run.
    tables = (folder / "tables").resolve()
    if not (tables / "attempt_scores").is_dir():
        hint = "; name one of the folders in its 'snapshots'" if (folder / "snapshots").is_dir() else ""
        raise TouchstoneError(f"{label}: the folder has no results (no tables/attempt_scores){hint}")
    needed = [*TABLES["attempt_scores"].key, *SCORE_COLUMNS]
    scores = _scan(label, tables / "attempt_scores", needed)
    if scores is None or scores.select(pl.len()).collect().item() == 0:
        raise TouchstoneError(f"{label}: tables/attempt_scores has no attempts")
    problems = _scan(label, tables / "problems", ["oid"])
    return ComparisonInput(label, scores, problems, validators=_validators_of_folder(label, folder, tables))


def _validators_of_folder(label: str, folder: Path, tables: Path) -> pl.DataFrame | None:
    """From the table `outcomes` of a run, or from the manifest of a snapshot; old manifests lack it."""
    outcomes = _scan(label, tables / "outcomes", [*SCHEMA, "passed"])
    if outcomes is not None:
        return validators_used(outcomes)
    snapshot = read_snapshot(folder)
    return snapshot_validators(snapshot.validation) if snapshot is not None and snapshot.validation else None


def _scan(label: str, table: Path, needed: Sequence[str]) -> pl.LazyFrame | None:
    """The table, or None if the folder has none; the `needed` columns must have the types of the contract."""
    from touchstone.tables import TABLES

    dtypes = TABLES[table.name].dtypes
    files = parquet_files(table)
    for file in files:
        _check_columns(label, file, {name: dtypes[name] for name in needed})
    if not files:
        return None
    return pl.scan_parquet(files, glob=False, missing_columns="insert", extra_columns="ignore")


def _check_columns(label: str, file: Path, needed: Mapping[str, pl.DataType]) -> None:
    name = f"tables/{file.parent.name}/{file.name}"
    try:
        schema = pl.read_parquet_schema(file)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise TouchstoneError(f"{label}: {name} cannot be read ({reason})") from None
    wrong = [column for column, dtype in needed.items() if schema.get(column) != dtype]
    if wrong:
        raise TouchstoneError(
            f"{label}: {name} lacks {', '.join(wrong)}, so it is from another version; run that evaluation again"
        )


# Files


def _open_file(
    label: str, path: Path, problems_csv: Path | None, scoring: "Scoring | None", problem_key: str
) -> ComparisonInput:
    from touchstone.ingest.adapters import detect_format, read_adapted

    given = problems_csv or _beside(path)
    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        if detect_format(path) is not None or path.suffix.lower() in _JSON_SUFFIXES:
            problems, reads, lost = _read_adapted_file(read_adapted(path), given, problem_key, Path(scratch))
        elif path.suffix.lower() == ".csv":
            problems, reads, lost = _read_native(path, given, problem_key, Path(scratch))
        else:
            raise TouchstoneError(f"{label}: cannot be compared; expected {INPUT_KINDS}")
        quarantine = tuple(frame for frame in (*lost, *(read.quarantine for read in reads)) if not frame.is_empty())
        # The attempts are in the temporary folder, so they are collected before it is deleted.
        scores = _scored(reads, scoring)
    if scores.is_empty():
        raise TouchstoneError(f"{label}: the file has no usable attempt{_first_refusal(quarantine)}")
    return ComparisonInput(label, scores.lazy(), problems.lazy(), quarantine, recorded_validators(scores))


_Read = tuple[pl.DataFrame, list["IngestedAttempts"], list[pl.DataFrame]]


def _read_native(path: Path, problems_csv: Path | None, key: str, scratch: Path) -> _Read:
    from touchstone.ingest.fixes import read_fixes
    from touchstone.ingest.sources import model_of
    from touchstone.names import check_model_name

    model = check_model_name(model_of(path))
    if problems_csv is None:
        raise TouchstoneError(
            f"{path}: no problems file ({path.parent / 'problems.csv'} does not exist); add --problems-csv FILE"
        )
    problems, lost = _read_problems(problems_csv, key, scratch)
    return problems, [read_fixes(path, model, problems.lazy(), scratch / "fixes.parquet", key)], [lost]


def _read_adapted_file(table: "AdapterTable", problems_csv: Path | None, key: str, scratch: Path) -> _Read:
    """As in a run: problems come from the file itself, and from the problems file for those that it lists."""
    from touchstone.ingest.fixes import read_attempts
    from touchstone.ingest.problems import derived_problems
    from touchstone.ingest.quarantine import rows_without_model

    problems, lost = derived_problems([table]), [rows_without_model(table)]
    if problems_csv is not None:
        listed, refused = _read_problems(problems_csv, key, scratch)
        problems = pl.concat([listed, problems.join(listed, on="oid", how="anti")], how="diagonal").sort("oid")
        lost.append(refused)
    models = table.models()
    reads = [
        read_attempts(table.for_model(model), model, problems.lazy(), scratch / f"fixes-{place}.parquet")
        for place, model in enumerate(models)
    ]
    return problems, reads, lost


def _read_problems(path: Path, key: str, scratch: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    from touchstone.ingest.problems import read_problems
    from touchstone.tables import TABLES

    read = read_problems(path, scratch / "problems.parquet", key)
    return read.problems.select(list(TABLES["problems"].dtypes)).collect(), read.quarantine


def _scored(reads: list["IngestedAttempts"], scoring: "Scoring | None") -> pl.DataFrame:
    from touchstone.config import Scoring
    from touchstone.metrics.attempts import attempt_scores
    from touchstone.validation.recorded import recorded_outcomes

    if not reads:
        return pl.DataFrame()
    weights = scoring or Scoring()
    frames = [attempt_scores(read.attempts, recorded_outcomes(read.attempts), weights) for read in reads]
    return pl.concat([frame.collect() for frame in frames])


def _beside(path: Path) -> Path | None:
    place = path.parent / "problems.csv"
    return place if place.is_file() else None


def _first_refusal(quarantine: tuple[pl.DataFrame, ...]) -> str:
    if not quarantine:
        return ""
    first = quarantine[0].row(0, named=True)
    return f"; {first['source_file']}, line {first['line']}: {first['reason']}"
