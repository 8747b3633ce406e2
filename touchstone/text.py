"""Counts, figures and foreign text as every message shows them. Whole tables belong in `touchstone.cli`."""

import math

_SIGNIFICANT_DIGITS = 5
# They join the parts of an emoji or ligature; all other unprintable characters are shown as escapes.
_JOINERS = "\u200c\u200d"


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
