"""Corrections for multiple comparisons.

A family is the set of comparisons that share one error rate:

- `"all"` pairs of a run, or `"baseline"`, the pairs with one baseline model: Holm's step-down procedure bounds the
  probability of any false "better" or "worse" by alpha, under any dependence between pairs.
- `"fdr"`, all pairs: the Benjamini-Yekutieli step-up procedure bounds the expected share of false rejections by alpha.
  Unlike Benjamini-Hochberg, which it tightens by the factor 1 + 1/2 + ... + 1/pairs, it is valid under any dependence:
  pairs that share a model depend on each other in both directions.

The audit of problems uses `benjamini_hochberg` itself, which finds more; its tests share models, not problems.

Simultaneous intervals have the level alpha / pairs (Bonferroni), which is also what Holm requires of the first pair.
Under `"fdr"` they may be narrower for rejected pairs (false coverage-statement rate, Benjamini and Yekutieli 2005):
alpha * rejections / (pairs * (1 + 1/2 + ... + 1/pairs)), if that is larger.

References: Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics
6(2). Benjamini and Hochberg (1995), "Controlling the false discovery rate", Journal of the Royal Statistical Society B
57(1). Benjamini and Yekutieli (2001), "The control of the false discovery rate in multiple testing under dependency",
Annals of Statistics 29(4). Benjamini and Yekutieli (2005), "False discovery rate-adjusted multiple confidence intervals
for selected parameters", Journal of the American Statistical Association 100(469).
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from touchstone.inference.arrays import Floats

Family = Literal["all", "baseline", "fdr"]


@dataclass(frozen=True)
class Correction:
    """The levels at which each pair of a family is tested and gets its interval.

    `best_level` is the level required of a pair if all other pairs are as significant as possible.
    """

    name: str
    pairs: int
    test_level: float
    interval_level: float
    best_level: float


def correction_for(pairs: int, alpha: float, family: Family, found: int = 0) -> Correction:
    """The correction for a family of `pairs`; `found`, the number of rejected pairs, only matters for `fdr`.

    >>> correction_for(2, 0.05, "all")
    Correction(name='holm', pairs=2, test_level=0.025, interval_level=0.025, best_level=0.025)
    """
    share = alpha / max(1, pairs)
    if family != "fdr":
        return Correction("holm", pairs, share, share, share)
    factor = _harmonic(pairs)
    level = share * max(1, found) / factor
    return Correction("benjamini-yekutieli", pairs, level, max(share, level), alpha / factor)


def count_rejections(p_values: Floats, alpha: float, family: Family) -> int:
    """How many pairs differ significantly after the correction.

    >>> count_rejections(np.array([0.001, 0.2]), 0.05, "fdr")
    1
    """
    return int(np.count_nonzero(adjust_p_values(p_values, family) <= alpha))


def adjust_p_values(p_values: Floats, family: Family) -> Floats:
    """Adjusted p-values in the same order.

    >>> adjust_p_values(np.array([0.01, 0.04, 0.03, 0.5]), "all")
    array([0.04, 0.09, 0.09, 0.5 ])
    >>> adjust_p_values(np.array([0.001, 0.5]), "fdr")
    array([0.003, 0.75 ])
    """
    return _adjusted(p_values, p_values * correction_factors(p_values, family), step_up=family == "fdr")


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Adjusted p-values in the same order: at most alpha for rejections of which an expected share alpha is false.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.5]))
    array([0.04      , 0.05333333, 0.05333333, 0.5       ])
    """
    # The harmonic factor is all that the procedure of Benjamini and Yekutieli adds.
    return _adjusted(p_values, p_values * len(p_values) / (_ranks(p_values) + 1), step_up=True)


def _adjusted(p_values: Floats, scaled: Floats, *, step_up: bool) -> Floats:
    """A step-down procedure stops at the first pair that it does not reject, a step-up one at the last that it does."""
    order = np.argsort(p_values, kind="stable")
    ordered, adjusted = np.minimum(1.0, scaled[order]), np.empty_like(scaled)
    adjusted[order] = np.minimum.accumulate(ordered[::-1])[::-1] if step_up else np.maximum.accumulate(ordered)
    return adjusted


def _ranks(p_values: Floats) -> Floats:
    ranks = np.empty(len(p_values))
    ranks[np.argsort(p_values, kind="stable")] = np.arange(len(p_values))
    return ranks


def correction_factors(p_values: Floats, family: Family) -> Floats:
    """The factor of each p-value before it is compared with alpha, given its rank in the family.

    >>> correction_factors(np.array([0.01, 0.04, 0.03]), "all")
    array([3., 1., 2.])
    """
    pairs, ranks = len(p_values), _ranks(p_values)
    return pairs * _harmonic(pairs) / (ranks + 1) if family == "fdr" else pairs - ranks


def _harmonic(count: int) -> float:
    return math.fsum(1 / place for place in range(1, count + 1)) or 1.0
