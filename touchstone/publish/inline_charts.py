"""Small charts as pictures in Markdown, for the page of an asset in the Dagster UI.

The UI shows Markdown of fewer than 1,000 characters at once and hides anything longer behind a link. So a chart is a
point with its interval per row, and as many rows as fit. Larger charts belong in `touchstone.publish.charts`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.sax.saxutils import escape

from touchstone.text import significant, visible

if TYPE_CHECKING:
    import polars as pl

MAX_CHARACTERS = 999
_MAX_ROWS, _MAX_LABEL = 12, 30
_WIDTH, _LEFT, _RIGHT, _ROW = 370, 205, 365, 16
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
}


@dataclass(frozen=True)
class _Row:
    label: str
    value: float
    low: float
    high: float


def inline_chart(table: str, frame: "pl.LazyFrame") -> str | None:
    """The chart of a table as a picture in Markdown; None if it has none or there is nothing to draw."""
    import polars as pl

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
    columns = (*chart.names, chart.figure, *chart.interval)
    rows = [_row(*line) for line in drawn.select(columns).head(_MAX_ROWS).collect().iter_rows()]
    for count in range(len(rows), 0, -1):
        picture = _markdown(chart, rows[:count], total)
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


def _markdown(chart: InlineChart, rows: Sequence[_Row], total: int) -> str:
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
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{height}' {look}>{names}"
        f"<path stroke='#bbb' d='M{place(0)} 0V{height}'/>"
        f"<path stroke='#8bd' stroke-width='3' d='{bars}'/><path stroke='#26a' stroke-width='7' d='{points}'/></svg>"
    )
