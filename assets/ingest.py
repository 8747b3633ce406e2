"""Stage 1: the input files become the tables `problems`, `attempts`, `sources` and `quarantine`.

How a file is read belongs in `touchstone.ingest`.
"""

import dagster as dg
import polars as pl

from assets.common import (
    EvaluationParam,
    check_result,
    checks_in_one_step,
    each_model,
    made,
    per_model,
    preview,
    table_metadata,
)
from assets.models import register_models
from touchstone import checks
from touchstone.contracts import TABLES
from touchstone.evaluation import Evaluation

GROUP = "ingest"


@dg.asset(group_name=GROUP, kinds={"csv", "polars"}, metadata=table_metadata("problems"))
def problems(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """The problems to be solved: the denominator of every figure."""
    part = evaluation.ingest_problems()
    version = dg.DataVersion(evaluation.problems_version())
    return dg.MaterializeResult(metadata=made("problems", part), data_version=version)


@dg.asset(
    group_name=GROUP,
    kinds={"csv", "polars"},
    deps=[problems],
    metadata=table_metadata("attempts"),
)
def attempts(context: dg.AssetExecutionContext, evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Every attempt of every model, as its fixes file states it. Refused rows go to `quarantine`."""
    register_models(context.instance, evaluation)
    gone = evaluation.keep_models(list(evaluation.discovery.sources))
    if gone:
        context.log.warning(f"the fixes files of {', '.join(gone)} are gone; their results are removed")
    evaluation.account_for_files()
    parts = {}
    for model in each_model(evaluation, "attempts"):
        parts[model] = evaluation.ingest_model(model)
    evaluation.remember_hashes()
    return per_model("attempts", parts, {})


@dg.asset(group_name=GROUP, kinds={"parquet"}, deps=[attempts], metadata=table_metadata("sources"))
def sources(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """One row per file and model: how many rows it had, how many became attempts, or why it was not evaluated.

    `attempts` writes the table; this asset shows it and carries its checks. So does `quarantine`.
    """
    table = evaluation.store.scan("sources").sort("source_file", "model").collect()
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": table.height,
            "rows": int(table["rows"].sum()),
            "accepted": int(table["accepted"].sum()),
            "quarantined": int(table["quarantined"].sum()),
            **{f"files_{status}": files for status, files in table.group_by("status").len().sort("status").iter_rows()},
            "preview": preview(table.lazy()),
        },
        data_version=dg.DataVersion(evaluation.store.fingerprint("sources")),
    )


@dg.asset(group_name=GROUP, kinds={"parquet"}, deps=[problems, attempts], metadata=table_metadata("quarantine"))
def quarantine(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Every refused row with its file, line and reason."""
    table = evaluation.store.scan("quarantine").sort("source_file", "line").collect()
    kinds = table.group_by("kind").len().sort("kind")
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": table.height,
            "preview": preview(table.lazy()),
            **{f"kind_{kind}": count for kind, count in kinds.iter_rows()},
        },
        data_version=dg.DataVersion(evaluation.store.fingerprint("quarantine")),
    )


def files_readable(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Every fixes file could be read."""
    return check_result(checks.files_readable(evaluation.store.scan("quarantine").collect()))


def files_accounted_for(evaluation: Evaluation) -> dg.AssetCheckResult:
    """Every data file in `fixes_dir` is evaluated, or left out because the configuration says so."""
    return check_result(checks.files_accounted_for(_sources(evaluation)))


def quarantine_share(evaluation: Evaluation) -> dg.AssetCheckResult:
    """No file has more refused rows than `checks.max_quarantine_share` allows."""
    return check_result(checks.quarantine_share(_sources(evaluation), evaluation.config.checks))


def unknown_oids(evaluation: Evaluation) -> dg.AssetCheckResult:
    """The fixes speak of problems that the problems file knows."""
    refused = evaluation.store.scan("quarantine").collect()
    return check_result(checks.unknown_oids(_sources(evaluation), refused, evaluation.config.checks))


def unique_keys(evaluation: Evaluation) -> dg.AssetCheckResult:
    """No two attempts share a key."""
    return check_result(checks.unique_keys(evaluation.store.scan("attempts"), TABLES["attempts"].key))


def _sources(evaluation: Evaluation) -> pl.DataFrame:
    return evaluation.store.scan("sources").collect()


attempt_checks = checks_in_one_step("attempts", [unique_keys])
source_checks = checks_in_one_step("sources", [files_readable, files_accounted_for])
quarantine_checks = checks_in_one_step("quarantine", [quarantine_share, unknown_oids])
