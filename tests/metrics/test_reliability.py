"""Flips, consistency and the curve of pass@k and pass^k: by hand, in simulation, and at the edges."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import beta

from tests.metrics.test_variance import Pair, Row, Suite, pairs, suites, tables
from touchstone.config import IntervalSettings
from touchstone.inference.uncertainty import mean_interval, wilson
from touchstone.metrics import reliability as metric
from touchstone.metrics.pass_at_k import pass_at_k_of, pass_hat_k_of
from touchstone.metrics.variance import variance_split
from touchstone.tables import TABLES, conform, violations

SETTINGS = IntervalSettings(replicates=300)


def figures(pairs: Sequence[Pair], clusters: Sequence[str | None] | None = None) -> Row:
    return metric.reliability(*tables(pairs, clusters), SETTINGS).collect().row(0, named=True)


def curve(pairs: Sequence[Pair], clusters: Sequence[str | None] | None = None) -> dict[int, Row]:
    table = metric.reliability_curve(*tables(pairs, clusters), SETTINGS).collect()
    return {row["k"]: row for row in table.iter_rows(named=True)}


FOUR = [(4, 4), (4, 2), (4, 1), (4, 0)]


def test_four_problems_by_hand() -> None:
    row = figures(FOUR)
    assert [row[name] for name in ("problems", "repeated", "always", "never", "flipping")] == [4, 4, 1, 1, 2]
    # Pairs of attempts that end alike: 6, 2, 3 and 6 of 6.
    assert (row["flip_rate"], row["consistency"]) == (0.5, pytest.approx(17 / 24))
    assert (row["flip_rate_ci_low"], row["flip_rate_ci_high"]) == pytest.approx(wilson(0.5, 4, 0.95))
    assert row["ci_units"] == 4


def test_intervals_are_those_of_a_mean_over_problems_or_clusters() -> None:
    clusters = ["x", "x", None, None]
    row = figures(FOUR, clusters)
    for name, values in {"flip_rate": [0.0, 1.0, 1.0, 0.0], "consistency": [1.0, 2 / 6, 3 / 6, 1.0]}.items():
        expected = mean_interval(np.array(values), np.ones(4, dtype=np.int64), clusters, SETTINGS)
        assert (row[f"{name}_ci_low"], row[f"{name}_ci_high"]) == pytest.approx((expected.low, expected.high))
        assert (row[f"{name}_ci_method"], row["ci_units"]) == (expected.method, 3)


def test_a_single_attempt_cannot_flip() -> None:
    row = figures([(1, 1), (1, 0), (3, 3), (2, 1), (0, 0)])
    assert [row[name] for name in ("problems", "repeated", "always", "never", "flipping")] == [4, 2, 1, 0, 1]
    assert (row["flip_rate"], row["consistency"], row["ci_units"]) == (0.5, 0.5, 2)


@pytest.mark.parametrize(("outcomes", "problems"), [([(1, 1), (1, 0)], 2), ([(0, 0)], 0)])
def test_without_a_repeated_problem_nothing_is_known(outcomes: list[Pair], problems: int) -> None:
    row = figures(outcomes)
    assert row["problems"] == problems
    assert [row[name] for name in ("repeated", "always", "never", "flipping", "ci_units")] == [0] * 5
    unknown = [name for name in row if name.startswith(("flip_rate", "consistency"))]
    assert len(unknown) == 8 and all(row[name] is None for name in unknown)


@pytest.mark.parametrize(("passes", "which"), [(3, "always"), (0, "never")])
def test_all_pass_or_none(passes: int, which: str) -> None:
    row = figures([(3, passes)] * 20)
    assert (row[which], row["flipping"], row["flip_rate"], row["consistency"]) == (20, 0, 0.0, 1.0)
    assert (row["flip_rate_ci_low"], row["consistency_ci_high"]) == (0.0, 1.0)
    assert row["flip_rate_ci_high"] > 0.1 and row["consistency_ci_low"] < 0.9  # type: ignore[operator]


def test_one_problem() -> None:
    row = figures([(2, 1)])
    assert (row["flip_rate"], row["consistency"], row["ci_units"]) == (1.0, 0.0, 1)


def test_nothing_at_all_is_an_empty_table() -> None:
    assert metric.reliability(*tables([]), SETTINGS).collect().height == 0
    assert metric.reliability_curve(*tables([]), SETTINGS).collect().height == 0


def test_curve_of_four_problems_by_hand() -> None:
    table = curve(FOUR)
    assert list(table) == [1, 2, 3, 4]
    assert [row["pass_at_k"] for row in table.values()] == pytest.approx(
        [7 / 16, (1 + 5 / 6 + 3 / 6) / 4, (1 + 1 + 3 / 4) / 4, 3 / 4]
    )
    assert [row["pass_hat_k"] for row in table.values()] == pytest.approx([7 / 16, (1 + 1 / 6) / 4, 1 / 4, 1 / 4])
    assert [row["eligible"] for row in table.values()] == [4] * 4


def test_the_curve_shows_how_problems_become_fewer() -> None:
    table = curve([(1, 1), (2, 2), (25, 5), (0, 0)])
    assert list(table) == [*range(1, 11), 20]
    assert [row["eligible"] for row in table.values()] == [3, 2, *[1] * 9]
    assert table[2]["pass_hat_k"] == pytest.approx((1 + 20 / 600) / 2)
    # Only one of the C(25, 5) = 53,130 ways to leave five out leaves out all that passed.
    assert table[20]["pass_at_k"] == pytest.approx(1 - 1 / 53_130, abs=1e-12)
    assert (table[20]["pass_hat_k"], table[20]["ci_units"]) == (0.0, 1)


def test_without_an_attempt_there_is_no_curve() -> None:
    assert curve([(0, 0), (0, 0)]) == {}


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (0, []),
        (1, [1]),
        (9, [*range(1, 10)]),
        (19, [*range(1, 11)]),
        (100, [*range(1, 11), 20, 50, 100]),
        (4999, [*range(1, 11), 20, 50, 100, 200, 500, 1000, 2000]),
    ],
)
def test_k_values_of_the_curve(most: int, expected: list[int]) -> None:
    assert metric.curve_k_values(most) == expected


@given(suites)
def test_figures_against_a_plain_reference(suite: Suite) -> None:
    row = figures(*zip(*suite, strict=True))
    repeated = [(n, c) for (n, c), _ in suite if n > 1]
    assert row["repeated"] == len(repeated) == row["always"] + row["never"] + row["flipping"]  # type: ignore[operator]
    if not repeated:
        return
    alike = sum(Fraction(c * (c - 1) + (n - c) * (n - c - 1), n * (n - 1)) for n, c in repeated) / len(repeated)
    assert row["consistency"] == pytest.approx(float(alike))
    assert row["flip_rate"] == sum(0 < c < n for n, c in repeated) / len(repeated)
    # Attempts can only differ where the problem flips.
    assert 1 - row["consistency"] <= row["flip_rate"] + 1e-12  # type: ignore[operator]
    for name in ("flip_rate", "consistency"):
        assert row[f"{name}_ci_low"] <= row[name] <= row[f"{name}_ci_high"]  # type: ignore[operator]


@given(suites)
def test_consistency_agrees_with_the_curve_and_with_the_variance(suite: Suite) -> None:
    outcomes, clusters = zip(*suite, strict=True)
    row, points = figures(outcomes, clusters), curve(outcomes, clusters)
    split = variance_split(*tables(outcomes, clusters)).collect().row(0, named=True)
    if points:
        assert points[1]["pass_at_k"] == pytest.approx(split["pass_at_1"])
        assert points[1]["pass_hat_k"] == pytest.approx(split["pass_at_1"])
    if row["repeated"]:
        # Both pass, or neither does; and two attempts differ with chance 2 p (1 - p).
        both, neither = points[2]["pass_hat_k"], 1 - points[2]["pass_at_k"]  # type: ignore[operator]
        assert row["consistency"] == pytest.approx(both + neither)  # type: ignore[operator]
        assert row["consistency"] == pytest.approx(1 - 2 * split["sampling_variance"])


@given(suites)
def test_the_curve_is_the_mean_over_eligible_problems(suite: Suite) -> None:
    outcomes, clusters = zip(*suite, strict=True)
    for k, row in curve(outcomes, clusters).items():
        eligible = [(n, c) for n, c in outcomes if n >= k]
        assert row["eligible"] == len(eligible)
        for name, figure in {"pass_at_k": pass_at_k_of, "pass_hat_k": pass_hat_k_of}.items():
            assert row[name] == pytest.approx(sum(figure(n, c, k) or 0.0 for n, c in eligible) / len(eligible))
        assert 0 <= row["ci_low"] <= row["pass_hat_k"] <= row["ci_high"] <= 1  # type: ignore[operator]
        assert row["pass_hat_k"] <= row["pass_at_k"] + 1e-12  # type: ignore[operator]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8))
def test_at_equal_n_one_curve_rises_and_the_other_falls(passes: list[int]) -> None:
    points = list(curve([(12, c) for c in passes]).values())
    for before, after in pairwise(points):
        assert after["pass_at_k"] >= before["pass_at_k"] - 1e-12  # type: ignore[operator]
        assert after["pass_hat_k"] <= before["pass_hat_k"] + 1e-12  # type: ignore[operator]


@given(suites, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_show_and_contracts_hold(suite: Suite, chance: object) -> None:
    frames = [frame.collect() for frame in tables(*zip(*suite, strict=True))]
    seed = chance.randrange(2**32)  # type: ignore[attr-defined]
    shuffled = [frame.sample(fraction=1, shuffle=True, seed=seed).lazy() for frame in frames]
    for function in (metric.reliability, metric.reliability_curve):
        table = TABLES[function.__name__]
        straight = function(frames[0].lazy(), frames[1].lazy(), SETTINGS)
        assert function(shuffled[0], shuffled[1], SETTINGS).collect().equals(straight.collect())
        assert violations(conform(straight, table), table) == {}


@given(st.lists(pairs, min_size=1, max_size=10))
def test_clusters_of_one_are_no_clusters(outcomes: list[Pair]) -> None:
    alone = [f"alone{i}" for i in range(len(outcomes))]
    assert figures(outcomes, alone) == figures(outcomes)
    assert curve(outcomes, alone) == curve(outcomes)


def test_consistency_does_not_depend_on_n_but_the_flip_rate_does() -> None:
    size, a, b = 20_000, 2.0, 5.0
    generator = np.random.default_rng(21)
    attempts = (2, 5, 20)
    rows = [figures([(n, int(c)) for c in generator.binomial(n, generator.beta(a, b, size))]) for n in attempts]
    alike = 1 - 2 * a * b / (a + b) / (a + b + 1)
    assert [row["consistency"] for row in rows] == pytest.approx([alike] * 3, abs=0.008)
    flipping = [1 - (beta(a + n, b) + beta(a, b + n)) / beta(a, b) for n in attempts]
    assert [row["flip_rate"] for row in rows] == pytest.approx(flipping, abs=0.008)
    assert flipping[0] < 0.4 and flipping[2] > 0.9
