"""A frame as a table of the page: sorted, searched and cut as the address says, with headers in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from touchstone.publish.dashboard.address import Address
from touchstone.publish.dashboard.figures import descriptions, in_words
from touchstone.publish.dashboard.markup import column_cell
from touchstone.text import counted

PAGE_ROWS = 50


@dataclass(frozen=True)
class Header:
    """A column: its name in words, what it means, and the link that sorts by it."""

    words: str
    description: str
    is_number: bool
    link: str
    order: str = ""


@dataclass(frozen=True)
class ShownTable:
    """What a page shows of a table. A row has the link that opens it, or none, and its cells."""

    caption: str
    headers: Sequence[Header]
    rows: Sequence[tuple[str, Sequence[str]]]
    count: str
    previous: str = ""
    next: str = ""
    has_search: bool = False


def shown_table(
    frame: pl.DataFrame,
    address: Address,
    caption: str,
    link: Callable[[dict[str, Any]], str] = lambda row: "",
    *,
    words: bool = True,
) -> ShownTable:
    """The part of a frame that an address asks for: `find` in its texts, `sort` by a column (-column), `page`.

    Without `words`, headers are the names of the columns.
    """
    every = frame.height
    found = ordered = frame.filter(_contains(frame, address.get("find"))) if address.get("find") else frame
    sort = address.get("sort")
    if sort.removeprefix("-") in frame.columns:
        ordered = found.sort(
            sort.removeprefix("-"), descending=sort.startswith("-"), nulls_last=True, maintain_order=True
        )
    pages = max(1, -(-found.height // PAGE_ROWS))
    page = min(max(int(address.get("page")) if address.get("page").isdecimal() else 1, 1), pages)
    shown = ordered.slice((page - 1) * PAGE_ROWS, PAGE_ROWS)
    cells = [list(map(column_cell(frame[name]), shown[name])) for name in frame.columns]
    texts = list(zip(*cells, strict=True)) if cells else []
    rows = [(link(row), texts[place]) for place, row in enumerate(shown.iter_rows(named=True))]
    count = counted(found.height, "row") + (f" of {every:,}" if found.height < every else "")
    return ShownTable(
        caption,
        _headers(frame, address, in_words if words else str),
        rows,
        f"{count}, page {page:,} of {pages:,}" if pages > 1 else count,
        address.but(page=str(page - 1)) if page > 1 else "",
        address.but(page=str(page + 1)) if page < pages else "",
        has_search=every > 10 and any(dtype == pl.String for dtype in frame.dtypes),
    )


def _headers(frame: pl.DataFrame, address: Address, words: Callable[[str], str]) -> list[Header]:
    known, sort = descriptions(frame.columns), address.get("sort")
    headers = []
    for name, dtype in frame.schema.items():
        number = dtype.is_numeric()
        # Figures are wanted from the highest first, names from the first letter.
        first, second = (f"-{name}", name) if number else (name, f"-{name}")
        order = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
        link = address.but(sort=second if sort == first else first, page=None)
        headers.append(Header(words(name), known.get(name, ""), number, link, order))
    return headers


def _contains(frame: pl.DataFrame, text: str) -> pl.Expr:
    names = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    wanted = text.lower()
    matches = [pl.col(name).str.to_lowercase().str.contains(wanted, literal=True).fill_null(False) for name in names]
    return pl.any_horizontal(matches) if matches else pl.lit(False)
