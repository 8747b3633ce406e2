"""Variance components of pass@1: what comes from the problems, the attempts and the validator, and how to shrink it.

A problem's rate x = c / n deviates from the mean because problems differ, and because it has only n attempts. The
variance of one attempt, p (1 - p), has the unbiased estimate s = c (n - c) / (n (n - 1)) on any problem with at least
two attempts. Problems with a single attempt use the mean of s over the repeated ones, which is fair if repetition does
not depend on difficulty. The remainder of the variance of the mean comes from the problems: a one-way random-effects
decomposition (Searle, Casella and McCulloch 1992). Both parts are unbiased, so a small part from problems may come out
negative.

Problems that share a cluster are one unit: their residuals are summed before they are squared (`uncertainty`: CR2,
which allows clusters of unequal size), and the part from problems includes what problems of a cluster have in common.

Two attempts at a problem get different verdicts because the fixes differ, or because the validator does. If a fix
passes a validation with probability t, and t varies over the fixes of a problem with mean p, the law of total variance
splits the variance of one attempt: p (1 - p) = Var(t) + E[t (1 - t)]. The second term is the validator's. From y passes
in r validations of one fix, y (r - y) / (r (r - 1)) is an unbiased estimate of t (1 - t). Both are averaged over
problems; their ratio is the share. Twice these variances are the probabilities that two validations, or two attempts,
disagree: means of values in [0, 1] over problems, whose intervals (`inference.uncertainty`) are combined to one of the
ratio (`inference.ratios`).

Reference: Searle, Casella and McCulloch (1992), "Variance Components".
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.quantiles import t_critical
from touchstone.inference.ratios import share_interval
from touchstone.inference.uncertainty import ClusterRobustSE, Interval, cluster_robust_se, mean_interval
from touchstone.metrics.keys import MODEL_TIER, PROBLEM_KEY
from touchstone.metrics.pass_at_k import counts_by_group, problem_counts, shared_clusters
from touchstone.metrics.problem_scores import mean_score
from touchstone.tables import TABLES

# Plans whose expected widths differ by less than this share are equally good.
TIE_TOLERANCE = 0.05

# Smaller standard errors are rounding errors.
_ROUNDING = 1e-12
# Below this many standard errors the normal distribution function loses precision.
_FAR_BELOW = -8.0


class UnitSums(NamedTuple):
    """`counts` units of each kind, with the sum of their `sizes` pass rates."""

    sums: Floats
    sizes: Integers
    counts: Integers


@dataclass(frozen=True)
class DecidedOutcomes:
    """The decided outcomes of one model and tier: `weights` problems with c passes in n attempts each.

    Rows are sorted, because the order of sums within clusters must be fixed. A cluster is a number, -1 for none.
    """

    clusters: Integers
    n: Integers
    c: Integers
    weights: Integers

    @cached_property
    def problems(self) -> int:
        return int(self.weights.sum())

    @cached_property
    def repeated(self) -> int:
        return int(self.weights[self.n > 1].sum())

    @cached_property
    def unit_sums(self) -> UnitSums:
        """Rates summed by unit: the problems without a cluster, then the clusters."""
        rates, inside = self.c / self.n, self.clusters >= 0
        sizes = np.bincount(self.clusters[inside], weights=self.weights[inside])
        sums = np.bincount(self.clusters[inside], weights=(self.weights * rates)[inside])
        # A cluster without a decided problem leaves a gap in the numbers.
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
        """Unbiased estimates of p (1 - p); NaN for problems with a single attempt."""
        with np.errstate(invalid="ignore"):
            variances: Floats = self.c * (self.n - self.c) / (self.n * (self.n - 1))
        return variances

    @cached_property
    def sampling_variance(self) -> float | None:
        """Mean variance of one attempt over the repeated problems; None if there are none."""
        if self.repeated == 0:
            return None
        repeated = self.n > 1
        return math.fsum(self.weights[repeated] * self.attempt_variances[repeated]) / self.repeated

    @cached_property
    def rate_variance(self) -> float | None:
        """Mean sampling variance of a problem's rate over all problems; None if none was repeated."""
        if self.sampling_variance is None:
            return None
        attempt_variances = np.where(self.n > 1, self.attempt_variances, self.sampling_variance)
        return math.fsum(self.weights * attempt_variances / self.n) / self.problems

    @cached_property
    def variance_of_mean(self) -> float | None:
        """Squared cluster-robust standard error of the mean rate; None for a single unit."""
        if self._robust is None:
            return None
        return self._robust.standard_error**2 if self._robust.standard_error > _ROUNDING else 0.0

    @cached_property
    def degrees_of_freedom(self) -> float | None:
        """Degrees of freedom of `variance_of_mean`."""
        return None if self._robust is None else self._robust.degrees_of_freedom

    @cached_property
    def _robust(self) -> ClusterRobustSE | None:
        return cluster_robust_se(*self.unit_sums)

    @cached_property
    def problem_variance(self) -> float | None:
        """Unbiased variance of true rates between problems; None for a single unit or if none was repeated.

        Residuals from the fitted mean are too small by the variance of the mean, which is added back. Without clusters
        this is the usual division by the number of problems minus one.
        """
        if self.rate_variance is None or self.variance_of_mean is None:
            return None
        return math.fsum(self.weights * self.residuals**2) / self.problems + self.variance_of_mean - self.rate_variance


@dataclass(frozen=True)
class VarianceParts:
    """The variance of a mean over problems and its two parts, which add up to it; None where unknown."""

    of_mean: float | None
    from_problems: float | None
    from_samples: float | None

    @classmethod
    def of(cls, outcomes: DecidedOutcomes) -> Self:
        """The parts for the mean rate of a model and tier; None where unknown."""
        whole = outcomes.variance_of_mean
        samples = None if outcomes.rate_variance is None else outcomes.rate_variance / outcomes.problems
        return cls(whole, None if whole is None or samples is None else whole - samples, samples)

    @property
    def share_from_problems(self) -> float | None:
        """The part from problems over the variance, within [0, 1]; None if there is no variance.

        >>> VarianceParts(of_mean=0.04, from_problems=0.01, from_samples=0.03).share_from_problems
        0.25
        """
        if not self.of_mean or self.from_problems is None:
            return None
        return min(1.0, max(0.0, self.from_problems / self.of_mean))

    def expected_from_problems(self, degrees: float) -> float | None:
        """The part from problems that plans assume: its estimate, kept above 0.

        Clipping at 0 would promise that more attempts remove all variance exactly when the estimate came out too low.
        Instead this is the median of a normal distribution truncated at 0, with the estimate as its mean and the
        standard error variance of the mean * sqrt(2 / degrees of freedom). An estimate of three standard errors or
        more is hardly changed.

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
            # The far tail of a normal distribution is nearly exponential.
            return math.log(2) * error / -z
        return self.from_problems - error * NormalDist().inv_cdf(NormalDist().cdf(z) / 2)


@dataclass(frozen=True)
class Plan:
    """A possible next step: `problems` times as many problems, with `samples` times as many attempts each."""

    name: str
    problems: int
    samples: int

    @property
    def attempts(self) -> int:
        return self.problems * self.samples

    def variance(self, parts: VarianceParts, degrees: float) -> float | None:
        """Expected variance of the mean under the plan.

        New problems are assumed to come in clusters like the present ones, so the whole variance shrinks with them; new
        attempts only shrink the part from samples.

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
    """The table `variance_split`: the variance of pass@1 and its parts per model and tier.

    >>> counts = pl.LazyFrame({"model": "m", "tier": "T0", "oid": ["a", "b"], "k": 1, "n": [4, 4], "c": [4, 2]})
    >>> problems = pl.LazyFrame({"oid": ["a", "b"], "cluster": [None, None]}, schema_overrides={"cluster": pl.String})
    >>> split = variance_split(counts, problems).collect()
    >>> split.select(pl.col("variance_of_mean", "from_problems", "from_samples").round(4)).row(0)
    (0.0625, 0.0417, 0.0208)
    """
    rows = [
        {"model": model, "tier": tier} | _figures(DecidedOutcomes(*counts.with_at_least(1)))
        for (model, tier), counts in counts_by_group(problem_pass_at_k, problems).items()
    ]
    return pl.LazyFrame(rows, schema=TABLES["variance_split"].dtypes)


def next_samples(
    variance_split: pl.LazyFrame, problem_scores: pl.LazyFrame, settings: IntervalSettings
) -> pl.LazyFrame:
    """The table `next_samples`: the expected interval width of pass@1 under each plan, per model and tier.

    The width is that of a t interval, at most 1, with the
    degrees of freedom under the plan, which is exact for units of equal size; near 0 and 1, where intervals are
    asymmetric, `pass_at_k` has another. Null rather than 0 if no variance was observed.

    Of two plans with equally many attempts, the one with the smaller expected width is advised. More problems are never
    worse, but harder to obtain than attempts at known ones, so more samples are advised if their width is within
    `TIE_TOLERANCE`. This happens if less than about a tenth of the variance comes from problems, and there are enough
    problems to show it (`expected_from_problems`).
    """
    all_priced = pl.col("cost_count").sum() == pl.col("attempts").sum()
    means = problem_scores.group_by(MODEL_TIER).agg(cost_per_attempt=pl.when(all_priced).then(mean_score("cost")))
    groups = variance_split.join(means, on=MODEL_TIER, how="left").sort(MODEL_TIER).collect()
    rows = [row for group in groups.iter_rows(named=True) for row in _plans(group, settings)]
    return pl.LazyFrame(rows, schema=TABLES["next_samples"].dtypes)


def _figures(outcomes: DecidedOutcomes) -> dict[str, object]:
    problems, weights = outcomes.problems, outcomes.weights
    parts = VarianceParts.of(outcomes)
    return {
        "problems": problems,
        "repeated": outcomes.repeated,
        "units": outcomes.units,
        "attempts": int((outcomes.n * weights).sum()),
        "samples": problems / math.fsum(weights / outcomes.n) if problems else None,
        # Rounding may move a mean of shares above 1.
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
    half_widths = {plan: _half_width(plan, parts, group["degrees_of_freedom"], settings) for plan in PLANS}
    widths = {plan: None if half is None else min(1.0, 2 * half) for plan, half in half_widths.items()}
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
            "advised": _advised(plan, half_widths),
        }


def _half_width(plan: Plan, parts: VarianceParts, degrees: float | None, settings: IntervalSettings) -> float | None:
    variance = None if degrees is None else plan.variance(parts, degrees)
    if degrees is None or not variance:
        return None
    return t_critical((degrees + 1) * plan.problems - 1, settings.confidence) * math.sqrt(variance)


def _advised(plan: Plan, half_widths: dict[Plan, float | None]) -> bool | None:
    """Whether the plan beats its rival; by half-widths, because two widths cut at 1 would look equally good."""
    if plan == NOW:
        return None
    rivals = {rival.samples > 1: half_widths[rival] for rival in PLANS if rival.attempts == plan.attempts}
    samples, problems = rivals[True], rivals[False]
    if samples is None or problems is None:
        return None
    return (samples <= problems * (1 + TIE_TOLERANCE)) == (plan.samples > 1)


# The part of the validator


def disagreement(n: pl.Expr, c: pl.Expr) -> pl.Expr:
    """Unbiased probability that two of n results differ, if c of them passed; null with fewer than two.

    >>> pl.select(disagreement(pl.lit(4), pl.lit(3))).item(), pl.select(disagreement(pl.lit(1), pl.lit(1))).item()
    (0.5, None)
    """
    return pl.when(n > 1).then(2 * c * (n - c) / (n * (n - 1)))


def validator_variance(
    validator_noise: pl.LazyFrame,
    problem_pass_at_k: pl.LazyFrame,
    problems: pl.LazyFrame,
    settings: IntervalSettings,
    exclude_flaky: bool,
) -> pl.LazyFrame:
    """The table `validator_variance`: how much of the variance of attempts the validator adds, per model and tier.

    The share is null if flaky tests are excluded: the runs that found them cannot show what the other tests add.

    >>> noise = pl.LazyFrame({"oid": ["a", "b"], "validated": "fix", "model": "m", "tier": "T0", "test": None,
    ...     "runs": 4, "passes": [4, 3]}, schema_overrides={"test": pl.String})
    >>> counts = pl.LazyFrame({"model": "m", "tier": "T0", "oid": ["a", "b"], "k": 1, "n": [4, 4], "c": [4, 2]})
    >>> problems = pl.LazyFrame({"oid": ["a", "b"], "cluster": [None, None]}, schema_overrides={"cluster": pl.String})
    >>> table = validator_variance(noise, counts, problems, IntervalSettings(), False).collect()
    >>> table.select("flaky", "validator_variance", pl.col("share_from_validator").round(3)).row(0)
    (1, 0.125, 0.75)
    """
    verdicts = validator_noise.filter(pl.col("validated") == "fix", pl.col("test").is_null(), pl.col("runs") > 1)
    runs, passes = pl.col("runs"), pl.col("passes")
    by_problem = verdicts.group_by(PROBLEM_KEY).agg(
        # Sorted, so that the sum does not depend on the order of rows.
        value=disagreement(runs, passes).sort().mean(),
        fixes=pl.len().cast(pl.Int64),
        flaky=((passes > 0) & (passes < runs)).sum().cast(pl.Int64),
    )
    repeated = _with_clusters(by_problem, problems)
    # Few models are validated several times, and most often none.
    models = pl.col("model").is_in(repeated["model"].unique().to_list())
    counts = problem_counts(problem_pass_at_k.filter(models))
    attempted = _with_clusters(counts.select(*PROBLEM_KEY, value=disagreement(pl.col("n"), pl.col("c"))), problems)
    rows = [
        dict(zip(MODEL_TIER, group, strict=True))
        | _validator_figures(part, attempted.filter(pl.col("model") == group[0], pl.col("tier") == group[1]), settings)
        for group, part in repeated.group_by(MODEL_TIER, maintain_order=True)
    ]
    table = pl.LazyFrame(rows, schema=TABLES["validator_variance"].dtypes)
    unknown = pl.col("share_from_validator", "ci_low", "ci_high", "ci_method")
    return table.with_columns(pl.when(pl.lit(not exclude_flaky)).then(unknown))


def _with_clusters(by_problem: pl.LazyFrame, problems: pl.LazyFrame) -> pl.DataFrame:
    """The defined values with their clusters, in a fixed order."""
    joined = by_problem.filter(pl.col("value").is_not_null()).join(shared_clusters(problems), on="oid", how="left")
    return joined.sort(*MODEL_TIER, "cluster", "value", "oid", nulls_last=False).collect()


def _validator_figures(
    repeated: pl.DataFrame, attempted: pl.DataFrame, settings: IntervalSettings
) -> dict[str, object]:
    flips, flip_interval = _mean(repeated, settings)
    differences, difference_interval = _mean(attempted, settings)
    share = None if flips is None or not differences else min(1.0, flips / differences)
    interval = (
        Interval(None, None, None, flip_interval.units)
        if flips is None or not differences
        else share_interval(flips, flip_interval, differences, difference_interval)
    )
    return {
        "problems": repeated.height,
        "fixes": int(repeated["fixes"].sum()),
        "flaky": int(repeated["flaky"].sum()),
        "validator_variance": None if flips is None else flips / 2,
        "sampling_variance": None if differences is None else differences / 2,
        "share_from_validator": share,
        **interval.columns(),
    }


def _mean(by_problem: pl.DataFrame, settings: IntervalSettings) -> tuple[float | None, Interval]:
    values, clusters = by_problem["value"].to_numpy(), by_problem["cluster"].to_list()
    interval = mean_interval(values, np.ones(len(values), dtype=np.int64), clusters, settings)
    return math.fsum(values) / len(values) if len(values) else None, interval
