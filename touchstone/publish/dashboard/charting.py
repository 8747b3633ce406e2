"""The charts of `publish.charts`, drawn from the tables under the filters."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import polars as pl

from touchstone.publish.dashboard.selection import Selection

_CHARTS = "touchstone.publish.charts"


def chart_titles() -> dict[str, str]:
    """The names of the charts by their titles."""
    if find_spec(_CHARTS) is None:
        return {}
    return {chart.title: name for name, chart in import_module(_CHARTS).CHARTS.items()}


def chart_rows(selection: Selection, name: str) -> pl.LazyFrame:
    """The table that a chart shows, under the filters."""
    return selection.frame(import_module(_CHARTS).CHARTS[name].table)


def chart(selection: Selection, name: str, theme: str) -> Any:
    """A chart of the selection in Altair, in the theme `light` or `dark`."""
    return import_module(_CHARTS).draw(name, chart_rows(selection, name), theme=theme)


def chart_svg(selection: Selection, name: str) -> bytes:
    """A chart of the selection as SVG, in the colours of paper."""
    svg: str = import_module(f"{_CHARTS}.rendering").svg(chart(selection, name, "light"))
    return svg.encode()
