"""The two sides of `touchstone compare`: whatever a person names, as the scores of its attempts.

A side is a folder with tables (an output folder or a snapshot), a fixes file, or a report of another system. Files are
read by the same readers and scored by the same metric as in a run; nothing is validated here, so an attempt without an
outcome has no score. What is loaded depends on the side: folders need neither readers nor contracts.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from touchstone.compare.validation_differences import SCHEMA, recorded_validators, snapshot_validators, validators_used
from touchstone.errors import TouchstoneError
from touchstone.storage.snapshots import read_snapshot

if TYPE_CHECKING:
    from touchstone.config import Scoring
    from touchstone.ingest.adapters import AdapterTable
    from touchstone.ingest.fixes import IngestedAttempts

KINDS = "a folder with tables, a fixes CSV, a forgetest report, a ProjectScylla runs.csv or FailProof results"

_SCORES = ("pass_rate", "composite_score", "code_score", "compilation_score", "test_score", "lint_score")
_COLUMNS = {
    **dict.fromkeys(("model", "tier", "oid", "iteration_id"), pl.String),
    **dict.fromkeys(_SCORES, pl.Float64),
    **dict.fromkeys(("ran_tests", "lint_measured"), pl.Boolean),
}
_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")


@dataclass(frozen=True)
class ComparisonInput:
    """One side of a comparison.

    `quarantine` holds the rows of its files that were refused; `validators` says what decided the outcomes, and is None
    where that was not recorded.
    """

    label: str
    attempt_scores: pl.LazyFrame
    problems: pl.LazyFrame | None = None
    quarantine: tuple[pl.DataFrame, ...] = ()
    validators: pl.DataFrame | None = None


def open_input(
    text: str, problems_csv: Path | None = None, scoring: "Scoring | None" = None, problem_key: str = "oid"
) -> ComparisonInput:
    """The side that a path names. `problems_csv`, `scoring` and `problem_key` matter for files only.

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
    # `tables` of an output folder is a link that the next run moves on; all of it must come from one run.
    tables = (folder / "tables").resolve()
    if not (tables / "attempt_scores").is_dir():
        hint = "; name one of the folders in its 'snapshots'" if (folder / "snapshots").is_dir() else ""
        raise TouchstoneError(f"{label}: the folder has no results (there is no tables/attempt_scores){hint}")
    scores = _scan(label, tables / "attempt_scores", _COLUMNS)
    if scores is None or scores.select(pl.len()).collect().item() == 0:
        raise TouchstoneError(f"{label}: there are no attempts in tables/attempt_scores")
    problems = _scan(label, tables / "problems", {"oid": pl.String})
    return ComparisonInput(label, scores, problems, validators=_validators_of_folder(label, folder, tables))


def _validators_of_folder(label: str, folder: Path, tables: Path) -> pl.DataFrame | None:
    """A run's tables hold its outcomes; a snapshot's manifest says what decided them, unless it is an old one."""
    needed = {**dict.fromkeys(SCHEMA, pl.String), "passed": pl.Boolean}
    outcomes = _scan(label, tables / "outcomes", needed)
    if outcomes is not None:
        return validators_used(outcomes)
    snapshot = read_snapshot(folder)
    return snapshot_validators(snapshot.validation) if snapshot is not None and snapshot.validation else None


def _scan(label: str, table: Path, needed: dict[str, type[pl.DataType]]) -> pl.LazyFrame | None:
    files = sorted(table.glob("*.parquet"))
    for file in files:
        _check(label, file, needed)
    if not files:
        return None
    return pl.scan_parquet(files, glob=False, missing_columns="insert", extra_columns="ignore")


def _check(label: str, file: Path, needed: dict[str, type[pl.DataType]]) -> None:
    name = f"tables/{file.parent.name}/{file.name}"
    try:
        schema = pl.read_parquet_schema(file)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise TouchstoneError(f"{label}: {name} cannot be read ({reason})") from None
    wrong = [column for column, dtype in needed.items() if schema.get(column) != dtype]
    if wrong:
        raise TouchstoneError(f"{label}: {name} lacks {', '.join(wrong)}, so another version made it; run it again")


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
            raise TouchstoneError(f"{label}: not a file that can be compared; expected {KINDS}")
        quarantine = tuple(frame for frame in (*lost, *(read.quarantine for read in reads)) if not frame.is_empty())
        # The attempts lie in the scratch folder, so they are read before it goes.
        scores = _scored(reads, scoring)
    if scores.is_empty():
        raise TouchstoneError(f"{label}: there is no usable attempt in the file{_first_refusal(quarantine)}")
    return ComparisonInput(label, scores.lazy(), problems.lazy(), quarantine, recorded_validators(scores))


_Read = tuple[pl.DataFrame, list["IngestedAttempts"], list[pl.DataFrame]]


def _read_native(path: Path, problems_csv: Path | None, key: str, scratch: Path) -> _Read:
    from touchstone.ingest.fixes import read_fixes
    from touchstone.ingest.sources import check_name, model_of

    model = check_name(model_of(path), "model")
    if problems_csv is None:
        raise TouchstoneError(
            f"{path}: no problems file; there is no {path.parent / 'problems.csv'}, so name one with --problems-csv"
        )
    problems, lost = _read_problems(problems_csv, key, scratch)
    return problems, [read_fixes(path, model, problems.lazy(), scratch / "fixes.parquet", key)], [lost]


def _read_adapted_file(table: "AdapterTable", problems_csv: Path | None, key: str, scratch: Path) -> _Read:
    """As in a run: the file brings its own problems, and a problems file knows more of those that it lists."""
    from touchstone.ingest.fixes import read_attempts
    from touchstone.ingest.problems import derived_problems
    from touchstone.ingest.sources import check_name

    problems, lost = derived_problems([table]), [_without_a_model(table)]
    if problems_csv is not None:
        listed, refused = _read_problems(problems_csv, key, scratch)
        problems = pl.concat([listed, problems.join(listed, on="oid", how="anti")], how="diagonal").sort("oid")
        lost.append(refused)
    models = [check_name(name, "model") for name in table.models()]
    reads = [
        read_attempts(table.for_model(model), model, problems.lazy(), scratch / f"fixes-{place}.parquet")
        for place, model in enumerate(models)
    ]
    return problems, reads, lost


def _read_problems(path: Path, key: str, scratch: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    from touchstone.ingest.problems import read_problems

    read = read_problems(path, scratch / "problems.parquet", key)
    return read.problems.select("oid", "filename", "suite", "cluster", "only_tier").collect(), read.quarantine


def _without_a_model(table: "AdapterTable") -> pl.DataFrame:
    from touchstone.ingest.adapters.common import MODEL, ROW_ERROR_KIND
    from touchstone.ingest.csv_rows import LINE, ROW_ERROR
    from touchstone.ingest.quarantine import Refusal, quarantine_frame

    rows = table.frame.filter(pl.col(MODEL).is_null()).select(LINE, ROW_ERROR_KIND, ROW_ERROR).iter_rows()
    return quarantine_frame(table, [Refusal(line, kind, reason) for line, kind, reason in rows])


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
