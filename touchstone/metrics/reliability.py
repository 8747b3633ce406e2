"""Whether attempts at the same problem end alike: flips, consistency, and pass@k beside pass^k as k grows.

Only problems with at least two decided attempts can tell. The rate of problems that flip (solved sometimes) grows
with the number of attempts, since a rare failure is met sooner or later: compare it between models only at equal n.
Consistency, the chance that two attempts at a problem end alike, is estimated without bias from any n of at least 2.
"""

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.contracts import TABLES
from touchstone.inference.uncertainty import mean_interval
from touchstone.metrics.pass_at_k import histograms, pass_at_k_of_counts, pass_hat_k_of_counts

Floats = NDArray[np.float64]

EVERY_K_TO = 10


def flips(n: pl.Expr, c: pl.Expr) -> pl.Expr:
    """Whether some attempts passed and some did not; null where fewer than two were decided.

    >>> pl.select(flips(pl.lit(3), pl.lit(1))).item(), pl.select(flips(pl.lit(1), pl.lit(1))).item()
    (True, None)
    """
    return pl.when(n > 1).then((c > 0) & (c < n))


def consistency(n: pl.Expr, c: pl.Expr) -> pl.Expr:
    """Chance that two attempts at the problem end alike, without bias; null where fewer than two were decided.

    >>> pl.select(consistency(pl.lit(4), pl.lit(3))).item(), pl.select(consistency(pl.lit(2), pl.lit(1))).item()
    (0.5, 0.0)
    """
    return pl.when(n > 1).then((c * (c - 1) + (n - c) * (n - c - 1)) / (n * (n - 1)))


def reliability(problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings) -> pl.LazyFrame:
    """Flip rate and consistency over the repeated problems, with intervals, per model and tier.

    The flip rate grows with n, so it is to be compared at equal n only; consistency does not depend on n.

    >>> counts = pl.LazyFrame({"model": "m", "tier": "T0", "oid": ["a", "b"], "k": 1, "n": [4, 4], "c": [4, 2]})
    >>> problems = pl.LazyFrame({"oid": ["a", "b"], "cluster": [None, None]}, schema_overrides={"cluster": pl.String})
    >>> table = reliability(counts, problems, IntervalSettings()).collect()
    >>> table.select("always", "never", "flipping", "flip_rate", "consistency").row(0)
    (1, 0, 1, 0.5, 0.6666666666666666)
    """
    rows = [group | _figures(histogram, settings) for group, histogram in histograms(problem_pass_at_k, problems)]
    return pl.LazyFrame(rows, schema=TABLES["reliability"].dtypes)


def reliability_curve(
    problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings
) -> pl.LazyFrame:
    """pass@k and pass^k per model, tier and k, over the problems with at least k attempts.

    Where problems differ in n these become fewer as k grows (`eligible`), and the curve may bend with them.
    """
    rows = [
        group | {"k": k} | _point(histogram.filter(pl.col("n") >= k), k, settings)
        for group, histogram in histograms(problem_pass_at_k, problems)
        for k in budgets(int(histogram["n"].to_numpy().max()))
    ]
    return pl.LazyFrame(rows, schema=TABLES["reliability_curve"].dtypes)


def budgets(most: int) -> list[int]:
    """The k of a curve: each up to 10, then in steps of 1, 2 and 5, as far as the attempts go.

    >>> budgets(60)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 50]
    """
    steps = [step * 10**power for power in range(1, len(str(most))) for step in (1, 2, 5)]
    return [k for k in [*range(1, EVERY_K_TO), *steps] if k <= most]


def _figures(histogram: pl.DataFrame, settings: IntervalSettings) -> dict[str, object]:
    n, c = pl.col("n"), pl.col("c")
    repeated = histogram.filter(n > 1)
    weights, clusters = repeated["problems"].to_numpy(), repeated["cluster"].to_list()
    flip, alike = (
        repeated.select(figure(n, c).cast(pl.Float64)).to_series().to_numpy() for figure in (flips, consistency)
    )
    of_flips, of_alike = (mean_interval(values, weights, clusters, settings) for values in (flip, alike))
    return {
        "problems": _problems(histogram.filter(n > 0)),
        "repeated": _problems(repeated),
        "always": _problems(repeated.filter(c == n)),
        "never": _problems(repeated.filter(c == 0)),
        "flipping": _problems(repeated.filter(flips(n, c))),
        "flip_rate": _mean(flip, weights),
        "flip_rate_ci_low": of_flips.low,
        "flip_rate_ci_high": of_flips.high,
        "flip_rate_ci_method": of_flips.method,
        "consistency": _mean(alike, weights),
        "consistency_ci_low": of_alike.low,
        "consistency_ci_high": of_alike.high,
        "consistency_ci_method": of_alike.method,
        "ci_units": of_alike.units,
    }


def _point(eligible: pl.DataFrame, k: int, settings: IntervalSettings) -> dict[str, object]:
    n, c, weights = (eligible[name].to_numpy() for name in ("n", "c", "problems"))
    every = pass_hat_k_of_counts(n, c, k)
    interval = mean_interval(every, weights, eligible["cluster"].to_list(), settings)
    return {
        "pass_at_k": _mean(pass_at_k_of_counts(n, c, k), weights),
        "pass_hat_k": _mean(every, weights),
        "ci_low": interval.low,
        "ci_high": interval.high,
        "ci_method": interval.method,
        "ci_units": interval.units,
        "eligible": int(weights.sum()),
    }


def _problems(histogram: pl.DataFrame) -> int:
    return int(histogram["problems"].sum())


def _mean(shares: Floats, weights: NDArray[np.int64]) -> float | None:
    count = int(weights.sum())
    # Rounding may carry a mean of shares past 1.
    return min(1.0, math.fsum(shares * weights) / count) if count else None
