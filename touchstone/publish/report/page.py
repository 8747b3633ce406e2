"""The report as one HTML page: what goes where is in `templates`, what it says in the modules beside this one."""

import base64
import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.metrics.keys import counting_problems
from touchstone.progress import report_warning
from touchstone.publish.charts import CHARTS, Chart, NothingToDraw
from touchstone.publish.charts.rendering import DRAW, script_json, svg
from touchstone.publish.charts.vega import config, dark_style, finished
from touchstone.publish.report.cases import Case, pick, with_attempts
from touchstone.publish.report.sections import sections
from touchstone.publish.report.summary import headline, summary, why_they_fail
from touchstone.publish.reported_run import ReportedRun
from touchstone.publish.result_tables import method
from touchstone.tables.presentation import ResultTable
from touchstone.text import counted, visible
from touchstone.vocabulary import VERSION

_TEMPLATES = "touchstone.publish.report", "templates"
# Cells of the matrix of models and problems that a page holds; with more, only the hardest problems are in it.
_MAX_CELLS = 200_000
# On paper, charts keep their light colours.
DARK_CHARTS = f"@media screen and (prefers-color-scheme: dark) {{\n{dark_style('.chart')}}}\n"
_EXPORTS = re.compile(r"export\s*\{([^}]*)\};?")
# The best models of a grid, as many as can be read; the caption says how many more there are. A grid of 150 models
# takes 13 s to draw and thousands of elements.
_GRIDS = ("pairwise_verdicts", "problem_heatmap", "suite_heatmap", "failure_classes")
_MODELS_OF_GRID = 30
_TAG = re.compile("<[^<>]*>")
_ID = re.compile(r'(?<=\sid=")[\w-]+(?=")')


def page(run: ReportedRun, cases_bytes: int) -> str:
    """The whole page."""
    picked = pick(run)
    cases, rendered = _cases_that_fit(run, picked, cases_bytes)
    run.case_links.update({case.key: f"#case-{place}" for place, case in enumerate(cases)})
    parts, how = sections(run), list(method(run))
    charts = {section.id: list(drawn_charts(run, section.charts)) for section, _ in parts}
    scripts = {"datatables": datatables_script(), "report": own_file("report.js")}
    return render(
        "report.html.j2",
        title=visible(run.name),
        size=_size(run),
        headline=headline(run),
        why=why_they_fail(run),
        snapshot=run.snapshot,
        version=VERSION,
        sentences=summary(run),
        sections=parts,
        charts=charts,
        method=how,
        cases=list(zip(cases, rendered, strict=True)),
        cases_left_out=len(picked) - len(cases),
        cases_kb=cases_bytes // 1000,
        scripts=scripts,
        policy=content_security_policy(*scripts.values()),
        styles=[datatables_style(), own_file("report.css"), DARK_CHARTS],
        data=script_json(_data(run, [*(table for _, tables in parts for table in tables), *how])),
    )


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader(*_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def render(template: str, **values: object) -> str:
    """A page, in which all text is escaped. A file name may hold bytes that are not UTF-8 and could not be written."""
    return _environment().get_template(template).render(values).encode("utf-8", "replace").decode()


def own_file(name: str) -> str:
    """A style sheet or script of ours."""
    return (files(_TEMPLATES[0]) / _TEMPLATES[1] / name).read_text(encoding="utf-8")


def _size(run: ReportedRun) -> str:
    models = len({model for model, _ in run.sides})
    problems = counting_problems(run.scan("problems")).select(pl.len()).collect().item()
    return f"{counted(models, 'model')}, {counted(problems, 'problem')}"


def _cases_that_fit(run: ReportedRun, picked: Sequence[Any], limit: int) -> tuple[list[Case], list[str]]:
    """As many of the picked cases as the limit in bytes allows, and their HTML."""
    template, left = _environment().get_template("case.html.j2"), limit
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


# What the script draws


def _data(run: ReportedRun, tables: Sequence[ResultTable]) -> dict[str, Any]:
    return {
        "grids": {
            table.id: {"kinds": table.page_kinds, "rows": [[cell.packed for cell in row] for row in table.page_rows]}
            for table in tables
        },
        "models": _matrix(run),
    }


def _matrix(run: ReportedRun) -> dict[str, Any]:
    """Every model's attempts n and passes c at every problem, the hardest problems first.

    c is -1 for a problem without a decided attempt; n is one number if it is the same for all others. `links` has the
    cases that the page shows, as model, problem and case.
    """
    sides = {key: place for place, key in enumerate(run.sides)}
    frontier = run.scan("problem_frontier").select("oid", "mean_pass_rate")
    hardest_first = frontier.sort("mean_pass_rate", "oid", nulls_last=True)
    shown = hardest_first.head(max(_MAX_CELLS // max(len(sides), 1), 1)).collect(engine="streaming")
    places = shown.lazy().select("oid").with_row_index("place")
    cells = run.scan("problem_statistics").select("model", "tier", "oid", "n", "c").join(places, on="oid")
    ranks = pl.LazyFrame(run.sides, schema={"model": pl.String, "tier": pl.String}, orient="row").with_row_index("side")
    decided = (
        cells.filter(pl.col("n") > 0)
        .join(ranks, on=["model", "tier"])
        .select("side", "place", "n", "c")
        .collect(engine="streaming")
    )
    n, c = (np.full((len(sides), shown.height), -1) for _ in range(2))
    where = decided["side"].to_numpy(), decided["place"].to_numpy()
    n[where], c[where] = decided["n"].to_numpy(), decided["c"].to_numpy()
    known = {oid: place for place, oid in enumerate(shown["oid"])}
    return {
        "names": [visible(run.side_name(*side)) for side in sides],
        "problems": [visible(oid) for oid in shown["oid"]],
        "means": [None if rate is None or math.isnan(rate) else round(rate, 3) for rate in shown["mean_pass_rate"]],
        "n": [_constant(row) for row in n.tolist()],
        "c": c.tolist(),
        "links": [
            [sides[model, tier], known[oid], link]
            for (model, tier, oid), link in run.case_links.items()
            if (model, tier) in sides and oid in known
        ],
        "left_out": frontier.select(pl.len()).collect().item() - shown.height,
    }


def _constant(attempts: list[int]) -> int | list[int]:
    """The number of attempts, if it is the same for every problem that has any."""
    different = {count for count in attempts if count >= 0}
    return different.pop() if len(different) == 1 else attempts


# Charts, as pictures that need no script


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
        except Exception as error:  # the report is worth having without this chart
            report_warning(f"the report lacks the chart '{chart.name}': {type(error).__name__}: {error}")


def _draw(chart: Chart, run: ReportedRun) -> DrawnChart:
    beside = {option: run.scan(table) for option, table in chart.beside.items() if run.has(table)}
    limited: dict[str, Any] = {"top": _MODELS_OF_GRID} if chart.name in _GRIDS else {}
    spec = DRAW[chart.name](run.scan(chart.table), **beside, **limited)
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


# Scripts and styles, all from installed packages, and the policy that lets the browser run only them


@cache
def datatables_script() -> str:
    """DataTables as itables ships it, with `window.DataTable` in place of its exports."""
    bundle = _itables_file("dt_bundle.js")
    exports = _EXPORTS.search(bundle)
    named = dict(each.split(" as ")[::-1] for each in exports[1].split(",")) if exports else {}
    if "default" not in named:
        raise TouchstoneError(f"itables {version('itables')}: its bundle has no default export; install version 2.9")
    return "(()=>{" + _EXPORTS.sub(f"window.DataTable={named['default']};", bundle) + "\n})();"


@cache
def datatables_style() -> str:
    """The style sheet that goes with it."""
    return _itables_file("dt_bundle.css")


def _itables_file(name: str) -> str:
    """A file that itables ships. The package itself is not imported: that takes longer than drawing the page."""
    found = find_spec("itables")
    if found is None or found.origin is None:
        raise TouchstoneError("itables is not installed; install touchstone again")
    return (Path(found.origin).parent / "html" / name).read_text(encoding="utf-8")


def content_security_policy(*scripts: str) -> str:
    """The browser may run these scripts and nothing else, and may not ask for anything."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'" for each in scripts
    )
    styles, images = "style-src 'unsafe-inline'", "img-src data:"
    return f"default-src 'none'; script-src {hashes}; {styles}; {images}; base-uri 'none'; form-action 'none'"
