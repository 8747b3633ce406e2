"""Corrections for multiple comparisons.

A family is the set of comparisons that share one error rate:

- `"all"` pairs of a run, or `"baseline"`, the pairs with one baseline model: Holm's step-down procedure bounds the
  probability of any false "better" or "worse" by alpha, under any dependence between pairs.
- `"fdr"`, all pairs: the Benjamini-Yekutieli step-up procedure bounds the expected share of false rejections by alpha.
  Unlike Benjamini-Hochberg, which it tightens by the factor 1 + 1/2 + ... + 1/pairs, it is valid under any dependence:
  pairs that share a model depend on each other in both directions.

Simultaneous intervals have the level alpha / pairs (Bonferroni), which is also what Holm requires of the first pair.
Under `"fdr"` they may be narrower for rejected pairs (false coverage-statement rate, Benjamini and Yekutieli 2005):
alpha * rejections / (pairs * (1 + 1/2 + ... + 1/pairs)), if that is larger.

References: Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics
6(2). Benjamini and Yekutieli (2001), "The control of the false discovery rate in multiple testing under dependency",
Annals of Statistics 29(4). Benjamini and Yekutieli (2005), "False discovery rate-adjusted multiple confidence intervals
for selected parameters", Journal of the American Statistical Association 100(469).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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


def count_rejections(p_values: Sequence[float | None], alpha: float, family: Family) -> int:
    """How many pairs differ significantly after the correction.

    >>> count_rejections([0.001, 0.2, None], 0.05, "fdr")
    1
    """
    return sum(p is not None and p <= alpha for p in adjust_p_values(p_values, family))


def adjust_p_values(p_values: Sequence[float | None], family: Family) -> list[float | None]:
    """Adjusted p-values in the same order. Nulls stay null and do not count as comparisons.

    >>> adjust_p_values([0.01, 0.04, None, 0.03, 0.5], "all")
    [0.04, 0.09, None, 0.09, 0.5]
    """
    return benjamini_yekutieli(p_values) if family == "fdr" else holm(p_values)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values of Holm's step-down procedure (1979). Nulls do not count.

    >>> holm([0.01, 0.04, None, 0.03, 0.5])
    [0.04, 0.09, None, 0.09, 0.5]
    """
    ordered = _ordered(p_values)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(ordered):
        highest = max(highest, min(1.0, p * (len(ordered) - rank)))
        adjusted[place] = highest
    return adjusted


def benjamini_yekutieli(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values of the Benjamini-Yekutieli step-up procedure (2001). Nulls do not count.

    >>> benjamini_yekutieli([0.001, None, 0.5])
    [0.003, None, 0.75]
    """
    ordered = _ordered(p_values)
    factor = len(ordered) * _harmonic(len(ordered))
    adjusted: list[float | None] = [None] * len(p_values)
    lowest = 1.0
    for rank, (p, place) in reversed(list(enumerate(ordered, start=1))):
        lowest = min(lowest, p * factor / rank)
        adjusted[place] = lowest
    return adjusted


def _ordered(p_values: Sequence[float | None]) -> list[tuple[float, int]]:
    return sorted((p, place) for place, p in enumerate(p_values) if p is not None)


def _harmonic(count: int) -> float:
    return math.fsum(1 / place for place in range(1, count + 1)) or 1.0
