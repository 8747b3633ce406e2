"""The charts of the page as pictures in it, which need no script; their design is in `touchstone.publish.charts`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from touchstone.progress import report_warning
from touchstone.publish.charts import CHARTS, Chart, NothingToDraw
from touchstone.publish.report.run import ReportedRun
from touchstone.text import visible

# The best models of a grid, as many as can be read; the caption says how many more there are. A grid of 150 models
# takes 13 s to draw and thousands of elements.
_GRIDS = ("pairwise_verdicts", "problem_heatmap", "suite_heatmap", "failure_classes")
_MODELS_OF_GRID = 30
_TAG = re.compile("<[^<>]*>")
_ID = re.compile(r'(?<=\sid=")[\w-]+(?=")')


@dataclass(frozen=True)
class DrawnChart:
    """A chart: the page shows title and caption as text, and `picture` is the rest as HTML."""

    name: str
    title: str
    caption: str
    picture: str


def drawn_charts(run: ReportedRun, names: Sequence[str]) -> Iterator[DrawnChart]:
    """The charts of these names for which the run has data."""
    for chart in map(CHARTS.__getitem__, names):
        if not run.has(chart.table):
            continue
        try:
            yield _draw(chart, run)
        except NothingToDraw:
            continue
        except Exception as error:  # one chart less is no reason to have no report
            report_warning(f"the report lacks the chart '{chart.name}': {type(error).__name__}: {error}")


def _draw(chart: Chart, run: ReportedRun) -> DrawnChart:
    from touchstone.publish.charts.rendering import svg
    from touchstone.publish.charts.theme import config
    from touchstone.publish.charts.vega import finished

    beside = {option: run.scan(table) for option, table in chart.beside.items() if run.has(table)}
    limited: dict[str, Any] = {"top": _MODELS_OF_GRID} if chart.name in _GRIDS else {}
    spec = resolve_name(chart.draw)(run.scan(chart.table), **beside, **limited)
    title, caption = visible(spec["title"]["text"]), visible(" ".join(spec["title"]["subtitle"]))
    untitled = finished({name: part for name, part in spec.items() if name != "title"})
    looks = config("light") | {"background": "transparent"}
    picture = svg({**untitled, "config": looks, "description": f"{title}. {caption}"})
    return DrawnChart(chart.name, title, caption, _with_own_ids(picture, f"chart-{chart.name}"))


def _with_own_ids(svg: str, prefix: str) -> str:
    """The picture with ids that no other chart of the page has, and that do not depend on what was drawn before.

    >>> _with_own_ids('<clipPath id="clip_7"/><g clip-path="url(#clip_7)">id="clip_7"</g>', "a")
    '<clipPath id="a-1"/><g clip-path="url(#a-1)">id="clip_7"</g>'
    """
    found = dict.fromkeys(name for tag in _TAG.findall(svg) for name in _ID.findall(tag))
    own = {name: f"{prefix}-{place}" for place, name in enumerate(found, 1)}

    def renamed(tag: "re.Match[str]") -> str:
        named = _ID.sub(lambda each: own[each[0]], tag[0])
        return re.sub(r"(?<=url\(#)[\w-]+(?=\))", lambda each: own.get(each[0], each[0]), named)

    return _TAG.sub(renamed, svg) if own else svg
