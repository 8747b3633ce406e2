"""The trade-off of a plan: problems against attempts per problem, and what each mix costs.

Its table is not one of a run but the mixes of `touchstone plan`, so it is not listed among the charts of a run.
"""

import polars as pl

from touchstone.publish.charts import frames, vega

_WIDTH, _HEIGHT = 520, 200
_X = vega.field("attempts_per_problem:O", title="attempts per problem and model", axis={"labelAngle": 0})


def plan_tradeoff(frame: pl.LazyFrame) -> vega.Spec:
    """Each mix with the problems that it takes and its cost; for a fixed benchmark, with the difference it finds."""
    rows = frame.collect().with_columns(cost=pl.col("cost_usd").is_not_null())
    effect, power = rows["effect"][0], rows["power"][0]
    enough = rows.filter(pl.col("problems").is_not_null())
    fixed = enough.height > 1 and enough["problems"].n_unique() == 1
    panels = [_found(enough, effect) if fixed else _problems(enough)]
    if enough["cost"].any():
        panels.append(_costs(enough, "enough" if fixed else "cheapest"))
    many = rows.height - enough.height
    goal = f"a difference of {effect:g} in pass@1 with probability {power:g} (paired test over problems)"
    lines = [
        f"Goal, dashed: {goal}. n = {enough['problems'][0]:,} problems, all there are."
        if fixed
        else f"To find {goal}.",
        *(
            ["No number of attempts shown is enough: the goal takes more problems."]
            if fixed and not enough["reaches_goal"].any()
            else []
        ),
        *([f"For {many} of the numbers of attempts, no number of problems is enough."] if many else []),
    ]
    costs = ", and what it costs" if len(panels) > 1 else ""
    return frames.titled({"vconcat": panels, "spacing": 24}, f"Problems or attempts: what is enough{costs}", lines)


def _problems(rows: pl.DataFrame) -> vega.Spec:
    # Room for the labels; the values are written beside the points, so the many lines of a log axis are not needed.
    fewest, most = float(rows["problems"].min()) / 1.5, float(rows["problems"].max()) * 1.5  # type: ignore[arg-type]
    scale = {"type": "log", "domain": [fewest, most], "nice": False}
    y = vega.field(
        "problems:Q", title="problems needed (log)", scale=scale, axis={"grid": False, "tickCount": 3, "format": ","}
    )
    return _labelled(rows, y, pl.col("problems").map_elements(lambda many: f"{many:,}", return_dtype=pl.String))


def _found(rows: pl.DataFrame, effect: float) -> vega.Spec:
    y = vega.field(
        "detectable_on_few:Q", title="smallest difference found, even on few problems", scale={"domainMin": 0}
    )
    label = pl.col("detectable_on_few").map_elements(lambda found: f"{found:.3f}", return_dtype=pl.String)
    base = vega.view(vega.Rows(pl.DataFrame({"goal": [effect], "name": [f"goal {effect:g}"]}))).encode(y="goal:Q")
    goal = base.mark("rule", strokeDash=[4, 3], style="guide")
    name = base.mark("text", align="left", dx=6, style="ink").encode(x=vega.value(_WIDTH), text="name:N")
    return _labelled(rows, y, label, goal, name)


def _labelled(rows: pl.DataFrame, y: vega.Spec, label: pl.Expr, *below: vega.View) -> vega.Spec:
    base = vega.view(vega.Rows(rows.with_columns(label=label))).encode(x=_X, y=y)
    return vega.layer(
        *below,
        base.mark("line", strokeWidth=2),
        base.mark("point", filled=True, size=70, opacity=1).encode(tooltip=_tooltip()),
        base.mark("text", dy=-12, style="ink").encode(text="label:N"),
        width=_WIDTH,
        height=_HEIGHT,
    )


def _costs(rows: pl.DataFrame, word: str) -> vega.Spec:
    """Bars of cost; the cheapest mix that is enough is named by the word, not only coloured."""
    label = pl.format(
        "{}{}",
        pl.col("cost_usd").map_elements(lambda cost: f"${cost:,.2f}", return_dtype=pl.String),
        pl.when("cheapest").then(pl.lit(f", {word}")).otherwise(pl.lit("")),
    )
    y = vega.field("cost_usd:Q", title="cost in dollars, both models")
    base = vega.view(vega.Rows(rows.with_columns(label=label))).encode(x=_X, y=y)
    shade = vega.condition("datum.cheapest", 1.0, 0.45)
    return vega.layer(
        base.mark("bar", size=36).encode(opacity=shade, tooltip=_tooltip()),
        base.mark("text", dy=-8, style="ink").encode(text="label:N"),
        width=_WIDTH,
        height=_HEIGHT * 0.7,
    )


def _tooltip() -> list[vega.Spec]:
    return [
        vega.field("attempts_per_problem:O", title="attempts per problem"),
        vega.field("problems:Q", title="problems", format=","),
        vega.field("total_attempts:Q", title="attempts of both models", format=","),
        vega.field("cost_usd:Q", title="cost", format="$,.2f"),
        vega.field("detectable:Q", title="difference found if spread evenly", format=".3f"),
        vega.field("detectable_on_few:Q", title="difference found on few problems", format=".3f"),
    ]
