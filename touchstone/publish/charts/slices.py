"""pass@1 in every slice of the problems: is the best model also the best on the hard ones?"""

import polars as pl

from touchstone.publish.charts import frames, vega
from touchstone.publish.charts.lines import HIGHLIGHTED
from touchstone.publish.charts.theme import SHAPES, WIDTH
from touchstone.text import counted, visible

_VALUES = 20


def slices(
    frame: pl.LazyFrame, *, top: int = HIGHLIGHTED, column: str | None = None, settings: pl.LazyFrame | None = None
) -> vega.Spec:
    """pass@1 with intervals by the values of each slice column, for the models that do best over all slices."""
    wanted = frame if column is None else frame.filter(pl.col("column") == column)
    # The figure is a mean over the problems with a decided attempt; older tables do not count them apart.
    behind = "attempted" if "attempted" in frame.collect_schema().names() else "problems"
    rows = frames.rows_of(
        wanted.select(
            "model",
            "tier",
            "column",
            "value",
            "problems",
            "attempts",
            "pass_at_1",
            "ci_low",
            "ci_high",
            "ci_method",
            n=behind,
        ),
        "slices",
    )
    rows = frames.with_side(rows).with_columns(pl.col("value").fill_null("(none)"))
    order = (
        rows.group_by("side")
        .agg(pl.col("pass_at_1").mean())
        .sort("pass_at_1", "side", descending=[True, False], nulls_last=True)
    )
    sides = order["side"].head(min(top, len(SHAPES))).to_list()
    values = (
        rows.group_by("column", "value")
        .agg(pl.col("problems").max())
        .sort("column", "problems", "value", descending=[False, True, False])
    )
    largest = values.filter(pl.int_range(pl.len()).over("column") < _VALUES)
    left_out, others = values.height - largest.height, order.height - len(sides)
    shown = rows.filter(pl.col("side").is_in(sides)).join(largest, on=["column", "value"], how="semi")
    undefined, level = shown["pass_at_1"].null_count(), frames.confidence_level(settings)
    lines = frames.caption(
        frames.count_sentence(shown, "n", "problem", "point"),
        frames.interval_sentence(
            shown.drop_nulls("pass_at_1"), "pass@1", level=level, missing="points without a bar have none"
        ),
        f"Undefined, not drawn: {undefined:,}." if undefined else None,
        f"Shown: the best {len(sides)} of {counted(order.height, *frames.side_noun(rows))}." if others else None,
        f"Only the {_VALUES} largest values of a column are shown; {left_out:,} more are in the table slices."
        if left_out
        else None,
    )
    places = largest.select("column", "value", place=pl.int_range(pl.len()))
    shown = frames.with_labels(shown.join(places, on=["column", "value"]).sort("place", "side"), "side", length=28)
    names = [frames.distinct_labels(sides, 28)[side] for side in sides]
    # The same for all panels; from 0 to 1 the best of many models would share a tenth of it.
    ends = [min(1.0, max(0.0, end)) for end in frames.padded(*shown.select("pass_at_1", "ci_low", "ci_high"))]
    panels = [
        _panel(shown.filter(pl.col("column") == name), str(name), names, ends, legend=not place)
        for place, name in enumerate(largest["column"].unique(maintain_order=True))
    ]
    return frames.titled({"vconcat": panels, "spacing": 18}, "pass@1 by slice", lines)


def _panel(rows: pl.DataFrame, column: str, names: list[str], ends: list[float], *, legend: bool) -> vega.Spec:
    labels = frames.distinct_labels(rows["value"].to_list(), 36)
    rows = rows.with_columns(pl.col("value").replace_strict(labels, return_dtype=pl.String).alias("row"))
    shown = {"title": None, "orient": "top", "columns": 3} if legend else None
    base = vega.view(frames.data(rows)).encode(
        y=vega.field(
            "row:N",
            title=None,
            sort=list(dict.fromkeys(labels.values())),
            axis={"ticks": False, "domain": False, "labelPadding": 6},
        ),
        yOffset=vega.field("label:N", sort=names),
        color=vega.field("label:N", sort=names, scale={"domain": names}, legend=shown),
    )
    scale = {"domain": ends, "nice": False, "zero": False}
    axis = {"title": "pass@1", "format": ".2f", "grid": True, "tickCount": 8}
    tips = frames.tooltip(
        side="model",
        row="value",
        pass_at_1="pass@1|.4f",
        ci_low="CI low|.4f",
        ci_high="CI high|.4f",
        ci_method="CI method",
        n="problems|,d",
        attempts="attempts|,d",
    )
    shape = vega.field("label:N", sort=names, scale={"domain": names, "range": SHAPES[: len(names)]}, legend=shown)
    heading = {"text": visible(column), "fontSize": 12, "offset": 4, "frame": "group"}
    return vega.layer(
        base.mark("rule", strokeWidth=1.5).encode(x=vega.field("ci_low:Q", scale=scale, axis=axis), x2="ci_high:Q"),
        base.mark("point", filled=True, size=45, opacity=1).encode(
            x=vega.field("pass_at_1:Q", scale=scale, axis=axis), shape=shape, tooltip=tips
        ),
        title=heading,
        width=WIDTH,
        height=vega.step(11 if len(names) > 1 else 18, **{"for": "offset" if len(names) > 1 else "position"}),
    )
