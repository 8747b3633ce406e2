"""Every model against every other: the verdicts of the paired comparison as a matrix."""

from typing import Final

import polars as pl

from touchstone.publish.charts import NothingToDraw, frames, vega
from touchstone.text import counted, visible
from touchstone.vocabulary import FORMER_VERDICTS, OPPOSITE_VERDICTS, VERDICTS

SYMBOLS: Final = {
    "better": "▲",
    "worse": "▼",
    "no relevant difference": "=",
    **dict.fromkeys(("inconclusive", *FORMER_VERDICTS), "·"),
}
_COMFORTABLE = 30


def pairwise_verdicts(frame: pl.LazyFrame, *, top: int = 150, settings: pl.LazyFrame | None = None) -> vega.Spec:
    """The verdict on the model of the row against that of the column, the best model of each tier first."""
    pairs = frames.rows_of(
        frame.select(
            "model_a",
            "tier_a",
            "model_b",
            "tier_b",
            "problems",
            "rate_a",
            "rate_b",
            "difference",
            "ci_method",
            "p_adjusted",
            "correction",
            "pairs",
            "verdict",
        ),
        "model_comparison",
    )
    both = [pairs.select(model=f"model_{side}", tier=f"tier_{side}") for side in "ab"]
    sides = frames.with_side(pl.concat(both).unique(maintain_order=True))
    for side in "ab":
        named = sides.rename({"model": f"model_{side}", "tier": f"tier_{side}", "side": side})
        pairs = pairs.join(named, on=[f"model_{side}", f"tier_{side}"])
    cells = _both_ways(pairs)
    rates = cells.group_by("tier", "row").agg(pl.col("rate").mean())
    order = rates.sort("tier", "rate", "row", descending=[False, True, False])
    kept, rest = frames.first_rows(order, top, "model_comparison", frames.side_noun(order))
    names = kept["row"].to_list()
    cells = cells.filter(pl.col("row").is_in(names) & pl.col("column").is_in(names))
    if cells.is_empty():
        raise NothingToDraw("nothing to draw: the table 'model_comparison' has no pair")
    methods = ", ".join(sorted(pairs["ci_method"].drop_nulls().unique()))
    corrections = ", ".join(sorted(pairs["correction"].unique()))
    lines = frames.caption(
        "Read a row: ▲ its model is better than that of the column, ▼ worse.",
        frames.count_sentence(pairs, "problems", "problem", "pair"),
        f"Adjusted for {counted(pairs.select(pl.max('pairs')).item(), 'pair')} ({corrections}).",
        frames.tabled_intervals(methods, " of each pair alone", "table model_comparison", settings)
        if methods
        else "No intervals.",
        "Blank: not compared." if cells.height < len(names) * (len(names) - 1) else None,
        rest,
    )
    place = {name: nth for nth, name in enumerate(names)}
    numbered = cells.with_columns(pl.col("row", "column").replace_strict(place, return_dtype=pl.Int64))
    return frames.titled(_matrix(numbered, names), "Model against model", lines)


def _both_ways(pairs: pl.DataFrame) -> pl.DataFrame:
    """Two cells a pair: b against a as in the table, and a against b with the signs changed."""
    shared = [pl.col("p_adjusted").alias("p"), pl.col("problems").alias("n")]
    verdict = pl.col("verdict").replace(dict.fromkeys(FORMER_VERDICTS, "inconclusive"))
    forth = pairs.select(
        pl.col("tier_b").alias("tier"),
        pl.col("b").alias("row"),
        pl.col("a").alias("column"),
        pl.col("rate_b").alias("rate"),
        pl.col("difference").alias("d"),
        verdict,
        *shared,
    )
    back = pairs.select(
        pl.col("tier_a").alias("tier"),
        pl.col("a").alias("row"),
        pl.col("b").alias("column"),
        pl.col("rate_a").alias("rate"),
        (-pl.col("difference")).alias("d"),
        verdict.replace(OPPOSITE_VERDICTS),
        *shared,
    )
    return pl.concat([forth, back])


def _matrix(cells: pl.DataFrame, names: list[str]) -> vega.Spec:
    found = set(cells["verdict"].unique())
    present = [verdict for verdict in VERDICTS if verdict in found]
    number = {verdict: nth for nth, verdict in enumerate(present)}
    small = len(names) > _COMFORTABLE
    labels = list(frames.distinct_labels(names, 20 if small else frames.LABEL_LENGTH).values())
    rows = cells.select(
        "row", "column", pl.col("verdict").replace_strict(number, return_dtype=pl.Int64).alias("v"), "d", "p", "n"
    ).sort("row", "column")
    # Names are kept once: the size of a large matrix is that of its figures.
    base = (
        vega.view(frames.numbers(rows))
        .calculate(
            row_label="pair_labels[datum.row]",
            column_label="pair_labels[datum.column]",
            row_name="pair_names[datum.row]",
            column_name="pair_names[datum.column]",
            verdict="pair_verdicts[datum.v]",
        )
        .encode(
            x=vega.field("column_label:N", title=None, scale={"domain": labels}, axis=_axis(small, -90)),
            y=vega.field("row_label:N", title=None, scale={"domain": labels}, axis=_axis(small, 0)),
        )
    )
    colours = {"domain": present, "range": [_COLOURS[verdict] for verdict in present]}
    shapes = {"domain": present, "range": [_SHAPES[verdict] for verdict in present]}
    tips = frames.tooltip(
        row_name="model",
        column_name="against",
        verdict="verdict",
        d="difference|+.4f",
        p="adjusted p-value|.3~g",
        n="shared problems|,d",
    )
    layers = [
        base.mark("rect").encode(color=vega.field("verdict:N", scale=colours, legend=_LEGEND), tooltip=tips),
        base.mark("point", filled=True, size=12 if small else 60, opacity=1).encode(
            shape=vega.field("verdict:N", scale=shapes, legend=_LEGEND), color=vega.value("black")
        ),
    ]
    step = vega.step(9 if small else 24)
    looked_up = {"pair_labels": labels, "pair_names": list(map(visible, names)), "pair_verdicts": present}
    params = [{"name": name, "value": value} for name, value in looked_up.items()]
    return vega.layer(*layers, width=step, height=step, params=params)


_LEGEND = {"title": "row against column", "symbolStrokeColor": "#777777", "symbolStrokeWidth": 0.7, "symbolSize": 90}
# Okabe-Ito blue, vermilion and green, lightened so that a black symbol is readable on them; the rest are greys.
_COLOURS: Final = {
    "better": "#9CCBEC",
    "worse": "#E98A45",
    "no relevant difference": "#A6DCC9",
    "inconclusive": "#E8E8E8",
}
# An equals sign and a dot as paths, for the verdicts that have no shape of Vega's.
_SHAPES: Final = {
    "better": "triangle-up",
    "worse": "triangle-down",
    "no relevant difference": "M-.8,-.6h1.6v.4h-1.6zm0,.8h1.6v.4h-1.6z",
    "inconclusive": "M-.35,-.35h.7v.7h-.7z",
}


def _axis(small: bool, angle: int) -> vega.Spec:
    return {
        "orient": "top" if angle else "left",
        "labelAngle": angle,
        "labelFontSize": 8 if small else 11,
        "grid": False,
        "ticks": False,
        "domain": False,
        "labelPadding": 6,
    }
