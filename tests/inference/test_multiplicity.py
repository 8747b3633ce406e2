"""Corrections for many pairs: worked examples, what must hold, and scipy."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from touchstone.inference.multiplicity import (
    adjust_p_values,
    benjamini_yekutieli,
    correction_for,
    count_rejections,
    holm,
)

P_VALUES = st.lists(st.none() | st.floats(0, 1), max_size=12)


def test_holm_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5], rel=1e-12)


@pytest.mark.parametrize("family", ["all", "baseline", "fdr"])
def test_nulls_do_not_count(family: str) -> None:
    with_nulls = adjust_p_values([None, 0.02, None, 0.03], family)  # type: ignore[arg-type]
    assert with_nulls[0] is with_nulls[2] is None
    assert [with_nulls[1], with_nulls[3]] == adjust_p_values([0.02, 0.03], family)  # type: ignore[arg-type]
    assert adjust_p_values([], family) == []  # type: ignore[arg-type]
    assert adjust_p_values([None], family) == [None]  # type: ignore[arg-type]


@given(P_VALUES)
def test_holm_lies_between_p_and_bonferroni_and_keeps_the_order(p_values: list[float | None]) -> None:
    corrected = holm(p_values)
    known = [(p, q) for p, q in zip(p_values, corrected, strict=True) if p is not None and q is not None]
    assert [q is None for q in corrected] == [p is None for p in p_values]
    assert all(p <= q <= min(1.0, p * len(known)) for p, q in known)
    assert all(q <= s for (p, q), (r, s) in product(known, known) if p <= r)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_the_false_discovery_rate_is_that_of_scipy(p_values: list[float]) -> None:
    theirs = stats.false_discovery_control(p_values, method="by")
    assert benjamini_yekutieli(p_values) == pytest.approx(theirs.tolist(), rel=1e-12)


def test_one_pair_is_not_corrected() -> None:
    for family in ("all", "baseline", "fdr"):
        assert adjust_p_values([0.03], family) == [0.03]  # type: ignore[arg-type]
        rule = correction_for(1, 0.05, family)  # type: ignore[arg-type]
        assert (rule.test_level, rule.interval_level, rule.best_level) == (0.05, 0.05, 0.05)


def test_intervals_are_bonferronis_and_narrower_only_for_many_findings() -> None:
    assert correction_for(10, 0.05, "all", found=10).interval_level == 0.005
    price = sum(1 / place for place in range(1, 11))
    assert correction_for(10, 0.05, "fdr", found=1).interval_level == 0.005
    assert correction_for(10, 0.05, "fdr", found=1).test_level == pytest.approx(0.005 / price)
    assert correction_for(10, 0.05, "fdr", found=10).interval_level == pytest.approx(0.05 / price)


def test_findings_are_counted_after_the_correction() -> None:
    assert count_rejections([0.02, 0.02, 0.04], 0.05, "all") == 0
    assert count_rejections([0.001, 0.04, None], 0.05, "all") == 2
