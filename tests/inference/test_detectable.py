"""A true difference of the minimum detectable effect is found about four times in five.

The simulation does what a user would: one data set without a difference gives the effect, and then the verdict is taken
on new problems and attempts of the same kind with a true difference of exactly that size. The difference is a drop in
proportion to each problem's pass rate, or a rise in proportion to its failure rate, where one exists.
"""

import itertools
import math

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from tests.conftest import nightly_but
from touchstone.comparison.families import ComparisonSettings, PairList, compare_family, pair_results
from touchstone.comparison.verdicts import PairResult
from touchstone.inference.detectable import (
    PassRateMoments,
    _required_share,
    _required_standard_errors,
    minimum_detectable_effects,
    pass_rate_moments,
)
from touchstone.inference.paired_moments import OutcomeMatrix, PairMoments, outcome_matrix, pair_chunk, pair_moments

SETTINGS = ComparisonSettings()
QUICK_RUNS, NIGHTLY_RUNS = 40, 500
ERRORS = 3
LOWEST, HIGHEST, AT_TWICE = 0.75, 0.85, 0.95

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


FIRST, SECOND = np.array([0]), np.array([1])


def matrix_of(attempts: int | Integers, passed: list[Integers] | Integers, clusters: Integers | None) -> OutcomeMatrix:
    counts = np.stack(list(passed))
    alone = np.zeros(counts.shape[1], dtype=np.int64)
    return outcome_matrix(np.broadcast_to(attempts, counts.shape), counts, alone if clusters is None else clusters)


def judged(attempts: int | Integers, passed: list[Integers], clusters: Integers | None = None) -> PairResult:
    lists = [PairList(matrix_of(attempts, passed, clusters), FIRST, SECOND)]
    return next(pair_results(compare_family(lists, SETTINGS)))


def moments_of(attempts: int, passed: Integers, clusters: Integers | None = None) -> PairMoments:
    return pair_moments(pair_chunk(matrix_of(attempts, passed, clusters), FIRST, SECOND))


def changed(rates: Floats, mean: float, effect: float, words: str) -> Floats | None:
    """Rates that are worse or better by the effect on average; null where none can be."""
    share = effect / (mean if words == "worse" else 1 - mean)
    if share > 1:
        return None
    return rates * (1 - share) if words == "worse" else 1 - (1 - rates) * (1 - share)


def found(a: float, b: float, problems: int, attempts: int, times: int, runs: int) -> dict[str, list[bool]]:
    """Whether each drop and each rise of so many times the detectable effect was found."""
    generator = np.random.default_rng([problems, attempts, int(10 * a), int(10 * b), times])
    hits: dict[str, list[bool]] = {"worse": [], "better": []}
    for _, words in itertools.product(range(runs), hits):
        rates = generator.beta(a, b, problems)
        quiet = judged(attempts, [generator.binomial(attempts, rates) for _ in range(2)])
        assert quiet.minimum_detectable_effect is not None
        rates = generator.beta(a, b, problems)
        after = changed(rates, a / (a + b), times * quiet.minimum_detectable_effect, words)
        if after is not None:
            verdict = judged(attempts, [generator.binomial(attempts, some) for some in (rates, after)]).verdict
            hits[words].append(verdict == words)
    return hits


@pytest.mark.parametrize(
    ("problems", "attempts", "runs"),
    [
        (30, 1, QUICK_RUNS),
        *(
            pytest.param(*cell, NIGHTLY_RUNS, marks=pytest.mark.nightly)
            for cell in itertools.product([30, 100, 500], [1, 5, 20])
        ),
    ],
)
@pytest.mark.parametrize(("a", "b"), nightly_but([(8, 1)], [(1, 1), (2, 5), (8, 1), (0.5, 0.5)]))
def test_a_difference_of_that_size_is_found_four_times_in_five(
    a: float, b: float, problems: int, attempts: int, runs: int
) -> None:
    """The effect is the larger of the two directions', so the other direction may be found more often."""
    hits = found(a, b, problems, attempts, 1, runs)
    # Where most data sets leave no room for a direction, too few are left to measure it.
    known = {words: some for words, some in hits.items() if len(some) > runs / 2}
    print(
        f"{problems} x {attempts}, Beta({a}, {b}):", {words: round(np.mean(some), 3) for words, some in known.items()}
    )
    _assert_within(min(known.values(), key=np.mean))


@pytest.mark.nightly
@pytest.mark.parametrize("problems", [30, 100, 500])
def test_twice_the_effect_is_nearly_always_found(problems: int) -> None:
    hits = [hit for some in found(1, 1, problems, 5, 2, QUICK_RUNS).values() for hit in some]
    assert np.mean(hits) >= AT_TWICE - ERRORS * math.sqrt(0.95 * 0.05 / len(hits))


@pytest.mark.nightly
@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 5), (8, 1)])
@pytest.mark.parametrize(("problems", "attempts"), [(30, 5), (100, 1), (100, 20), (300, 5), (300, 20)])
def test_a_difference_on_few_problems_is_found_as_often_at_its_own_size(
    a: float, b: float, problems: int, attempts: int
) -> None:
    """Problems that go to 0, or to 1, in the direction that is harder to find; at the other size they are missed."""
    generator = np.random.default_rng([problems, attempts, a])
    mean, hits, missed = a / (a + b), [], []
    end, room = (0.0, mean) if mean >= 0.5 else (1.0, 1 - mean)
    for _ in range(NIGHTLY_RUNS):
        rates = generator.beta(a, b, problems)
        quiet = judged(attempts, [generator.binomial(attempts, rates) for _ in range(2)])
        for effect, found_here in ((quiet.detectable_on_few, hits), (quiet.minimum_detectable_effect, missed)):
            assert effect is not None
            before = generator.beta(a, b, problems)
            after = np.where(generator.random(problems) < effect / room, end, before)
            verdict = judged(attempts, [generator.binomial(attempts, some) for some in (before, after)]).verdict
            found_here.append(verdict == ("worse" if end == 0 else "better"))
    print(f"{problems} x {attempts}, Beta({a}, {b}): {np.mean(hits):.3f}; if it were spread: {np.mean(missed):.3f}")
    assert np.mean(hits) >= LOWEST - ERRORS * math.sqrt(0.16 / NIGHTLY_RUNS)
    assert attempts < 20 or np.mean(missed) < 0.7


def test_on_few_problems_takes_a_larger_difference_with_many_attempts_and_the_same_with_one() -> None:
    rates = np.random.default_rng(4).beta(2, 2, 100)
    for attempts, least, most in ((1, 1.0, 1.05), (20, 1.5, 3.0)):
        result = judged(attempts, list(np.random.default_rng(5).binomial(attempts, [rates, rates])))
        assert least <= result.detectable_on_few / result.minimum_detectable_effect <= most


def _assert_within(hits: list[bool]) -> None:
    slack = ERRORS * math.sqrt(0.8 * 0.2 / len(hits))
    assert LOWEST - slack <= np.mean(hits) <= HIGHEST + slack


SWE_BENCH_VERIFIED = [231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 1]


def found_in_clusters(sizes: list[int], attempts: tuple[int, int], apart: float, runs: int) -> list[bool]:
    """Whether a drop of the effect was found, with problems correlated within clusters and within cluster and side.

    `apart` is the standard deviation, on the logit scale, of what is particular to a cluster and side.
    """
    generator = np.random.default_rng([len(sizes), sum(sizes), *attempts, int(10 * apart)])
    inside = np.repeat(np.arange(len(sizes)), sizes)
    n = np.repeat(np.array(attempts)[:, None], len(inside), axis=1)

    def rates() -> Floats:
        own, shared = generator.logistic(size=len(inside)), generator.normal(0, 1, len(sizes))
        logits = own + (shared + generator.normal(0, apart, (2, len(sizes))))[:, inside]
        return 1 / (1 + np.exp(-logits))

    mean = np.mean([rates().mean() for _ in range(300)])
    hits = []
    for _ in range(runs):
        quiet = judged(n, generator.binomial(n, rates()), inside + 1)
        effect = quiet.minimum_detectable_effect
        if effect is not None and effect < mean:
            before = rates()
            before[1] *= 1 - effect / mean
            hits.append(judged(n, generator.binomial(n, before), inside + 1).verdict == "worse")
    print(f"{len(sizes)} clusters, {len(inside)} problems, {attempts}, {apart}: {np.mean(hits):.3f} of {len(hits)}")
    return hits


@pytest.mark.nightly
def test_eight_clusters_of_twenty_find_it() -> None:
    """With a verdict that a widened interval may veto, 1 or 2 in 100 are found."""
    _assert_within(found_in_clusters([20] * 8, (5, 5), 0.0, 100))


@pytest.mark.nightly
@pytest.mark.parametrize("apart", [0.0, 0.5])
@pytest.mark.parametrize(
    "sizes",
    [[20] * 8, [4] * 30, [20] * 30, [5] * 12, SWE_BENCH_VERIFIED, [100] + [10] * 14],
    ids=["8x20", "30x4", "30x20", "12x5", "swe-bench", "one-big"],
)
def test_clusters_find_it(sizes: list[int], apart: float) -> None:
    _assert_within(found_in_clusters(sizes, (5, 5), apart, 2000))


@pytest.mark.nightly
@pytest.mark.parametrize("attempts", [(1, 20), (1, 10), (3, 10)], ids=str)
@pytest.mark.parametrize("problems", [100, 300])
def test_unequal_attempts_find_it(attempts: tuple[int, int], problems: int) -> None:
    _assert_within(found_in_clusters([1] * problems, attempts, 0.0, 1000))


# The parts


def averaged_errors(degrees: int, power: float) -> float:
    """Standard errors for that power, averaged over estimates of the error: by simulation of its definition."""
    generator = np.random.default_rng(1)
    normal, test, estimate = generator.normal(size=400_000), *generator.chisquare(degrees, (2, 400_000)) ** 0.5
    critical = scipy.stats.t.ppf(0.975, degrees) / degrees**0.5 * test
    return float(np.quantile((critical - normal) / (estimate / degrees**0.5), power))


@pytest.mark.parametrize(("units", "power"), [(8, 0.8), (12, 0.9), (60, 0.5), (60, 0.8)])
def test_few_units_need_more_standard_errors_because_the_error_is_itself_estimated(units: int, power: float) -> None:
    expected = averaged_errors(units - 1, power)
    assert _required_standard_errors(units - 1, units, 0.05, power) == pytest.approx(expected, rel=0.02)


def test_the_effect_solves_its_equation() -> None:
    generator = np.random.default_rng(5)
    rates = generator.beta(2, 2, 60)
    passed = [generator.binomial(4, rates) for _ in range(2)]
    result = judged(4, passed)
    a, b = (some / 4 for some in passed)
    mean, square = (a.mean() + b.mean()) / 2, (a * b).mean()
    shared = ((a - a.mean()) * (b - b.mean())).mean()
    reach = averaged_errors(59, 0.8)

    one_sided = ((b - a).var(ddof=1) - 2 * (mean - square) / 4) / 2

    def solves(effect: float, mean: float, square: float) -> float:
        f = effect / mean
        after, before = (1 - f) * mean - (1 - f) ** 2 * square, mean - square
        variance = (b - a).var(ddof=1) + f**2 * (shared + one_sided) - 2 * f * one_sided + (after - before) / 4
        return 0.25 / 60 + reach * math.sqrt(variance / 60) - effect

    effect = result.minimum_detectable_effect
    assert effect is not None and result.detectable_method == "t"
    short = sorted((solves(effect, mean, square), solves(effect, 1 - mean, 1 - 2 * mean + square)))
    assert short[0] <= 1e-3 and short[1] == pytest.approx(0, abs=1e-3)


def test_moments_of_rates_have_no_bias_from_single_attempts() -> None:
    rates = np.random.default_rng(9).beta(2, 5, 200_000)
    passed = np.random.default_rng(10).binomial(1, np.stack([rates, rates]))
    moments, law = pass_rate_moments(moments_of(1, passed)), scipy.stats.beta(2, 5)
    assert moments.mean == pytest.approx(law.mean(), abs=0.005)
    assert moments.mean_square == pytest.approx(law.var() + law.mean() ** 2, abs=0.005)
    assert moments.between_units == pytest.approx(law.var(), abs=0.005)
    assert moments.one_sided == pytest.approx(0, abs=0.005)


def test_clusters_that_differ_by_side_show_in_the_moments() -> None:
    """Clusters of 50 whose rate is 0.5 plus a part of their own on each side, with a variance of 0.01."""
    generator = np.random.default_rng(11)
    clusters = np.repeat(np.arange(4000), 50)
    rates = 0.5 + generator.choice([-0.1, 0.1], (2, 4000))[:, clusters]
    moments = pass_rate_moments(moments_of(1, generator.binomial(1, rates), clusters + 1))
    # Per problem: a cluster of 50 has 50 times the variance of a problem's mean, and a hundredth within problems.
    assert moments.one_sided == pytest.approx(50 * 0.01, rel=0.05)
    assert moments.between_units == pytest.approx(0, abs=0.03)


def test_moments_of_failing_twice_are_those_of_passing() -> None:
    moments = PassRateMoments(*(np.array([part]) for part in (0.3, 0.15, 0.06, 0.01, 0.2)))
    again = moments.of_failing().of_failing()
    assert np.concatenate(list(vars(again).values())) == pytest.approx(np.concatenate(list(vars(moments).values())))


def test_a_direction_without_room_leaves_the_other() -> None:
    """If nearly all pass, a drop is detectable and a rise is not; with hardly any data, neither is."""
    most = [np.array([1] * 36 + [0] * 4), np.array([1] * 34 + [0] * 2 + [1] * 2 + [0] * 2)]
    effect = judged(1, most).minimum_detectable_effect
    assert effect is not None and effect > 1 - np.mean(most)
    turned = judged(1, [1 - side for side in most]).minimum_detectable_effect
    assert turned == pytest.approx(effect, rel=1e-9)
    half = [np.array([1, 0] * 4), np.array([0, 1] * 4)]
    assert judged(1, half).minimum_detectable_effect is None


def test_power_below_a_half_needs_a_smaller_effect() -> None:
    passed = np.random.default_rng(3).binomial(5, 0.5, (2, 60))
    pair = moments_of(5, passed)
    effects = [minimum_detectable_effects(pair, 0.05, power, 0.95)[0][0] for power in (0.3, 0.5, 0.8, 0.95)]
    assert effects == sorted(set(effects))


def test_at_least_six_units_must_flip_for_any_effect() -> None:
    (effect,), (method,) = minimum_detectable_effects(moments_of(1, np.ones((2, 40), dtype=np.int64)), 0.05, 0.3, 0.95)
    assert method == "flips"
    assert scipy.stats.binom.sf(5, 40, effect) == pytest.approx(0.3, rel=1e-6)


def test_needed_share() -> None:
    for total, needed in ((6, 6), (40, 6), (1_000_000, 12)):
        share = _required_share(total, needed, 0.8)
        assert scipy.stats.binom.sf(needed - 1, total, share) == pytest.approx(0.8, rel=1e-6)
