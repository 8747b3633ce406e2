"""Change points: found where the level changed, and hardly ever where it did not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.trends.series import NIGHTS_PER_FALSE_ALARM, ChangePoint, change_points

LEVEL = 1 / NIGHTS_PER_FALSE_ALARM


def find(values: "list[float] | np.ndarray[tuple[int], np.dtype[np.float64]]", error: float) -> list[ChangePoint]:
    return change_points(list(values), [error] * len(values), [LEVEL] * len(values))


def test_the_statistic_is_the_moderated_t_of_two_means_times_the_number_of_splits() -> None:
    from scipy import stats

    first, second, error = [0.60, 0.62, 0.61, 0.59], [0.40, 0.42], 0.03
    within = sum((x - np.mean(part)) ** 2 for part in (first, second) for x in part)
    spread = (4 * error**2 + within) / (4 + 4)
    t = (np.mean(first) - np.mean(second)) / np.sqrt(spread * (1 / 4 + 1 / 2))
    (found,) = find([*first, *second], error)
    assert (found.at, found.seen) == (4, 5)
    assert found.p_value == pytest.approx(3 * 2 * stats.t.sf(t, 8))


def test_a_level_is_held_for_more_than_one_night() -> None:
    quiet = [0.60, 0.61] * 10
    assert find([*quiet, 0.3], 0.02) == []
    assert find([*quiet, 0.55, *quiet], 0.02) == []
    assert [change.at for change in find([*quiet, 0.3, 0.31, *quiet], 0.02)] == [20, 22]


def test_neither_a_constant_series_nor_one_problem_more_is_a_change() -> None:
    assert find([0.5] * 100, 0.05) == []
    assert find([0.5] * 30 + [0.51] * 30, 0.05) == []
    assert [change.at for change in find([0.5] * 30 + [0.42] * 30, 0.03)] == [30]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
    st.floats(0.001, 0.2),
    st.floats(-5, 5),
    st.sampled_from([0.25, 4.0, -1.0]),
)
def test_changes_do_not_depend_on_the_unit(values: list[float], error: float, shift: float, scale: float) -> None:
    rounded = [round(value, 3) for value in values]
    found, moved = find(rounded, error), find([scale * value + shift for value in rounded], abs(scale) * error)
    assert [each.seen for each in found] == [each.seen for each in moved]
    for change in found:
        assert 0 < change.at <= change.seen < len(values) and change.p_value <= LEVEL


def nights(
    rng: np.random.Generator, length: int, problems: int, attempts: int, *, drop: float = 0, tail: float = 0
) -> tuple[list[float], list[float]]:
    """pass@1 of new attempts every night, after `drop` from the middle on; `tail` is the weight of odd nights."""
    rates = rng.beta(1, 1, problems)
    odd = 1 / (1 + np.exp(-(np.log(rates / (1 - rates)) + tail * rng.standard_t(4, (length, 1)))))
    odd[length // 2 :] *= 1 - drop / rates.mean()
    shares = rng.binomial(attempts, odd) / attempts
    errors = np.maximum(shares.std(axis=1, ddof=1) / np.sqrt(problems), 0.5 / problems)
    return shares.mean(axis=1).tolist(), errors.tolist()


@pytest.mark.nightly
@pytest.mark.parametrize(("problems", "attempts"), [(300, 5), (100, 1), (20, 3)])
@pytest.mark.parametrize("tail", [0, 0.1])
@pytest.mark.parametrize("length", [20, 60, 200])
def test_false_alarms_are_at_most_one_a_year(problems: int, attempts: int, tail: float, length: int) -> None:
    rng, years = np.random.default_rng(3), 40
    series = [nights(rng, length, problems, attempts, tail=tail) for _ in range(years * 365 // length)]
    alarms = sum(len(change_points(values, errors, [LEVEL] * length)) for values, errors in series)
    assert alarms / years <= 1


@pytest.mark.nightly
@pytest.mark.parametrize(("drop", "within"), [(0.05, 8), (0.08, 4)])
def test_a_drop_is_found_within_nights_and_at_its_place(drop: float, within: int) -> None:
    rng, runs = np.random.default_rng(4), 200
    found = [change_points(*nights(rng, 60, 300, 5, drop=drop), [LEVEL / 12] * 60) for _ in range(runs)]
    seen = [next((each for each in changes if each.seen >= 30), None) for changes in found]
    assert sum(each is not None and each.seen < 30 + within for each in seen) >= 0.9 * runs
    assert sum(each is not None and abs(each.at - 30) <= 1 for each in seen) >= 0.9 * runs
