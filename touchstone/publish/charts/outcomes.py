"""The way of an attempt from a response to a pass, and where attempts are lost."""

import polars as pl

from touchstone.publish.charts import NothingToDraw, vega
from touchstone.publish.charts.dots import row_axis
from touchstone.publish.charts.frames import caption, data, titled, tooltip
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
    lines = caption(
        f"n = {counted(counts['attempts'], 'attempt')} of "
        + (visible(model) if model is not None else counted(counts["models"], "model"))
        + (f", tier {visible(tier)}" if tier is not None else "")
        + ". Counts, so no interval.",
        f"Undecided: {undecided:,}, neither passed nor failed." if undecided else "No attempt is undecided.",
        f"Not recorded for any attempt: {', '.join(missing)}." if missing and counts["decided"] else None,
    )
    return titled(_chart(stages), "From attempt to pass", lines)


def _chart(stages: list[tuple[str, int, int]]) -> vega.Spec:
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
    base = vega.view(data(rows)).encode(y=row_axis(rows))
    bars = base.encode(
        x=vega.field("start:Q", title="attempts", axis={"format": ",d", "tickMinStep": 1, "tickCount": 5}),
        x2="end:Q",
        tooltip=tooltip(label="stage", known="reached", attempts="attempts|,d", share="share of attempts|.2%"),
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
