"""Whether repeated attempts at a problem agree: flip rate, consistency, and pass@k beside pass^k as k grows.

Only problems with at least two decided attempts count. The flip rate (problems solved sometimes but not always) grows
with the number of attempts n, because more attempts find rarer failures: compare it only at equal n. Consistency, the
probability that two attempts at a problem have the same outcome, has an unbiased estimate from any n >= 2, the same
pair counting as in Simpson's index (1949).
"""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Floats
from touchstone.inference.uncertainty import mean_interval
from touchstone.metrics.pass_at_k import Estimates, OutcomeCounts, counts_by_group, estimates
from touchstone.tables import TABLES

EVERY_K_TO = 10


def flips(n: pl.Expr, c: pl.Expr) -> pl.Expr:
    """Whether some attempts passed and some failed; null with fewer than two decided attempts.

    >>> pl.select(flips(pl.lit(3), pl.lit(1))).item(), pl.select(flips(pl.lit(1), pl.lit(1))).item()
    (True, None)
    """
    return pl.when(n > 1).then((c > 0) & (c < n))


def consistency(n: pl.Expr, c: pl.Expr) -> pl.Expr:
    """Unbiased probability that two attempts have the same outcome; null with fewer than two decided attempts.

    >>> pl.select(consistency(pl.lit(4), pl.lit(3))).item(), pl.select(consistency(pl.lit(2), pl.lit(1))).item()
    (0.5, 0.0)
    """
    return pl.when(n > 1).then((c * (c - 1) + (n - c) * (n - c - 1)) / (n * (n - 1)))


def reliability(problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings) -> pl.LazyFrame:
    """The table `reliability`: flip rate and consistency with intervals per model and tier.

    The flip rate grows with n, so compare it only at equal n; consistency does not depend on n.

    >>> counts = pl.LazyFrame({"model": "m", "tier": "T0", "oid": ["a", "b"], "k": 1, "n": [4, 4], "c": [4, 2]})
    >>> problems = pl.LazyFrame({"oid": ["a", "b"], "cluster": [None, None]}, schema_overrides={"cluster": pl.String})
    >>> table = reliability(counts, problems, IntervalSettings()).collect()
    >>> table.select("always", "never", "flipping", "flip_rate", "consistency").row(0)
    (1, 0, 1, 0.5, 0.6666666666666666)
    """
    groups = counts_by_group(problem_pass_at_k, problems)
    repeated = [counts.with_at_least(2) for counts in groups.values()]
    rows = [
        {"model": model, "tier": tier, "problems": int(counts.problems[counts.n > 0].sum())}
        | _figures(eligible, *values, settings)
        for ((model, tier), counts), eligible, values in zip(
            groups.items(), repeated, _flips_and_consistency(repeated), strict=True
        )
    ]
    return pl.LazyFrame(rows, schema=TABLES["reliability"].dtypes)


def reliability_curve(
    problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings
) -> pl.LazyFrame:
    """The table `reliability_curve`: pass@k and pass^k per model, tier and k, over problems with at least k attempts.

    If problems differ in n, fewer of them are `eligible` as k grows, which may bend the curve.
    """
    groups = counts_by_group(problem_pass_at_k, problems)
    most = {group: int(counts.n.max()) for group, counts in groups.items()}
    by_k = {k: estimates(groups, k) for k in curve_k_values(max(most.values(), default=0))}
    rows = [
        {"model": model, "tier": tier, "k": k} | _point(by_k[k][model, tier], settings)
        for model, tier in groups
        for k in curve_k_values(most[model, tier])
    ]
    return pl.LazyFrame(rows, schema=TABLES["reliability_curve"].dtypes)


def curve_k_values(most: int) -> list[int]:
    """The k values of a curve: every k up to 10, then 20, 50, 100, 200 and so on, up to the number of attempts.

    >>> curve_k_values(60)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 50]
    """
    steps = [step * 10**power for power in range(1, len(str(most))) for step in (1, 2, 5)]
    return [k for k in [*range(1, EVERY_K_TO), *steps] if k <= most]


def _flips_and_consistency(groups: Sequence[OutcomeCounts]) -> list[tuple[Floats, Floats]]:
    """Both figures of the problems of every group, evaluated for all groups at once."""
    if not groups:
        return []
    frame = pl.DataFrame({name: np.concatenate([getattr(counts, name) for counts in groups]) for name in ("n", "c")})
    evaluated = frame.select(
        flips(pl.col("n"), pl.col("c")).cast(pl.Float64).alias("flips"),
        consistency(pl.col("n"), pl.col("c")).alias("consistency"),
    )
    ends = np.cumsum([len(counts.n) for counts in groups])[:-1]
    flipping, consistent = (np.split(column.to_numpy(), ends) for column in evaluated)
    return list(zip(flipping, consistent, strict=True))


def _figures(
    repeated: OutcomeCounts, flip_values: Floats, consistency_values: Floats, settings: IntervalSettings
) -> dict[str, object]:
    clusters, n, c, weights = repeated
    flip_interval, consistency_interval = (
        mean_interval(values, weights, clusters, settings) for values in (flip_values, consistency_values)
    )
    return {
        "repeated": int(weights.sum()),
        "always": int(weights[c == n].sum()),
        "never": int(weights[c == 0].sum()),
        "flipping": int(weights[(c > 0) & (c < n)].sum()),
        "flip_rate": _mean(flip_values, weights),
        "consistency": _mean(consistency_values, weights),
        **flip_interval.columns("flip_rate_"),
        **consistency_interval.columns("consistency_"),
        "ci_units": consistency_interval.units,
    }


def _point(found: Estimates, settings: IntervalSettings) -> dict[str, object]:
    weights = found.eligible.problems
    interval = mean_interval(found.pass_hat_k, weights, found.eligible.clusters, settings)
    return {
        "pass_at_k": _mean(found.pass_at_k, weights),
        "pass_hat_k": _mean(found.pass_hat_k, weights),
        **interval.columns(),
        "eligible": int(weights.sum()),
    }


def _mean(shares: Floats, weights: NDArray[np.int64]) -> float | None:
    count = int(weights.sum())
    # Rounding may move a mean of shares above 1.
    return min(1.0, math.fsum(shares * weights) / count) if count else None
