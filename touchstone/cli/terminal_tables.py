"""Tables on the terminal that never truncate a figure. Their contents belong to the commands and `result_tables`.

A table that is too wide gives up, in this order, and names below it what is not shown:

1. headers, long text and names beyond a third of the width wrap; in a `compact` table, which has a line per row, names
   are shortened in the middle instead (beyond a fifth each, if there are several)
2. in a compact table, the confidence intervals of figures other than those of rank 0; elsewhere an interval wraps
3. whole columns, from the highest rank down
4. names down to a few terminal columns, the intervals of figures of rank 0, then the last columns of rank 0

Piped output has no width, so nothing is wrapped, shortened or hidden.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, NamedTuple, TextIO

from rich.box import HEAVY_HEAD
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment, Segments
from rich.style import Style
from rich.text import Text

from touchstone.cli.safe_streams import safe
from touchstone.publish.short_names import shortened
from touchstone.tables.presentation import BAR_WIDTH, EIGHTHS, Column, Kind, ResultTable, name
from touchstone.text import counted, visible, visible_lines

Line = str | Text

# Wider than any table: the console of a pipe or file.
UNLIMITED = 10**9
_ANY_HEIGHT = 25

# Each column has a border and a space on either side; the last border closes the table.
_COLUMN_OVERHEAD, _TABLE_OVERHEAD = 3, 1
_NARROWEST_TEXT = 20
_NARROWEST_NAME = 10
_SHORTEST_NAME = 8
_LONGEST_HEADER_WORD = 12
_INTERVAL = re.compile(r" \[[^\]]*\]")
_ASCII_EIGHTHS = str.maketrans(EIGHTHS, "    #####")
_COLOURS = {"better": "green", "worse": "red", "held": "green", "failed": "red"}


def names(*headers: str, rank: int = 0) -> list[Column]:
    """Columns of names: models, tiers, ids."""
    return [name(header, rank=rank) for header in headers]


def labels(*headers: str, rank: int = 0) -> list[Column]:
    """Columns of words from a fixed vocabulary, and of ids to copy: never shortened."""
    return [name(header, rank=rank, kind="label") for header in headers]


def numbers(*headers: str, rank: int = 0) -> list[Column]:
    """Right-aligned columns of figures. `0.5 [0.4, 0.6]` may wrap before the bracket, unless the table is compact."""
    return [name(header, rank=rank, kind="number") for header in headers]


def prose(*headers: str, rank: int = 0) -> list[Column]:
    """Columns of running text."""
    return [name(header, rank=rank, kind="text") for header in headers]


@dataclass
class FittedTable:
    """Columns and rows of plain text, or of rich's `Text` where a cell has a style. Markup is not interpreted."""

    columns: Sequence[Column]
    title: str = ""
    caption: str = ""
    hint: str = "use a wider terminal, or pipe the output"
    lines_between_rows: bool = False
    # Wrap long names further rather than leave out a column of figures.
    keep_figures: bool = False
    # A line per row, and columns left out by their rank.
    compact: bool = False
    rows: list[tuple[Line, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Before widths are measured: an escape is longer than what it stands for. A verdict is a label with a colour.
        kinds: dict[Kind, Kind] = {"verdict": "label"}
        self.columns = [
            replace(each, header=visible(each.header), kind=kinds.get(each.kind, each.kind)) for each in self.columns
        ]

    def add_row(self, *cells: Line) -> None:
        """Add one row, with one cell per column."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(tuple(_multiline(cell) if isinstance(cell, str) else cell for cell in cells))

    def print(self, screen: Console) -> None:
        """Print the table; columns that do not fit are hidden and named below it."""
        drawn = [place for place, column in enumerate(self.columns) if column.kind != "bar" or screen.width < UNLIMITED]
        table = self._of_columns(drawn)
        layout = table.layout(screen.width)
        if self.title:
            print_line(screen, self.title, "italic")
        # No cropping: a single column may be wider than the terminal, which then wraps it.
        shown = table._of_columns(list(layout.widths))
        shown.rows = [_fitted(row, layout) for row in shown.rows]
        if self.compact:
            shown._shorten_names(list(layout.widths.values()))
        screen.print(Segments(shown._grid(screen, list(layout.widths.values()))), crop=False, end="")
        for line in (*self.caption.split("\n"), table._missing(layout)):
            if line:
                print_line(screen, line, "dim")

    def layout(self, width: int) -> "Layout":
        """The columns that fit, and their widths."""
        cells = [{str(row[place]) for row in self.rows} for place in range(len(self.columns))]
        if self.compact:
            return _layout(self.columns, cells, width, None)
        # Wrap names further if otherwise no figure would fit beside them.
        found = _layout(self.columns, cells, width, max(width // 3, _NARROWEST_TEXT))
        is_shown = [self.columns[place].kind == "number" for place in found.widths]
        if len(is_shown) == len(cells) or (any(is_shown) and not self.keep_figures):
            return found
        return _layout(self.columns, cells, width, 0)

    def _of_columns(self, places: Sequence[int]) -> "FittedTable":
        rows = [tuple(row[place] for place in places) for row in self.rows]
        return replace(self, columns=[self.columns[place] for place in places], rows=rows)

    def _shorten_names(self, widths: Sequence[int]) -> None:
        """Shorten names in the middle, in the same way in columns of the same width."""
        places = [place for place, column in enumerate(self.columns) if column.kind == "name"]
        short = {}
        for width in {widths[place] for place in places}:
            same = [place for place in places if widths[place] == width]
            short[width] = shortened(sorted({str(row[place]) for row in self.rows for place in same}), width)
        for number, row in enumerate(self.rows):
            cells = list(row)
            for place in places:
                if isinstance(cell := cells[place], str):
                    cells[place] = short[widths[place]][cell]
            self.rows[number] = tuple(cells)

    def _missing(self, layout: "Layout") -> str:
        """The columns and intervals that are not shown, in words."""
        hidden = [
            column.header
            for place, column in enumerate(self.columns)
            if place not in layout.widths and column.kind != "bar"
        ]
        without = [self.columns[place].header for place in sorted(layout.bare)]
        if without:
            hidden.append(f"the {'interval' if len(without) == 1 else 'intervals'} of {', '.join(without)}")
        return f"not shown: {', '.join(hidden)}; {self.hint}" if hidden else ""

    def _grid(self, screen: Console, widths: Sequence[int]) -> Iterator[Segment]:
        """Yield the lines of the table. Rich's own tables are several times slower on large results."""
        box = HEAVY_HEAD.substitute(screen.options)
        spans = [width + 2 for width in widths]
        kinds = [column.kind for column in self.columns[: len(widths)]]
        head = [_folded(column.header, width, "name") for column, width in zip(self.columns, widths, strict=False)]
        between = self.lines_between_rows or any(_longest_line(str(row[0])) > widths[0] for row in self.rows)
        yield Segment(box.get_top(spans) + "\n")
        edges = (box.head_left, box.head_vertical, box.head_right)
        yield from _drawn_row(screen, edges, head, widths, kinds, Style(bold=True))
        yield Segment(box.get_row(spans, "head") + "\n")
        edges = (box.mid_left, box.mid_vertical, box.mid_right)
        for place, row in enumerate(self.rows):
            if place and between:
                yield Segment(box.get_row(spans, "row") + "\n")
            cells = [_fold(screen, cell, width, kind) for cell, width, kind in zip(row, widths, kinds, strict=False)]
            if screen.options.ascii_only:
                cells = [[_in_ascii(line) for line in cell] for cell in cells]
            yield from _drawn_row(screen, edges, cells, widths, kinds)
        yield Segment(box.get_bottom(spans) + "\n")


def print_table(
    columns: Sequence[Column], rows: Iterable[Iterable[Line]], screen: Console | None = None, **options: Any
) -> None:
    """Print rows in columns; the options are those of `FittedTable`."""
    table = FittedTable(columns, **options)
    for row in rows:
        table.add_row(*row)
    table.print(screen or terminal())


def _fitted(row: tuple[Line, ...], layout: "Layout") -> tuple[Line, ...]:
    """The cells as a compact table shows them: figures for which there is too little room without their interval."""
    return tuple(
        _without_interval(str(cell)) if place in layout.bare else cell
        for place, cell in zip(layout.widths, row, strict=True)
    )


def _drawn_row(
    screen: Console,
    edges: tuple[str, str, str],
    cells: Sequence[Sequence[Line]],
    widths: Sequence[int],
    kinds: Sequence[Kind],
    style: Style | None = None,
) -> Iterator[Segment]:
    left, between, right = edges
    for lines in zip_longest(*cells, fillvalue=""):
        for place, (line, width, kind) in enumerate(zip(lines, widths, kinds, strict=True)):
            space = " " * (width - cell_len(str(line)))
            before, after = (space, "") if kind == "number" else ("", space)
            yield Segment((between if place else left) + " " + before)
            if isinstance(line, Text):
                # A text without spans leaves its own style to the caller.
                yield from Segment.apply_style(line.render(screen), screen.get_style(line.style))
            else:
                yield Segment(line, style)
            yield Segment(after + " ")
        yield Segment(right + "\n")


def show_table(screen: Console, table: ResultTable, most: int, *, compact: bool = True, **options: Any) -> None:
    """Print the first rows of a table of results, a line each if it is `compact`; the options are as above."""
    hidden = table.total - most
    more = f"{counted(hidden, 'more row')}: SELECT * FROM {table.of}" if table.of else f"… and {hidden:,} more"
    rows = (
        (
            Text(cell.text, style=_COLOURS.get(cell.text, "dim")) if column.kind == "verdict" else cell.text
            for column, cell in zip(table.columns, row, strict=True)
        )
        for row in table.cells(most)
    )
    caption = "\n".join([*table.notes, *([more] if hidden > 0 else [])])
    print_table(table.columns, rows, screen, title=table.title, caption=caption, compact=compact, **options)


# Which columns fit, and how wide they are


@dataclass
class Layout:
    """The widths of the columns shown, by their place, and the places of figures shown without their interval."""

    widths: dict[int, int] = field(default_factory=dict)
    bare: set[int] = field(default_factory=set)


class _Size(NamedTuple):
    """Widths of a column: the least, with intervals, with the header on one line too, and that without intervals."""

    least: int
    whole: int
    natural: int
    bare_natural: int

    @property
    def has_interval(self) -> bool:
        return self.whole > self.least


def _layout(
    columns: Sequence[Column], cells: Sequence[Collection[str]], width: int, longest_name: int | None
) -> Layout:
    """The columns that fit into `width`; `cells` has the texts of each column.

    Names up to `longest_name` are on one line; they are shortened if it is None.
    """
    room = width - _TABLE_OVERHEAD
    sizes = [_size(column, texts, longest_name) for column, texts in zip(columns, cells, strict=True)]
    if sum(size.natural + _COLUMN_OVERHEAD for size in sizes) <= room:
        return Layout({place: size.natural for place, size in enumerate(sizes)})
    layout = _required(columns, sizes, room)
    room = max(0, room - sum(layout.widths.values()) - _COLUMN_OVERHEAD * len(layout.widths))

    def widen(kind: Kind, wanted: Callable[[int], int]) -> None:
        """Distribute the room evenly among the columns of a kind."""
        nonlocal room
        own = [place for place in layout.widths if columns[place].kind == kind]
        while room and (wanting := [place for place in own if layout.widths[place] < wanted(place)]):
            for place in wanting[:room]:
                layout.widths[place] += 1
            room -= min(len(wanting), room)

    def show_intervals() -> None:
        nonlocal room
        for place in sorted(layout.bare):
            more = sizes[place].whole - layout.widths[place]
            if more <= room:
                layout.bare.discard(place)
                layout.widths[place] += more
                room -= more

    show_intervals()
    several = (
        sum(columns[place].kind == "name" and sizes[place].natural > _SHORTEST_NAME for place in layout.widths) > 1
    )
    share = width // (5 if several else 3)
    widen("name", lambda place: min(sizes[place].natural, share))
    for place in sorted(set(range(len(columns))) - layout.widths.keys(), key=lambda place: columns[place].rank):
        if columns[place].rank == 0 or sizes[place].least + _COLUMN_OVERHEAD > room:
            break
        layout.widths[place] = sizes[place].least
        layout.bare |= {place} if sizes[place].has_interval else set()
        room -= sizes[place].least + _COLUMN_OVERHEAD
    show_intervals()
    kinds: tuple[Kind, ...] = ("name", "label", "number", "text")
    for kind in kinds:
        widen(kind, lambda place: sizes[place].bare_natural if place in layout.bare else sizes[place].natural)
    layout.widths = dict(sorted(layout.widths.items()))
    return layout


def _required(columns: Sequence[Column], sizes: Sequence[_Size], room: int) -> Layout:
    """The columns of rank 0 at their least, as many of the first ones as fit; at least one."""
    layout = Layout()
    for place, size in enumerate(sizes):
        if columns[place].rank:
            continue
        room -= size.least + _COLUMN_OVERHEAD
        if room < 0 and layout.widths:
            break
        layout.widths[place] = size.least
        layout.bare |= {place} if size.has_interval else set()
    return layout


def _size(column: Column, texts: Collection[str], longest_name: int | None) -> _Size:
    if column.kind == "bar":
        return _Size(*[BAR_WIDTH] * 4)
    compact, header = longest_name is None, cell_len(column.header)
    header_word = _longest_piece([column.header], "name")
    if compact:
        # The name of a suite, for instance, may be one long word.
        header_word = min(header_word, _LONGEST_HEADER_WORD)
    longest = max(map(_longest_line, texts), default=0)
    if column.kind == "number" and compact:
        bare = max((cell_len(_without_interval(each)) for each in texts), default=0)
        least = max(bare, header_word)
        return _Size(least, max(longest, least), max(longest, header), max(bare, header))
    match column.kind:
        case "number" | "label":
            least = _longest_piece(texts, column.kind)
        case "name":
            least = min(longest, _SHORTEST_NAME if longest_name is None else max(longest_name, _NARROWEST_NAME))
            # A word too long for one line anyway may be broken anywhere.
            word = 0 if compact else _longest_piece(texts, "name")
            least = max(least, word if word <= _NARROWEST_TEXT else 0)
        case _:
            least = min(longest, _NARROWEST_TEXT)
    least, natural = max(least, header_word, 1), max(longest, header, 1)
    return _Size(least, least, natural, natural)


def _longest_piece(texts: Collection[str], kind: Kind) -> int:
    return max((cell_len(piece.rstrip()) for each in texts for piece in _pieces(each, kind)), default=0)


def _without_interval(cell: str) -> str:
    """A figure without its confidence interval.

    >>> _without_interval("0.576 [0.483, 0.663]")
    '0.576'
    """
    return _INTERVAL.sub("", cell)


# Consoles


def terminal(stderr: bool = False) -> Console:
    """A console on standard output or error; a pipe or file has unlimited width."""
    stream = sys.stderr if stderr else sys.stdout
    return SafeConsole(stream, width=None if stream.isatty() else UNLIMITED)


class SafeConsole(Console):
    """A console that colours its own text and escapes control characters in all of it."""

    def __init__(self, stream: TextIO, *, width: int | None = None, **options: Any) -> None:
        # Without a height, rich takes a dumb terminal for one of 80 columns, whatever the width.
        height = None if width is None else _ANY_HEIGHT
        options |= {"width": width, "height": height}
        super().__init__(file=safe(stream, styled=True), highlight=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Everything that is printed passes here; only rich's own control segments are left as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible_lines(segment.text))


def print_line(screen: Console, line: str, style: str = "") -> None:
    """Print a line of text, wrapped between words to the width of the console; no figure or interval is broken."""
    for folded in _folded(visible(line), screen.width, "text"):
        screen.print(Text(folded, style=style), soft_wrap=True)


def _in_ascii(line: Line) -> Line:
    """The cell with a bar of `#`, for a terminal without Unicode."""
    return line.translate(_ASCII_EIGHTHS) if isinstance(line, str) else line


def _multiline(cell: str) -> str:
    return "\n".join(visible(line.expandtabs(4)) for line in cell.splitlines()) if cell else ""


def _longest_line(cell: str) -> int:
    return max(map(cell_len, cell.split("\n")))


# A cell may wrap between these pieces: a figure before its interval, a name after a separator, text between words.
_PIECES: dict[Kind, re.Pattern[str]] = {
    "number": re.compile(r"\[[^\]]*\] *|(?:[<>≤≥] )?[^ \[]+ *|\[ *| +"),
    "name": re.compile(r"[^-_./ ]*[-_./ ]+|[^-_./ ]+"),
    "label": re.compile(r"[^ ]+ *| +"),
    "bar": re.compile(r".+"),
    # An interval and a bounded p-value stay together here too.
    "text": re.compile(r"\[[^\]]{0,40}\][^ ]* *|(?:[<>≤≥] )?[^ ]+ *| +"),
}


def _pieces(line: str, kind: Kind) -> list[str]:
    """The pieces that a line may be broken into, each with its trailing spaces.

    >>> _pieces("-0.290 [-0.356, -0.223]", "number"), _pieces("gpt-5.1_mini T0", "name")
    (['-0.290 ', '[-0.356, -0.223]'], ['gpt-', '5.', '1_', 'mini ', 'T0'])
    """
    return _PIECES[kind].findall(line)


def _fold(screen: Console, cell: Line, width: int, kind: Kind) -> Sequence[Line]:
    """Wrap the cell to the width, between pieces if possible, else between characters."""
    if isinstance(cell, Text):
        return list(cell.wrap(screen, width, overflow="fold"))
    return [folded for line in cell.split("\n") for folded in _folded(line, width, kind)]


def _folded(line: str, width: int, kind: Kind) -> list[str]:
    if cell_len(line) <= width:
        return [line]
    lines = [""]
    for piece in _pieces(line, kind):
        if cell_len((lines[-1] + piece).rstrip()) <= width:
            lines[-1] += piece
        else:
            lines += chop_cells(piece.rstrip(), width)
            lines[-1] += piece[len(piece.rstrip()) :]
    return [folded.rstrip() for folded in lines if folded.strip()]
