"""Groups that are alike are noticed, and groups by chance hardly ever."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.inference.grouping import MAX_VALUES, PERMUTATIONS, intraclass_correlation

LEVEL = 1 / (PERMUTATIONS + 1)


def rates(generator: np.random.Generator, groups: int, size: int, share: float, attempts: int = 5) -> np.ndarray:
    """Pass rates of problems, of whose variance this share belongs to their group."""
    own, common = generator.beta(1, 1, (groups, size)), generator.beta(1, 1, (groups, 1))
    chances = np.where(generator.random((groups, size)) < np.sqrt(share), common, own)
    return (generator.binomial(attempts, chances) / attempts).ravel()


@pytest.mark.nightly
@pytest.mark.parametrize(("groups", "size", "attempts"), [(40, 5, 5), (6, 4, 1), (100, 2, 1)])
def test_alike_by_chance_is_rare_and_by_half_is_found(groups: int, size: int, attempts: int) -> None:
    generator = np.random.default_rng([groups, size])
    codes, strata = np.repeat(np.arange(groups), size), np.arange(groups * size) % 2

    def found(share: float, runs: int) -> float:
        drawn = (
            intraclass_correlation(rates(generator, groups, size, share, attempts), codes, strata, 1)
            for _ in range(runs)
        )
        return float(np.mean([each is not None and each.p_value <= LEVEL for each in drawn]))

    # 3 in 1,000 at a level of 1 in 2,000 have a probability of 1.4%.
    assert found(0, 1000) <= 0.003
    if groups == 40:
        assert found(0.5, 50) == 1


def test_what_strata_explain_is_not_alikeness() -> None:
    strata = np.repeat([0, 1], 30)
    values = np.where(strata == 0, 0.1, 0.9) + np.tile([-0.1, 0, 0.1], 20)
    assert intraclass_correlation(values, strata * 10 + np.arange(60) // 3 % 5, strata, 1).p_value > 0.01  # type: ignore[union-attr]
    assert intraclass_correlation(values, np.arange(60) // 3, np.zeros(60, dtype=np.int64), 1).p_value == LEVEL  # type: ignore[union-attr]


@pytest.mark.parametrize("groups", [[0, 0, 0], [0, 1, 2]])
def test_one_group_or_nothing_but_single_values_say_nothing(groups: list[int]) -> None:
    assert intraclass_correlation(np.array([0.0, 0.5, 1.0]), np.array(groups), np.zeros(3, dtype=np.int64), 1) is None


def test_more_values_than_needed_are_left_out() -> None:
    many = 3 * MAX_VALUES
    found = intraclass_correlation(
        np.tile([0.0, 1.0], many // 2), np.arange(many) // 2, np.zeros(many, dtype=np.int64), 1
    )
    assert found is not None and found.correlation < 0 and found.p_value > 0.1


@given(st.permutations(range(12)))
def test_the_order_of_rows_does_not_show(order: list[int]) -> None:
    values, groups = np.arange(12) / 12, np.arange(12) // 4
    once = np.zeros(12, dtype=np.int64)
    assert intraclass_correlation(values[order], groups[order], once, 1) == intraclass_correlation(
        values, groups, once, 1
    )
