"""Which columns of a compact table fit the terminal, and how wide they are. Drawing belongs in `fitted_table`.

Every figure of a compact table is on one line. What does not fit is given up in this order, and named below the table:

1. names beyond a third of the width (a fifth each, if there are several): shortened in the middle
2. the confidence intervals of figures other than those of rank 0
3. whole columns, from the highest rank down
4. names down to 8 terminal columns, then the intervals of the figures of rank 0, then the last columns of rank 0
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from touchstone.publish.short_names import cell_width

Kind = Literal["name", "label", "number", "bar", "text"]

BAR_WIDTH = 10
# Each column has a border and a space on either side; the last border closes the table.
COLUMN_OVERHEAD, TABLE_OVERHEAD = 3, 1

_NARROWEST_NAME = 8
_NARROWEST_TEXT = 20
_LONGEST_HEADER_WORD = 12
_INTERVAL = re.compile(r" \[[^\]]*\]")


class Column(NamedTuple):
    """A column.

    A `number` is never broken. A `name` stays on one line if possible; where names may be shortened, a `label` may
    not. A `bar` is drawn on a terminal only. `text` wraps first. The higher the rank, the sooner a compact table leaves
    the column out.
    """

    header: str
    kind: Kind = "text"
    rank: int = 0


@dataclass
class Layout:
    """The widths of the columns shown, by their place, and the places of figures shown without their interval."""

    widths: dict[int, int] = field(default_factory=dict)
    bare: set[int] = field(default_factory=set)


def without_interval(cell: str) -> str:
    """A figure without its confidence interval.

    >>> without_interval("0.576 [0.483, 0.663]")
    '0.576'
    """
    return _INTERVAL.sub("", cell)


def compact_layout(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> Layout:
    """The columns that fit into `width`; `cells` has the texts of each column."""
    room = width - TABLE_OVERHEAD
    sizes = [_size(column, texts) for column, texts in zip(columns, cells, strict=True)]
    if sum(size.natural + COLUMN_OVERHEAD for size in sizes) <= room:
        return Layout({place: size.natural for place, size in enumerate(sizes)})
    layout = _required(columns, sizes, room)
    room -= sum(layout.widths.values()) + COLUMN_OVERHEAD * len(layout.widths)

    def widen(place: int, wanted: int) -> None:
        nonlocal room
        more = max(0, min(wanted - layout.widths[place], room))
        layout.widths[place] += more
        room -= more

    def show_interval(place: int) -> None:
        if place in layout.bare and sizes[place].whole - layout.widths[place] <= room:
            layout.bare.discard(place)
            widen(place, sizes[place].whole)

    for place in list(layout.widths):
        show_interval(place)
    names = [place for place, column in enumerate(columns) if column.kind == "name" and place in layout.widths]
    share = width // (3 if sum(sizes[place].natural > _NARROWEST_NAME for place in names) < 2 else 5)
    for place in names:
        widen(place, min(sizes[place].natural, share))
    for place in sorted(set(range(len(columns))) - layout.widths.keys(), key=lambda place: columns[place].rank):
        if columns[place].rank == 0 or sizes[place].least + COLUMN_OVERHEAD > room:
            break
        layout.widths[place] = sizes[place].least
        layout.bare |= {place} if sizes[place].has_interval else set()
        room -= sizes[place].least + COLUMN_OVERHEAD
    for place in list(layout.widths):
        show_interval(place)
    for kind in ("name", "label", "text", "number"):
        for place in layout.widths:
            if columns[place].kind == kind:
                widen(place, sizes[place].bare_natural if place in layout.bare else sizes[place].natural)
    layout.widths = dict(sorted(layout.widths.items()))
    return layout


class _Size(NamedTuple):
    """Widths of a column: the least, with intervals, with the header on one line too, and that without intervals."""

    least: int
    whole: int
    natural: int
    bare_natural: int

    @property
    def has_interval(self) -> bool:
        return self.whole > self.least


def _size(column: Column, texts: Sequence[str]) -> _Size:
    header = cell_width(column.header)
    # A header, such as the name of a suite, wraps between words, or anywhere if a word is long.
    header_word = min(max(map(cell_width, re.split(r"(?<=[_ ])", column.header)), default=0), _LONGEST_HEADER_WORD)
    longest = max((cell_width(line) for text in texts for line in text.split("\n")), default=0)
    match column.kind:
        case "bar":
            return _Size(*[BAR_WIDTH] * 4)
        case "number":
            bare = max((cell_width(without_interval(text)) for text in texts), default=0)
            least = max(bare, header_word)
            return _Size(least, max(longest, least), max(longest, header), max(bare, header))
        case "name":
            least = min(longest, _NARROWEST_NAME)
        case "label":
            least = max((cell_width(word) for text in texts for word in text.split()), default=0)
        case "text":
            least = min(longest, _NARROWEST_TEXT)
    least, natural = max(least, header_word, 1), max(longest, header, 1)
    return _Size(least, least, natural, natural)


def _required(columns: Sequence[Column], sizes: Sequence[_Size], room: int) -> Layout:
    """The columns of rank 0 at their least, as many of the first ones as fit; at least one."""
    layout = Layout()
    for place, size in enumerate(sizes):
        if columns[place].rank:
            continue
        room -= size.least + COLUMN_OVERHEAD
        if room < 0 and layout.widths:
            break
        layout.widths[place] = size.least
        layout.bare |= {place} if size.has_interval else set()
    return layout
