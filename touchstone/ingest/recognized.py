"""What was recognized among the inputs: each file or folder with its format, models, problems and attempts."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from touchstone.ingest.adapters import AdapterTable, adapter_of
from touchstone.ingest.csv_rows import ROW_ERROR, open_table, read_rows
from touchstone.ingest.discovery import Discovery, NotEvaluated
from touchstone.ingest.sources import NATIVE, Source
from touchstone.vocabulary import DEFAULT_TIER

NATIVE_TITLE = "a fixes CSV"
_KEY = ("llm_name", "tier", "oid")


@dataclass(frozen=True)
class RecognizedSource:
    """A file or folder that is evaluated. `most_attempts` is the largest number at one problem by one model."""

    name: str
    title: str
    models: tuple[str, ...]
    problems: int
    attempts: int
    refused: int
    most_attempts: int
    notes: tuple[str, ...] = ()


def recognized_sources(discovery: Discovery, problem_key: str = "oid") -> list[RecognizedSource]:
    """Every file or folder that is evaluated, by name."""
    by_path: dict[str, list[Source]] = {}
    for sources in discovery.sources.values():
        for source in sources:
            by_path.setdefault(source.name, []).append(source)
    return [_recognized(name, sources, discovery, problem_key) for name, sources in sorted(by_path.items())]


def left_out(discovery: Discovery) -> Iterator[NotEvaluated]:
    """What is not evaluated although a user may expect it: everything but outputs and files that hold no data."""
    quiet = ("output", "ignored")
    return (each for each in discovery.not_evaluated if each.format is not None or each.status not in quiet)


def _recognized(name: str, sources: list[Source], discovery: Discovery, problem_key: str) -> RecognizedSource:
    models = tuple(sorted(source.model for source in sources))
    first = sources[0]
    if first.format == NATIVE:
        return _native(name, models, first, problem_key)
    table = discovery.adapter_tables[first.path]
    good = table.frame.lazy().filter(pl.col(ROW_ERROR).is_null())
    problems, attempts, most = _counts(good, _given(table))
    title = adapter_of(first.format).title
    refused = table.frame.height - attempts
    return RecognizedSource(name, title, models, problems, attempts, refused, most, table.notes)


def _native(name: str, models: tuple[str, ...], source: Source, problem_key: str) -> RecognizedSource:
    table = open_table(source.path)
    tier = pl.col("tier") if "tier" in table.columns else pl.lit(DEFAULT_TIER)

    def counted(rows: pl.LazyFrame) -> tuple[int, int, int, int]:
        good = rows.filter(pl.col(ROW_ERROR).is_null())
        found = _counts(good, {"llm_name": pl.lit(models[0]), "tier": tier, "oid": pl.col(problem_key)})
        return (*found, int(rows.select(pl.len()).collect().item()))

    problems, attempts, most, rows = read_rows(table, counted)
    return RecognizedSource(name, NATIVE_TITLE, models, problems, attempts, rows - attempts, most)


def _given(table: AdapterTable) -> dict[str, pl.Expr]:
    tier = pl.col("tier").fill_null(DEFAULT_TIER) if "tier" in table.columns else pl.lit(DEFAULT_TIER)
    return {"llm_name": pl.col("llm_name"), "tier": tier, "oid": pl.col("oid")}


def _counts(rows: pl.LazyFrame, key: dict[str, pl.Expr]) -> tuple[int, int, int]:
    """The number of problems and attempts, and the largest number of attempts at one problem."""
    sizes = rows.select(**key).group_by(*_KEY).len().collect()
    if sizes.is_empty():
        return 0, 0, 0
    return sizes["oid"].n_unique(), int(sizes["len"].sum()), int(sizes["len"].max())  # type: ignore[arg-type]
