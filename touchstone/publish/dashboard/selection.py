"""Addresses of the dashboard, and the tables of one run or snapshot under the filters that it states.

Models and tiers choose rows. Suites and slices choose attempts: then every figure is made again from the chosen ones,
by its function and with the settings of the run. A figure that refers to other models, such as
an adjusted p-value or the probability of being cheapest, refers to all models of the run, shown or not.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl

from touchstone.config import EvaluationConfig, IntervalSettings
from touchstone.errors import TouchstoneError
from touchstone.metrics.aggregates import overall
from touchstone.metrics.economics import cost_of_pass_by_entry
from touchstone.metrics.keys import ATTEMPT_KEY, MODEL_TIER, PROBLEM_KEY, counting_problems
from touchstone.metrics.pass_at_k import outcome_histogram, pass_at_k_of_problems, problems_by_tier, summarise
from touchstone.publish.export import scan_table
from touchstone.publish.views import require_tables, table_files
from touchstone.storage.files import refuse_links_out
from touchstone.storage.snapshots import list_snapshots, pin_names, pins
from touchstone.tables import TABLES, conform

# Columns of a problem that cannot be sliced by: its names, and those that have a filter of their own.
_NOT_SLICES = TABLES["problems"].dtypes.keys() - {"cluster"}
# A list of more values helps nobody; SQL can group by any column.
_MOST_VALUES = 200


class RunTables:
    """The tables in the folder of a run or snapshot. Data that every filter needs is read once and stays in memory."""

    def __init__(self, folder: Path) -> None:
        refuse_links_out(folder, "tables")
        # `tables` is a link that the next run replaces; resolved once, so that all tables come from the same run.
        self.folder, self.tables = folder, (folder / "tables").resolve()
        require_tables(self.tables)

    def scan(self, table: str) -> pl.LazyFrame:
        """A table of the run; an error if the run has none of that name."""
        return scan_table(self.tables, table)

    def has(self, table: str) -> bool:
        """Whether the run has the table: snapshots leave out those with the texts of fixes."""
        return table in table_files(self.tables)

    @cached_property
    def problems(self) -> pl.DataFrame:
        """The problems that count."""
        return counting_problems(self.scan("problems")).collect()

    @cached_property
    def problem_scores(self) -> pl.DataFrame:
        """The table `problem_scores`: a row per problem, from which most figures can be made again."""
        return self.scan("problem_scores").collect()

    @cached_property
    def groups(self) -> list[tuple[str, str]]:
        """Every model and tier, sorted, even those that attempted nothing."""
        rows = self.scan("pass_at_k").select(MODEL_TIER).unique().sort(MODEL_TIER).collect()
        return [(str(model), str(tier)) for model, tier in rows.iter_rows()]

    @property
    def models(self) -> list[str]:
        """The models by name."""
        return sorted({model for model, _ in self.groups})

    @property
    def tiers(self) -> list[str]:
        """The tiers by name."""
        return sorted({tier for _, tier in self.groups})

    @cached_property
    def suites(self) -> list[str]:
        """The suites of problems and of attempts by name."""
        return sorted({*self.problems["suite"], *self.problem_scores["suite"]})

    @cached_property
    def slices(self) -> dict[str, list[str | None]]:
        """The values of every problem column that divides the problems, None last."""
        found = {}
        for name in self.problems.columns:
            values = self.problems[name].unique()
            # A column whose values hardly repeat, such as a description, divides nothing.
            few = 1 < len(values) <= min(_MOST_VALUES, max(2, self.problems.height // 2))
            if few and name not in _NOT_SLICES:
                found[name] = [*sorted(map(str, values.drop_nulls())), *([None] if values.null_count() else [])]
        return found

    @cached_property
    def config(self) -> EvaluationConfig:
        """The settings that the figures depend on; paths are not among them."""
        nested: dict[str, Any] = {"fixes_dir": ".", "output_dir": "."}
        for key, value in self.scan("settings").collect().iter_rows():
            section = nested
            *path, name = str(key).split(".")
            for part in path:
                section = section.setdefault(part, {})
            section[name] = json.loads(value)
        return EvaluationConfig.model_validate(nested)


def run_folders(data: Path) -> dict[str, Path]:
    """The folders of everything that can be shown, newest first, by the name to show: the published run, snapshots."""
    names = pin_names(pins(data))
    snapshots = {
        " ".join([snapshot.id, *(f"({pin})" for pin in names.get(snapshot.id, []))]): snapshot.folder
        for snapshot in reversed(list_snapshots(data))
    }
    return {"published run": data, **snapshots}


def open_run(folder: Path) -> RunTables:
    """The tables in a folder as they are now; the same object for all pages until the next run replaces them."""
    return _opened(folder, (folder / "tables").resolve())


@lru_cache(maxsize=4)
def _opened(folder: Path, tables: Path) -> RunTables:
    return RunTables(folder)


# They have a row per attempt and stay on disk.
_BY_ATTEMPT = ("attempts", "outcomes", "attempt_scores")
# About files and settings, not about attempts.
_WHOLE_RUN = ("sources", "settings")
_KEPT_TABLES = 64


@dataclass(frozen=True)
class Filters:
    """Which rows are shown; nothing chosen means everything. `values` are those of the problem column `column`."""

    models: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    column: str | None = None
    values: tuple[str | None, ...] = ()

    @property
    def of_attempts(self) -> "Filters":
        """The filters that choose attempts, without those that choose rows."""
        sliced = self.column is not None and bool(self.values)
        return Filters(suites=self.suites, column=self.column if sliced else None, values=self.values if sliced else ())


class Selection:
    """The tables of a run under filters."""

    def __init__(self, run: RunTables, filters: Filters | None = None) -> None:
        self.run, self.filters = run, filters or Filters()

    def frame(self, table: str) -> pl.LazyFrame:
        """The rows of a table for the chosen models and tiers, from the chosen suites and slice."""
        return self.of_groups(_chosen(self.run, self.filters.of_attempts, table))

    def of_groups(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The rows of the chosen models and tiers."""
        names = rows.collect_schema().names()
        chosen = {"model": self.filters.models, "tier": self.filters.tiers}
        for name in names:
            # A comparison has two of each: model_a, model_b, tier_a and tier_b.
            if wanted := chosen.get(name.removesuffix("_a").removesuffix("_b")):
                rows = rows.filter(pl.col(name).is_in(wanted))
        return rows


def _chosen(run: RunTables, filters: Filters, table: str) -> pl.LazyFrame:
    """The rows of a table for all models and tiers. Those with a row per attempt are filtered as they are read."""
    if table in _BY_ATTEMPT:
        return _chosen_attempts(run, filters, table)
    return _made(run, filters, table).lazy()


@lru_cache(maxsize=_KEPT_TABLES)
def _made(run: RunTables, filters: Filters, table: str) -> pl.DataFrame:
    """A table without rows per attempt: as stored, or made again if attempts are chosen."""
    if filters == Filters() or table in _WHOLE_RUN:
        return run.scan(table).collect()
    if table == "problems":
        return _chosen_problems(run, filters)
    if table == "problem_scores":
        return run.problem_scores.filter(_in_suites(filters)).join(_in_slice(run, filters), on="oid", how="semi")
    if table == "problem_pass_at_k":
        return pass_at_k_of_problems(_counts(run, filters), run.config.k_values).collect()
    if table == "pass_at_k":
        return _pass_at_k(run, filters, dict.fromkeys(run.config.k_values, run.config.intervals))
    return _made_as_declared(run, filters, table)


def _pass_at_k(run: RunTables, filters: Filters, intervals: Mapping[int, IntervalSettings | None]) -> pl.DataFrame:
    """pass@k per model, tier and k, with the intervals of each k if its settings are given.

    Every model and tier keeps its row: without attempts in the selection, its figures are undefined.
    """
    problems = _made(run, filters, "problems").lazy()
    histogram = outcome_histogram(_counts(run, filters), problems).collect()
    totals = problems_by_tier(problems, {tier for _, tier in run.groups})
    by_k = [summarise(histogram, run.groups, totals, [k], settings) for k, settings in intervals.items()]
    return pl.concat(by_k).sort(*MODEL_TIER, "k")


@lru_cache(maxsize=_KEPT_TABLES)
def leaderboard_figures(run: RunTables, filters: Filters) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Figures of the leaderboard: `pass_at_k`, and parts of `model_statistics` and `economics`; all models and tiers.

    If attempts are chosen, only this is made again. The other columns of these tables take several times as long: they
    need a bootstrap over all models, and an interval per figure.
    """
    if filters == Filters():
        statistics, costs = (_made(run, filters, table).lazy() for table in ("model_statistics", "economics"))
        figures = _made(run, filters, "pass_at_k")
    else:
        scores, problems = (_made(run, filters, table).lazy() for table in ("problem_scores", "problems"))
        statistics, costs = overall(scores), cost_of_pass_by_entry(scores, problems, run.config.intervals)
        first, *others = run.config.k_values
        figures = _pass_at_k(run, filters, {first: run.config.intervals} | dict.fromkeys(others))
    attempts = statistics.select(*MODEL_TIER, "attempts", "total_cost_usd", "avg_latency_ms")
    joined = attempts.join(costs.select(*MODEL_TIER, "cost_of_pass"), on=MODEL_TIER, how="left")
    return figures, joined.collect()


def _made_as_declared(run: RunTables, filters: Filters, table: str) -> pl.DataFrame:
    declared, function = TABLES[table], TABLES[table].function
    if function is None or table == "settings":
        # Made by a stage of a run from more than tables; but what it says of one problem holds in any selection.
        if "oid" in declared.dtypes and ("model" not in declared.dtypes or declared.group == "validation"):
            return run.scan(table).collect().join(_made(run, filters, "problems"), on="oid", how="semi")
        raise TouchstoneError(f"the table '{table}' is about whole runs; clear the filters of suites and slices")
    frames = [_chosen(run, filters, name) for name in declared.reads]
    settings = [attrgetter(key)(run.config) for key in declared.settings]
    return conform(function(*frames, *settings), declared).collect()


def _counts(run: RunTables, filters: Filters) -> pl.LazyFrame:
    """Decided attempts n and passed attempts c per model, tier and problem."""
    scores = _made(run, filters, "problem_scores").lazy()
    return scores.group_by(PROBLEM_KEY).agg(n=pl.col("decided").sum(), c=pl.col("passes").sum().cast(pl.Int64))


def _chosen_problems(run: RunTables, filters: Filters) -> pl.DataFrame:
    """The problems of the slice whose own suite is chosen, or that have an attempt in a chosen suite."""
    attempted = _made(run, filters, "problem_scores").select("oid").unique()
    sliced = run.problems.join(_in_slice(run, filters), on="oid", how="semi")
    return sliced.filter(_in_suites(filters) | pl.col("oid").is_in(attempted["oid"].to_list()))


def _chosen_attempts(run: RunTables, filters: Filters, table: str) -> pl.LazyFrame:
    rows = run.scan(table)
    if filters == Filters():
        return rows
    rows = rows.join(_in_slice(run, filters).lazy(), on="oid", how="semi")
    if not filters.suites or "suite" in rows.collect_schema().names():
        return rows.filter(_in_suites(filters))
    keys = run.scan("attempt_scores").filter(_in_suites(filters)).select(ATTEMPT_KEY)
    return rows.join(keys, on=ATTEMPT_KEY, how="semi")


def _in_suites(filters: Filters) -> pl.Expr:
    return pl.col("suite").is_in(filters.suites) if filters.suites else pl.lit(True)


def _in_slice(run: RunTables, filters: Filters) -> pl.DataFrame:
    """The ids of the problems with one of the chosen values."""
    if filters.column is None:
        return run.problems.select("oid")
    value = pl.col(filters.column).cast(pl.String)
    known = [each for each in filters.values if each is not None]
    chosen = value.is_in(known)
    return run.problems.filter(chosen | value.is_null() if None in filters.values else chosen).select("oid")


# Parameters that every link keeps.
_KEPT = ("run", "model", "tier", "suite", "slice", "value", "outcome", "failure", "mode")
# A problem may have no value in the column that it is sliced by.
_NO_VALUE = "null"

Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Address:
    """A path of the dashboard and its parameters, in order; a parameter may be repeated."""

    path: str
    query: Query = ()

    def get(self, name: str) -> str:
        """The value of a parameter, with line breaks as they were typed; empty if it is not given."""
        return next((value.replace("\r\n", "\n") for key, value in self.query if key == name), "")

    def all(self, name: str) -> tuple[str, ...]:
        """All values of a parameter."""
        return tuple(value for key, value in self.query if key == name)

    @property
    def filters(self) -> Filters:
        """The models, tiers, suites and slice that are chosen."""
        values = tuple(value_from(text) for text in self.all("value"))
        return Filters(self.all("model"), self.all("tier"), self.all("suite"), self.get("slice") or None, values)

    def link(self, path: str, **more: str) -> str:
        """Another page under the same filters."""
        return _joined(path, [*(pair for pair in self.query if pair[0] in _KEPT), *more.items()])

    def but(self, **changed: str | None) -> str:
        """This page with other parameters; None leaves one out."""
        query = [pair for pair in self.query if pair[0] not in changed]
        return _joined(self.path, [*query, *((name, text) for name, text in changed.items() if text is not None)])

    def others(self, names: Iterable[str]) -> Query:
        """The parameters that a form for these names must keep."""
        left_out = {*names, "page"}
        return tuple(pair for pair in self.query if pair[0] not in left_out)


def value_text(value: str | None) -> str:
    """A value of a slice as a parameter.

    >>> value_text("null"), value_text(None)
    ('=null', 'null')
    """
    return _NO_VALUE if value is None else f"={value}"


def value_from(text: str) -> str | None:
    """The reverse."""
    return None if text == _NO_VALUE else text.removeprefix("=")


def _joined(path: str, query: Iterable[tuple[str, str]]) -> str:
    text = urlencode([(name, value) for name, value in query if value])
    return f"{path}?{text}" if text else path
