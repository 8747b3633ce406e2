"""Which model to send what to: the cheapest per suite, and what choosing per suite or per problem would save.

Cheapest means the lowest cost of pass (see `economics`), of the models and tiers that have no unknown cost. Whoever
looks cheapest on a few attempts was also lucky on them, so a choice judged by the attempts that made it saves money
even among equals. `routing_policies` therefore chooses on one half of the attempts, judges on the other, and the other
way round. The suite of a problem is that of its attempts.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.contracts import TABLES
from touchstone.inference.bootstrap import MIN_UNITS, bootstrap_sums, expanded_percentiles, resampling_groups, unit_ids
from touchstone.inference.exact import from_fixed_point, to_fixed_point
from touchstone.metrics.economics import Estimates, bootstrap_estimates, cheapest
from touchstone.metrics.problem_outcomes import (
    ProblemOutcomes,
    index_problems,
    list_entries,
    problem_outcomes,
    resampling_sums,
    unit_counts,
    with_cell_ids,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

POLICIES = ("single", "suite", "problem")


def routing(attempt_scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings) -> pl.LazyFrame:
    """Per suite the cheapest model and tier, how surely it is that, and the next; ties go by name.

    The probability is null where it attempted fewer than 6 units of the suite, and is that among the models and tiers
    that attempted 6 (`economics.bootstrap_estimates`).

    >>> scores = pl.LazyFrame(
    ...     [("a", "T0", "x", "s", 1.0, 0.3), ("b", "T0", "x", "s", 1.0, 0.2)],
    ...     schema=["model", "tier", "oid", "suite", "pass_rate", "cost_usd"],
    ...     orient="row",
    ... )
    >>> problems = pl.LazyFrame({"oid": ["x"], "suite": ["s"], "cluster": [None]}, schema_overrides={"cluster": str})
    >>> table = routing(scores, problems, IntervalSettings(replicates=100)).collect()
    >>> table.select("suite", "model", "cost_of_pass", "second_model").row(0)
    ('s', 'b', 0.2, 'a')
    """
    places = _placed(attempt_scores, problems)
    counted = problem_outcomes(attempt_scores, places)
    names, suite_of = _suite_numbers(places)
    suite = suite_of[counted.problem]
    order = np.argsort(suite, kind="stable")
    ends = np.searchsorted(suite[order], np.arange(len(names) + 1))
    rows = [
        {"suite": name} | _suite_choice(counted.part(order[ends[i] : ends[i + 1]]), places["cluster"], settings)
        for i, name in enumerate(names)
    ]
    return pl.LazyFrame(rows, schema=TABLES["routing"].dtypes)


def routing_policies(attempt_scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings) -> pl.LazyFrame:
    """What one model for all, one per suite and one per problem cost and pass, on attempts that did not choose them.

    Where nobody passes a problem in the choosing half, the suite's choice stands in, and for the suite the single one.
    Every model and tier with known costs takes part, on the problems that all of them attempted twice or more; where
    they share none, the one with the fewest such problems is left out until they do. The interval of the saving draws
    problems again for choices once made, and is null below 6 units and where the policy makes the single choice.
    """
    places = _placed(attempt_scores, problems)
    shared = _shared(_halves(attempt_scores, places), places.height)
    _, suite_of = _suite_numbers(places)
    chosen = None if shared is None else _choices(shared, suite_of[shared.problem])
    if shared is None or chosen is None:
        count = 0 if shared is None else len(shared.problem)
        nothing = dict.fromkeys(TABLES["routing_policies"].dtypes) | {"problems": count, "ci_units": 0}
        return pl.LazyFrame(
            [nothing | {"policy": policy} for policy in POLICIES], schema=TABLES["routing_policies"].dtypes
        )
    units = unit_ids(places["cluster"].gather(shared.problem))
    judged = [_judged(shared, chosen[:, i]) for i in range(len(POLICIES))]
    rows = [
        {"policy": policy}
        | _policy_figures(judged[i], judged[0], bool((chosen[:, i] == chosen[:, 0]).all()), units, settings)
        for i, policy in enumerate(POLICIES)
    ]
    return pl.LazyFrame(rows, schema=TABLES["routing_policies"].dtypes)


def _placed(attempt_scores: pl.LazyFrame, problems: pl.LazyFrame) -> pl.DataFrame:
    """The problems by number, each in the suite of its attempts: the first by name, should they not agree."""
    attempted = attempt_scores.group_by("oid").agg(attempt_suite=pl.col("suite").min())
    return index_problems(
        problems.join(attempted, on="oid", how="left").select(
            "oid", "cluster", suite=pl.coalesce("attempt_suite", "suite")
        )
    )


def _suite_numbers(places: pl.DataFrame) -> tuple[list[str], Integers]:
    """The suites in order, and the number of every problem's."""
    names = places["suite"].unique().sort().to_list()
    return names, places["suite"].cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy()


def _suite_choice(counted: ProblemOutcomes, clusters: pl.Series, settings: IntervalSettings) -> dict[str, object]:
    sums = resampling_sums(counted, clusters, settings)
    point = Estimates.from_sums(sums.sum(axis=0))
    first = _first_cheapest(point.cost_of_pass)
    if first is None:
        return dict.fromkeys(TABLES["routing"].dtypes.keys() - {"suite"}) | {"problems": 0}
    others = point.cost_of_pass.copy()
    others[first] = math.nan
    second = _first_cheapest(others)
    probability, units = None, unit_counts(counted, clusters)
    if units[first] >= MIN_UNITS:
        pieces = (standing.cost_of_pass for standing in bootstrap_estimates(sums, units, settings))
        probability = sum(int(cheapest(costs)[:, first].sum()) for costs in pieces) / settings.replicates
    model, tier = counted.entries.row(first)
    second_model, second_tier = (None, None) if second is None else counted.entries.row(second)
    return {
        "problems": int((counted.entry == first).sum()),
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
class _Shared:
    """Problems that every candidate attempted in both halves: figures by half, problem and candidate."""

    problem: Integers
    rate: Floats
    cost: Floats


def _halves(attempt_scores: pl.LazyFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Rate and mean cost per entry, problem and half. Attempts are dealt in turn, in the order of their ids."""
    entries = list_entries(attempt_scores)
    first = (pl.col("cell") != pl.col("cell").shift()).fill_null(True)
    turn = (pl.col("row") - pl.when(first).then("row").forward_fill()) % 2
    parts = {"rate": pl.col("pass_rate"), "cost": to_fixed_point(pl.col("cost_usd"))}
    dealt = [
        pl.when(turn == half).then(part).alias(f"{name}_{half}") for half in (0, 1) for name, part in parts.items()
    ]
    decided = attempt_scores.filter(pl.col("pass_rate").is_not_null())
    return (
        with_cell_ids(decided, entries, places)
        .select("cell", "iteration_id", "pass_rate", "cost_usd")
        .sort("cell", "iteration_id")
        .with_row_index("row")
        .select("cell", *dealt, unpriced=pl.col("cost_usd").is_null())
        .group_by("cell")
        .agg(
            pl.col("unpriced").any(),
            pl.col("rate_0", "rate_1", "cost_0", "cost_1").sum(),
            n_0=pl.col("rate_0").count(),
            n_1=pl.col("rate_1").count(),
        )
        .select(
            "cell",
            "unpriced",
            *(pl.col(f"rate_{half}") / pl.col(f"n_{half}") for half in (0, 1)),
            *(from_fixed_point(pl.col(f"cost_{half}")) / pl.col(f"n_{half}") for half in (0, 1)),
            in_both=pl.col("n_1") > 0,
        )
        .collect(engine="streaming")
        .sort("cell")
    )


def _shared(halves: pl.DataFrame, problems: int) -> _Shared | None:
    entry, problem = np.divmod(halves["cell"].to_numpy(), max(1, problems))
    unpriced = np.unique(entry[halves["unpriced"].to_numpy()])
    usable = halves["in_both"].to_numpy() & ~np.isin(entry, unpriced)
    sizes = np.bincount(entry[usable])
    # From most problems to fewest, ties by name, so that the last is the one to leave out.
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
    return _Shared(common, rate, cost)


def _choices(shared: _Shared, suites: Integers) -> Integers | None:
    """The candidate that each half chooses, by half, policy and problem; null where a half has no pass at all."""
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
        of_suite = _cheapest_or(of_all[: len(names)], suite_cost, suite_rate)[suite]
        chosen.append([of_all, of_suite, _cheapest_or(of_suite, cost, rate)])
    return np.array(chosen)


def _cheapest_or(fallback: Integers, cost: Floats, rate: Floats) -> Integers:
    """The cheapest candidate of every row, the first by name of several; the fallback where nobody passes."""
    ahead = cheapest(_cost_of_pass(cost, rate))
    return np.where(ahead.any(axis=1), ahead.argmax(axis=1), fallback)


def _cost_of_pass(cost: Floats, rate: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rate == 0, math.inf, cost / rate)


def _judged(shared: _Shared, chosen: Integers) -> Floats:
    """Cost and rate per problem of what each half chose, by the other half's attempts; the mean of both ways."""
    rows = np.arange(len(shared.problem))
    both = [[figure[1 - half][rows, chosen[half]] for half in (0, 1)] for figure in (shared.cost, shared.rate)]
    judged: Floats = np.array(both).mean(axis=1)
    return judged


def _policy_figures(
    own: Floats, single: Floats, same: bool, units: Integers, settings: IntervalSettings
) -> dict[str, object]:
    cost, rate = own.mean(axis=1)
    pairs = np.vstack([own, single])
    saving = float(_saving(pairs.sum(axis=1)))
    count = int(units.max()) + 1
    known = math.isfinite(saving)
    ends = None if same or not known or count < MIN_UNITS else _saving_interval(pairs, units, settings)
    return {
        "problems": len(units),
        "pass_rate": float(rate),
        "cost_per_attempt": float(cost),
        "cost_of_pass": float(_cost_of_pass(cost, rate)),
        "saving": saving if known else None,
        "ci_low": ends and ends[0],
        "ci_high": ends and ends[1],
        "ci_method": ends and ("paired-bootstrap-cluster" if count < len(units) else "paired-bootstrap"),
        "ci_units": count,
    }


def _saving(sums: Floats) -> Floats:
    """From sums of own cost, own rate, single cost and single rate; NaN where the single one has no cost of pass."""
    cost, rate, single_cost, single_rate = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        single = single_cost / np.where(single_rate == 0, math.nan, single_rate)
        return 1 - _cost_of_pass(cost, rate) / np.where(single == 0, math.nan, single)


def _saving_interval(pairs: Floats, units: Integers, settings: IntervalSettings) -> tuple[float, float] | None:
    groups = resampling_groups(units, settings)
    sums: Floats = np.stack([np.bincount(groups, weights=part) for part in pairs], axis=1)
    savings = np.concatenate([_saving(piece) for piece in bootstrap_sums(sums, settings)])
    # A replicate without a pass could have saved anything up to all of it, so it counts against both ends.
    unknown, count = np.isnan(savings), int(units.max()) + 1
    low, _ = expanded_percentiles(np.where(unknown, -math.inf, savings), count, settings.confidence)
    _, high = expanded_percentiles(np.where(unknown, 1.0, savings), count, settings.confidence)
    return (low, high) if math.isfinite(low) else None
