"""The charts of the page, as Vega-Lite with packed data; how they look belongs in `touchstone.publish.charts`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from touchstone.contracts import resolve
from touchstone.progress import report_warning
from touchstone.publish.charts import CHARTS, Chart, NothingToDraw, ThemeName
from touchstone.publish.charts.vega import Spec, with_named_rows
from touchstone.publish.report.run import ReportedRun
from touchstone.text import visible

# A chart with more rows is drawn on a canvas: as many elements would make the page slow.
_CANVAS_FROM = 3_000


@dataclass(frozen=True)
class DrawnChart:
    """A chart without title and theme, which the page adds. `data` has the columns and rows of its datasets."""

    name: str
    title: str
    caption: str
    spec: Spec
    data: dict[str, tuple[list[str], list[tuple[Any, ...]]]]

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
    """A chart without a theme, which is the same for all."""
    beside = {option: run.scan(table) for option, table in chart.beside.items() if run.has(table)}
    drawn: Spec = resolve(chart.draw)(run.scan(chart.table), **beside)
    return drawn


def _packed(chart: Chart, spec: Spec) -> DrawnChart:
    """The chart without title and caption, which the page shows as text, and with its data as columns and rows.

    No data is left as CSV: the browser would compile a parser, which the page forbids.
    """
    title = spec["title"]
    shown, tables = with_named_rows({key: part for key, part in spec.items() if key != "title"}, as_csv=False)
    data = {name: (rows.frame.columns, rows.frame.rows()) for name, rows in tables.items()}
    return DrawnChart(chart.name, visible(title["text"]), visible(" ".join(title["subtitle"])), shown, data)
