"""The output of `touchstone pass-at-k` as plain text. Without rich, which would take longer to import than the work."""

from collections.abc import Sequence

import polars as pl

from touchstone.publish.short_names import cell_width, shortened
from touchstone.text import counted_of, visible

_SHORTEST_NAME = 8


def summary_text(summary: pl.DataFrame, k_values: Sequence[int], width: int | None = None) -> str:
    """Models and their pass@k in aligned columns, rows numbered from 0; three to six decimals, as a column needs.

    On a terminal of so many columns, long names are shortened, and values of k that do not fit are named below.
    """
    names = [name for name in ("LLM", "tier") if name in summary.columns] + [f"pass@{k}" for k in k_values]
    columns = [["", *(str(row) for row in range(summary.height))]]
    columns += [[name, *_cells(summary[name])] for name in names]
    hidden = []
    if width is not None:
        shown = _fitting(columns, width)
        hidden = names[shown - 1 :]
        columns = columns[:shown]
        room = width - sum(_width(column) + 2 for place, column in enumerate(columns) if place != 1)
        short = shortened(columns[1][1:], max(room, _SHORTEST_NAME))
        columns[1] = [columns[1][0], *(short[name] for name in columns[1][1:])]
    padded = [[" " * (_width(column) - cell_width(cell)) + cell for cell in column] for column in columns]
    lines = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
    return "\n".join([*lines, *([f"not shown: {', '.join(hidden)}"] if hidden else [])])


def _fitting(columns: Sequence[Sequence[str]], width: int) -> int:
    """How many of the first columns fit beside names that are shortened as far as possible; at least three."""
    least = [_width(column) for column in columns]
    least[1] = min(least[1], _SHORTEST_NAME)
    shown = len(columns)
    while shown > 3 and sum(least[:shown]) + 2 * (shown - 1) > width:
        shown -= 1
    return shown


def explain_nulls(table: pl.DataFrame) -> list[str]:
    """Why a figure is missing, or which problems it leaves out."""
    lines = []
    undecided = table.filter(pl.col("attempted") == 0).unique(["model", "tier"], maintain_order=True)
    for row in undecided.iter_rows(named=True):
        lines.append(f"{row['model']} {row['tier']}: no decided attempts, so no figure")
    short = table.filter((pl.col("attempted") > 0) & (pl.col("eligible") < pl.col("attempted")))
    for row in short.iter_rows(named=True):
        missing = row["attempted"] - row["eligible"]
        has, are = ("has", "is") if missing == 1 else ("have", "are")
        lines.append(
            f"{row['model']} {row['tier']} pass@{row['k']}: {counted_of(missing, row['attempted'], 'problem')} "
            f"{has} fewer than {row['k']} decided attempts and {are} left out"
        )
    return lines


def _width(column: Sequence[str]) -> int:
    return max(map(cell_width, column))


def _cells(column: pl.Series) -> list[str]:
    if column.dtype != pl.Float64:
        return [visible(str(value)) for value in column]
    texts = [f"{value:.6f}" for value in column if value is not None]
    decimals = max(3, *(len(text.rstrip("0").split(".")[1]) for text in texts), 0)
    return ["-" if value is None else f"{value:.{decimals}f}" for value in column]
