"""The charts of `publish.charts`, drawn from the tables under the filters."""

import polars as pl

from touchstone.publish.charts import CHARTS, spec
from touchstone.publish.charts.rendering import svg
from touchstone.publish.charts.vega import Spec
from touchstone.publish.dashboard.run_tables import RunTables
from touchstone.publish.dashboard.selection import Selection


def chart_titles(run: RunTables) -> dict[str, str]:
    """The names of the charts by their titles, of those whose table the run has."""
    return {chart.title: name for name, chart in CHARTS.items() if run.has(chart.table)}


def chart_rows(selection: Selection, name: str) -> pl.LazyFrame:
    """The table that a chart shows, under the filters."""
    return selection.frame(CHARTS[name].table)


def chart_svg(selection: Selection, name: str) -> bytes:
    """A chart of the selection as SVG, in the colours of paper."""
    return svg(_drawn(selection, name)).encode()


def _drawn(selection: Selection, name: str) -> Spec:
    others = CHARTS[name].beside.items()
    beside = {option: selection.frame(table) for option, table in others if selection.run.has(table)}
    return spec(name, chart_rows(selection, name), theme="light", **beside)
