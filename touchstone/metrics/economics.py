"""What a pass costs: cost of pass per model and tier, which of them is cheapest, and which no other beats.

Cost of pass is what the decided attempts cost by how many of them passed: mean cost by mean pass rate, both over
attempts. It is the same figure as in the tables `tiers` and `problem_statistics`. One decided attempt without a cost
makes the costs of its model and tier unknown, and an unknown cost is never the lowest. Choosing a model per suite or
per problem belongs in `routing`.

The interval of a cost of pass is Fieller's (`ratios`). The chances of being cheapest come from `drawing` the problems
again, the same for all models. Plain draws are too sure of few problems: of two equal models on six, one was called the
cheapest with a probability above 97.5% in 15% of simulated cases. So replicates are moved apart as far as Student's t
is wider than a normal distribution (`Estimates.spread`), which makes it 3% to 6%. Models and tiers with fewer than six
units have no chances and take no part in those of others.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.contracts import TABLES
from touchstone.inference.bootstrap import MIN_UNITS, bootstrap_sums, student_t_factors, unit_ids
from touchstone.inference.ratios import cost_of_pass_interval
from touchstone.inference.uncertainty import Interval
from touchstone.metrics.problem_outcomes import (
    ProblemOutcomes,
    index_problems,
    problem_outcomes,
    resampling_sums,
    unit_counts,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

# Figures that differ by less than this share of themselves are the same, but for rounding.
SAME = 1e-12


@dataclass(frozen=True)
class Estimates:
    """Figures of every entry, which is the last axis; NaN where undefined."""

    rate: Floats
    cost: Floats
    cost_of_pass: Floats

    @classmethod
    def from_sums(cls, sums: Floats) -> "Estimates":
        """From the sums over problems of passes, costs and attempts, side by side."""
        passes, cost, attempts = np.split(sums, 3, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            never = (passes == 0) & (attempts > 0) & ~np.isnan(cost)
            return cls(passes / attempts, cost / attempts, np.where(never, math.inf, cost / passes))

    def spread(self, point: "Estimates", factors: Floats) -> "Estimates":
        """Replicates, moved away from the point estimates by these factors: costs by their logs, rates within [0, 1].

        >>> figures = np.array([[0.5, 1.0, 2.0], [0.75, 4.0, 16 / 3]])
        >>> point, drawn = (Estimates(*each[:, None]) for each in figures)
        >>> moved = drawn.spread(point, np.array([2.0]))
        >>> moved.rate.item(), moved.cost.item()
        (1.0, 16.0)
        """
        rate = np.clip(point.rate + factors * (self.rate - point.rate), 0, 1)
        return Estimates(
            rate,
            _spread_logs(self.cost, point.cost, factors),
            _spread_logs(self.cost_of_pass, point.cost_of_pass, factors),
        )


def _spread_logs(drawn: Floats, point: Floats, factors: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = point * (drawn / point) ** factors
    # What costs nothing, or infinitely much, does so in every replicate.
    return np.where(np.isfinite(point) & (point > 0), moved, drawn)


def bootstrap_estimates(sums: Floats, units: Integers, settings: IntervalSettings) -> Iterator[Estimates]:
    """Replicates of every entry's figures, some at a time, spread as Student's t is for so few units.

    Entries with fewer than `MIN_UNITS` have unknown costs, so that they take no part.
    """
    entries = sums.shape[1] // 3
    taking_part = np.where(units >= MIN_UNITS, 1.0, math.nan)
    sums = np.hstack([sums[:, :entries], sums[:, entries : 2 * entries] * taking_part, sums[:, 2 * entries :]])
    point, factors = Estimates.from_sums(sums.sum(axis=0)), student_t_factors(units, settings)
    done = 0
    for piece in bootstrap_sums(sums, settings):
        yield Estimates.from_sums(piece).spread(point, factors[done : done + len(piece)])
        done += len(piece)


def economics(attempt_scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings) -> pl.LazyFrame:
    """Per model and tier: pass rate, cost of an attempt, cost of pass with its interval, and the chances to be ahead.

    Chances are null below 6 units, and are those among the entries that have 6. Nobody is the lowest in a replicate
    without a pass, and ties count for each.

    >>> cheap, dear = ("a", "T0", "x", 1.0, 0.2), ("b", "T0", "x", 1.0, 0.3)
    >>> scores = pl.LazyFrame([cheap, dear], schema=["model", "tier", "oid", "pass_rate", "cost_usd"], orient="row")
    >>> problems = pl.LazyFrame({"oid": ["x"], "cluster": [None]}, schema_overrides={"cluster": pl.String})
    >>> table = economics(scores, problems, IntervalSettings(replicates=100)).collect()
    >>> table.select("model", "cost_of_pass", "on_frontier", "frontier_probability").rows()
    [('a', 0.2, True, None), ('b', 0.3, False, None)]
    """
    places = index_problems(problems.select("oid", "cluster"))
    counted = problem_outcomes(attempt_scores, places)
    cluster = places["cluster"]
    intervals = _intervals(counted, cluster, settings)
    sums = resampling_sums(counted, cluster, settings)
    point = Estimates.from_sums(sums.sum(axis=0))
    frontier, pareto = cheapest(point.cost_of_pass), pareto_optimal(point.cost, point.rate)
    drawn = _Probabilities.from_sums(sums, unit_counts(counted, cluster), settings)
    attempted = np.bincount(counted.entry, minlength=counted.entries.height)
    rows = []
    for place, (model, tier) in enumerate(counted.entries.iter_rows()):
        cost, interval, tried = point.cost[place], intervals[place], int(attempted[place])
        known = not math.isnan(cost)
        told = known and interval.units >= MIN_UNITS
        rows.append(
            {
                "model": model,
                "tier": tier,
                "problems": tried,
                "pass_rate": float(point.rate[place]) if tried else None,
                "cost_per_attempt": float(cost) if known else None,
                "cost_of_pass": float(point.cost_of_pass[place]) if known else None,
                "ci_low": interval.low,
                "ci_high": interval.high,
                "ci_method": interval.method,
                "ci_units": interval.units,
                "on_frontier": bool(frontier[place]) if known else None,
                "frontier_probability": float(drawn.frontier[place]) if told else None,
                "pareto": bool(pareto[place]) if known else None,
                "pareto_probability": float(drawn.pareto[place]) if told else None,
            }
        )
    return pl.LazyFrame(rows, schema=TABLES["economics"].dtypes)


@dataclass(frozen=True)
class _Probabilities:
    """The share of replicates in which an entry is ahead."""

    frontier: Floats
    pareto: Floats

    @classmethod
    def from_sums(cls, sums: Floats, units: Integers, settings: IntervalSettings) -> "_Probabilities":
        frontier, pareto = np.zeros(len(units)), np.zeros(len(units))
        for standing in bootstrap_estimates(sums, units, settings):
            frontier += cheapest(standing.cost_of_pass).sum(axis=0)
            pareto += pareto_optimal(standing.cost, standing.rate).sum(axis=0)
        return cls(frontier / settings.replicates, pareto / settings.replicates)


def _intervals(counted: ProblemOutcomes, clusters: pl.Series, settings: IntervalSettings) -> list[Interval]:
    """Fieller's interval of the cost of pass of every entry, on its own units."""
    units = unit_ids(clusters)[counted.problem] if len(counted.problem) else counted.problem
    ends = np.searchsorted(counted.entry, np.arange(counted.entries.height + 1))
    found = []
    for start, end in pairwise(ends.tolist()):
        if start == end or math.isnan(counted.cost[start]):
            found.append(Interval(None, None, None, len(np.unique(units[start:end]))))
            continue
        _, place = np.unique(units[start:end], return_inverse=True)
        costs = np.bincount(place, weights=counted.cost[start:end]).astype(np.float64)
        passes = np.bincount(place, weights=counted.passes[start:end]).astype(np.float64)
        attempts = np.bincount(place, weights=counted.attempts[start:end]).astype(np.int64)
        found.append(cost_of_pass_interval(costs, attempts, passes, attempts, settings))
    return found


def cheapest(cost_of_pass: Floats) -> Truths:
    """Which entries have the lowest finite cost of pass, in every replicate: all of them on a tie.

    >>> cheapest(np.array([[2.0, 1.0, 1.0], [np.inf, np.nan, np.inf]])).tolist()
    [[False, True, True], [False, False, False]]
    """
    finite = np.isfinite(cost_of_pass)
    lowest = np.where(finite, cost_of_pass, math.inf).min(axis=-1, keepdims=True, initial=math.inf)
    ahead: Truths = finite & (cost_of_pass <= lowest * (1 + SAME))
    return ahead


def pareto_optimal(cost: Floats, rate: Floats) -> Truths:
    """Which entries no other beats: as cheap and as good, and better in one. In every replicate; NaN is out.

    >>> pareto_optimal(np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.5, 0.7, 0.6, 0.7])).tolist()
    [True, True, False, False]
    """
    known = ~np.isnan(cost)
    price, quality = np.where(known, cost, math.inf), np.where(known, rate, -math.inf)
    order = np.argsort(price, axis=-1, kind="stable")
    price, quality = np.take_along_axis(price, order, -1), np.take_along_axis(quality, order, -1)
    # Entries of one price stand together: what beats them is as good and cheaper, or better at the same price.
    dearer = np.ones(price.shape, dtype=bool)
    dearer[..., 1:] = price[..., 1:] > price[..., :-1] * (1 + SAME)
    last = np.ones(price.shape, dtype=bool)
    last[..., :-1] = dearer[..., 1:]
    best = np.maximum.accumulate(quality, axis=-1)
    before = np.full(price.shape, -math.inf)
    before[..., 1:] = best[..., :-1]
    cheaper = np.maximum.accumulate(np.where(dearer, before, -math.inf), axis=-1)
    up_to_price = np.minimum.accumulate(np.where(last, best, math.inf)[..., ::-1], axis=-1)[..., ::-1]
    beaten = (cheaper >= quality - SAME) | (up_to_price > quality + SAME)
    result = np.empty(price.shape, dtype=bool)
    np.put_along_axis(result, order, ~beaten, axis=-1)
    return result & known
