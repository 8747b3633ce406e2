"""A plan for a paired comparison: from data or assumptions to the mixes of problems and attempts that are enough.

The formulas belong in `touchstone.inference.planning`. From data, the variance of the mean difference is that of the
paired comparison (CR2 over problems or clusters). Its part from attempts follows from problems with several attempts
(`metrics.variance`); the rest is between problems, and is kept above 0 in the same way as in the table `next_samples`.
New problems are assumed to come in clusters like those at hand.
"""

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

from touchstone.comparison.pairs import pair_matrix
from touchstone.comparison.registered_plan import problems_digest
from touchstone.config import RegisteredPlan
from touchstone.errors import TouchstoneError
from touchstone.inference.detectable import minimum_detectable_effects
from touchstone.inference.paired_moments import PairMoments, pair_chunk, pair_moments
from touchstone.inference.planning import (
    FEWEST_UNITS,
    Costs,
    Goal,
    Mix,
    Population,
    assumed_population,
    attempts_needed,
    detectable_at_best,
    mixes,
)
from touchstone.metrics.keys import MODEL_TIER, ModelTier
from touchstone.metrics.pass_at_k import counts_by_group, problem_counts
from touchstone.metrics.variance import DecidedOutcomes, VarianceParts
from touchstone.storage.files import parquet_files
from touchstone.text import counted

ATTEMPTS = (1, 2, 3, 5, 10, 20)
CORRELATION = 0.5
CLUSTER_SHARE = 0.2
# Like the repositories of SWE-bench Verified (1.45); of fewer than ten clusters, half of the largest possible.
CLUSTER_CV = 1.5


@dataclass(frozen=True)
class PlanRequest:
    """The goal of a plan, and either `data` with the names of models in it, or the rate and icc to assume."""

    goal: Goal
    data: Path | None = None
    model: str | None = None
    against: str | None = None
    tier: str | None = None
    rate: float | None = None
    icc: float | None = None
    correlation: float | None = None
    clusters: int | None = None
    cluster_share: float | None = None
    cluster_cv: float | None = None
    problems: int | None = None
    attempts: tuple[int, ...] = ()
    cost_per_attempt: float | None = None
    cost_per_problem: float = 0.0


@dataclass(frozen=True)
class PlanData:
    """Two models (or one) in the data: the population they are a sample of, and what the data at hand can detect.

    `problems` and `attempts` per problem are those at hand. `detectable`, if spread evenly, and `detectable_on_few` are
    None for a single model, and where nothing can be detected.
    """

    population: Population
    problems: int
    attempts: float
    detectable: float | None = None
    correlation: float | None = None
    detectable_on_few: float | None = None


@dataclass(frozen=True)
class FixedBenchmark:
    """The limits of a benchmark that cannot grow: the attempts per problem that are enough, and the limit of more.

    Both for a difference on few problems, and if it is spread evenly.
    """

    problems: int
    attempts_needed: int | None
    detectable_at_best: float | None
    attempts_if_even: int | None = None
    at_best_if_even: float | None = None


@dataclass(frozen=True)
class ComparisonPlan:
    """The mixes, in words what they rest on, and what the data at hand, or the fixed benchmark, can detect."""

    goal: Goal
    population: Population
    assumptions: list[str]
    mixes: list[Mix]
    today: PlanData | None = None
    fixed: FixedBenchmark | None = None
    notes: list[str] = field(default_factory=list)
    # Those in the data: models, and the ids of all problems.
    models: tuple[str, ...] = ()
    oids: tuple[str, ...] = ()


def planned_comparison(plan: ComparisonPlan, alpha: float, pairs: int) -> RegisteredPlan:
    """The items that a later comparison is held to: the cheapest mix that is enough, on the problems of the data.

    If the data has too few problems, or there is none, their ids are left open.
    """
    enough = [mix for mix in plan.mixes if mix.problems is not None and plan.fixed is None]
    mix = next((mix for mix in enough if mix.cheapest), enough[0] if len(enough) == 1 else None)
    problems = mix.problems if mix is not None else None
    attempts = mix.attempts_per_problem if mix is not None else None
    if plan.fixed is not None:
        problems, attempts = plan.fixed.problems, plan.fixed.attempts_needed
    known = bool(plan.oids) and problems is not None and problems <= len(plan.oids)
    return RegisteredPlan(
        metric="pass@k",
        k=1,
        margin=plan.goal.effect,
        alpha=alpha,
        power=plan.goal.power,
        pairs=pairs,
        problems=len(plan.oids) if known else problems,
        problems_digest=problems_digest(plan.oids) if known else None,
        attempts_per_problem=attempts,
        models=plan.models,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def make_plan(request: PlanRequest) -> ComparisonPlan:
    """The plan for a request."""
    _require_consistent(request)
    models: tuple[str, ...] = ()
    oids: tuple[str, ...] = ()
    if request.data is None:
        population, assumptions, today, costs = *_assumed(request), None, None
    else:
        population, assumptions, today, costs, models = _from_data(request, request.data)
        oids = tuple(_scan(request.data, "problems").select("oid").collect()["oid"])
    request.goal.require_possible(population.rate)
    if request.cost_per_attempt is not None:
        costs = (request.cost_per_attempt, request.cost_per_attempt)
    attempts, notes = request.attempts or ATTEMPTS, []
    if population.attempt_variance is None and any(m > 1 for m in attempts):
        attempts = (1,)
        notes.append("the data has one attempt per problem, which does not tell what more of them would bring")
    found = mixes(
        population,
        sorted(set(attempts)),
        request.goal,
        Costs(costs, 0.0 if request.problems else request.cost_per_problem),
        request.problems,
    )
    fixed = None if request.problems is None else _fixed(population, request.problems, request.goal)
    notes += _cautions(population, found)
    return ComparisonPlan(request.goal, population, assumptions, found, today, fixed, notes, models, oids)


def _require_consistent(request: PlanRequest) -> None:
    given = [request.rate, request.icc, request.clusters, request.cluster_share, request.cluster_cv]
    if request.data is not None and any(value is not None for value in given):
        raise TouchstoneError("--data gives the pass rate, icc and clusters; leave out --rate, --icc and --clusters")
    if request.data is None and (request.rate is None or request.icc is None):
        raise TouchstoneError("say what to plan from: --data DIR, or --rate and --icc")
    if request.data is None and any((request.model, request.against, request.tier)):
        raise TouchstoneError("--model, --against and --tier name what is in --data DIR")
    for option, value in (("--cluster-share", request.cluster_share), ("--cluster-cv", request.cluster_cv)):
        if value is not None and request.clusters is None:
            raise TouchstoneError(f"{option} goes with --clusters")
    if any(m < 1 for m in request.attempts):
        raise TouchstoneError("--attempts-per-problem must be at least 1")
    if min(request.cost_per_problem, request.cost_per_attempt or 0.0) < 0:
        raise TouchstoneError("a cost cannot be negative")


def _assumed(request: PlanRequest) -> tuple[Population, list[str]]:
    correlation = CORRELATION if request.correlation is None else request.correlation
    share = CLUSTER_SHARE if request.cluster_share is None else request.cluster_share
    rate, icc = request.rate or 0.0, request.icc or 0.0
    clusters, cv = request.clusters, request.cluster_cv
    if cv is None:
        cv = min(CLUSTER_CV, math.sqrt(max(0, (clusters or 1) - 1)) / 2)
    population = assumed_population(rate, icc, correlation, clusters, share if clusters else 0.0, cv)
    words = [
        f"assumed: pass rate {rate:g}, {icc:.0%} of the variance of an attempt between problems (icc)",
        _correlation_in_words(correlation, assumed=request.correlation is None),
    ]
    if clusters is not None:
        defaults = [" (the default)" if given is None else "" for given in (request.cluster_share, request.cluster_cv)]
        words += [
            f"assumed: {clusters} clusters, which hold {share:.0%}{defaults[0]} of the variance between problems",
            f"assumed: a standard deviation of their sizes of {cv:.3g}{defaults[1]} times the mean (--cluster-cv)",
        ]
    return population, words


def _correlation_in_words(correlation: float, assumed: bool) -> str:
    default = "; the default, so set --correlation if you know better" if assumed else ""
    return f"assumed: correlation {correlation:g} of the two models' pass rates over problems{default}"


def _from_data(
    request: PlanRequest, folder: Path
) -> tuple[Population, list[str], PlanData, tuple[float, float] | None, tuple[str, ...]]:
    counts, problems = (_scan(folder, name) for name in ("problem_pass_at_k", "problems"))
    sides = _sides(request, sorted(counts.select(*MODEL_TIER).unique().collect().iter_rows()))
    if len(sides) == 1:
        correlation = CORRELATION if request.correlation is None else request.correlation
        data = single_data(counts, problems, sides[0], correlation)
        words = [_correlation_in_words(correlation, assumed=request.correlation is None)]
    else:
        if request.correlation is not None:
            raise TouchstoneError("--correlation is estimated from the two models in the data; leave it out")
        data = paired_data(counts, problems, sides[0], sides[1], request.goal)
        words = []
    names = " and ".join(" ".join(side) for side in sides)
    size = counted(data.problems, "problem")
    units = round(data.population.estimated_from)
    inside = f" in {counted(units, 'cluster')}" if units < data.problems else ""
    equal = data.problems / data.population.unit_size
    if inside and equal < units - 0.05:
        inside += f" of unequal size (worth {equal:.1f} equal ones)"
    known = f", correlation {data.correlation:.2f} of their pass rates" if data.correlation is not None else ""
    words.insert(0, f"estimated from {names}: {size}{inside}, pass rate {data.population.rate:.3f}{known}")
    models = tuple(model for model, _ in sides) if len(sides) > 1 else ()
    return data.population, words, data, _costs(folder, sides), models


def _sides(request: PlanRequest, found: list[ModelTier]) -> list[ModelTier]:
    """The one or two models to plan for."""
    tiers = sorted({tier for _, tier in found})
    if request.tier is None and len(tiers) > 1:
        raise TouchstoneError(f"the data has several tiers; add --tier, one of {', '.join(tiers)}")
    models = [model for model, tier in found if request.tier in (None, tier)]
    named = [name for name in (request.model, request.against) if name is not None]
    for name in named:
        if name not in models:
            raise TouchstoneError(f"there is no model '{name}' in the data; models: {', '.join(models) or 'none'}")
    chosen = named or models
    if not 1 <= len(chosen) <= 2 or len(set(chosen)) < len(chosen):
        raise TouchstoneError(f"name the two models: --model A --against B; models: {', '.join(models) or 'none'}")
    return [next(side for side in found if side[0] == name and request.tier in (None, side[1])) for name in chosen]


def _scan(folder: Path, table: str) -> pl.LazyFrame:
    files = parquet_files(folder / "tables" / table)
    if not files:
        raise TouchstoneError(f"{folder}: no results here (no table '{table}'); run `touchstone run` first")
    return pl.concat([pl.scan_parquet(file, glob=False) for file in files], how="diagonal")


def _costs(folder: Path, sides: list[ModelTier]) -> tuple[float, float] | None:
    """Dollars per attempt of both models; a single one stands for both. None if any is unknown."""
    table = _scan(folder, "economics").select(*MODEL_TIER, "cost_per_attempt").collect()
    known = {(model, tier): cost for model, tier, cost in table.iter_rows()}
    costs = [known.get(side) for side in sides]
    return None if None in costs else (float(costs[0] or 0.0), float(costs[-1] or 0.0))


def _fixed(population: Population, problems: int, goal: Goal) -> FixedBenchmark:
    if population.attempt_variance is None:
        return FixedBenchmark(problems, None, None)
    return FixedBenchmark(
        problems,
        attempts_needed(population, problems, goal, on_few=True),
        detectable_at_best(population, problems, goal, on_few=True),
        attempts_needed(population, problems, goal),
        detectable_at_best(population, problems, goal),
    )


def _cautions(population: Population, found: list[Mix]) -> list[str]:
    """Reasons why the plan is less certain than it looks."""
    lines = []
    sizes = [mix.problems / population.cluster_size for mix in found if mix.problems is not None]
    units = population.clusters or min(sizes, default=None)
    if units is not None and units <= FEWEST_UNITS:
        lines.append(f"with {FEWEST_UNITS} or fewer units the power is approximate: a test has few possible p-values")
    if population.estimated_from < 30:
        lines.append(
            f"the variance was estimated from {population.estimated_from:.0f} units, so the plan allows for its error"
        )
    return lines


# Estimates from data


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
    settings = (goal.alpha, goal.power, 1 - goal.alpha)
    (even,), (on_few,) = (minimum_detectable_effects(moments, *settings, on_few=few)[0] for few in (False, True))
    outcomes = [_outcomes(both[f"n_{side}"], both[f"c_{side}"]) for side in "ab"]
    inverse = float(moments.inverse_a[0] + moments.inverse_b[0])
    today, today_on_few = (None if math.isnan(effect) else float(effect) for effect in (even, np.maximum(even, on_few)))
    population = _paired_population(moments, outcomes)
    return PlanData(population, both.height, 2 / inverse, today, _correlation(moments, outcomes), today_on_few)


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
