"""Stage 2: every attempt gets an outcome. What decides belongs in `touchstone.validation`.

The checks of this stage are gates: where one finds an error, no score is computed from what it judged.
"""

import dagster as dg
import polars as pl

from assets.common import (
    EvaluationParam,
    Figures,
    check_result,
    checks_in_one_step,
    each_model,
    per_model,
    result,
    table_metadata,
)
from assets.ingest import attempts, problems
from touchstone import checks
from touchstone.evaluation import Evaluation
from touchstone.storage.store import Part

GROUP = "validation"


@dg.asset(group_name=GROUP, kinds={"python"}, deps=[problems, attempts], metadata=table_metadata("baselines"))
def baselines(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """The problems as they came and with their reference fixes, validated: what every fix is held against."""
    return result("baselines", evaluation.validate_problems())


@dg.asset(
    group_name=GROUP,
    kinds={"polars"},
    deps=[attempts, baselines],
    metadata=table_metadata("outcomes"),
)
def outcomes(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """The verdict on every attempt: passed, failed, or not decided."""
    parts = {}
    for model in each_model(evaluation, "outcomes"):
        parts[model] = evaluation.validate_model(model)
    return per_model("outcomes", parts, {model: _figures(part) for model, part in parts.items()})


def _figures(part: Part) -> Figures:
    """Where a model's outcomes came from."""
    rows = pl.scan_parquet(part.path, glob=False)
    counts = rows.select(
        passed=pl.col("passed").sum(),
        undecided=pl.col("passed").is_null().sum(),
        validated_here=pl.col("applied").is_not_null().sum(),
        cache_hits=pl.col("cached").sum(),
    )
    return counts.collect().row(0, named=True)


def baselines_fail_as_recorded(evaluation: Evaluation) -> dg.AssetCheckResult:
    """The unmodified problems have the errors that they are about."""
    found = evaluation.store.scan("baselines").collect()
    return check_result(checks.baselines_fail_as_recorded(found, evaluation.config.checks))


def reference_fixes_pass(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Every reference fix passes."""
    found = evaluation.store.scan("baselines").collect()
    return check_result(checks.reference_fixes_pass(found, evaluation.config.checks))


def all_decided(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Every attempt has an outcome."""
    return check_result(checks.all_decided(evaluation.store.scan("outcomes")))


def undecided_share(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Validation decided nearly all that it was given."""
    return check_result(checks.undecided_share(evaluation.store.scan("outcomes"), evaluation.config.checks))


def reports_consistent(evaluation: Evaluation) -> dg.AssetCheckResult:
    """A validator's exit code and its report agree."""
    return check_result(checks.reports_consistent(evaluation.store.scan("outcomes")))


def funnel_is_monotone(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Attempted >= applied >= compiled >= passed."""
    return check_result(checks.funnel_is_monotone(evaluation.store.scan("outcomes")))


def one_fidelity(evaluation: Evaluation) -> dg.AssetCheckResult:
    """No figure mixes verdicts that mean different things."""
    return check_result(checks.one_fidelity(evaluation.store.scan("outcomes")))


baseline_checks = checks_in_one_step("baselines", [], gates=[baselines_fail_as_recorded, reference_fixes_pass])
outcome_checks = checks_in_one_step(
    "outcomes", [all_decided, reports_consistent], gates=[undecided_share, funnel_is_monotone, one_fidelity]
)
