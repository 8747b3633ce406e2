"""The problems and attempts of input files, read into memory without an output folder: for quick commands."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from touchstone.config import EvaluationConfig, first_problems_csv
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.combining import combine
from touchstone.ingest.discovery import Discovery, discover
from touchstone.ingest.fixes import IngestedAttempts, read_attempts, read_fixes
from touchstone.ingest.input_paths import input_files
from touchstone.ingest.limits import use_limits
from touchstone.ingest.problems import derived_problems, read_problems, with_derived
from touchstone.ingest.sources import NATIVE, Source
from touchstone.ingest.sources_table import quarantine_without_model
from touchstone.ingest.unchanged import read_unchanged
from touchstone.progress import report_step
from touchstone.tables import TABLES


@dataclass
class InputRows:
    """The problems, the attempts by model, the refused rows, and what a user should know.

    `unreadable` has a line for each model whose files cannot be used, and each file that is refused.
    """

    discovery: Discovery
    problems: pl.DataFrame
    attempts: dict[str, pl.DataFrame] = field(default_factory=dict)
    quarantine: list[pl.DataFrame] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def read_inputs(config: EvaluationConfig, scratch: Path) -> InputRows:
    """Read the inputs of a configuration. A model whose files cannot be read is noted and the others go on.

    Read again once if a file changes meanwhile.
    """
    use_limits(config.input_limits)
    problems = config.problems_csv or first_problems_csv(config)

    def files() -> list[Path]:
        return [*input_files(config), *([problems] if problems is not None else [])]

    return read_unchanged(files, lambda: _read_once(config, scratch))


def _read_once(config: EvaluationConfig, scratch: Path) -> InputRows:
    discovery = discover(config)
    problems, refused = _problems(config, discovery, scratch)
    rows = InputRows(discovery, problems, quarantine=[*refused, quarantine_without_model(discovery)])
    rows.unreadable += sorted(set(discovery.refused.values()))
    for name, table in discovery.adapter_tables.items():
        rows.notes += [f"{name.name}: {note}" for note in table.notes]
    known = rows.problems.lazy()
    for place, (model, sources) in enumerate(discovery.sources.items(), start=1):
        report_step(f"attempts of {model} ({place} of {len(discovery.sources)})")
        try:
            parts = [_read(source, discovery, known, config, scratch) for source in sources]
        except InputFileError as error:
            rows.unreadable.append(str(error))
            continue
        _add(rows, model, sources, parts)
    return rows


def _add(rows: InputRows, model: str, sources: Sequence[Source], parts: Sequence[IngestedAttempts]) -> None:
    combined = combine(model, sources, parts)
    if combined.conflict is not None:
        rows.unreadable.append(combined.conflict)
        return
    rows.attempts[model] = pl.concat([part.attempts for part in combined.parts], how="diagonal").collect()
    rows.quarantine += [part.quarantine for part in combined.parts]
    rows.notes += [f"{source.name}: {note}" for source, note in zip(sources, combined.notes, strict=True) if note]


def _problems(config: EvaluationConfig, discovery: Discovery, scratch: Path) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """The problems that the files bring, after those that a problems file lists; and its refused rows."""
    problems = derived_problems(list(discovery.adapter_tables.values()))
    place = config.problems_csv or first_problems_csv(config)
    if place is not None:
        read = read_problems(place, scratch / "problems.parquet", config.problem_key, config.columns)
        listed = read.problems.select(list(TABLES["problems"].dtypes))
        return with_derived(listed, problems.lazy()).collect(), [read.quarantine]
    every = (source for sources in discovery.sources.values() for source in sources)
    native = next((source.path for source in every if source.format == NATIVE), None)
    if native is not None:
        beside = native.parent / "problems.csv"
        raise TouchstoneError(f"{native}: no problems file ({beside} does not exist); add --problems-csv FILE")
    return problems, []


def _read(
    source: Source, discovery: Discovery, problems: pl.LazyFrame, config: EvaluationConfig, scratch: Path
) -> IngestedAttempts:
    rows = scratch / "fixes.parquet"
    if source.format == NATIVE:
        read = read_fixes(source.path, source.model, problems, rows, config.problem_key, config.columns)
    else:
        read = read_attempts(
            discovery.adapter_tables[source.path].for_model(source.model), source.model, problems, rows
        )
    # The rows are in a file that the next source overwrites.
    return IngestedAttempts(read.attempts.collect().lazy(), read.quarantine, read.rows, read.accepted)
