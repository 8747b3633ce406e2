"""What `run` and `inspect-files` print about input files: recognized, not evaluated, quarantined; and prices."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl
from rich.console import Console

from touchstone.cli.terminal_tables import FittedTable, names, numbers, prose
from touchstone.text import counted, files_by_note

if TYPE_CHECKING:
    from touchstone.ingest.discovery import Discovery
    from touchstone.ingest.recognized import RecognizedSource

_MAX_GROUPS = 30
_MAX_NAMES = 8
_MAX_ROWS = 40
# Of more files, what they hold is shown by model.
_MAX_FILES = 10
_MAX_MODELS = 3


def show_inputs(
    screen: Console, sources: pl.DataFrame, quarantine: pl.DataFrame, model_statistics: pl.DataFrame
) -> None:
    """Print prices matched by another name, what was assumed about files, and files and rows that were refused."""
    for line in price_matches(model_statistics):
        screen.print(line, markup=False)
    # A file of several models has a row for each.
    noted = sources.filter(pl.col("notes").is_not_null()).select("source_file", "notes").unique()
    show_notes(screen, noted.sort("source_file").iter_rows())
    files = files_table(sources)
    if files.rows:
        files.print(screen)
    others = other_files(sources)
    if others:
        screen.print(others, markup=False, style="dim")
    if not quarantine.is_empty():
        quarantine_table(quarantine).print(screen)


def files_table(sources: pl.DataFrame) -> FittedTable:
    """Data files that are not evaluated, and why. Unreadable files are in the quarantine instead."""
    shown = sources.filter(pl.col("status").is_in(("unknown", "left_out"))).sort("status", "source_file", "model")
    table = FittedTable([*names("file", "status"), *prose("reason")], title="files that are not evaluated")
    for file, status, reason in shown.select("source_file", "status", "reason").head(_MAX_GROUPS).iter_rows():
        table.add_row(file, status.replace("_", " "), reason)
    hidden = shown.height - _MAX_GROUPS
    table.caption = f"{hidden} more: SELECT * FROM sources" if hidden > 0 else ""
    return table


def other_files(sources: pl.DataFrame) -> str:
    """One line about copies of outputs, by reason: a user may expect them to be read."""
    others = sources.filter(pl.col("status") == "output").sort("source_file")
    reasons = others.group_by("reason", maintain_order=True).agg("source_file")
    named = "; ".join(_named(reason, files) for reason, files in reasons.iter_rows())
    return f"not read: {named}" if named else ""


def _named(reason: str, files: list[str]) -> str:
    more = f" and {len(files) - _MAX_NAMES} more" if len(files) > _MAX_NAMES else ""
    return f"{', '.join(files[:_MAX_NAMES])}{more} ({reason})"


def quarantine_table(quarantine: pl.DataFrame) -> FittedTable:
    """Refused rows by file and kind: how many, and the first of each."""
    groups = (
        quarantine.sort("source_file", "line", nulls_last=False)
        .group_by("source_file", "kind", maintain_order=True)
        .agg(pl.len().alias("rows"), pl.col("line", "reason").first())
        .sort("source_file", "rows", "kind", descending=[False, True, False])
    )
    columns = [*names("file", "kind"), *numbers("rows", "first line"), *prose("first reason")]
    table = FittedTable(columns, title="quarantine: refused rows by file and kind")
    for row in groups.head(_MAX_GROUPS).iter_rows(named=True):
        rows, line = ("all", "-") if row["line"] is None else (f"{row['rows']:,}", f"{row['line']:,}")
        table.add_row(row["source_file"], row["kind"], rows, line, row["reason"])
    hidden = groups.height - _MAX_GROUPS
    more = f", {counted(hidden, 'group')} not shown" if hidden > 0 else ""
    table.caption = f"{quarantine.height:,} in total{more}: SELECT * FROM quarantine"
    return table


def price_matches(model_statistics: pl.DataFrame) -> list[str]:
    """Models priced by another name: `model-20250101` by the price of `model`, for instance."""
    others = model_statistics.filter(pl.col("priced_as") != pl.col("model")).select("model", "priced_as")
    return [f"{model} is priced as {price}" for model, price in others.unique().sort("model").iter_rows()]


# What was recognized, before anything is evaluated


def show_recognized(
    screen: Console, found: "list[RecognizedSource]", discovery: "Discovery", *, with_notes: bool = True
) -> None:
    """Print a row for each file or folder, what to know about it, and what is not evaluated."""
    readable = [source for source in found if source.unreadable is None]
    if len(readable) > _MAX_FILES:
        contributions_table(readable, discovery).print(screen)
    elif readable:
        sources_table(readable).print(screen)
    if with_notes:
        show_notes(screen, ((source.name, note) for source in found for note in source.notes))
    from touchstone.ingest.recognized import left_out

    expected = list(left_out(discovery))
    others = [(source.name, source.unreadable) for source in found if source.unreadable is not None]
    others += [(each.file, each.reason.rpartition(f"{each.file}: ")[-1]) for each in expected]
    lines = [f"not evaluated: {name} ({reason})" for name, reason in others]
    if len(others) > _MAX_FILES:
        lines = [f"not evaluated: {files} ({reason})" for files, reason in files_by_note(others)]
    for line in _first(lines, "more reasons"):
        screen.print(line, markup=False, highlight=False)


def sources_table(found: "list[RecognizedSource]") -> FittedTable:
    """Each file or folder with its format, models, problems and attempts."""
    table = FittedTable(
        [*names("file"), *prose("format", rank=2), *prose("models", rank=1), *numbers("problems", "attempts")],
        compact=True,
        title="recognized",
    )
    for each in found:
        table.add_row(
            each.name,
            each.title.removeprefix("a ").removeprefix("an "),
            _listed(each.models),
            f"{each.problems:,}",
            f"{each.attempts:,}",
        )
    return table


def contributions_table(found: "list[RecognizedSource]", discovery: "Discovery") -> FittedTable:
    """What many files hold together, by model and task."""
    from touchstone.ingest.recognized import contributions

    groups = contributions(discovery, found, _MAX_FILES)
    by_task = "task" in groups.columns
    columns = [*names("model"), *(names("task") if by_task else numbers("tasks")), *numbers("problems", "attempts")]
    table = FittedTable([*columns, *prose("files")], compact=True, title=f"recognized: {len(found):,} files")
    for row in groups.head(_MAX_FILES).iter_rows(named=True):
        more = f" and {row['files'] - 1:,} more" if row["files"] > 1 else ""
        task = row["task"] or "" if by_task else f"{row['tasks'] or 0:,}"
        table.add_row(row["model"], task, f"{row['problems']:,}", f"{row['attempts']:,}", f"{row['first']}{more}")
    hidden = f"{groups.height - _MAX_FILES:,} more models; " if groups.height > _MAX_FILES else ""
    table.caption = f"{hidden}each file: `inspect-files --json`, and after a run SELECT * FROM sources"
    return table


def figures_table(discovery: "Discovery") -> FittedTable:
    """The figures that the files state, beside the same from the rows that were read."""
    from touchstone.ingest.sources_table import reported_figures_frame

    figures = reported_figures_frame(discovery).sort("source_file", "model", "suite", "figure")
    explained = figures.head(_MAX_ROWS)["note"].null_count() < min(figures.height, _MAX_ROWS)
    columns = [*names("file", rank=2), *names("model"), *prose("figure"), *numbers("reported", "recomputed")]
    if explained:
        columns += prose("why ours differs", rank=1)
    table = FittedTable(columns, title="figures of the tools", compact=True)
    rows = figures.with_columns(figure=pl.concat_str("suite", "figure", separator=" ", ignore_nulls=True))
    for row in rows.head(_MAX_ROWS).iter_rows(named=True):
        numbers_shown = ("-" if row[name] is None else f"{row[name]:.4g}" for name in ("reported", "recomputed"))
        notes = [row["note"] or ""] if explained else []
        table.add_row(row["source_file"], row["model"], row["figure"], *numbers_shown, *notes)
    hidden = figures.height - _MAX_ROWS
    table.caption = f"{hidden:,} more: SELECT * FROM reported_figures" if hidden > 0 else ""
    return table


def show_notes(screen: Console, notes: Iterable[tuple[str, str]]) -> None:
    """Print each note once, with the files that it is about."""
    for line in _first(
        [f"{files}: {note}" for files, note in files_by_note(notes)], "more notes: SELECT notes FROM sources"
    ):
        screen.print(line, markup=False, highlight=False)


def _first(lines: list[str], more: str) -> list[str]:
    return [*lines[:_MAX_GROUPS], f"{len(lines) - _MAX_GROUPS} {more}"] if len(lines) > _MAX_GROUPS + 1 else lines


def _listed(models: tuple[str, ...]) -> str:
    more = f" and {len(models) - _MAX_MODELS} more" if len(models) > _MAX_MODELS else ""
    return ", ".join(models[:_MAX_MODELS]) + more
