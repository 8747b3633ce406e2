"""The inputs of `touchstone compare`, read into the scores of their attempts.

An input is a folder with tables (an output folder or a snapshot), or a file or folder of results in a known format.
Files go through the same readers and the same scoring as in a run. Nothing is validated here, so an attempt without a
recorded outcome has no score. Readers are imported only for files, because a comparison of folders should start fast.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from touchstone.comparison.regressions import SCORE_COLUMNS
from touchstone.errors import TouchstoneError
from touchstone.locations import is_mirror
from touchstone.storage.files import parquet_files, refuse_links_out, sha256_of
from touchstone.storage.output_folders import folder_at
from touchstone.storage.snapshots import read_snapshot
from touchstone.storage.store import digest
from touchstone.tables import TABLES
from touchstone.validation.validators_used import SCHEMA, recorded_validators, snapshot_validators, validators_used

if TYPE_CHECKING:
    from touchstone.config.scoring import Scoring
    from touchstone.ingest.discovery import Discovery

STATED = ("model", "suite", "dimension", "setting", "value")


@dataclass(frozen=True)
class ComparisonInput:
    """One of the two evaluations to compare.

    `quarantine` holds the refused rows of its files, `notes` what to know about them. `validators` are those that
    decided the outcomes, or None if that is not known. `settings` are those that its files state (the table
    `source_settings`), `files` the digests of these by model, and `configured` the settings of its run, likewise.
    `failures` is the table of that name: why attempts failed; None if that is not known.
    """

    label: str
    attempt_scores: pl.LazyFrame
    problems: pl.LazyFrame | None = None
    quarantine: tuple[pl.DataFrame, ...] = ()
    validators: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()
    settings: pl.DataFrame | None = None
    files: pl.DataFrame | None = None
    configured: Mapping[str, str] | None = None
    failures: pl.DataFrame | None = None


def open_input(text: str, *, score: str | None = None, **settings: Any) -> ComparisonInput:
    """Open the results of a run, or files; `settings` are those of a configuration, for files only.

    >>> open_input("nowhere")
    Traceback (most recent call last):
    touchstone.errors.TouchstoneError: nowhere: no such file or folder
    """
    path = folder_at(text)
    if not text.strip() or not path.exists():
        raise TouchstoneError(f"{text or 'the empty name'}: no such file or folder")
    if path.is_dir() and ((path / "tables").exists() or (path / "snapshots").exists()):
        return _open_folder(text, path)
    problems_csv = settings.get("problems_csv")
    if problems_csv is not None and is_mirror(problems_csv):
        from touchstone.storage.input_mirror import fetch

        fetch([problems_csv])
    return _open_files(text, path, score, settings)


# Folders


def _open_folder(label: str, folder: Path) -> ComparisonInput:
    refuse_links_out(folder, "tables")
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
    baselines = _scan(label, tables / "baselines", ["oid"])
    if problems is not None and baselines is not None:
        problems = with_files(problems, baselines)
    validators = _validators_of_folder(label, folder, tables)
    # A run of an earlier version has no such settings: then they are unknown.
    settings = _scan(label, tables / "source_settings", STATED)
    files = _scan(label, tables / "sources", ["model", "sha256"])
    configured = _scan(label, tables / "settings", ["key", "value"])
    failures = _scan(label, tables / "failures", ["fingerprint", "attempts"])
    return ComparisonInput(
        label,
        scores,
        problems,
        validators=validators,
        settings=settings.select(STATED).collect() if settings is not None else None,
        files=files.select("model", "sha256").collect() if files is not None else None,
        configured=dict(configured.select("key", "value").collect().iter_rows()) if configured is not None else None,
        failures=failures.collect() if failures is not None else None,
    )


def with_files(problems: pl.LazyFrame, baselines: pl.LazyFrame) -> pl.LazyFrame:
    """The problems with the digest of their files, where fixes were validated; an earlier version kept none."""
    if "files_sha" not in baselines.collect_schema():
        return problems
    return problems.join(baselines.select("oid", "files_sha"), on="oid", how="left")


def _validators_of_folder(label: str, folder: Path, tables: Path) -> pl.DataFrame | None:
    """From the table `outcomes` of a run, or from the manifest of a snapshot; old manifests lack it."""
    outcomes = _scan(label, tables / "outcomes", [*SCHEMA, "passed"])
    if outcomes is not None:
        return validators_used(outcomes)
    snapshot = read_snapshot(folder)
    return snapshot_validators(snapshot.validation) if snapshot is not None and snapshot.validation else None


def _scan(label: str, table: Path, needed: Sequence[str]) -> pl.LazyFrame | None:
    """The table, or None if the folder has none; the `needed` columns must have the types of the contract."""
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


def _open_files(label: str, path: Path, score: str | None, settings: Mapping[str, object]) -> ComparisonInput:
    from touchstone.ingest.implied_config import implied_config
    from touchstone.ingest.read_inputs import read_inputs
    from touchstone.ingest.sources_table import source_settings_frame
    from touchstone.metrics.failures import failures
    from touchstone.validation.recorded import recorded_outcomes

    config = implied_config([path], score).model_copy(update=settings)
    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        rows = read_inputs(config, Path(scratch))
    if rows.unreadable:
        raise TouchstoneError("; ".join(rows.unreadable))
    quarantine = tuple(frame for frame in rows.quarantine if not frame.is_empty())
    outcomes = [recorded_outcomes(each.lazy()) for each in rows.attempts.values()]
    scores = _scored(list(rows.attempts.values()), outcomes, config.scoring)
    if scores.is_empty():
        raise TouchstoneError(f"{label}: there is no usable attempt{_first_refusal(quarantine)}")
    validators = recorded_validators(scores)
    return ComparisonInput(
        label,
        scores.lazy(),
        rows.problems.lazy(),
        quarantine,
        validators,
        tuple(rows.notes),
        source_settings_frame(rows.discovery),
        _digests(rows.discovery),
        failures=pl.concat([failures(each).collect() for each in outcomes]),
    )


def _digests(discovery: "Discovery") -> pl.DataFrame:
    """The digest of each file by model; of a source that is several files, the digest of their digests."""
    rows = []
    for model, sources in discovery.sources.items():
        for source in sources:
            table = discovery.adapter_tables.get(source.path)
            hashes = sorted(map(sha256_of, (table.files if table is not None else ()) or (source.path,)))
            rows.append((model, hashes[0] if len(hashes) == 1 else digest(hashes)))
    return pl.DataFrame(rows, schema={"model": pl.String, "sha256": pl.String}, orient="row")


def _scored(attempts: list[pl.DataFrame], outcomes: list[pl.LazyFrame], scoring: "Scoring") -> pl.DataFrame:
    from touchstone.metrics.attempts import attempt_scores

    frames = [attempt_scores(each.lazy(), judged, scoring) for each, judged in zip(attempts, outcomes, strict=True)]
    return pl.concat([frame.collect() for frame in frames]) if frames else pl.DataFrame()


def _first_refusal(quarantine: tuple[pl.DataFrame, ...]) -> str:
    if not quarantine:
        return ""
    first = quarantine[0].row(0, named=True)
    return f"; {first['source_file']}, line {first['line']}: {first['reason']}"
