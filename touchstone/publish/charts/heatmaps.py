"""Heat maps: suites and problems by model, both sorted by difficulty, and the classes of failed attempts.

A row per model, a column per suite, class or problem, a colour and where there is room the figure.
"""

from typing import Any

import polars as pl

from touchstone.publish.charts import NothingToDraw, frames, vega
from touchstone.publish.charts.theme import RAMP
from touchstone.text import counted, visible
from touchstone.vocabulary import CLASSES, PASS_CLASS

# More rows or columns than these would not fit a page, nor their cells a page's size.
MAX_ROWS, MAX_COLUMNS = 150, 100
_WITH_FIGURES = 16
_COMFORTABLE = 40
# Letters that fit above a column, and those that fit when they are turned.
_SHORT, _COLUMN_LENGTH = 9, 24
# The share of the ramp's length from which dark text is easier to read than light text, on cividis.
_BRIGHT = 0.55


def grid(
    cells: pl.DataFrame,
    row_names: list[str],
    column_names: list[str],
    *,
    legend: str,
    form: str,
    tooltip: list[vega.Spec],
    top: float = 1.0,
) -> vega.Spec:
    """Cells `row`, `column` (numbers of a name), `value` and what the tooltips need, coloured from 0 to `top`.

    Names are kept once and looked up, as `row_name` and `column_name`, so that a large grid is as small as its figures.
    """
    row_labels = frames.distinct_labels(row_names)
    column_labels = frames.distinct_labels(
        column_names, frames.LABEL_LENGTH if len(column_names) > _COMFORTABLE else _COLUMN_LENGTH
    )
    rows, columns = list(row_labels.values()), list(column_labels.values())
    base = (
        vega.view(frames.numbers(cells))
        .transform(lookup="row", **{"from": _names("row", row_labels)})
        .transform(lookup="column", **{"from": _names("column", column_labels)})
        .encode(
            x=vega.field("column_label:N", sort=columns, title=None, axis=_column_axis(columns)),
            y=vega.field("row_label:N", sort=rows, title=None, axis=_row_axis(rows)),
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
        texts = base.transform(filter="isValid(datum.value)").mark(
            "text", fontSize=9 if len(rows) > _COMFORTABLE else 11
        )
        layers.append(texts.encode(text=vega.field("value:Q", format=form), color=ink))
    width = 58 if len(columns) <= _WITH_FIGURES else 16 if len(columns) <= _COMFORTABLE else 7
    height = 22 if len(rows) <= _COMFORTABLE else 12
    return vega.layer(*layers, width=vega.step(width), height=vega.step(height))


def _names(field: str, labels: dict[str, str]) -> vega.Spec:
    """What the cells' numbers stand for: the label on the axis, and the whole name for the tooltip."""
    known = [
        {field: place, f"{field}_label": label, f"{field}_name": visible(name)}
        for place, (name, label) in enumerate(labels.items())
    ]
    return {"data": vega.Rows(pl.DataFrame(known)), "key": field, "fields": [f"{field}_label", f"{field}_name"]}


def _row_axis(rows: list[str]) -> vega.Spec:
    small = len(rows) > _COMFORTABLE
    return {"grid": False, "ticks": False, "domain": False, "labelPadding": 6, "labelFontSize": 9 if small else 11}


def _column_axis(columns: list[str]) -> vega.Spec | None:
    if len(columns) > _COMFORTABLE:
        return None
    if len(columns) > _WITH_FIGURES:
        turn: dict[str, Any] = {"labelAngle": -90}
    else:
        turn = {"labelAngle": -35 if max(map(len, columns)) > _SHORT else 0}
    return dict(orient="top", grid=False, ticks=False, domain=False, labelPadding=6, **turn)


_FAILURES = (*(name for name in CLASSES if name != PASS_CLASS), "other")


def suite_heatmap(frame: pl.LazyFrame, *, top: int = MAX_ROWS, settings: pl.LazyFrame | None = None) -> vega.Spec:
    """The score of every model in every suite, the best model on top, the hardest suite on the left."""
    every = frames.side_rows(frame, "suite_scores", "suite", "cases", "passed", "ci_method", "ci_units")
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
    every = frames.side_rows(frame, "suite_scores", "cases", "class_none", *counts)
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
    cells = frames.side_rows(frame, "problem_statistics", "oid", "n", "c")
    undecided = cells.filter(pl.col("n") == 0).height
    cells = cells.filter(pl.col("n") > 0).with_columns(value=pl.col("c") / pl.col("n"))
    if cells.is_empty():
        raise NothingToDraw("nothing to draw: no problem of the table 'problem_statistics' has a decided attempt")
    problems, noun = _order(cells, "oid"), frames.side_noun(cells)
    sides, rest = frames.first_rows(_order(cells, "side", descending=True), top, "problem_statistics", noun)
    merged = problems.height > MAX_COLUMNS
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
    joined = cells.join(groups.select("oid", "group"), on="oid")
    merged = joined.group_by("side", "group").agg(pl.col("value").mean(), pl.col("n", "c").sum())
    return merged.with_columns(
        column=pl.col("group").replace_strict(dict(enumerate(names)), return_dtype=pl.String)
    ), names


def _order(cells: pl.DataFrame, column: str, *, descending: bool = False) -> pl.DataFrame:
    """The names in a column by the mean of their cells."""
    means = cells.group_by(column).agg(pl.col("value").mean())
    return means.sort("value", column, descending=[descending, False], nulls_last=True)


def _grid(
    cells: pl.DataFrame,
    column: str,
    rows: list[str],
    columns: list[str],
    *,
    legend: str,
    form: str,
    tips: dict[str, str],
    top: float = 1.0,
) -> vega.Spec:
    places = (pl.col("side").is_in(rows)) & pl.col(column).is_in(columns)
    shown = cells.filter(places).select(
        pl.col("side")
        .replace_strict({name: place for place, name in enumerate(rows)}, return_dtype=pl.Int64)
        .alias("row"),
        pl.col(column)
        .replace_strict({name: place for place, name in enumerate(columns)}, return_dtype=pl.Int64)
        .alias("column"),
        *tips,
    )
    return grid(
        shown.sort("row", "column"),
        rows,
        columns,
        legend=legend,
        form=form,
        tooltip=frames.tooltip(row_name="model", column_name=column if column != "column" else "problem", **tips),
        top=top,
    )
