"""What more problems or more samples would bring: by hand, cautious in simulation, and at the edges."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
import scipy
from hypothesis import given

from tests.conftest import nightly_but
from tests.metrics.frames import problem_scores
from tests.metrics.test_variance import FOUR, SETTINGS, Pair, Row, Suite, simulated, split, suites, tables
from touchstone.config import IntervalSettings
from touchstone.metrics import variance as metric
from touchstone.metrics.pass_at_k import outcome_histogram, summarise
from touchstone.metrics.variance import PLANS, VarianceParts
from touchstone.tables import TABLES


def plans(
    pairs: Sequence[Pair], clusters: Sequence[str | None] | None = None, costs: Sequence[float | None] = (0.5, 1.5)
) -> dict[str, Row]:
    schema = {"model": pl.String, "tier": pl.String, "cost_usd": pl.Float64}
    spent = problem_scores(pl.LazyFrame([("m", "T0", cost) for cost in costs], schema=schema, orient="row"))
    table = metric.next_samples(metric.variance_split(*tables(pairs, clusters)), spent, SETTINGS).collect()
    return {row["plan"]: row for row in table.iter_rows(named=True)}


HUNDRED = FOUR * 25
WHOLE, LUCK = 25 * 35 / 64 / 99 / 100, 7 / 192 / 100


def width(variance: float, units: int) -> float:
    return float(2 * scipy.stats.t.ppf(0.975, units - 1) * math.sqrt(variance))


def test_a_hundred_problems_by_hand() -> None:
    table = plans(HUNDRED)
    expected = {
        "now": width(WHOLE, 100),
        "samples x2": width(WHOLE - LUCK / 2, 100),
        "samples x4": width(WHOLE - LUCK * 3 / 4, 100),
        "problems x2": width(WHOLE / 2, 200),
        "problems x4": width(WHOLE / 4, 400),
    }
    assert {name: row["expected_width"] for name, row in table.items()} == pytest.approx(expected)
    saved = {name: expected["now"] - then for name, then in expected.items()}
    assert {name: row["width_saved"] for name, row in table.items()} == pytest.approx(saved)
    assert [row["problems"] for row in table.values()] == [100, 100, 100, 200, 400]
    assert [row["samples"] for row in table.values()] == [4.0, 8.0, 16.0, 4.0, 4.0]
    assert [row["extra_attempts"] for row in table.values()] == [0, 400, 1200, 400, 1200]
    assert [row["extra_cost_usd"] for row in table.values()] == [0.0, 400.0, 1200.0, 400.0, 1200.0]
    assert [row["advised"] for row in table.values()] == [None, False, False, True, True]


def test_new_problems_come_in_clusters_like_those_at_hand() -> None:
    clusters = [f"c{i // 4}" for i in range(100)]
    whole = 2 * split(FOUR * 25, clusters)["from_samples"]  # type: ignore[operator]
    parts = VarianceParts(whole, whole / 2, whole / 2)
    assert [plan.variance(parts, 1e6) for plan in PLANS] == pytest.approx(
        [whole * f for f in (1, 3 / 4, 5 / 8, 1 / 2, 1 / 4)]
    )
    table = plans([(4, 4)] * 48 + [(4, 1)] * 52, clusters)
    row = split([(4, 4)] * 48 + [(4, 1)] * 52, clusters)
    assert row["units"] == 25
    assert table["problems x4"]["expected_width"] == pytest.approx(width(row["variance_of_mean"] / 4, 100))  # type: ignore[operator]


def test_more_samples_are_advised_where_many_problems_show_that_all_is_luck() -> None:
    # As many of each count as two fair coins would give: the problems do not differ.
    table = plans([(2, 0)] * 500 + [(2, 1)] * 1001 + [(2, 2)] * 500)
    assert [row["advised"] for row in table.values()] == [None, True, True, False, False]
    assert table["problems x2"]["expected_width"] < table["samples x2"]["expected_width"]  # type: ignore[operator]


# Less scatter than luck alone explains.
BELOW_LUCK = [(4, 2)] * 4 + [(4, 1)] * 3 + [(4, 3)] * 3


def test_the_width_now_is_that_of_the_interval_also_where_luck_explains_more_than_all() -> None:
    row, table = split(BELOW_LUCK), plans(BELOW_LUCK)
    assert row["from_problems"] < 0  # type: ignore[operator]
    whole = row["variance_of_mean"]
    assert table["now"]["expected_width"] == pytest.approx(width(whole, 10))  # type: ignore[arg-type]
    assert table["problems x2"]["expected_width"] == pytest.approx(width(whole / 2, 20))  # type: ignore[operator]


def test_a_part_from_problems_estimated_below_0_is_not_taken_as_0() -> None:
    row, table = split(BELOW_LUCK), plans(BELOW_LUCK)
    nothing_from_problems = width(row["from_samples"] / 4, 10)  # type: ignore[operator]
    assert table["samples x4"]["expected_width"] > 1.01 * nothing_from_problems  # type: ignore[operator]
    assert table["samples x4"]["expected_width"] <= table["now"]["expected_width"]  # type: ignore[operator]


def test_the_part_from_problems_is_a_median_given_that_it_is_not_negative() -> None:
    whole, degrees = 0.04, 30
    error = whole * math.sqrt(2 / degrees)
    for z in (-12.0, -3.0, 0.0, 1.0, 3.0):
        parts = VarianceParts(whole, z * error, whole - z * error)
        expected = scipy.stats.truncnorm.median(-z, np.inf, loc=z * error, scale=error)
        assert parts.expected_from_problems(degrees) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("size", "alike"), nightly_but([(10, 4.0)], itertools.product([10, 30], [1.0, 4.0])))
def test_more_samples_are_seldom_promised_too_much(size: int, alike: float) -> None:
    """A standard error more than a fifth below the one that comes true: a third of the time where 0 was the floor."""
    runs, attempts = 1000, 5
    chances = np.random.default_rng([size, int(alike)]).beta(alike, alike, (runs, size))
    table = metric.variance_split(*simulated(chances, np.full(size, attempts), seed=18)).collect()
    between, within = 0.25 / (2 * alike + 1), 0.25 - 0.25 / (2 * alike + 1)
    truth = (between + within / attempts / 4) / size
    rows = table.filter(pl.col("variance_of_mean") > 0).select("variance_of_mean", "from_problems", "from_samples")
    foreseen = np.array([PLANS[2].variance(VarianceParts(*row), size - 1) for row in rows.iter_rows()])
    assert PLANS[2].name == "samples x4"
    assert np.mean(np.sqrt(foreseen / truth) < 0.8) < 0.2


def test_an_unknown_cost_leaves_the_price_of_a_plan_unknown() -> None:
    assert [row["extra_cost_usd"] for row in plans(HUNDRED, costs=[1.0, None]).values()] == [None] * 5
    assert [row["extra_cost_usd"] for row in plans(HUNDRED, costs=[]).values()] == [None] * 5


def test_one_attempt_each_leaves_more_problems_as_the_only_plan_with_a_width() -> None:
    table = plans([(1, 1)] * 50 + [(1, 0)] * 50)
    assert [row["expected_width"] is None for row in table.values()] == [False, True, True, False, False]
    assert table["problems x4"]["expected_width"] == pytest.approx(width(0.25 / 99 / 4, 400))
    assert [row["advised"] for row in table.values()] == [None] * 5


@pytest.mark.parametrize("outcomes", [[(2, 1)], [(3, 3)] * 9, [(3, 0)] * 9, [(0, 0)] * 2, [(1, 1)] * 3])
def test_without_scatter_there_is_no_width_to_foresee(outcomes: list[Pair]) -> None:
    for row in plans(outcomes).values():
        assert [row[name] for name in ("expected_width", "width_saved", "advised")] == [None] * 3
        assert row["extra_attempts"] is not None


def test_a_width_is_at_most_one_and_advice_looks_beyond() -> None:
    table = plans([(2, 2), (2, 0)])
    assert [row["expected_width"] for row in table.values()][:4] == [1.0] * 4
    assert (table["samples x2"]["advised"], table["problems x2"]["advised"]) == (False, True)


@given(suites)
def test_more_never_widens_and_one_of_two_plans_is_advised(suite: Suite) -> None:
    table = plans(*zip(*suite, strict=True))
    for times in ("x2", "x4"):
        samples, problems = table[f"samples {times}"], table[f"problems {times}"]
        assert samples["extra_attempts"] == problems["extra_attempts"]
        if samples["expected_width"] is None:
            assert samples["advised"] is problems["advised"] is None
            continue
        assert samples["advised"] is not problems["advised"]
        assert problems["expected_width"] <= samples["expected_width"] <= table["now"]["expected_width"]  # type: ignore[operator]
        assert 0 <= samples["width_saved"] <= problems["width_saved"]  # type: ignore[operator]


@pytest.mark.parametrize(("a", "b"), nightly_but([], [(0.5, 0.5), (4.0, 4.0)]))
def test_plans_come_true(a: float, b: float) -> None:
    runs, size, attempts = 400, 80, 2
    # So many replicates that the ends of a bootstrap interval do not hang on its seed, which all runs share.
    settings = IntervalSettings(replicates=5000)
    generator = np.random.default_rng(15)
    counts, problems = simulated(generator.beta(a, b, (runs, size)), np.full(size, attempts), seed=16)
    spent = pl.LazyFrame(schema=TABLES["problem_scores"].dtypes)
    foreseen = metric.next_samples(metric.variance_split(counts, problems), spent, settings).collect()
    for plan in PLANS:
        chances = generator.beta(a, b, (runs, size * plan.problems))
        then = simulated(chances, np.full(size * plan.problems, attempts * plan.samples), seed=17)
        histogram = outcome_histogram(*then).collect()
        groups = histogram.select("model", "tier").unique().rows()
        intervals = summarise(histogram, groups, size * plan.problems, [1], settings)
        real = (intervals["ci_high"] - intervals["ci_low"]).mean()
        expected = foreseen.filter(pl.col("plan") == plan.name)["expected_width"].mean()
        # With more samples the forecast is cautious: what comes from problems is not known to be nothing.
        assert -0.04 < expected / real - 1 < (0.1 if plan.samples > 1 else 0.04), plan.name
