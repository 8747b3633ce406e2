"""pass@k (Chen et al. 2021) and pass^k (Yao et al. 2024): per problem, then the unweighted mean over problems.

There are few distinct counts (n, c), however many rows there are. So the estimators are evaluated once per distinct
pair, and the mean over problems is a weighted sum over the sorted pairs with `math.fsum`, which is the same to the last
bit in any order of files and rows.

References: Chen et al. (2021), "Evaluating large language models trained on code", arXiv:2107.03374. Yao et al. (2024),
"tau-bench: a benchmark for tool-agent-user interaction in real-world domains", arXiv:2406.12045.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.uncertainty import mean_interval
from touchstone.inference.units import GroupKey, arrays_by_group
from touchstone.metrics.keys import MODEL_TIER, PROBLEM_KEY, counting_problems, without_excluded
from touchstone.tables import TABLES
from touchstone.vocabulary import DEFAULT_TIER


def pass_at_k_of(n: int, c: int, k: int) -> float | None:
    """Unbiased estimate of the probability that at least one of k attempts passes, from c passes in n attempts.

    1 - C(n - c, k) / C(n, k), as in Chen et al. (2021); None if n < k.

    >>> pass_at_k_of(10, 5, 1), pass_at_k_of(2, 0, 5)
    (0.5, None)
    """
    return _scalar(pass_at_k_of_counts, n, c, k)


def pass_hat_k_of(n: int, c: int, k: int) -> float | None:
    """Unbiased estimate of the probability that all of k attempts pass: C(c, k) / C(n, k); None if n < k.

    >>> pass_hat_k_of(4, 2, 1), pass_hat_k_of(4, 1, 2)
    (0.5, 0.0)
    """
    return _scalar(pass_hat_k_of_counts, n, c, k)


def pass_at_k_of_counts(n: Integers, c: Integers, k: int) -> Floats:
    """pass@k of arrays of counts; NaN where n < k."""
    # Adding 0.0 turns the -0.0 of "no pass at all" into 0.0.
    return np.where(n < k, np.nan, -np.expm1(_log_probability_of_avoiding(n, c, k)) + 0.0)


def pass_hat_k_of_counts(n: Integers, c: Integers, k: int) -> Floats:
    """pass^k of arrays of counts; NaN where n < k. All k pass if they avoid the n - c failures."""
    return np.where(n < k, np.nan, np.exp(_log_probability_of_avoiding(n, n - c, k)))


def count_outcomes(outcomes: pl.LazyFrame) -> pl.LazyFrame:
    """Decided attempts n and passed attempts c per model, tier and problem."""
    return outcomes.group_by(PROBLEM_KEY).agg(
        n=pl.col("passed").count().cast(pl.Int64), c=pl.col("passed").sum().cast(pl.Int64)
    )


def decided_counts(attempt_scores: pl.LazyFrame) -> pl.LazyFrame:
    """The same from the table `attempt_scores`, of the problems with a decided attempt."""
    decided = attempt_scores.filter(pl.col("pass_rate").is_not_null()).group_by(PROBLEM_KEY)
    return decided.agg(n=pl.len().cast(pl.Int64), c=pl.col("pass_rate").sum().cast(pl.Int64))


def problem_counts(problem_pass_at_k: pl.LazyFrame) -> pl.LazyFrame:
    """n and c per model, tier and problem, read back from the table `problem_pass_at_k`."""
    first = pl.col("k") == pl.col("k").min()
    return problem_pass_at_k.filter(first).select(*PROBLEM_KEY, "n", "c")


def problem_pass_at_k(outcomes: pl.LazyFrame, k_values: Sequence[int]) -> pl.LazyFrame:
    """The table `problem_pass_at_k`: pass@k and pass^k per model, tier, problem and k."""
    return pass_at_k_of_problems(count_outcomes(without_excluded(outcomes)), k_values)


def pass_at_k_of_problems(counts: pl.LazyFrame, k_values: Sequence[int]) -> pl.LazyFrame:
    """The same from decided attempts n and passed attempts c per model, tier and problem."""
    columns = TABLES["problem_pass_at_k"].dtypes
    figures = {name: dtype for name, dtype in columns.items() if name not in PROBLEM_KEY}

    def evaluate(pairs: pl.DataFrame) -> pl.DataFrame:
        n, c = pairs["n"].to_numpy(), pairs["c"].to_numpy()
        per_k = [
            pairs.with_columns(
                k=pl.lit(k, pl.Int64),
                pass_at_k=pl.Series(pass_at_k_of_counts(n, c, k)).fill_nan(None),
                pass_hat_k=pl.Series(pass_hat_k_of_counts(n, c, k)).fill_nan(None),
            )
            for k in k_values
        ]
        return pl.concat(per_k).select(*figures)

    pairs = counts.select("n", "c").unique()
    evaluated = pairs.map_batches(evaluate, schema=figures).sort("k")
    # Sorted before each problem becomes a row per k.
    ordered = counts.sort(PROBLEM_KEY).join(evaluated, on=["n", "c"], maintain_order="left_right")
    return ordered.select(columns.names())


def outcome_histogram(counts: pl.LazyFrame, problems: pl.LazyFrame, group: Sequence[str] = MODEL_TIER) -> pl.LazyFrame:
    """The number of problems per group, cluster, n and c. A cluster with one problem only is null."""
    shared = shared_clusters(problems).collect(engine="streaming")
    # Most runs have none, and need not read a million ids.
    alone = counts.with_columns(cluster=pl.lit(None, shared.schema["cluster"]))
    clustered = alone if shared.is_empty() else counts.join(shared.lazy(), on="oid", how="left")
    return clustered.group_by(*group, "cluster", "n", "c").agg(problems=pl.len().cast(pl.Int64))


def shared_clusters(problems: pl.LazyFrame) -> pl.LazyFrame:
    """The problems that share their cluster with others, with the cluster."""
    shared = problems.group_by("cluster").len().filter(pl.col("cluster").is_not_null() & (pl.col("len") > 1))
    return problems.join(shared, on="cluster", how="semi").select("oid", "cluster")


class OutcomeCounts(NamedTuple):
    """The outcomes of a model and tier: `problems` problems with c passes in n decided attempts each, sorted.

    A cluster is a number, -1 for none.
    """

    clusters: Integers
    n: Integers
    c: Integers
    problems: Integers

    def with_at_least(self, attempts: int) -> "OutcomeCounts":
        """The problems with at least so many decided attempts."""
        enough = self.n >= attempts
        return self if enough.all() else OutcomeCounts(*(column[enough] for column in self))


def outcome_counts(histogram: pl.DataFrame, group: Sequence[str] = MODEL_TIER) -> dict[GroupKey, OutcomeCounts]:
    """The result of `outcome_histogram` as arrays, by group."""
    cluster = pl.when(pl.col("cluster").is_null()).then(-1).otherwise(pl.col("cluster").rank("dense")).cast(pl.Int64)
    ordered = histogram.sort(*group, "cluster", "n", "c", nulls_last=False)
    columns = ordered.select(*group, cluster, "n", "c", "problems")
    return {key: OutcomeCounts(*arrays) for key, arrays in arrays_by_group(columns, group)}


def counts_by_group(problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame) -> dict[GroupKey, OutcomeCounts]:
    """The outcomes of each model and tier, sorted by name."""
    return outcome_counts(outcome_histogram(problem_counts(problem_pass_at_k), problems).collect(engine="streaming"))


class Estimates(NamedTuple):
    """pass@k and pass^k of the problems with at least k decided attempts."""

    eligible: OutcomeCounts
    pass_at_k: Floats
    pass_hat_k: Floats


def estimates(groups: Mapping[GroupKey, OutcomeCounts], k: int) -> dict[GroupKey, Estimates]:
    """pass@k and pass^k of the problems of every group, evaluated for all groups at once."""
    if not groups:
        return {}
    eligible = [counts.with_at_least(k) for counts in groups.values()]
    n, c = (np.concatenate([getattr(counts, name) for counts in eligible]) for name in ("n", "c"))
    ends = np.cumsum([len(counts.n) for counts in eligible])[:-1]
    parts = (np.split(estimator(n, c, k), ends) for estimator in (pass_at_k_of_counts, pass_hat_k_of_counts))
    return dict(zip(groups, map(Estimates, eligible, *parts), strict=True))


def pass_at_k(
    problem_pass_at_k: pl.LazyFrame,
    problems: pl.LazyFrame,
    sources: pl.LazyFrame,
    k_values: Sequence[int],
    intervals: IntervalSettings,
) -> pl.LazyFrame:
    """The table `pass_at_k`: pass@k with its confidence interval per model, tier and k.

    A model whose file has no attempt gets a row without a figure, so that it does not disappear.
    """
    counts = problem_counts(problem_pass_at_k)
    histogram = outcome_histogram(counts, problems).collect(engine="streaming")
    groups = set(histogram.select(MODEL_TIER).unique().iter_rows())
    read = sources.filter(pl.col("status") == "evaluated").select("model").collect()["model"]
    groups |= {(model, DEFAULT_TIER) for model in set(read) - {model for model, _ in groups}}
    totals = problems_by_tier(problems, {tier for _, tier in groups})
    return summarise(histogram, sorted(groups), totals, k_values, intervals).lazy()


def problems_by_tier(problems: pl.LazyFrame, tiers: Iterable[str]) -> dict[str, int]:
    """The number of problems of each tier that count: those of all tiers, and its own.

    >>> tiers = [None, "T1", "T1", None]
    >>> problems = {"oid": list("abcd"), "only_tier": tiers, "excluded": [False, False, False, True]}
    >>> problems_by_tier(pl.LazyFrame(problems), ["T0", "T1"])
    {'T0': 1, 'T1': 3}
    """
    counts = dict(counting_problems(problems).group_by("only_tier").len().collect().iter_rows())
    return {tier: counts.get(None, 0) + counts.get(tier, 0) for tier in sorted(tiers)}


def summarise(
    histogram: pl.DataFrame,
    groups: Sequence[tuple[str, str]],
    problems: int | Mapping[str, int],
    k_values: Sequence[int],
    intervals: IntervalSettings | None,
) -> pl.DataFrame:
    """pass@k with its interval per model, tier and k, for all the given groups, attempted or not.

    `problems` is the number of problems, for all tiers or by tier. Without `intervals`, which take most of the time,
    the columns of intervals are null.
    """
    totals = problems if isinstance(problems, Mapping) else {tier: problems for _, tier in groups}
    attempted = outcome_counts(histogram.filter(pl.col("n") > 0))
    none = OutcomeCounts(*np.zeros((4, 0), dtype=np.int64))
    counts: dict[GroupKey, OutcomeCounts] = {group: attempted.get(group, none) for group in groups}
    by_k = {k: estimates(counts, k) for k in k_values}
    rows = [
        {"model": model, "tier": tier, "k": k}
        | mean_figures(by_k[k][model, tier], int(counts[model, tier].problems.sum()), totals[tier], intervals)
        for model, tier in groups
        for k in k_values
    ]
    return pl.DataFrame(rows, schema=TABLES["pass_at_k"].dtypes)


def mean_figures(
    found: Estimates, attempted: int, problems: int, intervals: IntervalSettings | None
) -> dict[str, object]:
    """The means over problems with their interval, as the table `pass_at_k` has them."""
    weights = found.eligible.problems
    total = math.fsum(found.pass_at_k * weights)
    count = int(weights.sum())
    counted = count + problems - attempted
    interval = intervals and mean_interval(found.pass_at_k, weights, found.eligible.clusters, intervals)
    return {
        "pass_at_k": _clip(total / count) if count else None,
        **(interval.columns() if interval else {}),
        "pass_at_k_all": _clip(total / counted) if counted else None,
        "pass_hat_k": _clip(math.fsum(found.pass_hat_k * weights) / count) if count else None,
        "problems": problems,
        "attempted": attempted,
        "eligible": count,
    }


def _log_probability_of_avoiding(n: Integers, marked: Integers, k: int) -> Floats:
    """log of C(n - marked, k) / C(n, k): the probability that k draws without replacement avoid all marked ones.

    The product of 1 - marked / (n - i) over i < k, summed as logarithms. k and `marked` are interchangeable, so the sum
    runs over the smaller of the two. Unlike lgamma, this loses no digits for large n.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    few, many = np.minimum(marked, k), np.maximum(marked, k)
    possible = (n >= k) & (few + many <= n)
    total = np.zeros(n.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(int(few[possible].max(initial=0))):
            total += np.where(possible & (i < few), np.log1p(-many / (n - i)), 0.0)
    return np.where(possible, total, -np.inf)


def _scalar(estimator: object, n: int, c: int, k: int) -> float | None:
    if not 0 <= c <= n:
        raise ValueError(f"there cannot be {c} passes among {n} attempts")
    value = float(estimator(np.array([n]), np.array([c]), k)[0])  # type: ignore[operator]
    return None if math.isnan(value) else value


def _clip(mean: float) -> float:
    # Rounding may move a weighted mean of figures in [0, 1] out of it.
    return min(1.0, max(0.0, mean))
