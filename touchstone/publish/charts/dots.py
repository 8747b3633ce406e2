"""A row per model: points with confidence intervals, and bars.

Points: the leaderboard, uplift by tier, pass@1 by slice. Bars: the way of an attempt from a response to a pass, and
where the uncertainty of pass@1 comes from.
"""

import polars as pl

from touchstone.publish.charts import NothingToDraw, frames, vega
from touchstone.publish.charts.lines import HIGHLIGHTED
from touchstone.publish.charts.vega import SHAPES, WIDTH
from touchstone.text import counted, visible

UNDEFINED = "undefined"
_STEP = 18
_POINT = 60


def row_axis(rows: pl.DataFrame) -> vega.Spec:
    """A row for every label, in the order of the rows: left to itself, Vega takes that of the first layer's marks."""
    axis = {"grid": False, "ticks": False, "domain": False, "labelPadding": 8}
    labels = rows["label"].unique(maintain_order=True).to_list()
    return vega.field("label:N", title=None, axis=axis, scale={"domain": labels})


def figure_text(column: str, form: str = "{:.3f}") -> pl.Expr:
    """The figure as text, `undefined` where it is null."""
    text = pl.col(column).map_elements(form.format, return_dtype=pl.String)
    return pl.when(pl.col(column).is_null()).then(pl.lit(UNDEFINED)).otherwise(text).alias("figure")


def interval_dots(
    rows: pl.DataFrame,
    figure: str,
    low: str,
    high: str,
    *,
    axis: vega.Spec,
    tooltip: list[vega.Spec],
    by: str | None = None,
    zero: bool = False,
) -> vega.Spec:
    """Points at `figure` with bars from `low` to `high`, a row per `label`, and the text `figure` on the right.

    A point without an interval is open and has no bar; a row without a figure has only its text. A bar whose end is
    infinite runs to the end of the axis. Values of `by` differ in colour and shape. `zero` marks 0 with a line.
    """
    ends = frames.padded(rows[figure], rows[low], rows[high], pl.Series([0.0] if zero else []))
    rows = rows.with_columns(
        pl.col(low).clip(*ends).alias("bar_low"),
        pl.col(high).clip(*ends).alias("bar_high"),
        pl.col(low).is_not_null().alias("has_interval"),
    )
    plain = vega.view(frames.data(rows)).encode(y=row_axis(rows), tooltip=tooltip)
    base = plain if by is None else plain.encode(color=vega.field(f"{by}:N", legend=None))
    has_interval = {"field": "has_interval", "equal": True}
    scale = {"domain": ends, "nice": False, "zero": False}
    bars = base.transform(filter=has_interval).mark("rule", strokeWidth=2)
    points = base.transform(filter={"field": figure, "valid": True}).encode(
        x=vega.field(f"{figure}:Q", scale=scale, axis=axis)
    )
    if by is not None:
        points = points.encode(shape=vega.field(f"{by}:N", legend=None))
    filled = points.transform(filter=has_interval).mark("point", filled=True, size=_POINT, opacity=1)
    layers = [
        bars.encode(x=vega.field("bar_low:Q", scale=scale, axis=axis), x2="bar_high:Q"),
        filled,
        plain.mark("text", align="left", style="ink", dx=8).encode(x=vega.value(WIDTH), text="figure:N"),
    ]
    if rows[low].null_count():
        without = points.transform(filter={**has_interval, "equal": False})
        layers.append(without.mark("point", size=_POINT, opacity=1, style="hollow"))
    if zero:
        line = vega.view(frames.data(pl.DataFrame({"zero": [0]}))).mark("rule", style="guide", strokeDash=[3, 3])
        layers.insert(0, line.encode(x=vega.field("zero:Q", scale=scale, axis=axis)))
    return vega.layer(*layers, width=WIDTH, height=vega.step(_STEP))


def leaderboard(
    frame: pl.LazyFrame, *, k: int | None = None, top: int = 50, settings: pl.LazyFrame | None = None
) -> vega.Spec:
    """pass@k with intervals, best first; the smallest k of the table if none is given."""
    rows = frames.side_rows(frame, "pass_at_k", "k pass_at_k ci_low ci_high ci_method ci_units eligible")
    k = min(rows["k"]) if k is None else k
    rows = rows.filter(pl.col("k") == k).sort("pass_at_k", "side", descending=[True, False], nulls_last=True)
    if rows.is_empty():
        raise NothingToDraw(f"nothing to draw: the table 'pass_at_k' has no rows with k = {k}")
    shown, rest = frames.first_rows(rows, top, "pass_at_k", frames.side_noun(rows))
    defined = shown.filter(pl.col("pass_at_k").is_not_null())
    undefined = shown.height - defined.height
    lines = frames.caption(
        frames.count_sentence(shown, "eligible", "problem"),
        frames.interval_sentence(defined, f"pass@{k}", level=frames.confidence_level(settings)),
        f"Undefined for {undefined:,}: no problem has {counted(k, 'decided attempt')}." if undefined else None,
        rest,
    )
    shown = frames.with_labels(shown, "side").with_columns(figure_text("pass_at_k"))
    chart = interval_dots(
        shown,
        "pass_at_k",
        "ci_low",
        "ci_high",
        axis={"title": f"pass@{k}", "format": ".2f", "tickCount": 8},
        by="tier" if shown["tier"].n_unique() > 1 else None,
        tooltip=frames.tooltip(
            side="model",
            figure=f"pass@{k}",
            **frames.INTERVAL_TIPS,
            eligible="problems|,d",
            ci_units="independent units|,d",
        ),
    )
    return frames.titled(chart, "Leaderboard", lines)


def tier_uplift(frame: pl.LazyFrame, *, top: int = 50, settings: pl.LazyFrame | None = None) -> vega.Spec:
    """Relative change of the median composite score against the model's baseline tier, largest first."""
    columns = "ci_units composite_median uplift uplift_ci_low uplift_ci_high uplift_ci_method uplift_reason"
    every = frames.side_rows(frame, "tiers", columns)
    # The baseline tier is the only one with an uplift, no interval and no reason for the lack of one.
    baseline = pl.col("uplift").is_not_null() & pl.col("uplift_ci_low").is_null() & pl.col("uplift_reason").is_null()
    rows = every.filter(~baseline)
    if every["tier"].n_unique() == 1 or rows.is_empty():
        raise NothingToDraw("nothing to draw: the table 'tiers' has no tier beside the baseline tier")
    baselines = sorted(every.filter(baseline)["tier"].unique())
    rows = rows.sort("uplift", "side", descending=[True, False], nulls_last=True)
    shown, rest = frames.first_rows(rows, top, "tiers", frames.side_noun(every))
    defined = shown.drop_nulls("uplift")
    open_ended = defined["uplift_ci_high"].is_infinite().sum()
    lines = frames.caption(
        f"Median composite score against tier {', '.join(baselines)}." if baselines else None,
        frames.count_sentence(shown, "ci_units", "independent unit"),
        frames.interval_sentence(
            defined, "uplift", "uplift_ci_method", "uplift_ci_low", level=frames.confidence_level(settings)
        ),
        f"{open_ended:,} of the bars have no upper end: the baseline's median may be 0." if open_ended else None,
        f"Undefined for {shown.height - defined.height:,}: the column uplift_reason says why."
        if defined.height < shown.height
        else None,
        rest,
    )
    shown = frames.with_labels(shown, "side").with_columns(
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
        tooltip=frames.tooltip(
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
    return frames.titled(chart, "Uplift by tier", lines)


_REACHED, _UNKNOWN = "yes", "not recorded"


def outcome_funnel(frame: pl.LazyFrame, *, model: str | None = None, tier: str | None = None) -> vega.Spec:
    """Attempts that were decided, applied, compiled and passed, of all models or of one.

    A stage that no outcome records is left out; where only some record it, the others are shown as not recorded.
    """
    wanted = [pl.col(name) == value for name, value in (("model", model), ("tier", tier)) if value is not None]
    decided = pl.col("passed").is_not_null()
    counts = (
        frame.filter(*wanted)
        .select(
            pl.len().alias("attempts"),
            pl.col("model").n_unique().alias("models"),
            decided.sum().alias("decided"),
            *((decided & pl.col(name)).sum().alias(name) for name in ("applied", "compiled", "passed")),
            *((decided & pl.col(name).is_null()).sum().alias(f"{name}_unknown") for name in ("applied", "compiled")),
        )
        .collect(engine="streaming")
        .row(0, named=True)
    )
    if not counts["attempts"]:
        raise NothingToDraw("nothing to draw: the table 'outcomes' has no rows" + (" of that model" if wanted else ""))
    stages = [("attempts", counts["attempts"], 0), ("decided", counts["decided"], 0)]
    missing = []
    for name in ("applied", "compiled"):
        unknown = counts[f"{name}_unknown"]
        if unknown < counts["decided"]:
            stages.append((name, counts[name], unknown))
        else:
            missing.append(name)
    stages.append(("passed", counts["passed"], 0))
    undecided = counts["attempts"] - counts["decided"]
    lines = frames.caption(
        f"n = {counted(counts['attempts'], 'attempt')} of "
        + (visible(model) if model is not None else counted(counts["models"], "model"))
        + (f", tier {visible(tier)}" if tier is not None else "")
        + ". Counts, so no interval.",
        f"Undecided: {undecided:,}, neither passed nor failed." if undecided else "No attempt is undecided.",
        f"Not recorded for any attempt: {', '.join(missing)}." if missing and counts["decided"] else None,
    )
    return frames.titled(_funnel(stages), "From attempt to pass", lines)


def _funnel(stages: list[tuple[str, int, int]]) -> vega.Spec:
    attempts = stages[0][1]
    rows = pl.DataFrame(
        [
            {
                "label": name,
                "known": part,
                "attempts": count,
                "share": count / attempts,
                "start": start,
                "end": start + count,
                "text": f"{reached:,} ({reached / attempts:.1%})" + (f" + {unknown:,} not recorded" if unknown else ""),
            }
            for name, reached, unknown in stages
            for part, start, count in ((_REACHED, 0, reached), (_UNKNOWN, reached, unknown))
            if count or part == _REACHED
        ]
    )
    base = vega.view(frames.data(rows)).encode(y=row_axis(rows))
    bars = base.encode(
        x=vega.field("start:Q", title="attempts", axis={"format": ",d", "tickMinStep": 1, "tickCount": 5}),
        x2="end:Q",
        tooltip=frames.tooltip(label="stage", known="reached", attempts="attempts|,d", share="share of attempts|.2%"),
    )
    thick = {"band": 0.7}
    return vega.layer(
        bars.transform(filter=f"datum.known == '{_REACHED}'").mark("bar", height=thick),
        bars.transform(filter=f"datum.known != '{_REACHED}'").mark(
            "bar", height=thick, fillOpacity=0.12, strokeDash=[4, 3], strokeWidth=1, style="guide"
        ),
        base.transform(filter=f"datum.known == '{_REACHED}'")
        .mark("text", align="left", dx=8, style="ink")
        .encode(x=vega.value(WIDTH), text="text:N"),
        width=WIDTH,
        height=vega.step(28),
    )


_PARTS = {"from_problems": "choice of problems", "from_samples": "randomness of attempts", "unsplit": "not separable"}
_SHADES = {"from_problems": 1, "from_samples": 0.45, "unsplit": 0.25}


def variance_split(frame: pl.LazyFrame, *, top: int = 50) -> vega.Spec:
    """The variance of pass@1 in two parts, largest first. More attempts reduce only the second, more problems both."""
    columns = "problems attempts samples standard_error variance_of_mean from_problems from_samples share_from_problems"
    rows = frames.side_rows(frame, "variance_split", columns)
    rows = rows.sort("variance_of_mean", "side", descending=[True, False], nulls_last=True)
    shown, rest = frames.first_rows(rows, top, "variance_split", frames.side_noun(rows))
    if shown["variance_of_mean"].null_count() == shown.height:
        raise NothingToDraw("nothing to draw: the table 'variance_split' has no variance (it takes two problems)")
    undefined, unsplit = shown["variance_of_mean"].null_count(), pl.col("from_samples").is_null()
    single = shown.filter(unsplit & pl.col("variance_of_mean").is_not_null()).height
    negative = shown.filter(pl.col("from_problems") < 0).height
    lines = frames.caption(
        "Variance of pass@1 = standard error squared; unbiased estimates, without an interval.",
        frames.count_sentence(shown, "problems", "problem"),
        f"Not separable for {single:,}: no problem has two decided attempts." if single else None,
        f"Left of 0 for {negative:,}: the estimate of that part is negative, so about 0." if negative else None,
        f"Undefined for {undefined:,}." if undefined else None,
        rest,
    )
    shown = frames.with_labels(shown, "side").with_columns(
        unsplit=pl.when(unsplit).then("variance_of_mean"),
        from_problems=pl.when(~unsplit).then("from_problems"),
        note=pl.struct("standard_error", "share_from_problems").map_elements(_note, return_dtype=pl.String),
    )
    return frames.titled(_stacked(shown), "Where the uncertainty of pass@1 comes from", lines)


def _note(row: dict[str, float | None]) -> str:
    error, share = row["standard_error"], row["share_from_problems"]
    if error is None:
        return "undefined"
    return f"SE {error:.3f}" + (f", {share:.0%} from problems" if share is not None else "")


def _stacked(rows: pl.DataFrame) -> vega.Spec:
    base = vega.view(frames.data(rows)).encode(y=row_axis(rows))
    present = [name for name in _PARTS if rows[name].null_count() < rows.height]
    parts = base.transform(fold=present, **{"as": ["part", "variance"]}).calculate(
        source="".join(f"datum.part == '{name}' ? '{text}' : " for name, text in _PARTS.items()) + "''"
    )
    shades = {"domain": [_PARTS[name] for name in present], "range": [_SHADES[name] for name in present]}
    bars = parts.mark("bar", height={"band": 0.65}).encode(
        x=vega.field("variance:Q", title="variance of pass@1", axis={"format": "~g", "tickCount": 5}),
        # Lightness tells the parts apart in greyscale too.
        color=vega.field("source:N", title=None, scale={"domain": [_PARTS[name] for name in present]}),
        opacity=vega.field("source:N", title=None, scale=shades),
        order=vega.field("source:N"),
        tooltip=frames.tooltip(
            side="model",
            source="part",
            variance="variance|.3~g",
            standard_error="standard error|.4f",
            share_from_problems="share from problems|.1%",
            problems="problems|,d",
            attempts="attempts|,d",
            samples="attempts per problem|.1f",
        ),
    )
    notes = base.mark("text", align="left", dx=8, style="ink").encode(x=vega.value(WIDTH), text="note:N")
    return vega.layer(bars, notes, width=WIDTH, height=vega.step(18))


_VALUES = 20


def slices(
    frame: pl.LazyFrame, *, top: int = HIGHLIGHTED, column: str | None = None, settings: pl.LazyFrame | None = None
) -> vega.Spec:
    """pass@1 with intervals by the values of each slice column, for the models that do best over all slices."""
    wanted = frame if column is None else frame.filter(pl.col("column") == column)
    # The figure is a mean over the problems with a decided attempt; older tables do not count them apart.
    behind = "attempted" if "attempted" in frame.collect_schema().names() else "problems"
    columns = "column value problems attempts pass_at_1 ci_low ci_high ci_method n"
    rows = frames.side_rows(wanted.with_columns(n=behind), "slices", columns).with_columns(
        pl.col("value").fill_null("(none)")
    )
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
        **frames.INTERVAL_TIPS,
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
