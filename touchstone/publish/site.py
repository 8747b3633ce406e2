"""A site of static pages over several evaluations: a leaderboard across benchmarks, a page per model and per benchmark.

A benchmark is an output folder with its snapshots. Figures of benchmarks stand side by side, each with its interval,
and are never averaged: they measure different things. The layout of pages is in the report's `templates`.

```
index.html  models/<name>.html  benchmarks/<name>.html
reports/<name>.html     as the run drew it
touchstone-site.json    the SHA-256 of each file: the next site replaces these files and no others
```
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.errors import TouchstoneError, explain, shown
from touchstone.progress import track
from touchstone.publish.charts.rendering import script_json
from touchstone.publish.formats import require_new, saving_folder
from touchstone.publish.report import report_html
from touchstone.publish.report import sections as report
from touchstone.publish.report.page import (
    DARK_CHARTS,
    content_security_policy,
    drawn_charts,
    own_file,
    render,
)
from touchstone.publish.report.summary import headline
from touchstone.publish.reported_run import ReportedRun
from touchstone.regular_files import read_bytes, read_json_object
from touchstone.storage.files import file_mark, refuse_links_out
from touchstone.storage.output_folders import results_folder
from touchstone.storage.store import REPORT_PAGE
from touchstone.tables.presentation import (
    MAX_ROWS,
    REDUNDANT,
    Cell,
    Column,
    ResultTable,
    Row,
    count,
    name,
    prose,
    with_interval,
)
from touchstone.text import counted, some_of, visible
from touchstone.vocabulary import DEFAULT_SUITE, VERSION

INDEX = "index.html"
_MANIFEST = "touchstone-site.json"
_LONGEST_NAME = 60

_TITLE = "pass@k on each benchmark [confidence interval]"
_ORDER = (
    "Every benchmark has its own column, and there is no average over them: they measure different things. An empty "
    "cell means that the model was not evaluated there. In each tier, models that are unbeaten in more benchmarks come "
    "first, then those with higher figures from left to right."
)
_UNBEATEN = (
    "unbeaten: benchmarks in which no other model of the tier was shown to be better (paired by problem, adjusted for "
    "all pairs), of those with several models; where a benchmark is too small to show a difference, all are unbeaten"
)
_JUDGED = "Compare figures within a benchmark: what was judged, and how, differs between benchmarks."
_PAIRED = "better and worse than: models of the same tier, as paired tests show that are adjusted for all pairs"
_SAME_NAME = "A model is recognized by its name: the same name in two evaluations is taken for the same model."

# A section of a page with its tables.
Part = tuple[report.Section, Sequence[ResultTable]]


@dataclass(frozen=True)
class Benchmark:
    """One evaluation as the site shows it, under a name that no other one has.

    `figures` has a row for each model and tier: pass@k with the smallest k, the models of the tier shown to be worse
    (`beats`) and better (`beaten_by`), and whether there are others to compare it with (`compared`). `facts` is its row
    in the table of benchmarks.
    """

    name: str
    run: ReportedRun
    figures: Mapping[tuple[str, str], dict[str, Any]]
    suites: Sequence[str]
    facts: Row

    @property
    def measure(self) -> str:
        """The name of the figures and of their interval."""
        return "".join({f"pass@{row['k']}\u00a0[{self.run.confidence}\u00a0CI]" for row in self.figures.values()})

    def link(self, home: str = "../") -> Cell:
        """Its name, leading to its page; `home` leads to the first page of the site."""
        return Cell(self.name, link=f"{home}benchmarks/{file_name(self.name)}")


def write_site(folders: Sequence[Path], site: Path) -> list[str]:
    """Write the site of these output folders, or replace it; returns a line for each that cannot be read.

    The columns of benchmarks are in the order of the folders.
    """
    unread: list[str] = []
    benchmarks: list[Benchmark] = []
    with saving_folder(site, require_own) as scratch, track("benchmarks", len(folders)) as advance:
        for folder in {os.path.realpath(folder): folder for folder in folders}.values():
            try:
                benchmark = _read(folder, [each.name for each in benchmarks])
                pages = _benchmark_pages(benchmark)
            except Exception as error:  # the other folders are worth having without this one
                unread.append(_line(folder, error))
            else:
                _write(scratch, pages)
                benchmarks.append(benchmark)
            advance(1)
        if not benchmarks:
            raise TouchstoneError(f"there is nothing to show: {'; '.join(unread)}")
        models = sorted({model for each in benchmarks for model, _ in each.figures})
        _write(scratch, {f"models/{file_name(model)}": _model_page(model, benchmarks) for model in models})
        _write(scratch, {INDEX: _index(benchmarks, models, unread)})
        _write(scratch, {_MANIFEST: json.dumps(_digests(scratch), indent=1) + "\n"})
    return unread


def file_name(name: str) -> str:
    """The file name of the page of a name: readable, safe on every file system, and unique even if case does not count.

    >>> file_name("@cf/Atlas"), file_name("..")
    ('cf-atlas-87288a7d9915c7cafffe.html', '5ec1f7e700f37c3d0b29.html')
    """
    readable = re.sub(r"[^a-z0-9.]+", "-", name.lower())[:_LONGEST_NAME].strip("-.")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:20]
    return f"{readable}-{digest}.html".lstrip("-")


def _line(folder: Path, error: Exception) -> str:
    """Why a folder cannot be read, on one line that starts with the folder."""
    message = " ".join(str(error).split()) or type(error).__name__
    message = message if isinstance(error, TouchstoneError) else explain(message) or message
    return visible(shown(message if message.startswith(str(folder)) else f"{folder}: {message}"))


def _read(folder: Path, taken: Collection[str]) -> Benchmark:
    run = ReportedRun(results_folder(folder))
    title = visible(run.name)
    while title in taken:
        title += f" ({visible(shown(str(folder)))})"
    rows = run.table("pass_at_k").filter(pl.col("k") == pl.col("k").min()).sort("model", "tier")
    compared = (pl.len().over("tier") > 1) & pl.col("pass_at_k").is_not_null()
    figures = {
        (row["model"], row["tier"]): row | {"beats": [], "beaten_by": []}
        for row in rows.with_columns(compared=compared).iter_rows(named=True)
    }
    pairs = run.table("model_comparison").filter(pl.col("kind") == "models").sort("model_a", "model_b", "tier_a")
    for a, b, tier, verdict in pairs.select("model_a", "model_b", "tier_a", "verdict").iter_rows():
        if verdict in ("better", "worse"):  # it is on b
            winner, loser = (b, a) if verdict == "better" else (a, b)
            figures[winner, tier]["beats"].append(visible(loser))
            figures[loser, tier]["beaten_by"].append(visible(winner))
    judged = run.outcome_counts.select("validator", "fidelity").drop_nulls().unique().sort("validator", "fidelity")
    history = run.scan("history").select("made_at", "snapshot").unique().collect()
    suites = run.scan("problems").select(pl.col("suite").unique().sort()).head(MAX_ROWS).collect()["suite"]
    facts = {
        "models": rows["model"].n_unique(),
        "problems": rows["problems"].max(),
        "judged by": ", ".join(
            f"{one} outcomes" if one == how else f"{one} ({how})" for one, how in judged.iter_rows()
        ),
        "snapshots": history.height,
        "latest": max(history["made_at"], default="")[:10],
        "headline": headline(run),
    }
    return Benchmark(title, run, figures, [visible(suite) for suite in suites if suite != DEFAULT_SUITE], facts)


# Pages


def _page(title: str, parts: Sequence[Part], run: ReportedRun | None = None, **more: object) -> str:
    """A page of sections, with the charts of the run that they name. `home` leads to the first page of the site."""
    charts = {each.id: list(drawn_charts(run, each.charts)) if run is not None else [] for each, _ in parts}
    values = {"home": "../", "lead": (), "made": "", "report": "", "search": "", **more}
    script = own_file("site.js") if values["search"] else ""
    return render(
        "site.html.j2",
        title=title,
        parts=parts,
        charts=charts,
        script=script,
        policy=content_security_policy(script),
        styles=[own_file("report.css"), DARK_CHARTS],
        version=VERSION,
        **values,
    )


def _part(id: str, title: str, intro: str, table: ResultTable, *charts: str) -> Part:
    return report.Section(id, title, intro, (), charts), [table]


def _index(benchmarks: Sequence[Benchmark], models: Sequence[str], unread: Sequence[str]) -> str:
    parts = [
        _part("leaderboard", "Leaderboard", _ORDER, _leaderboard(benchmarks)),
        _part("benchmarks", "Benchmarks", _JUDGED, _benchmark_table(benchmarks)),
    ]
    if unread:
        table = ResultTable("unread-table", "Folders", [prose("folder")], [{"folder": line} for line in unread])
        parts.append(_part("unread", "Not shown", "These folders cannot be read.", table))
    entries = [[visible(model), "model", f"models/{file_name(model)}"] for model in models]
    for each in benchmarks:
        page = each.link("").link
        entries += [[each.name, "benchmark", page], *([suite, f"suite of {each.name}", page] for suite in each.suites)]
    size = f"{counted(len(benchmarks), 'benchmark')}, {counted(len(models), 'model')}"
    return _page("Evaluations", parts, home="", made=size, search=script_json(entries))


def _leaderboard(benchmarks: Sequence[Benchmark]) -> ResultTable:
    """Models and tiers with the figure of every benchmark."""
    rows: list[dict[str, Any]] = []
    for model, tier in {side for each in benchmarks for side in each.figures}:
        cells = [each.figures.get((model, tier)) for each in benchmarks]
        unbeaten = [not row["beaten_by"] for row in cells if row is not None and row["compared"]]
        values = [math.inf if row is None or row["pass_at_k"] is None else -row["pass_at_k"] for row in cells]
        row = {"model": model, "tier": tier, "cells": cells, "order": (tier, -sum(unbeaten), values, model)}
        rows.append(row | {"unbeaten": f"{sum(unbeaten)} of {len(unbeaten)}" if unbeaten else None})

    def cell(place: int) -> Callable[[Row], Cell]:
        return lambda row: _estimate(row["cells"][place]) if row["cells"][place] is not None else Cell("")

    columns = [
        _model_column(""),
        _tier_column(rows),
        name("unbeaten"),
        *(Column(f"{each.name}: {each.measure}", cell(place)) for place, each in enumerate(benchmarks)),
    ]
    rows.sort(key=lambda row: row["order"])
    return ResultTable("leaderboard-table", _TITLE, columns, rows, notes=[_UNBEATEN])


def _model_column(home: str = "../") -> Column:
    def cell(row: Row) -> Cell:
        return Cell(visible(row["model"]), link=f"{home}models/{file_name(row['model'])}")

    return Column("model", cell, "name")


def _tier_column(rows: Sequence[Row]) -> Column:
    return name("tier", rank=0 if len({row["tier"] for row in rows}) > 1 else REDUNDANT)


def _estimate(row: Row) -> Cell:
    return Cell(with_interval(row, "pass_at_k", "", "{:.3f}"))


def _benchmark_table(benchmarks: Sequence[Benchmark]) -> ResultTable:
    columns = [
        Column("benchmark", lambda row: row["of"].link(""), "name"),
        count("models"),
        count("problems"),
        name("judged by"),
        count("snapshots"),
        name("latest"),
        Column("result", lambda row: Cell(row["headline"][0]), "text"),
    ]
    rows = [{**each.facts, "of": each} for each in benchmarks]
    return ResultTable("benchmarks-table", "How each benchmark was judged, and its result", columns, rows)


def _benchmark_pages(benchmark: Benchmark) -> dict[str, str]:
    """The page of a benchmark and its report, by their paths."""
    run, file = benchmark.run, file_name(benchmark.name)
    parts = report.sections(run, [each for each in report.SECTIONS if each.id in ("leaderboard", "trends")])
    for _, tables in parts:
        linked = [[_model_column() if each.header == "model" else each for each in table.columns] for table in tables]
        tables[:] = [replace(table, columns=columns) for table, columns in zip(tables, linked, strict=True)]
    refuse_links_out(run.folder, REPORT_PAGE)
    drawn = run.folder / REPORT_PAGE
    made = f"{counted(benchmark.facts['snapshots'], 'snapshot')}, judged by {benchmark.facts['judged by']}"
    lead, link = benchmark.facts["headline"], f"../reports/{file}"
    return {
        f"benchmarks/{file}": _page(benchmark.name, parts, run, lead=lead, made=made, report=link),
        f"reports/{file}": read_bytes(drawn).decode(errors="replace") if drawn.exists() else report_html(run.folder, 0),
    }


def _model_page(model: str, benchmarks: Sequence[Benchmark]) -> str:
    rows = [row | {"of": each} for each in benchmarks for row in each.figures.values() if row["model"] == model]

    def problems(row: Row) -> Cell:
        place = row["of"].run.sides.index((row["model"], row["tier"]))
        words = f"{row['attempted']:,} of {row['problems']:,}"
        return Cell(words, link=f"../reports/{file_name(row['of'].name)}#model-{place}")

    columns = [
        Column("benchmark", lambda row: row["of"].link(), "name"),
        _tier_column(rows),
        Column("figure", lambda row: Cell(row["of"].measure), "label"),
        Column("value", _estimate),
        Column("better than", lambda row: Cell(some_of(row["beats"]) or "-"), "text"),
        Column("worse than", lambda row: Cell(some_of(row["beaten_by"]) or "-"), "text"),
        Column("problems attempted", problems),
    ]
    table = ResultTable("figures-table", _TITLE, columns, rows, notes=[_PAIRED])
    return _page(visible(model), [_part("figures", "Benchmarks", _SAME_NAME, table)])


# Files


def _write(folder: Path, pages: Mapping[str, str]) -> None:
    for path, text in pages.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def _digests(folder: Path) -> dict[str, object]:
    """The SHA-256 of every file in a folder but the manifest; null for links and what else is not a file."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]
    return {
        path.relative_to(folder).as_posix(): None if path.is_symlink() or not path.is_file() else file_mark(path)[2]
        for path in found
        if path != folder / _MANIFEST
    }


def require_own(folder: Path) -> None:
    """Raise an error unless a folder is missing, empty, or a site in which every file is as it was written."""
    if folder.is_symlink() or not (folder / _MANIFEST).is_file():
        require_new(folder)
        return
    written = read_json_object(folder / _MANIFEST)
    foreign = [path for path, digest in _digests(folder).items() if digest is None or written.get(path) != digest]
    if foreign:
        raise TouchstoneError(
            f"{folder}: this folder has files that `touchstone site` did not write, or that were changed since "
            f"({visible(some_of(foreign))}); move them elsewhere or name another folder"
        )
