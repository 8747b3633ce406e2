"""What `inspect-files`, and `run` with paths, print first: what was recognized, and what was left out."""

from collections.abc import Iterable

import polars as pl
from rich.console import Console

from touchstone.cli.fitted_table import FittedTable, names, numbers, prose
from touchstone.ingest.discovery import Discovery
from touchstone.ingest.recognized import RecognizedSource, left_out
from touchstone.ingest.sources_table import reported_figures_frame
from touchstone.text import counted

_MAX_ROWS = 40
_MAX_MODELS = 3


def show_recognized(
    screen: Console, found: list[RecognizedSource], discovery: Discovery, *, with_notes: bool = True
) -> None:
    """Print a row for each file or folder, what to know about it, and what is not evaluated."""
    readable = [source for source in found if source.unreadable is None]
    if readable:
        sources_table(readable).print(screen)
    if with_notes:
        show_notes(screen, ((source.name, note) for source in found for note in source.notes))
    expected = list(left_out(discovery))
    others = [(source.name, source.unreadable) for source in found if source.unreadable is not None]
    others += [(each.file, each.reason.rpartition(f"{each.file}: ")[-1]) for each in expected]
    for name, reason in others[:_MAX_ROWS]:
        screen.print(f"not evaluated: {name} ({reason})", markup=False, highlight=False)
    if len(others) > _MAX_ROWS:
        screen.print(f"not evaluated: {counted(len(others) - _MAX_ROWS, 'more file')}")


def sources_table(found: list[RecognizedSource]) -> FittedTable:
    """Each file or folder with its format, models, problems and attempts."""
    table = FittedTable(
        [
            *names("file"),
            *prose("format", rank=2),
            *prose("models", rank=1),
            *numbers("problems", "attempts"),
        ],
        compact=True,
        title="recognized",
    )
    for each in found[:_MAX_ROWS]:
        table.add_row(
            each.name,
            each.title.removeprefix("a ").removeprefix("an "),
            _listed(each.models),
            f"{each.problems:,}",
            f"{each.attempts:,}",
        )
    hidden = len(found) - _MAX_ROWS
    table.caption = f"{hidden:,} more" if hidden > 0 else ""
    return table


def figures_table(discovery: Discovery) -> FittedTable:
    """The figures that the files state, beside the same from the rows that were read."""
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
    files: dict[str, list[str]] = {}
    for file, note in notes:
        files.setdefault(note, []).append(file)
    for note, named in files.items():
        more = f" and {counted(len(named) - 1, 'other file')}" if len(named) > 1 else ""
        screen.print(f"{named[0]}{more}: {note}", markup=False, highlight=False)


def _listed(models: tuple[str, ...]) -> str:
    more = f" and {len(models) - _MAX_MODELS} more" if len(models) > _MAX_MODELS else ""
    return ", ".join(models[:_MAX_MODELS]) + more
