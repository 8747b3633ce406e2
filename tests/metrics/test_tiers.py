"""Tiers: the seed's uplifts, their edges, what tiers differ in, and the intervals of every figure."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import fewer_examples
from tests.metrics.frames import problem_scores
from touchstone.config import IntervalSettings
from touchstone.config.scoring import Scoring
from touchstone.inference.medians import Sample, uplift_intervals
from touchstone.inference.ratios import cost_of_pass_interval
from touchstone.inference.uncertainty import unit_interval, wilson
from touchstone.metrics import tiers as metric
from touchstone.tables import TABLES, conform, violations

SCORING = Scoring()
INTERVALS = IntervalSettings(replicates=200)
NO_PROBLEMS = pl.LazyFrame(schema={"oid": pl.String, "cluster": pl.String})


def scores(*rows: tuple[str, str, float | None, float | None, float | None]) -> pl.LazyFrame:
    """Attempts at one problem each as (model, tier, pass_rate, composite_score, cost_usd)."""
    columns = ["model", "tier", "pass_rate", "composite_score", "cost_usd"]
    schema = dict.fromkeys(columns[:2], pl.String) | dict.fromkeys(columns[2:], pl.Float64)
    others = [name for name in metric.METRICS if name not in columns]
    frame = pl.LazyFrame(rows, schema=schema, orient="row").with_columns(
        oid=pl.format("p{}", pl.int_range(pl.len()).over("model", "tier"))
    )
    return frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in others)


def tiers_of(
    attempts: pl.LazyFrame,
    problems: pl.LazyFrame = NO_PROBLEMS,
    scoring: Scoring = SCORING,
    intervals: IntervalSettings = INTERVALS,
) -> pl.LazyFrame:
    return metric.tiers(
        metric.tier_statistics(attempts), attempts, problem_scores(attempts), problems, scoring, intervals
    )


def compared(
    *rows: tuple[str, str, float | None, float | None, float | None],
) -> tuple[pl.DataFrame, dict[str, object]]:
    described = metric.tier_statistics(scores(*rows))
    per_tier = tiers_of(scores(*rows))
    return per_tier.collect(), metric.cross_tier(described, per_tier).collect().row(0, named=True)


def test_seed_example_cross_tier_uplifts_and_variance() -> None:
    rows = [("m", f"T{place}", 1.0, score, None) for place, score in enumerate((0.70, 0.80, 0.85, 0.90))]
    per_tier, across = compared(*rows)
    assert per_tier["uplift"].to_list() == pytest.approx([0, 0.143, 0.214, 0.286], abs=5e-4)
    assert across["score_variance"] == pytest.approx(0.00547, abs=5e-6)
    assert per_tier["grade"].to_list() == ["D", "C", "B", "B"]


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=8),
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=8),
)
def test_cliffs_delta_counts_pairs_of_attempts(baseline: list[float], tier: list[float]) -> None:
    rows = [("m", name, 1.0, score, None) for name, values in (("T0", baseline), ("T1", tier)) for score in values]
    per_tier, _ = compared(*rows)
    signs = [np.sign(theirs - ours) for theirs in tier for ours in baseline]
    assert per_tier["cliffs_delta"].to_list() == pytest.approx([0, np.mean(signs)])


def test_cliffs_delta_needs_scores_on_both_sides() -> None:
    alone, _ = compared(("m", "T1", 1.0, 0.5, None))
    unscored, _ = compared(("m", "T0", 1.0, None, None), ("m", "T1", 1.0, 0.5, None))
    # An uplift over 0 is undefined; a comparison with it is not.
    zero, _ = compared(("m", "T0", 0.0, 0.0, None), ("m", "T1", 1.0, 0.5, None))
    assert alone["cliffs_delta"].to_list() == [None]
    assert unscored["cliffs_delta"].to_list() == [None, None]
    assert zero.select("uplift", "cliffs_delta").row(1) == (None, 1.0)


def test_seed_example_uplift_of_a_fifth() -> None:
    per_tier, _ = compared(("m", "T0", 1.0, 0.75, None), ("m", "T1", 1.0, 0.90, None))
    assert per_tier["uplift"][1] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([("m", "T1", 1.0, 0.9, None)], "there is no tier T0"),
        ([("m", "T0", 0.0, 0.0, None), ("m", "T1", 1.0, 0.9, None)], "the composite score of tier T0 is 0"),
        ([("m", "T0", 1.0, None, None), ("m", "T1", 1.0, 0.9, None)], "tier T0 has no composite score"),
        ([("m", "T0", 1.0, 0.5, None), ("m", "T1", 1.0, None, None)], "the tier has no composite score"),
    ],
)
def test_uplift_is_null_with_a_reason_and_without_an_interval(
    rows: list[tuple[str, str, float, float | None, None]], reason: str
) -> None:
    # Nine of each: enough for an interval.
    per_tier, _ = compared(*(row for row in rows for _ in range(9)))
    last = per_tier.filter(pl.col("tier") == "T1").row(0, named=True)
    assert (last["uplift"], last["uplift_reason"]) == (None, reason)
    assert (last["uplift_ci_low"], last["uplift_ci_high"], last["uplift_ci_method"]) == (None, None, None)


def test_an_uplift_without_an_interval_says_why() -> None:
    scored = many(problems=12)
    few = scored.filter((pl.col("tier") != "T1") | (pl.col("oid") < "p03"))
    rows = {row["tier"]: row for row in tiers_of(few).collect().iter_rows(named=True)}
    assert rows["T1"]["uplift"] is not None
    assert (rows["T1"]["uplift_ci_low"], rows["T1"]["uplift_ci_method"]) == (None, None)
    needed = "problems or clusters with a composite score in tier"
    assert rows["T1"]["uplift_reason"] == f"no interval: 3 {needed} T1, 6 are needed"
    assert (rows["T2"]["uplift_ci_low"] is None, rows["T2"]["uplift_reason"]) == (False, None)
    short = scored.filter((pl.col("tier") != "T0") | (pl.col("oid") < "p05"))
    for tier in ("T1", "T2"):
        row = tiers_of(short).filter(pl.col("tier") == tier).collect().row(0, named=True)
        assert (row["uplift_ci_low"], row["uplift_reason"]) == (None, f"no interval: 5 {needed} T0, 6 are needed")


def test_another_baseline_tier() -> None:
    attempts = scores(("m", "none", 1.0, 0.5, None), ("m", "full", 1.0, 0.6, None))
    per_tier = tiers_of(attempts, scoring=Scoring(baseline_tier="none")).collect()
    assert dict(per_tier.select("tier", "uplift").iter_rows()) == {"full": pytest.approx(0.2), "none": 0.0}


def test_cost_of_pass_of_a_tier_is_mean_cost_by_mean_pass_rate() -> None:
    per_tier, across = compared(
        ("m", "T0", 1.0, 1.0, 1.0), ("m", "T0", 0.0, 0.0, 3.0), ("m", "T1", 0.0, 0.0, 1.0), ("m", "T2", 1.0, 1.0, 5.0)
    )
    assert per_tier["cost_of_pass"].to_list() == [4.0, math.inf, 5.0]
    assert (across["frontier_cost_of_pass"], across["frontier_tier"]) == (4.0, "T0")
    assert across["cost_delta"] == 4.0


def test_no_frontier_where_nothing_passes_or_costs_are_unknown() -> None:
    _, never = compared(("m", "T0", 0.0, 0.0, 1.0))
    _, unknown = compared(("m", "T0", 1.0, 1.0, None))
    for across in (never, unknown):
        assert (across["frontier_cost_of_pass"], across["frontier_tier"]) == (None, None)
    assert unknown["cost_delta"] is None


def test_variance_over_means_shows_what_medians_hide() -> None:
    rows = [("m", "T0", float(i > 3), None, None) for i in range(10)] + [("m", "T1", 1.0, None, None)] * 10
    _, across = compared(*rows)
    assert across["pass_rate_variance"] == 0.0
    assert across["pass_rate_variance_of_means"] == pytest.approx(0.04)


@given(st.floats(0.01, 1), st.floats(0, 1))
@fewer_examples
def test_uplift_has_the_sign_of_the_change_and_undoes_itself(baseline: float, score: float) -> None:
    per_tier, _ = compared(("m", "T0", 1.0, baseline, None), ("m", "T1", 1.0, score, None))
    found = per_tier["uplift"][1]
    assert baseline * (1 + found) == pytest.approx(score, abs=1e-12)
    assert (found > 0) == (score > baseline)


def many(problems: int = 40, n: int = 3, seed: int = 1) -> pl.LazyFrame:
    """Three tiers at the same problems; the third lacks half of them, and some costs."""
    generator = np.random.default_rng(seed)
    chance = generator.beta(3, 2, problems)
    rows = []
    for place, tier in enumerate(("T0", "T1", "T2")):
        for problem in range(problems if tier != "T2" else problems // 2):
            for _ in range(n):
                passed = float(generator.random() < min(1, chance[problem] + 0.1 * place))
                cost = None if tier == "T2" and problem == 3 else float(generator.integers(4, 9)) / 100
                score = (passed + generator.integers(0, 11) / 10) / 2
                rows.append(("m", tier, f"p{problem:02}", passed, score, cost))
    columns = {"model": pl.String, "tier": pl.String, "oid": pl.String}
    figures = dict.fromkeys(["pass_rate", "composite_score", "cost_usd"], pl.Float64)
    frame = pl.LazyFrame(rows, schema={**columns, **figures}, orient="row")
    return frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in metric.METRICS if name not in figures)


def clusters(problems: int, size: int) -> pl.LazyFrame:
    oids = [f"p{problem:02}" for problem in range(problems)]
    return pl.LazyFrame({"oid": oids, "cluster": [f"c{problem // size}" for problem in range(problems)]})


def test_every_figure_has_the_interval_of_its_own_kind() -> None:
    attempts = many()
    row = tiers_of(attempts).filter(pl.col("tier") == "T1").collect().row(0, named=True)
    own = (
        attempts.filter(pl.col("tier") == "T1")
        .group_by("oid")
        .agg(pl.col("pass_rate", "cost_usd").sum(), size=pl.len().cast(pl.Int64))
    )
    passes, costs, sizes = (own.sort("oid").collect()[name].to_numpy() for name in ("pass_rate", "cost_usd", "size"))
    rate = unit_interval(passes, sizes, np.ones_like(sizes), INTERVALS)
    assert (row["pass_rate_ci_low"], row["pass_rate_ci_high"]) == pytest.approx((rate.low, rate.high))
    assert row["pass_rate_ci_method"] == "wilson-t"
    cost = cost_of_pass_interval(costs, sizes, passes, sizes, INTERVALS)
    assert (row["cost_of_pass_ci_low"], row["cost_of_pass_ci_high"]) == pytest.approx((cost.low, cost.high))
    assert row["cost_of_pass_ci_method"] == "fieller"
    assert (row["ci_method"], row["ci_units"]) == ("woodruff", 40)
    assert row["ci_low"] <= row["composite_median"] <= row["ci_high"]
    sides = []
    for tier in ("T0", "T1"):
        part = attempts.filter(pl.col("tier") == tier).sort("oid").collect()
        codes = np.repeat(np.arange(40), 3)
        sides.append(Sample(part["composite_score"].to_numpy(), codes, np.ones(len(codes), dtype=np.int64)))
    uplift = uplift_intervals(sides[0], sides[1:], INTERVALS)[0]
    assert (row["uplift_ci_low"], row["uplift_ci_high"]) == (uplift.low, uplift.high)
    assert row["uplift_ci_method"] == "bootstrap"


def test_a_grade_has_the_range_of_its_interval() -> None:
    rows = [("m", "T0", 1.0, 0.9 if place < 12 else 0.3, None) for place in range(20)]
    row = tiers_of(scores(*rows)).collect().row(0, named=True)
    assert (row["ci_low"], row["composite_median"], row["ci_high"]) == (0.3, 0.9, 0.9)
    assert (row["grade_low"], row["grade"], row["grade_high"]) == ("F", "B", "B")
    nothing = tiers_of(scores(("m", "T0", 1.0, None, None))).collect().row(0, named=True)
    assert (nothing["grade_low"], nothing["grade"], nothing["grade_high"]) == (None, None, None)


def test_scored_counts_the_decided_attempts_that_a_judge_scored() -> None:
    attempts = scores(*[("m", "T0", 1.0, 0.9, None)] * 3, ("m", "T0", 0.0, None, None), ("m", "T0", None, None, None))
    judged = attempts.with_columns(impl_rate=pl.Series([0.8, 0.8, 0.8, None, 0.5]))
    row = tiers_of(judged).collect().row(0, named=True)
    assert (row["attempts"], row["scored"]) == (4, 3)


def test_the_contract_holds() -> None:
    for problems in (NO_PROBLEMS, clusters(40, 4)):
        table = conform(tiers_of(many(), problems), TABLES["tiers"])
        assert violations(table, TABLES["tiers"]) == {}


def test_an_infinite_end_of_uplift_is_infinite_and_not_unknown() -> None:
    rows = [("m", "T0", 1.0, 0.0 if place < 9 else 0.5, None) for place in range(20)]
    table = tiers_of(scores(*rows, *[("m", "T1", 1.0, 1.0, None)] * 20))
    last = table.collect().row(1, named=True)
    assert (last["uplift_ci_low"], last["uplift_ci_high"]) == (1.0, math.inf)
    assert last["uplift_ci_method"] == "woodruff"
    assert violations(conform(table, TABLES["tiers"]), TABLES["tiers"]) == {}


def test_a_tier_without_a_score_has_no_interval_of_it() -> None:
    row = tiers_of(scores(*[("m", "T0", None, None, 1.0)] * 8)).collect().row(0, named=True)
    assert (row["ci_low"], row["ci_method"], row["ci_units"]) == (None, None, 0)
    assert (row["pass_rate_ci_low"], row["pass_rate_ci_method"], row["cost_of_pass_ci_method"]) == (None, None, None)


def test_where_all_pass_or_none_does_there_is_a_real_interval() -> None:
    rows = [("m", f"T{1 - passed}", float(passed), float(passed), 2.0) for passed in (1, 0) for _ in range(20)]
    all_pass, none_does = tiers_of(scores(*rows)).collect().rows(named=True)
    assert (all_pass["pass_rate_ci_low"], all_pass["pass_rate_ci_high"]) == wilson(1.0, 20, 0.95)
    assert (none_does["pass_rate_ci_low"], none_does["pass_rate_ci_high"]) == wilson(0.0, 20, 0.95)
    assert 2.0 < all_pass["cost_of_pass_ci_high"] < 3.0
    assert none_does["cost_of_pass_ci_low"] > 9
    assert none_does["cost_of_pass_ci_high"] == math.inf
    # A median may well be sure.
    assert (all_pass["ci_low"], all_pass["ci_high"], all_pass["ci_method"]) == (1.0, 1.0, "woodruff")


def test_one_unknown_cost_leaves_the_cost_of_pass_without_an_interval() -> None:
    row = tiers_of(many()).filter(pl.col("tier") == "T2").collect().row(0, named=True)
    assert (row["cost_of_pass"], row["cost_of_pass_ci_low"], row["cost_of_pass_ci_method"]) == (None, None, None)
    assert row["pass_rate_ci_low"] is not None


def test_clusters_of_one_problem_change_nothing_and_larger_ones_are_the_units() -> None:
    alone = tiers_of(many(), clusters(40, 1)).collect()
    assert alone.equals(tiers_of(many()).collect())
    shared = tiers_of(many(), clusters(40, 4)).collect()
    assert shared["ci_units"].to_list() == [10, 10, 5]
    assert shared["uplift_ci_method"].to_list() == [None, "bootstrap", None]
    assert shared["composite_median"].equals(alone["composite_median"])


@fewer_examples
@given(st.integers(0, 1000))
def test_the_order_of_rows_does_not_show(seed: int) -> None:
    attempts, problems = many(problems=12).collect(), clusters(12, 2)
    shuffled = attempts.sample(fraction=1, shuffle=True, seed=seed).lazy()
    backwards = problems.collect().reverse().lazy()
    assert tiers_of(shuffled, backwards).collect().equals(tiers_of(attempts.lazy(), problems).collect())
