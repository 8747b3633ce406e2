"""The value that each problem has in each configured slice: the table `problem_slices`.

Values are texts. A problem without one has the value `(missing)`, or `no date`; it is never dropped. Pass rates by
slice belong in `metrics.slices`.
"""

import difflib
from collections.abc import Iterator, Sequence
from itertools import pairwise

import polars as pl

from touchstone.config import SliceSettings
from touchstone.errors import TouchstoneError
from touchstone.tables import TABLES

MISSING, NOT_A_NUMBER = "(missing)", "(not a number)"
BEFORE, AFTER, NO_DATE, NOT_A_DATE = "before cutoff", "after cutoff", "no date", "(not a date)"
# More values than anyone would compare, each with too few problems to say anything.
MAX_VALUES = 50

_CUTOFF_ORDER = (BEFORE, AFTER, NO_DATE, NOT_A_DATE)
# Columns that follow from `filename`, unless the problems have columns of these names.
_DERIVED = {
    "extension": pl.col("filename").str.to_lowercase().str.extract(r"[^/.](\.[^/.]+)$"),
    "folder": pl.when(pl.col("filename").is_not_null()).then(
        pl.coalesce(pl.col("filename").str.extract(r"^(.+)/[^/]*$"), pl.lit("."))
    ),
}


def problem_slices(problems: pl.DataFrame, slices: Sequence[SliceSettings]) -> pl.DataFrame:
    """The table `problem_slices`, from the problems with all their columns.

    >>> problems = pl.DataFrame({"oid": ["a", "b", "c"], "loc": ["7", "250", None]})
    >>> problem_slices(problems, [SliceSettings(column="loc", bins=[0, 100])]).select("oid", "value").rows()
    [('a', '0 to < 100'), ('b', '>= 100'), ('c', '(missing)')]
    """
    frames = [
        each.with_columns(slice=pl.lit(place, pl.Int64))
        for place, settings in enumerate(slices)
        for each in _values(problems, settings)
    ]
    schema = TABLES["problem_slices"].dtypes
    return pl.concat([pl.DataFrame(schema=schema), *(each.select(schema.names()).cast(schema) for each in frames)])


def _values(problems: pl.DataFrame, settings: SliceSettings) -> Iterator[pl.DataFrame]:
    text = problems.select("oid", text=_column(problems, settings.column).cast(pl.String).str.strip_chars())
    text = text.with_columns(pl.col("text").replace("", None), column=pl.lit(settings.column))
    if settings.cutoff is not None:
        for model, cutoff in sorted(settings.cutoff.items()):
            yield _ordered(text.with_columns(value=_side(cutoff)), _CUTOFF_ORDER, model)
    elif settings.bins is not None:
        inner = [f"{low:g} to < {high:g}" for low, high in pairwise(settings.bins)]
        labels = [f"< {settings.bins[0]:g}", *inner, f">= {settings.bins[-1]:g}"]
        yield _ordered(text.with_columns(value=_bin(settings.bins, labels)), [*labels, NOT_A_NUMBER, MISSING])
    else:
        values = text["text"].drop_nulls().unique().sort().to_list()
        if len(values) > MAX_VALUES:
            _refuse_many(settings.column, values)
        yield _ordered(text.with_columns(value=pl.col("text").fill_null(MISSING)), [*values, MISSING])


def _column(problems: pl.DataFrame, column: str) -> pl.Expr:
    known = [*problems.columns, *(name for name in _DERIVED if name not in problems.columns)]
    if column not in known or column == "oid":
        near = difflib.get_close_matches(column, known, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        names = ", ".join(name for name in known if name != "oid")
        raise TouchstoneError(f"slices: the problems have no column '{column}' ({hint}columns: {names})")
    return pl.col(column) if column in problems.columns else _DERIVED[column]


def _refuse_many(column: str, values: Sequence[str]) -> None:
    numbers = pl.Series(values).cast(pl.Float64, strict=False).count()
    remedy = "choose a column with fewer"
    if numbers > len(values) / 2:
        remedy = f'give bins, such as {{"column": "{column}", "bins": [0, 100, 1000]}}'
    raise TouchstoneError(
        f"slices: '{column}' has {len(values):,} values, and at most {MAX_VALUES} can be compared; {remedy}"
    )


def _bin(bins: Sequence[float], labels: Sequence[str]) -> pl.Expr:
    number = pl.col("text").cast(pl.Float64, strict=False)
    found = pl.lit(labels[0])
    for low, label in zip(bins, labels[1:], strict=True):
        found = pl.when(number >= low).then(pl.lit(label)).otherwise(found)
    unreadable = pl.when(number.is_null() | number.is_nan()).then(pl.lit(NOT_A_NUMBER)).otherwise(found)
    return pl.when(pl.col("text").is_null()).then(pl.lit(MISSING)).otherwise(unreadable)


def _side(cutoff: object) -> pl.Expr:
    """The side of a model's training cutoff; the day itself is before it, because the model may have seen it."""
    day = pl.col("text").str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    return (
        pl.when(pl.col("text").is_null())
        .then(pl.lit(NO_DATE))
        .when(day.is_null())
        .then(pl.lit(NOT_A_DATE))
        .when(day <= pl.lit(cutoff, pl.Date))
        .then(pl.lit(BEFORE))
        .otherwise(pl.lit(AFTER))
    )


def _ordered(values: pl.DataFrame, order: Sequence[str], model: str | None = None) -> pl.DataFrame:
    places = {value: place for place, value in enumerate(order)}
    place = pl.col("value").replace_strict(places, return_dtype=pl.Int64)
    return values.with_columns(cutoff_model=pl.lit(model, pl.String), position=place).sort("position", "oid")
