"""Problems: how hard each is, and whether better models do better on it."""

import polars as pl

from touchstone.publish.charts import NothingToDraw, frames, vega
from touchstone.publish.charts.economics import corner_labels, label_places
from touchstone.publish.charts.theme import WIDTH
from touchstone.text import counted
from touchstone.vocabulary import PROBLEM_VERDICTS

_HEIGHT = 340
_LABELLED = 12
_COLOURS = {"suspect": "#D55E00", "flaky": "#CC79A7", "redundant": "#009E73", "ok": "#0072B2"}
_SHAPES = {"suspect": "triangle-down", "flaky": "diamond", "redundant": "square", "ok": "circle"}


def problem_discrimination(frame: pl.LazyFrame, *, top: int = 1000) -> vega.Spec:
    """Discrimination against the share of attempts that pass, a point per problem; below 0 better models do worse."""
    columns = ("tier", "oid", "models", "share_of_attempts", "discrimination", "p_value", "p_adjusted", "verdict")
    every = frames.rows_of(frame.select(columns), "problem_audit")
    judged = every.drop_nulls("discrimination").sort("p_value", "tier", "oid")
    if judged.is_empty():
        raise NothingToDraw("nothing to draw: no problem of the table 'problem_audit' has a discrimination")
    shown, rest = frames.first_rows(judged, top, "problem_audit", ("problem", "problems"))
    undefined = every.height - judged.height
    lines = frames.caption(
        f"n = {counted(judged.height, 'problem')}.",
        "Discrimination is Kendall's tau-b between a problem's pass rate per model and the models' pass@1 on all other "
        "problems, without an interval. Below 0, better models fail more often.",
        f"Undefined for {counted(undefined, 'problem')}." if undefined else None,
        rest,
    )
    return frames.titled(_chart(frames.with_labels(shown, "oid", length=28)), "Do better models do better?", lines)


def _chart(rows: pl.DataFrame) -> vega.Spec:
    low, high = frames.padded(rows["discrimination"], pl.Series([0.0]), share=0.08)
    axis = vega.field(
        "discrimination:Q",
        title="discrimination",
        scale={"domain": [low, high], "nice": False},
        axis={"format": ".2~f", "tickCount": 8},
    )
    right = [WIDTH * share for share in rows["share_of_attempts"]]
    down = [_HEIGHT * (high - value) / (high - low) for value in rows["discrimination"]]
    # The most suspect problems are named, as far as there is room.
    suspect = pl.col("verdict") == "suspect"
    names = rows.select(pl.when(suspect, suspect.cum_sum() <= _LABELLED).then("label")).to_series().to_list()
    corners = label_places(list(zip(right, down, strict=True)), names, WIDTH, _HEIGHT)
    present = [verdict for verdict in PROBLEM_VERDICTS if verdict in set(rows["verdict"])]
    base = vega.view(frames.data(rows.with_columns(pl.Series("corner", corners, pl.Int64)))).encode(
        x=vega.field(
            "share_of_attempts:Q",
            title="share of attempts that pass",
            scale={"domain": [0, 1]},
            axis={"format": "%", "tickCount": 5},
        ),
        y=axis,
    )
    points = base.encode(
        color=vega.field("verdict:N", title=None, scale=_scale(_COLOURS, present)),
        shape=vega.field("verdict:N", title=None, scale=_scale(_SHAPES, present)),
        tooltip=frames.tooltip(
            oid="problem",
            tier="tier",
            verdict="verdict",
            discrimination="discrimination|.3f",
            p_adjusted="adjusted p|.2~g",
            share_of_attempts="attempts that pass|.1%",
            models="models|,d",
        ),
    )
    zero = vega.view(frames.data(pl.DataFrame({"discrimination": [0]}))).mark("rule", style="guide", strokeDash=[3, 3])
    return vega.layer(
        zero.encode(y=axis),
        points.mark("point", filled=True, size=40, opacity=0.8),
        *corner_labels(base),
        width=WIDTH,
        height=_HEIGHT,
    )


def _scale(looks: dict[str, str], present: list[str]) -> vega.Spec:
    """The colours or shapes of the verdicts that are there."""
    return {"domain": present, "range": [looks.get(verdict, looks["ok"]) for verdict in present]}
