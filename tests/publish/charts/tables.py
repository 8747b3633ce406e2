"""Tables to draw charts from: every chart's own, with as many models and problems as a test wants."""

import itertools
from collections.abc import Callable, Sequence

import polars as pl

from touchstone.tables import TABLES

HOSTILE = '<script>alert("1")</script> \u202egnp.exe \x1b[31mred =cmd() 🦊 https://example.org/x' + "x" * 40


def names(count: int) -> list[str]:
    return [f"model-{place:03}" for place in range(count)]


def _rate(place: int) -> float:
    """Different rates in an order that is not that of the names."""
    return (place * 37 % 101 + 1) / 103


def _interval(rate: float) -> dict[str, object]:
    return {"ci_low": rate * 0.9, "ci_high": rate * 0.9 + 0.1, "ci_method": "wilson-t", "ci_units": 8}


def pass_at_k(models: Sequence[str], ks: Sequence[int] = (1, 5)) -> pl.DataFrame:
    rows = [
        {"model": model, "tier": "T0", "k": k, "pass_at_k": 1 - (1 - _rate(place)) ** k, "eligible": 8}
        | _interval(1 - (1 - _rate(place)) ** k)
        for (place, model), k in itertools.product(enumerate(models), ks)
    ]
    return pl.DataFrame(rows)


def reliability_curve(models: Sequence[str], ks: Sequence[int] = (1, 2, 5)) -> pl.DataFrame:
    return pass_at_k(models, ks).with_columns(pass_hat_k=pl.col("pass_at_k") / pl.col("k"))


def economics(models: Sequence[str]) -> pl.DataFrame:
    rows = [
        {
            "model": model,
            "tier": "T0",
            "problems": 8,
            "pass_rate": _rate(place),
            "cost_per_attempt": 0.001 * (place + 1),
            "cost_of_pass": 0.001 * (place + 1) / _rate(place),
            "pareto": place == 0 or all(_rate(place) > _rate(other) for other in range(place)),
            "pareto_probability": 0.5,
        }
        | _interval(0.001 * (place + 1))
        for place, model in enumerate(models)
    ]
    return pl.DataFrame(rows)


def tiers(models: Sequence[str]) -> pl.DataFrame:
    def row(place: int, model: str, tier: str) -> dict[str, object]:
        baseline = tier == "T0"
        return {
            "model": model,
            "tier": tier,
            "ci_units": 8,
            "composite_median": _rate(place),
            "uplift": 0.0 if baseline else _rate(place),
            "uplift_ci_low": None if baseline else -0.1,
            "uplift_ci_high": None if baseline else _rate(place) + 0.2,
            "uplift_ci_method": None if baseline else "bootstrap",
            "uplift_reason": None,
        }

    rows = [row(place, model, tier) for (place, model), tier in itertools.product(enumerate(models), ("T0", "T1"))]
    return pl.DataFrame(rows, schema_overrides={"uplift_ci_method": pl.String, "uplift_reason": pl.String})


def suite_scores(models: Sequence[str], suites: int = 2) -> pl.DataFrame:
    rows = [
        {"model": model, "tier": "T0", "run_id": None, "suite": f"suite-{suite}", "cases": 10, "passed": place % 11}
        | {name: 0 for name in TABLES["suite_scores"].dtypes if name.startswith("class_")}
        | {"class_pass": place % 11, "class_fail": 10 - place % 11}
        | _interval(place % 11 / 10)
        for (place, model), suite in itertools.product(enumerate(models), range(suites))
    ]
    return pl.DataFrame(rows)


def problem_statistics(models: Sequence[str], problems: int = 4) -> pl.DataFrame:
    grid = pl.DataFrame({"model": models, "strength": range(len(models))}).join(
        pl.DataFrame({"oid": [f"problem-{place:05}" for place in range(problems)], "ease": range(problems)}),
        how="cross",
    )
    passed = (pl.col("strength") + pl.col("ease")) % 6
    return grid.select("model", pl.lit("T0").alias("tier"), "oid", n=pl.lit(5), c=passed)


def outcomes(models: Sequence[str]) -> pl.DataFrame:
    rows = [
        {"model": model, "tier": "T0", "passed": passed, "applied": applied, "compiled": compiled}
        for model in models
        for passed, applied, compiled in [
            (True, True, True),
            (False, True, False),
            (False, False, None),
            (None, None, None),
        ]
    ]
    return pl.DataFrame(rows)


def variance_split(models: Sequence[str]) -> pl.DataFrame:
    rows = [
        {
            "model": model,
            "tier": "T0",
            "problems": 8,
            "attempts": 80,
            "samples": 10.0,
            "standard_error": (2 * _rate(place)) ** 0.5,
            "variance_of_mean": 2 * _rate(place),
            "from_problems": _rate(place) * 1.5,
            "from_samples": _rate(place) * 0.5,
            "share_from_problems": 0.75,
        }
        for place, model in enumerate(models)
    ]
    return pl.DataFrame(rows)


def model_comparison(models: Sequence[str]) -> pl.DataFrame:
    def row(first: int, second: int) -> dict[str, object]:
        difference = _rate(second) - _rate(first)
        return {
            "model_a": models[first],
            "tier_a": "T0",
            "model_b": models[second],
            "tier_b": "T0",
            "problems": 8,
            "rate_a": _rate(first),
            "rate_b": _rate(second),
            "difference": difference,
            "ci_low": difference - 0.1,
            "ci_high": difference + 0.1,
            "ci_method": "t",
            "p_adjusted": 0.01,
            "correction": "holm",
            "pairs": len(models) * (len(models) - 1) // 2,
            "verdict": "inconclusive" if abs(difference) < 0.1 else "better" if difference > 0 else "worse",
        }

    pairs = [row(first, second) for first, second in itertools.combinations(range(len(models)), 2)]
    return pl.DataFrame(pairs, schema={name: TABLES["model_comparison"].dtypes[name] for name in row(0, 0)})


def history(models: Sequence[str], snapshots: int = 3) -> pl.DataFrame:
    rows = [
        {"snapshot": f"s{day}", "made_at": f"2026-11-{day + 1:02}T10:00:00Z", "table": "pass_at_k", "model": model}
        | {"tier": "T0", "item": "1", "figure": figure, "value": value}
        for day in range(snapshots)
        for place, model in enumerate(models)
        for figure, value in (
            ("pass_at_k", (_rate(place) + day) / 5),
            ("ci_low", (_rate(place) + day) / 6),
            ("ci_high", (_rate(place) + day) / 4),
            ("eligible", 8.0),
        )
    ]
    return pl.DataFrame(rows)


def slices(models: Sequence[str]) -> pl.DataFrame:
    rows = [
        {"model": model, "tier": "T0", "column": "difficulty", "value": value, "problems": 4, "attempts": 20}
        | {"pass_at_1": _rate(place) * share}
        | _interval(_rate(place) * share)
        for (place, model), (value, share) in itertools.product(enumerate(models), (("easy", 1.0), ("hard", 0.5)))
    ]
    return pl.DataFrame(rows)


def problem_audit(problems: Sequence[str]) -> pl.DataFrame:
    rows = [
        {
            "tier": "T0",
            "oid": oid,
            "models": 20,
            "share_of_attempts": _rate(place),
            "discrimination": _rate(place) - 0.7,
        }
        | {"p_value": _rate(place) / 50, "p_adjusted": _rate(place) / 10, "verdict": "ok" if place > 20 else "suspect"}
        for place, oid in enumerate(problems)
    ]
    return pl.DataFrame(rows)


# The table of every chart, by the chart's name.
TABLE_OF: dict[str, Callable[[Sequence[str]], pl.DataFrame]] = {
    "leaderboard": pass_at_k,
    "pass_at_k_curves": pass_at_k,
    "pass_hat_k": reliability_curve,
    "cost_quality": economics,
    "tier_uplift": tiers,
    "suite_heatmap": suite_scores,
    "problem_heatmap": problem_statistics,
    "outcome_funnel": outcomes,
    "failure_classes": suite_scores,
    "variance_split": variance_split,
    "pairwise_verdicts": model_comparison,
    "history": history,
    "slices": slices,
    "problem_discrimination": problem_audit,
}
