"""Dot plots: a point with its confidence interval per row. The leaderboard, and what a tier adds."""

import polars as pl

from touchstone.publish.charts import NothingToDraw, frames, vega
from touchstone.publish.charts.theme import WIDTH
from touchstone.text import counted

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
    ends = frames.padded(rows[figure], rows[low], rows[high], pl.Series([0.0] if zero else []))
    rows = rows.with_columns(
        pl.col(low).clip(*ends).alias("bar_low"),
        pl.col(high).clip(*ends).alias("bar_high"),
        pl.col(low).is_not_null().alias("has_interval"),
    )
    plain = vega.view(frames.data(rows)).encode(y=row_axis(rows), tooltip=tooltip)
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
        line = vega.view(frames.data(pl.DataFrame({"zero": [0]}))).mark("rule", style="guide", strokeDash=[3, 3])
        layers.insert(0, line.encode(x=vega.field("zero:Q", scale=scale, axis=axis)))
    return vega.layer(*layers, width=WIDTH, height=vega.step(_STEP))


def leaderboard(
    frame: pl.LazyFrame, *, k: int | None = None, top: int = 50, settings: pl.LazyFrame | None = None
) -> vega.Spec:
    """pass@k with intervals, best first; the smallest k of the table if none is given."""
    rows = frames.side_rows(
        frame, "pass_at_k", "k", "pass_at_k", "ci_low", "ci_high", "ci_method", "ci_units", "eligible"
    )
    k = min(rows["k"]) if k is None else k
    rows = rows.filter(pl.col("k") == k).sort("pass_at_k", "side", descending=[True, False], nulls_last=True)
    if rows.is_empty():
        raise NothingToDraw(f"nothing to draw: the table 'pass_at_k' has no rows with k = {k}")
    shown, rest = frames.first_rows(rows, top, "pass_at_k", frames.side_noun(rows))
    defined = shown.filter(pl.col("pass_at_k").is_not_null())
    undefined = shown.height - defined.height
    lines = frames.caption(
        frames.count_sentence(shown, "eligible", "problem"),
        frames.interval_sentence(defined, f"pass@{k}", level=frames.confidence_level(settings)),
        f"Undefined for {undefined:,}: no problem has {counted(k, 'decided attempt')}." if undefined else None,
        rest,
    )
    shown = frames.with_labels(shown, "side").with_columns(figure_text("pass_at_k"))
    chart = interval_dots(
        shown,
        "pass_at_k",
        "ci_low",
        "ci_high",
        axis={"title": f"pass@{k}", "format": ".2f", "tickCount": 8},
        by="tier" if shown["tier"].n_unique() > 1 else None,
        tooltip=frames.tooltip(
            side="model",
            figure=f"pass@{k}",
            **frames.INTERVAL_TIPS,
            eligible="problems|,d",
            ci_units="independent units|,d",
        ),
    )
    return frames.titled(chart, "Leaderboard", lines)


def tier_uplift(frame: pl.LazyFrame, *, top: int = 50, settings: pl.LazyFrame | None = None) -> vega.Spec:
    """Relative change of the median composite score against the model's baseline tier, largest first."""
    every = frames.side_rows(
        frame,
        "tiers",
        "ci_units",
        "composite_median",
        "uplift",
        "uplift_ci_low",
        "uplift_ci_high",
        "uplift_ci_method",
        "uplift_reason",
    )
    # The baseline tier is the only one with an uplift, no interval and no reason for the lack of one.
    baseline = pl.col("uplift").is_not_null() & pl.col("uplift_ci_low").is_null() & pl.col("uplift_reason").is_null()
    rows = every.filter(~baseline)
    if every["tier"].n_unique() == 1 or rows.is_empty():
        raise NothingToDraw("nothing to draw: the table 'tiers' has no tier beside the baseline tier")
    baselines = sorted(every.filter(baseline)["tier"].unique())
    rows = rows.sort("uplift", "side", descending=[True, False], nulls_last=True)
    shown, rest = frames.first_rows(rows, top, "tiers", frames.side_noun(every))
    defined = shown.drop_nulls("uplift")
    open_ended = defined["uplift_ci_high"].is_infinite().sum()
    lines = frames.caption(
        f"Median composite score against tier {', '.join(baselines)}." if baselines else None,
        frames.count_sentence(shown, "ci_units", "independent unit"),
        frames.interval_sentence(
            defined, "uplift", "uplift_ci_method", "uplift_ci_low", level=frames.confidence_level(settings)
        ),
        f"{open_ended:,} of the bars have no upper end: the baseline's median may be 0." if open_ended else None,
        f"Undefined for {shown.height - defined.height:,}: the column uplift_reason says why."
        if defined.height < shown.height
        else None,
        rest,
    )
    shown = frames.with_labels(shown, "side").with_columns(
        figure_text("uplift", "{:+.1%}"),
        pl.col("uplift_ci_high").map_elements("{:+.1%}".format, return_dtype=pl.String).alias("high_text"),
    )
    chart = interval_dots(
        shown,
        "uplift",
        "uplift_ci_low",
        "uplift_ci_high",
        axis={"title": "uplift over the baseline tier", "format": "+%", "tickCount": 8},
        by="tier" if shown["tier"].n_unique() > 1 else None,
        zero=True,
        tooltip=frames.tooltip(
            side="model",
            figure="uplift",
            uplift_ci_low="CI low|+.1%",
            high_text="CI high",
            uplift_ci_method="CI method",
            uplift_reason="why undefined",
            composite_median="median composite score|.4f",
            ci_units="independent units|,d",
        ),
    )
    return frames.titled(chart, "Uplift by tier", lines)
