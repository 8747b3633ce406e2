"""Routing: the cheapest model per suite, and what choosing a model per suite or per problem would save.

Cheapest means the lowest cost of pass (see `economics`) among models and tiers without unknown costs. The model that
looks cheapest on a few attempts was also lucky on them, so evaluating a choice on the attempts that made it shows a
saving even among equal models. `routing_policies` therefore cross-validates: it chooses on one half of the attempts,
evaluates on the other, and vice versa. The suite of a problem is that of its attempts.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.bootstrap import MIN_UNITS, bootstrap_sums, expanded_percentiles, resampling_groups, unit_ids
from touchstone.inference.exact import from_fixed_point, to_fixed_point
from touchstone.metrics.economics import (
    Estimates,
    ProblemOutcomes,
    bootstrap_estimates,
    cheapest,
    index_problems,
    model_batches,
    problem_outcomes,
    resampling_sums,
    unit_counts,
    with_cell_ids,
)
from touchstone.metrics.keys import MODEL_TIER
from touchstone.tables import TABLES

POLICIES = ("single", "suite", "problem")


def routing(problem_scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings) -> pl.LazyFrame:
    """The table `routing`: per suite the cheapest model and tier, the probability that it is, and the runner-up.

    Ties are broken by name. The probability is null if the choice has fewer than 6 units in the suite, and is among the
    models and tiers with at least 6 (`economics.bootstrap_estimates`).

    >>> columns = ["model", "tier", "suite", "oid", "decided", "passes", "decided_cost_sum", "decided_cost_count"]
    >>> rows = [("a", "T0", "s", "x", 1, 1.0, 0.3, 1), ("b", "T0", "s", "x", 1, 1.0, 0.2, 1)]
    >>> scores = pl.LazyFrame(rows, schema=columns, orient="row")
    >>> problems = pl.LazyFrame({"oid": ["x"], "suite": ["s"], "cluster": [None]}, schema_overrides={"cluster": str})
    >>> table = routing(scores, problems, IntervalSettings(replicates=100)).collect()
    >>> table.select("suite", "model", "cost_of_pass", "second_model").row(0)
    ('s', 'b', 0.2, 'a')
    """
    indexed = _indexed_problems(problem_scores, problems)
    outcomes = problem_outcomes(problem_scores, indexed)
    names, suite_of = _suite_ids(indexed)
    suite = suite_of[outcomes.problem]
    order = np.argsort(suite, kind="stable")
    ends = np.searchsorted(suite[order], np.arange(len(names) + 1))
    rows = [
        {"suite": name} | _suite_choice(outcomes.take(order[ends[i] : ends[i + 1]]), indexed["cluster"], settings)
        for i, name in enumerate(names)
    ]
    return pl.LazyFrame(rows, schema=TABLES["routing"].dtypes)


def routing_policies(
    attempt_scores: pl.LazyFrame, problem_scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings
) -> pl.LazyFrame:
    """The table `routing_policies`: cost and pass rate of one model for all, one per suite and one per problem.

    Cross-validated: evaluated on attempts that did not make the choice. If no model passes a problem in the choosing
    half, the suite's choice applies, and for a suite the single model. The candidates are the models and tiers with
    known costs, on the problems that all of them attempted at least twice; if they share none, the candidate with the
    fewest such problems is dropped until they do. The bootstrap interval of the saving keeps the choices fixed, and is
    null with fewer than 6 units or if the policy equals the single choice.
    """
    indexed = _indexed_problems(problem_scores, problems)
    entries = _priced_entries(problem_scores)
    shared = _shared_problems(_halves(attempt_scores, entries, indexed), indexed.height) if entries.height else None
    _, suite_of = _suite_ids(indexed)
    chosen = None if shared is None else _choices(shared, suite_of[shared.problem])
    if shared is None or chosen is None:
        count = 0 if shared is None else len(shared.problem)
        empty = dict.fromkeys(TABLES["routing_policies"].dtypes) | {"problems": count, "ci_units": 0}
        return pl.LazyFrame(
            [empty | {"policy": policy} for policy in POLICIES], schema=TABLES["routing_policies"].dtypes
        )
    units = unit_ids(indexed["cluster"].gather(shared.problem))
    evaluated = [_cross_validated(shared, chosen[:, i]) for i in range(len(POLICIES))]
    rows = [
        {"policy": policy}
        | _policy_figures(evaluated[i], evaluated[0], bool((chosen[:, i] == chosen[:, 0]).all()), units, settings)
        for i, policy in enumerate(POLICIES)
    ]
    return pl.LazyFrame(rows, schema=TABLES["routing_policies"].dtypes)


def _indexed_problems(problem_scores: pl.LazyFrame, problems: pl.LazyFrame) -> pl.DataFrame:
    """The problems with their number and the suite of their attempts: the first by name if attempts disagree."""
    attempted = problem_scores.group_by("oid").agg(attempt_suite=pl.col("suite").min())
    return index_problems(
        problems.join(attempted, on="oid", how="left").select(
            "oid", "cluster", suite=pl.coalesce("attempt_suite", "suite")
        )
    )


def _suite_ids(indexed: pl.DataFrame) -> tuple[list[str], Integers]:
    """The sorted names of the suites, and the number of each problem's suite."""
    names = indexed["suite"].unique().sort().to_list()
    return names, indexed["suite"].cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy()


def _suite_choice(outcomes: ProblemOutcomes, clusters: pl.Series, settings: IntervalSettings) -> dict[str, object]:
    sums = resampling_sums(outcomes, clusters, settings)
    point = Estimates.from_sums(sums.sum(axis=0))
    first = _first_cheapest(point.cost_of_pass)
    if first is None:
        return dict.fromkeys(TABLES["routing"].dtypes.keys() - {"suite"}) | {"problems": 0}
    others = point.cost_of_pass.copy()
    others[first] = math.nan
    second = _first_cheapest(others)
    probability, units = None, unit_counts(outcomes, clusters)
    if units[first] >= MIN_UNITS:
        chunks = (estimates.cost_of_pass for estimates in bootstrap_estimates(sums, units, settings))
        probability = sum(int(cheapest(costs)[:, first].sum()) for costs in chunks) / settings.replicates
    model, tier = outcomes.entries.row(first)
    second_model, second_tier = (None, None) if second is None else outcomes.entries.row(second)
    return {
        "problems": int((outcomes.entry == first).sum()),
        "model": model,
        "tier": tier,
        "pass_rate": float(point.rate[first]),
        "cost_of_pass": float(point.cost_of_pass[first]),
        "probability": probability,
        "second_model": second_model,
        "second_tier": second_tier,
        "second_cost_of_pass": None if second is None else float(point.cost_of_pass[second]),
    }


def _first_cheapest(cost_of_pass: Floats) -> int | None:
    lowest = np.flatnonzero(cheapest(cost_of_pass))
    return int(lowest[0]) if len(lowest) else None


@dataclass(frozen=True)
class _SharedProblems:
    """Problems that every candidate attempted in both halves; rate and cost by half, problem and candidate."""

    problem: Integers
    rate: Floats
    cost: Floats


def _priced_entries(problem_scores: pl.LazyFrame) -> pl.DataFrame:
    """The models and tiers with decided attempts and no unknown cost of these, sorted by name."""
    counted = problem_scores.group_by(MODEL_TIER).agg(pl.col("decided", "decided_cost_count").sum())
    priced = (pl.col("decided") > 0) & (pl.col("decided") == pl.col("decided_cost_count"))
    return counted.filter(priced).select(*MODEL_TIER, "decided").sort(MODEL_TIER).collect()


def _halves(attempt_scores: pl.LazyFrame, entries: pl.DataFrame, indexed: pl.DataFrame) -> pl.DataFrame:
    """Pass rate and mean cost per entry, problem and half; attempts alternate between halves by their ids.

    A batch of models at a time, because attempts must be sorted in memory.
    """
    first = (pl.col("cell") != pl.col("cell").shift()).fill_null(True)
    turn = (pl.col("row") - pl.when(first).then("row").forward_fill()) % 2
    parts = {"rate": pl.col("pass_rate"), "cost": to_fixed_point(pl.col("cost_usd"))}
    by_half = [
        pl.when(turn == half).then(part).alias(f"{name}_{half}") for half in (0, 1) for name, part in parts.items()
    ]
    decided = attempt_scores.filter(pl.col("pass_rate").is_not_null())
    batches = [
        with_cell_ids(decided.filter(pl.col("model").is_in(models)), entries.drop("decided"), indexed)
        .select("cell", "iteration_id", "pass_rate", "cost_usd")
        .sort("cell", "iteration_id")
        .with_row_index("row")
        .select("cell", *by_half)
        .group_by("cell")
        .agg(
            pl.col("rate_0", "rate_1", "cost_0", "cost_1").sum(),
            n_0=pl.col("rate_0").count(),
            n_1=pl.col("rate_1").count(),
        )
        .select(
            "cell",
            *(pl.col(f"rate_{half}") / pl.col(f"n_{half}") for half in (0, 1)),
            *(from_fixed_point(pl.col(f"cost_{half}")) / pl.col(f"n_{half}") for half in (0, 1)),
            in_both=pl.col("n_1") > 0,
        )
        .collect(engine="streaming")
        for models in model_batches(entries)
    ]
    return pl.concat(batches).sort("cell")


def _shared_problems(halves: pl.DataFrame, problems: int) -> _SharedProblems | None:
    entry, problem = np.divmod(halves["cell"].to_numpy(), max(1, problems))
    usable = halves["in_both"].to_numpy().copy()
    sizes = np.bincount(entry[usable])
    # From most problems to fewest, ties by name: the last is dropped first.
    candidates = sorted(np.flatnonzero(sizes).tolist(), key=lambda candidate: -sizes[candidate])
    attempts = np.bincount(problem[usable], minlength=problems)
    while candidates and attempts.max() < len(candidates):
        usable &= entry != candidates.pop()
        attempts = np.bincount(problem[usable], minlength=problems)
    if not candidates:
        return None
    common = np.flatnonzero(attempts == len(candidates))
    rows = halves.filter(usable & (attempts == len(candidates))[problem])
    rate, cost = (
        np.stack([rows[f"{name}_{half}"].to_numpy().reshape(len(candidates), -1).T for half in (0, 1)])
        for name in ("rate", "cost")
    )
    return _SharedProblems(common, rate, cost)


def _choices(shared: _SharedProblems, suites: Integers) -> Integers | None:
    """The candidate that each half chooses, by half, policy and problem; None if a half has no pass at all."""
    chosen = []
    for rate, cost in zip(shared.rate, shared.cost, strict=True):
        single = _first_cheapest(_cost_of_pass(cost.sum(axis=0), rate.sum(axis=0)))
        if single is None:
            return None
        names, suite = np.unique(suites, return_inverse=True)
        suite_rate, suite_cost = np.zeros((2, len(names), rate.shape[1]))
        np.add.at(suite_rate, suite, rate)
        np.add.at(suite_cost, suite, cost)
        of_all = np.full(len(suite), single)
        of_suite = _cheapest_or_fallback(of_all[: len(names)], suite_cost, suite_rate)[suite]
        chosen.append([of_all, of_suite, _cheapest_or_fallback(of_suite, cost, rate)])
    return np.array(chosen)


def _cheapest_or_fallback(fallback: Integers, cost: Floats, rate: Floats) -> Integers:
    """The cheapest candidate of every row, the first by name on a tie; the fallback if none passes."""
    ahead = cheapest(_cost_of_pass(cost, rate))
    return np.where(ahead.any(axis=1), ahead.argmax(axis=1), fallback)


def _cost_of_pass(cost: Floats, rate: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rate == 0, math.inf, cost / rate)


def _cross_validated(shared: _SharedProblems, chosen: Integers) -> Floats:
    """Cost and rate per problem of each half's choice on the other half's attempts; the mean of both directions."""
    rows = np.arange(len(shared.problem))
    both = [[figure[1 - half][rows, chosen[half]] for half in (0, 1)] for figure in (shared.cost, shared.rate)]
    mean: Floats = np.array(both).mean(axis=1)
    return mean


def _policy_figures(
    own: Floats, single: Floats, same: bool, units: Integers, settings: IntervalSettings
) -> dict[str, object]:
    cost, rate = own.mean(axis=1)
    pairs = np.vstack([own, single])
    saving = float(_saving(pairs.sum(axis=1)))
    count = int(units.max()) + 1
    known = math.isfinite(saving)
    limits = None if same or not known or count < MIN_UNITS else _saving_interval(pairs, units, settings)
    return {
        "problems": len(units),
        "pass_rate": float(rate),
        "cost_per_attempt": float(cost),
        "cost_of_pass": float(_cost_of_pass(cost, rate)),
        "saving": saving if known else None,
        "ci_low": limits and limits[0],
        "ci_high": limits and limits[1],
        "ci_method": limits and "bootstrap",
        "ci_units": count,
    }


def _saving(sums: Floats) -> Floats:
    """From sums of the policy's cost and rate and the single choice's; NaN if the latter has no cost of pass."""
    cost, rate, single_cost, single_rate = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        single = single_cost / np.where(single_rate == 0, math.nan, single_rate)
        return 1 - _cost_of_pass(cost, rate) / np.where(single == 0, math.nan, single)


def _saving_interval(pairs: Floats, units: Integers, settings: IntervalSettings) -> tuple[float, float] | None:
    groups = resampling_groups(units, settings)
    sums: Floats = np.stack([np.bincount(groups, weights=part) for part in pairs], axis=1)
    savings = np.concatenate([_saving(chunk) for chunk in bootstrap_sums(sums, settings)])
    # A replicate without a pass could have saved anything up to 100%, so it counts against both limits.
    unknown, count = np.isnan(savings), int(units.max()) + 1
    low, _ = expanded_percentiles(np.where(unknown, -math.inf, savings), count, settings.confidence)
    _, high = expanded_percentiles(np.where(unknown, 1.0, savings), count, settings.confidence)
    return (low, high) if math.isfinite(low) else None
