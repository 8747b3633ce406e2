"""How much another attempt helps: pass@k along k, and pass@k against pass^k."""

import altair as alt
import polars as pl

from touchstone.publish.charts.frames import (
    INTERVAL_TIPS,
    caption,
    confidence_level,
    count_sentence,
    data,
    first_rows,
    interval_sentence,
    side_noun,
    side_rows,
    title,
    tooltip,
    with_labels,
)
from touchstone.publish.charts.lines import HIGHLIGHTED, interval_mark, series_lines

_PANEL_WIDTH, _PANEL_HEIGHT, _PANEL_COLUMNS = 190, 130, 3


def pass_at_k_curves(frame: pl.LazyFrame, *, settings: pl.LazyFrame | None = None) -> alt.TopLevelMixin:
    """pass@k along k with its interval as a band, in colour for the models with the best pass@k at the smallest k."""
    rows = _ranked(
        side_rows(frame, "pass_at_k", "k", "pass_at_k", "ci_low", "ci_high", "ci_method", "eligible"),
        "pass_at_k",
    )
    rows = rows.with_columns(position="k")
    shown = rows.filter(pl.col("rank") < HIGHLIGHTED)
    others = rows["side"].n_unique() - shown["side"].n_unique()
    undefined, level = rows["pass_at_k"].null_count(), confidence_level(settings)
    lines = caption(
        count_sentence(shown, "eligible", "problem"),
        interval_sentence(shown.drop_nulls("pass_at_k"), "pass@k", level=level, mark=interval_mark(rows), missing=None),
        f"In colour: the best {HIGHLIGHTED} at the smallest k; grey: the other {others:,}." if others else None,
        f"{undefined:,} of {rows.height:,} points are undefined: too few attempts for that k." if undefined else None,
    )
    rows = with_labels(rows, "side").with_columns(low="ci_low", high="ci_high", end="label")
    chart = series_lines(
        rows,
        _k_axis(rows, "position"),
        "pass_at_k",
        y_title="pass@k",
        log=_spans_tens(rows),
        tooltip=tooltip(
            side="model",
            k="k|d",
            pass_at_k="pass@k|.4f",
            **INTERVAL_TIPS,
            eligible="problems|,d",
        ),
    )
    return chart.properties(title=title("pass@k by number of attempts", lines))


def pass_hat_k(frame: pl.LazyFrame, *, top: int = 12, settings: pl.LazyFrame | None = None) -> alt.TopLevelMixin:
    """The chance that one of k attempts passes (pass@k) against the chance that all do (pass^k), a panel per model."""
    rows = _ranked(
        side_rows(
            frame, "reliability_curve", "k", "pass_at_k", "pass_hat_k", "ci_low", "ci_high", "ci_method", "eligible"
        ),
        "pass_hat_k",
    )
    sides = rows.select("side", "rank").unique().sort("rank")
    kept, rest = first_rows(sides, top, "reliability_curve", side_noun(rows))
    rows = with_labels(rows.join(kept, on="side", how="semi"), "side", length=28)
    level = confidence_level(settings)
    lines = caption(
        "Solid, circles: pass@k, at least one of k attempts passes; dashed, squares: pass^k, all k pass.",
        count_sentence(rows, "eligible", "problem"),
        interval_sentence(rows.drop_nulls("pass_hat_k"), "pass^k", level=level, mark="Bands", missing=None),
        rest,
    )
    return _panels(rows).properties(title=title("One success or always: pass@k and pass^k", lines))


def _panels(rows: pl.DataFrame) -> alt.TopLevelMixin:
    tips = tooltip(
        side="model",
        k="k|d",
        pass_at_k="pass@k|.4f",
        pass_hat_k="pass^k|.4f",
        ci_low="CI low of pass^k|.4f",
        ci_high="CI high of pass^k|.4f",
        ci_method="CI method",
        eligible="problems|,d",
    )
    scale = alt.Scale(domain=[0, 1])
    base = alt.Chart().encode(x=_k_axis(rows), tooltip=tips)
    at, hat = alt.Y("pass_at_k:Q", title=None, scale=scale), alt.Y("pass_hat_k:Q", title=None, scale=scale)
    colours = alt.Scale(domain=["pass@k", "pass^k"])
    colour_at = alt.ColorDatum("pass@k", scale=colours, legend=None)
    colour_hat = alt.ColorDatum("pass^k", scale=colours, legend=None)
    layers = [
        base.mark_area(opacity=0.15).encode(y=alt.Y("ci_low:Q", scale=scale), y2="ci_high:Q", color=colour_hat),
        base.mark_line(strokeWidth=2).encode(y=at, color=colour_at),
        base.mark_point(filled=True, size=22, opacity=1).encode(y=at, color=colour_at),
        base.mark_line(strokeWidth=2, strokeDash=[5, 3]).encode(y=hat, color=colour_hat),
        base.mark_point(filled=True, size=22, opacity=1, shape="square").encode(y=hat, color=colour_hat),
    ]
    labels = rows["label"].unique(maintain_order=True).to_list()
    return (
        alt.layer(*layers, data=data(rows))
        .properties(width=_PANEL_WIDTH, height=_PANEL_HEIGHT)
        .facet(facet=alt.Facet("label:N", title=None, sort=labels), columns=_PANEL_COLUMNS, spacing=18)
    )


def _ranked(rows: pl.DataFrame, figure: str) -> pl.DataFrame:
    """Rows by rank of their side: the figure at the smallest k, best first, undefined last."""
    smallest = rows.filter(pl.col("k") == pl.col("k").min()).sort(
        figure, "side", descending=[True, False], nulls_last=True
    )
    ranks = smallest.select("side", rank=pl.int_range(pl.len()))
    ranked = rows.join(ranks, on="side", how="left").with_columns(pl.col("rank").fill_null(ranks.height))
    return ranked.sort("rank", "k")


def _spans_tens(rows: pl.DataFrame) -> bool:
    return bool(max(rows["k"]) > 10 * min(rows["k"]))


def _k_axis(rows: pl.DataFrame, field: str = "k") -> alt.X:
    """The axis of k: logarithmic where it spans more than a factor of ten."""
    present, log = sorted(set(rows["k"].to_list())), _spans_tens(rows)
    ticks = [k for k in present if str(k).rstrip("0") in ("1", "2", "5")] if log else present
    # A single k has no span of its own.
    domain = alt.Undefined if len(present) > 1 else [present[0] - 0.5, present[0] + 0.5]
    scale = alt.Scale(type="log" if log else "linear", domain=domain, zero=False, nice=False, padding=12)
    return alt.X(f"{field}:Q", title="k", scale=scale, axis=alt.Axis(values=ticks, format="d", grid=False))
