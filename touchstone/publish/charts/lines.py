"""Line charts of many series: the first few in colour with their names at the end, the others thin and grey."""

import polars as pl

from touchstone.publish.charts import vega
from touchstone.publish.charts.frames import data, padded
from touchstone.publish.charts.theme import DASHES, SHAPES, WIDTH

HIGHLIGHTED = 6
_HEIGHT = 340
_LINE_HEIGHT = 14
# More bands cover each other, more bars are not read one by one.
_BANDS, _BARS = 3, 72
# Of the axis, between the bars of two series.
_APART = 0.007


def interval_mark(rows: pl.DataFrame) -> str:
    """What the intervals of the series in colour look like: bands if they are few or long, else bars side by side."""
    first = rows.filter(pl.col("rank") < HIGHLIGHTED)
    series, positions = first["side"].n_unique(), first["position"].n_unique()
    few = series <= _BANDS or series * positions > _BARS
    return "Bands" if few and positions > 1 else "Bars"


def series_lines(
    rows: pl.DataFrame, x: vega.Spec, y: str, *, y_title: str, tooltip: list[vega.Spec], log: bool = False
) -> vega.Spec:
    """Lines through `y` by `label`, with the interval from `low` to `high`; `x` encodes the field `position`.

    `rank` numbers the series from 0; those below `HIGHLIGHTED` are in colour, each with a dash pattern, a shape and
    the text `end` after its last point.
    """
    first = rows.filter(pl.col("rank") < HIGHLIGHTED).sort("rank", maintain_order=True)
    others = rows.filter(pl.col("rank") >= HIGHLIGHTED)
    names = first["label"].unique(maintain_order=True).to_list()
    ends = padded(rows[y], first["low"], first["high"])
    height = vega.field(f"{y}:Q", title=y_title, scale={"domain": ends, "nice": False, "zero": False})
    colour = vega.field("label:N", scale={"domain": names}, legend=None)
    dash = vega.field("label:N", scale={"domain": names, "range": DASHES[: len(names)]}, legend=None)
    shape = vega.field("label:N", scale={"domain": names, "range": SHAPES[: len(names)]}, legend=None)
    banded = interval_mark(rows) == "Bands"
    base = vega.view(data(first if banded else _beside(first, len(names), log))).encode(x=x, color=colour)
    spans = (
        base.mark("area", opacity=0.15 if len(names) <= _BANDS else 0.08)
        if banded
        else base.mark("rule", strokeWidth=1.3, opacity=0.7)
    )
    layers: list[vega.View] = [
        spans.encode(y=vega.field("low:Q", scale={"domain": ends}), y2="high:Q"),
        base.mark("line", strokeWidth=2).encode(y=height, strokeDash=dash),
        base.mark("point", filled=True, size=45, opacity=1).encode(y=height, shape=shape, tooltip=tooltip),
        *_end_labels(first, y, ends, colour, shape),
    ]
    if not others.is_empty():
        grey = vega.view(data(others)).mark("line", style="guide", strokeWidth=0.7, opacity=0.3)
        layers.insert(0, grey.encode(x=x, y=height, detail="label:N", tooltip=tooltip))
        # A line through a single point cannot be seen.
        alone = others.filter(pl.len().over("label") == 1)
        dots = vega.view(data(alone)).mark("point", style="guide", size=12, opacity=0.6)
        layers[1:1] = [dots.encode(x=x, y=height, tooltip=tooltip)] if alone.height else []
    return vega.layer(*layers, width=WIDTH, height=_HEIGHT)


def _beside(rows: pl.DataFrame, series: int, log: bool) -> pl.DataFrame:
    """Move the series a little apart, so that their bars do not cover each other."""
    position, steps = pl.col("position"), pl.col("rank") - (series - 1) / 2
    low, high = min(rows["position"]), max(rows["position"])
    if log:
        return rows.with_columns((position * (high / low) ** (steps * _APART)).alias("position"))
    return rows.with_columns((position + ((high - low) or 1) * steps * _APART).alias("position"))


def _end_labels(
    rows: pl.DataFrame, y: str, ends: list[float], colour: vega.Spec, shape: vega.Spec
) -> tuple[vega.View, vega.View]:
    """The name of every series at the height of its last point, with its symbol."""
    last = rows.filter(pl.col(y).is_finite()).group_by("label", maintain_order=True).last()
    gap = _LINE_HEIGHT / _HEIGHT * (ends[1] - ends[0])
    last = last.with_columns(pl.Series("text_y", spread(last[y].to_list(), gap, *ends), dtype=pl.Float64))
    base = vega.view(data(last)).encode(x=vega.value(WIDTH + 12), y=vega.field("text_y:Q", scale={"domain": ends}))
    symbols = base.mark("point", filled=True, size=45, opacity=1).encode(color=colour, shape=shape)
    return symbols, base.mark("text", align="left", dx=8, style="ink").encode(text="end:N")


def spread(values: list[float], gap: float, low: float, high: float) -> list[float]:
    """Positions as near as possible to the values, in their order, at least `gap` apart and within the limits.

    >>> spread([0.5, 0.5, 0.0], 0.25, 0, 1)
    [0.625, 0.375, 0.0]
    """
    order = sorted(range(len(values)), key=lambda place: (values[place], -place))
    # Blocks of labels that touch: their members, and the position of the lowest.
    blocks: list[tuple[list[int], float]] = []
    for place in reversed(order):
        members = [place]
        start = values[place]
        blocks.append((members, start))
        while len(blocks) > 1 and blocks[-1][1] + gap * len(blocks[-1][0]) > blocks[-2][1]:
            below, above = blocks.pop(), blocks.pop()
            members = below[0] + above[0]
            middle = sum(values[each] - gap * nth for nth, each in enumerate(members)) / len(members)
            blocks.append((members, min(max(middle, low), high - gap * (len(members) - 1))))
    positions = [0.0] * len(values)
    for members, start in blocks:
        for nth, place in enumerate(members):
            positions[place] = start + gap * nth
    return positions
