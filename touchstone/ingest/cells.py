"""Text cells to typed rows: one rule per kind of cell, each with the reason it gives for refusing one.

A rule never guesses: what it cannot parse is refused with a reason, and an empty cell is null. Which columns a file
has and what they mean together belongs in `problems` and `attempts`. The typed rows of a file are kept in a scratch
Parquet file, so that the input is parsed only once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import polars as pl

from touchstone.ingest.adapters.table import AdapterTable
from touchstone.ingest.csv_rows import LINE, ROW_ERROR, ROW_ERROR_KIND, SCRATCH_FORMAT, TextTable, read_rows
from touchstone.ingest.quarantine import Refusal
from touchstone.storage.batches import by_key
from touchstone.storage.files import replacing
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
_REFUSAL_COLUMNS = (ROW_ERROR_KIND, ROW_ERROR, REFUSED_BY, REFUSED_CELL)
_COUNT = "__count"
# Keys that are counted at a time.
_MOST_COUNTED = 4_000_000
# In seconds; a smaller number is a time since something else, a larger one has another unit.
_CENTURY = (946_684_800, 4_102_444_800)
_SPELLINGS = (str.lower, str.upper, str.capitalize)

InputTable = TextTable | AdapterTable
Result = TypeVar("Result")


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


def success_beside_failures(column: str, other: str) -> Rule:
    """An outcome must not be true where another column has failures, as it may if both count tests."""
    value, failures = boolean(column).value, _trimmed(other).str.to_lowercase()

    def explain(text: str) -> str:
        return f"{column} is {text!r} beside failures in '{other}'; if both count tests, neither is an outcome"

    return Rule(column, value, (value & ~failures.is_in(FALSE_WORDS)).fill_null(False), "contradiction", explain)


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


@dataclass(frozen=True)
class TypedRows:
    """The rows of one file: those that every rule accepts, and the refusals of the rest."""

    accepted: pl.LazyFrame
    refusals: list[Refusal]
    rows: int
    # Assumptions about
    notes: tuple[str, ...] = ()


def read_typed_rows(table: InputTable, rules: list[Rule], extras: Mapping[str, pl.Expr], scratch: Path) -> TypedRows:
    """Read the file once through the rules into `scratch`; `extras` are further columns computed from the"""
    columns = {rule.column: rule.value for rule in rules} | dict(extras)
    assumed = {f"__assumed_{rule.column}": rule for rule in rules if rule.assumed is not None}
    named = [expression.alias(name) for name, expression in columns.items()]
    named += [rule.assumed.alias(name) for name, rule in assumed.items() if rule.assumed is not None]

    def sink(rows: pl.LazyFrame) -> None:
        typed = rows.select(LINE, ROW_ERROR_KIND, ROW_ERROR, *first_refusal(rules), *named)
        # A file of its own for each reader: when a query fails, Polars may still write to its file for a while.
        with replacing(scratch) as own:
            typed.sink_parquet(own, **SCRATCH_FORMAT)

    read_any_rows(table, sink)
    written = pl.scan_parquet(scratch, glob=False)
    is_accepted = pl.col(ROW_ERROR).is_null() & (pl.col(REFUSED_BY) == 0)
    refused = written.filter(~is_accepted).select(LINE, *_REFUSAL_COLUMNS).collect()
    refusals = [
        Refusal(line, kind, error)
        if error is not None
        else Refusal(line, rules[rule - 1].kind, rules[rule - 1].explain(cell or ""))
        for line, kind, error, rule, cell in refused.iter_rows()
    ]
    rows = written.select(pl.len()).collect().item()
    accepted = written.filter(is_accepted)
    found = accepted.select(pl.col(name).any() for name in assumed).collect()
    notes = tuple(assumed[name].assumption for name in assumed if found[name].item())
    return TypedRows(accepted.drop(*_REFUSAL_COLUMNS, *assumed), refusals, rows, notes)


def read_any_rows(table: InputTable, consume: Callable[[pl.LazyFrame], Result]) -> Result:
    """Pass the rows of a table to `consume`, whichever reader it comes from."""
    if isinstance(table, TextTable):
        return read_rows(table, consume)
    with table.reading():
        return consume(table.rows)


def drop_refused(rows: pl.LazyFrame, refusals: Sequence[Refusal]) -> pl.LazyFrame:
    """The rows without those that were refused."""
    if not refusals:
        return rows
    lines = pl.LazyFrame({LINE: [refusal.line for refusal in refusals]}, schema={LINE: pl.Int64})
    return rows.join(lines, on=LINE, how="anti")


def find_duplicates(rows: pl.LazyFrame, key: list[str]) -> list[Refusal]:
    """Refusals for rows that share a key: all but the first of equal rows, and every one of rows that differ."""
    several = pl.col(_COUNT) > 1
    repeated = pl.concat(
        rows.filter(part).group_by(key).agg(pl.len().alias(_COUNT)).filter(several).collect(engine="streaming")
        for part in by_key(rows.select(pl.len()).collect(engine="streaming").item(), key, _MOST_COUNTED)
    ).select(key)
    if repeated.is_empty():
        return []
    candidates = rows.join(repeated.lazy(), on=key, how="semi").collect().sort(LINE)
    content = [name for name in candidates.columns if name != LINE]
    versions = pl.struct(content).n_unique().alias(_COUNT)
    groups = candidates.group_by(key, maintain_order=True).agg(LINE, versions)
    names = ", ".join(key)
    refusals = []
    for lines, different in groups.select(LINE, _COUNT).iter_rows():
        if different == 1:
            refusals += [Refusal(line, "duplicate", f"repeats line {lines[0]}") for line in lines[1:]]
            continue
        for line in lines:
            other = lines[0] if line != lines[0] else lines[1]
            reason = f"same ({names}) as line {other} but different content; all {len(lines)} rows are refused"
            refusals.append(Refusal(line, "conflict", reason))
    return refusals
