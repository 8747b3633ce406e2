"""Text and HTML for the dashboard. Names, messages and fixes come from others: everything here is escaped."""

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import polars as pl

from touchstone.publish.figures import decimals, in_column
from touchstone.text import significant, visible, visible_lines

UNDEFINED = "—"
_DIGITS = 4
# The first character of a line of a diff, and the class of such lines.
_DIFF_CLASSES = {"+": "added", "-": "removed", "@": "place"}


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


def text(value: object) -> str:
    """A value as HTML.

    >>> text("<b>")
    '&lt;b&gt;'
    """
    return html.escape(visible(str(value)))


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of plain text, of a class of the style sheet."""
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def heading(words: str, level: int = 2) -> str:
    """A heading of plain text."""
    return f"<h{level}>{text(words)}</h{level}>"


def facts(values: Mapping[str, object]) -> str:
    """Names and values, one pair beside the other."""
    pairs = "".join(
        f"<div><dt>{text(name)}</dt><dd>{html.escape(cell(value))}</dd></div>" for name, value in values.items()
    )
    return f'<dl class="facts">{pairs}</dl>'


def block(content: str, label: str) -> str:
    """Text of several lines as it is. It can be scrolled, so it can be reached with the keyboard."""
    return f'<pre class="text" tabindex="0" aria-label="{text(label)}">{html.escape(visible_lines(content))}</pre>'


def diff_block(diff: str, label: str) -> str:
    """A unified diff with the lines that were added and removed marked."""
    lines = []
    for line in visible_lines(diff).split("\n"):
        kind = _DIFF_CLASSES.get(line[:1], "same")
        lines.append(f'<span class="{kind}">{html.escape(line) or " "}</span>')
    return f'<pre class="text diff" tabindex="0" aria-label="{text(label)}">{"".join(lines)}</pre>'


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str) -> str:
    """A small table."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell(value))}</td>' for value in row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}"><table class="plain">'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
