"""Whether values of one group are more alike than chance explains: a permutation test within strata.

The statistic is the sum of squares between groups, of values less the mean of their stratum, so that groups which
differ only because strata do are not noticed. Permuting values within strata makes the test exact at any size
(Pitman 1938). Permutations stop as soon as the p-value cannot be small any more, which rejects no more often.

Reference: Pitman (1938), "Significance tests which may be applied to samples from any populations: III. The analysis of
variance test", Biometrika 29(3/4).
"""

from dataclasses import dataclass

import numpy as np

from touchstone.inference.arrays import Floats, Integers

PERMUTATIONS = 1999
# More values than this are not needed to notice groups, and would take long.
MAX_VALUES = 20_000
# After so many permutations that are as extreme, the p-value cannot be below 1 in 400 any more.
_ENOUGH = 5
_STREAM = 3


@dataclass(frozen=True)
class IntraclassCorrelation:
    """The intraclass correlation of values in groups, as in a one-way analysis of variance, and its p-value."""

    correlation: float
    p_value: float


def intraclass_correlation(
    values: Floats, groups: Integers, strata: Integers, seed: int
) -> IntraclassCorrelation | None:
    """How alike the values of one group are; None without two groups, one of which has several values.

    >>> groups = np.repeat(np.arange(20), 3)
    >>> intraclass_correlation((groups % 2).astype(float), groups, np.zeros(60, dtype=np.int64), seed=1)
    IntraclassCorrelation(correlation=1.0, p_value=0.0005)
    """
    order = np.lexsort((values, groups, strata))[:MAX_VALUES]
    groups, strata = (np.unique(codes[order], return_inverse=True)[1] for codes in (groups, strata))
    many, sizes = len(order), np.bincount(groups)
    if not 1 < len(sizes) < many:
        return None
    means = np.bincount(strata, weights=values[order]) / np.bincount(strata)
    residuals = values[order] - means[strata]
    total = float(np.sum(residuals**2))
    if total <= 0:
        return None

    def between(these: Floats) -> float:
        return float(np.sum(np.bincount(groups, weights=these) ** 2 / sizes))

    observed, generator = between(residuals), np.random.default_rng([seed, _STREAM])
    extreme, drawn = 0, 0
    while drawn < PERMUTATIONS and extreme < _ENOUGH:
        # Rows are sorted by stratum, so this only exchanges values within one.
        permuted = residuals[np.lexsort((generator.random(many), strata))]
        extreme += between(permuted) >= observed * (1 - 1e-12)
        drawn += 1
    within = (total - observed) / (many - len(sizes))
    spread = observed / (len(sizes) - 1) - within
    usual = (many - np.sum(sizes**2) / many) / (len(sizes) - 1)
    return IntraclassCorrelation(float(spread / (spread + usual * within)), (extreme + 1) / (drawn + 1))
