"""Points with names: cost against quality, and how hard problems are against whether better models do better on them.

Also the share that is solved within a budget, whose axis is that of costs.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from touchstone.publish.charts import NothingToDraw, frames, vega
from touchstone.publish.charts.lines import HIGHLIGHTED, interval_mark, series_lines
from touchstone.publish.charts.vega import WIDTH
from touchstone.text import counted
from touchstone.vocabulary import PROBLEM_VERDICTS, RESOURCES

_HEIGHT = 340
_LABELLED = 12
# From coarse to fine; finer ones serve costs that hardly differ.
_TICKS = ((1,), (1, 2, 5), range(1, 10), tuple(step / 10 for step in range(10, 100)))
_FEWEST_TICKS = 3
_RATE_TICKS = 8


def cost_quality(frame: pl.LazyFrame, *, settings: pl.LazyFrame | None = None) -> vega.Spec:
    """Pass rate against cost per attempt on a log axis, with the Pareto front as a step line."""
    columns = "problems pass_rate cost_per_attempt cost_of_pass ci_low ci_high ci_method pareto pareto_probability"
    rows = frames.side_rows(frame, "economics", columns).sort("cost_per_attempt", "side")
    unknown = rows.filter(pl.col("cost_per_attempt").is_null() | pl.col("pass_rate").is_null())
    known = rows.join(unknown, on="side", how="anti")
    free = known.filter(pl.col("cost_per_attempt") == 0)
    shown = known.filter(pl.col("cost_per_attempt") > 0)
    if shown.is_empty():
        raise NothingToDraw("nothing to draw: no model of the table 'economics' has a known cost above 0")
    never = shown.filter(pl.col("cost_of_pass").is_infinite())
    methods = ", ".join(sorted(shown["ci_method"].drop_nulls().unique()))
    lines = frames.caption(
        frames.count_sentence(shown, "problems", "problem"),
        "Filled points joined by a line: the Pareto front, no other model is both cheaper and better.",
        frames.tabled_intervals(methods, " of the cost of a pass", "table economics", settings)
        if methods
        else "No confidence interval is defined.",
        f"Infinite cost of a pass (nothing passes): {frames.named(never['side'])}." if never.height else None,
        f"Cost 0, left of any log axis: {frames.named(free['side'])}." if free.height else None,
        f"Not shown, cost unknown: {frames.named(unknown['side'])}." if unknown.height else None,
    )
    shown = frames.with_labels(shown, "side", length=28).with_columns(
        pl.col("pareto").fill_null(False),
        pl.col("cost_of_pass").map_elements(_dollars, return_dtype=pl.String).alias("pass_text"),
        pl.col("ci_high").map_elements(_dollars, return_dtype=pl.String).alias("high_text"),
    )
    return frames.titled(_cost_points(shown), "Cost and quality", lines)


def _cost_points(rows: pl.DataFrame) -> vega.Spec:
    low, high = _ends(rows["cost_per_attempt"])
    x = vega.field(
        "cost_per_attempt:Q",
        title="mean cost of an attempt, US dollars (log scale)",
        scale={"type": "log", "domain": [low, high], "nice": False},
        axis={"format": "$~r", "values": _log_ticks(low, high)},
    )
    # The space for names may go beyond 0 and 1, where no rate is.
    ends = frames.padded(rows["pass_rate"], share=0.08)
    rates = {"domain": ends, "nice": False, "zero": False}
    possible = [tick for tick in round_ticks(ends[0], ends[1], _RATE_TICKS) if 0 <= tick <= 1]
    y = vega.field("pass_rate:Q", title="pass rate", scale=rates, axis={"format": ".3~f", "values": possible})
    tips = frames.tooltip(
        side="model",
        pass_rate="pass rate|.4f",
        cost_per_attempt="cost per attempt|$.4~r",
        pass_text="cost of a pass",
        ci_low="CI low|$.4~r",
        high_text="CI high",
        ci_method="CI method",
        pareto_probability="probability of the Pareto front|.2f",
        problems="problems|,d",
    )
    base = vega.view(frames.data(_with_corners(rows, low, high, ends))).encode(x=x, y=y)
    front, others = (base.transform(filter={"field": "pareto", "equal": wanted}) for wanted in (True, False))
    return vega.layer(
        front.mark("line", interpolate="step-after", strokeWidth=1.2, style="guide", opacity=0.8),
        others.mark("point", size=60, opacity=1, style="hollow").encode(tooltip=tips),
        front.mark("point", filled=True, size=75, opacity=1, shape="diamond").encode(tooltip=tips),
        *corner_labels(base),
        width=WIDTH,
        height=_HEIGHT,
    )


def budget_curves(
    frame: pl.LazyFrame, *, resource: str | None = None, settings: pl.LazyFrame | None = None
) -> vega.Spec:
    """The share of problems solved within a budget, on a log axis: of dollars, else of tokens or seconds."""
    columns = "resource budget share_solved ci_low ci_high ci_method problems"
    every = frames.side_rows(frame, "budget_curves", columns)
    resource = resource or next(name for name in RESOURCES if name in every["resource"])
    rows = every.filter(pl.col("resource") == resource).drop("resource", "model", "tier")
    unknown = rows.filter(pl.col("share_solved").is_null())["side"].unique().sort()
    drawn = rows.filter(pl.col("share_solved").is_not_null() & (pl.col("budget") > 0)).sort("budget")
    if drawn.is_empty():
        raise NothingToDraw(f"nothing to draw: the table 'budget_curves' has no known budget of {resource} above 0")
    last = drawn.group_by("side").agg(pl.col("share_solved").last()).sort(-pl.col("share_solved"), "side")
    grey = last.height - HIGHLIGHTED
    drawn = frames.with_labels(
        drawn.join(last.select("side", rank=pl.int_range(pl.len())), on="side"), "side", length=28
    )
    # A grey line needs fewer points.
    kept = (pl.col("rank") < HIGHLIGHTED) | (pl.col("budget").rank("dense") % 4 == 1)
    drawn = drawn.filter(kept).sort("rank", "budget").rename({"ci_low": "low", "ci_high": "high"})
    drawn = drawn.with_columns(position="budget", end="label").with_columns(pl.col(pl.Float64).round_sig_figs(6))
    level, mark = frames.confidence_level(settings), interval_mark(drawn)
    lines = frames.caption(
        frames.count_sentence(drawn, "problems", "problem"),
        "Attempts at a problem are tried one after the other until one passes.",
        frames.interval_sentence(drawn, "the share", low="low", level=level, mark=mark),
        f"In colour: the best {HIGHLIGHTED} at the largest budget; grey: the other {grey:,}." if grey > 0 else None,
        f"Not shown, {resource} unknown: {frames.named(unknown)}." if len(unknown) else None,
    )
    low, high = _ends(drawn["budget"])
    axis = vega.field(
        "position:Q",
        title=f"{'US dollars' if resource == 'dollars' else resource} per problem (log scale)",
        scale={"type": "log", "domain": [low, high], "nice": False},
        axis={"format": "$~r" if resource == "dollars" else "~s", "values": _log_ticks(low, high)},
    )
    of_point = {"share_solved": "solved|.4f", "low": "CI low|.4f", "high": "CI high|.4f", "ci_method": "CI method"}
    tips = frames.tooltip(side="model", budget="budget|.3~r", **of_point, problems="problems|,d")
    chart = series_lines(drawn, axis, "share_solved", y_title="share of problems solved", log=True, tooltip=tips)
    return frames.titled(chart, f"Solved within a budget of {resource}", lines)


def _with_corners(rows: pl.DataFrame, low: float, high: float, rates: list[float]) -> pl.DataFrame:
    """Add the corner at which each name stands; with many models only those of the Pareto front have one."""
    right = [WIDTH * math.log(cost / low) / math.log(high / low) for cost in rows["cost_per_attempt"]]
    down = [_HEIGHT * (rates[1] - rate) / (rates[1] - rates[0]) for rate in rows["pass_rate"]]
    named = [
        label if pareto or rows.height <= _LABELLED else None
        for label, pareto in rows.select("label", "pareto").iter_rows()
    ]
    return rows.with_columns(_corners(right, down, named))


def _corners(right: list[float], down: list[float], labels: Sequence[str | None]) -> pl.Series:
    """The corner of each point at which its label stands, if it has room; see `label_places`."""
    places = label_places(list(zip(right, down, strict=True)), labels, WIDTH, _HEIGHT)
    return pl.Series("corner", places, pl.Int64)


def _ends(costs: pl.Series) -> tuple[float, float]:
    """The ends of the axis: space for names in proportion to the range, and a little around equal costs."""
    low, high = float(min(costs)), float(max(costs))
    space = min(1.3, max(1.02, (high / low) ** 0.15))
    return low / space, high * space


def _log_ticks(low: float, high: float) -> list[float]:
    """Round values between the limits, as few as tell how the axis runs.

    >>> _log_ticks(0.004, 0.6), _log_ticks(0.0224, 0.0262)
    ([0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5], [0.023, 0.024, 0.025, 0.026])
    """
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in _TICKS if high / low < 1000 else _TICKS[:1]:
        ticks = [value for ten in tens for step in steps if low <= (value := float(f"{step}e{ten}")) <= high]
        if len(ticks) >= _FEWEST_TICKS and steps != _TICKS[0]:
            break
    return ticks


def _dollars(value: float) -> str:
    return f"${value:.4g}" if math.isfinite(value) else "infinite"


def round_ticks(low: float, high: float, count: int) -> list[float]:
    """About as many round values between two ends, as d3 chooses them.

    >>> round_ticks(0.42, 0.61, 4)
    [0.45, 0.5, 0.55, 0.6]
    """
    rough = (high - low) / count
    ten: float = 10 ** math.floor(math.log10(rough))
    step = ten * next((size for most, size in ((1.414, 1), (3.162, 2), (7.071, 5)) if rough / ten < most), 10)
    return [round(nth * step, 12) for nth in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


# The corners in the order in which they are tried: horizontal and vertical direction, down is positive.
CORNERS = ((1, 1), (-1, -1), (-1, 1), (1, -1))
DX, DY = 7, 10
# Of the type of all charts.
_LETTER, _LINE = 6.0, 12.0
_POINT = 6.0


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share more than an edge."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def corner_labels(base: vega.View) -> list[vega.View]:
    """The names of points, each at the corner that `label_places` found for it."""
    return [
        base.transform(filter={"field": "corner", "equal": nth})
        .mark("text", align="left" if right > 0 else "right", dx=right * DX, dy=down * DY, style="ink")
        .encode(text="label:N")
        for nth, (right, down) in enumerate(CORNERS)
    ]


def label_places(
    points: Sequence[tuple[float, float]], labels: Sequence[str | None], width: float, height: float
) -> list[int | None]:
    """The corner of each point, in pixels, at which its label covers no other label and the fewest points.

    A label that would leave the plot or cover another at every corner has none.

    >>> label_places([(10, 50), (20, 52), (22, 54)], ["first", "second", None], 300, 100)
    [3, 0, None]
    """
    dots = [Box(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]
    plot, taken = Box(0, -_LINE, width, height + _LINE), list[Box]()
    places: list[int | None] = []
    for (x, y), label in zip(points, labels, strict=True):
        boxes = {nth: _box(x, y, len(label), *corner) for nth, corner in enumerate(CORNERS)} if label else {}
        free = {
            nth: sum(box.overlaps(dot) for dot in dots)
            for nth, box in boxes.items()
            if box.left >= plot.left
            and box.right <= plot.right
            and box.top >= plot.top
            and box.bottom <= plot.bottom
            and not any(box.overlaps(other) for other in taken)
        }
        best = min(free, key=lambda nth: (free[nth], nth), default=None)
        places.append(best)
        if best is not None:
            taken.append(boxes[best])
    return places


def _box(x: float, y: float, letters: int, right: int, down: int) -> Box:
    near, far = x + right * DX, x + right * (DX + letters * _LETTER)
    middle = y + down * DY
    return Box(min(near, far), middle - _LINE / 2, max(near, far), middle + _LINE / 2)


# Problems

_VERDICT_COLOURS = {"suspect": "#D55E00", "flaky": "#CC79A7", "redundant": "#009E73", "ok": "#0072B2"}
_VERDICT_SHAPES = {"suspect": "triangle-down", "flaky": "diamond", "redundant": "square", "ok": "circle"}


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
    return frames.titled(
        _problem_points(frames.with_labels(shown, "oid", length=28)), "Do better models do better?", lines
    )


def _problem_points(rows: pl.DataFrame) -> vega.Spec:
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
    present = [verdict for verdict in PROBLEM_VERDICTS if verdict in set(rows["verdict"])]
    base = vega.view(frames.data(rows.with_columns(_corners(right, down, names)))).encode(
        x=vega.field(
            "share_of_attempts:Q",
            title="share of attempts that pass",
            scale={"domain": [0, 1]},
            axis={"format": "%", "tickCount": 5},
        ),
        y=axis,
    )
    points = base.encode(
        color=vega.field("verdict:N", title=None, scale=_scale(_VERDICT_COLOURS, present)),
        shape=vega.field("verdict:N", title=None, scale=_scale(_VERDICT_SHAPES, present)),
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
