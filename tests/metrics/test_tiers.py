"""Tiers: the seed's uplifts, their edges, and what tiers differ in."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.config import Scoring
from touchstone.metrics import tiers as metric

SCORING = Scoring()


def scores(*rows: tuple[str, str, float | None, float | None, float | None]) -> pl.LazyFrame:
    """Attempts as (model, tier, pass_rate, composite_score, cost_usd)."""
    columns = ["model", "tier", "pass_rate", "composite_score", "cost_usd"]
    schema = dict.fromkeys(columns[:2], pl.String) | dict.fromkeys(columns[2:], pl.Float64)
    others = [name for name in metric.METRICS if name not in columns]
    frame = pl.LazyFrame(rows, schema=schema, orient="row")
    return frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in others)


def compared(
    *rows: tuple[str, str, float | None, float | None, float | None],
) -> tuple[pl.DataFrame, dict[str, object]]:
    described = metric.tier_statistics(scores(*rows))
    per_tier = metric.tiers(described, scores(*rows), SCORING)
    return per_tier.collect(), metric.cross_tier(described, per_tier).collect().row(0, named=True)


def test_seed_example_cross_tier_uplifts_and_variance() -> None:
    rows = [("m", f"T{place}", 1.0, score, None) for place, score in enumerate((0.70, 0.80, 0.85, 0.90))]
    per_tier, across = compared(*rows)
    assert per_tier["uplift"].to_list() == pytest.approx([0, 0.143, 0.214, 0.286], abs=5e-4)
    assert across["score_variance"] == pytest.approx(0.00547, abs=5e-6)
    assert per_tier["grade"].to_list() == ["D", "C", "B", "B"]


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
def test_uplift_is_null_with_a_reason(rows: list[tuple[str, str, float, float | None, None]], reason: str) -> None:
    per_tier, _ = compared(*rows)
    last = per_tier.filter(pl.col("tier") == "T1").row(0, named=True)
    assert (last["uplift"], last["uplift_reason"]) == (None, reason)


def test_another_baseline_tier() -> None:
    attempts = scores(("m", "none", 1.0, 0.5, None), ("m", "full", 1.0, 0.6, None))
    per_tier = metric.tiers(metric.tier_statistics(attempts), attempts, Scoring(baseline_tier="none")).collect()
    assert dict(per_tier.select("tier", "uplift").iter_rows()) == {"full": pytest.approx(0.2), "none": 0.0}


def test_cost_of_pass_of_a_tier_is_mean_cost_by_mean_pass_rate() -> None:
    per_tier, across = compared(
        ("m", "T0", 1.0, 1.0, 1.0), ("m", "T0", 0.0, 0.0, 3.0), ("m", "T1", 0.0, 0.0, 1.0), ("m", "T2", 1.0, 1.0, 5.0)
    )
    assert per_tier["cost_of_pass"].to_list() == [4.0, math.inf, 5.0]
    assert (across["frontier_cost_of_pass"], across["frontier_tier"]) == (4.0, "T0")
    assert across["cost_delta"] == 4.0


def test_one_unknown_cost_makes_the_tiers_cost_of_pass_unknown() -> None:
    per_tier, _ = compared(("m", "T0", 1.0, 1.0, 1.0), ("m", "T0", 1.0, 1.0, None))
    assert per_tier["cost_of_pass"].to_list() == [None]


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
def test_uplift_has_the_sign_of_the_change_and_undoes_itself(baseline: float, score: float) -> None:
    per_tier, _ = compared(("m", "T0", 1.0, baseline, None), ("m", "T1", 1.0, score, None))
    found = per_tier["uplift"][1]
    assert baseline * (1 + found) == pytest.approx(score, abs=1e-12)
    assert (found > 0) == (score > baseline)
