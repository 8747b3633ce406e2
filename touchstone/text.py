"""Figures and notes as plain text, and the table of `touchstone pass-at-k`. Without rich, which loads slowly."""

import math
from collections.abc import Sequence

import polars as pl

_SIGNIFICANT_DIGITS = 5
# Joins the parts of one emoji or ligature; the other invisible characters are shown as escapes.
_JOINERS = "\u200c\u200d"


def seed_table(summary: pl.DataFrame, k_values: Sequence[int]) -> str:
    """Models against pass@k, numbered from 0, with as many decimals as a column needs: three to six."""
    names = [name for name in ("LLM", "tier") if name in summary.columns] + [f"pass@{k}" for k in k_values]
    columns = [["", *(str(row) for row in range(summary.height))]]
    columns += [[name, *_cells(summary[name])] for name in names]
    widths = [max(map(_width, column)) for column in columns]
    padded = [
        [" " * (width - _width(cell)) + cell for cell in column] for column, width in zip(columns, widths, strict=True)
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*padded, strict=True))


def _width(cell: str) -> int:
    """Columns that the text takes on a terminal."""
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


def explain_nulls(table: pl.DataFrame) -> list[str]:
    """Why a figure is missing or leaves problems out."""
    lines = []
    for row in (
        table.filter(pl.col("attempted") == 0).unique(["model", "tier"], maintain_order=True).iter_rows(named=True)
    ):
        lines.append(f"{row['model']} {row['tier']}: there is no decided attempt, so there is no figure")
    short = table.filter((pl.col("attempted") > 0) & (pl.col("eligible") < pl.col("attempted")))
    for row in short.iter_rows(named=True):
        missing = row["attempted"] - row["eligible"]
        few = f"{counted_of(missing, row['attempted'], 'problem')} {'has' if missing == 1 else 'have'}"
        lines.append(
            f"{row['model']} {row['tier']} pass@{row['k']}: {few} fewer than "
            f"{row['k']} decided attempts and are left out"
        )
    return lines


def significant(value: float, digits: int = _SIGNIFICANT_DIGITS) -> str:
    """A figure to so many significant digits; whole numbers stay whole, and zeros at the end mean that it was rounded.

    >>> significant(1.0728836059570e-06), significant(0.25), significant(0.9999999), significant(1234567.8)
    ('1.0729e-06', '0.25', '1.0000', '1234568')
    """
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 10 ** (digits - 1) and abs(value) < 1e15:
        return f"{value:.0f}"
    short = f"{value:.{digits}g}"
    return short if float(short) == value else f"{value:#.{digits}g}".rstrip(".")


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun in the right number.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "case was lost", "cases were lost")
    ('1 row', '1,200 rows', '2 cases were lost')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def counted_of(count: int, total: int, noun: str, plural: str | None = None) -> str:
    """A count among others, with their noun.

    >>> counted_of(1, 60, "attempt"), counted_of(1, 1, "attempt")
    ('1 of 60 attempts', '1 of 1 attempt')
    """
    return f"{count:,} of {counted(total, noun, plural)}"


def visible(text: str) -> str:
    r"""Text on one line, in which nothing steers a terminal.

    >>> visible("a\x1b[31m\nü")
    'a\\x1b[31m\\nü'
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in _JOINERS else one.encode("unicode_escape").decode() for one in text
    )
