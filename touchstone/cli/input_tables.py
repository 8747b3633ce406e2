"""What `touchstone run` prints about its inputs: files that are not evaluated, quarantined rows, and prices."""

import polars as pl
from rich.console import Console

from touchstone.cli.fitted_table import FittedTable, names, numbers, prose
from touchstone.cli.recognized_tables import show_notes
from touchstone.text import counted

_MAX_GROUPS = 30
_MAX_NAMES = 8


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
