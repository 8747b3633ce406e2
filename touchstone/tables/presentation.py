"""How results look to people: single figures, columns with header, format and rank, and what each medium makes of them.

Tables are declared once with these: those of a run in `touchstone.publish.result_tables`, those of a comparison in
`touchstone.comparison.report`. The terminal draws them in `touchstone.cli.terminal_tables`, the report in its template;
Markdown, LaTeX (booktabs rules, escaped text, rounded figures) and plain text are written here.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from touchstone.text import counted, markdown_lines, markdown_paragraph, markdown_text, significant, visible
from touchstone.text import estimate as estimate_text

if TYPE_CHECKING:
    import polars as pl

# Single figures

_MOST_DECIMALS = 8


def number(value: float | None) -> str:
    """A figure to three decimals, or a dash."""
    return "-" if value is None else f"{value:.3f}"


def percent(share: float) -> str:
    """A confidence level as people write it.

    >>> percent(0.95), percent(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * share:.6g}%"


def decimals(values: Iterable[float], *, money: bool = False) -> int:
    """How many decimals all figures of a column get, so that their points are below one another.

    Shares get three, like `number`. Amounts of money get what the smallest needs for three significant digits.

    >>> decimals([0.4, 0.45678]), decimals([0.0004, 0.12], money=True), decimals([412.0, 88.25]), decimals([3.0, 8.0])
    (3, 6, 1, 0)
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if not sizes or all(size.is_integer() for size in sizes):
        return 4 if money else 3 if max(sizes, default=0) <= 1 else 0
    if money:
        return min(_MOST_DECIMALS, max(4, 2 - math.floor(math.log10(min(sizes)))))
    return max(1, 3 - len(f"{max(sizes):.0f}") + (max(sizes) <= 1))


def in_column(value: float, places: int, *, money: bool = False) -> str:
    """A figure of a column with so many decimals; one that they would show as 0 gets its own digits.

    >>> in_column(0.4, 3), in_column(1234.5, 1), in_column(-0.02, 4, money=True), in_column(math.inf, 3)
    ('0.400', '1,234.5', '-$0.0200', '∞')
    >>> in_column(0.0000123, 3)
    '1.23e-05'
    """
    sign, unit = "-" if value < 0 else "", "$" if money else ""
    if not math.isfinite(value):
        return f"{sign}∞"
    size = abs(value)
    rounds_to_zero = value and round(size, places) == 0
    return sign + unit + (significant(size, 3) if rounds_to_zero else f"{size:,.{places}f}")


def p_value(value: float | None) -> str:
    """A p-value to three decimals, or `< 0.001`."""
    return "< 0.001" if value is not None and value < 0.001 else number(value)


def interval(row: Mapping[str, Any], prefix: str) -> str:
    """A confidence interval with signs, or a dash."""
    low, high = row[f"{prefix}ci_low"], row[f"{prefix}ci_high"]
    return "-" if low is None or high is None else f"[{low:+.3f}, {high:+.3f}]"


def with_interval(row: Mapping[str, Any], figure: str, prefix: str, style: str) -> str:
    """A figure with its confidence interval, if it has one; an end that is unknown is an ellipsis."""
    return estimate_text(row[figure], row[f"{prefix}ci_low"], row[f"{prefix}ci_high"], style.format)


def dollars(value: float | None) -> str:
    """An amount in dollars, with at least three significant digits."""
    if value is None:
        return "-"
    if math.isinf(value):
        return "never passes"
    # A fix by a small model costs a fraction of a cent, of which four decimals would keep one digit.
    decimals = 4 if value <= 0 else max(4, 2 - math.floor(math.log10(value)))
    return f"${value:.{decimals}f}"


# Columns and tables

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
_NIGHTS = 30
EIGHTHS = " ▏▎▍▌▋▊▉█"
# A number at the start of a text, with its sign and a currency.
_NUMBER = re.compile(r"[$,]*[+-]?[$,]*\d")


class Cell(NamedTuple):
    """The text of a cell, the number that it is sorted by if it is not sorted as text, and the target of its link."""

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
    return Cell("-" if value is None else visible(str(value)))


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

    def cell(row: Row) -> Cell:
        value = row[key or header]
        return Cell("-" if value is None else f"{value:,}")

    return Column(header, cell, rank=rank)


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


def sparkline(values: Sequence[float | None], gaps: Sequence[bool]) -> str:
    """The last values as a line of blocks, from the lowest to the highest; a space in a gap, a dot if undefined.

    >>> sparkline([0.1, 0.2, None, 0.5], [False, True, False, False])
    '▁ ▃·█'
    """
    shown = [value if value is not None and math.isfinite(value) else None for value in values[-_NIGHTS:]]
    known = [value for value in shown if value is not None]
    low, high = min(known, default=0), max(known, default=0)
    blocks = "▁▂▃▄▅▆▇█"
    steps = [None if value is None else round(7 * (value - low) / ((high - low) or 1)) for value in shown]
    drawn = ["·" if step is None else blocks[step] for step in steps]
    return "".join(f" {block}" if gap else block for block, gap in zip(drawn, gaps[-_NIGHTS:], strict=True)).lstrip()


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


def markdown_table(table: ResultTable, most: int = MAX_ROWS) -> str:
    """A heading, the first rows and the notes in Markdown, in which all foreign text is inert."""
    heading = f"#### {markdown_text(table.heading)}"
    return "\n\n".join([heading, markdown_rows(table, most), *map(markdown_paragraph, table.notes)])


def markdown_rows(table: ResultTable, most: int = MAX_ROWS) -> str:
    """The first rows in Markdown, and how many more there are."""
    columns = table.page_columns
    rows = [[cell.text for cell in row] for row in table.cells(most, columns)]
    numeric = [column.kind == "number" for column in columns]
    more = f"\n\n… and {table.total - len(rows):,} more" if table.total > len(rows) else ""
    return "\n".join(markdown_lines([column.header for column in columns], numeric, rows)) + more


def latex(table: ResultTable) -> str:
    """The first rows as a `tabular` for a paper, with its title as a comment."""
    columns = table.page_columns
    rows = [[cell.text for cell in row] for row in table.cells(columns=columns)]
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


# LaTeX

_DIGITS = 4
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "∞": r"$\infty$",
    "…": r"\ldots{}",
} | {mark: f"\\{mark}" for mark in "&%$#_{}"}


def latex_table(header: Sequence[str], rows: Iterable[Sequence[object]], numeric: Sequence[bool]) -> str:
    r"""A `tabular` with one line per row; numeric columns are right-aligned.

    >>> print(latex_table(["model", "pass@1"], [["a_b", 0.123456]], [False, True]).splitlines()[5])
    a\_b & 0.1235 \\
    """
    columns = "".join("r" if number else "l" for number in numeric)
    lines = [
        "% needs \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        _line([escaped(name) for name in header]),
        "\\midrule",
        *(_line([latex_cell(value) for value in row]) for row in rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def latex_cell(value: object) -> str:
    r"""A value as LaTeX: figures to four significant digits, a dash for an empty cell.

    >>> latex_cell(1.0728e-06), latex_cell(-0.25), latex_cell(float("inf")), latex_cell(""), latex_cell(True)
    ('$1.073 \\times 10^{-6}$', '$-0.25$', '$\\infty$', '--', 'true')
    """
    match value:
        case "":
            return "--"
        case bool():
            return "true" if value else "false"
        case int():
            return f"$-{-value}$" if value < 0 else str(value)
        case float():
            return _figure(value)
    return escaped(str(value))


def escaped(text: str) -> str:
    r"""Escape text for LaTeX, on one line.

    >>> escaped("50% of a_b\n& more")
    '50\\% of a\\_b \\& more'
    """
    return "".join(_SPECIAL.get(mark, mark) for mark in visible(" ".join(text.split())))


def _figure(value: float) -> str:
    if math.isnan(value):
        return "--"
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    text = significant(value, _DIGITS)
    scientific = re.fullmatch(r"(.*)e([+-]\d+)", text)
    if scientific:
        return f"${scientific[1]} \\times 10^{{{int(scientific[2])}}}$"
    return f"${text}$" if value < 0 else text


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
