"""Heat maps: a row per model, a column per suite, class or problem, a colour and where there is room the figure."""

from typing import Any

import polars as pl

from touchstone.publish.charts import vega
from touchstone.publish.charts.frames import LABEL_LENGTH, distinct_labels, numbers
from touchstone.publish.charts.theme import RAMP
from touchstone.text import visible

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
    x: dict[str, Any] | None = None,
    top: float = 1.0,
) -> vega.Spec:
    """Cells `row`, `column` (numbers of a name), `value` and what the tooltips need, coloured from 0 to `top`.

    Names are kept once and looked up, as `row_name` and `column_name`, so that a large grid is as small as its figures.
    """
    row_labels = distinct_labels(row_names)
    column_labels = distinct_labels(column_names, LABEL_LENGTH if len(column_names) > _COMFORTABLE else _COLUMN_LENGTH)
    rows, columns = list(row_labels.values()), list(column_labels.values())
    base = (
        vega.view(numbers(cells))
        .transform(lookup="row", **{"from": _names("row", row_labels)})
        .transform(lookup="column", **{"from": _names("column", column_labels)})
        .encode(
            x=vega.field("column_label:N", sort=columns, title=None, axis=_column_axis(columns), **(x or {})),
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
