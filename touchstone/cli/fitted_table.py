"""Tables on the terminal that never truncate a figure. Their contents belong in `tables` and `*_tables`.

A table too wide for the terminal first wraps: headers at `_` and spaces, intervals onto a second line, long text, and
names longer than a third of the width. If that is not enough, the last columns are hidden and named below the table.
A `compact` table has a line per row instead: `compact_layout` chooses what is shown, and long names are shortened.
Piped output has no width, so nothing is wrapped, shortened or hidden.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, zip_longest
from typing import Any, NamedTuple, TextIO

from rich.box import HEAVY_HEAD
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment, Segments
from rich.style import Style
from rich.text import Text

from touchstone.cli.compact_layout import (
    BAR_WIDTH,
    COLUMN_OVERHEAD,
    TABLE_OVERHEAD,
    Column,
    Kind,
    Layout,
    compact_layout,
    without_interval,
)
from touchstone.cli.safe_output import safe
from touchstone.publish.short_names import shortened
from touchstone.text import visible, visible_lines

Line = str | Text

# Wider than any table: the console of a pipe or file.
UNLIMITED = 10**9
_ANY_HEIGHT = 25

_NARROWEST_TEXT = 20
_NARROWEST_NAME = 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_ASCII_EIGHTHS = str.maketrans(_EIGHTHS, "    #####")


def names(*headers: str, rank: int = 0) -> list[Column]:
    """Columns of names: models, tiers, ids."""
    return [Column(header, "name", rank) for header in headers]


def labels(*headers: str, rank: int = 0) -> list[Column]:
    """Columns of words from a fixed vocabulary, and of ids to copy: never shortened."""
    return [Column(header, "label", rank) for header in headers]


def numbers(*headers: str, rank: int = 0) -> list[Column]:
    """Right-aligned columns of figures. `0.5 [0.4, 0.6]` may wrap before the bracket, unless the table is compact."""
    return [Column(header, "number", rank) for header in headers]


def prose(*headers: str, rank: int = 0) -> list[Column]:
    """Columns of running text."""
    return [Column(header, "text", rank) for header in headers]


def bars(header: str = "", rank: int = 0) -> list[Column]:
    """A column of bars, drawn on a terminal only."""
    return [Column(header, "bar", rank)]


def bar(share: float | None) -> str:
    """A bar for a share of 1, in eighths of a character; empty if the share is unknown.

    >>> bar(0.5), bar(0.26), bar(None)
    ('█████     ', '██▋       ', '          ')
    """
    eighths = round(8 * BAR_WIDTH * min(max(share or 0.0, 0.0), 1.0))
    return (_EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8]).ljust(BAR_WIDTH)[:BAR_WIDTH]


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
        # Before widths are measured: an escape is longer than what it stands for.
        self.columns = [column._replace(header=visible(column.header)) for column in self.columns]

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

    def layout(self, width: int) -> Layout:
        """The columns that fit, and their widths."""
        if not self.compact:
            return Layout(dict(enumerate(self.fitted_widths(width))))
        cells = [[str(row[place]) for row in self.rows] for place in range(len(self.columns))]
        return compact_layout(self.columns, cells, width)

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

    def _missing(self, layout: Layout) -> str:
        """What is not shown, in words."""
        hidden = [
            column.header
            for place, column in enumerate(self.columns)
            if place not in layout.widths and column.kind != "bar"
        ]
        without = [self.columns[place].header for place in sorted(layout.bare)]
        if without:
            hidden.append(f"the {'interval' if len(without) == 1 else 'intervals'} of {', '.join(without)}")
        return f"not shown: {', '.join(hidden)}; {self.hint}" if hidden else ""

    def fitted_widths(self, width: int) -> list[int]:
        """The widths of the leading columns that fit; at least one."""
        room = width - TABLE_OVERHEAD
        sizes = [self._size(place) for place in range(len(self.columns))]
        if sum(size.natural + COLUMN_OVERHEAD for size in sizes) <= room:
            return [size.natural for size in sizes]
        # Wrap names further if otherwise no figure would fit beside them.
        for longest_name in (max(width // 3, _NARROWEST_TEXT), 0):
            least = [max(size.least, min(size.name, longest_name)) for size in sizes]
            shown = _leading(least, room)
            kinds = [column.kind for column in self.columns[:shown]]
            if shown == len(sizes) or ("number" in kinds and not self.keep_figures):
                break
        spare = room - sum(least[:shown]) - COLUMN_OVERHEAD * shown
        return _widened(least[:shown], [size.natural for size in sizes], kinds, max(spare, 0))

    def _size(self, place: int) -> "_Size":
        header, kind, _ = self.columns[place]
        cells = {str(row[place]) for row in self.rows}
        longest = max(map(_longest_line, cells), default=0)
        longest_piece = max((cell_len(piece.rstrip()) for cell in cells for piece in _pieces(cell, kind)), default=0)
        match kind:
            case "number":
                least = longest_piece
            case "name":
                # A word too long for one line anyway may be broken anywhere.
                word = longest_piece if longest_piece <= _NARROWEST_TEXT else 0
                least = max(word, min(longest, _NARROWEST_NAME))
            case _:
                least = min(longest, _NARROWEST_TEXT)
        header_piece = max((cell_len(piece.rstrip()) for piece in _pieces(header, "name")), default=0)
        name = longest if kind == "name" else 0
        return _Size(max(longest, cell_len(header), 1), max(least, header_piece, 1), name)

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


def _fitted(row: tuple[Line, ...], layout: Layout) -> tuple[Line, ...]:
    """The cells as a compact table shows them: figures for which there is too little room without their interval."""
    return tuple(
        without_interval(str(cell)) if place in layout.bare else cell
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


class _Size(NamedTuple):
    """Widths of a column: with every cell on one line, the minimum, and the longest unwrapped name."""

    natural: int
    least: int
    name: int


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


def _leading(widths: Sequence[int], room: int) -> int:
    """How many of the first columns fit; at least one."""
    ends = accumulate(width + COLUMN_OVERHEAD for width in widths)
    return max(sum(end <= room for end in ends), 1)


def _widened(least: Sequence[int], natural: Sequence[int], kinds: Sequence[Kind], spare: int) -> list[int]:
    """Distribute the spare width evenly: first to names, then figures, then text."""
    widths = list(least)
    for kind in ("name", "number", "text"):
        while wanting := [
            place for place, width in enumerate(widths) if kinds[place] == kind and width < natural[place]
        ]:
            for place in wanting[:spare]:
                widths[place] += 1
            spare -= min(len(wanting), spare)
            if not spare:
                return widths
    return widths


def _multiline(cell: str) -> str:
    return "\n".join(visible(line.expandtabs(4)) for line in cell.splitlines()) if cell else ""


def _longest_line(cell: str) -> int:
    return max(map(cell_len, cell.split("\n")))


# Where a cell may wrap: a figure before its interval, a name after a separator, words and text between words.
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
