"""The leaderboard: pass@k of every model and tier with its confidence interval, best first."""

import altair as alt
import polars as pl

from touchstone.publish.charts import NothingToDraw
from touchstone.publish.charts.frames import (
    caption,
    count_sentence,
    data,
    first_rows,
    interval_sentence,
    rows_of,
    title,
    tooltip,
    with_labels,
    with_side,
)
from touchstone.publish.charts.theme import WIDTH

_COLUMNS = ("model", "tier", "k", "pass_at_k", "ci_low", "ci_high", "ci_method", "ci_units", "eligible")


def leaderboard(frame: pl.LazyFrame, *, k: int | None = None, top: int = 50) -> alt.TopLevelMixin:
    """pass@k with intervals, best first; the smallest k of the table if none is given."""
    rows = with_side(rows_of(frame, _COLUMNS, "pass_at_k"))
    k = min(rows["k"]) if k is None else k
    rows = rows.filter(pl.col("k") == k).sort("pass_at_k", "side", descending=[True, False], nulls_last=True)
    if rows.is_empty():
        raise NothingToDraw(f"nothing to draw: the table 'pass_at_k' has no rows with k = {k}")
    shown, rest = first_rows(rows, top, "pass_at_k")
    undefined = shown["pass_at_k"].null_count()
    lines = caption(
        count_sentence(shown, "eligible", "problem"),
        interval_sentence(shown.filter(pl.col("pass_at_k").is_not_null()), f"pass@{k}"),
        f"Undefined for {undefined:,}: no problem has {k} decided attempts." if undefined else None,
        rest,
    )
    shown = with_labels(shown, "side").with_columns(
        pl.when(pl.col("pass_at_k").is_null())
        .then(pl.lit("undefined"))
        .otherwise(pl.col("pass_at_k").map_elements("{:.3f}".format, return_dtype=pl.String))
        .alias("figure")
    )
    return _chart(shown, f"pass@{k}", lines)


def _chart(rows: pl.DataFrame, name: str, lines: list[str]) -> alt.TopLevelMixin:
    several = rows["tier"].n_unique() > 1
    colour = alt.Color("tier:N", legend=None) if several else alt.Undefined
    shape = alt.Shape("tier:N", legend=None) if several else alt.Undefined
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(grid=False, ticks=False, domain=False)),
        tooltip=tooltip(
            side="model",
            figure=name,
            ci_low="CI low|.4f",
            ci_high="CI high|.4f",
            ci_method="CI method",
            eligible="problems|,d",
            ci_units="independent units|,d",
        ),
    )
    x = alt.X("pass_at_k:Q", title=name, scale=alt.Scale(zero=False, nice=True))
    bars = base.transform_filter("isValid(datum.ci_low)").mark_rule(strokeWidth=2)
    points = base.transform_filter("isValid(datum.pass_at_k)")
    return alt.layer(
        bars.encode(x=alt.X("ci_low:Q", title=name), x2="ci_high:Q", color=colour),
        points.transform_filter("isValid(datum.ci_low)")
        .mark_point(filled=True, size=60, opacity=1)
        .encode(x=x, color=colour, shape=shape),
        points.transform_filter("!isValid(datum.ci_low)")
        .mark_point(size=60, opacity=1, style="hollow")
        .encode(x=x, color=colour, shape=shape),
        base.mark_text(align="left", style="ink", dx=6).encode(x=alt.value(WIDTH), text="figure:N"),
    ).properties(width=WIDTH, height=alt.Step(18), title=title("Leaderboard", lines))
