"""Stage 2: every attempt gets an outcome. What decides belongs in `touchstone.validation`."""

import dagster as dg

from assets.common import (
    EvaluationParam,
    all_models_in_one_run,
    check_result,
    models,
    per_model,
    table_metadata,
)
from assets.ingest import attempts
from touchstone import checks
from touchstone.progress import tell
from touchstone.validation.recorded import recorded_outcomes


@dg.asset(
    group_name="validation",
    kinds={"polars"},
    deps=[attempts],
    partitions_def=models,
    backfill_policy=all_models_in_one_run,
    metadata=table_metadata("outcomes"),
)
def outcomes(context: dg.AssetExecutionContext, evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """The verdict on every attempt: passed, failed, or not decided."""
    parts = {}
    for model in context.partition_keys:
        tell(f"outcomes: {model}")
        parts[model] = evaluation.refresh_model("outcomes", ["attempts"], model, None, recorded_outcomes)
    return per_model(context, "outcomes", parts)


@dg.asset_check(asset=outcomes)
def all_decided(evaluation: EvaluationParam) -> dg.AssetCheckResult:
    """Every attempt has an outcome."""
    return check_result(checks.all_decided(evaluation.store.scan("outcomes")))
