"""How many regressions to expect by chance: a permutation argument per case.

Under the null hypothesis that a case did not change, its attempts are exchangeable: every assignment of the pooled
attempts to baseline and current that keeps their numbers is equally likely. The probability that a random assignment
makes the case regress is its chance of regression; the sum over cases is the expected number of regressions.
Conditioning on the pooled attempts makes that sum unbiased under the null hypothesis even with a single attempt on
either side, where rates estimated per case would halve it.
"""

import math
from collections.abc import Callable

import polars as pl

from touchstone.compare.keys import CASE_KEY


def chance_of_regression(
    baseline: pl.LazyFrame, current: pl.LazyFrame, cases: pl.DataFrame, *, best: bool, limit: float
) -> pl.DataFrame:
    """Per compared case, the probability that its score drops by more than `limit` under random assignment.

    `baseline` and `current` hold attempts with `score` and `outcome` (1 passed, 0 failed); `cases` is the result of
    `regressions`. Exact for the best score and for pass rates; for means of other scores, the normal approximation to
    the permutation distribution.
    """
    sized = _sizes(baseline, current, cases, limit)
    # With one attempt on either side the mean is the best, for which the probability is exact.
    takes_best = (pl.lit(best) & ~pl.col("fallback")) | ((pl.col("n_baseline") == 1) & (pl.col("n_current") == 1))
    is_rate = pl.col("basis") == "pass_rate"
    kinds = [
        (takes_best, "top", lambda n_a, n_b, top: _all_on_baseline(n_a, n_b, int(top))),
        (~takes_best & is_rate, "passes", lambda n_a, n_b, passes: _rate_drops(n_a, n_b, int(passes), limit)),
        (~takes_best & ~is_rate, "variance", lambda n_a, n_b, variance: _mean_drops(n_a, n_b, variance, limit)),
    ]
    return pl.concat(_evaluated(sized.filter(which), column, probability) for which, column, probability in kinds)


def _sizes(baseline: pl.LazyFrame, current: pl.LazyFrame, cases: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Sufficient statistics of the pooled attempts per compared case.

    `top` counts the attempts within `limit` of the best one.
    """
    compared = cases.lazy().filter(pl.col("delta").is_not_null()).select(*CASE_KEY, "basis", "fallback")
    sides = [
        side.select(*CASE_KEY, "score", "outcome", is_current=pl.lit(place == 1))
        for place, side in enumerate((baseline, current))
    ]
    value = pl.when("fallback").then("outcome").otherwise("score")
    pooled = pl.concat(sides).join(compared, on=CASE_KEY, how="inner").with_columns(value=value).drop_nulls("value")
    sized = pooled.group_by(CASE_KEY).agg(
        pl.col("basis", "fallback").first(),
        n_baseline=(~pl.col("is_current")).sum().cast(pl.Int64),
        n_current=pl.col("is_current").sum().cast(pl.Int64),
        top=(pl.col("value") >= pl.col("value").max() - limit).sum().cast(pl.Int64),
        passes=pl.col("outcome").sum().cast(pl.Int64),
        # Rounded because the last digits depend on the order of rows.
        variance=pl.col("value").var().round(12).fill_null(0.0),
    )
    return sized.sort(CASE_KEY).collect()


def _evaluated(sized: pl.DataFrame, column: str, probability: Callable[[int, int, float], float]) -> pl.DataFrame:
    """Evaluate each distinct combination of statistics once: there are few of them, however many cases."""
    sizes = ["n_baseline", "n_current", column]
    distinct = sized.select(sizes).unique()
    chances = [probability(*row) for row in distinct.iter_rows()]
    known = distinct.with_columns(pl.Series("chance_of_regression", chances, pl.Float64))
    return sized.join(known, on=sizes, how="left").select(*CASE_KEY, "chance_of_regression")


def _all_on_baseline(n_baseline: int, n_current: int, top: int) -> float:
    """The probability that all `top` attempts are assigned to the baseline.

    Exactly then is the current best below the baseline's by more than the limit.

    >>> _all_on_baseline(1, 1, 1), _all_on_baseline(2, 2, 2), _all_on_baseline(3, 3, 4)
    (0.5, 0.16666666666666666, 0.0)
    """
    total, chance = n_baseline + n_current, 1.0
    for place in range(top):
        chance *= max(n_baseline - place, 0) / (total - place)
        if chance == 0:
            break
    return chance


def _rate_drops(n_baseline: int, n_current: int, passes: int, limit: float) -> float:
    """The probability that the pass rate drops by more than the limit: a hypergeometric tail.

    >>> [round(_rate_drops(*sizes, 0.05), 6) for sizes in ((1, 1, 1), (2, 2, 2), (3, 3, 6))]
    [0.5, 0.166667, 0.0]
    """
    total = n_baseline + n_current
    chances = [
        math.exp(_log_comb(n_baseline, kept) + _log_comb(n_current, passes - kept) - _log_comb(total, passes))
        for kept in range(max(passes - n_current, 0), min(n_baseline, passes) + 1)
        if (passes - kept) / n_current - kept / n_baseline < -limit
    ]
    return min(math.fsum(chances), 1.0)


def _mean_drops(n_baseline: int, n_current: int, variance: float, limit: float) -> float:
    """The normal approximation to the probability that the mean drops by more than the limit.

    >>> _mean_drops(5, 5, 0.0, 0.05), round(_mean_drops(50, 50, 0.25, 0.0), 3)
    (0.0, 0.5)
    """
    standard_error = math.sqrt(variance * (1 / n_baseline + 1 / n_current))
    return 0.5 * math.erfc(limit / (standard_error * math.sqrt(2))) if standard_error > 0 else 0.0


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
