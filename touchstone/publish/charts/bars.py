"""Bars: the way of an attempt from a response to a pass, and where the uncertainty of pass@1 comes from."""

import polars as pl

from touchstone.publish.charts import NothingToDraw, frames, vega
from touchstone.publish.charts.dots import row_axis
from touchstone.publish.charts.theme import WIDTH
from touchstone.text import counted, visible

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
    rows = frames.side_rows(
        frame,
        "variance_split",
        "problems",
        "attempts",
        "samples",
        "standard_error",
        "variance_of_mean",
        "from_problems",
        "from_samples",
        "share_from_problems",
    )
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
