"""How much another attempt helps: pass@k along k, and pass@k against pass^k."""

import polars as pl

from touchstone.publish.charts import vega
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
    titled,
    tooltip,
    with_labels,
)
from touchstone.publish.charts.lines import HIGHLIGHTED, interval_mark, series_lines

_PANEL_WIDTH, _PANEL_HEIGHT, _PANEL_COLUMNS = 190, 130, 3


def pass_at_k_curves(frame: pl.LazyFrame, *, settings: pl.LazyFrame | None = None) -> vega.Spec:
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
    return titled(chart, "pass@k by number of attempts", lines)


def pass_hat_k(frame: pl.LazyFrame, *, top: int = 12, settings: pl.LazyFrame | None = None) -> vega.Spec:
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
    return titled(_panels(rows), "One success or always: pass@k and pass^k", lines)


def _panels(rows: pl.DataFrame) -> vega.Spec:
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
    scale = {"domain": [0, 1]}
    colour = vega.field("figure:N", scale={"domain": ["pass@k", "pass^k"]}, legend=None)
    base = vega.view().encode(x=_k_axis(rows), tooltip=tips, color=colour)
    at, hat = (
        base.calculate(figure=f"'{name}'").encode(y=vega.field(f"{column}:Q", title=None, scale=scale))
        for name, column in (("pass@k", "pass_at_k"), ("pass^k", "pass_hat_k"))
    )
    layers = [
        hat.mark("area", opacity=0.15).encode(y=vega.field("ci_low:Q", scale=scale), y2="ci_high:Q"),
        at.mark("line", strokeWidth=2),
        at.mark("point", filled=True, size=22, opacity=1),
        hat.mark("line", strokeWidth=2, strokeDash=[5, 3]),
        hat.mark("point", filled=True, size=22, opacity=1, shape="square"),
    ]
    labels = rows["label"].unique(maintain_order=True).to_list()
    return {
        "data": data(rows),
        "facet": vega.field("label:N", title=None, sort=labels),
        "spec": vega.layer(*layers, width=_PANEL_WIDTH, height=_PANEL_HEIGHT),
        "columns": _PANEL_COLUMNS,
        "spacing": 18,
    }


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


def _k_axis(rows: pl.DataFrame, field: str = "k") -> vega.Spec:
    """The axis of k: logarithmic where it spans more than a factor of ten."""
    present, log = sorted(set(rows["k"].to_list())), _spans_tens(rows)
    ticks = [k for k in present if str(k).rstrip("0") in ("1", "2", "5")] if log else present
    # A single k has no span of its own.
    domain = {} if len(present) > 1 else {"domain": [present[0] - 0.5, present[0] + 0.5]}
    scale = {"type": "log" if log else "linear", "zero": False, "nice": False, "padding": 12, **domain}
    return vega.field(f"{field}:Q", title="k", scale=scale, axis={"values": ticks, "format": "d", "grid": False})
