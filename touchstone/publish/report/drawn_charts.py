"""The charts of the page, as Vega-Lite with packed data; how they look belongs in `touchstone.publish.charts`."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from touchstone.contracts import resolve
from touchstone.progress import report_warning
from touchstone.publish.charts import CHARTS, Chart, NothingToDraw, ThemeName
from touchstone.publish.report.run import ReportedRun
from touchstone.text import visible

# A chart with more rows is drawn on a canvas: as many elements would make the page slow.
_CANVAS_FROM = 3_000

Spec = dict[str, Any]


@dataclass(frozen=True)
class DrawnChart:
    """A chart without title and theme, which the page adds. `data` has the columns and rows of its datasets."""

    name: str
    title: str
    caption: str
    spec: Spec
    data: dict[str, tuple[list[str], list[list[Any]]]]

    @property
    def packed(self) -> dict[str, Any]:
        """The chart as the script reads it."""
        rows = sum(len(rows) for _, rows in self.data.values())
        return {"spec": self.spec, "packed": self.data, "canvas": rows > _CANVAS_FROM}


def drawn_charts(run: ReportedRun, names: Sequence[str]) -> Iterator[DrawnChart]:
    """The charts of these names that there is something to draw for."""
    for chart in map(CHARTS.__getitem__, names):
        if not run.has(chart.table):
            continue
        try:
            yield _packed(chart, _vega_lite(chart, run))
        except NothingToDraw:
            continue
        except Exception as error:  # one chart less is no reason to have no report
            report_warning(f"the report lacks the chart '{chart.name}': {type(error).__name__}: {error}")


def themes() -> dict[str, Spec]:
    """The look of all charts, light and dark."""
    from touchstone.publish.charts.theme import config

    return {name: {**config(name), "background": "transparent"} for name in get_args(ThemeName)}


def vega_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    from touchstone.publish.charts.rendering import javascript

    return javascript()


def _vega_lite(chart: Chart, run: ReportedRun) -> Spec:
    """A chart without a theme: checking the theme with every chart takes as long as the rest."""
    from altair.utils.schemapi import debug_mode

    from touchstone.publish.charts.rendering import vega_lite

    beside = {option: run.scan(table) for option, table in chart.beside.items() if run.has(table)}
    with debug_mode(False):
        return vega_lite(resolve(chart.draw)(run.scan(chart.table), **beside))


def _packed(chart: Chart, spec: Spec) -> DrawnChart:
    """The chart without title and caption, which the page shows as text, and with its data as columns and rows."""
    given = spec.pop("title", None) or {}
    given = given if isinstance(given, dict) else {"text": given}
    words = [given.get(part, "") for part in ("text", "subtitle")]
    text, caption = (" ".join(part) if isinstance(part, list) else str(part) for part in words)
    spec.pop("config", None)
    parsed = dict(_take_formats(spec))
    data = {key: _columns(rows, parsed.get(key, {})) for key, rows in spec.pop("datasets", {}).items()}
    return DrawnChart(chart.name, visible(text or chart.title), visible(caption), spec, data)


def _take_formats(node: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """Take the formats of text out of a chart: the browser would compile a parser, which the page forbids.

    Yields the name of each dataset with the types of its columns.
    """
    if isinstance(node, list):
        for each in node:
            yield from _take_formats(each)
    elif isinstance(node, dict):
        data = node.get("data")
        if isinstance(data, dict) and data.get("format", {}).get("type") == "csv":
            yield data["name"], data.pop("format").get("parse", {})
        for key, each in node.items():
            if key != "datasets":
                yield from _take_formats(each)


def _columns(rows: str | list[dict[str, Any]], types: dict[str, str]) -> tuple[list[str], list[list[Any]]]:
    """A dataset, given as CSV or as objects, as the names of its columns and its rows."""
    if isinstance(rows, str):
        names, *lines = csv.reader(io.StringIO(rows))
        is_number = [types.get(name) == "number" for name in names]
        return names, [
            [_number(cell) if number else cell for cell, number in zip(line, is_number, strict=True)] for line in lines
        ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return names, [[row.get(name) for name in names] for row in rows]


def _number(cell: str) -> float | int | None:
    if not cell:
        return None
    value = float(cell)
    return int(value) if value.is_integer() else value
