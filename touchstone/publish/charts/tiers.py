"""What a tier adds: uplift of the composite score over the baseline tier, with intervals."""

import polars as pl

from touchstone.publish.charts import NothingToDraw, vega
from touchstone.publish.charts.dots import figure_text, interval_dots
from touchstone.publish.charts.frames import (
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


def tier_uplift(frame: pl.LazyFrame, *, top: int = 50, settings: pl.LazyFrame | None = None) -> vega.Spec:
    """Relative change of the median composite score against the model's baseline tier, largest first."""
    every = side_rows(
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
    shown, rest = first_rows(rows, top, "tiers", side_noun(every))
    defined = shown.drop_nulls("uplift")
    open_ended = defined["uplift_ci_high"].is_infinite().sum()
    lines = caption(
        f"Median composite score against tier {', '.join(baselines)}." if baselines else None,
        count_sentence(shown, "ci_units", "independent unit"),
        interval_sentence(defined, "uplift", "uplift_ci_method", "uplift_ci_low", level=confidence_level(settings)),
        f"{open_ended:,} of the bars have no upper end: the baseline's median may be 0." if open_ended else None,
        f"Undefined for {shown.height - defined.height:,}: the column uplift_reason says why."
        if defined.height < shown.height
        else None,
        rest,
    )
    shown = with_labels(shown, "side").with_columns(
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
        tooltip=tooltip(
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
    return titled(chart, "Uplift by tier", lines)
