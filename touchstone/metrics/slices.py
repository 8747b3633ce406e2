"""pass@1 in slices: the problems with one value of a column, such as a difficulty, a language or a side of a cutoff.

A slice is a smaller benchmark, so its figure and interval are those of `pass_at_k` at k = 1 on its problems: problems
are the units, or clusters if problems of the slice share one. Every problem of a tier is in exactly one value of a
column, so that their numbers add up to those of the whole benchmark. A column that is cut at the models' training
cutoffs has rows only for the models that have a cutoff.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.units import GroupKey
from touchstone.metrics.counting import counting_problems
from touchstone.metrics.keys import MODEL_TIER
from touchstone.metrics.pass_at_k import (
    OutcomeCounts,
    estimates,
    mean_figures,
    outcome_counts,
    outcome_histogram,
    problem_counts,
)
from touchstone.tables import TABLES

_SLICE = [name for name in TABLES["problem_slices"].dtypes if name not in ("cutoff_model", "oid")]
_GROUP = [*MODEL_TIER, *_SLICE]
_NONE = OutcomeCounts(*np.zeros((4, 0), dtype=np.int64))


def slices(
    problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, problem_slices: pl.LazyFrame, intervals: IntervalSettings
) -> pl.LazyFrame:
    """The table `slices`: pass@1 with its confidence interval per model, tier and value of each configured column."""
    schema = TABLES["slices"].dtypes
    members = problem_slices.collect()
    if members.is_empty():
        return pl.LazyFrame(schema=schema)
    counts = problem_counts(problem_pass_at_k).collect()
    totals = _problems(members, problems, counts.select(MODEL_TIER).unique())
    decided = in_slices(counts.filter(pl.col("n") > 0), members)
    histogram = outcome_histogram(decided.lazy(), problems, _GROUP).collect()
    attempted = outcome_counts(histogram, _GROUP)
    figures = _figures({key: attempted.get(key, _NONE) for key in totals}, totals, intervals)
    return pl.LazyFrame(figures, schema=schema)


def in_slices(counts: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Rows by model and problem, each once for every slice that its problem is in for that model."""
    of_all, of_one = _by_cutoff(members)
    parts = [counts.join(of_all, on="oid"), counts.join(of_one, on=["model", "oid"])]
    return pl.concat([part.select(*counts.columns, *_SLICE) for part in parts])


def _by_cutoff(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows that are the same for every model, and those of one model, in the column `model`."""
    named = rows.rename({"cutoff_model": "model"})
    return named.filter(pl.col("model").is_null()).drop("model"), named.filter(pl.col("model").is_not_null())


def _problems(members: pl.DataFrame, problems: pl.LazyFrame, groups: pl.DataFrame) -> dict[GroupKey, int]:
    """The number of problems in every value, for each model and tier; sorted."""
    counting = counting_problems(problems).select("oid", "only_tier").collect()
    bound = members.join(counting, on="oid")
    of_all, of_one = _by_cutoff(bound.group_by("cutoff_model", "only_tier", *_SLICE).len("problems"))
    each = [groups.join(of_all, how="cross"), groups.join(of_one, on="model")]
    columns = [*_GROUP, "only_tier", "problems"]
    totals = (
        pl.concat([part.select(columns) for part in each])
        .filter(pl.col("only_tier").is_null() | (pl.col("only_tier") == pl.col("tier")))
        .group_by(_GROUP)
        .agg(pl.col("problems").sum().cast(pl.Int64))
        .sort(_GROUP)
    )
    return {tuple(key): count for *key, count in totals.iter_rows()}


def _figures(
    groups: Mapping[GroupKey, OutcomeCounts], totals: Mapping[GroupKey, int], intervals: IntervalSettings
) -> list[dict[str, object]]:
    rows = {}
    # Slices with equally many problems one after the other, because they share their bootstrap resamples.
    by_size = sorted(estimates(groups, 1).items(), key=lambda item: int(item[1].eligible.problems.sum()))
    for key, found in by_size:
        model, tier, _, column, _, value = key
        attempted = int(found.eligible.problems.sum())
        figures = mean_figures(found, attempted, totals[key], intervals)
        rows[key] = (
            {"model": model, "tier": tier, "column": column, "value": value, "problems": totals[key]}
            | {"attempted": attempted, "attempts": int((found.eligible.n * found.eligible.problems).sum())}
            | {"pass_at_1": figures["pass_at_k"]}
            | {name: figure for name, figure in figures.items() if name.startswith("ci_")}
        )
    return [rows[key] for key in groups]
