"""Which of two sides is better: two models, two tiers or two snapshots, compared problem by problem.

Both sides attempt the same problems, so what counts is the difference of pass@1 within each problem, b - a. How
hard a problem is cancels out, and a difference shows that two separate intervals would hide. The unit is the
problem, or the cluster where compared problems share one (`paired_units`).

- Test, always two-sided and named with every result: `mcnemar` for one attempt per problem on both sides, a
  permutation of signs for equal attempts, and the larger p of two permutations for unequal ones; see `paired_tests`.
- Interval: `uncertainty.paired_interval`, which names its method.
- Minimum detectable effect: `detectable`.
- Verdict: from the p corrected over all pairs, the interval, and what could have been seen; see `pair_result`.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.detectable import chances_of, detectable, scatter_of
from touchstone.inference.paired_tests import paired_test
from touchstone.inference.paired_units import Integers, PairTable, Sides, Units, sides_of, units_of
from touchstone.inference.uncertainty import Interval, paired_interval
from touchstone.metrics.pair_result import PairResult, sentence, verdict
from touchstone.progress import counting

__all__ = [
    "COMPARISON_SCHEMA", "ComparisonSettings", "PairResult",
    "compare_all", "compare_pair", "holm", "sentence", "verdict",
]  # fmt: skip

# With many pairs Holm asks for a small p, which few random flips could not give however large the difference.
_DRAWS_PER_LEVEL = 10
# So many pairs take long enough to be told how far they are.
_COUNTED_FROM = 500


@dataclass(frozen=True)
class ComparisonSettings:
    """How sides are compared. `relevant` is the smallest difference of pass@1 that matters to the user."""

    alpha: float = 0.05
    relevant: float = 0.05
    power: float = 0.8
    permutations: int = 20_000
    seed: int = 7
    confidence: float = 0.95


def compare_pair(counts: pl.DataFrame, settings: ComparisonSettings, pairs: int = 1) -> PairResult:
    """Side b against side a, from attempts n and passes c per problem: oid, n_a, c_a, n_b, c_b, cluster.

    A problem without a decided attempt on one side (null or 0) is left out and counted. Where this is one of several
    `pairs`, the minimum detectable effect is that after their correction; the p is this pair's own.

    >>> flips = pl.DataFrame({"oid": list("abcdefghij"), "n_a": 1, "c_a": [0] * 9 + [1], "n_b": 1,
    ...                       "c_b": [1] * 9 + [0], "cluster": None})
    >>> result = compare_pair(flips, ComparisonSettings())
    >>> result.difference, result.test, result.p_value, result.verdict
    (0.8, 'mcnemar', 0.021484375, 'better')
    """
    result = _compare(_paired(counts).pair(0, 1), settings, pairs)
    return _judged(result, result.p_value, settings)


def compare_all(problem_counts: pl.LazyFrame, problems: pl.LazyFrame, settings: ComparisonSettings) -> pl.DataFrame:
    """All pairs of models within each tier, and of tiers within each model, with Holm's correction over all of them.

    `problem_counts` has model, tier, oid, n, c; `problems` has oid and cluster. The minimum detectable effect is for
    a level of alpha / pairs, which is what Holm asks of the first pair: the verdict rests on the corrected p.

    >>> counts = pl.LazyFrame({"model": ["atlas"] * 8 + ["cedar"] * 8, "tier": "T0", "oid": list("abcdefgh") * 2,
    ...                        "n": 1, "c": [1] * 8 + [0] * 7 + [1]})
    >>> problems = pl.LazyFrame({"oid": list("abcdefgh"), "cluster": None})
    >>> print(compare_all(counts, problems, ComparisonSettings())["sentence"][0])
    cedar is worse than atlas by 87.5 points (95% CI 57.9 to 100.0, p = 0.016, 8 problems)
    """
    names, sides = _sides(problem_counts, problems)
    pairs = list(_pairs(names))
    tables = (sides.pair(a, b) for _, a, b in pairs)
    testable = sum(1 for _, a, b in pairs if sides.overlap(a, b))
    results = []
    with counting("comparing", len(pairs)) if len(pairs) >= _COUNTED_FROM else nullcontext(_untold) as advance:
        for table in tables:
            results.append(_compare(table, settings, testable))
            advance(1, "")
    adjusted = holm([result.p_value for result in results])
    judged = [_judged(result, p, settings) for result, p in zip(results, adjusted, strict=True)]
    tiers = len({tier for _, tier in names})
    rows = [
        _row(kind, names[a], names[b], result, show_tier=tiers > 1)
        for (kind, a, b), result in zip(pairs, judged, strict=True)
    ]
    return pl.DataFrame(rows, schema=COMPARISON_SCHEMA)


COMPARISON_SCHEMA = {
    "kind": pl.String,
    "model_a": pl.String,
    "tier_a": pl.String,
    "model_b": pl.String,
    "tier_b": pl.String,
    "problems": pl.Int64,
    "only_a": pl.Int64,
    "only_b": pl.Int64,
    "rate_a": pl.Float64,
    "rate_b": pl.Float64,
    "difference": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "ci_method": pl.String,
    "ci_units": pl.Int64,
    "test": pl.String,
    "p_value": pl.Float64,
    "p_adjusted": pl.Float64,
    "wins": pl.Int64,
    "losses": pl.Int64,
    "ties": pl.Int64,
    "effect_size": pl.Float64,
    "minimum_detectable_effect": pl.Float64,
    "verdict": pl.String,
    "sentence": pl.String,
}


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction: p-values that keep the chance of any false alarm below alpha. Nulls do not count.

    >>> holm([0.01, 0.04, None, 0.03, 0.5])
    [0.04, 0.09, None, 0.09, 0.5]
    """
    ordered = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(ordered):
        highest = max(highest, min(1.0, p * (len(ordered) - rank)))
        adjusted[place] = highest
    return adjusted


def _judged(result: PairResult, p_adjusted: float | None, settings: ComparisonSettings) -> PairResult:
    words = verdict(result, p_adjusted, settings.alpha, settings.relevant)
    return replace(result, p_adjusted=p_adjusted, verdict=words)


Side = tuple[str, str]


def _untold(more: int, note: str = "") -> None:
    """Progress that nobody needs to hear of."""


def _sides(problem_counts: pl.LazyFrame, problems: pl.LazyFrame) -> tuple[list[Side], Sides]:
    """Every model and tier, sorted, and their counts as matrices."""
    clusters = problems.select("oid", pl.col("cluster").cast(pl.String))
    counts = problem_counts.select("model", "tier", "oid", pl.col("n", "c").cast(pl.Int64)).collect()
    columns = counts.lazy().select("oid").unique().join(clusters, on="oid", how="left").collect()
    rows = counts.select("model", "tier").unique().sort("model", "tier")
    placed = (
        counts.lazy()
        .join(columns.lazy().with_row_index("column"), on="oid")
        .join(rows.lazy().with_row_index("row"), on=["model", "tier"])
        .collect()
    )
    places = placed["row"].to_numpy(), placed["column"].to_numpy()
    n, c = np.zeros((2, rows.height, columns.height), dtype=np.int64)
    n[places], c[places] = placed["n"].fill_null(0).to_numpy(), placed["c"].fill_null(0).to_numpy()
    return [(str(model), str(tier)) for model, tier in rows.iter_rows()], sides_of(n, c, _codes(columns["cluster"]))


def _paired(counts: pl.DataFrame) -> Sides:
    columns = [[f"{count}_a", f"{count}_b"] for count in ("n", "c")]
    n, c = (counts.select(pl.col(names).cast(pl.Int64).fill_null(0)).to_numpy().T for names in columns)
    return sides_of(n, c, _codes(counts["cluster"].cast(pl.String)))


def _codes(clusters: pl.Series) -> Integers:
    """Clusters as numbers from 1 in the order of their names, 0 for none."""
    return clusters.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()


def _pairs(sides: Sequence[Side]) -> Iterator[tuple[str, int, int]]:
    pairs = list(combinations(range(len(sides)), 2))
    yield from (("models", a, b) for a, b in pairs if sides[a][1] == sides[b][1])
    yield from (("tiers", a, b) for a, b in pairs if sides[a][0] == sides[b][0])


def _row(kind: str, a: Side, b: Side, result: PairResult, *, show_tier: bool) -> dict[str, object]:
    names = [f"{model} ({tier})" if show_tier else model for model, tier in (a, b)]
    same = {"problems", "rate_a", "rate_b", "difference", "ci_low", "ci_high", "test", "p_value", "p_adjusted"}
    same |= {"wins", "losses", "ties", "effect_size", "minimum_detectable_effect", "verdict"}
    return {
        "kind": kind,
        "model_a": a[0],
        "tier_a": a[1],
        "model_b": b[0],
        "tier_b": b[1],
        "only_a": result.problems_only_a,
        "only_b": result.problems_only_b,
        "ci_method": result.method,
        "ci_units": result.units,
        "sentence": sentence(result, names[0], names[1]),
    } | {name: getattr(result, name) for name in same}


def _compare(table: PairTable, settings: ComparisonSettings, pairs: int) -> PairResult:
    """Everything but the verdict, which waits for the p-values of the other pairs."""
    count = table.problems
    if count == 0:
        return PairResult(0, table.only_a, table.only_b, pairs=pairs, confidence=settings.confidence)
    problems = table.problem_units()
    units = units_of(table, problems)
    mean = problems.mean(problems.sums)
    wins, losses = (int(table.weights[turned > 0].sum()) for turned in (problems.sums, -problems.sums))
    most = int(max(table.n_a.max(), table.n_b.max()))
    interval = _interval(table, problems, settings)
    level = settings.alpha / pairs
    draws = max(settings.permutations, math.ceil(_DRAWS_PER_LEVEL / level))
    test, p_value = paired_test(table, problems, units, draws, settings.seed)
    luck = max(math.fsum(table.weights / n) / count for n in (table.n_a, table.n_b))
    chances = chances_of(problems, units, luck)
    effect, detectable_method = detectable(units, chances, 1 / most, level, settings.power, settings.confidence)
    return PairResult(
        problems=count,
        problems_only_a=table.only_a,
        problems_only_b=table.only_b,
        rate_a=problems.mean(problems.a),
        rate_b=problems.mean(problems.b),
        difference=mean,
        ci_low=interval.low,
        ci_high=interval.high,
        method=interval.method,
        units=interval.units,
        confidence=settings.confidence,
        test=test,
        p_value=p_value,
        pairs=pairs,
        wins=wins,
        losses=losses,
        ties=count - wins - losses,
        effect_size=_effect_size(problems, mean),
        minimum_detectable_effect=effect,
        detectable_method=detectable_method,
    )


def _interval(table: PairTable, problems: Units, settings: ComparisonSettings) -> Interval:
    """The interval of the paired differences, made on the side where they are positive so that swapping mirrors it."""
    intervals = IntervalSettings(confidence=settings.confidence, seed=settings.seed)
    differences, clusters = problems.sums / problems.denominator, table.cluster_names
    lean = math.fsum(differences * table.weights) or math.fsum(differences**3 * table.weights)
    if lean >= 0:
        return paired_interval(differences, table.weights, clusters, intervals)
    turned = paired_interval(-differences + 0.0, table.weights, clusters, intervals)
    low, high = turned.low, turned.high
    return replace(turned, low=None if high is None else -high, high=None if low is None else -low)


def _effect_size(problems: Units, mean: float) -> float | None:
    scatter = scatter_of(problems, mean)
    return mean / math.sqrt(scatter / (problems.problems - 1)) if scatter else None
