"""How tables of results are shown to people: columns with header, format and rank, and what every medium makes of them.

`result_tables` declares each table once with these. The terminal draws it in `touchstone.cli.terminal_tables`, the
report in its template, the dashboard in its own; Markdown, LaTeX and plain text are written here.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from touchstone.publish.figures import number, with_interval
from touchstone.publish.latex import latex_table
from touchstone.text import counted, markdown_paragraph, markdown_text, visible

if TYPE_CHECKING:
    import polars as pl

Row = Mapping[str, Any]
Kind = Literal["name", "label", "number", "text", "verdict", "bar"]

# The rank of a column that says the same in every row: pages leave it out, a narrow terminal does so first.
REDUNDANT = 100
# More rows would make a page slow to open; all of them are in the table itself.
MAX_ROWS = 10_000
# Shown before the script of a page runs, on paper, and where scripts are off.
_FIRST_ROWS = 25
_LARGEST = 1e300
BAR_WIDTH = 10
EIGHTHS = " ▏▎▍▌▋▊▉█"
# A number at the start of a text, with its sign and a currency.
_NUMBER = re.compile(r"[$,]*[+-]?[$,]*\d")


class Cell(NamedTuple):
    """What a cell shows, the number that it is sorted by if it is not sorted as text, and where a page links it to."""

    text: str
    order: float | None = None
    link: str = ""

    @property
    def packed(self) -> object:
        """The cell as JSON: its text, or a list of text, order and link if the text does not say all."""
        if self.link:
            return [self.text, _finite(self.order), self.link]
        # The script reads the order from a text that starts with a number.
        if self.order is None or _NUMBER.match(self.text):
            return self.text
        return [self.text, _finite(self.order)]


def _finite(value: float | None) -> float | None:
    """A number that JSON has, short."""
    if value is None or math.isnan(value):
        return None
    return float(f"{max(-_LARGEST, min(_LARGEST, value)):.6g}")


def text(value: object) -> Cell:
    """Any value as text; a dash if there is none."""
    return _string(value) if isinstance(value, str) else Cell("-" if value is None else visible(str(value)))


# Thousands of rows repeat the same names and verdicts.
@lru_cache(maxsize=1_000)
def _string(value: str) -> Cell:
    return Cell(visible(value))


@dataclass(frozen=True)
class Column:
    """A column: its header, the cell that it has in a row, its kind, and its rank.

    A `name` may be shortened where there is little room, a `label` (a word of a fixed vocabulary, an id to copy) may
    not. A `verdict` is a label with a colour. A `number` is right-aligned and never broken. `text` wraps. A `bar` is
    drawn on a terminal only. The higher the rank, the sooner a narrow terminal leaves the column out.
    """

    header: str
    cell: Callable[[Row], Cell]
    kind: Kind = "number"
    rank: int = 0


def name(header: str, key: str = "", rank: int = 0, kind: Kind = "name") -> Column:
    """A column of texts: those of the column `key`, by default the one that the header names."""
    return Column(header, lambda row: text(row[key or header]), kind, rank)


def label(header: str, key: str = "", rank: int = 0) -> Column:
    """A column of words that are never shortened."""
    return name(header, key, rank, "label")


def verdict(header: str, key: str = "") -> Column:
    """A column of verdicts."""
    return name(header, key, kind="verdict")


def prose(header: str, key: str = "") -> Column:
    """A column of running text."""
    return name(header, key, kind="text")


def count(header: str, key: str = "", rank: int = 0) -> Column:
    """A column of whole numbers."""
    return Column(header, lambda row: _counted(row[key or header]), rank=rank)


@lru_cache(maxsize=1_000)
def _counted(value: int | None) -> Cell:
    return Cell("-" if value is None else f"{value:,}")


def figure(header: str, key: str, show: Callable[[float | None], str] = number, rank: int = 0) -> Column:
    """A column of figures, each as `show` writes it."""
    return Column(header, lambda row: Cell(show(row[key]), row[key]), rank=rank)


def estimate(header: str, key: str, prefix: str = "", style: str = "{:.3f}", rank: int = 0) -> Column:
    """A column of figures with their confidence intervals, whose ends are in `<prefix>ci_low` and `<prefix>ci_high`."""
    return Column(header, lambda row: Cell(with_interval(row, key, prefix, style), row[key]), rank=rank)


def share(header: str, part: str, whole: str, words: str = "{:,} of {:,}", rank: int = 0) -> Column:
    """A column of counts out of a total."""
    return Column(header, lambda row: Cell(words.format(row[part] or 0, row[whole]), row[part]), rank=rank)


def signed(value: float | None) -> str:
    """A difference to three decimals, or a dash."""
    return "-" if value is None else f"{value:+.3f}"


def bar(rate: float | None) -> str:
    """A bar for a share of 1, in eighths of a character; empty if the share is unknown.

    >>> bar(0.5), bar(0.26), bar(None)
    ('█████     ', '██▋       ', '          ')
    """
    eighths = round(8 * BAR_WIDTH * min(max(rate or 0.0, 0.0), 1.0))
    return (EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8]).ljust(BAR_WIDTH)[:BAR_WIDTH]


def sparkline(values: Sequence[float | None], gaps: Sequence[bool], most: int = 30) -> str:
    """The last values as a line of blocks, from the lowest to the highest; a space in a gap, a dot if undefined.

    >>> sparkline([0.1, 0.2, None, 0.5], [False, True, False, False])
    '▁ ▃·█'
    """
    shown = [value if value is not None and math.isfinite(value) else None for value in values[-most:]]
    known = [value for value in shown if value is not None]
    low, high = min(known, default=0), max(known, default=0)
    blocks = "▁▂▃▄▅▆▇█"
    steps = [None if value is None else round(7 * (value - low) / ((high - low) or 1)) for value in shown]
    drawn = ["·" if step is None else blocks[step] for step in steps]
    return "".join(f" {block}" if gap else block for block, gap in zip(drawn, gaps[-most:], strict=True))


@dataclass(frozen=True, eq=False)
class ResultTable:
    """A table for people: `title` says what its figures are, `notes` what to know, one sentence each.

    `rows` may be cut; `total` rows are in the table of the run that it is `of`.
    """

    id: str
    title: str
    columns: Sequence[Column]
    rows: "pl.DataFrame | Sequence[Row]"
    of: str = ""
    notes: Sequence[str] = ()
    full_height: int | None = None

    @property
    def total(self) -> int:
        """How many rows there are, shown or not."""
        return len(self.rows) if self.full_height is None else self.full_height

    @property
    def heading(self) -> str:
        """The title as a heading."""
        return self.title if self.title.startswith("pass") else self.title[:1].upper() + self.title[1:]

    def cells(self, most: int = MAX_ROWS, columns: Sequence[Column] | None = None) -> list[list[Cell]]:
        """The first rows, cell by cell."""
        rows = self.rows
        first = rows[:most] if isinstance(rows, Sequence) else rows.head(most).iter_rows(named=True)
        shown = self.columns if columns is None else columns
        return [[column.cell(row) for column in shown] for row in first]

    @property
    def written_columns(self) -> list[Column]:
        """The columns that text has: all but bars."""
        return [column for column in self.columns if column.kind != "bar"]

    # On a page

    @cached_property
    def page_columns(self) -> list[Column]:
        """The columns of a page."""
        return [column for column in self.written_columns if column.rank != REDUNDANT]

    @cached_property
    def page_rows(self) -> list[list[Cell]]:
        """The rows of a page."""
        return self.cells(MAX_ROWS, self.page_columns)

    @property
    def page_kinds(self) -> list[str]:
        """How the cells of each column look and sort on a page: as number, verdict or text."""
        return [column.kind if column.kind in ("number", "verdict") else "text" for column in self.page_columns]

    @property
    def first_rows(self) -> list[list[Cell]]:
        """The rows that are in the page itself."""
        return self.page_rows[:_FIRST_ROWS]

    @property
    def rest(self) -> str:
        """A sentence on the rows that a page leaves out; empty if none are."""
        shown = len(self.page_rows)
        if self.total <= shown:
            return ""
        left_out = counted(self.total - shown, "more row is", "more rows are")
        return f"The first {shown:,} of {self.total:,} rows; {left_out} in the table {self.of}."


def markdown_table(table: ResultTable, most: int) -> str:
    """A heading, the first rows and the notes in Markdown, in which all foreign text is inert."""
    columns = table.page_columns
    rows = table.cells(most, columns)
    lines = [
        [markdown_text(column.header) for column in columns],
        ["---:" if column.kind == "number" else "---" for column in columns],
        *([markdown_text(cell.text) for cell in row] for row in rows),
    ]
    more = [f"… and {table.total - len(rows):,} more"] if table.total > len(rows) else []
    drawn = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n\n".join([f"#### {markdown_text(table.heading)}", drawn, *more, *map(markdown_paragraph, table.notes)])


def latex(table: ResultTable, most: int = MAX_ROWS) -> str:
    """The first rows as a `tabular` for a paper, with its title as a comment."""
    columns = table.page_columns
    rows = [[cell.text for cell in row] for row in table.cells(most, columns)]
    numeric = [column.kind == "number" for column in columns]
    return f"% {visible(table.title)}\n{latex_table([column.header for column in columns], rows, numeric)}"


def plain_text(table: ResultTable) -> str:
    """The rows in aligned columns, for Python's prompt and notebooks."""
    columns = table.written_columns
    lines = [[column.header for column in columns]]
    lines += [[cell.text for cell in row] for row in table.cells(columns=columns)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
