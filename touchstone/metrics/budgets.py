"""Budget curves: the share of problems that a model solves within b dollars, tokens or seconds.

The decided attempts at a problem are tried one after the other in the order of their ids until one passes, and what
they take adds up. Any attempt could have been the first, so each is in turn, and after the last one the first follows:
a problem's share is that of the n starts from which a pass is reached within b. Attempts are exchangeable, so this is
unbiased, and with a budget for one attempt it is pass@1; the mean over all n! orders would take exponential time. At
the largest budget the share is that of the problems with any pass.

As for the cost of pass, undecided attempts do not count, and one decided attempt with an unknown amount makes the
curve of its model and tier unknown. Bands are pointwise score intervals of the mean over problems with CR2 errors
(`inference.uncertainty`); a bootstrap at every budget would take many times as long.
"""

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from itertools import combinations, pairwise

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.bootstrap import unit_ids
from touchstone.inference.exact import from_fixed_point, to_fixed_point
from touchstone.inference.uncertainty import UnitHistogram, score_interval
from touchstone.metrics.economics import index_problems, model_batches, with_cell_ids
from touchstone.metrics.keys import MODEL_TIER, ModelTier
from touchstone.tables import TABLES
from touchstone.text import some_of, visible
from touchstone.vocabulary import RESOURCES

_MOST_BUDGETS = 40
_ROUND_UP = Context(prec=3, rounding=ROUND_CEILING)


def budget_curves(attempt_scores: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings) -> pl.LazyFrame:
    """The table `budget_curves`: the share of problems solved within each budget, with a pointwise interval.

    >>> columns = ["model", "tier", "oid", "iteration_id", "pass_rate", "cost_usd", "total_tokens", "duration_seconds"]
    >>> rows = [("m", "T0", "x", "1", 0.0, 0.25, None, None), ("m", "T0", "x", "2", 1.0, 0.5, None, None)]
    >>> scores = pl.LazyFrame(rows, schema=columns, orient="row")
    >>> problems = pl.LazyFrame({"oid": ["x"], "cluster": [None]}, schema_overrides={"cluster": pl.String})
    >>> table = budget_curves(scores, problems, IntervalSettings()).collect()
    >>> table.select("resource", "budget", "share_solved").rows()
    [('dollars', 0.5, 0.5), ('dollars', 0.75, 1.0)]
    """
    indexed = index_problems(problems.select("oid", "cluster"))
    units = unit_ids(indexed["cluster"])
    decided = attempt_scores.filter(pl.col("pass_rate").is_not_null())
    counts = pl.len().alias("decided"), pl.col(*RESOURCES.values()).count()
    entries = decided.group_by(MODEL_TIER).agg(*counts).sort(MODEL_TIER).collect(engine="streaming")
    rows: list[dict[str, object]] = []
    for resource, column in RESOURCES.items():
        known = entries.filter(pl.col(column) == pl.col("decided"))
        if known.is_empty():
            continue
        costs = pl.concat(_costs_to_pass(decided, known, indexed, column, models) for models in model_batches(known))
        budgets = budget_grid([part["cost"].to_numpy() for part in costs.partition_by("entry")])
        curves = {known.row(entry)[:2]: points for entry, points in _curves(costs, budgets, units, settings)}
        for model, tier in entries.select(MODEL_TIER).iter_rows():
            for budget, point in zip(budgets, curves.get((model, tier), [{}] * len(budgets)), strict=True):
                rows.append({"model": model, "tier": tier, "resource": resource, "budget": budget, **point})
    return pl.LazyFrame(rows, schema=TABLES["budget_curves"].dtypes)


def _costs_to_pass(
    decided: pl.LazyFrame, entries: pl.DataFrame, indexed: pl.DataFrame, column: str, models: list[str]
) -> pl.DataFrame:
    """Entry and problem of every attempt, and the cost from it to the next pass; infinity if none passes."""
    amount = pl.col(column)
    steps = amount.cast(pl.Int128) if column == "total_tokens" else to_fixed_point(amount)
    at_pass = pl.when(pl.col("pass_rate") == 1).then("until")
    next_round = at_pass.min().over("cell") + pl.col("steps").sum().over("cell")
    cost = pl.coalesce(at_pass.backward_fill().over("cell"), next_round) - pl.col("until") + pl.col("steps")
    # Three times 0.1 is 0.3 to everybody, though not to the last bit.
    as_float = cost.cast(pl.Float64) if column == "total_tokens" else from_fixed_point(cost).round_sig_figs(12)
    return (
        with_cell_ids(decided.filter(pl.col("model").is_in(models)), entries.select(MODEL_TIER), indexed)
        .select("cell", "entry", "problem", "pass_rate", "iteration_id", steps=steps)
        .sort("cell", pl.col("iteration_id").cast(pl.Int64, strict=False), "iteration_id", nulls_last=True)
        .with_columns(until=pl.col("steps").cum_sum())
        .select("entry", "problem", cost=as_float.fill_null(math.inf))
        .collect()
    )


def budget_grid(costs: list[Floats]) -> list[float]:
    """At most 40 budgets, denser where costs are, with equal weight for every entry; the last is enough for all.

    Rounded up to three digits, so that a budget is easy to read and includes the cost that it comes from.

    >>> budget_grid([np.array([0.5, 0.1, 0.1]), np.array([1.23456, math.inf])])
    [0.1, 0.5, 1.24]
    """
    places = np.linspace(0, 1, _MOST_BUDGETS)
    finite = [part[np.isfinite(part)] for part in costs]
    pooled = [np.quantile(part, places, method="inverted_cdf") for part in finite if len(part)]
    if not pooled:
        return []
    chosen = np.quantile(np.concatenate(pooled), places, method="inverted_cdf")
    return sorted({float(_ROUND_UP.plus(Decimal(repr(float(cost))))) for cost in chosen})


def _curves(
    costs: pl.DataFrame, budgets: list[float], units: Integers, settings: IntervalSettings
) -> Iterator[tuple[int, list[dict[str, object]]]]:
    """The points of every entry."""
    within = [(pl.col("cost") <= budget).mean().alias(str(place)) for place, budget in enumerate(budgets)]
    shares = costs.group_by("entry", "problem").agg(within).sort("entry", "problem")
    for (entry,), part in shares.partition_by("entry", as_dict=True).items():
        _, unit = np.unique(units[part["problem"].to_numpy()], return_inverse=True)
        yield entry, [_point(part[str(place)].to_numpy(), unit, settings) for place in range(len(budgets))]


def _point(shares: Floats, unit: Integers, settings: IntervalSettings) -> dict[str, object]:
    sums: Floats = np.bincount(unit, weights=shares).astype(np.float64)
    made = UnitHistogram.of(sums, np.bincount(unit), np.ones(len(sums), dtype=np.int64))
    if made is None:
        return {}
    # Rounding may move a mean of shares above 1.
    mean = min(1.0, made.mean)
    band = score_interval(mean, made.standard_error, made.units, made.degrees_of_freedom, settings)
    return {"share_solved": mean, **band.columns(), "problems": len(shares)}


def crossing_sentences(budget_curves: pl.DataFrame, sides: Sequence[ModelTier]) -> list[str]:
    """Crossings of curves, of models in a tier and of tiers of a model: only if the bands are apart on both sides."""
    known = budget_curves.drop_nulls("share_solved").sort("budget")
    has_tiers, said, unclear = known["tier"].n_unique() > 1, [], []
    for resource in RESOURCES:
        curves = known.filter(pl.col("resource") == resource).partition_by(MODEL_TIER, as_dict=True)
        for pair in combinations([side for side in sides if side in curves], 2):
            if pair[0][0] != pair[1][0] and pair[0][1] != pair[1][1]:
                continue
            a, b = (curves[side] for side in pair)
            name_a, name_b = (visible(" ".join(side) if has_tiers else side[0]) for side in pair)
            turns = _turns((a["ci_low"] > b["ci_high"]).cast(int) - (b["ci_low"] > a["ci_high"]).cast(int))
            for sign, *places in turns:
                more, fewer = (name_a, name_b) if sign > 0 else (name_b, name_a)
                until, beyond = (budget_text(resource, a["budget"][place]) for place in places)
                said.append(f"{more} solves more problems than {fewer} within {until}, but fewer within {beyond}.")
            if not turns and _turns((a["share_solved"] - b["share_solved"]).sign()):
                unclear.append(f"{name_a} and {name_b} ({resource})")
    unknown = "Whether these curves cross cannot be told, because their intervals overlap"
    return said + ([f"{unknown}: {some_of(unclear)}."] if unclear else [])


def _turns(signs: pl.Series) -> list[tuple[int, int, int]]:
    """Every change of sign: the sign before it, and the places before and after, without the zeros between."""
    places = [place for place, sign in enumerate(signs) if sign]
    return [(signs[last], last, next_) for last, next_ in pairwise(places) if signs[last] != signs[next_]]


def budget_text(resource: str, amount: float) -> str:
    """A budget in words.

    >>> budget_text("dollars", 0.0123), budget_text("tokens", 1200.0)
    ('$0.0123', '1,200 tokens')
    """
    return f"${amount:,.10g}" if resource == "dollars" else f"{amount:,.10g} {resource}"
