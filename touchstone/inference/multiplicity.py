"""Corrections for looking at many pairs at once.

A family is the set of comparisons that share one error rate:

- `"all"` pairs of a run, or `"baseline"`, the pairs with one baseline model: Holm's step-down correction (1979) keeps
  the chance of any false "better" or "worse" at most alpha, whatever the dependence between pairs.
- `"fdr"`, all pairs: Benjamini and Yekutieli's step-up correction (2001) keeps the expected share of false findings at
  most alpha. It is the form of Benjamini and Hochberg's that is valid under any dependence, at a price of a factor
  1 + 1/2 + ... + 1/pairs: pairs that share a model depend on each other in both directions, for which the plain form
  is not proven.

Intervals hold together where each has the level alpha / pairs (Bonferroni), the level that Holm asks of the first pair.
Where the false discovery rate is controlled they may be narrower for each finding (false coverage-statement rate,
Benjamini and Yekutieli 2005): alpha * findings / (pairs * (1 + 1/2 + ... + 1/pairs)), if that is more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Family = Literal["all", "baseline", "fdr"]


@dataclass(frozen=True)
class Correction:
    """What a family of so many pairs asks of each: its name, and the levels of a pair's test and of its interval.

    `best_level` is the level that a pair must reach where all others are as clear as can be.
    """

    name: str
    pairs: int
    test_level: float
    interval_level: float
    best_level: float


def correction_for(pairs: int, alpha: float, family: Family, found: int = 0) -> Correction:
    """The correction for so many pairs, of which so many were found to differ (which matters to `fdr` only).

    >>> correction_for(2, 0.05, "all")
    Correction(name='holm', pairs=2, test_level=0.025, interval_level=0.025, best_level=0.025)
    """
    share = alpha / max(1, pairs)
    if family != "fdr":
        return Correction("holm", pairs, share, share, share)
    price = _harmonic(pairs)
    level = share * max(1, found) / price
    return Correction("benjamini-yekutieli", pairs, level, max(share, level), alpha / price)


def count_rejections(p_values: Sequence[float | None], alpha: float, family: Family) -> int:
    """How many pairs differ significantly after the correction.

    >>> count_rejections([0.001, 0.2, None], 0.05, "fdr")
    1
    """
    return sum(p is not None and p <= alpha for p in adjust_p_values(p_values, family))


def adjust_p_values(p_values: Sequence[float | None], family: Family) -> list[float | None]:
    """The p-values after the family's correction, in the same order. Nulls stay, and do not count.

    >>> adjust_p_values([0.01, 0.04, None, 0.03, 0.5], "all")
    [0.04, 0.09, None, 0.09, 0.5]
    """
    return benjamini_yekutieli(p_values) if family == "fdr" else holm(p_values)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction: p-values that keep the chance of any false alarm below alpha. Nulls do not count.

    >>> holm([0.01, 0.04, None, 0.03, 0.5])
    [0.04, 0.09, None, 0.09, 0.5]
    """
    ordered = _ordered(p_values)
    found: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(ordered):
        highest = max(highest, min(1.0, p * (len(ordered) - rank)))
        found[place] = highest
    return found


def benjamini_yekutieli(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Yekutieli's step-up correction of the false discovery rate. Nulls do not count.

    >>> benjamini_yekutieli([0.001, None, 0.5])
    [0.003, None, 0.75]
    """
    ordered = _ordered(p_values)
    price = len(ordered) * _harmonic(len(ordered))
    found: list[float | None] = [None] * len(p_values)
    lowest = 1.0
    for rank, (p, place) in reversed(list(enumerate(ordered, start=1))):
        lowest = min(lowest, p * price / rank)
        found[place] = lowest
    return found


def _ordered(p_values: Sequence[float | None]) -> list[tuple[float, int]]:
    return sorted((p, place) for place, p in enumerate(p_values) if p is not None)


def _harmonic(count: int) -> float:
    return math.fsum(1 / place for place in range(1, count + 1)) or 1.0
