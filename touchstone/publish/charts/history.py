"""One figure over all snapshots, with the verdicts of the gate on the latest run."""

from typing import Final

import polars as pl

from touchstone.publish.charts import NothingToDraw, vega
from touchstone.publish.charts.comparison import SYMBOLS
from touchstone.publish.charts.frames import caption, count_sentence, titled, tooltip, with_labels, with_side
from touchstone.publish.charts.lines import HIGHLIGHTED, interval_mark, series_lines
from touchstone.text import counted, visible

# The figure that `ci_low` and `ci_high` of a table belong to; other figures have columns of their own.
_MAIN_FIGURE: Final = {
    "pass_at_k": "pass_at_k",
    "tiers": "composite_median",
    "suite_scores": "score",
    "run_scores": "overall_score",
    "economics": "cost_of_pass",
    "reliability_curve": "pass_hat_k",
}
# What a figure is over: the first of these columns that its table has.
_COUNTS: Final = {"eligible": "problem", "problems": "problem", "attempts": "attempt", "cases": "attempt"}


def history(
    frame: pl.LazyFrame,
    *,
    of: str = "pass_at_k",
    figure: str | None = None,
    item: str | None = None,
    verdicts: pl.LazyFrame | pl.DataFrame | None = None,
) -> vega.Spec:
    """A figure of the table `of` in every snapshot; `item` is the rest of the row's key, such as k.

    `verdicts` is the table `baseline_verdicts`: the gate's verdicts on the latest run stand after the models' names.
    """
    figure = figure or _MAIN_FIGURE.get(of, "")
    rows = _figures(frame, of, figure, item)
    snapshots = rows.select("made_at", "snapshot").unique().sort("made_at", "snapshot").with_row_index("position")
    rows = _ranked(with_side(rows), snapshots)
    judged, sentence = _verdicts(verdicts)
    shown = rows.filter(pl.col("rank") < HIGHLIGHTED)
    others = rows["side"].n_unique() - shown["side"].n_unique()
    mark = interval_mark(rows)
    lines = caption(
        f"{counted(snapshots.height, 'snapshot')}.",
        count_sentence(shown.drop_nulls("n"), "n", shown["noun"][0]) if shown["n"].count() else None,
        f"{mark}: the confidence interval stored with each snapshot; its method is in the table {of}."
        if shown["low"].count()
        else "No confidence interval is stored.",
        f"In colour: the first {HIGHLIGHTED} in the latest snapshot; grey: the other {others:,}." if others else None,
        sentence,
    )
    rows = with_labels(rows.join(judged, on=["model", "tier"], how="left"), "side", length=28)
    rows = rows.with_columns(end=pl.concat_str("label", "judged", separator=" ", ignore_nulls=True))
    name = _title(of, figure, visible(rows["item"][0]))
    chart = series_lines(
        rows,
        _snapshot_axis(snapshots),
        "value",
        y_title=name,
        tooltip=tooltip(
            side="model",
            snapshot="snapshot",
            made_at="made at",
            value=f"{name}|.4f",
            low="CI low|.4f",
            high="CI high|.4f",
            n="n|,d",
            verdict="verdict of the gate",
        ),
    )
    return titled(chart, f"{name} over snapshots", lines)


def _title(of: str, figure: str, item: str) -> str:
    if (of, figure) == ("pass_at_k", "pass_at_k"):
        return f"pass@{item}"
    return f"{figure} of {of}" + (f", {item}" if item else "")


def _figures(frame: pl.LazyFrame, of: str, figure: str, item: str | None) -> pl.DataFrame:
    """One row per snapshot, model and tier: the figure, its interval, and n."""
    low, high = ("ci_low", "ci_high") if _MAIN_FIGURE.get(of) == figure else (f"{figure}_ci_low", f"{figure}_ci_high")
    kept = frame.select("snapshot", "made_at", "table", "model", "tier", "item", "figure", "value").filter(
        pl.col("table") == of,
        pl.col("figure").is_in([figure, low, high, *_COUNTS]),
        pl.lit(True) if item is None else pl.col("item") == item,
    )
    long = kept.collect()
    if not (long["figure"] == figure).any():
        raise NothingToDraw(f"nothing to draw: the table 'history' has no figure '{figure}' of the table '{of}'")
    if item is None:
        first = min(long.filter(pl.col("figure") == figure)["item"], key=lambda text: (len(text), text))
        long = long.filter(pl.col("item") == first)
    wide = long.drop("table").pivot("figure", values="value")
    count = next((name for name in _COUNTS if name in wide.columns), None)
    return wide.select(
        "snapshot",
        "made_at",
        "model",
        "tier",
        "item",
        pl.col(figure).alias("value"),
        *(
            (pl.col(old) if old in wide.columns else pl.lit(None, pl.Float64)).alias(new)
            for old, new in ((low, "low"), (high, "high"))
        ),
        (pl.lit(None) if count is None else pl.col(count)).cast(pl.Int64).alias("n"),
        pl.lit(_COUNTS.get(count or "", "")).alias("noun"),
    )


def _ranked(rows: pl.DataFrame, snapshots: pl.DataFrame) -> pl.DataFrame:
    """Rows by the rank of their side: the figure in the latest snapshot that has it, largest first."""
    rows = rows.join(snapshots, on=["made_at", "snapshot"]).sort("position")
    latest = rows.group_by("side").agg(pl.col("value").last(), pl.col("position").last())
    order = latest.sort("position", "value", "side", descending=[True, True, False], nulls_last=True)
    ranks = order.select("side", rank=pl.int_range(pl.len()))
    return rows.join(ranks, on="side").sort("rank", "position").with_columns(pl.col("position").cast(pl.Float64))


def _verdicts(verdicts: pl.LazyFrame | pl.DataFrame | None) -> tuple[pl.DataFrame, str | None]:
    """The verdict of every model and tier with its symbol, and a sentence that explains them."""
    rows = pl.DataFrame(schema=dict.fromkeys(("model", "tier", "baseline", "verdict"), pl.String))
    if verdicts is not None:
        rows = verdicts.lazy().select(rows.columns).collect()
    symbol = pl.col("verdict").replace_strict(SYMBOLS, return_dtype=pl.String)
    judged = rows.select("model", "tier", "verdict", pl.format("({} {})", symbol, "verdict").alias("judged"))
    baseline = ", ".join(visible(name) for name in sorted(rows["baseline"].unique()))
    return judged, f"In brackets: the gate's verdict on this run against {baseline}." if rows.height else None


def _snapshot_axis(snapshots: pl.DataFrame) -> vega.Spec:
    """Snapshots at equal distances, labelled by date; every nth where they are many."""
    every = -(-snapshots.height // 10)
    minutes = [made_at[:16] for made_at in snapshots["made_at"]]
    exact = len(set(minutes)) < len(minutes)
    texts = [made_at[: 19 if exact else 16].replace("T", " ") for made_at in snapshots["made_at"]]
    expression = f"{texts}[datum.value]"
    axis = {
        "values": list(range(0, snapshots.height, every)),
        "labelExpr": expression,
        "labelAngle": -30,
        "grid": False,
    }
    scale = {"domain": [-0.3, snapshots.height - 0.7], "nice": False, "zero": False}
    return vega.field("position:Q", title=None, scale=scale, axis=axis)
