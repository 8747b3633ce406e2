"""Dot plots: one row per name, a point for its figure and a bar for its confidence interval."""

import polars as pl

from touchstone.publish.charts import vega
from touchstone.publish.charts.frames import data, padded
from touchstone.publish.charts.theme import WIDTH

UNDEFINED = "undefined"
_STEP = 18
_POINT = 60


def row_axis(rows: pl.DataFrame) -> vega.Spec:
    """A row for every label, in the order of the rows: left to itself, Vega takes that of the first layer's marks."""
    axis = {"grid": False, "ticks": False, "domain": False, "labelPadding": 8}
    labels = rows["label"].unique(maintain_order=True).to_list()
    return vega.field("label:N", title=None, axis=axis, scale={"domain": labels})


def figure_text(column: str, form: str = "{:.3f}") -> pl.Expr:
    """The figure as text, `undefined` where it is null."""
    text = pl.col(column).map_elements(form.format, return_dtype=pl.String)
    return pl.when(pl.col(column).is_null()).then(pl.lit(UNDEFINED)).otherwise(text).alias("figure")


def interval_dots(
    rows: pl.DataFrame,
    figure: str,
    low: str,
    high: str,
    *,
    axis: vega.Spec,
    tooltip: list[vega.Spec],
    by: str | None = None,
    zero: bool = False,
) -> vega.Spec:
    """Points at `figure` with bars from `low` to `high`, a row per `label`, and the text `figure` on the right.

    A point without an interval is open and has no bar; a row without a figure has only its text. A bar whose end is
    infinite runs to the end of the axis. Values of `by` differ in colour and shape. `zero` marks 0 with a line.
    """
    ends = padded(rows[figure], rows[low], rows[high], pl.Series([0.0] if zero else []))
    rows = rows.with_columns(
        pl.col(low).clip(*ends).alias("bar_low"),
        pl.col(high).clip(*ends).alias("bar_high"),
        pl.col(low).is_not_null().alias("has_interval"),
    )
    plain = vega.view(data(rows)).encode(y=row_axis(rows), tooltip=tooltip)
    base = plain if by is None else plain.encode(color=vega.field(f"{by}:N", legend=None))
    has_interval = {"field": "has_interval", "equal": True}
    scale = {"domain": ends, "nice": False, "zero": False}
    bars = base.transform(filter=has_interval).mark("rule", strokeWidth=2)
    points = base.transform(filter={"field": figure, "valid": True}).encode(
        x=vega.field(f"{figure}:Q", scale=scale, axis=axis)
    )
    if by is not None:
        points = points.encode(shape=vega.field(f"{by}:N", legend=None))
    filled = points.transform(filter=has_interval).mark("point", filled=True, size=_POINT, opacity=1)
    layers = [
        bars.encode(x=vega.field("bar_low:Q", scale=scale, axis=axis), x2="bar_high:Q"),
        filled,
        plain.mark("text", align="left", style="ink", dx=8).encode(x=vega.value(WIDTH), text="figure:N"),
    ]
    if rows[low].null_count():
        without = points.transform(filter={**has_interval, "equal": False})
        layers.append(without.mark("point", size=_POINT, opacity=1, style="hollow"))
    if zero:
        line = vega.view(data(pl.DataFrame({"zero": [0]}))).mark("rule", style="guide", strokeDash=[3, 3])
        layers.insert(0, line.encode(x=vega.field("zero:Q", scale=scale, axis=axis)))
    return vega.layer(*layers, width=WIDTH, height=vega.step(_STEP))
