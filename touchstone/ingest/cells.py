"""Text cells to typed values: one rule per kind of cell, each with the reason it gives for refusing one.

A rule never guesses: what it cannot parse is refused with a reason, and an empty cell is null. Which columns a file
has and what they mean together belongs in `problems` and `attempts`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from touchstone.vocabulary import (
    FAIL_WORDS,
    FALSE_WORDS,
    MAX_AMOUNT,
    MAX_COUNT,
    MAX_ID_LENGTH,
    PASS_CLASS,
    PASS_WORDS,
    TRUE_WORDS,
)

REFUSED_BY = "__refused"
REFUSED_CELL = "__offender"
# In seconds; a smaller number is a time since something else, a larger one has another unit.
_CENTURY = (946_684_800, 4_102_444_800)
_SPELLINGS = (str.lower, str.upper, str.capitalize)


@dataclass(frozen=True)
class Rule:
    """How one column is parsed: its value, when a row is refused because of it, and why."""

    column: str
    value: pl.Expr
    refused: pl.Expr
    kind: str
    explain: Callable[[str], str]
    # Cells that are written in an unusual way, and how they are read, for a note on the file.
    assumed: pl.Expr | None = None
    assumption: str = ""


def contradiction(column: str, other: str) -> Rule:
    """Two boolean columns with the same meaning must agree."""
    value = boolean(column).value

    def explain(text: str) -> str:
        return f"{column} is {text!r} and {other} says the opposite"

    return Rule(column, value, (value != boolean(other).value).fill_null(False), "contradiction", explain)


def identifier(column: str, default: str | None = None) -> Rule:
    """An id: not trimmed, not empty (unless there is a default), at most `MAX_ID_LENGTH` characters."""
    cell = pl.col(column)
    value = cell if default is None else cell.fill_null(default)

    def explain(text: str) -> str:
        if not text:
            return f"the {column} is missing"
        return f"the {column} has {len(text)} characters; at most {MAX_ID_LENGTH} are allowed"

    refused = value.is_null() | (value.str.len_chars() > MAX_ID_LENGTH)
    return Rule(column, value, refused, "bad_id", explain)


def boolean(column: str) -> Rule:
    """true/false, 1/0, 1.0/0.0, yes/no, t/f, y/n in any case, and words such as passed and unresolved with a note."""
    word = _trimmed(column).str.to_lowercase()
    yes, no = (*TRUE_WORDS, *PASS_WORDS), (*FALSE_WORDS, *FAIL_WORDS)
    value = pl.when(word.is_in(yes)).then(True).when(word.is_in(no)).then(False)

    def explain(text: str) -> str:
        return f"{column}: {text!r} is not a boolean (expected true/false, 1/0, yes/no, t/f, y/n or pass/fail)"

    refused = word.is_not_null() & ~word.is_in((*yes, *no))
    assumed = word.is_in((*PASS_WORDS, *FAIL_WORDS))
    assumption = f"{column}: pass is read as true, fail as false, and such words likewise"
    return Rule(column, value, refused, "bad_boolean", explain, assumed, assumption)


def spelled_boolean(column: str) -> Rule:
    """`boolean` for the usual spellings only: no spaces around the word, and no mixed case such as tRuE.

    Several times faster, because the cells are compared as they are.
    """
    cell = pl.col(column)
    yes, no = (
        tuple(spelling(word) for word in words for spelling in _SPELLINGS) for words in (TRUE_WORDS, FALSE_WORDS)
    )
    value = pl.when(cell.is_in(yes)).then(True).when(cell.is_in(no)).then(False)
    return Rule(column, value, cell.is_not_null() & value.is_null(), "bad_boolean", boolean(column).explain)


def score(column: str) -> Rule:
    """A finite number of either sign; `91%` is 0.91, with a note."""
    text = _trimmed(column)
    assumed = text.str.ends_with("%")
    parts = text.str.strip_suffix("%").str.strip_chars().cast(pl.Float64, strict=False)
    number = pl.when(assumed).then(parts / 100).otherwise(parts)

    def explain(cell: str) -> str:
        return f"{column}: {cell!r} is not a number"

    refused = text.is_not_null() & ~number.is_finite().fill_null(False)
    return Rule(column, number, refused, "bad_number", explain, assumed, f"{column}: 91% is read as 0.91")


def amount(column: str, at_most: int = MAX_AMOUNT, what: str = "number") -> Rule:
    """A number from 0 to `at_most`."""
    text = _trimmed(column)
    number = text.cast(pl.Float64, strict=False)

    def explain(cell: str) -> str:
        if _is_finite_number(cell) and float(cell) > at_most:
            return f"{column}: {cell!r} is too large (at most {at_most:,})"
        return f"{column}: {cell!r} is not a {what} of at least 0"

    refused = text.is_not_null() & ~number.is_between(0, at_most).fill_null(False)
    return Rule(column, number, refused, "bad_number", explain)


def count(column: str) -> Rule:
    """A whole number, at least 0; `12.0` is 12."""
    rule = amount(column, MAX_COUNT, "whole number")
    whole = rule.value.round(0)
    refused = rule.refused | (rule.value != whole).fill_null(False)
    value = pl.when(~refused).then(whole).cast(pl.Int64)
    return Rule(column, value, refused, "bad_number", rule.explain)


def timestamp(column: str) -> Rule:
    """A point in time in seconds: a number, or ISO 8601; without an offset it is UTC."""
    text = _trimmed(column)
    iso = text.str.replace(" ", "T", literal=True).str.replace(r"[zZ]$", "+00:00")
    offset = iso.str.strptime(pl.Datetime("us", "UTC"), "%Y-%m-%dT%H:%M:%S%.f%:z", strict=False)
    plain = iso.str.strptime(pl.Datetime("us"), "%Y-%m-%dT%H:%M:%S%.f", strict=False).dt.replace_time_zone("UTC")
    seconds = pl.coalesce(offset, plain).dt.epoch("us") / 1_000_000
    value = pl.coalesce(text.cast(pl.Float64, strict=False), seconds)

    def explain(cell: str) -> str:
        return f"{column}: {cell!r} is not a time (expected ISO 8601 or seconds)"

    return Rule(column, value, text.is_not_null() & ~value.is_finite().fill_null(False), "bad_time", explain)


def day(column: str, *, parsed: bool = False) -> pl.Expr:
    """The day in UTC of a point in time or a date, as ISO 8601; null if there is none in this century.

    `parsed`: the column is a number of seconds already.

    >>> cells = pl.DataFrame({"at": ["2026-03-01T23:30:00-02:00", "2026-03-01", "1772323200", "12", "soon", None]})
    >>> cells.select(day("at"))["at"].to_list()
    ['2026-03-02', '2026-03-01', '2026-03-01', None, None, None]
    """
    seconds = pl.col(column) if parsed else timestamp(column).value
    at = pl.from_epoch(pl.when(seconds.is_between(*_CENTURY)).then(seconds).cast(pl.Int64)).cast(pl.Date)
    date = at if parsed else pl.coalesce(at, _trimmed(column).str.to_date("%Y-%m-%d", strict=False))
    return date.cast(pl.String)


def outcome_class(column: str, stated: Sequence[str] = ()) -> Rule:
    """A class in lower case: any word that does not contradict an outcome stated in another column.

    FailProof's is an object whose `primary` is the class; the others of its values are not.
    """
    text = _trimmed(column)
    primary = text.str.extract(r"""^\{\s*["']primary["']\s*:\s*["']([^"']*)["']""")
    word = pl.coalesce(primary, text).str.to_lowercase()
    outcome = pl.coalesce(pl.lit(None, pl.Boolean), *(boolean(name).value for name in stated))

    def explain(cell: str) -> str:
        other = " or ".join(stated)
        return f"{column} is {cell!r} but {other} says the opposite; only the class {PASS_CLASS!r} is a pass"

    refused = ((word == PASS_CLASS) != outcome).fill_null(False)
    return Rule(column, word, refused, "contradiction", explain)


def first_refusal(rules: list[Rule]) -> list[pl.Expr]:
    """The number of the first rule that refuses the row, from 1 (0: all accept it), and the refused cell."""
    refused, cell = pl.lit(0, pl.Int16), pl.lit(None, pl.String)
    for place, rule in reversed(list(enumerate(rules, start=1))):
        refused = pl.when(rule.refused).then(pl.lit(place, pl.Int16)).otherwise(refused)
        cell = pl.when(rule.refused).then(pl.col(rule.column)).otherwise(cell)
    return [refused.alias(REFUSED_BY), cell.alias(REFUSED_CELL)]


def _is_finite_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _trimmed(column: str) -> pl.Expr:
    text = pl.col(column).str.strip_chars()
    return pl.when(text != "").then(text)
