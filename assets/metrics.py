"""Stage 3: outcomes become figures. The formulas belong in `touchstone.metrics`."""

import dagster as dg
import polars as pl

from assets.common import check_result, checks_in_one_step, result, tables_in_one_step
from touchstone import checks
from touchstone.evaluation import Evaluation
from touchstone.metrics import pass_at_k as metric

GROUP = "metrics"


def problem_pass_at_k(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """pass@k and pass^k of every model on every problem that it attempted."""
    k_values = evaluation.config.k_values
    part = evaluation.refresh(
        "problem_pass_at_k",
        reads=["outcomes"],
        settings=k_values,
        make=lambda outcomes: metric.problem_pass_at_k(outcomes, k_values),
    )
    return result("problem_pass_at_k", part)


def pass_at_k(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """pass@k of every model and tier: the mean over problems, with its confidence interval."""
    config = evaluation.config
    part = evaluation.refresh(
        "pass_at_k",
        reads=["problem_pass_at_k", "problems", "sources"],
        settings=[config.k_values, config.intervals.model_dump()],
        make=lambda figures, problems, sources: metric.pass_at_k(
            figures, problems, sources, config.k_values, config.intervals
        ),
    )
    figures = pl.read_parquet(part.path).select("model", "tier", "k", "pass_at_k")
    plotted = {f"{model} {tier} pass@{k}": value for model, tier, k, value in figures.iter_rows()}
    return result("pass_at_k", part, plotted)


def coverage(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Every model and tier attempted at least `checks.min_coverage` of the problems."""
    return check_result(checks.coverage(evaluation.store.scan("pass_at_k").collect(), evaluation.config.checks))


def enough_samples(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Every attempted problem has at least k decided attempts, for every k."""
    return check_result(checks.enough_samples(evaluation.store.scan("pass_at_k").collect()))


def within_bounds(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Every figure lies in [0, 1] and inside its interval."""
    return check_result(checks.within_bounds(evaluation.store.scan("pass_at_k").collect()))


pass_at_k_tables = tables_in_one_step(
    GROUP, {problem_pass_at_k: ["outcomes"], pass_at_k: ["problem_pass_at_k", "problems"]}
)
pass_at_k_checks = checks_in_one_step("pass_at_k", [coverage, enough_samples, within_bounds])
