"""Counts, figures and foreign text as every message shows them. Whole tables belong in `touchstone.cli`.

Foreign text comes from fixes, data files and names. `visible` and `visible_lines` make it safe for a terminal,
`without_commands` for the log of a CI job, `markdown_text` for Markdown.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import decode_source

_SIGNIFICANT_DIGITS = 5
_NOT_FINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
# They join the parts of an emoji or ligature; all other unprintable characters are shown as escapes.
_JOINERS = "\u200c\u200d"

# CI systems take such lines of a log for commands: GitHub `::name` and `##[name]`, Azure `##vso[name]`.
_COMMAND = re.compile(r"^[^\S\n]*:(?=:)|##\w{0,20}(?=\[)", re.MULTILINE)

_MARKDOWN_SPECIAL = re.compile(r"[\\`*\[\]<>|~#&$]|(?<![^\W_])_|_(?![^\W_])")
_LINE_MARKER = re.compile(r"^(\d*)([-+=.):])")
# GitHub turns these into links and notifications after it has read the escapes, so something must stand between.
_AUTOLINK = re.compile(
    r"(?<![A-Za-z0-9])@(?=\w)|(?<=[\w.+-])@(?=[\w-]+\.\w)|#(?=\d)|GH(?=-\d)|:(?=//)|www(?=\.)", re.IGNORECASE
)
_NO_LINK = "&#8203;"


def significant(value: float, digits: int = _SIGNIFICANT_DIGITS) -> str:
    """Round a figure to significant digits. Whole numbers stay whole; trailing zeros mean that it was rounded.

    >>> significant(1.0728836059570e-06), significant(0.25), significant(0.9999999), significant(1234567.8)
    ('1.0729e-06', '0.25', '1.0000', '1234568')
    """
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 10 ** (digits - 1) and abs(value) < 1e15:
        return f"{value:.0f}"
    short = f"{value:.{digits}g}"
    return short if float(short) == value else f"{value:#.{digits}g}".rstrip(".")


def estimate(value: float | None, low: float | None, high: float | None, show: Callable[[float], str]) -> str:
    """A figure with its confidence interval, if it has one; an end that is unknown is an ellipsis.

    >>> estimate(0.5, 0.25, math.inf, "{:.2f}".format), estimate(0.5, None, None, str), estimate(None, 0, 1, str)
    ('0.50 [0.25, ∞]', '0.5', '-')
    """
    if value is None:
        return "-"
    if low is None and high is None:
        return show(value)
    ends = ["…" if end is None else re.sub("inf%?", "∞", show(end)) for end in (low, high)]
    return f"{show(value)} [{', '.join(ends)}]"


def json_number(value: float) -> float | str | None:
    """A figure for JSON, which has only finite ones: infinity as text, and undefined (NaN) as null.

    `float` in Python and `Number` in JavaScript read the text back. Null would be wrong: the cost of pass of a model
    that never passes is known to be infinite.

    >>> json_number(0.5), json_number(-math.inf), json_number(math.nan)
    (0.5, '-Infinity', None)
    """
    return value if math.isfinite(value) else _NOT_FINITE.get(value)


def files_by_note(notes: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each note once, after the first of the files that it is about and the number of the others.

    >>> list(files_by_note([("a", "empty"), ("b", "damaged"), ("c", "empty"), ("b", "damaged")]))
    [('a and 1 other file', 'empty'), ('b', 'damaged')]
    """
    files: dict[str, list[str]] = {}
    for file, note in dict.fromkeys(notes):
        files.setdefault(note, []).append(file)
    for note, named in files.items():
        yield named[0] + (f" and {counted(len(named) - 1, 'other file')}" if len(named) > 1 else ""), note


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun in the right number.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "case was lost", "cases were lost")
    ('1 row', '1,200 rows', '2 cases were lost')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def counted_of(count: int, total: int, noun: str, plural: str | None = None) -> str:
    """A count out of a total, with the noun in the right number.

    >>> counted_of(1, 60, "attempt"), counted_of(1, 1, "attempt")
    ('1 of 60 attempts', '1 of 1 attempt')
    """
    return f"{count:,} of {counted(total, noun, plural)}"


def without_dashes(name: str) -> str:
    """A name in which dashes and underscores are the same.

    >>> without_dashes("fix-it") == without_dashes("fix_it")
    True
    """
    return name.replace("-", "_")


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The first names of a list, and how many more there are.

    >>> some_of(["a", "b", "c"], 2), some_of(["a", "b"], 2)
    ('a, b and 1 more', 'a, b')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def near(name: str, known: Iterable[str], what: str = "") -> str:
    """A hint for a name that does not exist: the nearest one, else the first ones there are; all after `what`.

    >>> near("atals", ["atlas", "cedar"]), near("x", ["atlas", "cedar"])
    ("did you mean 'atlas'?", 'there are: atlas, cedar')
    """
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"{what}: {', '.join(names)}" if what else f"there are: {some_of(names, 10)}"


def visible(text: str) -> str:
    r"""Text on one line, with control characters escaped so that none reaches the terminal.

    >>> visible("a\x1b[31m\nü")
    'a\\x1b[31m\\nü'
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in _JOINERS else char.encode("unicode_escape").decode() for char in text
    )


def visible_lines(text: str) -> str:
    r"""Text with all control characters escaped but line breaks and tabs.

    >>> visible_lines("a\x1b[31m\n\tb\r")
    'a\\x1b[31m\n\tb\\r'
    """
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def without_commands(text: str) -> str:
    r"""Text in which no line is a command to the CI system that runs this.

    >>> without_commands("a ::b\n ::error::c\n##[group]")
    'a ::b\n :\\:error::c\n##\\[group]'
    """
    return _COMMAND.sub(r"\g<0>\\", text) if "::" in text or "##" in text else text


def markdown_text(text: str) -> str:
    r"""Text for one line or table cell of Markdown: no markup, tags, links or mentions.

    >>> markdown_text("a|b `c` pass@1 @me"), markdown_text("pass_at_k _x_"), markdown_text("http://a.b www.c.d")
    ('a\\|b \\`c\\` pass@1 @&#8203;me', 'pass_at_k \\_x\\_', 'http:&#8203;//a.b www&#8203;.c.d')
    """
    return _AUTOLINK.sub(rf"\g<0>{_NO_LINK}", _MARKDOWN_SPECIAL.sub(r"\\\g<0>", visible(text)))


def markdown_lines(titles: Sequence[str], numeric: Sequence[bool], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table in Markdown, in which all text is inert; numeric columns are right-aligned.

    >>> list(markdown_lines(["model", "n"], [False, True], [["a|b", "3"]]))
    ['| model | n |', '| --- | ---: |', '| a\\\\|b | 3 |']
    """
    rules = ["---:" if is_number else "---" for is_number in numeric]
    for line in (map(markdown_text, titles), rules, *(map(markdown_text, row) for row in rows)):
        yield f"| {' | '.join(line)} |"


def markdown_paragraph(line: str) -> str:
    r"""A line that Markdown does not take for a list, heading or rule, nor a CI system for a command.

    >>> markdown_paragraph("1. a|b"), markdown_paragraph("- c"), markdown_paragraph("::error::d")
    ('1\\. a\\|b', '\\- c', '\\::error::d')
    """
    return _LINE_MARKER.sub(r"\1\\\2", markdown_text(line).strip())


def python_lines(source: str | bytes) -> list[str]:
    """The lines of Python code as its syntax tree counts them; none if it cannot be decoded.

    >>> python_lines("only\\f these\\r\\nend\\na line")
    ['only\\x0c these', 'end', 'a line']
    """
    if isinstance(source, bytes):
        try:
            source = decode_source(source)
        except (SyntaxError, UnicodeDecodeError):
            return []
    return re.split(r"\r\n?|\n", source)
