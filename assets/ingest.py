"""Stage 1: the input files become the tables `problems`, `attempts`, `sources`, `quarantine` and
`reported_figures`.

Reading files belongs in `touchstone.ingest`.
"""

from collections.abc import Iterator

import dagster as dg

from assets.common import EvaluationParam, checks_of, materialized, table_spec
from assets.metadata import made, per_model, shown_rows
from assets.models import register_models
from touchstone.tables import TABLES


@dg.multi_asset(specs=[table_spec(TABLES["problems"], "csv", "polars"), table_spec(TABLES["problem_slices"])])
def problems(context: dg.AssetExecutionContext, evaluation: EvaluationParam) -> Iterator[dg.MaterializeResult[None]]:
    """The problems file, and the problems in files of other systems; and the slices that they are in."""
    [part] = evaluation.materialize("problems").values()
    version = dg.DataVersion(evaluation.inputs.problems_version())
    yield dg.MaterializeResult("problems", metadata=made("problems", part), data_version=version)
    yield materialized(context, evaluation, "problem_slices")


@dg.multi_asset(specs=[table_spec(TABLES["attempts"], "csv", "polars")])
def attempts(context: dg.AssetExecutionContext, evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """The fixes files, one part per model."""
    register_models(context.instance, evaluation)
    parts = evaluation.materialize("attempts")
    if evaluation.ingest.removed_models:
        context.log.warning(evaluation.ingest.removal_warning)
    return per_model("attempts", parts)


@dg.multi_asset(specs=[table_spec(TABLES["sources"], "parquet")])
def sources(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """How every file was handled. `attempts` writes the table; this asset shows it and carries its checks."""
    evaluation.materialize("sources")
    table = evaluation.store.scan("sources").collect()
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": table.height,
            "rows": int(table["rows"].sum()),
            "accepted": int(table["accepted"].sum()),
            "quarantined": int(table["quarantined"].sum()),
            **{f"files_{status}": files for status, files in table.group_by("status").len().sort("status").iter_rows()},
            "preview": shown_rows(table.lazy(), "sources"),
        },
        data_version=dg.DataVersion(evaluation.store.fingerprint("sources")),
    )


@dg.multi_asset(specs=[table_spec(TABLES["quarantine"], "parquet")])
def quarantine(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """The quarantined rows, counted by kind."""
    evaluation.materialize("quarantine")
    table = evaluation.store.scan("quarantine").collect()
    kinds = table.group_by("kind").len().sort("kind")
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": table.height,
            "preview": shown_rows(table.lazy(), "quarantine"),
            **{f"kind_{kind}": count for kind, count in kinds.iter_rows()},
        },
        data_version=dg.DataVersion(evaluation.store.fingerprint("quarantine")),
    )


@dg.multi_asset(specs=[table_spec(TABLES["reported_figures"], "parquet")])
def reported_figures(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """What other tools' files state, beside the same figure from the rows that were read."""
    evaluation.materialize("reported_figures")
    table = evaluation.store.scan("reported_figures").collect()
    return dg.MaterializeResult(
        metadata={"dagster/row_count": table.height, "preview": shown_rows(table.lazy(), "reported_figures")},
        data_version=dg.DataVersion(evaluation.store.fingerprint("reported_figures")),
    )


attempt_checks = checks_of("attempts")
source_checks = checks_of("sources")
quarantine_checks = checks_of("quarantine")
figure_checks = checks_of("reported_figures")
