"""Suites and runs: the mean accuracy of a suite, and the plain mean of suites for a run.

A large suite counts no more than a small one. Weighted suites, credit per class and a latency score are configured
extras: they stand beside the plain scores and never replace them.
"""

import polars as pl

from touchstone.config import SuiteSettings
from touchstone.metrics.statistics import steady_mean
from touchstone.vocabulary import CLASSES

RUN = ["model", "tier", "run_id"]


def suite_scores(scores: pl.LazyFrame, settings: SuiteSettings) -> pl.LazyFrame:
    """Cases, passes, score and class counts per model, tier, run and suite. Only decided cases count."""
    decided = scores.filter(pl.col("accuracy").is_not_null())
    classes = {f"class_{name}": (pl.col("classification") == name).sum().cast(pl.Int64) for name in CLASSES}
    # A case is worth 0 or 1, so its sum is exact in any order; credits and latencies are sorted before they are summed.
    return (
        decided.with_columns(__credit=credit(settings), __latency=latency_score(settings), __weight=weight(settings))
        .group_by(*RUN, "suite")
        .agg(
            cases=pl.len().cast(pl.Int64),
            passed=pl.col("accuracy").sum().cast(pl.Int64),
            score=pl.col("accuracy").sum() / pl.len(),
            weighted_score=steady_mean(pl.col("__credit")),
            latency_score=steady_mean(pl.col("__latency")),
            suite_weight=pl.col("__weight").first(),
            **classes,
            class_none=pl.col("classification").is_null().sum().cast(pl.Int64),
        )
        .sort(*RUN, "suite", nulls_last=False)
    )


def run_scores(suites: pl.LazyFrame) -> pl.LazyFrame:
    """The overall score of a run: the plain mean of its suites' scores; the pass rate over all cases beside it."""
    counts = pl.col("suite_weight")
    return (
        suites.sort(*RUN, "suite", nulls_last=False)
        .group_by(RUN, maintain_order=True)
        .agg(
            suites=pl.len().cast(pl.Int64),
            cases=pl.col("cases").sum(),
            passed=pl.col("passed").sum(),
            overall_score=pl.col("score").mean(),
            overall_weighted_score=pl.when(counts.sum() > 0).then(
                (pl.col("weighted_score") * counts).sum() / counts.sum()
            ),
            pass_rate=pl.col("passed").sum() / pl.col("cases").sum(),
        )
        .sort(RUN, nulls_last=False)
    )


def empty_suites(problems: pl.LazyFrame, suites: pl.LazyFrame) -> pl.LazyFrame:
    """The suites of the problems file in which no model has a decided case: left out, and reported."""
    return problems.select("suite").unique().join(suites.select("suite"), on="suite", how="anti").sort("suite")


def credit(settings: SuiteSettings) -> pl.Expr:
    """What a case is worth: 1 for a pass, what the configuration gives its class, else 0."""
    worth = pl.col("accuracy")
    for name, value in settings.class_credit.items():
        if name != "pass":
            worth = pl.when(pl.col("classification") == name).then(value).otherwise(worth)
    return worth


def weight(settings: SuiteSettings) -> pl.Expr:
    """How much the case's suite counts in the overall weighted score: as configured, else 1."""
    chosen = pl.lit(1.0)
    for suite, value in settings.weights.items():
        chosen = pl.when(pl.col("suite") == suite).then(value).otherwise(chosen)
    return chosen


def latency_score(settings: SuiteSettings) -> pl.Expr:
    """1 at no latency, 0 at the limit and above, straight in between; null without a limit or a measurement."""
    if settings.latency_limit_ms is None:
        return pl.lit(None, pl.Float64)
    return (1 - pl.col("latency_ms") / settings.latency_limit_ms).clip(0, 1)
