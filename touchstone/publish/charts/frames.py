"""Shared by all charts: names for axes, rows that fit, figures as JSON, captions."""

import math
import textwrap
from collections.abc import Iterable

import polars as pl

from touchstone.publish.charts import NothingToDraw, vega
from touchstone.publish.short_names import shortened
from touchstone.tables.presentation import percent
from touchstone.text import counted, some_of, visible

LABEL_LENGTH = 36
_CAPTION_WIDTH = 110


def rows_of(frame: pl.LazyFrame, table: str) -> pl.DataFrame:
    """The columns of a table that a chart selects, unless it is empty."""
    rows = frame.collect()
    if rows.is_empty():
        raise NothingToDraw(f"nothing to draw: the table '{table}' has no rows")
    return rows


def side_rows(frame: pl.LazyFrame, table: str, columns: str) -> pl.DataFrame:
    """The columns of a table that a chart needs, separated by spaces; `side` names the model and tier of each row."""
    return with_side(rows_of(frame.select("model", "tier", *columns.split()), table))


def distinct_labels(names: Iterable[str], length: int = LABEL_LENGTH) -> dict[str, str]:
    r"""A short label for every name; no two are the same, or their rows would be drawn as one.

    >>> list(distinct_labels(["provider-model-a-20250929", "provider-model-b-20250929"], 13).values())
    ['pr…a-20250929', 'pr…b-20250929']
    >>> list(distinct_labels(["\t", r"\t"]).values())
    ['\\t', '\\t (2)']
    """
    shown: dict[str, str] = {}
    for name in dict.fromkeys(names):
        text = visible(name)
        while text in shown:
            text += " (2)"
        shown[text] = name
    return {shown[text]: label for text, label in shortened(shown, length).items()}


def with_side(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the name of each row's model, with its tier if there are several; different pairs have different names.

    >>> with_side(pl.DataFrame({"model": ["a", "a · b"], "tier": ["b · c", "c"]}))["side"].to_list()
    ['a · b · c #1', 'a · b · c #2']
    """
    if rows["tier"].n_unique() <= 1:
        return rows.with_columns(side="model")
    named = rows.with_columns(pl.format("{} · {}", "model", "tier").alias("side"))
    if named["side"].n_unique() == named.select("model", "tier").n_unique():
        return named
    return named.with_columns(pl.format("{} #{}", "side", pl.struct("model", "tier").rank("dense")).alias("side"))


def with_labels(rows: pl.DataFrame, column: str, length: int = LABEL_LENGTH) -> pl.DataFrame:
    """Add a short label for the names in a column."""
    labels = distinct_labels(rows[column].to_list(), length)
    return rows.with_columns(pl.col(column).replace_strict(labels, return_dtype=pl.String).alias("label"))


def first_rows(
    rows: pl.DataFrame, top: int, table: str, noun: tuple[str, str] = ("model", "models")
) -> tuple[pl.DataFrame, str | None]:
    """The first rows, and a sentence about the others if there are any."""
    rest = rows.height - top
    if rest <= 0:
        return rows, None
    verb = "is" if rest == 1 else "are"
    total = counted(rows.height, *noun)
    return rows.head(top), f"Shown: the first {top} of {total}; the other {rest:,} {verb} in the table {table}."


def side_noun(rows: pl.DataFrame) -> tuple[str, str]:
    """The name of a side: a model, or a model in one of its tiers if there are several."""
    return ("model", "models") if rows["tier"].n_unique() <= 1 else ("model-tier pair", "model-tier pairs")


def caption(*sentences: str | None) -> list[str]:
    """Sentences as the lines below a chart's title."""
    text = " ".join(filter(None, sentences))
    # The names of methods have hyphens: fieller-widened stays one word.
    return textwrap.wrap(text, _CAPTION_WIDTH, break_long_words=False, break_on_hyphens=False)


def confidence_level(settings: pl.LazyFrame | None) -> str:
    """The confidence level in the table `settings` of a run, with a space after it; empty if it is unknown."""
    if settings is None:
        return ""
    found = settings.filter(pl.col("key") == "intervals.confidence").select("value").collect()
    return f"{percent(float(found.item()))} " if found.height else ""


def tabled_intervals(methods: str, of: str, where: str, settings: pl.LazyFrame | None) -> str:
    """A sentence about intervals that a chart does not draw."""
    said = f"{confidence_level(settings)}confidence intervals{of} ({methods}): {where}."
    return said[0].upper() + said[1:]


def interval_sentence(
    rows: pl.DataFrame,
    of: str,
    method: str = "ci_method",
    low: str = "ci_low",
    *,
    level: str = "",
    mark: str = "Bars",
    missing: str | None = "open points have none",
) -> str:
    """How the intervals in the rows were made, and how many rows have none. `level` is from `confidence_level`."""
    methods = sorted(rows[method].drop_nulls().unique().to_list())
    without = rows[low].null_count()
    if not methods:
        return f"No confidence interval of {of} is defined."
    said = f"{mark}: {level}confidence interval of {of} ({', '.join(methods)})"
    return f"{said}; {missing} ({without:,} of {rows.height:,})." if without and missing else f"{said}."


def named(names: Iterable[str], limit: int = 5) -> str:
    """Names in a sentence, shortened, and how many more there are.

    >>> named(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    return some_of(list(distinct_labels(names).values()), limit)


def count_sentence(rows: pl.DataFrame, column: str, noun: str, per: str = "") -> str:
    """The n of every row, as a range if they differ.

    >>> count_sentence(pl.DataFrame({"n": [3, 40]}), "n", "problem", "cell")
    'n = 3 to 40 problems per cell.'
    """
    low, high = rows.select(low=pl.min(column), high=pl.max(column)).row(0)
    several = f"{low:,} to " if low != high else ""
    return f"n = {several}{counted(high, noun)}{per and ' per '}{per}."


def padded(*columns: pl.Series, share: float = 0.04) -> list[float]:
    """The ends of an axis: all finite values with a little space; 0 and 1 without any.

    >>> padded(pl.Series([0.5, 1.0]), pl.Series([None, 1.5])), padded(pl.Series([1.0])), padded(pl.Series([None]))
    ([0.46, 1.54], [0.95, 1.05], [0.0, 1.0])
    """
    values = [value for column in columns for value in column.drop_nulls() if math.isfinite(value)]
    if not values:
        return [0.0, 1.0]
    space = (max(values) - min(values)) * share or 0.05
    return [min(values) - space, max(values) + space]


def data(rows: pl.DataFrame) -> vega.Rows:
    """The rows for JSON, in which no number is infinite and no text has control characters."""
    numbers, strings = pl.col(pl.Float64), pl.col(pl.String)
    return vega.Rows(
        rows.with_columns(
            pl.when(numbers.is_finite()).then(numbers), strings.map_elements(visible, return_dtype=pl.String)
        )
    )


def numbers(rows: pl.DataFrame) -> vega.Rows:
    """Rows of numbers with six significant digits, small and quick to make, for large grids."""
    return vega.Rows(rows.with_columns(pl.col(pl.Float64).round_sig_figs(6)), csv=True)


def titled(chart: vega.Spec, text: str, lines: list[str]) -> vega.Spec:
    """The chart with its title and its caption."""
    return {**chart, "title": {"text": text, "subtitle": lines}}


# The part of a tooltip that tells of the interval in the columns `ci_low` and `ci_high`.
INTERVAL_TIPS = {"ci_low": "CI low|.4f", "ci_high": "CI high|.4f", "ci_method": "CI method"}


def tooltip(**fields: str) -> list[vega.Spec]:
    """Tooltips as `field="title"`, or `field="title|format"` for numbers."""
    shown = []
    for field, text in fields.items():
        name, _, form = text.partition("|")
        extra = {"format": form, "type": "quantitative"} if form else {"type": "nominal"}
        shown.append({"field": field, "title": name, **extra})
    return shown
