"""The page of a table in the Dagster UI: its first rows, and a small chart as a picture in Markdown.

Rows: best or worst first, figures rounded, an interval in one cell. Tables that are laid out for people are declared in
`result_tables`.

The UI shows Markdown of fewer than 1,000 characters at once and hides anything longer behind a link. So a chart is a
point with its interval per row, and as many rows as fit. Larger charts belong in `touchstone.publish.charts`.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

import polars as pl

from touchstone.text import estimate, markdown_lines, significant, visible

ROWS = 10
NO_VALUE = "-"
_DIGITS = 3
_WIDTH = 80
# The header, the line below it, and two rows.
_LEAST_LINES = 4

# Which rows come first where the keys say nothing: those that are read first. A minus sorts descending.
_ORDER = {
    "sources": ("source_file", "model"),
    "quarantine": ("source_file", "line"),
    "reported_figures": ("source_file", "model", "figure"),
    "pass_at_k": ("k", "-pass_at_k", "model", "tier"),
    "tiers": ("-composite_median", "model", "tier"),
    "run_scores": ("-overall_score", "model", "tier"),
    "suite_scores": ("suite", "-score", "model", "tier"),
    "problem_frontier": ("mean_pass_rate", "oid"),
    "economics": ("cost_of_pass", "model", "tier"),
    "routing_policies": ("-saving",),
    "variance_split": ("-standard_error", "model", "tier"),
    "reliability": ("-flip_rate", "model", "tier"),
    "model_comparison": ("p_adjusted", "model_a", "tier_a", "model_b", "tier_b"),
    "baseline_verdicts": ("p_adjusted", "model", "tier"),
    "regressions": ("delta", "model", "tier", "oid"),
    "problem_audit": ("p_value", "tier", "oid"),
    "audited_leaderboard": ("rank_without_suspects", "model", "tier"),
    "mutants": ("-result", "oid", "mutant"),
    "test_strength": ("kill_rate", "oid"),
    "contamination": ("-difference", "model", "tier"),
    "reference_overlap": ("-difference", "model", "tier"),
    "slices": ("column", "value", "-pass_at_1", "model", "tier"),
}


@dataclass(frozen=True)
class Preview:
    """The first rows of a table as text, and how many rows there are."""

    columns: list[str]
    rows: list[list[str]]
    total: int

    def markdown(self, limit: int | None = None) -> str:
        """The rows as a table in Markdown, in which nothing is markup.

        With a limit of characters: as many rows as fit, and all of them where fewer than two would.
        """
        lines = list(markdown_lines(self.columns, [False] * len(self.columns), self.rows))
        fits = sum(length <= (limit or 0) for length in accumulate(len(line) + 1 for line in lines))
        return "\n".join(lines[:fits] if fits >= _LEAST_LINES else lines)


def preview(frame: pl.LazyFrame, table: str = "", most: int = ROWS) -> Preview:
    """The first rows of a table, in an order that suits it, without the columns that are empty in all of them.

    >>> preview(pl.LazyFrame({"model": ["m"], "score": [2 / 3], "score_ci_low": [.5], "score_ci_high": [.75]}))
    Preview(columns=['model', 'score'], rows=[['m', '0.667 [0.5, 0.75]']], total=1)
    """
    schema = frame.collect_schema()
    intervals = dict(_intervals(schema))
    hidden = {end for ends in intervals.values() for end in ends}
    total = int(frame.select(pl.len()).collect().item())
    first = _sorted(frame, _ORDER.get(table, ()), schema.names()).head(most).collect(engine="streaming")
    empty = {name for name in schema if first.height and first[name].null_count() == first.height}
    shown = [name for name in schema if name not in hidden | empty]
    rows = [
        [_cell(row[name], *(row[end] for end in intervals.get(name, ()))) for name in shown]
        for row in first.iter_rows(named=True)
    ]
    return Preview([visible(name) for name in shown], rows, total)


def _intervals(schema: pl.Schema) -> Iterator[tuple[str, tuple[str, str]]]:
    """The figures that have a confidence interval: the one that it is named after, else the one before it."""
    names = schema.names()
    for place, low in enumerate(names):
        prefix, found, _ = low.rpartition("ci_low")
        figure = prefix.removesuffix("_") or names[place - 1]
        if found and f"{prefix}ci_high" in schema and schema.get(figure) == pl.Float64:
            yield figure, (low, f"{prefix}ci_high")


def _sorted(frame: pl.LazyFrame, order: Sequence[str], names: Sequence[str]) -> pl.LazyFrame:
    keys = [key for key in order if key.removeprefix("-") in names]
    if not keys:
        return frame
    descending = [key.startswith("-") for key in keys]
    return frame.sort([key.removeprefix("-") for key in keys], descending=descending, nulls_last=True)


def _cell(value: Any, low: float | None = None, high: float | None = None) -> str:
    if isinstance(value, float):
        return estimate(value, low, high, lambda end: significant(end, _DIGITS))
    if value is None:
        return NO_VALUE
    if isinstance(value, bool):
        return "true" if value else "false"
    text = visible(re.sub(r"[\r\n]+", " ", str(value)[: 2 * _WIDTH]))
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


# Small charts


MAX_CHARACTERS = 999
_MAX_DRAWN, _MAX_LABEL = 12, 30
_PICTURE, _LEFT, _RIGHT, _ROW = 370, 205, 365, 16
_SAFE = " '=/:.,-"


@dataclass(frozen=True)
class InlineChart:
    """A figure with its interval, how its rows are named and ordered, and the larger chart that has the rest."""

    title: str
    figure: str
    interval: tuple[str, str]
    names: tuple[str, ...]
    order: str
    larger: str


_CI, _MODEL = ("ci_low", "ci_high"), ("model", "tier")
_PAIR = ("model_b", "tier_b", "model_a", "tier_a")
INLINE = {
    "pass_at_k": InlineChart("pass@{k}", "pass_at_k", _CI, _MODEL, "-pass_at_k", "leaderboard"),
    "tiers": InlineChart(
        "Uplift over the first tier", "uplift", ("uplift_ci_low", "uplift_ci_high"), _MODEL, "-uplift", "tier_uplift"
    ),
    "economics": InlineChart("Cost of a pass in dollars", "cost_of_pass", _CI, _MODEL, "cost_of_pass", "cost_quality"),
    "model_comparison": InlineChart(
        "pass@1 of the first less the second", "difference", _CI, _PAIR, "p_adjusted", "pairwise_verdicts"
    ),
    "problem_audit": InlineChart(
        "Discrimination, the most suspect first",
        "discrimination",
        ("discrimination", "discrimination"),
        ("oid", "tier"),
        "p_value",
        "problem_discrimination",
    ),
}


@dataclass(frozen=True)
class _Row:
    label: str
    value: float
    low: float
    high: float


def inline_chart(table: str, frame: pl.LazyFrame) -> str | None:
    """The chart of a table as a picture in Markdown; None if it has none or there is nothing to draw."""
    if table not in INLINE:
        return None
    chart = INLINE[table]
    if table == "pass_at_k":
        smallest = frame.select(pl.col("k").min()).collect().item()
        chart, frame = replace(chart, title=f"pass@{smallest}"), frame.filter(pl.col("k") == pl.col("k").min())
    drawn = frame.filter(pl.col(chart.figure).is_finite()).sort(
        chart.order.removeprefix("-"),
        *chart.names,
        descending=[chart.order.startswith("-"), *[False] * len(chart.names)],
    )
    total = int(drawn.select(pl.len()).collect().item())
    named = (*chart.names, chart.figure, *chart.interval)
    # By place: a figure without an interval is its own one.
    columns = [pl.col(name).alias(str(place)) for place, name in enumerate(named)]
    rows = [_row(*line) for line in drawn.select(columns).head(_MAX_DRAWN).collect(engine="streaming").iter_rows()]
    for count in range(len(rows), 0, -1):
        picture = _picture(chart, rows[:count], total)
        if len(picture) <= MAX_CHARACTERS:
            return picture
    return None


def _row(*cells: str | float | None) -> _Row:
    """A row of the table: names, figure and interval, which may be unknown or unbounded."""
    *names, value, low, high = cells
    figure, text = float(value or 0), visible(_label(*map(str, names)))
    if len(text) > _MAX_LABEL:
        text = f"{text[: _MAX_LABEL - 2]}.."
    ends = (figure if end is None else float(end) for end in (low, high))
    return _Row(f"{text} {significant(figure, 3)}", figure, *ends)


def _label(model: str, tier: str, other_model: str | None = None, other_tier: str | None = None) -> str:
    """A model and tier, or two of them.

    >>> _label("m", "T1"), _label("m", "T1", "n", "T1"), _label("m", "T1", "m", "T0")
    ('m T1', 'm / n T1', 'm T1 / T0')
    """
    if other_model is None:
        return f"{model} {tier}"
    return f"{model} / {other_model} {tier}" if tier == other_tier else f"{model} {tier} / {other_tier}"


def _picture(chart: InlineChart, rows: Sequence[_Row], total: int) -> str:
    ends = [end for row in rows for end in (row.low, row.value, row.high) if math.isfinite(end)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    caption = f"{chart.title}, from {significant(low, 3)} to {significant(high, 3)}"
    if len(rows) < total:
        caption += f"; {len(rows)} of {total:,} rows, the others with `touchstone chart {chart.larger}`"
    return f"![{chart.title}](<data:image/svg+xml,{quote(_svg(rows, low, high), safe=_SAFE)}>)\n\n{caption}"


def _svg(rows: Sequence[_Row], low: float, high: float) -> str:
    """Names, a line at zero, intervals and points.

    >>> _svg([_Row("a", 0.5, 0.25, 0.75)], 0, 1).partition("<text")[2]
    " y='12'>a</text><path stroke='#bbb' d='M205 0V16'/><path stroke='#8bd' stroke-width='3' d='M245 8H325'/>\
<path stroke='#26a' stroke-width='7' d='M285 8h0'/></svg>"
    """

    def place(value: float) -> int:
        return round(_LEFT + (_RIGHT - _LEFT) * (min(max(value, low), high) - low) / (high - low or 1))

    height, middles = _ROW * len(rows), range(_ROW // 2, _ROW * len(rows), _ROW)
    names = "".join(f"<text y='{y + 4}'>{escape(row.label)}</text>" for y, row in zip(middles, rows, strict=True))
    bars = "".join(f"M{place(row.low)} {y}H{place(row.high)}" for y, row in zip(middles, rows, strict=True))
    points = "".join(f"M{place(row.value)} {y}h0" for y, row in zip(middles, rows, strict=True))
    look = "font-size='11' font-family='sans-serif' fill='#767676' stroke-linecap='round'"
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_PICTURE}' height='{height}' {look}>{names}"
        f"<path stroke='#bbb' d='M{place(0)} 0V{height}'/>"
        f"<path stroke='#8bd' stroke-width='3' d='{bars}'/><path stroke='#26a' stroke-width='7' d='{points}'/></svg>"
    )
