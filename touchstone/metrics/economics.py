"""The cost of a pass per model and tier, which of them is cheapest, and which are Pareto optimal.

Cost of pass is the cost of the decided attempts divided by the number of passes: mean cost over mean pass rate, both
over attempts. It is the same figure as in the tables `tiers` and `problem_statistics`. One decided attempt without a
cost makes the costs of its model and tier unknown, and an unknown cost is never the lowest. Choosing a model per suite
or per problem belongs in `routing`.

The interval of a cost of pass is Fieller's (`inference.ratios`). The probability of being cheapest comes from the
bootstrap over problems, with the same resamples for all models. The plain bootstrap is overconfident with few problems:
of two equal models on six problems, it gave one of them a probability above 97.5% in 15% of simulated cases. So the
replicates are moved away from the estimates as far as Student's t is wider than a normal distribution
(`Estimates.rescaled`), which makes it 3% to 6%. Models and tiers with fewer than six units have no probability and do
not affect those of others.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Booleans, Floats, Integers
from touchstone.inference.bootstrap import MIN_UNITS, bootstrap_sums, resampling_groups, student_t_factors, unit_ids
from touchstone.inference.exact import exact_total
from touchstone.inference.ratios import cost_of_pass_interval
from touchstone.inference.uncertainty import Interval
from touchstone.metrics.keys import MODEL_TIER
from touchstone.storage.batches import batches
from touchstone.tables import TABLES

# Figures whose relative difference is smaller are equal up to rounding.
RELATIVE_TOLERANCE = 1e-12


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


def model_batches(entries: pl.DataFrame) -> Iterator[list[str]]:
    """The models in batches of a few hundred megabytes of decided attempts, because these are sorted in memory."""
    by_model = entries.group_by("model", maintain_order=True).agg(pl.col("decided").sum())
    return batches(dict(by_model.iter_rows()))


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


@dataclass(frozen=True)
class Estimates:
    """Pass rate, cost per attempt and cost of pass of every entry, along the last axis; NaN if undefined."""

    rate: Floats
    cost: Floats
    cost_of_pass: Floats

    @classmethod
    def from_sums(cls, sums: Floats) -> "Estimates":
        """From sums of passes, costs and attempts, concatenated along the last axis."""
        passes, cost, attempts = np.split(sums, 3, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            never = (passes == 0) & (attempts > 0) & ~np.isnan(cost)
            return cls(passes / attempts, cost / attempts, np.where(never, math.inf, cost / passes))

    def take(self, entries: Integers) -> "Estimates":
        """The figures of some entries."""
        return Estimates(self.rate[..., entries], self.cost[..., entries], self.cost_of_pass[..., entries])

    def spread(self, places: Integers, entries: int) -> "Estimates":
        """The opposite of `take`: the figures at these places among `entries`, the others NaN."""
        figures = np.full((3, len(self.rate), entries), math.nan)
        figures[..., places] = self.rate, self.cost, self.cost_of_pass
        return Estimates(*figures)

    def rescaled(self, point: "Estimates", factors: Floats) -> "Estimates":
        """Replicates with their deviation from `point` scaled: costs on the log scale, rates kept within [0, 1].

        >>> figures = np.array([[0.5, 1.0, 2.0], [0.75, 4.0, 16 / 3]])
        >>> point, drawn = (Estimates(*each[:, None]) for each in figures)
        >>> moved = drawn.rescaled(point, np.array([2.0]))
        >>> moved.rate.item(), moved.cost.item()
        (1.0, 16.0)
        """
        rate = np.clip(point.rate + factors * (self.rate - point.rate), 0, 1)
        return Estimates(
            rate,
            _rescale_logs(self.cost, point.cost, factors),
            _rescale_logs(self.cost_of_pass, point.cost_of_pass, factors),
        )


def _rescale_logs(drawn: Floats, point: Floats, factors: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = point * (drawn / point) ** factors
    # A cost of 0 or infinity is the same in every replicate.
    return np.where(np.isfinite(point) & (point > 0), moved, drawn)


def bootstrap_estimates(sums: Floats, units: Integers, settings: IntervalSettings) -> Iterator[Estimates]:
    """Bootstrap replicates of every entry's figures, in chunks, rescaled to Student's t.

    Entries with unknown costs or fewer than `MIN_UNITS` units are NaN, which excludes them from comparisons. If that
    leaves none, there are no replicates.
    """
    entries = len(units)
    point = Estimates.from_sums(sums.sum(axis=0))
    compared = np.flatnonzero((units >= MIN_UNITS) & ~np.isnan(point.cost))
    if len(compared) == 0:
        return
    point, factors = point.take(compared), student_t_factors(units[compared], settings)
    done = 0
    for chunk in bootstrap_sums(
        sums[:, np.concatenate([compared, compared + entries, compared + 2 * entries])], settings
    ):
        replicates = Estimates.from_sums(chunk).rescaled(point, factors[done : done + len(chunk)])
        yield replicates if len(compared) == entries else replicates.spread(compared, entries)
        done += len(chunk)


def economics(problem_scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings) -> pl.LazyFrame:
    """The table `economics`: pass rate, cost per attempt, cost of pass with its interval, and probabilities.

    Probabilities are null with fewer than 6 units, and are among the entries with at least 6. In a replicate without a
    pass no entry is the cheapest; ties count for each entry.

    >>> columns = ["model", "tier", "oid", "decided", "passes", "decided_cost_sum", "decided_cost_count"]
    >>> cheap, dear = ("a", "T0", "x", 1, 1.0, 0.2, 1), ("b", "T0", "x", 1, 1.0, 0.3, 1)
    >>> scores = pl.LazyFrame([cheap, dear], schema=columns, orient="row")
    >>> problems = pl.LazyFrame({"oid": ["x"], "cluster": [None]}, schema_overrides={"cluster": pl.String})
    >>> table = economics(scores, problems, IntervalSettings(replicates=100)).collect()
    >>> table.select("model", "cost_of_pass", "on_frontier", "frontier_probability").rows()
    [('a', 0.2, True, None), ('b', 0.3, False, None)]
    """
    outcomes, cluster, sums = _sums(problem_scores, problems, settings)
    intervals = _intervals(outcomes, cluster, settings)
    point = Estimates.from_sums(sums.sum(axis=0))
    frontier, pareto = cheapest(point.cost_of_pass), pareto_optimal(point.cost, point.rate)
    is_cheapest, is_pareto = _probabilities(sums, unit_counts(outcomes, cluster), settings)
    attempted = np.bincount(outcomes.entry, minlength=outcomes.entries.height)
    rows = []
    for entry, (model, tier) in enumerate(outcomes.entries.iter_rows()):
        cost, interval, tried = point.cost[entry], intervals[entry], int(attempted[entry])
        known = not math.isnan(cost)
        enough = known and interval.units >= MIN_UNITS
        rows.append(
            {
                "model": model,
                "tier": tier,
                "problems": tried,
                "pass_rate": float(point.rate[entry]) if tried else None,
                "cost_per_attempt": float(cost) if known else None,
                "cost_of_pass": float(point.cost_of_pass[entry]) if known else None,
                **interval.columns(),
                "on_frontier": bool(frontier[entry]) if known else None,
                "frontier_probability": float(is_cheapest[entry]) if enough else None,
                "pareto": bool(pareto[entry]) if known else None,
                "pareto_probability": float(is_pareto[entry]) if enough else None,
            }
        )
    return pl.LazyFrame(rows, schema=TABLES["economics"].dtypes)


def cost_of_pass_by_entry(
    problem_scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings
) -> pl.LazyFrame:
    """The column `cost_of_pass` of the table `economics` alone, without the bootstrap that the others need."""
    outcomes, _, sums = _sums(problem_scores, problems, settings)
    point = Estimates.from_sums(sums.sum(axis=0))
    return outcomes.entries.lazy().with_columns(cost_of_pass=pl.Series(point.cost_of_pass).fill_nan(None))


def _sums(
    problem_scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings
) -> tuple[ProblemOutcomes, pl.Series, Floats]:
    """The outcomes, the clusters of the problems, and the sums to resample."""
    indexed = index_problems(problems.select("oid", "cluster"))
    outcomes = problem_outcomes(problem_scores, indexed)
    return outcomes, indexed["cluster"], resampling_sums(outcomes, indexed["cluster"], settings)


def _probabilities(sums: Floats, units: Integers, settings: IntervalSettings) -> tuple[Floats, Floats]:
    """The share of replicates in which each entry is cheapest, and in which it is Pareto optimal."""
    frontier, pareto = np.zeros(len(units)), np.zeros(len(units))
    for replicates in bootstrap_estimates(sums, units, settings):
        frontier += cheapest(replicates.cost_of_pass).sum(axis=0)
        pareto += pareto_optimal(replicates.cost, replicates.rate).sum(axis=0)
    return frontier / settings.replicates, pareto / settings.replicates


def _intervals(outcomes: ProblemOutcomes, clusters: pl.Series, settings: IntervalSettings) -> list[Interval]:
    """Interval of the cost of pass of every entry, over its own units."""
    units = unit_ids(clusters)[outcomes.problem] if len(outcomes.problem) else outcomes.problem
    ends = np.searchsorted(outcomes.entry, np.arange(outcomes.entries.height + 1))
    found = []
    for start, end in pairwise(ends.tolist()):
        if start == end or math.isnan(outcomes.cost[start]):
            found.append(Interval(None, None, None, len(np.unique(units[start:end]))))
            continue
        _, unit = np.unique(units[start:end], return_inverse=True)
        costs = np.bincount(unit, weights=outcomes.cost[start:end]).astype(np.float64)
        passes = np.bincount(unit, weights=outcomes.passes[start:end]).astype(np.float64)
        attempts = np.bincount(unit, weights=outcomes.attempts[start:end]).astype(np.int64)
        found.append(cost_of_pass_interval(costs, attempts, passes, attempts, settings))
    return found


def cheapest(cost_of_pass: Floats) -> Booleans:
    """Which entries have the lowest finite cost of pass, along the last axis; all of them on a tie.

    >>> cheapest(np.array([[2.0, 1.0, 1.0], [np.inf, np.nan, np.inf]])).tolist()
    [[False, True, True], [False, False, False]]
    """
    finite = np.isfinite(cost_of_pass)
    lowest = np.where(finite, cost_of_pass, math.inf).min(axis=-1, keepdims=True, initial=math.inf)
    ahead: Booleans = finite & (cost_of_pass <= lowest * (1 + RELATIVE_TOLERANCE))
    return ahead


def pareto_optimal(cost: Floats, rate: Floats) -> Booleans:
    """Which entries are Pareto optimal, along the last axis: none is both as cheap and as good, and better in one.

    NaN is never optimal.

    >>> pareto_optimal(np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.5, 0.7, 0.6, 0.7])).tolist()
    [True, True, False, False]
    """
    known = ~np.isnan(cost)
    price, quality = np.where(known, cost, math.inf), np.where(known, rate, -math.inf)
    order = np.argsort(price, axis=-1, kind="stable")
    price, quality = np.take_along_axis(price, order, -1), np.take_along_axis(quality, order, -1)
    # An entry is dominated by one that is cheaper and at least as good, or better at the same price.
    dearer = np.ones(price.shape, dtype=bool)
    dearer[..., 1:] = price[..., 1:] > price[..., :-1] * (1 + RELATIVE_TOLERANCE)
    last = np.ones(price.shape, dtype=bool)
    last[..., :-1] = dearer[..., 1:]
    best = np.maximum.accumulate(quality, axis=-1)
    before = np.full(price.shape, -math.inf)
    before[..., 1:] = best[..., :-1]
    cheaper = np.maximum.accumulate(np.where(dearer, before, -math.inf), axis=-1)
    up_to_price = np.minimum.accumulate(np.where(last, best, math.inf)[..., ::-1], axis=-1)[..., ::-1]
    beaten = (cheaper >= quality - RELATIVE_TOLERANCE) | (up_to_price > quality + RELATIVE_TOLERANCE)
    result = np.empty(price.shape, dtype=bool)
    np.put_along_axis(result, order, ~beaten, axis=-1)
    return result & known
