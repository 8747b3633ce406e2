"""The result of comparing two models, and its verdict.

The statistics are computed in `pairs`; this module only interprets them. `sentences` reports them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from touchstone.text import counted

if TYPE_CHECKING:
    from touchstone.inference.difference_limits import Floats, Texts


Ends = tuple[float | None, float | None]


@dataclass(frozen=True)
class PairResult:
    """b compared with a. Undefined is null; without a problem decided for both, every figure is null.

    `difference` is the mean over problems of pass@1 of b minus pass@1 of a. `wins`, `losses` and `ties` count the
    problems where b's rate is higher, lower and equal. `effect_size` is the standardised paired difference: the
    mean difference over the standard deviation of the problems' differences (Cohen's d_z).

    `p_value`, `ci_low` and `ci_high` are for this pair alone. `p_adjusted`, `adjusted_ci_low`, `adjusted_ci_high` and
    `minimum_detectable_effect` are corrected for all `pairs`. `units_needed` is set if there are too few units for any
    difference, however large, to be significant. `same_attempts`: both have the same attempts with the same outcomes.
    """

    problems: int
    problems_only_a: int
    problems_only_b: int
    rate_a: float | None = None
    rate_b: float | None = None
    difference: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    method: str | None = None
    units: int = 0
    confidence: float = 0.95
    test: str | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    correction: str = "holm"
    pairs: int = 1
    adjusted_ci_low: float | None = None
    adjusted_ci_high: float | None = None
    adjusted_ci_method: str | None = None
    adjusted_confidence: float | None = None
    wins: int = 0
    losses: int = 0
    ties: int = 0
    effect_size: float | None = None
    minimum_detectable_effect: float | None = None
    detectable_method: str | None = None
    units_needed: int | None = None
    alpha: float = 0.05
    relevant: float = 0.05
    verdict: str = "underpowered"
    same_attempts: bool = False
    # Confidence intervals of rate_a and rate_b.
    rate_intervals: tuple[Ends, Ends] = ((None, None), (None, None))

    @property
    def clustered(self) -> bool:
        """Whether the units are clusters of problems."""
        return is_clustered(self.method)


def is_clustered(method: str | None) -> bool:
    """Whether the units of an interval of this method are clusters of problems."""
    return (method or "").endswith("-cluster")


def verdicts(
    difference: "Floats",
    p_adjusted: "Floats",
    interval: "tuple[Floats, Floats]",
    effect: "Floats",
    alpha: float,
    relevant: float,
) -> "Texts":
    """The verdict on b in each pair: `better`, `worse`, `no relevant difference`, `no evidence` or `underpowered`.

    The test decides `better` and `worse`: adjusted p at most alpha (p equal to alpha rejects, as in a level-alpha
    test). Otherwise: `no relevant difference` if the adjusted interval lies within the margin, `no evidence` if the
    minimum detectable effect is at most the margin, else `underpowered`. Undefined is NaN.

    >>> import numpy as np
    >>> low, high = np.array([0.01, -0.02]), np.array([0.4, 0.04])
    >>> verdicts(np.array([0.2, 0.01]), np.array([0.05, 0.3]), (low, high), np.array([0.1, 0.1]), 0.05, 0.05).tolist()
    ['better', 'no relevant difference']
    """
    import numpy as np

    low, high = interval
    significant = p_adjusted <= alpha
    within = (-relevant < low) & (high < relevant)
    known = np.array(["better", "worse", "no relevant difference", "no evidence", "underpowered"], dtype=object)
    conditions = [significant & (difference > 0), significant, within, effect <= relevant]
    # By their places, so that equal texts are one object.
    return np.asarray(known[np.select(conditions, range(4), 4)], dtype=object)


def units_shortage(result: PairResult) -> str | None:
    """Why no difference can be significant and how many units it takes; None if there are enough.

    >>> units_shortage(PairResult(30, 0, 0, units=6, method="t-cluster", pairs=3, units_needed=7))
    '6 clusters cannot reach p ≤ 0.05 over 3 pairs; at least 7 are needed'
    """
    if result.units_needed is None:
        return None
    return describe_shortage(
        result.units, result.units_needed, pairs=result.pairs, alpha=result.alpha, clustered=result.clustered
    )


def describe_shortage(units: int, needed: int, *, pairs: int, alpha: float, clustered: bool) -> str:
    """A sentence saying that there are too few units for significance and how many are needed."""
    over = f" over {pairs:,} pairs" if pairs > 1 else ""
    few = counted(units, "cluster" if clustered else "problem")
    return f"{few} cannot reach p ≤ {alpha:g}{over}; at least {needed:,} are needed"
