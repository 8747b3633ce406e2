"""The table `sources`: the status of every input file, and quarantine rows that belong to no model.

How a file is classified belongs in `discovery`, how it is read in `attempts`, `problems` and `adapters`.
"""

from collections.abc import Iterable, Iterator

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable
from touchstone.ingest.adapters.table import MODEL
from touchstone.ingest.attempts import IngestedAttempts, fixes_columns
from touchstone.ingest.csv_rows import open_table, read_header, read_rows
from touchstone.ingest.discovery import Discovery
from touchstone.ingest.quarantine import SCHEMA as QUARANTINE_SCHEMA
from touchstone.ingest.quarantine import refused_file, rows_without_model
from touchstone.ingest.sources import NATIVE, Source
from touchstone.tables import TABLES

Row = dict[str, object]
# The tool that judged the attempts of a format.
_JUDGES = {
    "inspect": "Inspect",
    "lm-eval": "lm-eval",
    "swebench-report": "SWE-bench",
    "swebench-logs": "SWE-bench",
    "swebench-submission": "SWE-bench",
    "harbor": "Harbor",
    "terminal-bench": "Terminal-Bench",
    "promptfoo": "promptfoo",
    "evalplus": "EvalPlus",
    "human-eval": "HumanEval",
    "livecodebench": "LiveCodeBench",
    "livecodebench-tests": "LiveCodeBench",
    "cruxeval": "CRUXEval",
}
_MOST_VALUES = 50
# Columns of rows that state a setting, by its dimension.
_SETTING_COLUMNS = {
    "task_version": "task_version",
    "dataset_version": "task_version",
    "n_shot": "generation",
    "temperature": "generation",
    "agent": "agent",
    "agent_version": "agent",
    "lm_eval_version": "harness",
}


def sources_frame(rows: Iterable[Row]) -> pl.LazyFrame:
    """Rows as the table `sources`; a column that a row lacks is null."""
    return pl.LazyFrame(list(rows), schema=TABLES["sources"].dtypes)


def evaluated_row(source: Source, sha256: str, rows: int, accepted: int, notes: Iterable[str] = ()) -> Row:
    """The row of a file that was read."""
    noted = "; ".join(notes) or None
    return _named(source) | {"status": "evaluated", "notes": noted, "sha256": sha256} | _counts(rows, accepted)


def refused_row(source: Source, sha256: str | None, reason: str) -> Row:
    """The row of a file that could not be read for its model."""
    return _named(source) | {"status": "refused", "reason": reason, "sha256": sha256} | _counts(0, 0)


def problems_row(name: str, sha256: str, rows: int, accepted: int, notes: Iterable[str] = ()) -> Row:
    """The row of the problems file."""
    named = {"source_file": name, "status": "problems", "reason": "the list of problems", "format": NATIVE}
    return named | {"notes": "; ".join(notes) or None, "sha256": sha256} | _counts(rows, accepted)


def not_evaluated_rows(discovery: Discovery) -> list[Row]:
    """The rows of files that are not evaluated."""
    return [{"source_file": each.file, **vars(each)} for each in discovery.not_evaluated]


def quarantine_without_model(discovery: Discovery) -> pl.DataFrame:
    """Quarantine rows of refused files, and of records that name no usable model."""
    frames = [refused_file(name, reason) for name, reason in sorted(discovery.refused.items())]
    for label, table in _labeled_tables(discovery):
        frames.append(rows_without_model(table).with_columns(source_file=pl.lit(label)))
    return pl.concat([pl.DataFrame(schema=QUARANTINE_SCHEMA), *frames])


def reported_figures_frame(discovery: Discovery) -> pl.DataFrame:
    """The table `reported_figures`: what the files state, for the models that are evaluated."""
    rows = [
        {"source_file": label, "figure": each.name, **vars(each)}
        for label, table in _labeled_tables(discovery)
        for each in table.figures
        if each.model in discovery.sources
    ]
    return pl.DataFrame(rows, schema=TABLES["reported_figures"].dtypes)


def source_settings_frame(discovery: Discovery) -> pl.DataFrame:
    """The table `source_settings`: what the files state about how their models were run and judged."""
    schema = TABLES["source_settings"].dtypes
    rows: list[Row] = [
        {"source_file": label, "setting": each.name, **vars(each)}
        for label, table in _labeled_tables(discovery)
        for each in table.settings
    ]
    for source in (source for sources in discovery.sources.values() for source in sources):
        if source.format in _JUDGES:
            judge = {"dimension": "validator", "setting": "judged by", "value": _JUDGES[source.format]}
            rows.append({"source_file": source.name, "model": source.model, **judge})
    frames = [_stated_in_columns(label, table) for label, table in _labeled_tables(discovery)]
    own = [each for sources in discovery.sources.values() for each in sources if each.format == NATIVE]
    frames += [_stated_in_own_columns(source) for source in own]
    evaluated = pl.col("model").is_in(list(discovery.sources))
    return pl.concat([pl.DataFrame(rows, schema=schema), *frames]).filter(evaluated).unique().sort(list(schema))


def _stated_in_columns(label: str, table: AdapterTable) -> pl.DataFrame:
    """The settings that a file of another tool states in columns of its rows."""
    if not (found := _SETTING_COLUMNS.keys() & set(table.columns)):
        return pl.DataFrame(schema=TABLES["source_settings"].dtypes)
    suite = pl.col("suite") if "suite" in table.columns else pl.lit(None, pl.String)
    with table.reading():
        stated = table.rows.select(pl.col(MODEL).alias("model"), suite.alias("suite"), *found).unique().collect()
    return _settings_of(label, stated)


def _stated_in_own_columns(source: Source) -> pl.DataFrame:
    """The settings in a fixes CSV. A file that cannot be read states none; the table `sources` says why."""
    schema, known = TABLES["source_settings"].dtypes, fixes_columns()
    try:
        if not (found := _SETTING_COLUMNS.keys() & set(read_header(source.path, known=known))):
            return pl.DataFrame(schema=schema)
        stated = read_rows(
            open_table(source.path, known=known),
            lambda rows: rows.select(pl.col(*found).str.strip_chars().replace("", None)).unique().collect(),
        )
    except (InputFileError, pl.exceptions.PolarsError):
        return pl.DataFrame(schema=schema)
    named = stated.with_columns(model=pl.lit(source.model), suite=pl.lit(None, pl.String))
    return _settings_of(source.name, named)


def _settings_of(label: str, stated: pl.DataFrame) -> pl.DataFrame:
    # A column with a value of its own for each attempt is not a setting.
    found = [name for name in _SETTING_COLUMNS if name in stated and stated[name].n_unique() <= _MOST_VALUES]
    return (
        stated.unpivot(found, index=["model", "suite"], variable_name="setting")
        .drop_nulls(["model", "value"])
        .with_columns(
            source_file=pl.lit(label),
            dimension=pl.col("setting").replace_strict(_SETTING_COLUMNS, return_dtype=pl.String),
        )
        .select(list(TABLES["source_settings"].dtypes))
    )


def _labeled_tables(discovery: Discovery) -> Iterator[tuple[str, AdapterTable]]:
    labels = {source.path: source.name for sources in discovery.sources.values() for source in sources}
    return ((labels.get(path, path.name), table) for path, table in discovery.adapter_tables.items())


def no_attempts(source: Source, reason: str) -> IngestedAttempts:
    """The result for a refused file: no attempts, and the file in quarantine."""
    attempts = pl.LazyFrame(schema=TABLES["attempts"].dtypes)
    return IngestedAttempts(attempts, refused_file(source.name, reason), 0, 0)


def _named(source: Source) -> Row:
    return {"source_file": source.name, "model": source.model, "format": source.format}


def _counts(rows: int, accepted: int) -> Row:
    return {"rows": rows, "accepted": accepted, "quarantined": rows - accepted}
