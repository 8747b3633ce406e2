"""The test of how many problems fell: against enumeration, at its level, and where it must not decide."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import scipy
from hypothesis import example, given
from hypothesis import strategies as st

from tests.comparison.test_pairs import compare_pair, frame, swapped
from touchstone.comparison.pairs import ComparisonSettings, PairResult, sentence
from touchstone.inference.fallen import LEVEL, SHARE, ChangedProblems, _distinct, changed_p, poisson_binomial_tail
from touchstone.inference.paired_moments import PairedOutcomes

ONE_MODEL = ComparisonSettings(same_model=True)
ALWAYS, NEVER, BROKEN, REPAIRED = (5, 5, 5, 5), (5, 0, 5, 0), (5, 5, 5, 0), (5, 0, 5, 5)
NOISE = [(5, 2, 5, 4), (5, 3, 5, 4), (5, 1, 5, 3)] * 40 + [(5, 4, 5, 2), (5, 4, 5, 3), (5, 3, 5, 1)] * 40


def judged(counts: list[tuple[int, int, int, int]], settings: ComparisonSettings = ONE_MODEL) -> PairResult:
    return compare_pair(frame(counts), settings)


def test_ten_broken_problems_are_found_that_the_mean_misses() -> None:
    counts = NOISE + [BROKEN] * 10 + [ALWAYS] * 50
    result = judged(counts)
    assert (result.fell, result.rose, result.verdict) == (10, 0, "worse")
    assert result.p_value > 0.05 > result.p_adjusted and result.p_changed < 1e-20
    words = (
        "current is worse than baseline: 10 problems fell and 0 rose, p < 0.001; mean difference -3.3 points (95% CI "
    )
    assert sentence(result, "baseline", "current").startswith(words)
    assert result.adjusted_ci_high >= 0, "the interval is of the mean, which may not have changed"
    better = compare_pair(swapped(frame(counts)), ONE_MODEL)
    assert (better.fell, better.rose, better.verdict) == (0, 10, "better")


def test_what_breaks_as_many_problems_as_it_repairs_is_not_worse() -> None:
    result = judged([*NOISE, *[BROKEN] * 8, *[REPAIRED] * 7])
    assert (result.fell, result.rose) == (8, 7) and result.p_changed < 1e-9
    assert result.verdict not in ("better", "worse")


def test_two_models_that_differ_from_problem_to_problem_are_counted_but_not_judged_by_it() -> None:
    result = judged(NOISE + [BROKEN] * 10, ComparisonSettings())
    assert (result.fell, result.p_changed) == (10, None) and result.verdict not in ("better", "worse")


@pytest.mark.parametrize("attempts", [1, 4])
def test_too_few_attempts_leave_the_whole_level_to_the_mean(attempts: int) -> None:
    counts = [(attempts, attempts, attempts, 0)] * 6 + [(attempts, 0, attempts, 0)] * 20
    result = judged(counts)
    assert (result.fell, result.p_changed, result.p_adjusted) == (0, None, result.p_value)


def test_both_tests_share_the_level() -> None:
    counts, p_values, sign_p = np.array([9, 9, 0]), np.array([1e-4, 1e-4, np.nan]), np.array([1e-5, 0.2, np.nan])
    changed = ChangedProblems(counts, counts, p_values, sign_p)
    expected = [1e-4 / SHARE, 0.5 / (1 - SHARE), 0.02 / (1 - SHARE)]
    assert changed.combined(np.array([0.5, 0.5, 0.02])) == pytest.approx(expected)


def test_broken_problems_are_worse_even_if_the_others_make_up_for_them_by_chance() -> None:
    result = judged([*NOISE, (5, 2, 5, 4), *[(5, 3, 5, 4)] * 53, *[BROKEN] * 10])
    assert result.difference > 0 and (result.verdict, result.decided_by) == ("worse", "problems")


RATES = st.sampled_from([0.0, 0.0, 0.5, 0.8, 1.0, 1.0])


@given(st.lists(st.tuples(*[st.integers(3, 6)] * 2, RATES, RATES), min_size=1, max_size=4))
@example([(5, 5, 1.0, 0.0), (6, 4, 0.5, 0.5), (5, 6, 1.0, 0.0)])
@example([(5, 5, 0.0, 1.0), (4, 6, 1.0, 0.0), (6, 6, 0.2, 1.0)])
def test_the_p_value_is_that_of_enumeration(problems: list[tuple[int, int, float, float]]) -> None:
    """Over all ways to deal the passes of each problem to its two sides."""
    counts = [(a, round(x * a), b, round(y * b)) for a, b, x, y in problems]
    columns = (np.array(column) for column in zip(*counts, strict=True))
    p_value, _ = changed_p(PairedOutcomes(*columns, np.ones(len(counts), dtype=np.int64)))
    laws = [scipy.stats.hypergeom(a + b, c_a + c_b, b) for a, c_a, b, c_b in counts]

    def fell(passes: Sequence[int]) -> int:
        return sum(law.cdf(each) <= LEVEL + 1e-12 for law, each in zip(laws, passes, strict=True))

    def rose(passes: Sequence[int]) -> int:
        return sum(law.sf(each - 1) <= LEVEL + 1e-12 for law, each in zip(laws, passes, strict=True))

    observed = [c_b for *_, c_b in counts]
    changed = rose if rose(observed) > fell(observed) else fell
    tail = math.fsum(
        math.prod(law.pmf(passes) for law, passes in zip(laws, dealt, strict=True))
        for dealt in itertools.product(*(range(b + 1) for _, _, b, _ in counts))
        if changed(dealt) >= changed(observed)
    )
    if math.isnan(p_value):
        assert all(math.comb(a + b, a) < 1 / LEVEL for a, _, b, _ in counts)
    else:
        assert p_value == pytest.approx(min(1.0, 2 * tail), rel=1e-9)


def test_tails_of_impossible_certain_and_very_many_events() -> None:
    chances = np.array([0.0, 0.3])
    assert poisson_binomial_tail(chances, np.array([5, 2]), 0) == 1.0
    assert poisson_binomial_tail(chances, np.array([5, 2]), 3) == 0.0
    exact, many = scipy.stats.binom.sf(603_000 - 1, 2_000_000, 0.3), np.array([1, 2_000_000])
    assert poisson_binomial_tail(chances, many, 603_000) == pytest.approx(exact, rel=1e-4)


def test_keys_are_found_by_counting_and_by_sorting_alike() -> None:
    keys = np.array([[7, 2], [2, 9]])
    for bound in (10, 2**30):
        present, places = _distinct(keys, bound)
        assert (present.tolist(), places.tolist()) == ([2, 7, 9], [[1, 0], [0, 2]])


def test_the_order_of_problems_does_not_matter() -> None:
    counts = frame([*NOISE, *[BROKEN] * 9, NEVER])
    assert compare_pair(counts.sample(fraction=1, shuffle=True, seed=3), ONE_MODEL) == compare_pair(counts, ONE_MODEL)
