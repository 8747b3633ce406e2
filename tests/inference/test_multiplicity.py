"""Corrections for many pairs: worked examples, what must hold, and scipy."""

from itertools import product

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from touchstone.inference.multiplicity import Family, adjust_p_values, correction_for, count_rejections

P_VALUES = st.lists(st.floats(0, 1), max_size=12)
FAMILIES: list[Family] = ["all", "baseline", "fdr"]


def adjusted(p_values: list[float], family: Family = "all") -> list[float]:
    return adjust_p_values(np.array(p_values), family).tolist()


def test_holm_worked_example() -> None:
    assert adjusted([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5], rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_has_nothing_to_correct(family: Family) -> None:
    assert adjusted([], family) == []


@given(P_VALUES)
def test_holm_lies_between_p_and_bonferroni_and_keeps_the_order(p_values: list[float]) -> None:
    known = list(zip(p_values, adjusted(p_values), strict=True))
    assert all(p <= q <= min(1.0, p * len(known)) for p, q in known)
    assert all(q <= s for (p, q), (r, s) in product(known, known) if p <= r)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_the_false_discovery_rate_is_that_of_scipy(p_values: list[float]) -> None:
    theirs = scipy.stats.false_discovery_control(p_values, method="by")
    assert adjusted(p_values, "fdr") == pytest.approx(theirs.tolist(), rel=1e-12)


def test_one_pair_is_not_corrected() -> None:
    for family in FAMILIES:
        assert adjusted([0.03], family) == [0.03]
        rule = correction_for(1, 0.05, family)
        assert (rule.test_level, rule.interval_level, rule.best_level) == (0.05, 0.05, 0.05)


def test_intervals_are_bonferronis_and_narrower_only_for_many_findings() -> None:
    assert correction_for(10, 0.05, "all", found=10).interval_level == 0.005
    price = sum(1 / place for place in range(1, 11))
    assert correction_for(10, 0.05, "fdr", found=1).interval_level == 0.005
    assert correction_for(10, 0.05, "fdr", found=1).test_level == pytest.approx(0.005 / price)
    assert correction_for(10, 0.05, "fdr", found=10).interval_level == pytest.approx(0.05 / price)


def test_findings_are_counted_after_the_correction() -> None:
    assert count_rejections(np.array([0.02, 0.02, 0.04]), 0.05, "all") == 0
    assert count_rejections(np.array([0.001, 0.04]), 0.05, "all") == 2
