"""Line charts of many series: pass@k along k, pass@k against pass^k, and one figure over all snapshots.

The first few series are in colour with their names at the end, the others thin and grey.
"""

import polars as pl

from touchstone.publish.charts import NothingToDraw, frames, vega
from touchstone.publish.charts.heatmaps import SYMBOLS
from touchstone.publish.charts.vega import DASHES, SHAPES, WIDTH
from touchstone.text import counted, visible
from touchstone.trends.figures import MAIN_FIGURE, figure_name, figure_rows

HIGHLIGHTED = 6
_HEIGHT = 340
_LINE_HEIGHT = 14
# More bands cover each other, more bars are not read one by one.
_BANDS, _BARS = 3, 72
# Of the axis, between the bars of two series.
_APART = 0.007


def interval_mark(rows: pl.DataFrame) -> str:
    """Layers for the intervals of the series in colour: bands if they are few or long, else bars side by side."""
    first = rows.filter(pl.col("rank") < HIGHLIGHTED)
    series, positions = first["side"].n_unique(), first["position"].n_unique()
    few = series <= _BANDS or series * positions > _BARS
    return "Bands" if few and positions > 1 else "Bars"


def series_lines(
    rows: pl.DataFrame,
    x: vega.Spec,
    y: str,
    *,
    y_title: str,
    tooltip: list[vega.Spec],
    log: bool = False,
    marks: pl.DataFrame | None = None,
) -> vega.Spec:
    """Lines through `y` by `label`, with the interval from `low` to `high`; `x` encodes the field `position`.

    `rank` numbers the series from 0; those below `HIGHLIGHTED` are in colour, each with a dash pattern, a shape and
    the text `end` after its last point. A line is broken between two numbers of `stretch`. `marks` are texts in the
    column `mark` at a `position`.
    """
    first = rows.filter(pl.col("rank") < HIGHLIGHTED).sort("rank", maintain_order=True)
    others = rows.filter(pl.col("rank") >= HIGHLIGHTED)
    names = first["label"].unique(maintain_order=True).to_list()
    ends = frames.padded(rows[y], first["low"], first["high"])
    height = vega.field(f"{y}:Q", title=y_title, scale={"domain": ends, "nice": False, "zero": False})
    colour = vega.field("label:N", scale={"domain": names}, legend=None)
    dash = vega.field("label:N", scale={"domain": names, "range": DASHES[: len(names)]}, legend=None)
    shape = vega.field("label:N", scale={"domain": names, "range": SHAPES[: len(names)]}, legend=None)
    banded = interval_mark(rows) == "Bands"
    broken = {"detail": "stretch:N"} if "stretch" in rows.columns else {}
    base = vega.view(frames.data(first if banded else _beside(first, len(names), log))).encode(x=x, color=colour)
    spans = (
        base.mark("area", opacity=0.15 if len(names) <= _BANDS else 0.08)
        if banded
        else base.mark("rule", strokeWidth=1.3, opacity=0.7)
    )
    layers: list[vega.View] = [
        spans.encode(y=vega.field("low:Q", scale={"domain": ends}), y2="high:Q", **broken),
        base.mark("line", strokeWidth=2).encode(y=height, strokeDash=dash, **broken),
        base.mark("point", filled=True, size=45, opacity=1).encode(y=height, shape=shape, tooltip=tooltip),
        *_end_labels(first, y, ends, colour, shape),
    ]
    if not others.is_empty():
        grey = vega.view(frames.data(others)).mark("line", style="guide", strokeWidth=0.7, opacity=0.3)
        layers.insert(0, grey.encode(x=x, y=height, detail="label:N", tooltip=tooltip))
        # A line through a single point cannot be seen.
        alone = others.filter(pl.len().over("label") == 1)
        dots = vega.view(frames.data(alone)).mark("point", style="guide", size=12, opacity=0.6)
        layers[1:1] = [dots.encode(x=x, y=height, tooltip=tooltip)] if alone.height else []
    if marks is not None and marks.height:
        rules = vega.view(frames.data(marks)).encode(x=x)
        layers[:0] = [rules.mark("rule", style="guide", strokeDash=[3, 3], opacity=0.8)]
        named = rules.encode(y=vega.value(-6), text="mark:N")
        layers.append(named.mark("text", style="ink", fontSize=10))
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
    base = vega.view(frames.data(last)).encode(
        x=vega.value(WIDTH + 12), y=vega.field("text_y:Q", scale={"domain": ends})
    )
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


_PANEL_WIDTH, _PANEL_HEIGHT, _PANEL_COLUMNS = 190, 130, 3


def pass_at_k_curves(frame: pl.LazyFrame, *, settings: pl.LazyFrame | None = None) -> vega.Spec:
    """pass@k along k with its interval as a band, in colour for the models with the best pass@k at the smallest k."""
    rows = _ranked(
        frames.side_rows(frame, "pass_at_k", "k pass_at_k ci_low ci_high ci_method eligible"),
        "pass_at_k",
    )
    rows = rows.with_columns(position="k")
    shown = rows.filter(pl.col("rank") < HIGHLIGHTED)
    others = rows["side"].n_unique() - shown["side"].n_unique()
    undefined, level = rows["pass_at_k"].null_count(), frames.confidence_level(settings)
    lines = frames.caption(
        frames.count_sentence(shown, "eligible", "problem"),
        frames.interval_sentence(
            shown.drop_nulls("pass_at_k"), "pass@k", level=level, mark=interval_mark(rows), missing=None
        ),
        f"In colour: the best {HIGHLIGHTED} at the smallest k; grey: the other {others:,}." if others else None,
        f"{undefined:,} of {rows.height:,} points are undefined: too few attempts for that k." if undefined else None,
    )
    rows = frames.with_labels(rows, "side").with_columns(low="ci_low", high="ci_high", end="label")
    chart = series_lines(
        rows,
        _k_axis(rows, "position"),
        "pass_at_k",
        y_title="pass@k",
        log=_spans_tens(rows),
        tooltip=frames.tooltip(
            side="model", k="k|d", pass_at_k="pass@k|.4f", **frames.INTERVAL_TIPS, eligible="problems|,d"
        ),
    )
    return frames.titled(chart, "pass@k by number of attempts", lines)


def pass_hat_k(frame: pl.LazyFrame, *, top: int = 12, settings: pl.LazyFrame | None = None) -> vega.Spec:
    """The chance that one of k attempts passes (pass@k) against the chance that all do (pass^k), a panel per model."""
    rows = _ranked(
        frames.side_rows(frame, "reliability_curve", "k pass_at_k pass_hat_k ci_low ci_high ci_method eligible"),
        "pass_hat_k",
    )
    sides = rows.select("side", "rank").unique().sort("rank")
    kept, rest = frames.first_rows(sides, top, "reliability_curve", frames.side_noun(rows))
    rows = frames.with_labels(rows.join(kept, on="side", how="semi"), "side", length=28)
    level = frames.confidence_level(settings)
    lines = frames.caption(
        "Solid, circles: pass@k, at least one of k attempts passes; dashed, squares: pass^k, all k pass.",
        frames.count_sentence(rows, "eligible", "problem"),
        frames.interval_sentence(rows.drop_nulls("pass_hat_k"), "pass^k", level=level, mark="Bands", missing=None),
        rest,
    )
    return frames.titled(_panels(rows), "One success or always: pass@k and pass^k", lines)


def _panels(rows: pl.DataFrame) -> vega.Spec:
    tips = frames.tooltip(
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
        "data": frames.data(rows),
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


def history(
    frame: pl.LazyFrame,
    *,
    of: str = "pass_at_k",
    figure: str | None = None,
    item: str | None = None,
    verdicts: pl.LazyFrame | pl.DataFrame | None = None,
    trends: pl.LazyFrame | pl.DataFrame | None = None,
    changes: pl.LazyFrame | pl.DataFrame | None = None,
) -> vega.Spec:
    """A figure of the table `of` in every snapshot; `item` is the rest of the row's key, such as k.

    `verdicts` is the table `baseline_verdicts`: the gate's verdicts on the latest run stand after the models' names.
    With the table `trends`, lines have gaps where nothing ran and pins are marked; with `change_points`, changes are.
    """
    figure = figure or MAIN_FIGURE.get(of, "")
    rows = _figures(frame, of, figure, item)
    snapshots = rows.select("made_at", "snapshot").unique().sort("made_at", "snapshot").with_row_index("position")
    rows = _by_latest(frames.with_side(rows), snapshots)
    judged, sentence = _verdicts(verdicts)
    own = {"table": of, "figure": figure, "item": rows["item"][0]}
    rows, pins = _with_stretches(rows, trends, own)
    shown = rows.filter(pl.col("rank") < HIGHLIGHTED)
    changed, changes_sentence = _changes(changes, own, shown)
    others = rows["side"].n_unique() - shown["side"].n_unique()
    mark = interval_mark(rows)
    lines = frames.caption(
        f"{counted(snapshots.height, 'snapshot')}.",
        frames.count_sentence(shown.drop_nulls("n"), "n", shown["noun"][0]) if shown["n"].count() else None,
        f"{mark}: the confidence interval stored with each snapshot; its method is in the table {of}."
        if shown["low"].count()
        else "No confidence interval is stored.",
        f"In colour: the first {HIGHLIGHTED} in the latest snapshot; grey: the other {others:,}." if others else None,
        changes_sentence,
        sentence,
    )
    rows = frames.with_labels(rows.join(judged, on=["model", "tier"], how="left"), "side", length=28)
    rows = rows.with_columns(end=pl.concat_str("label", "judged", separator=" ", ignore_nulls=True))
    name = figure_name(of, figure, rows["item"][0])
    chart = series_lines(
        rows,
        _snapshot_axis(snapshots),
        "value",
        y_title=name,
        tooltip=frames.tooltip(
            side="model",
            snapshot="snapshot",
            made_at="made at",
            value=f"{name}|.4f",
            low="CI low|.4f",
            high="CI high|.4f",
            n="n|,d",
            verdict="verdict of the gate",
        ),
        marks=pl.concat([pins, changed]).join(snapshots, on="snapshot"),
    )
    return frames.titled(chart, f"{name} over snapshots", lines)


def _with_stretches(
    rows: pl.DataFrame, trends: pl.LazyFrame | pl.DataFrame | None, own: dict[str, str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows numbered by the stretch without a gap that they are in, and the pinned snapshots with their names."""
    keys = ["snapshot", "model", "tier"]
    known = pl.DataFrame(schema=dict.fromkeys((*keys, "pinned_as"), pl.String) | {"after_gap": pl.Boolean})
    if trends is not None:
        known = trends.lazy().filter(**own).select(known.columns).collect()
    rows = rows.join(known.drop("pinned_as"), on=keys, how="left", maintain_order="left")
    rows = rows.with_columns(stretch=pl.col("after_gap").fill_null(False).cum_sum().over("side"))
    pins = known.drop_nulls("pinned_as").select("snapshot", mark="pinned_as").unique().sort("snapshot")
    return rows, pins.with_columns(pl.col("mark").map_elements(visible, return_dtype=pl.String))


def _changes(
    changes: pl.LazyFrame | pl.DataFrame | None, own: dict[str, str], shown: pl.DataFrame
) -> tuple[pl.DataFrame, str | None]:
    """The snapshots in which the figure of a series in colour changed, and a sentence on the latest of them."""
    rows = pl.DataFrame(
        schema=dict.fromkeys(("model", "tier", "snapshot", "made_at", "sentence", "changed"), pl.String)
    )
    if changes is not None:
        rows = changes.lazy().filter(**own).sort("made_at").select(rows.columns).collect()
        rows = rows.join(shown, on=["model", "tier", "snapshot"], how="semi", maintain_order="left")
    marks = rows.select("snapshot", mark=pl.lit("change")).unique().sort("snapshot")
    if not rows.height:
        return marks, None
    last = rows.row(-1, named=True)
    many = f" (the last of {rows.height:,} changes)" if rows.height > 1 else ""
    when = f"on {last['made_at'][:10]}{many}"
    return marks, f"{visible(last['model'])}: {last['sentence']} {when}; changed there: {last['changed']}."


def _figures(frame: pl.LazyFrame, of: str, figure: str, item: str | None) -> pl.DataFrame:
    """One row per snapshot, model and tier: the figure, its interval, and n."""
    rows = figure_rows(frame, of, figure, item).rename({"ci_low": "low", "ci_high": "high"})
    if not rows["value"].count():
        raise NothingToDraw(f"nothing to draw: the table 'history' has no figure '{figure}' of the table '{of}'")
    first = min(rows.drop_nulls("value")["item"], key=lambda text: (len(text), text))
    return rows.filter(pl.col("item") == first).drop("table", "figure")


def _by_latest(rows: pl.DataFrame, snapshots: pl.DataFrame) -> pl.DataFrame:
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
