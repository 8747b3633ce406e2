"""Outcomes per model, tier and problem as arrays: decided attempts, passes and cost. The basis of cost metrics.

Only decided attempts count. One decided attempt without a cost makes the costs of its model and tier unknown.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.bootstrap import resampling_groups, unit_ids
from touchstone.inference.exact import exact_total
from touchstone.metrics.keys import MODEL_TIER

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ProblemOutcomes:
    """One row per entry (a model and tier) and problem with a decided attempt, sorted; both integer-encoded."""

    entries: pl.DataFrame
    entry: Integers
    problem: Integers
    attempts: Integers
    passes: Floats
    # Total cost of the attempts; NaN for all rows of an entry with an unknown cost.
    cost: Floats

    def take(self, rows: Integers) -> "ProblemOutcomes":
        """The given rows, with the same entries."""
        entry, problem, attempts = self.entry[rows], self.problem[rows], self.attempts[rows]
        return ProblemOutcomes(self.entries, entry, problem, attempts, self.passes[rows], self.cost[rows])


def index_problems(problems: pl.LazyFrame) -> pl.DataFrame:
    """The problems sorted by id, with their row number as `problem`."""
    return problems.sort("oid").with_row_index("problem").collect(engine="streaming")


def problem_outcomes(problem_scores: pl.LazyFrame, indexed: pl.DataFrame) -> ProblemOutcomes:
    """Sums by model, tier and problem, over suites and runs; `indexed` comes from `index_problems`."""
    entries = list_entries(problem_scores)
    cells = (
        with_cell_ids(problem_scores, entries, indexed)
        .group_by("cell")
        .agg(
            n=pl.col("decided").sum(),
            c=pl.col("passes").sum(),
            cost=exact_total(pl.col("decided_cost_sum")),
            unpriced=pl.col("decided_cost_count").sum() < pl.col("decided").sum(),
        )
        .filter(pl.col("n") > 0)
        .sort("cell")
        .collect()
    )
    entry, problem = np.divmod(cells["cell"].to_numpy(), max(1, indexed.height))
    unpriced = np.bincount(entry, weights=cells["unpriced"].to_numpy(), minlength=entries.height) > 0
    cost = np.where(unpriced[entry], math.nan, cells["cost"].to_numpy())
    return ProblemOutcomes(entries, entry, problem, cells["n"].to_numpy(), cells["c"].to_numpy(), cost)


def list_entries(problem_scores: pl.LazyFrame) -> pl.DataFrame:
    """Every model and tier, sorted by name."""
    return problem_scores.select(MODEL_TIER).unique().sort(MODEL_TIER).collect()


def with_cell_ids(rows: pl.LazyFrame, entries: pl.DataFrame, indexed: pl.DataFrame) -> pl.LazyFrame:
    """The rows of these entries with the column `cell`: entry number * number of problems + problem number."""
    return (
        rows.join(indexed.lazy().select("oid", "problem"), on="oid")
        .join(entries.lazy().with_row_index("entry"), on=MODEL_TIER)
        .with_columns(cell=pl.col("entry").cast(pl.Int64) * indexed.height + pl.col("problem"))
    )


def unit_counts(outcomes: ProblemOutcomes, clusters: pl.Series) -> Integers:
    """Number of independent units per entry: the clusters, and the problems without a cluster, that it attempted."""
    count = outcomes.entries.height
    if clusters.null_count() == len(clusters):
        return np.bincount(outcomes.entry, minlength=count)
    distinct = np.unique(outcomes.entry * len(clusters) + unit_ids(clusters)[outcomes.problem])
    return np.bincount(distinct // len(clusters), minlength=count)


def resampling_sums(outcomes: ProblemOutcomes, clusters: pl.Series, settings: IntervalSettings) -> Floats:
    """Input of `bootstrap_sums`: a row per resampled group, with passes, costs and attempts of every entry."""
    attempted = np.bincount(outcomes.problem, minlength=len(clusters)) > 0
    problem = (np.cumsum(attempted) - 1)[outcomes.problem]
    groups = resampling_groups(unit_ids(clusters.filter(pl.Series(attempted))), settings)
    shape = (int(groups.max(initial=-1)) + 1, outcomes.entries.height)
    cell = groups[problem] * shape[1] + outcomes.entry
    parts = (outcomes.passes, outcomes.cost, outcomes.attempts)
    size = shape[0] * shape[1]
    return np.hstack([np.bincount(cell, weights=part, minlength=size).reshape(shape) for part in parts])
