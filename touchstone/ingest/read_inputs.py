"""The problems and attempts of input files, read into memory without an output folder: for quick commands."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from touchstone.config import EvaluationConfig, first_problems_csv
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.attempts import IngestedAttempts, open_fixes, read_attempts, sort_attempts
from touchstone.ingest.clean_files import read_fixes_csv
from touchstone.ingest.combining import DECIDING_COLUMNS, combine
from touchstone.ingest.discovery import Discovery, discover, files_with_problems
from touchstone.ingest.input_paths import input_files
from touchstone.ingest.limits import use_limits
from touchstone.ingest.problems import NO_PROBLEMS_FILE, derived_problems, read_problems, with_derived
from touchstone.ingest.sources import NATIVE, Source, read_unchanged
from touchstone.ingest.sources_table import quarantine_without_model
from touchstone.progress import report_step
from touchstone.tables import TABLES
from touchstone.text import files_by_note
from touchstone.vocabulary import ASKED, JUDGED_BY

# Fixes and other long texts would take as much memory as their file.
_KEPT = frozenset({*TABLES["attempts"].dtypes, *DECIDING_COLUMNS, "cluster", "error"})


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


def read_inputs(config: EvaluationConfig, scratch: Path, columns: Collection[str] = _KEPT) -> InputRows:
    """Read the inputs of a configuration. A model whose files cannot be read is noted and the others go on.

    `columns` are those that the attempts must have. Read again once if a file changes meanwhile.
    """
    use_limits(config.input_limits)
    problems = first_problems_csv(config)

    def files() -> list[Path]:
        return [*input_files(config), *([problems] if problems is not None else [])]

    return read_unchanged(files, lambda: _read_once(config, scratch, columns))


def _read_once(config: EvaluationConfig, scratch: Path, columns: Collection[str]) -> InputRows:
    discovery = discover(config)
    problems, refused, notes = _problems(config, discovery, scratch)
    rows = InputRows(discovery, problems, quarantine=[*refused, quarantine_without_model(discovery)], notes=notes)
    rows.unreadable += sorted(set(discovery.refused.values()))
    if config.rulings_file.exists():
        rows.notes.append(f"{config.rulings_file.name}: not applied here; `touchstone run` counts what people ruled")
    said = [(path.name, note) for path, table in discovery.adapter_tables.items() for note in table.notes]
    known = rows.problems.lazy()
    for place, (model, sources) in enumerate(discovery.sources.items(), start=1):
        report_step(f"attempts of {model} ({place} of {len(discovery.sources)})")
        kept = {*columns, *DECIDING_COLUMNS} if len(sources) > 1 else columns
        try:
            parts = [_read(source, discovery, known, config, scratch, kept) for source in sources]
        except InputFileError as error:
            # A file of several models says the same of each.
            rows.unreadable += {str(error)}.difference(rows.unreadable)
            continue
        said += _add(rows, model, sources, parts)
    rows.notes += [f"{files}: {note}" for files, note in files_by_note(said)]
    return rows


def _add(
    rows: InputRows, model: str, sources: Sequence[Source], parts: Sequence[IngestedAttempts]
) -> list[tuple[str, str]]:
    """Add the attempts of a model; returns notes with the file that each is about."""
    combined = combine(model, sources, parts, rows.discovery.adapter_tables)
    if combined.conflict is not None:
        rows.unreadable.append(combined.conflict)
        return []
    rows.attempts[model] = pl.concat([part.attempts for part in combined.parts], how="diagonal").collect()
    rows.quarantine += [part.quarantine for part in combined.parts]
    noted = zip(sources, parts, combined.notes, strict=True)
    return [(source.name, each) for source, part, note in noted for each in (*part.notes, note) if each]


def _problems(
    config: EvaluationConfig, discovery: Discovery, scratch: Path
) -> tuple[pl.DataFrame, list[pl.DataFrame], list[str]]:
    """The problems that the files bring, after those that a problems file lists; its refused rows; and what to note."""
    key, adapted = config.problem_key, discovery.adapter_tables
    files = files_with_problems(discovery, config)
    tables = [adapted.get(path) or open_fixes(path, key, config.columns) for path in files]
    problems = derived_problems(tables, key)
    place = discovery.problems_csv
    if place is not None:
        scratched = scratch / "problems.parquet"
        read = read_problems(place, scratched, config.problem_key, config.columns, config.cluster_columns)
        kept = {*TABLES["problems"].dtypes, *ASKED, *JUDGED_BY} - {"excluded"}
        listed = read.problems.select(name for name in read.problems.collect_schema() if name in kept)
        notes = [f"{place.name}: {note}" for note in read.notes]
        return with_derived(listed, problems.lazy()).collect(), [read.quarantine], notes
    every = (source for sources in discovery.sources.values() for source in sources)
    native = [source.path for source in every if source.format == NATIVE]
    lacking = next((path for path in native if path not in files), None)
    if lacking is not None:
        beside = lacking.parent / "problems.csv"
        raise TouchstoneError(f"{lacking}: no problems file ({beside} does not exist); add --problems-csv FILE")
    return problems, [], [NO_PROBLEMS_FILE] if native else []


def _read(
    source: Source,
    discovery: Discovery,
    problems: pl.LazyFrame,
    config: EvaluationConfig,
    scratch: Path,
    columns: Collection[str],
) -> IngestedAttempts:
    rows = scratch / "fixes.parquet"
    if source.format == NATIVE:
        table = open_fixes(source.path, config.problem_key, config.columns)
        read = read_fixes_csv(table, source.model, problems, rows, config.problem_key)
    else:
        read = read_attempts(
            discovery.adapter_tables[source.path].for_model(source.model), source.model, problems, rows
        )
    names = [name for name in read.attempts.collect_schema().names() if name in columns]
    # The rows are in a file that the next source overwrites.
    return replace(read, attempts=sort_attempts(read.attempts.select(names)).collect().lazy())
