"""Stage 3, second half: scores of attempts, tiers, suites, models and problems.

The formulas belong in `touchstone.metrics`; pass@k itself is in `assets.metrics`.
"""

import dagster as dg
import polars as pl

from assets.common import (
    EvaluationParam,
    check_result,
    checks_in_one_step,
    each_model,
    per_model,
    plotted,
    result,
    table_metadata,
    tables_in_one_step,
)
from assets.ingest import attempts
from assets.validation import outcomes
from touchstone import checks
from touchstone.evaluation import Evaluation
from touchstone.metrics import aggregates, suites
from touchstone.metrics import attempts as attempt_metrics
from touchstone.metrics import tiers as tier_metrics

GROUP = "scores"


@dg.asset(
    group_name=GROUP,
    kinds={"polars"},
    deps=[attempts, outcomes],
    metadata=table_metadata("attempt_scores"),
)
def attempt_scores(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Every attempt with its scores: composite, code score, cost, cost of pass, accuracy, grade."""
    scoring = evaluation.config.scoring
    parts = {}
    for model in each_model(evaluation, "scores"):
        parts[model] = evaluation.refresh_model(
            "attempt_scores",
            reads=["attempts", "outcomes"],
            model=model,
            settings=scoring.model_dump(),
            make=lambda attempts, outcomes: attempt_metrics.attempt_scores(attempts, outcomes, scoring),
        )
    return per_model("attempt_scores", parts, {})


def settings(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """The settings that the figures depend on. The SQL macros take their weights and grades from here."""
    return result("settings", evaluation.refresh_settings())


def tier_statistics(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """Median, mean, mode, extremes and spread of every metric, per model and tier."""
    part = evaluation.refresh("tier_statistics", ["attempt_scores"], None, tier_metrics.tier_statistics)
    return result("tier_statistics", part)


def tiers(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """Grade, pass rate, cost of pass and uplift of every tier, with their confidence intervals."""
    scoring, intervals = evaluation.config.scoring, evaluation.config.intervals
    part = evaluation.refresh(
        "tiers",
        ["tier_statistics", "attempt_scores", "problems"],
        [scoring.model_dump(), intervals.model_dump()],
        lambda described, scores, problems: tier_metrics.tiers(described, scores, problems, scoring, intervals),
    )
    return result("tiers", part, plotted(part, ["model", "tier"], ["composite_median", "uplift"]))


def cross_tier(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """How much a model's tiers differ, and the cheapest tier that passes."""
    part = evaluation.refresh("cross_tier", ["tier_statistics", "tiers"], None, tier_metrics.cross_tier)
    return result("cross_tier", part, plotted(part, ["model"], ["frontier_cost_of_pass"]))


def suite_scores(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """The mean accuracy of every suite with its confidence interval, and counts per class."""
    settings, intervals = evaluation.config.scoring.suites, evaluation.config.intervals
    part = evaluation.refresh(
        "suite_scores",
        ["attempt_scores", "problems"],
        [settings.model_dump(), intervals.model_dump()],
        lambda scores, problems: suites.suite_scores(scores, problems, settings, intervals),
    )
    return result("suite_scores", part)


def run_scores(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """The overall score of every run, the plain mean of its suites, with its confidence interval."""
    intervals = evaluation.config.intervals
    part = evaluation.refresh(
        "run_scores",
        ["suite_scores", "attempt_scores", "problems"],
        intervals.model_dump(),
        lambda per_suite, scores, problems: suites.run_scores(per_suite, scores, problems, intervals),
    )
    return result("run_scores", part, plotted(part, ["model", "tier"], ["overall_score"]))


def model_statistics(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """What each model does overall: pass@k, compilation, tests, lint, cost, tokens, latency."""
    k_values, intervals = evaluation.config.k_values, evaluation.config.intervals
    part = evaluation.refresh(
        "model_statistics",
        ["attempt_scores", "pass_at_k", "problems"],
        [k_values, intervals.model_dump()],
        lambda scores, figures, problems: aggregates.model_statistics(scores, figures, problems, k_values, intervals),
    )
    return result("model_statistics", part, plotted(part, ["model", "tier"], ["total_cost_usd"]))


def problem_statistics(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """What each problem does to each model: pass@k, scores, cost of pass, who solves it."""
    k_values = evaluation.config.k_values
    part = evaluation.refresh(
        "problem_statistics",
        ["attempt_scores", "problem_pass_at_k"],
        k_values,
        lambda scores, figures: aggregates.problem_statistics(scores, figures, k_values),
    )
    return result("problem_statistics", part)


def problem_frontier(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """Per problem how hard it is, and the model that solves it at the lowest cost."""
    part = evaluation.refresh("problem_frontier", ["problem_statistics"], None, aggregates.problem_frontier)
    unsolved = pl.scan_parquet(part.path).filter(pl.col("models_solving") == 0).select(pl.len()).collect().item()
    return result("problem_frontier", part, {"unsolved_problems": unsolved})


def every_model_priced(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Every attempt of a model that brings tokens or costs has a cost."""
    store, scoring = evaluation.store, evaluation.config.scoring
    return check_result(checks.every_model_priced(store.scan("attempts"), store.scan("attempt_scores"), scoring))


def missing_scores(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Attempts without a judge's score do not fail more often than the others, whose scores alone are graded."""
    missing = evaluation.config.scoring.composite.missing
    return check_result(checks.missing_scores(evaluation.store.scan("attempt_scores"), missing))


def known_classes(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Every class is one of the known ones; any other scores 0."""
    return check_result(checks.known_classes(evaluation.store.scan("attempt_scores")))


def classes_match_outcomes(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Where a validator decided here, it agrees with the class in the file."""
    store = evaluation.store
    return check_result(checks.classes_match_outcomes(store.scan("attempts"), store.scan("outcomes")))


def classes_add_up(evaluation: Evaluation) -> dg.AssetCheckResult:
    """The counts per class of a suite add up to its cases."""
    return check_result(checks.classes_add_up(evaluation.store.scan("suite_scores").collect()))


def no_empty_suite(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Every suite of the problems file has a decided case."""
    store = evaluation.store
    empty = suites.empty_suites(store.scan("problems"), store.scan("suite_scores"))
    return check_result(checks.no_empty_suite(empty.collect()))


score_tables = tables_in_one_step(
    GROUP,
    {
        settings: [],
        tier_statistics: ["attempt_scores"],
        tiers: ["tier_statistics", "attempt_scores", "problems"],
        cross_tier: ["tier_statistics", "tiers"],
        suite_scores: ["attempt_scores", "problems"],
        run_scores: ["suite_scores", "attempt_scores", "problems"],
        model_statistics: ["attempt_scores", "pass_at_k", "problems"],
        problem_statistics: ["attempt_scores", "problem_pass_at_k"],
        problem_frontier: ["problem_statistics"],
    },
)
attempt_checks = checks_in_one_step("attempt_scores", [every_model_priced, known_classes, classes_match_outcomes])
tier_checks = checks_in_one_step("tiers", [missing_scores])
suite_checks = checks_in_one_step("suite_scores", [classes_add_up, no_empty_suite])
