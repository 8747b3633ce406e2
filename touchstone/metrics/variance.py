"""Where the uncertainty of pass@1 comes from, which problems there are or which attempts, and what would shrink it.

A problem's rate x = c / n strays from the mean because problems differ and because n attempts are few. The second is
known without bias wherever a problem was tried twice: s = c (n - c) / (n (n - 1)) estimates p (1 - p), the variance of
one attempt at that problem. Problems with a single attempt borrow the mean of s over the repeated ones, which is fair
where it does not depend on difficulty which problems were repeated. What is left of the variance of the mean comes
from the problems. Both parts are without bias, so the part from problems may come out negative where it is small.

Problems that share a cluster are one unit: their residuals are summed before they are squared (`cluster_robust`: CR2,
so that clusters may differ in size), and the part from problems holds what the problems of a cluster have in common.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.contracts import TABLES
from touchstone.inference.cluster_robust import ClusterRobustError, robust_error
from touchstone.inference.exact import exact_mean
from touchstone.inference.quantiles import t_critical
from touchstone.metrics.pass_at_k import GROUP, histograms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Plans whose expected widths differ by less than this share are taken as equally good.
TIE = 0.05

_TOLERANCE = 1e-9
# A standard error below this is nothing but rounding.
_NOTHING = 1e-12
# So many errors below 0 the normal distribution has no float that is exact enough.
_FAR_BELOW = -8.0

_reach = lru_cache(maxsize=1024)(t_critical)


class UnitSums(NamedTuple):
    """Sums of so many rates (`sizes`), each kind of unit standing `counts` times."""

    sums: Floats
    sizes: Integers
    counts: Integers


@dataclass(frozen=True)
class Outcomes:
    """The decided outcomes of one model and tier: so many problems (`weights`) with c passes among n attempts."""

    n: Integers
    c: Integers
    weights: Integers
    # A number per cluster; -1 is a problem that stands alone.
    clusters: Integers

    @classmethod
    def of(cls, histogram: pl.DataFrame) -> Self:
        """From rows (cluster, n, c, problems) that are sorted, so that sums within clusters have one order."""
        decided = histogram.filter(pl.col("n") > 0)
        clusters = decided.select(pl.when(pl.col("cluster").is_null()).then(-1).otherwise(pl.col("cluster").rle_id()))
        n, c, weights = (decided[name].to_numpy() for name in ("n", "c", "problems"))
        return cls(n, c, weights, clusters.to_series().cast(pl.Int64).to_numpy())

    @cached_property
    def problems(self) -> int:
        return int(self.weights.sum())

    @cached_property
    def repeated(self) -> int:
        return int(self.weights[self.n > 1].sum())

    @cached_property
    def unit_sums(self) -> UnitSums:
        """Rates added up by unit: the problems that stand alone, then the clusters."""
        rates, inside = self.c / self.n, self.clusters >= 0
        sizes = np.bincount(self.clusters[inside], weights=self.weights[inside])
        sums = np.bincount(self.clusters[inside], weights=(self.weights * rates)[inside])
        # A number may be left out where the cluster has no decided problem.
        sums, sizes = sums[sizes > 0], sizes[sizes > 0].astype(np.int64)
        alone = ~inside
        return UnitSums(
            np.append(rates[alone], sums),
            np.append(np.ones(int(alone.sum()), dtype=np.int64), sizes),
            np.append(self.weights[alone], np.ones(len(sizes), dtype=np.int64)),
        )

    @cached_property
    def units(self) -> int:
        return int(self.unit_sums.counts.sum())

    @cached_property
    def residuals(self) -> Floats:
        rates = self.c / self.n
        return rates - math.fsum(rates * self.weights) / self.problems

    @cached_property
    def attempt_variances(self) -> Floats:
        """p (1 - p) without bias; NaN where a single attempt cannot tell."""
        with np.errstate(invalid="ignore"):
            variances: Floats = self.c * (self.n - self.c) / (self.n * (self.n - 1))
        return variances

    @cached_property
    def sampling_variance(self) -> float | None:
        """Mean over the repeated problems of the variance of one attempt; null where none was repeated."""
        if self.repeated == 0:
            return None
        again = self.n > 1
        return math.fsum(self.weights[again] * self.attempt_variances[again]) / self.repeated

    @cached_property
    def noise(self) -> float | None:
        """Mean over all problems of the sampling variance of their rate; null where none was repeated."""
        if self.sampling_variance is None:
            return None
        attempt_variances = np.where(self.n > 1, self.attempt_variances, self.sampling_variance)
        return math.fsum(self.weights * attempt_variances / self.n) / self.problems

    @cached_property
    def variance_of_mean(self) -> float | None:
        """Squared standard error of the mean rate from the scatter of units; null of one unit."""
        if self._robust is None:
            return None
        return self._robust.error**2 if self._robust.error > _NOTHING else 0.0

    @cached_property
    def degrees_of_freedom(self) -> float | None:
        """Degrees of freedom behind `variance_of_mean`."""
        return None if self._robust is None else self._robust.degrees_of_freedom

    @cached_property
    def _robust(self) -> ClusterRobustError | None:
        return robust_error(*self.unit_sums)

    @cached_property
    def problem_variance(self) -> float | None:
        """Variance of true rates between problems, without bias; null of one unit and where none was repeated.

        Residuals from a mean that strays with the problems are too small by its variance, which is given back. Where
        problems stand alone this is the usual division by their number less one.
        """
        if self.noise is None or self.variance_of_mean is None:
            return None
        return math.fsum(self.weights * self.residuals**2) / self.problems + self.variance_of_mean - self.noise


@dataclass(frozen=True)
class VarianceParts:
    """The variance of a mean over problems and its two parts, which add up to it or do not come to be.

    >>> VarianceParts(of_mean=0.03, from_problems=0.01, from_samples=0.01)
    Traceback (most recent call last):
    ValueError: the parts 0.01 from problems and 0.01 from samples do not add up to the variance 0.03
    """

    of_mean: float | None
    from_problems: float | None
    from_samples: float | None

    def __post_init__(self) -> None:
        whole, problems, samples = self.of_mean, self.from_problems, self.from_samples
        for name, variance in (("the variance of the mean", whole), ("its part from samples", samples)):
            if variance is not None and not variance >= 0:
                raise ValueError(f"{name} cannot be {variance}")
        if (problems is None) != (whole is None or samples is None):
            raise ValueError("the part from problems is known exactly where the variance and its other part are")
        if whole is None or problems is None or samples is None:
            return
        # Not by `whole` alone: large parts of opposite sign may leave next to nothing.
        if not abs(problems + samples - whole) <= _TOLERANCE * max(whole, abs(problems), samples):
            raise ValueError(
                f"the parts {problems} from problems and {samples} from samples do not add up to the variance {whole}"
            )

    @classmethod
    def of(cls, outcomes: Outcomes) -> Self:
        """The parts for the mean rate of a histogram of outcomes; what cannot be told is null."""
        whole = outcomes.variance_of_mean
        samples = None if outcomes.noise is None else outcomes.noise / outcomes.problems
        return cls(whole, None if whole is None or samples is None else whole - samples, samples)

    @property
    def share_from_problems(self) -> float | None:
        """The part from problems by the whole, within [0, 1]; null where there is no variance to share out.

        >>> VarianceParts(of_mean=0.04, from_problems=0.01, from_samples=0.03).share_from_problems
        0.25
        """
        if not self.of_mean or self.from_problems is None:
            return None
        return min(1.0, max(0.0, self.from_problems / self.of_mean))

    def expected_from_problems(self, degrees: float) -> float | None:
        """The part from problems that a plan reckons with: not below 0, where its estimate may lie.

        Clipping at 0 would promise that more attempts leave no variance at all just where the estimate came out too
        low. This is the median of what the part may be, given the estimate with its error, variance of the mean *
        sqrt(2 / degrees of freedom), and that it is not negative: a normal distribution cut off at 0. An estimate of
        three errors or more stays as it is.

        >>> round(VarianceParts(0.04, 0.03, 0.01).expected_from_problems(100), 9)
        0.03
        >>> round(VarianceParts(0.04, -0.01, 0.05).expected_from_problems(30), 4)
        0.0043
        """
        if not self.of_mean or self.from_problems is None:
            return None
        error = self.of_mean * math.sqrt(2 / degrees)
        z = self.from_problems / error
        if z < _FAR_BELOW:
            # The far tail of a normal distribution falls off exponentially.
            return math.log(2) * error / -z
        return self.from_problems - error * NormalDist().inv_cdf(NormalDist().cdf(z) / 2)


@dataclass(frozen=True)
class Plan:
    """What may be done next: so many times the problems, each with so many times the attempts."""

    name: str
    problems: int
    samples: int

    @property
    def attempts(self) -> int:
        return self.problems * self.samples

    def variance(self, parts: VarianceParts, degrees: float) -> float | None:
        """Expected variance of the mean under the plan, for parts with so many degrees of freedom.

        New problems are taken to come in clusters like those at hand, so the whole variance shrinks with them; new
        attempts shrink their own part only.

        >>> round(Plan("samples x2", problems=1, samples=2).variance(VarianceParts(0.04, 0.03, 0.01), 100), 6)
        0.035
        """
        if parts.of_mean is None:
            return None
        if self.samples == 1:
            return parts.of_mean / self.problems
        from_problems = parts.expected_from_problems(degrees)
        if from_problems is None or parts.from_samples is None:
            return None
        return min(parts.of_mean, from_problems + parts.from_samples / self.samples) / self.problems


NOW = Plan("now", problems=1, samples=1)
PLANS = (
    NOW,
    Plan("samples x2", problems=1, samples=2),
    Plan("samples x4", problems=1, samples=4),
    Plan("problems x2", problems=2, samples=1),
    Plan("problems x4", problems=4, samples=1),
)


def variance_split(problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame) -> pl.LazyFrame:
    """The variance of pass@1 and its parts per model and tier.

    >>> counts = pl.LazyFrame({"model": "m", "tier": "T0", "oid": ["a", "b"], "k": 1, "n": [4, 4], "c": [4, 2]})
    >>> problems = pl.LazyFrame({"oid": ["a", "b"], "cluster": [None, None]}, schema_overrides={"cluster": pl.String})
    >>> split = variance_split(counts, problems).collect()
    >>> split.select(pl.col("variance_of_mean", "from_problems", "from_samples").round(4)).row(0)
    (0.0625, 0.0417, 0.0208)
    """
    rows = [group | _figures(Outcomes.of(histogram)) for group, histogram in histograms(problem_pass_at_k, problems)]
    return pl.LazyFrame(rows, schema=TABLES["variance_split"].dtypes)


def next_samples(
    variance_split: pl.LazyFrame, attempt_scores: pl.LazyFrame, settings: IntervalSettings
) -> pl.LazyFrame:
    """How wide the interval of pass@1 would be, per model and tier, if what was done so far were done twice or more.

    Of `attempt_scores` only model, tier and cost_usd are read. The width is that of Student's t, at most 1, with the
    degrees of freedom that the plan will have, which is exact for units of equal size; near 0 and 1, where intervals
    lean inwards, the interval of `pass_at_k` is another. Where no scatter was seen at all there is no width to foresee:
    it is null rather than 0.

    Of two plans with as many more attempts, the one with the smaller expected width is advised. More problems are never
    worse, but new problems are harder to come by than attempts at known ones: where more samples come within `TIE` of
    the width, they are advised. That is so where less than about a tenth of the variance comes from problems, and
    enough problems show it: an estimate of nothing from a few problems does not (`expected_from_problems`).
    """
    dear = pl.col("cost_usd")
    means = attempt_scores.group_by(GROUP).agg(
        cost_per_attempt=pl.when(dear.is_not_null().all()).then(exact_mean(dear))
    )
    groups = variance_split.join(means, on=GROUP, how="left").sort(GROUP).collect()
    rows = [row for group in groups.iter_rows(named=True) for row in _plans(group, settings)]
    return pl.LazyFrame(rows, schema=TABLES["next_samples"].dtypes)


def _figures(outcomes: Outcomes) -> dict[str, object]:
    problems, weights = outcomes.problems, outcomes.weights
    parts = VarianceParts.of(outcomes)
    return {
        "problems": problems,
        "repeated": outcomes.repeated,
        "units": outcomes.units,
        "attempts": int((outcomes.n * weights).sum()),
        "samples": problems / math.fsum(weights / outcomes.n) if problems else None,
        # Rounding may carry a mean of shares past 1.
        "pass_at_1": min(1.0, math.fsum(outcomes.c / outcomes.n * weights) / problems) if problems else None,
        "standard_error": None if parts.of_mean is None else math.sqrt(parts.of_mean),
        "degrees_of_freedom": outcomes.degrees_of_freedom,
        "variance_of_mean": parts.of_mean,
        "from_problems": parts.from_problems,
        "from_samples": parts.from_samples,
        "share_from_problems": parts.share_from_problems,
        "problem_variance": outcomes.problem_variance,
        "sampling_variance": outcomes.sampling_variance,
    }


def _plans(group: dict[str, Any], settings: IntervalSettings) -> Iterator[dict[str, object]]:
    parts = VarianceParts(group["variance_of_mean"], group["from_problems"], group["from_samples"])
    reaches = {plan: _half_width(plan, parts, group["degrees_of_freedom"], settings) for plan in PLANS}
    widths = {plan: None if reach is None else min(1.0, 2 * reach) for plan, reach in reaches.items()}
    now, samples, cost = widths[NOW], group["samples"], group["cost_per_attempt"]
    for plan, width in widths.items():
        extra = group["attempts"] * (plan.attempts - 1)
        yield {
            "model": group["model"],
            "tier": group["tier"],
            "plan": plan.name,
            "problems": group["problems"] * plan.problems,
            "samples": None if samples is None else samples * plan.samples,
            "extra_attempts": extra,
            "extra_cost_usd": None if cost is None else extra * cost,
            "expected_width": width,
            "width_saved": None if now is None or width is None else now - width,
            "advised": _advised(plan, reaches),
        }


def _half_width(plan: Plan, parts: VarianceParts, degrees: float | None, settings: IntervalSettings) -> float | None:
    variance = None if degrees is None else plan.variance(parts, degrees)
    if degrees is None or not variance:
        return None
    return _reach((degrees + 1) * plan.problems - 1, settings.confidence) * math.sqrt(variance)


def _advised(plan: Plan, reaches: dict[Plan, float | None]) -> bool | None:
    """Decided before widths are cut at 1, so that two hopeless plans are not taken as equally good."""
    if plan == NOW:
        return None
    rivals = {rival.samples > 1: reaches[rival] for rival in PLANS if rival.attempts == plan.attempts}
    samples, problems = rivals[True], rivals[False]
    if samples is None or problems is None:
        return None
    return (samples <= problems * (1 + TIE)) == (plan.samples > 1)
