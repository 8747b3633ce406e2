"""The report as one HTML page: what goes where is in `templates`, what it says in the modules beside this one."""

import functools
import json
import math
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import jinja2
import numpy as np
import polars as pl

from touchstone import __version__
from touchstone.publish.charts.theme import dark_style
from touchstone.publish.report.assets import (
    content_security_policy,
    datatables_script,
    datatables_style,
    escaped_for_script,
)
from touchstone.publish.report.cases import Case, pick, with_attempts
from touchstone.publish.report.drawn_charts import drawn_charts
from touchstone.publish.report.grids import Grid
from touchstone.publish.report.method import method
from touchstone.publish.report.run import ReportedRun
from touchstone.publish.report.sections import sections
from touchstone.publish.report.summary import headline, summary
from touchstone.text import visible

_TEMPLATES = "touchstone.publish.report", "templates"
# Cells of the matrix of models and problems that a page holds; with more, only the hardest problems are in it.
_MAX_CELLS = 200_000
# On paper, charts keep their light colours.
_DARK_CHARTS = f"@media screen and (prefers-color-scheme: dark) {{\n{dark_style('.chart')}}}\n"


def page(run: ReportedRun, cases_bytes: int) -> str:
    """The whole page."""
    environment = _environment()
    picked = pick(run)
    cases, rendered = _cases_that_fit(environment, run, picked, cases_bytes)
    run.case_links.update({case.key: f"#case-{place}" for place, case in enumerate(cases)})
    parts, how = sections(run), list(method(run))
    charts = {section.id: list(drawn_charts(run, section.charts)) for section in parts}
    scripts = {"datatables": datatables_script(), "report": _own("report.js")}
    text = environment.get_template("report.html.j2").render(
        title=visible(run.name),
        size=_size(run),
        headline=headline(run),
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
        policy=content_security_policy(*scripts.values()),
        styles=[datatables_style(), _own("report.css"), _DARK_CHARTS],
        data=_json(_data(run, [*(grid for part in parts for grid in part.grids), *how])),
    )
    # A file name may hold bytes that are not UTF-8 and could not be written.
    return text.encode("utf-8", "replace").decode()


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader(*_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _own(name: str) -> str:
    return (files(_TEMPLATES[0]) / _TEMPLATES[1] / name).read_text(encoding="utf-8")


def _size(run: ReportedRun) -> str:
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


# What the script draws


def _data(run: ReportedRun, grids: Sequence[Grid]) -> dict[str, Any]:
    return {
        "grids": {
            grid.id: {
                "kinds": [column.kind for column in grid.columns],
                "rows": [[cell.packed for cell in row] for row in grid.rows],
            }
            for grid in grids
        },
        "models": _matrix(run),
    }


def _matrix(run: ReportedRun) -> dict[str, Any]:
    """Every model's attempts n and passes c at every problem, the hardest problems first.

    c is -1 for a problem without a decided attempt; n is one number if it is the same for all others. `links` has the
    cases that the page shows, as model, problem and case.
    """
    sides = {key: place for place, key in enumerate(run.sides)}
    frontier = (
        run.scan("problem_frontier").select("oid", "mean_pass_rate").sort("mean_pass_rate", "oid", nulls_last=True)
    )
    every = frontier.collect()
    shown = every.head(max(_MAX_CELLS // max(len(sides), 1), 1))
    places = shown.lazy().select("oid").with_row_index("place")
    cells = run.scan("problem_statistics").select("model", "tier", "oid", "n", "c").join(places, on="oid")
    ranks = pl.LazyFrame(run.sides, schema={"model": pl.String, "tier": pl.String}, orient="row").with_row_index("side")
    decided = (
        cells.filter(pl.col("n") > 0).join(ranks, on=["model", "tier"]).select("side", "place", "n", "c").collect()
    )
    n, c = (np.full((len(sides), shown.height), -1) for _ in range(2))
    where = decided["side"].to_numpy(), decided["place"].to_numpy()
    n[where], c[where] = decided["n"].to_numpy(), decided["c"].to_numpy()
    known = {oid: place for place, oid in enumerate(shown["oid"])}
    return {
        "names": [visible(f"{model} {tier}" if run.has_tiers else model) for model, tier in sides],
        "problems": [visible(oid) for oid in shown["oid"]],
        "means": [None if rate is None or math.isnan(rate) else round(rate, 3) for rate in shown["mean_pass_rate"]],
        "n": [_constant(row) for row in n.tolist()],
        "c": c.tolist(),
        "links": [
            [sides[model, tier], known[oid], link]
            for (model, tier, oid), link in run.case_links.items()
            if (model, tier) in sides and oid in known
        ],
        "left_out": every.height - shown.height,
    }


def _constant(attempts: list[int]) -> int | list[int]:
    """The number of attempts, if it is the same for every problem that has any."""
    different = {count for count in attempts if count >= 0}
    return different.pop() if len(different) == 1 else attempts


def _json(value: object) -> str:
    return escaped_for_script(
        json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    )
