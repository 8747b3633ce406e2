"""The leaderboard: pass@k of every model and tier with its confidence interval, best first."""

import polars as pl

from touchstone.publish.charts import NothingToDraw, vega
from touchstone.publish.charts.dots import figure_text, interval_dots
from touchstone.publish.charts.frames import (
    INTERVAL_TIPS,
    caption,
    confidence_level,
    count_sentence,
    first_rows,
    interval_sentence,
    side_noun,
    side_rows,
    titled,
    tooltip,
    with_labels,
)
from touchstone.text import counted


def leaderboard(
    frame: pl.LazyFrame, *, k: int | None = None, top: int = 50, settings: pl.LazyFrame | None = None
) -> vega.Spec:
    """pass@k with intervals, best first; the smallest k of the table if none is given."""
    rows = side_rows(frame, "pass_at_k", "k", "pass_at_k", "ci_low", "ci_high", "ci_method", "ci_units", "eligible")
    k = min(rows["k"]) if k is None else k
    rows = rows.filter(pl.col("k") == k).sort("pass_at_k", "side", descending=[True, False], nulls_last=True)
    if rows.is_empty():
        raise NothingToDraw(f"nothing to draw: the table 'pass_at_k' has no rows with k = {k}")
    shown, rest = first_rows(rows, top, "pass_at_k", side_noun(rows))
    defined = shown.filter(pl.col("pass_at_k").is_not_null())
    undefined = shown.height - defined.height
    lines = caption(
        count_sentence(shown, "eligible", "problem"),
        interval_sentence(defined, f"pass@{k}", level=confidence_level(settings)),
        f"Undefined for {undefined:,}: no problem has {counted(k, 'decided attempt')}." if undefined else None,
        rest,
    )
    shown = with_labels(shown, "side").with_columns(figure_text("pass_at_k"))
    chart = interval_dots(
        shown,
        "pass_at_k",
        "ci_low",
        "ci_high",
        axis={"title": f"pass@{k}", "format": ".2f", "tickCount": 8},
        by="tier" if shown["tier"].n_unique() > 1 else None,
        tooltip=tooltip(
            side="model",
            figure=f"pass@{k}",
            **INTERVAL_TIPS,
            eligible="problems|,d",
            ci_units="independent units|,d",
        ),
    )
    return titled(chart, "Leaderboard", lines)
