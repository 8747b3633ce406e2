"""What a run says on the terminal about its inputs: files that are not evaluated, what was refused, and prices."""

import polars as pl
from rich.console import Console

from touchstone.cli.fitted_table import FittedTable, names, numbers, prose

_MAX_GROUPS = 30
_MAX_NAMES = 8


def show_inputs(
    screen: Console, sources: pl.DataFrame, quarantine: pl.DataFrame, model_statistics: pl.DataFrame
) -> None:
    """Which prices are of another name, which files were not evaluated, and what was refused of the others."""
    for line in price_matches(model_statistics):
        screen.print(line, markup=False)
    files = files_table(sources)
    if files.rows:
        files.print(screen)
    others = other_files(sources)
    if others:
        screen.print(others, markup=False, style="dim")
    if not quarantine.is_empty():
        quarantine_table(quarantine).print(screen)


def files_table(sources: pl.DataFrame) -> FittedTable:
    """Data files that are not evaluated, and why; those that could not be read are in the quarantine."""
    shown = sources.filter(pl.col("status").is_in(("unknown", "left_out"))).sort("status", "source_file", "model")
    drawn = FittedTable([*names("file", "status"), *prose("why")], title="files that are not evaluated")
    for file, status, reason in shown.select("source_file", "status", "reason").head(_MAX_GROUPS).iter_rows():
        drawn.add_row(file, status.replace("_", " "), reason)
    hidden = shown.height - _MAX_GROUPS
    drawn.caption = f"{hidden} more: SELECT * FROM sources" if hidden > 0 else ""
    return drawn


def other_files(sources: pl.DataFrame) -> str:
    """One line that names what else is in the folder, by reason: outputs, and what is no data."""
    others = sources.filter(pl.col("status").is_in(("output", "ignored"))).sort("source_file")
    reasons = others.group_by("reason", maintain_order=True).agg("source_file")
    named = "; ".join(_named(reason, files) for reason, files in reasons.iter_rows())
    return f"not read: {named}" if named else ""


def _named(reason: str, files: list[str]) -> str:
    more = f" and {len(files) - _MAX_NAMES} more" if len(files) > _MAX_NAMES else ""
    return f"{', '.join(files[:_MAX_NAMES])}{more} ({reason})"


def quarantine_table(quarantine: pl.DataFrame) -> FittedTable:
    """Refused rows by file and kind, with their number and the first of each."""
    groups = (
        quarantine.sort("source_file", "line", nulls_last=False)
        .group_by("source_file", "kind", maintain_order=True)
        .agg(pl.len().alias("rows"), pl.col("line", "reason").first())
        .sort("source_file", "rows", "kind", descending=[False, True, False])
    )
    columns = [*names("file", "kind"), *numbers("rows", "first line"), *prose("reason of the first")]
    drawn = FittedTable(columns, title="quarantine: what was refused, by file and kind")
    for row in groups.head(_MAX_GROUPS).iter_rows(named=True):
        rows, line = ("all", "-") if row["line"] is None else (f"{row['rows']:,}", f"{row['line']:,}")
        drawn.add_row(row["source_file"], row["kind"], rows, line, row["reason"])
    hidden = groups.height - _MAX_GROUPS
    more = f", {hidden} groups are not shown" if hidden > 0 else ""
    drawn.caption = f"{quarantine.height:,} in all{more}: SELECT * FROM quarantine"
    return drawn


def price_matches(model_statistics: pl.DataFrame) -> list[str]:
    """The models whose tokens were counted at a price of another name, as a dated model's are."""
    others = model_statistics.filter(pl.col("priced_as") != pl.col("model")).select("model", "priced_as")
    return [f"{model} is priced as {price}" for model, price in others.unique().sort("model").iter_rows()]
