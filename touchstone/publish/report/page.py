"""The report as one HTML page: what goes where is in `templates`, what it says in the modules beside this one."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import jinja2
import polars as pl

from touchstone import __version__
from touchstone.contracts import resolve
from touchstone.progress import report_warning
from touchstone.publish.report.assets import (
    content_security_policy,
    datatables_script,
    datatables_style,
    escaped_for_script,
    vega_script,
)
from touchstone.publish.report.cases import Case, pick, with_attempts
from touchstone.publish.report.grids import Grid
from touchstone.publish.report.method import method
from touchstone.publish.report.run import ReportedRun
from touchstone.publish.report.sections import Section, sections
from touchstone.publish.report.summary import summary
from touchstone.text import visible

_TEMPLATES = "touchstone.publish.report", "templates"
_CHARTS = "touchstone.publish.charts"
# Cells of the matrix of models and problems that a page holds; with more, only the hardest problems are in it.
_MAX_CELLS = 200_000
# A chart with more rows is drawn on a canvas: as many elements would make the page slow.
_CANVAS_FROM = 3_000


@dataclass(frozen=True)
class DrawnChart:
    """A chart as Vega-Lite without title and theme, which the page adds."""

    name: str
    title: str
    caption: str
    spec: dict[str, Any]


def page(run: ReportedRun, cases_bytes: int) -> str:
    """The whole page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(*_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    picked = pick(run)
    cases, rendered = _cases_that_fit(environment, run, picked, cases_bytes)
    run.case_links.update({case.key: f"#case-{place}" for place, case in enumerate(cases)})
    parts, how = sections(run), list(method(run))
    charts = {section.id: list(_charts(run, section)) for section in parts}
    drawn = [chart for each in charts.values() for chart in each]
    scripts = {"datatables": datatables_script(), "vega": vega_script() if drawn else "", "report": _own("report.js")}
    text = environment.get_template("report.html.j2").render(
        title=_title(run),
        snapshot=run.snapshot,
        version=__version__,
        sentences=summary(run),
        sections=parts,
        charts=charts,
        method=how,
        cases=list(zip(cases, rendered, strict=True)),
        cases_left_out=len(picked) - len(cases),
        cases_kb=cases_bytes // 1000,
        scripts=scripts,
        policy=content_security_policy(*(script for script in scripts.values() if script)),
        styles=[datatables_style(), _own("report.css")],
        data=_json(_data(run, [*(grid for part in parts for grid in part.grids), *how], drawn)),
    )
    # A file name may hold bytes that are not UTF-8 and could not be written.
    return text.encode("utf-8", "replace").decode()


def _own(name: str) -> str:
    return (files(_TEMPLATES[0]) / _TEMPLATES[1] / name).read_text(encoding="utf-8")


def _title(run: ReportedRun) -> str:
    models, problems = len({model for model, _ in run.sides}), run.scan("problems").select(pl.len()).collect().item()
    return f"{models:,} model{'s' * (models != 1)}, {problems:,} problem{'s' * (problems != 1)}"


def _cases_that_fit(
    environment: jinja2.Environment, run: ReportedRun, picked: Sequence[Any], limit: int
) -> tuple[list[Case], list[str]]:
    """As many of the picked cases as the limit in bytes allows, and their HTML."""
    template, left = environment.get_template("case.html.j2"), limit
    cases: list[Case] = []
    rendered: list[str] = []
    for case in with_attempts(run, picked) if limit else ():
        text = template.render(case=case, place=len(cases))
        left -= len(text.encode("utf-8", "replace"))
        if left < 0:
            break
        cases.append(case)
        rendered.append(text)
    return cases, rendered


def _charts(run: ReportedRun, section: Section) -> Iterator[DrawnChart]:
    """The charts of a section that there is something to draw for."""
    if find_spec(_CHARTS) is None:
        return
    charts = import_module(_CHARTS)
    for name in section.charts:
        if name not in charts.CHARTS or not run.has(charts.CHARTS[name].table):
            continue
        try:
            spec = _vega_lite(charts.CHARTS[name].draw, run.scan(charts.CHARTS[name].table))
        except charts.NothingToDraw:
            continue
        except Exception as error:  # one chart less is no reason to have no report
            report_warning(f"the report lacks the chart '{name}': {type(error).__name__}: {error}")
            continue
        yield _without_title(name, charts.CHARTS[name].title, spec)


def _vega_lite(function: str, frame: pl.LazyFrame) -> dict[str, Any]:
    """A chart without a theme, which the page adds: checking the theme with every chart takes as long as the rest."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        spec: dict[str, Any] = import_module(f"{_CHARTS}.rendering").vega_lite(resolve(function)(frame))
    return spec


def _without_title(name: str, title: str, spec: dict[str, Any]) -> DrawnChart:
    """The chart with its title and caption taken out, which the page shows as text."""
    given = spec.pop("title", None) or {}
    given = given if isinstance(given, dict) else {"text": given}
    text, caption = (given.get(part, "") for part in ("text", "subtitle"))
    spec.pop("config", None)
    words = [" ".join(part) if isinstance(part, list) else str(part) for part in (text, caption)]
    return DrawnChart(name, visible(words[0] or title), visible(words[1]), spec)


# What the script draws


def _data(run: ReportedRun, grids: Sequence[Grid], charts: Sequence[DrawnChart]) -> dict[str, Any]:
    return {
        "grids": {
            grid.id: {
                "kinds": [column.kind for column in grid.columns],
                "rows": [[cell.packed for cell in row] for row in grid.rows],
            }
            for grid in grids
        },
        "charts": {chart.name: {"spec": chart.spec, "canvas": _rows(chart.spec) > _CANVAS_FROM} for chart in charts},
        "themes": _themes() if charts else {},
        "models": _matrix(run),
    }


def _rows(spec: dict[str, Any]) -> int:
    """The rows of data in a chart, wherever they are in it."""
    datasets = spec.get("datasets", {}).values()
    inline = [spec.get("data", {}).get("values", [])]
    return sum(len(rows) for rows in (*datasets, *inline))


def _themes() -> dict[str, Any]:
    config = import_module(f"{_CHARTS}.theme").config
    return {name: {**config(name), "background": "transparent"} for name in ("light", "dark")}


def _matrix(run: ReportedRun) -> dict[str, Any]:
    """Every model's attempts n and passes c at every problem, the hardest problems first.

    -1 is a problem without a decided attempt. `links` has the cases that the page shows, as model, problem and case.
    """
    sides = {key: place for place, key in enumerate(run.sides)}
    frontier = (
        run.scan("problem_frontier").select("oid", "mean_pass_rate").sort("mean_pass_rate", "oid", nulls_last=True)
    )
    every = frontier.collect()
    shown = every.head(max(_MAX_CELLS // max(len(sides), 1), 1))
    places = shown.lazy().select("oid").with_row_index("place")
    cells = run.scan("problem_statistics").select("model", "tier", "oid", "n", "c").join(places, on="oid")
    n, c = ([[-1] * shown.height for _ in sides] for _ in range(2))
    for model, tier, place, attempts, passes in cells.select("model", "tier", "place", "n", "c").collect().iter_rows():
        if (model, tier) in sides and attempts:
            n[sides[model, tier]][place], c[sides[model, tier]][place] = attempts, passes
    known = {oid: place for place, oid in enumerate(shown["oid"])}
    return {
        "names": [visible(f"{model} {tier}" if run.has_tiers else model) for model, tier in sides],
        "problems": [visible(oid) for oid in shown["oid"]],
        "means": [None if rate is None or math.isnan(rate) else round(rate, 3) for rate in shown["mean_pass_rate"]],
        "n": n,
        "c": c,
        "links": [
            [sides[model, tier], known[oid], link]
            for (model, tier, oid), link in run.case_links.items()
            if (model, tier) in sides and oid in known
        ],
        "left_out": every.height - shown.height,
    }


def _json(value: object) -> str:
    return escaped_for_script(
        json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    )
