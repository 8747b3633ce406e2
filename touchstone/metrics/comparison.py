"""Which of two sides is better: two models, two tiers or two snapshots, compared problem by problem.

Both sides attempt the same problems, so what counts is the difference of pass@1 within each problem, b - a. How
hard a problem is cancels out, and a difference shows that two separate intervals would hide. The unit is the
problem, or the cluster where compared problems share one.

Test, always two-sided and named with every result:

- `mcnemar`: one attempt per problem on both sides. Exact, on the problems that flipped.
- `permutation-exact`: the signs of the units' differences are flipped in all ways, where at most `ENUMERATED` of
  them are distinct.
- `permutation`: the same with random flips, p = (as extreme + 1) / (flips + 1). There are `permutations` of them, or
  ten times pairs / alpha where that is more.
- `permutation-exact-cluster`, `permutation-cluster`: the same on sums within clusters.

Flipping signs goes through the histogram of absolute differences, with a binomial draw for each value, so that a
million problems cost what a thousand do. It is exact where both sides have as many attempts at a problem; where
they do not, differences under the null have mean zero but are not symmetric, and it holds for many units only.

Interval: `uncertainty.paired_interval`, which names its method.

Minimum detectable effect: the true difference that a repetition would find with the given power, from the observed
standard error and t quantiles. Two things keep it from being too small where little differs:

- Where no unit deviates from the mean, or fewer units differ than a rejection takes, the observed error says little.
  The share of units that differ is then replaced by its upper Wilson bound, their size by an average with one unit
  that differs entirely. `detectable_method` says `wilson`.
- However small the error, no test of flips can reject on fewer than 1 + log2(1 / alpha) units (6 at 0.05), which
  must each differ by an attempt at least. Where this decides, `detectable_method` says `flips`.

It is null where not even a difference of 1 would be found. It takes the error as it is; a true difference that varies
between problems adds to it, and an exact test of few flips falls short of its level. In simulation (5 attempts, Beta
difficulties, a drop in proportion) 65% to 70% of repetitions find it with a power of 0.8, and over 98% find
twice as much.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.metrics.quantiles import student_reach
from touchstone.metrics.uncertainty import Interval, paired_interval, wilson

ENUMERATED = 2**14
VERDICTS = ("better", "worse", "no evidence", "underpowered")
TESTS = ("mcnemar", "permutation-exact", "permutation", "permutation-exact-cluster", "permutation-cluster")

# Sums closer than this share of the largest possible sum are ties: the same number, rounded in another order.
_TIE = 1e-9
# A scatter per problem below this is rounding: all units agree.
_NO_SCATTER = 1e-24
# With many pairs Holm asks for a small p, which few random flips could not give however large the difference.
_DRAWS_PER_LEVEL = 10
_EXACT_CHANCES_TO = 1000
_HALVINGS = 60

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ComparisonSettings:
    """How sides are compared. `relevant` is the smallest difference of pass@1 that matters to the user."""

    alpha: float = 0.05
    relevant: float = 0.05
    power: float = 0.8
    permutations: int = 20_000
    seed: int = 7
    confidence: float = 0.95


@dataclass(frozen=True)
class PairResult:
    """Side b against side a. Undefined is null; without a problem decided on both sides everything is.

    `difference` is the mean over problems of pass@1 of b minus that of a. `wins`, `losses` and `ties` count the
    problems where b's rate is higher, lower and equal. `effect_size` is the standardised paired difference: the
    mean difference over the standard deviation of the problems' differences (Cohen's d_z). The minimum detectable
    effect is for a level of alpha / `pairs`, and `p_adjusted` is `p_value` where the pair is the only one.
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
    pairs: int = 1
    wins: int = 0
    losses: int = 0
    ties: int = 0
    effect_size: float | None = None
    minimum_detectable_effect: float | None = None
    detectable_method: str | None = None
    verdict: str = "underpowered"


@dataclass(frozen=True)
class _Units:
    """What is independent: sums of differences, over how many problems each, and how many units have them."""

    sums: Floats
    sizes: Integers
    counts: Integers
    clustered: bool

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def problems(self) -> int:
        return int((self.counts * self.sizes).sum())

    def method(self, name: str) -> str:
        return f"{name}-cluster" if self.clustered else name


def compare_pair(counts: pl.DataFrame, settings: ComparisonSettings) -> PairResult:
    """Side b against side a, from attempts n and passes c per problem: oid, n_a, c_a, n_b, c_b, cluster.

    A problem without a decided attempt on one side (null or 0) is left out and counted.

    >>> flips = pl.DataFrame({"oid": list("abcdefghij"), "n_a": 1, "c_a": [0] * 9 + [1], "n_b": 1,
    ...                       "c_b": [1] * 9 + [0], "cluster": None})
    >>> result = compare_pair(flips, ComparisonSettings())
    >>> result.difference, result.test, result.p_value, result.verdict
    (0.8, 'mcnemar', 0.021484375, 'better')
    """
    result = _compare(counts, settings, pairs=1)
    return _judged(result, result.p_value, settings)


def compare_all(problem_counts: pl.LazyFrame, problems: pl.LazyFrame, settings: ComparisonSettings) -> pl.DataFrame:
    """All pairs of models within each tier, and of tiers within each model, with Holm's correction over all of them.

    `problem_counts` has model, tier, oid, n, c; `problems` has oid and cluster. The minimum detectable effect is for
    a level of alpha / pairs, which is what Holm asks of the first pair: the verdict rests on the corrected p.

    >>> counts = pl.LazyFrame({"model": ["atlas"] * 8 + ["cedar"] * 8, "tier": "T0", "oid": list("abcdefgh") * 2,
    ...                        "n": 1, "c": [1] * 8 + [0] * 7 + [1]})
    >>> problems = pl.LazyFrame({"oid": list("abcdefgh"), "cluster": None})
    >>> print(compare_all(counts, problems, ComparisonSettings())["sentence"][0])
    cedar is worse than atlas by 87.5 points (95% CI 57.9 to 100.0, p = 0.016, 8 problems)
    """
    sides = _sides(problem_counts, problems)
    pairs = list(_pairs(sorted(sides)))
    counts = [_side_by_side(sides[a], sides[b]) for _, a, b in pairs]
    testable = sum(1 for pair in counts if not _on_both(pair).is_empty())
    results = [_compare(pair, settings, testable) for pair in counts]
    adjusted = holm([result.p_value for result in results])
    judged = [_judged(result, p, settings) for result, p in zip(results, adjusted, strict=True)]
    tiers = len({tier for _, tier in sides})
    rows = [_row(kind, a, b, result, show_tier=tiers > 1) for (kind, a, b), result in zip(pairs, judged, strict=True)]
    return pl.DataFrame(rows, schema=COMPARISON_SCHEMA)


COMPARISON_SCHEMA = {
    "kind": pl.String,
    "model_a": pl.String,
    "tier_a": pl.String,
    "model_b": pl.String,
    "tier_b": pl.String,
    "problems": pl.Int64,
    "only_a": pl.Int64,
    "only_b": pl.Int64,
    "rate_a": pl.Float64,
    "rate_b": pl.Float64,
    "difference": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "ci_method": pl.String,
    "ci_units": pl.Int64,
    "test": pl.String,
    "p_value": pl.Float64,
    "p_adjusted": pl.Float64,
    "wins": pl.Int64,
    "losses": pl.Int64,
    "ties": pl.Int64,
    "effect_size": pl.Float64,
    "minimum_detectable_effect": pl.Float64,
    "verdict": pl.String,
    "sentence": pl.String,
}


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction: p-values that keep the chance of any false alarm below alpha. Nulls do not count.

    >>> holm([0.01, 0.04, None, 0.03, 0.5])
    [0.04, 0.09, None, 0.09, 0.5]
    """
    ordered = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(ordered):
        highest = max(highest, min(1.0, p * (len(ordered) - rank)))
        adjusted[place] = highest
    return adjusted


def verdict(result: PairResult, p_adjusted: float | None, alpha: float, relevant: float) -> str:
    """What may be said of b: `better`, `worse`, `no evidence` or `underpowered`.

    Better or worse: p is at most alpha (a p of exactly alpha rejects, as a level-alpha test does) and the whole
    interval lies on that side of zero. Else underpowered, where a difference of `relevant` could have been missed.

    >>> verdict(PairResult(40, 0, 0, ci_low=0.1, ci_high=0.3), 0.05, alpha=0.05, relevant=0.05)
    'better'
    """
    if p_adjusted is not None and p_adjusted <= alpha:
        if result.ci_low is not None and result.ci_low > 0:
            return "better"
        if result.ci_high is not None and result.ci_high < 0:
            return "worse"
    effect = result.minimum_detectable_effect
    return "underpowered" if effect is None or effect > relevant else "no evidence"


def sentence(result: PairResult, name_a: str, name_b: str) -> str:
    """The result in one line, for people. Rates and differences are in percentage points.

    >>> result = PairResult(40, 0, 0, difference=-0.121, ci_low=-0.203, ci_high=-0.04, p_adjusted=0.004, pairs=3,
    ...                     verdict="worse")
    >>> print(sentence(result, "atlas", "cedar"))
    cedar is worse than atlas by 12.1 points (95% CI 4.0 to 20.3, p = 0.004 after Holm over 3 pairs, 40 problems)
    """
    if result.difference is None or result.ci_low is None or result.ci_high is None:
        return f"{name_b} and {name_a} cannot be compared: no problem was decided for both"
    low, high = result.ci_low, result.ci_high
    if result.verdict in ("better", "worse"):
        ends = (low, high) if result.verdict == "better" else (-high, -low)
        size = _points(abs(result.difference))
        return f"{name_b} is {result.verdict} than {name_a} by {size} points ({_evidence(result, *ends)})"
    seen = f"difference {_points(result.difference, sign=True)} points ({_evidence(result, low, high)})"
    if result.verdict == "underpowered":
        return f"too little data to tell {name_b} from {name_a}: {seen}; {_reach(result)}"
    return f"no evidence that {name_b} differs from {name_a}: {seen}; {_reach(result)}"


def _evidence(result: PairResult, low: float, high: float) -> str:
    p = result.p_adjusted
    chance = "no p" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    after = f" after Holm over {result.pairs} pairs" if result.pairs > 1 else ""
    problems = "1 problem" if result.problems == 1 else f"{result.problems:,} problems"
    clustered = (result.method or "").endswith("-cluster")
    units = f" in {result.units:,} clusters" if clustered else ""
    interval = f"{100 * result.confidence:g}% CI {_points(low)} to {_points(high)}"
    return f"{interval}, {chance}{after}, {problems}{units}"


def _reach(result: PairResult) -> str:
    effect = result.minimum_detectable_effect
    if effect is None:
        return "this data could not have seen a difference of any size"
    points = _points(effect).removesuffix(".0")
    if result.verdict == "underpowered":
        return f"this data could only have seen a difference of {points} points or more"
    return f"a difference of {points} points or more would probably have been seen"


def _points(difference: float, *, sign: bool = False) -> str:
    points = round(100 * difference, 1) + 0.0  # adding 0.0 turns -0.0 into 0.0
    return f"{points:+.1f}" if sign and points else f"{points:.1f}"


def _judged(result: PairResult, p_adjusted: float | None, settings: ComparisonSettings) -> PairResult:
    words = verdict(result, p_adjusted, settings.alpha, settings.relevant)
    return replace(result, p_adjusted=p_adjusted, verdict=words)


Side = tuple[str, str]


def _sides(problem_counts: pl.LazyFrame, problems: pl.LazyFrame) -> dict[Side, pl.DataFrame]:
    """Counts and clusters of every model and tier."""
    clusters = problems.select("oid", pl.col("cluster").cast(pl.String))
    counts = problem_counts.select("model", "tier", "oid", "n", "c").join(clusters, on="oid", how="left").collect()
    parts = counts.partition_by("model", "tier", as_dict=True, include_key=False)
    return {(str(model), str(tier)): part for (model, tier), part in parts.items()}


def _pairs(sides: Sequence[Side]) -> Iterator[tuple[str, Side, Side]]:
    pairs = list(combinations(sides, 2))
    yield from (("models", a, b) for a, b in pairs if a[1] == b[1])
    yield from (("tiers", a, b) for a, b in pairs if a[0] == b[0])


def _side_by_side(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Where a problem is on one side only, the cluster is not needed, so that of a will do."""
    left = a.select("oid", "cluster", n_a="n", c_a="c")
    return left.join(b.select("oid", n_b="n", c_b="c"), on="oid", how="full", coalesce=True)


def _row(kind: str, a: Side, b: Side, result: PairResult, *, show_tier: bool) -> dict[str, object]:
    names = [f"{model} ({tier})" if show_tier else model for model, tier in (a, b)]
    same = {"problems", "rate_a", "rate_b", "difference", "ci_low", "ci_high", "test", "p_value", "p_adjusted"}
    same |= {"wins", "losses", "ties", "effect_size", "minimum_detectable_effect", "verdict"}
    return {
        "kind": kind,
        "model_a": a[0],
        "tier_a": a[1],
        "model_b": b[0],
        "tier_b": b[1],
        "only_a": result.problems_only_a,
        "only_b": result.problems_only_b,
        "ci_method": result.method,
        "ci_units": result.units,
        "sentence": sentence(result, names[0], names[1]),
    } | {name: getattr(result, name) for name in same}


def _on_both(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.filter((pl.col("n_a") > 0) & (pl.col("n_b") > 0))


def _compare(counts: pl.DataFrame, settings: ComparisonSettings, pairs: int) -> PairResult:
    """Everything but the verdict, which waits for the p-values of the other pairs."""
    both = _on_both(counts)
    only_a = counts.filter(pl.col("n_a") > 0).height - both.height
    only_b = counts.filter(pl.col("n_b") > 0).height - both.height
    if both.is_empty():
        return PairResult(0, only_a, only_b, pairs=pairs, confidence=settings.confidence)
    table = _histogram(both)
    n_a, c_a, n_b, c_b, weights = (table[name].to_numpy() for name in ("n_a", "c_a", "n_b", "c_b", "problems"))
    clusters = table["cluster"].to_list()
    # One division of integers: equal differences are equal to the bit, and swapping sides only turns the sign.
    differences = (c_b * n_a - c_a * n_b) / (n_a * n_b) + 0.0
    mean = math.fsum(differences * weights) / both.height
    units = _units(differences, weights, clusters)
    wins, losses = int(weights[differences > 0].sum()), int(weights[differences < 0].sum())
    most = int(max(n_a.max(), n_b.max()))
    scatter = _scatter(units, mean)
    interval = _interval(differences, weights, clusters, settings)
    level = settings.alpha / pairs
    draws = max(settings.permutations, math.ceil(_DRAWS_PER_LEVEL / level))
    test, p_value = (
        _mcnemar(wins, losses) if most == 1 and not units.clustered else _flipped(units, draws, settings.seed)
    )
    effect, detectable_method = _detectable(units, mean, scatter, 1 / most, settings, level)
    return PairResult(
        problems=both.height,
        problems_only_a=only_a,
        problems_only_b=only_b,
        rate_a=math.fsum(c_a / n_a * weights) / both.height,
        rate_b=math.fsum(c_b / n_b * weights) / both.height,
        difference=mean,
        ci_low=interval.low,
        ci_high=interval.high,
        method=interval.method,
        units=interval.units,
        confidence=settings.confidence,
        test=test,
        p_value=p_value,
        pairs=pairs,
        wins=wins,
        losses=losses,
        ties=both.height - wins - losses,
        effect_size=_effect_size(differences, weights, mean),
        minimum_detectable_effect=effect,
        detectable_method=detectable_method,
    )


def _histogram(both: pl.DataFrame) -> pl.DataFrame:
    """How many problems of each cluster have which counts, sorted. A cluster with one compared problem is none."""
    cluster = pl.col("cluster").cast(pl.String)
    shared = pl.when(pl.len().over(cluster) > 1).then(cluster)
    keys = [pl.col(name).cast(pl.Int64) for name in ("n_a", "c_a", "n_b", "c_b")]
    names = ["cluster", "n_a", "c_a", "n_b", "c_b"]
    counted = both.select(*keys, cluster=shared).group_by(names)
    return counted.agg(problems=pl.len().cast(pl.Int64)).sort(names, nulls_last=False)


def _units(differences: Floats, weights: Integers, clusters: Sequence[str | None]) -> _Units:
    """Problems that stand alone as they are, the others summed within clusters; rows are sorted, alone first."""
    alone = sum(1 for cluster in clusters if cluster is None)
    if alone == len(clusters):
        return _Units(differences, np.ones_like(weights), weights, clustered=False)
    starts = [row for row in range(alone, len(clusters)) if row == alone or clusters[row] != clusters[row - 1]]
    parts = np.split(np.arange(alone, len(clusters)), [start - alone for start in starts[1:]])
    # The sum of differences that cancel may miss zero by a rounding.
    sums = [round(math.fsum(differences[part] * weights[part]), 12) + 0.0 for part in parts]
    sizes = [int(weights[part].sum()) for part in parts]
    return _Units(
        np.concatenate([differences[:alone], sums]),
        np.concatenate([np.ones(alone, dtype=np.int64), sizes]),
        np.concatenate([weights[:alone], np.ones(len(parts), dtype=np.int64)]),
        clustered=True,
    )


def _scatter(units: _Units, mean: float) -> float:
    """Sum of the units' squared residuals; 0 where they are only roundings."""
    scatter = math.fsum(units.counts * (units.sums - mean * units.sizes) ** 2)
    return scatter if scatter > _NO_SCATTER * units.problems else 0.0


def _interval(
    differences: Floats, weights: Integers, clusters: Sequence[str | None], settings: ComparisonSettings
) -> Interval:
    """The interval of the paired differences, made on the side where they are positive so that swapping mirrors it."""
    intervals = IntervalSettings(confidence=settings.confidence, seed=settings.seed)
    lean = math.fsum(differences * weights) or math.fsum(differences**3 * weights)
    if lean >= 0:
        return paired_interval(differences, weights, clusters, intervals)
    turned = paired_interval(-differences + 0.0, weights, clusters, intervals)
    low, high = turned.low, turned.high
    return replace(turned, low=None if high is None else -high, high=None if low is None else -low)


def _error(units: _Units, scatter: float) -> float:
    """Standard error of the mean difference over problems, with the small-sample factor G / (G - 1) for G units."""
    return math.sqrt(units.total / (units.total - 1) * scatter) / units.problems


def _effect_size(differences: Floats, weights: Integers, mean: float) -> float | None:
    problems = int(weights.sum())
    scatter = math.fsum(weights * (differences - mean) ** 2)
    return mean / math.sqrt(scatter / (problems - 1)) if scatter > _NO_SCATTER * problems else None


def _mcnemar(wins: int, losses: int) -> tuple[str, float]:
    return "mcnemar", min(1.0, 2 * math.fsum(_chances(wins + losses)[: min(wins, losses) + 1]))


def _flipped(units: _Units, draws: int, seed: int) -> tuple[str, float]:
    """Permutation test: how often flipped signs give a sum as far from zero as the observed one."""
    sizes, places = np.unique(np.abs(units.sums), return_inverse=True)
    counts = np.bincount(places, weights=units.counts).astype(np.int64)
    sizes, counts = sizes[sizes > 0], counts[sizes > 0]
    least = abs(math.fsum(units.sums * units.counts)) - _TIE * math.fsum(sizes * counts)
    if math.prod(count + 1 for count in counts.tolist()) <= ENUMERATED:
        return units.method("permutation-exact"), _enumerated(sizes, counts, least)
    return units.method("permutation"), _drawn(sizes, counts, least, draws, seed)


def _enumerated(sizes: Floats, counts: Integers, least: float) -> float:
    """Chance that the absolute sum reaches `least`: all ways to flip signs, those with the same sums at once."""
    totals, chances = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        steps = size * (2.0 * np.arange(count + 1) - count)
        totals = np.add.outer(totals, steps).ravel()
        chances = np.multiply.outer(chances, _chances(count)).ravel()
    return min(1.0, math.fsum(chances[np.abs(totals) >= least]))


def _drawn(sizes: Floats, counts: Integers, least: float, draws: int, seed: int) -> float:
    generator = np.random.default_rng(seed)
    totals = np.zeros(draws)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        totals += size * (2.0 * generator.binomial(count, 0.5, draws) - count)
    return (int(np.count_nonzero(np.abs(totals) >= least)) + 1) / (draws + 1)


@lru_cache(maxsize=256)
def _chances(flips: int) -> Floats:
    """Binomial chances of 0, 1, … of so many fair flips; for many, as ratios outwards from the middle."""
    if flips <= _EXACT_CHANCES_TO:
        return np.array([math.comb(flips, heads) / 2**flips for heads in range(flips + 1)])
    # From one chance to the next above it: (flips - heads) / (heads + 1). The upper half mirrors the lower.
    heads = np.arange((flips + 1) // 2, flips)
    upper = np.concatenate([[1.0], np.cumprod((flips - heads) / (heads + 1))])
    ratios = np.concatenate([upper[1 - flips % 2 :][::-1], upper])
    return np.asarray(ratios / math.fsum(ratios))


def _detectable(
    units: _Units, mean: float, scatter: float, step: float, settings: ComparisonSettings, alpha: float
) -> tuple[float | None, str | None]:
    """Minimum detectable effect at this level, and what decided it. `step` is the worth of one attempt."""
    needed = math.ceil(1 - math.log2(alpha))
    if needed > units.total:
        return None, None
    error, method = _floored_error(units, mean, scatter, needed, settings.confidence)
    degrees = units.total - 1
    one_sided = math.copysign(_student(degrees, abs(2 * settings.power - 1)), settings.power - 0.5)
    effect = (_student(degrees, 1 - alpha) + one_sided) * error
    least = _needed_share(units.total, needed, settings.power) * step * units.total / units.problems
    if least > effect:
        effect, method = least, "flips"
    return (effect, method) if effect <= 1 else (None, None)


def _floored_error(units: _Units, mean: float, scatter: float, needed: int, confidence: float) -> tuple[float, str]:
    """The standard error, from Wilson's upper bound where too little differs to estimate it."""
    total = units.total
    observed = _error(units, scatter)
    differing = int(units.counts[units.sums != 0].sum())
    if scatter > 0 and differing >= needed:
        return observed, "t"
    if scatter == 0:
        moment = wilson(0.0, total, confidence)[1] * (1 + abs(mean)) ** 2
    else:
        scaled = units.sums * total / units.problems
        size = (math.fsum(units.counts * scaled**2) + 1) / (differing + 1)
        moment = wilson(differing / total, total, confidence)[1] * size
    return max(observed, math.sqrt(moment / total)), "wilson"


@lru_cache(maxsize=256)
def _needed_share(total: int, needed: int, power: float) -> float:
    """The chance that each of `total` units must have for `needed` of them to come about with the given power."""
    ways = [math.log(math.comb(total, some)) for some in range(needed)]

    def missed(share: float) -> float:
        hit, miss = math.log(share), math.log1p(-share)
        return math.fsum(math.exp(way + some * hit + (total - some) * miss) for some, way in enumerate(ways))

    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if missed(middle) > 1 - power else (low, middle)
    return high


@lru_cache(maxsize=256)
def _student(degrees: int, confidence: float) -> float:
    return student_reach(degrees, confidence)
