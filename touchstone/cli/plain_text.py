"""The output of `touchstone pass-at-k` as plain text. Without rich, which would take longer to import than the work."""

from collections.abc import Sequence

import polars as pl

from touchstone.text import counted_of, visible


def summary_text(summary: pl.DataFrame, k_values: Sequence[int]) -> str:
    """Models and their pass@k in aligned columns, rows numbered from 0; three to six decimals, as a column needs."""
    names = [name for name in ("LLM", "tier") if name in summary.columns] + [f"pass@{k}" for k in k_values]
    columns = [["", *(str(row) for row in range(summary.height))]]
    columns += [[name, *_cells(summary[name])] for name in names]
    widths = [max(map(_width, column)) for column in columns]
    padded = [
        [" " * (width - _width(cell)) + cell for cell in column] for column, width in zip(columns, widths, strict=True)
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*padded, strict=True))


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


def _width(cell: str) -> int:
    """Terminal columns that the text occupies."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)


def _cells(column: pl.Series) -> list[str]:
    if column.dtype != pl.Float64:
        return [visible(str(value)) for value in column]
    texts = [f"{value:.6f}" for value in column if value is not None]
    decimals = max(3, *(len(text.rstrip("0").split(".")[1]) for text in texts), 0)
    return ["-" if value is None else f"{value:.{decimals}f}" for value in column]
