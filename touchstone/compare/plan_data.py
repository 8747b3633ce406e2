"""What planning needs to know of two models, or of one, estimated from the tables of a run.

The variance of the mean difference is that of the paired comparison (CR2 over problems or clusters). Its part from
attempts follows from problems with several attempts (`metrics.variance`); the rest is between problems, and is kept
above 0 in the same way as in the table `next_samples`. New problems are assumed to come in clusters like those at hand.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from touchstone.compare.keys import ModelTier
from touchstone.compare.pairs import pair_matrix
from touchstone.errors import TouchstoneError
from touchstone.inference.detectable import minimum_detectable_effects
from touchstone.inference.paired_moments import PairMoments, pair_chunk, pair_moments
from touchstone.inference.planning import Goal, Population
from touchstone.metrics.pass_at_k import counts_by_group, problem_counts
from touchstone.metrics.variance import DecidedOutcomes, VarianceParts


@dataclass(frozen=True)
class PlanData:
    """Two models (or one) in the data: the population they are a sample of, and what the data at hand can detect.

    `problems` and `attempts` per problem are those at hand. `detectable` is None for a single model, and where nothing
    can be detected.
    """

    population: Population
    problems: int
    attempts: float
    detectable: float | None = None
    correlation: float | None = None


def paired_data(
    problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, a: ModelTier, b: ModelTier, goal: Goal
) -> PlanData:
    """Two models as they are in the data."""
    counts = problem_counts(problem_pass_at_k)
    sides = [
        counts.filter(pl.col("model") == model, pl.col("tier") == tier, pl.col("n") > 0).select(
            "oid", pl.col("n", "c").name.suffix(f"_{side}")
        )
        for side, (model, tier) in (("a", a), ("b", b))
    ]
    both = sides[0].join(sides[1], on="oid").join(problems.select("oid", "cluster"), on="oid", how="left").collect()
    if both.height < 2:
        raise TouchstoneError(f"{a[0]} and {b[0]} have {both.height} decided problems in common; planning needs two")
    moments = pair_moments(pair_chunk(pair_matrix(both), np.array([0]), np.array([1])))
    effects, _ = minimum_detectable_effects(moments, goal.alpha, goal.power, 1 - goal.alpha)
    outcomes = [_outcomes(both[f"n_{side}"], both[f"c_{side}"]) for side in "ab"]
    inverse = float(moments.inverse_a[0] + moments.inverse_b[0])
    today = None if math.isnan(effects[0]) else float(effects[0])
    population = _paired_population(moments, outcomes)
    return PlanData(population, both.height, 2 / inverse, today, _correlation(moments, outcomes))


def single_data(
    problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, model: ModelTier, correlation: float
) -> PlanData:
    """One model in the data, and an assumed second one with the same moments and this correlation over problems."""
    outcomes = DecidedOutcomes(*counts_by_group(problem_pass_at_k, problems)[model].with_at_least(1))
    parts = VarianceParts.of(outcomes)
    if parts.of_mean is None or outcomes.degrees_of_freedom is None:
        raise TouchstoneError(f"{model[0]} has decided attempts on fewer than two problems or clusters")
    rate = math.fsum(outcomes.c / outcomes.n * outcomes.weights) / outcomes.problems
    _require_variation(rate)
    variance = outcomes.problems * (_between(parts, outcomes.degrees_of_freedom) if parts.of_mean else 0.0)
    within = outcomes.sampling_variance
    population = Population(
        rate,
        between=2 * variance * (1 - correlation),
        covariance=variance * correlation,
        attempt_variance=None if within is None else 2 * within,
        unit_size=outcomes.problems / (outcomes.degrees_of_freedom + 1),
        cluster_size=outcomes.problems / outcomes.units,
        estimated_from=outcomes.units,
    )
    return PlanData(population, outcomes.problems, outcomes.problems / math.fsum(outcomes.weights / outcomes.n))


def _paired_population(moments: PairMoments, outcomes: list[DecidedOutcomes]) -> Population:
    problems, degrees = int(moments.problems[0]), float(moments.degrees[0])
    if math.isnan(degrees):
        raise TouchstoneError("the problems in common are one cluster; planning needs at least two")
    rate = float(moments.rate_a[0] + moments.rate_b[0]) / 2
    _require_variation(rate)
    whole = float(moments.standard_error[0] ** 2)
    rates = [each.rate_variance for each in outcomes]
    known = None not in rates
    samples = math.fsum(rate for rate in rates if rate is not None) / problems if known else None
    parts = VarianceParts(whole, None if samples is None else whole - samples, samples)
    return Population(
        rate,
        between=problems * _between(parts, degrees),
        covariance=max(0.0, _covariance(moments)),
        unit_covariance=max(0.0, float(moments.between_units[0])),
        attempt_variance=math.fsum(each.sampling_variance or 0.0 for each in outcomes) if known else None,
        unit_size=problems / (degrees + 1),
        cluster_size=problems / int(moments.units[0]),
        estimated_from=int(moments.units[0]),
    )


def _require_variation(rate: float) -> None:
    if rate in (0.0, 1.0):
        every = "no attempt" if rate == 0 else "every attempt"
        raise TouchstoneError(
            f"{every} in the data passes, so it does not tell how problems vary; assume a --rate instead"
        )


def _between(parts: VarianceParts, degrees: float) -> float:
    """The variance of the mean that more attempts cannot remove; all of it if the parts are not known."""
    expected = parts.expected_from_problems(degrees)
    return (parts.of_mean or 0.0) if expected is None else expected


def _correlation(moments: PairMoments, outcomes: list[DecidedOutcomes]) -> float | None:
    """The correlation over problems of the two models' true pass rates; None where it cannot be estimated."""
    variances = [each.problem_variance for each in outcomes]
    if any(variance is None or variance <= 0 for variance in variances):
        return None
    scale = math.sqrt(math.prod(variance for variance in variances if variance is not None))
    return max(-1.0, min(1.0, _covariance(moments) / scale))


def _covariance(moments: PairMoments) -> float:
    """The covariance over problems of the two models' true pass rates, whose attempts are independent."""
    problems = int(moments.problems[0])
    return float(moments.product[0] - moments.rate_a[0] * moments.rate_b[0]) * problems / (problems - 1)


def _outcomes(n: pl.Series, c: pl.Series) -> DecidedOutcomes:
    alone, once = np.full(len(n), -1), np.ones(len(n), dtype=np.int64)
    return DecidedOutcomes(alone, n.cast(pl.Int64).to_numpy(), c.cast(pl.Int64).to_numpy(), once)
