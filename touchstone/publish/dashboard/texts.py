"""The texts of cells, tables and lines that pages show. Templates escape them: they come from others."""

import math
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

import polars as pl

from touchstone.publish.attempt_detail import AttemptDetail, outcome_words
from touchstone.publish.dashboard.lists import descriptions, in_words
from touchstone.publish.dashboard.selection import Address
from touchstone.tables.presentation import decimals, in_column
from touchstone.text import counted, significant, visible

UNDEFINED = "—"
_DIGITS = 4


def cell(value: object) -> str:
    """A value as the text of a table cell; a dash if it is undefined.

    >>> cell(None), cell(0.123456), cell(12345), cell(True), cell(math.inf), cell("a\\x1b")
    ('—', '0.1235', '12,345', 'true', '∞', 'a\\\\x1b')
    """
    match value:
        case None:
            return UNDEFINED
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value:,}"
        case float():
            return _figure(value)
    return visible(str(value))


def column_cell(column: pl.Series) -> Callable[[object], str]:
    """`cell` for the values of one column: its figures have as many decimals as one another.

    >>> show = column_cell(pl.Series("pass_at_1", [0.4, 0.45678, None]))
    >>> show(0.4), show(0.45678), show(None)
    ('0.400', '0.457', '—')
    >>> column_cell(pl.Series("cost_usd", [0.00012, 0.5]))(0.5)
    '$0.500000'
    """
    if not column.dtype.is_float():
        return cell
    money = "cost" in column.name and "variance" not in column.name
    places = decimals(column.drop_nulls().to_list(), money=money)

    def show(value: object) -> str:
        if isinstance(value, float) and not math.isnan(value):
            return in_column(value, places, money=money)
        return cell(value)

    return show


def _figure(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return UNDEFINED if math.isnan(value) else significant(value, _DIGITS)


PAGE_ROWS = 50


def shown_table(
    frame: pl.DataFrame,
    address: Address,
    caption: str,
    link: Callable[[dict[str, Any]], str] = lambda row: "",
    *,
    words: bool = True,
) -> dict[str, Any]:
    """The part of a frame that an address asks for: `find` in its texts, `sort` by a column (-column), `page`.

    For the template: a row is the `link` that opens it, or none, and its cells. Without `words`, headers are the names
    of the columns.
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
    return {
        "caption": caption,
        "headers": list(_headers(frame, address, in_words if words else str)),
        "rows": rows,
        "count": f"{count}, page {page:,} of {pages:,}" if pages > 1 else count,
        "previous": address.but(page=str(page - 1)) if page > 1 else "",
        "next": address.but(page=str(page + 1)) if page < pages else "",
        "has_search": every > 10 and any(dtype == pl.String for dtype in frame.dtypes),
    }


def _headers(frame: pl.DataFrame, address: Address, words: Callable[[str], str]) -> Iterator[dict[str, Any]]:
    """Each column in words, with its description, the link that sorts by it, and the order that it is in."""
    known, sort = descriptions(frame.columns), address.get("sort")
    for name, dtype in frame.schema.items():
        number = dtype.is_numeric()
        # Figures are wanted from the highest first, names from the first letter.
        first, second = (f"-{name}", name) if number else (name, f"-{name}")
        order = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
        link = address.but(sort=second if sort == first else first, page=None)
        about = {"words": words(name), "description": known.get(name, ""), "is_number": number}
        yield about | {"link": link, "order": order}


def _contains(frame: pl.DataFrame, text: str) -> pl.Expr:
    names = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    wanted = text.lower()
    matches = [pl.col(name).str.to_lowercase().str.contains(wanted, literal=True).fill_null(False) for name in names]
    return pl.any_horizontal(matches) if matches else pl.lit(False)


def attempt_title(detail: AttemptDetail) -> str:
    """Problem, attempt and verdict in words."""
    return f"{detail.oid}, attempt {detail.iteration_id}: {outcome_words(vars(detail))}"


# More lines than anybody reads; comparing them takes time with their square.
_MOST_LINES = 3_000


class Line(NamedTuple):
    """A line on the left and right, or nothing, and whether the two are the `same` or have `changed`."""

    left: str | None
    right: str | None
    kind: str


def compared_text(left: AttemptDetail, right: AttemptDetail) -> tuple[str, str, str]:
    """The texts to compare, and what they are: the fixes if both have one, else the raw responses."""
    for name, words in (("fix", "The fixes"), ("raw_response", "The raw responses")):
        texts = getattr(left, name), getattr(right, name)
        if None not in texts:
            return (*texts, words)
    return "", "", ""


def side_by_side_lines(left: str, right: str) -> Iterator[Line]:
    """The lines of two texts, changed ones opposite each other.

    >>> list(side_by_side_lines("a\\nb", "a\\nc\\nd"))[1:]
    [Line(left='b', right='c', kind='changed'), Line(left=None, right='d', kind='changed')]
    """
    old, new = (text.splitlines()[:_MOST_LINES] for text in (left, right))
    for kind, start, end, first, last in SequenceMatcher(None, old, new).get_opcodes():
        word = "same" if kind == "equal" else "changed"
        yield from (Line(a, b, word) for a, b in zip_longest(old[start:end], new[first:last]))
