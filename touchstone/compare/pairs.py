"""Paired comparison of two models, two tiers or two evaluations, called a and b.

Both attempt the same problems, so the statistic is the difference of pass@1 within each problem, b - a. Pairing
removes the difficulty of the problems and detects differences that two separate intervals would hide. The unit is the
problem, or the cluster if compared problems share one (`inference.paired_units`).

- Test, two-sided and named in every result: `mcnemar` for one attempt per problem in both, a sign-flip permutation
  test for equal numbers of attempts, else the larger p of two permutation tests; see `inference.paired_tests`.
- Correction for the number of pairs: `inference.multiplicity`.
- Confidence intervals, per pair and simultaneous: `inference.paired_intervals`.
- Minimum detectable effect at the corrected level: `inference.detectable`.
- Verdict: `compare.verdicts`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import combinations
from operator import attrgetter
from typing import Any

import numpy as np
import polars as pl

from touchstone.compare.keys import ModelTier
from touchstone.compare.verdicts import PairResult, sentence, verdict
from touchstone.config import EvaluationConfig, require_baseline_model
from touchstone.inference.cluster_robust import ClusterRobustSE
from touchstone.inference.detectable import (
    minimum_detectable_effect,
    pass_rate_moments,
    residual_sum_of_squares,
    units_needed,
)
from touchstone.inference.multiplicity import Correction, Family, adjust_p_values, correction_for, count_rejections
from touchstone.inference.paired_intervals import PairedDifferences, consistent_with_test, widen_to_margins
from touchstone.inference.paired_tests import paired_test, smallest_p
from touchstone.inference.paired_units import (
    Integers,
    OutcomeMatrix,
    PairedOutcomes,
    PairedUnits,
    independent_units,
    outcome_matrix,
)
from touchstone.inference.uncertainty import Interval
from touchstone.metrics.pass_at_k import problem_counts
from touchstone.progress import track

__all__ = [
    "ComparisonSettings", "PairResult", "compare_all", "compare_counts", "compare_pair", "compare_pairs", "sentence",
]  # fmt: skip

# With many pairs the correction requires a small p, which too few random sign flips could never reach.
_DRAWS_PER_LEVEL = 10
# From this many pairs on, progress is shown.
_PROGRESS_FROM = 500


@dataclass(frozen=True)
class ComparisonSettings:
    """How to compare. `relevant` is the smallest difference of pass@1 that matters to the user."""

    alpha: float = 0.05
    relevant: float = 0.05
    power: float = 0.8
    permutations: int = 20_000
    seed: int = 7
    confidence: float = 0.95
    family: Family = "all"
    baseline_model: str | None = None


def compare_pair(counts: pl.DataFrame, settings: ComparisonSettings) -> PairResult:
    """Compare b with a, given attempts n and passes c per problem: oid, n_a, c_a, n_b, c_b, cluster.

    A problem without a decided attempt of a or of b (null or 0) is left out and counted.

    >>> flips = pl.DataFrame({"oid": list("abcdefghij"), "n_a": 1, "c_a": [0] * 9 + [1], "n_b": 1,
    ...                       "c_b": [1] * 9 + [0], "cluster": None})
    >>> result = compare_pair(flips, ComparisonSettings())
    >>> result.difference, result.test, result.p_value, result.verdict
    (0.8, 'mcnemar', 0.021484375, 'better')
    """
    return compare_pairs([counts], settings)[0]


def compare_pairs(pairs: Sequence[pl.DataFrame], settings: ComparisonSettings) -> list[PairResult]:
    """The same for several pairs, corrected for their number."""
    tables = [_pair_matrices(counts).pair(0, 1) for counts in pairs]
    return _compare_family(lambda: tables, sum(table.problems > 0 for table in tables), settings)


def compare_all(problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, settings: ComparisonSettings) -> pl.LazyFrame:
    """The table `model_comparison`, from the tables of a run; see `compare_counts`."""
    return compare_counts(problem_counts(problem_pass_at_k), problems, settings).lazy()


def compare_counts(counts: pl.LazyFrame, problems: pl.LazyFrame, settings: ComparisonSettings) -> pl.DataFrame:
    """Compare all pairs of models within each tier, and of tiers within each model, corrected for their number.

    `counts` has model, tier, oid, n, c; `problems` has oid and cluster. In the family `baseline`, only the
    baseline model as a with every other model of each tier as b.

    >>> counts = pl.LazyFrame({"model": ["atlas"] * 8 + ["cedar"] * 8, "tier": "T0", "oid": list("abcdefgh") * 2,
    ...                        "n": 1, "c": [1] * 8 + [0] * 7 + [1]})
    >>> problems = pl.LazyFrame({"oid": list("abcdefgh"), "cluster": None})
    >>> print(compare_counts(counts, problems, ComparisonSettings())["sentence"][0])
    cedar is worse than atlas by 87.5 points (95% CI 57.9 to 100.0, p = 0.016, 8 problems)
    """
    # Imported here because comparing folders must start without dataframely.
    from touchstone.tables import TABLES

    schema = TABLES["model_comparison"].dtypes
    names, sides = _count_matrices(counts, problems)
    by_kind = {"models": sides, "tiers": _count_matrices(*_across_tiers(counts, problems))[1]}
    pairs = list(_pairs(names, settings))
    testable = sum(1 for kind, a, b in pairs if by_kind[kind].overlap(a, b))
    with track("comparing", len(pairs)) if len(pairs) >= _PROGRESS_FROM else nullcontext(_no_progress) as advance:
        results = _compare_family(
            lambda: (by_kind[kind].pair(a, b) for kind, a, b in pairs), testable, settings, advance
        )
    tiers = len({tier for _, tier in names})
    rows = [
        _row(kind, names[a], names[b], result, schema, show_tier=tiers > 1)
        for (kind, a, b), result in zip(pairs, results, strict=True)
    ]
    return pl.DataFrame(rows, schema=schema)


def _no_progress(more: int, note: str = "") -> None:
    """Progress callback that shows nothing."""


def _across_tiers(problem_counts: pl.LazyFrame, problems: pl.LazyFrame) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Counts and problems for comparing tiers: problems that belong to a single tier are pooled by cluster.

    Different tiers attempt different configurations of a task as separate problems; what they share is the task.
    """
    if "only_tier" not in problems.collect_schema():
        return problem_counts, problems
    bound = pl.col("only_tier").is_not_null() & pl.col("cluster").is_not_null()
    # No oid starts with this character, so a task never collides with a problem of the same name.
    task = pl.when(bound).then(pl.concat_str(pl.lit("\x1f"), "cluster")).otherwise("oid").alias("task")
    tasks = problems.select("oid", task, cluster=pl.when(~bound).then("cluster"))
    counts = (
        problem_counts.join(tasks, on="oid", how="left")
        .group_by("model", "tier", oid=pl.coalesce("task", "oid"))
        .agg(pl.col("n", "c").sum())
    )
    return counts, tasks.select("cluster", oid="task").unique()


def _count_matrices(problem_counts: pl.LazyFrame, problems: pl.LazyFrame) -> tuple[list[ModelTier], OutcomeMatrix]:
    """Every model and tier, sorted, and their counts n and c as matrices."""
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
    return [(str(model), str(tier)) for model, tier in rows.iter_rows()], outcome_matrix(
        n, c, _cluster_codes(columns["cluster"])
    )


def _pair_matrices(counts: pl.DataFrame) -> OutcomeMatrix:
    columns = [[f"{count}_a", f"{count}_b"] for count in ("n", "c")]
    n, c = (counts.select(pl.col(names).cast(pl.Int64).fill_null(0)).to_numpy().T for names in columns)
    return outcome_matrix(n, c, _cluster_codes(counts["cluster"].cast(pl.String)))


def _cluster_codes(clusters: pl.Series) -> Integers:
    """Clusters as integer codes from 1 in the order of their names; 0 is no cluster."""
    return clusters.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()


def _pairs(sides: Sequence[ModelTier], settings: ComparisonSettings) -> Iterator[tuple[str, int, int]]:
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


def _row(
    kind: str, a: ModelTier, b: ModelTier, result: PairResult, columns: Iterable[str], *, show_tier: bool
) -> dict[str, object]:
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
    return own | {name: getattr(result, name) for name in columns if name not in own}


def _compare_family(
    tables: Callable[[], Iterable[PairedOutcomes]],
    testable: int,
    settings: ComparisonSettings,
    advance: Callable[..., None] = _no_progress,
) -> list[PairResult]:
    """Compare the pairs of one family; `testable` of them have problems in common.

    `tables` builds the pairs again on each call, because keeping all of them would take too much memory.
    """
    rule = correction_for(testable, settings.alpha, settings.family)
    if settings.family == "fdr":
        # The level that this correction requires of a pair depends on the p-values of the others.
        p_values = [_test_table(table, settings, rule)[1] for table in tables()]
        rule = correction_for(
            testable, settings.alpha, settings.family, count_rejections(p_values, settings.alpha, settings.family)
        )
    results = []
    for table in tables():
        results.append(_measure(table, settings, rule))
        advance(1, "")
    p_values = [result.p_value for result in results]
    smallest = [None if p is None else smallest_p(result.units) for p, result in zip(p_values, results, strict=True)]
    after = zip(adjust_p_values(p_values, settings.family), adjust_p_values(smallest, settings.family), strict=True)
    return [
        _with_verdict(result, p, rule, reachable=least is None or least <= settings.alpha)
        for result, (p, least) in zip(results, after, strict=True)
    ]


def _test_table(
    table: PairedOutcomes, settings: ComparisonSettings, rule: Correction
) -> tuple[str | None, float | None]:
    if table.problems == 0:
        return None, None
    problems = table.problem_units()
    return _test(table, problems, independent_units(table, problems), settings, rule)


def _test(
    table: PairedOutcomes, problems: PairedUnits, units: PairedUnits, settings: ComparisonSettings, rule: Correction
) -> tuple[str, float]:
    draws = max(settings.permutations, math.ceil(_DRAWS_PER_LEVEL / rule.test_level))
    return paired_test(table, problems, units, draws, settings.seed)


def _measure(table: PairedOutcomes, settings: ComparisonSettings, rule: Correction) -> PairResult:
    """Everything except what depends on the p-values of the other pairs."""
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
    units = independent_units(table, problems)
    mean = problems.mean(problems.sums)
    wins, losses = (int(table.weights[turned > 0].sum()) for turned in (problems.sums, -problems.sums))
    test, p_value = _test(table, problems, units, settings, rule)
    differences, confidence = PairedDifferences.of(table, problems), 1 - rule.interval_level
    own = consistent_with_test(
        differences.interval(settings.confidence), mean, rejected=p_value <= 1 - settings.confidence
    )
    together = differences.interval(confidence)
    together = widen_to_margins(together, units, differences.standard_error, settings.relevant, confidence)
    effect, detectable_method = _detectable(table, problems, units, differences.standard_error, settings, rule)
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
    table: PairedOutcomes,
    problems: PairedUnits,
    units: PairedUnits,
    error: ClusterRobustSE | None,
    settings: ComparisonSettings,
    rule: Correction,
) -> tuple[float | None, str | None]:
    if error is None:
        return None, None
    inverse_a, inverse_b = (math.fsum(table.weights / n) / table.problems for n in (table.n_a, table.n_b))
    moments = pass_rate_moments(problems, units, error.standard_error, (inverse_a, inverse_b))
    # Half the distance between two possible sums of differences: 1 / n if all have n attempts.
    step = float(1 / np.lcm(table.n_a, table.n_b).min())
    return minimum_detectable_effect(units, error, moments, step, rule.test_level, settings.power, settings.confidence)


def _with_verdict(result: PairResult, p_adjusted: float | None, rule: Correction, *, reachable: bool) -> PairResult:
    """Add the adjusted p-value, the adjusted interval and the verdict, which depend on all pairs."""
    if p_adjusted is None or result.difference is None:
        return result
    interval = Interval(result.adjusted_ci_low, result.adjusted_ci_high, result.adjusted_ci_method, result.units)
    interval = consistent_with_test(interval, result.difference, rejected=p_adjusted <= result.alpha)
    complete = replace(
        result,
        p_adjusted=p_adjusted,
        adjusted_ci_low=interval.low,
        adjusted_ci_high=interval.high,
        units_needed=None if reachable else units_needed(rule.best_level),
    )
    return replace(complete, verdict=verdict(complete))


def _effect_size(problems: PairedUnits, mean: float) -> float | None:
    scatter = residual_sum_of_squares(problems, mean)
    return mean / math.sqrt(scatter / (problems.problems - 1)) if scatter else None


def model_comparison(problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, *settings: Any) -> pl.LazyFrame:
    """All pairs of models in a tier and of tiers of a model, compared problem by problem, with a verdict on each."""
    return compare_all(problem_pass_at_k, problems, ComparisonSettings(*settings))


def comparison_settings(config: EvaluationConfig) -> ComparisonSettings:
    """The settings of `model_comparison` as a configuration has them."""
    from touchstone.tables import TABLES

    return ComparisonSettings(*(attrgetter(key)(config) for key in TABLES["model_comparison"].settings))
