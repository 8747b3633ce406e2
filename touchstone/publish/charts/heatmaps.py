"""Heat maps: suites and problems by model, sorted by difficulty, classes of failed attempts, and model against model.

A row per model, a column per suite, class, problem or model, a colour and where there is room the figure or a symbol.
"""

from typing import Any, Final

import polars as pl

from touchstone.inference.exact import exact_mean
from touchstone.publish.charts import NothingToDraw, frames, vega
from touchstone.publish.charts.vega import RAMP
from touchstone.text import counted, visible
from touchstone.vocabulary import CLASSES, FORMER_VERDICTS, OPPOSITE_VERDICTS, PASS_CLASS, VERDICTS

# More rows or columns than these would not fit a page, nor their cells a page's size.
MAX_ROWS, MAX_COLUMNS = 150, 100
_WITH_FIGURES = 16
_COMFORTABLE = 40
# Letters that fit above a column, and those that fit when they are turned.
_SHORT, _COLUMN_LENGTH = 9, 24
# The share of the ramp's length from which dark text is easier to read than light text, on cividis.
_BRIGHT = 0.55


def _grid(
    cells: pl.DataFrame,
    column: str,
    row_names: list[str],
    column_names: list[str],
    *,
    legend: str,
    form: str,
    tips: dict[str, str],
    top: float = 1.0,
) -> vega.Spec:
    """Cells by `side` and a column of names, coloured by `value` from 0 to `top`; `tips` are further figures of a cell.

    Names are kept once, in `params`, so that a large grid is as small as its figures.
    """
    places = {"row": ("side", row_names), "column": (column, column_names)}
    shown = cells.filter(pl.col("side").is_in(row_names), pl.col(column).is_in(column_names)).select(
        *(
            pl.col(of).replace_strict({each: at for at, each in enumerate(known)}, return_dtype=pl.Int64).alias(name)
            for name, (of, known) in places.items()
        ),
        *tips,
    )
    tooltip = frames.tooltip(row_name="model", column_name="problem" if column == "column" else column, **tips)
    rows = list(frames.distinct_labels(row_names).values())
    length = frames.LABEL_LENGTH if len(column_names) > _COMFORTABLE else _COLUMN_LENGTH
    columns = list(frames.distinct_labels(column_names, length).values())
    size = 9 if len(rows) > _COMFORTABLE else 11
    names = {"row_labels": rows, "row_names": row_names, "column_labels": columns, "column_names": column_names}
    looked_up = {name.removesuffix("s"): f"{name}[datum.{name.partition('_')[0]}]" for name in names}
    base = (
        vega.view(frames.numbers(shown.sort("row", "column")))
        .calculate(**looked_up)
        .encode(
            x=vega.field("column_label:N", sort=columns, title=None, axis=_column_axis(columns)),
            y=vega.field("row_label:N", sort=rows, title=None, axis=_axis(labelFontSize=size)),
        )
    )
    colour = vega.field(
        "value:Q",
        title=legend,
        scale={"scheme": RAMP, "domain": [0, top], "clamp": True},
        legend={"format": form, "gradientLength": 180, "gradientThickness": 10, "orient": "top"},
    )
    layers: list[vega.View] = [base.mark("rect").encode(color=colour, tooltip=tooltip)]
    if len(columns) <= _WITH_FIGURES and len(rows) <= MAX_ROWS:
        ink = vega.condition(f"datum.value > {_BRIGHT * top}", "black", "white")
        texts = base.transform(filter="isValid(datum.value)").mark("text", fontSize=size)
        layers.append(texts.encode(text=vega.field("value:Q", format=form), color=ink))
    width = 58 if len(columns) <= _WITH_FIGURES else 16 if len(columns) <= _COMFORTABLE else 7
    height = 22 if len(rows) <= _COMFORTABLE else 12
    return vega.layer(*layers, width=vega.step(width), height=vega.step(height), params=_params(names))


def _params(names: dict[str, list[str]]) -> list[vega.Spec]:
    """Lists of names, for cells that have the places of theirs."""
    return [{"name": name, "value": list(map(visible, values))} for name, values in names.items()]


def _axis(**more: Any) -> vega.Spec:
    """An axis of labels alone."""
    return {"grid": False, "ticks": False, "domain": False, "labelPadding": 6, **more}


def _column_axis(columns: list[str]) -> vega.Spec | None:
    if len(columns) > _COMFORTABLE:
        return None
    turned = -90 if len(columns) > _WITH_FIGURES else -35 if max(map(len, columns)) > _SHORT else 0
    return _axis(orient="top", labelAngle=turned)


_FAILURES = (*(name for name in CLASSES if name != PASS_CLASS), "other")


def suite_heatmap(frame: pl.LazyFrame, *, top: int = MAX_ROWS, settings: pl.LazyFrame | None = None) -> vega.Spec:
    """The score of every model in every suite, the best model on top, the hardest suite on the left."""
    every = frames.side_rows(frame, "suite_scores", "suite cases passed ci_method ci_units")
    pooled = every.group_by("side", "suite").agg(pl.col("cases", "passed").sum(), pl.col("ci_units").max())
    cells = pooled.with_columns(value=pl.col("passed") / pl.col("cases"))
    sides, rest = frames.first_rows(
        _order(cells, "side", descending=True), top, "suite_scores", frames.side_noun(every)
    )
    suites, fewer = frames.first_rows(_order(cells, "suite"), MAX_COLUMNS, "suite_scores", ("suite", "suites"))
    runs = every.height > cells.height
    methods = ", ".join(sorted(every["ci_method"].drop_nulls().unique()))
    lines = frames.caption(
        "Share of attempts that pass; undecided attempts count as not passed.",
        frames.count_sentence(cells, "cases", "attempt", "cell"),
        "Several runs of a model are pooled." if runs else None,
        frames.tabled_intervals(methods, "", "table suite_scores", settings) if methods else None,
        rest,
        fewer,
    )
    chart = _grid(
        cells,
        "suite",
        sides["side"].to_list(),
        suites["suite"].to_list(),
        legend="score",
        form=".2f",
        tips={"value": "score|.4f", "passed": "passed|,d", "cases": "attempts|,d"},
    )
    return frames.titled(chart, "Score by suite", lines)


def failure_classes(frame: pl.LazyFrame, *, top: int = MAX_ROWS) -> vega.Spec:
    """The share of a model's attempts in every class of failure, the model that fails least on top."""
    counts = [f"class_{name}" for name in _FAILURES]
    every = frames.side_rows(frame, "suite_scores", f"cases class_none {' '.join(counts)}")
    totals = every.group_by("side").agg(pl.col("cases", "class_none", *counts).sum())
    present = [name for name in _FAILURES if totals[f"class_{name}"].sum() > 0]
    if not present:
        raise NothingToDraw("nothing to draw: no attempt of the table 'suite_scores' has a class of failure")
    cells = totals.rename({f"class_{name}": name for name in present}).unpivot(
        present, index=["side", "cases"], variable_name="class", value_name="attempts"
    )
    cells = cells.with_columns(value=pl.col("attempts") / pl.col("cases"))
    order = totals.select("side", pl.sum_horizontal(*counts).truediv("cases").alias("failed")).sort("failed", "side")
    sides, rest = frames.first_rows(order, top, "suite_scores", frames.side_noun(every))
    classes = cells.group_by("class").agg(pl.col("attempts").sum()).sort("attempts", "class", descending=[True, False])
    unclassified = int(totals["class_none"].sum())
    lines = frames.caption(
        "Share of all attempts of the model, so a row adds up to its share of failed attempts.",
        frames.count_sentence(totals, "cases", "attempt", "model"),
        "Counts, so no interval.",
        f"Without a class, in no column: {counted(unclassified, 'attempt')}." if unclassified else None,
        rest,
    )
    chart = _grid(
        cells,
        "class",
        sides["side"].to_list(),
        classes["class"].to_list(),
        legend="share of attempts",
        form=".1%",
        tips={"value": "share|.2%", "attempts": "attempts|,d", "cases": "of|,d"},
        top=max(cells["value"]),
    )
    return frames.titled(chart, "How attempts fail", lines)


def problem_heatmap(frame: pl.LazyFrame, *, top: int = MAX_ROWS) -> vega.Spec:
    """The pass rate of every model on every problem, the best model on top, the hardest problem on the left.

    More problems than fit are put together by difficulty: a column is then the mean over neighbouring problems.
    """
    cells = frames.side_rows(frame, "problem_statistics", "oid n c")
    undecided = cells.filter(pl.col("n") == 0).height
    cells = cells.filter(pl.col("n") > 0).with_columns(value=pl.col("c") / pl.col("n"))
    if cells.is_empty():
        raise NothingToDraw("nothing to draw: no problem of the table 'problem_statistics' has a decided attempt")
    noun, cells = frames.side_noun(cells), cells.drop("model", "tier")
    merged = cells["oid"].n_unique() > MAX_COLUMNS
    if merged:  # Their names are not shown, and numbers in the same order take less memory.
        cells = cells.with_columns(pl.col("oid").rank("dense"))
    problems = _order(cells, "oid")
    sides, rest = frames.first_rows(_order(cells, "side", descending=True), top, "problem_statistics", noun)
    cells, columns = (
        _by_difficulty(cells, problems) if merged else (cells.with_columns(column="oid"), problems["oid"].to_list())
    )
    lines = frames.caption(
        f"Share of decided attempts that pass, {counted(problems.height, 'problem')} from hardest (left) to easiest.",
        f"Every column is the mean of {-(-problems.height // len(columns))} problems of like difficulty or fewer."
        if merged
        else None,
        frames.count_sentence(cells, "n", "attempt", "cell"),
        "Cells have no interval.",
        f"Blank or left out: {counted(undecided, 'cell')} without a decided attempt." if undecided else None,
        rest,
    )
    chart = _grid(
        cells,
        "column",
        sides["side"].to_list(),
        columns,
        legend="pass rate",
        form=".2f",
        tips={"value": "pass rate|.3f", "c": "passed|,d", "n": "decided attempts|,d"},
    )
    return frames.titled(chart, "Pass rate by problem", lines)


def _by_difficulty(cells: pl.DataFrame, problems: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Cells of neighbouring problems together: the mean of their pass rates, and a name for every column."""
    size = -(-problems.height // MAX_COLUMNS)
    groups = problems.with_row_index("place").with_columns(group=pl.col("place") // size)
    named = groups.group_by("group", maintain_order=True).agg(
        pl.col("place").min().alias("low"), pl.col("place").max().alias("high")
    )
    names = [
        f"problems {low + 1:,} to {high + 1:,} of {problems.height:,} by difficulty"
        for _, low, high in named.iter_rows()
    ]
    joined = cells.lazy().join(groups.lazy().select("oid", "group"), on="oid")
    merged = joined.group_by("side", "group").agg(pl.col("value").mean(), pl.col("n", "c").sum()).collect()
    return merged.with_columns(
        column=pl.col("group").replace_strict(dict(enumerate(names)), return_dtype=pl.String)
    ), names


def _order(cells: pl.DataFrame, column: str, *, descending: bool = False) -> pl.DataFrame:
    """The names in a column by the mean of their cells."""
    means = cells.group_by(column).agg(value=exact_mean(pl.col("value")))
    return means.sort("value", column, descending=[descending, False], nulls_last=True)


SYMBOLS: Final = {
    "better": "▲",
    "worse": "▼",
    "no relevant difference": "=",
    **dict.fromkeys(("inconclusive", *FORMER_VERDICTS), "·"),
}
_COMFORTABLE_PAIRS = 30


def pairwise_verdicts(frame: pl.LazyFrame, *, top: int = 150, settings: pl.LazyFrame | None = None) -> vega.Spec:
    """The verdict on the model of the row against that of the column, the best model of each tier first."""
    columns = "model_a tier_a model_b tier_b problems rate_a rate_b difference ci_method p_adjusted correction pairs"
    pairs = frames.rows_of(frame.select(*columns.split(), "verdict"), "model_comparison")
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
    verdict = pl.col("verdict").replace(dict.fromkeys(FORMER_VERDICTS, "inconclusive"))

    def cells(row: str, column: str, difference: pl.Expr, verdict: pl.Expr) -> pl.DataFrame:
        figures = {"rate": f"rate_{row}", "p": "p_adjusted", "n": "problems"}
        return pairs.select(verdict, tier=f"tier_{row}", row=row, column=column, d=difference, **figures)

    difference = pl.col("difference")
    return pl.concat(
        [cells("b", "a", difference, verdict), cells("a", "b", -difference, verdict.replace(OPPOSITE_VERDICTS))]
    )


def _matrix(cells: pl.DataFrame, names: list[str]) -> vega.Spec:
    found = set(cells["verdict"].unique())
    present = [verdict for verdict in VERDICTS if verdict in found]
    number = {verdict: nth for nth, verdict in enumerate(present)}
    small = len(names) > _COMFORTABLE_PAIRS
    labels = list(frames.distinct_labels(names, 20 if small else frames.LABEL_LENGTH).values())
    rows = cells.select(
        "row", "column", pl.col("verdict").replace_strict(number, return_dtype=pl.Int64).alias("v"), "d", "p", "n"
    ).sort("row", "column")
    size, top = 8 if small else 11, {"orient": "top", "labelAngle": -90}
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
            x=vega.field("column_label:N", title=None, scale={"domain": labels}, axis=_axis(**top, labelFontSize=size)),
            y=vega.field("row_label:N", title=None, scale={"domain": labels}, axis=_axis(labelFontSize=size)),
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
    params = _params({"pair_labels": labels, "pair_names": names, "pair_verdicts": present})
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
