"""Which of two sides is better: two models, two tiers or two snapshots, compared problem by problem.

Both sides attempt the same problems, so what counts is the difference of pass@1 within each problem, b - a. How
hard a problem is cancels out, and a difference shows that two separate intervals would hide. The unit is the
problem, or the cluster where compared problems share one (`paired_units`).

- Test, always two-sided and named with every result: `mcnemar` for one attempt per problem on both sides, a
  permutation of signs for equal attempts, and the larger p of two permutations for unequal ones; see `paired_tests`.
- Correction for the number of pairs: `multiplicity`.
- Intervals, of the pair alone and for all pairs together: `paired_intervals`.
- Minimum detectable effect, at the level that the correction asks for: `detectable`.
- Verdict: the test decides, then the corrected interval and what could have been found; see `pair_result`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from touchstone.compare.verdicts import PairResult, sentence, verdict
from touchstone.config import require_baseline_model
from touchstone.inference.cluster_robust import RobustError
from touchstone.inference.detectable import chances_of, detectable, scatter_of, units_needed
from touchstone.inference.multiplicity import Correction, Family, adjusted, correction, findings
from touchstone.inference.paired_intervals import Differences, agreeing, reaching_margins
from touchstone.inference.paired_tests import paired_test, smallest_p
from touchstone.inference.paired_units import Integers, PairTable, Sides, Units, sides_of, units_of
from touchstone.inference.uncertainty import Interval
from touchstone.progress import track

__all__ = [
    "COMPARISON_SCHEMA", "ComparisonSettings", "PairResult", "compare_all", "compare_pair", "compare_pairs", "sentence",
]  # fmt: skip

# With many pairs the correction asks for a small p, which few random flips could not give however large the difference.
_DRAWS_PER_LEVEL = 10
# So many pairs take long enough to show progress.
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
    family: Family = "all"
    baseline_model: str | None = None


def compare_pair(counts: pl.DataFrame, settings: ComparisonSettings) -> PairResult:
    """Side b against side a, from attempts n and passes c per problem: oid, n_a, c_a, n_b, c_b, cluster.

    A problem without a decided attempt on one side (null or 0) is left out and counted.

    >>> flips = pl.DataFrame({"oid": list("abcdefghij"), "n_a": 1, "c_a": [0] * 9 + [1], "n_b": 1,
    ...                       "c_b": [1] * 9 + [0], "cluster": None})
    >>> result = compare_pair(flips, ComparisonSettings())
    >>> result.difference, result.test, result.p_value, result.verdict
    (0.8, 'mcnemar', 0.021484375, 'better')
    """
    return compare_pairs([counts], settings)[0]


def compare_pairs(pairs: Sequence[pl.DataFrame], settings: ComparisonSettings) -> list[PairResult]:
    """The same for several pairs, corrected for looking at all of them."""
    tables = [_paired(counts).pair(0, 1) for counts in pairs]
    return _compared(lambda: tables, sum(table.problems > 0 for table in tables), settings)


def compare_all(problem_counts: pl.LazyFrame, problems: pl.LazyFrame, settings: ComparisonSettings) -> pl.DataFrame:
    """All pairs of models within each tier, and of tiers within each model, corrected for looking at all of them.

    `problem_counts` has model, tier, oid, n, c; `problems` has oid and cluster. Where the family is `baseline`, only
    the pairs of that model, as side a, with the others in each tier.

    >>> counts = pl.LazyFrame({"model": ["atlas"] * 8 + ["cedar"] * 8, "tier": "T0", "oid": list("abcdefgh") * 2,
    ...                        "n": 1, "c": [1] * 8 + [0] * 7 + [1]})
    >>> problems = pl.LazyFrame({"oid": list("abcdefgh"), "cluster": None})
    >>> print(compare_all(counts, problems, ComparisonSettings())["sentence"][0])
    cedar is worse than atlas by 87.5 points (95% CI 57.9 to 100.0, p = 0.016, 8 problems)
    """
    names, sides = _sides(problem_counts, problems)
    by_kind = {"models": sides, "tiers": _sides(*_across_tiers(problem_counts, problems))[1]}
    pairs = list(_pairs(names, settings))
    testable = sum(1 for kind, a, b in pairs if by_kind[kind].overlap(a, b))
    with track("comparing", len(pairs)) if len(pairs) >= _COUNTED_FROM else nullcontext(_untold) as advance:
        results = _compared(lambda: (by_kind[kind].pair(a, b) for kind, a, b in pairs), testable, settings, advance)
    tiers = len({tier for _, tier in names})
    rows = [
        _row(kind, names[a], names[b], result, show_tier=tiers > 1)
        for (kind, a, b), result in zip(pairs, results, strict=True)
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
    "correction": pl.String,
    "pairs": pl.Int64,
    "adjusted_ci_low": pl.Float64,
    "adjusted_ci_high": pl.Float64,
    "adjusted_ci_method": pl.String,
    "adjusted_confidence": pl.Float64,
    "wins": pl.Int64,
    "losses": pl.Int64,
    "ties": pl.Int64,
    "effect_size": pl.Float64,
    "minimum_detectable_effect": pl.Float64,
    "units_needed": pl.Int64,
    "verdict": pl.String,
    "sentence": pl.String,
}


Side = tuple[str, str]


def _untold(more: int, note: str = "") -> None:
    """Progress that is not shown."""


def _across_tiers(problem_counts: pl.LazyFrame, problems: pl.LazyFrame) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Counts and problems as tiers are compared on them: problems that belong to one tier are joined to their cluster.

    Configurations of one task are problems of their tier only, so what two tiers have in common is the task.
    """
    if "only_tier" not in problems.collect_schema():
        return problem_counts, problems
    bound = pl.col("only_tier").is_not_null() & pl.col("cluster").is_not_null()
    # No id starts so: a task must not be taken for a problem of its name.
    task = pl.when(bound).then(pl.concat_str(pl.lit("\x1f"), "cluster")).otherwise("oid").alias("task")
    tasks = problems.select("oid", task, cluster=pl.when(~bound).then("cluster"))
    counts = (
        problem_counts.join(tasks, on="oid", how="left")
        .group_by("model", "tier", oid=pl.coalesce("task", "oid"))
        .agg(pl.col("n", "c").sum())
    )
    return counts, tasks.select("cluster", oid="task").unique()


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


def _pairs(sides: Sequence[Side], settings: ComparisonSettings) -> Iterator[tuple[str, int, int]]:
    pairs = list(combinations(range(len(sides)), 2))
    within_tiers = [(a, b) for a, b in pairs if sides[a][1] == sides[b][1]]
    if settings.family == "baseline":
        baseline = settings.baseline_model
        require_baseline_model(baseline, {model for model, _ in sides})
        yield from (("models", a, b) for a, b in within_tiers if sides[a][0] == baseline)
        yield from (("models", b, a) for a, b in within_tiers if sides[b][0] == baseline)
        return
    yield from (("models", a, b) for a, b in within_tiers)
    yield from (("tiers", a, b) for a, b in pairs if sides[a][0] == sides[b][0])


def _row(kind: str, a: Side, b: Side, result: PairResult, *, show_tier: bool) -> dict[str, object]:
    names = [f"{model} ({tier})" if show_tier else model for model, tier in (a, b)]
    own = {
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
    }
    return own | {name: getattr(result, name) for name in COMPARISON_SCHEMA if name not in own}


def _compared(
    tables: Callable[[], Iterable[PairTable]],
    testable: int,
    settings: ComparisonSettings,
    advance: Callable[..., None] = _untold,
) -> list[PairResult]:
    """Pairs that form a family, of which so many have problems in common.

    The tables are made anew where they are needed twice: all at once would take memory.
    """
    rule = correction(testable, settings.alpha, settings.family)
    if settings.family == "fdr":
        # What this correction asks of a pair depends on the p-values of the others.
        p_values = [_tested(table, settings, rule)[1] for table in tables()]
        rule = correction(
            testable, settings.alpha, settings.family, findings(p_values, settings.alpha, settings.family)
        )
    results = []
    for table in tables():
        results.append(_measured(table, settings, rule))
        advance(1, "")
    p_values = [result.p_value for result in results]
    smallest = [None if p is None else smallest_p(result.units) for p, result in zip(p_values, results, strict=True)]
    after = zip(adjusted(p_values, settings.family), adjusted(smallest, settings.family), strict=True)
    return [
        _judged(result, p, rule, reachable=least is None or least <= settings.alpha)
        for result, (p, least) in zip(results, after, strict=True)
    ]


def _tested(table: PairTable, settings: ComparisonSettings, rule: Correction) -> tuple[str | None, float | None]:
    if table.problems == 0:
        return None, None
    problems = table.problem_units()
    return _test(table, problems, units_of(table, problems), settings, rule)


def _test(
    table: PairTable, problems: Units, units: Units, settings: ComparisonSettings, rule: Correction
) -> tuple[str, float]:
    draws = max(settings.permutations, math.ceil(_DRAWS_PER_LEVEL / rule.test_level))
    return paired_test(table, problems, units, draws, settings.seed)


def _measured(table: PairTable, settings: ComparisonSettings, rule: Correction) -> PairResult:
    """Everything but what depends on the p-values of the other pairs."""
    count = table.problems
    nothing = PairResult(
        count,
        table.only_a,
        table.only_b,
        pairs=max(1, rule.pairs),
        correction=rule.name,
        confidence=settings.confidence,
        alpha=settings.alpha,
        relevant=settings.relevant,
    )
    if count == 0:
        return nothing
    problems = table.problem_units()
    units = units_of(table, problems)
    mean = problems.mean(problems.sums)
    wins, losses = (int(table.weights[turned > 0].sum()) for turned in (problems.sums, -problems.sums))
    test, p_value = _test(table, problems, units, settings, rule)
    differences, confidence = Differences.of(table, problems), 1 - rule.interval_level
    own = agreeing(differences.interval(settings.confidence), mean, rejected=p_value <= 1 - settings.confidence)
    together = differences.interval(confidence)
    together = reaching_margins(together, units, differences.error, settings.relevant, confidence)
    effect, detectable_method = _detectable(table, problems, units, differences.error, settings, rule)
    return replace(
        nothing,
        rate_a=problems.mean(problems.a),
        rate_b=problems.mean(problems.b),
        difference=mean,
        ci_low=own.low,
        ci_high=own.high,
        method=own.method,
        units=own.units,
        test=test,
        p_value=p_value,
        adjusted_ci_low=together.low,
        adjusted_ci_high=together.high,
        adjusted_ci_method=together.method,
        adjusted_confidence=confidence,
        wins=wins,
        losses=losses,
        ties=count - wins - losses,
        effect_size=_effect_size(problems, mean),
        minimum_detectable_effect=effect,
        detectable_method=detectable_method,
    )


def _detectable(
    table: PairTable,
    problems: Units,
    units: Units,
    error: RobustError | None,
    settings: ComparisonSettings,
    rule: Correction,
) -> tuple[float | None, str | None]:
    if error is None:
        return None, None
    luck = max(math.fsum(table.weights / n) / table.problems for n in (table.n_a, table.n_b))
    # The distance between two possible sums of differences, halved: 1 / n where all have n attempts.
    worths = (1 / table.n_a + 1 / table.n_b) / 2
    chances = chances_of(problems, units, luck)
    step = float(worths.min())
    return detectable(units, error, chances, step, rule.test_level, settings.power, settings.confidence)


def _judged(result: PairResult, p_adjusted: float | None, rule: Correction, *, reachable: bool) -> PairResult:
    """The result with what follows from the p-values of all pairs."""
    if p_adjusted is None or result.difference is None:
        return result
    interval = Interval(result.adjusted_ci_low, result.adjusted_ci_high, result.adjusted_ci_method, result.units)
    interval = agreeing(interval, result.difference, rejected=p_adjusted <= result.alpha)
    complete = replace(
        result,
        p_adjusted=p_adjusted,
        adjusted_ci_low=interval.low,
        adjusted_ci_high=interval.high,
        units_needed=None if reachable else units_needed(rule.best_level),
    )
    return replace(complete, verdict=verdict(complete))


def _effect_size(problems: Units, mean: float) -> float | None:
    scatter = scatter_of(problems, mean)
    return mean / math.sqrt(scatter / (problems.problems - 1)) if scatter else None
