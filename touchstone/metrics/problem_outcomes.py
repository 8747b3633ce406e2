"""What each model and tier did on each problem, in numbers: how often it passed and what an attempt cost.

Only decided attempts count. One of them without a cost makes the costs of its model and tier unknown.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.bootstrap import resampling_groups, unit_ids
from touchstone.inference.exact import from_fixed_point, to_fixed_point

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GROUP = ["model", "tier"]


@dataclass(frozen=True)
class ProblemOutcomes:
    """One row per model and tier (an entry) and problem with a decided attempt, sorted; both stand as numbers."""

    entries: pl.DataFrame
    entry: Integers
    problem: Integers
    attempts: Integers
    passes: Floats
    # What the attempts cost together; NaN throughout an entry with an unknown cost.
    cost: Floats

    def part(self, rows: Integers) -> "ProblemOutcomes":
        """The same entries on some of the rows."""
        entry, problem, attempts = self.entry[rows], self.problem[rows], self.attempts[rows]
        return ProblemOutcomes(self.entries, entry, problem, attempts, self.passes[rows], self.cost[rows])


def index_problems(problems: pl.LazyFrame) -> pl.DataFrame:
    """The problems in order, each at its number."""
    return problems.sort("oid").with_row_index("problem").collect(engine="streaming")


def problem_outcomes(attempt_scores: pl.LazyFrame, places: pl.DataFrame) -> ProblemOutcomes:
    """Attempts, reduced to what each model and tier did on each problem."""
    entries = list_entries(attempt_scores)
    decided = pl.col("pass_rate").is_not_null()
    reduced = (
        with_cell_ids(attempt_scores, entries, places)
        .select(
            "cell",
            "pass_rate",
            cost=pl.when(decided).then(to_fixed_point(pl.col("cost_usd"))),
            unpriced=decided & pl.col("cost_usd").is_null(),
        )
        .group_by("cell")
        .agg(
            n=pl.col("pass_rate").count(),
            c=pl.col("pass_rate").sum(),
            cost=pl.col("cost").sum(),
            unpriced=pl.col("unpriced").any(),
        )
        .filter(pl.col("n") > 0)
        .select("cell", "unpriced", "c", pl.col("n").cast(pl.Int64), cost=from_fixed_point(pl.col("cost")))
        .collect(engine="streaming")
        .sort("cell")
    )
    entry, problem = np.divmod(reduced["cell"].to_numpy(), max(1, places.height))
    unpriced = np.bincount(entry, weights=reduced["unpriced"].to_numpy(), minlength=entries.height) > 0
    cost = np.where(unpriced[entry], math.nan, reduced["cost"].to_numpy())
    return ProblemOutcomes(entries, entry, problem, reduced["n"].to_numpy(), reduced["c"].to_numpy(), cost)


def list_entries(attempt_scores: pl.LazyFrame) -> pl.DataFrame:
    """Every model and tier, in order of their names."""
    return attempt_scores.select(GROUP).unique().collect(engine="streaming").sort(GROUP)


def with_cell_ids(attempt_scores: pl.LazyFrame, entries: pl.DataFrame, places: pl.DataFrame) -> pl.LazyFrame:
    """Attempts with the number of their cell: one per entry and problem, in order."""
    return (
        attempt_scores.join(places.lazy().select("oid", "problem"), on="oid")
        .join(entries.lazy().with_row_index("entry"), on=GROUP)
        .with_columns(cell=pl.col("entry").cast(pl.Int64) * places.height + pl.col("problem"))
    )


def unit_counts(counted: ProblemOutcomes, clusters: pl.Series) -> Integers:
    """Independent units of every entry: problems, or clusters where it attempted several problems of one."""
    count = counted.entries.height
    if clusters.null_count() == len(clusters):
        return np.bincount(counted.entry, minlength=count)
    distinct = np.unique(counted.entry * len(clusters) + unit_ids(clusters)[counted.problem])
    return np.bincount(distinct // len(clusters), minlength=count)


def resampling_sums(counted: ProblemOutcomes, clusters: pl.Series, settings: IntervalSettings) -> Floats:
    """What is drawn: one row per unit or group of units, with the passes, costs and attempts of every entry."""
    attempted = np.bincount(counted.problem, minlength=len(clusters)) > 0
    problem = (np.cumsum(attempted) - 1)[counted.problem]
    groups = resampling_groups(unit_ids(clusters.filter(pl.Series(attempted))), settings)
    shape = (int(groups.max(initial=-1)) + 1, counted.entries.height)
    cell = groups[problem] * shape[1] + counted.entry
    parts = (counted.passes, counted.cost, counted.attempts)
    size = shape[0] * shape[1]
    return np.hstack([np.bincount(cell, weights=part, minlength=size).reshape(shape) for part in parts])
