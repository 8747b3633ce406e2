"""The recognized inputs: each file or folder with its format, models, problems and attempts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from touchstone.config import EvaluationConfig
from touchstone.errors import InputFileError, reason_of
from touchstone.ingest.adapters import AdapterTable, adapter_of
from touchstone.ingest.adapters.table import MODEL
from touchstone.ingest.attempts import file_notes, open_fixes, read_attempts
from touchstone.ingest.csv_rows import ROW_ERROR, read_rows
from touchstone.ingest.discovery import Discovery, NotEvaluated, read_options
from touchstone.ingest.problems import derived_problems
from touchstone.ingest.quarantine import rows_without_model
from touchstone.ingest.sources import NATIVE, Source
from touchstone.text import counted
from touchstone.vocabulary import DEFAULT_TIER

NATIVE_TITLE = "a fixes CSV"
_KEY = ("llm_name", "tier", "oid")


@dataclass(frozen=True)
class RecognizedSource:
    """A file or folder with results. Rows that only reading it refuses are counted where `refused` is known.

    `most_attempts` is the largest number at one problem by one model in it.

    `unreadable` says why nothing in it can be counted, which only reading it as a whole shows.
    """

    name: str
    title: str
    models: tuple[str, ...]
    problems: int
    attempts: int
    most_attempts: int
    notes: tuple[str, ...] = ()
    unreadable: str | None = None
    refused: int | None = None


def recognized_sources(
    discovery: Discovery, config: EvaluationConfig, scratch: Path | None = None
) -> list[RecognizedSource]:
    """Every file or folder with results, by name; rows are read in full, and refused ones counted, with `scratch`."""
    by_path: dict[str, list[Source]] = {}
    for sources in discovery.sources.values():
        for source in sources:
            by_path.setdefault(source.name, []).append(source)
    return [_readable(name, sources, discovery, config, scratch) for name, sources in sorted(by_path.items())]


def contributions(discovery: Discovery, found: Sequence[RecognizedSource], most: int) -> pl.DataFrame:
    """The files summed by model and task, or by model alone if there are more than `most` such groups.

    A row has the number of files and the first of them, and the number of tasks, problems and attempts.
    """
    readable = {each.name for each in found}
    sources = {source.path: source.name for sources in discovery.sources.values() for source in sources}
    rows = [pl.LazyFrame(schema={"model": pl.String, "task": pl.String, "oid": pl.String, "file": pl.String})]
    for path in (path for path, name in sources.items() if path in discovery.adapter_tables and name in readable):
        table = discovery.adapter_tables[path]
        task = pl.col("suite") if "suite" in table.columns else pl.lit(None, pl.String)
        good = table.rows.filter(pl.col(ROW_ERROR).is_null(), pl.col(MODEL).is_in(list(discovery.sources)))
        rows.append(good.select(model=MODEL, task=task, oid="oid", file=pl.lit(sources[path])))
    held = pl.concat(rows).group_by("model", "task", "oid", "file").len("attempts").collect()
    by = ["model", "task"] if held.select(pl.struct("model", "task").n_unique()).item() <= most else ["model"]
    files, first = pl.col("file").n_unique().alias("files"), pl.col("file").min().alias("first")
    figures = [pl.col(name).n_unique().alias(f"{name}s") for name in ("task", "problem")]
    groups = held.rename({"oid": "problem"}).group_by(by).agg(files, first, *figures, pl.col("attempts").sum())
    native = [
        {"model": each.models[0], "files": 1, "first": each.name, "problems": each.problems, "attempts": each.attempts}
        for each in found
        if each.title == NATIVE_TITLE
    ]
    return pl.concat([groups, pl.DataFrame(native, schema_overrides=dict(groups.schema))], how="diagonal").sort(by)


def most_attempts(found: Sequence[RecognizedSource], discovery: Discovery) -> int:
    """The largest number at one problem by one model, also where its attempts are in several files."""
    most, is_good = max((each.most_attempts for each in found), default=1), pl.col(ROW_ERROR).is_null()
    for model, sources in discovery.sources.items():
        tables = [discovery.adapter_tables[each.path] for each in sources if each.format != NATIVE]
        tables = [table.for_model(model) for table in tables if "iteration_id" in table.columns]
        if len(tables) > 1:
            ids = [table.rows.filter(is_good).select(**_given(table), id="iteration_id") for table in tables]
            most = max(most, _counts(pl.concat(ids).unique(), {name: pl.col(name) for name in _KEY})[2])
    return most


def left_out(discovery: Discovery) -> Iterator[NotEvaluated]:
    """The files that a user may expect to be evaluated and are not: all but outputs and files without data."""
    quiet = ("output", "ignored")
    return (each for each in discovery.not_evaluated if each.format is not None or each.status not in quiet)


def _readable(
    name: str, sources: list[Source], discovery: Discovery, config: EvaluationConfig, scratch: Path | None
) -> RecognizedSource:
    try:
        found = _recognized(name, sources, discovery, config)
        return found if scratch is None else _without_refused(found, sources, discovery, config, scratch)
    except InputFileError as error:
        reason = reason_of(error, sources[0].path)
        return RecognizedSource(name, "", (), 0, 0, 0, unreadable=reason)


def _recognized(name: str, sources: list[Source], discovery: Discovery, config: EvaluationConfig) -> RecognizedSource:
    models = tuple(sorted(source.model for source in sources))
    first = sources[0]
    if first.format == NATIVE:
        return _native(name, models, first, config)
    table = discovery.adapter_tables[first.path]
    with table.reading():
        problems, attempts, most = _counts(table.rows.filter(pl.col(ROW_ERROR).is_null()), _given(table))
    title = adapter_of(first.format, read_options(config)).title
    return RecognizedSource(name, title, models, problems, attempts, most, (*table.notes, *file_notes(table)))


def _without_refused(
    found: RecognizedSource, sources: list[Source], discovery: Discovery, config: EvaluationConfig, scratch: Path
) -> RecognizedSource:
    """The source by the rows that are accepted, with a note on the others. Problems need not be listed here."""
    key, problems, accepted, quarantine = config.problem_key, set[str](), 0, []
    for source in sources:
        adapted = discovery.adapter_tables.get(source.path)
        table = adapted.for_model(source.model) if adapted else open_fixes(source.path, key, config.columns)
        named = derived_problems([table], key).lazy()
        read = read_attempts(table, source.model, named, scratch / "rows.parquet", "oid" if adapted else key)
        problems |= set(read.attempts.select(pl.col("oid").unique()).collect()["oid"])
        accepted += read.accepted
        quarantine.append(read.quarantine)
    if adapted := discovery.adapter_tables.get(sources[0].path):
        quarantine.append(rows_without_model(adapted))
    refused = pl.concat(quarantine).sort("line")
    notes = found.notes
    if not refused.is_empty():
        line, reason = refused.select("line", "reason").row(0)
        notes = (*notes, f"{counted(refused.height, 'row is', 'rows are')} refused; line {line}: {reason}")
    return replace(found, problems=len(problems), attempts=accepted, refused=refused.height, notes=notes)


def _native(name: str, models: tuple[str, ...], source: Source, config: EvaluationConfig) -> RecognizedSource:
    table = open_fixes(source.path, config.problem_key, config.columns)
    tier = pl.col("tier") if "tier" in table.columns else pl.lit(DEFAULT_TIER)

    def counted(rows: pl.LazyFrame) -> tuple[int, int, int]:
        good = rows.filter(pl.col(ROW_ERROR).is_null())
        return _counts(good, {"llm_name": pl.lit(models[0]), "tier": tier, "oid": pl.col(config.problem_key)})

    problems, attempts, most = read_rows(table, counted)
    return RecognizedSource(name, NATIVE_TITLE, models, problems, attempts, most, file_notes(table))


def _given(table: AdapterTable) -> dict[str, pl.Expr]:
    tier = pl.col("tier").fill_null(DEFAULT_TIER) if "tier" in table.columns else pl.lit(DEFAULT_TIER)
    return {"llm_name": pl.col("llm_name"), "tier": tier, "oid": pl.col("oid")}


def _counts(rows: pl.LazyFrame, key: dict[str, pl.Expr]) -> tuple[int, int, int]:
    """The number of problems and attempts, and the largest number of attempts at one problem."""
    sizes = rows.select(**key).drop_nulls("oid").group_by(*_KEY).len().collect(engine="streaming")
    if sizes.is_empty():
        return 0, 0, 0
    return sizes["oid"].n_unique(), int(sizes["len"].sum()), int(sizes["len"].max())  # type: ignore[arg-type]
