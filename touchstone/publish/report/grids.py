"""Tables of the report: rows of cells, each with the text that it shows and the value that it is sorted by."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from touchstone.text import counted, visible

# More rows would make the page slow to open; all of them are in the table itself.
_MAX_ROWS = 10_000
# Shown before the script runs, on paper, and where scripts are off.
_FIRST_ROWS = 25
_LARGEST = 1e300

# A number at the start of a text, with its sign and a currency.
_NUMBER = re.compile(r"[$,]*[+-]?[$,]*\d")

Kind = Literal["text", "number", "verdict"]


class Cell(NamedTuple):
    """What a cell shows, the number that it is sorted by if it is not sorted as text, and where it links to."""

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


@lru_cache(maxsize=1_000)
def count(value: int | None) -> Cell:
    """A whole number, which is sorted by its text."""
    return Cell("-" if value is None else f"{value:,}")


def figure(value: float | None, shown: str) -> Cell:
    """A figure as it is shown, sorted by its value."""
    return Cell(shown, value)


@dataclass(frozen=True)
class Column:
    """The heading of a column and how its cells look and sort."""

    title: str
    kind: Kind = "number"


@dataclass(frozen=True)
class Grid:
    """A table: `caption` says what a row is; `total` rows are in the table that it is `of`, of which some are shown."""

    id: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    total: int
    of: str = ""

    @property
    def first_rows(self) -> Sequence[Sequence[Cell]]:
        """The rows that are in the page itself."""
        return self.rows[:_FIRST_ROWS]

    @property
    def is_long(self) -> bool:
        """Whether more rows follow those in the page itself."""
        return len(self.rows) > _FIRST_ROWS

    @property
    def rest(self) -> str:
        """A sentence on the rows that are left out; empty if none are."""
        if self.total <= len(self.rows):
            return ""
        left_out = counted(self.total - len(self.rows), "more row is", "more rows are")
        return f"The first {len(self.rows):,} of {self.total:,} rows; {left_out} in the table {self.of}."


def grid(
    id: str,
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    of: str = "",
    total: int | None = None,
) -> Grid:
    """A table of at most as many rows as a page can hold; `total` if the rows are already cut."""
    given = list(rows)
    return Grid(id, caption, columns, given[:_MAX_ROWS], len(given) if total is None else total, of)


def names(*titles: str) -> list[Column]:
    """Columns of text."""
    return [Column(title, "text") for title in titles]


def numbers(*titles: str) -> list[Column]:
    """Columns of figures."""
    return [Column(title) for title in titles]
