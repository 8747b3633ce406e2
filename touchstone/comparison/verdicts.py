"""The result of comparing two models, its verdict, and the sentence that reports it.

The statistics are computed in `families`; this module only interprets them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from touchstone.storage.snapshots import RESERVED
from touchstone.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from touchstone.inference.arrays import Floats, Texts
    from touchstone.metrics.keys import ModelTier


Ends = tuple[float | None, float | None]
# The models of a tier whose pairs matter among many.
BEST_MODELS = 30


@dataclass(frozen=True)
class PairResult:
    """b compared with a. Undefined is null; without a problem decided for both, every figure is null.

    `difference` is the mean over problems of pass@1 of b minus pass@1 of a. `wins`, `losses` and `ties` count the
    problems where b's rate is higher, lower and equal. `effect_size` is the standardised paired difference: the
    mean difference over the standard deviation of the problems' differences (Cohen's d_z).

    `p_value`, `ci_low` and `ci_high` are for this pair alone. `p_adjusted`, `adjusted_ci_low`, `adjusted_ci_high` and
    `minimum_detectable_effect` are corrected for all `pairs`. `units_needed` is set if there are too few units for any
    difference, however large, to be significant. `same_attempts`: both have the same attempts with the same outcomes.
    `fell` and `rose` count problems that changed beyond chance each; `p_changed` tests their number if both sides are
    one model. `p_adjusted` is of both tests together; `decided_by` says which of them found a difference.
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
    fell: int = 0
    rose: int = 0
    p_changed: float | None = None
    decided_by: str | None = None
    effect_size: float | None = None
    minimum_detectable_effect: float | None = None
    detectable_method: str | None = None
    detectable_on_few: float | None = None
    units_needed: int | None = None
    alpha: float = 0.05
    relevant: float = 0.05
    verdict: str = "inconclusive"
    same_attempts: bool = False
    # Whether the verdict concludes the same if undecided attempts passed on one side and failed on the other, both
    # ways; null if there are none.
    holds_if_undecided: bool | None = None
    # Confidence intervals of rate_a and rate_b.
    rate_intervals: tuple[Ends, Ends] = ((None, None), (None, None))

    @property
    def clustered(self) -> bool:
        """Whether the units are clusters of problems."""
        return self.units < self.problems


@dataclass(frozen=True)
class Look:
    """One look at a baseline: its number, how many the budget covers, and its level. Without a budget, no number."""

    look: int | None
    looks: int | None
    level: float

    def __str__(self) -> str:
        """Which look it is, in the words of a title."""
        if self.look is None or self.looks is None:
            return "without a budget of looks"
        after = self.look > self.looks
        return f"look {self.look:,}{', after' if after else ' of'} the {self.looks:,} that the budget covers"

    def explain(self, baseline: str) -> str:
        """Which look it is, at which level, and what to do if that is not a good one.

        >>> Look(12, 60, 0.00133).explain("baseline")
        'look 12 of the 60 that the budget covers: worse needs an adjusted p of at most 0.0013'
        """
        needs = f"{self}: worse needs an adjusted p of at most {self.level:.2g}"
        if self.look is None or self.looks is None:
            moving = f", and '{baseline}' moves with every run" if baseline in RESERVED else ""
            return f"{needs} in each run by itself{moving}; so false alarms add up over many runs"
        return needs if self.look <= self.looks else f"{needs}; pin a new baseline for a new budget"


def verdicts(
    difference: "Floats", p_adjusted: "Floats", interval: "tuple[Floats, Floats]", alpha: float, relevant: float
) -> "Texts":
    """The verdict on b in each pair: `better`, `worse`, `no relevant difference` or `inconclusive`.

    The test decides `better` and `worse`: adjusted p at most alpha (p equal to alpha rejects, as in a level-alpha
    test). Otherwise: `no relevant difference` if the adjusted interval lies within the margin. Undefined is NaN.

    >>> import numpy as np
    >>> low, high = np.array([0.01, -0.02]), np.array([0.4, 0.04])
    >>> verdicts(np.array([0.2, 0.01]), np.array([0.05, 0.3]), (low, high), 0.05, 0.05).tolist()
    ['better', 'no relevant difference']
    """
    import numpy as np

    low, high = interval
    significant = p_adjusted <= alpha
    within = (-relevant < low) & (high < relevant)
    known = np.array(["better", "worse", "no relevant difference", "inconclusive"], dtype=object)
    # By their places, so that equal texts are one object.
    return np.asarray(
        known[np.select([significant & (difference > 0), significant, within], range(3), 3)], dtype=object
    )


def with_ranks(pairs: "pl.LazyFrame", sides: "Sequence[ModelTier]") -> "pl.LazyFrame":
    """The pairs with `place_a` and `place_b` among the `sides`, which are best first, and whether a pair `matters`.

    Of many pairs, those matter whose sides are both among the `BEST_MODELS` of their tiers, or next in rank.
    """
    import polars as pl

    schema = {"model": pl.String, "tier": pl.String}
    places = pl.LazyFrame(sides, schema=schema, orient="row").with_row_index("place")
    places = places.with_columns(rank=pl.int_range(pl.len()).over("tier"))
    for end in "ab":
        keys = {name: f"{name}_{end}" for name in ("model", "tier", "place", "rank")}
        pairs = pairs.join(places.rename(keys), on=[keys["model"], keys["tier"]], how="left", maintain_order="left")
    a, b = pl.col("rank_a"), pl.col("rank_b")
    are_next = (pl.col("tier_a") == pl.col("tier_b")) & ((a - b).abs() == 1)
    matters = (pl.max_horizontal(a, b) < BEST_MODELS) | are_next
    return pairs.with_columns(matters=matters.fill_null(False)).drop("rank_a", "rank_b")


def describe_shortage(units: int, needed: int, *, pairs: int, alpha: float, clustered: bool) -> str:
    """A sentence saying that there are too few units for significance and how many are needed.

    >>> describe_shortage(6, 7, pairs=3, alpha=0.05, clustered=True)
    '6 clusters cannot reach p ≤ 0.05 over 3 pairs; at least 7 are needed'
    """
    over = f" over {pairs:,} pairs" if pairs > 1 else ""
    few = counted(units, "cluster" if clustered else "problem")
    return f"{few} cannot reach p ≤ {alpha:.2g}{over}; at least {needed:,} are needed"


def sentence(result: PairResult, name_a: str, name_b: str) -> str:
    """The result in one line, and whether it depends on undecided attempts. Differences are in percentage points.

    >>> result = PairResult(40, 0, 0, difference=-0.121, ci_low=-0.203, ci_high=-0.04, p_value=0.0015, p_adjusted=0.004,
    ...                     pairs=3, adjusted_ci_low=-0.222, adjusted_ci_high=-0.021, units=40, verdict="worse")
    >>> print(sentence(result, "atlas", "cedar").replace("; ", ";\\n"))
    cedar is worse than atlas by 12.1 points (95% CI 4.0 to 20.3, p = 0.002;
    adjusted for 3 pairs: 95% CI 2.1 to 22.2, p = 0.004;
    40 problems)
    """
    words = _sentence(result, name_a, name_b)
    if result.holds_if_undecided is None:
        return words
    holds = "holds under both bounds of" if result.holds_if_undecided else "depends on"
    return f"{words}; the verdict {holds} the undecided attempts"


def _sentence(result: PairResult, name_a: str, name_b: str) -> str:
    if result.difference is None or result.ci_low is None or result.ci_high is None:
        return f"{name_b} and {name_a} cannot be compared: no problem was decided for both"
    if result.same_attempts:
        baseline = "the baseline" if name_a == "baseline" else name_a
        return f"every attempt ended as in {baseline} ({counted(result.problems, 'problem')})"
    if result.decided_by == "problems":
        seen = f"mean difference {_signed(result.difference)} points ({_evidence(result)})"
        return f"{name_b} is {result.verdict} than {name_a}: {_changed(result)}; {seen}"
    if result.verdict in ("better", "worse"):
        points = _points(abs(result.difference))
        return f"{name_b} is {result.verdict} than {name_a} by {points} points ({_evidence(result)})"
    if result.verdict == "no relevant difference":
        margin, seen = _points(result.relevant).removesuffix(".0"), f"difference {_signed(result.difference)} points"
        start = f"no relevant difference between {name_b} and {name_a}"
        return f"{start}: {seen} ({_evidence(result)}), within {margin} points either way"
    return f"{name_b} against {name_a} is inconclusive: {_inconclusive(result)}; {_detectable(result)}"


def _inconclusive(result: PairResult) -> str:
    """The interval that the verdict rests on, and the evidence."""
    many = result.pairs > 1
    low, high = (result.adjusted_ci_low, result.adjusted_ci_high) if many else (result.ci_low, result.ci_high)
    level = f"{100 * (1 - result.alpha if many else result.confidence):g}% CI"
    if many:
        rate = ", false discovery rate" if result.correction != "holm" else ""
        level += f" adjusted for {result.pairs:,} pairs{rate}"
    together = f"adjusted {_p(result.p_adjusted)}" if many else _p(result.p_adjusted)
    tests = f"{_p(result.p_value)}, {together}" if many else _p(result.p_value)
    if result.p_changed is not None:
        tests = f"{_p(result.p_value)} for the mean; {_changed(result)}; {together} for both tests"
    ends = f"{_signed(low or 0.0)} to {_signed(high or 0.0)} points"
    return f"{ends} ({level}; difference {_signed(result.difference or 0.0)}, {tests}, {_data(result)})"


def _detectable(result: PairResult) -> str:
    if result.units_needed is not None:
        return describe_shortage(
            result.units, result.units_needed, pairs=result.pairs, alpha=result.alpha, clustered=result.clustered
        )
    even, few = result.minimum_detectable_effect, result.detectable_on_few
    if even is None:
        return "no difference is sure enough to be found, however large"
    on_few = "" if few is None else f", {_points(few).removesuffix('.0')} on few problems"
    return f"minimum detectable effect {_points(even).removesuffix('.0')} points if spread evenly{on_few}"


def _evidence(result: PairResult) -> str:
    """Intervals, p-values and the number of problems."""
    worse = result.verdict == "worse" and result.decided_by != "problems"
    data = _data(result)
    own = f"{_interval(result.ci_low, result.ci_high, result.confidence, worse)}, {_p(result.p_value)}"
    if result.p_changed is not None and result.decided_by != "problems":
        own += f" for the mean; {_changed(result)}"
    if result.pairs <= 1:
        return f"{own}, {data}"
    rate = ", false discovery rate" if result.correction != "holm" else ""
    both = " for both tests" if result.p_changed is not None else ""
    adjusted = _interval(result.adjusted_ci_low, result.adjusted_ci_high, 1 - result.alpha, worse)
    return f"{own}; adjusted for {result.pairs:,} pairs{rate}: {adjusted}, {_p(result.p_adjusted)}{both}; {data}"


def _data(result: PairResult) -> str:
    inside = f" in {counted(result.units, 'cluster')}" if result.clustered else ""
    return counted(result.problems, "problem") + inside


def _interval(low: float | None, high: float | None, confidence: float, worse: bool) -> str:
    """The interval as text; for a worse model that of how much worse it is."""
    if low is None or high is None:
        return "no CI"
    low, high = (-high, -low) if worse else (low, high)
    return f"{100 * confidence:.4g}% CI {_points(low)} to {_points(high)}"


def _changed(result: PairResult) -> str:
    return f"{counted(result.fell, 'problem')} fell and {result.rose:,} rose, {_p(result.p_changed)}"


def _p(value: float | None) -> str:
    return "no p" if value is None else "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _signed(difference: float) -> str:
    points = _points(difference)
    return points if points[0] == "-" or points == "0.0" else f"+{points}"


def _points(difference: float) -> str:
    """In percentage points, with one digit.

    >>> _points(0.1234), _points(-0.0001)
    ('12.3', '0.0')
    """
    text = f"{100 * difference:.1f}"
    return "0.0" if text == "-0.0" else text
