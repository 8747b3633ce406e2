"""What a run says on the terminal about its inputs: what was refused, and at which prices tokens were counted."""

import polars as pl
from rich.console import Console

from touchstone.fitted_table import FittedTable, names, numbers, prose

_MAX_GROUPS = 30


def show_inputs(screen: Console, quarantine: pl.DataFrame, model_statistics: pl.DataFrame) -> None:
    """What was refused and which prices are of another name; nothing where there is neither."""
    for line in price_matches(model_statistics):
        screen.print(line, markup=False)
    if not quarantine.is_empty():
        quarantine_table(quarantine).print(screen)


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
