"""Stage 5: the tables become what people read, all of it switched in at once by `warehouse`.

How the files are made belongs in `touchstone.publish`, where they lie in `touchstone.storage.store`.
"""

from dataclasses import replace
from pathlib import Path

import dagster as dg
import polars as pl

from assets.common import EvaluationParam, preview, result, table_metadata
from assets.models import published_models
from touchstone.contracts import TABLES
from touchstone.publish.model_csvs import write_model_csvs
from touchstone.publish.summary import summary, write_summary
from touchstone.publish.warehouse import Warehouse, publish_warehouse
from touchstone.storage.problem_history import update_problem_history
from touchstone.storage.store import SUMMARY, WAREHOUSE, digest

GROUP = "publish"


@dg.asset(group_name=GROUP, kinds={"csv"}, deps=["pass_at_k"])
def summary_pass_at_k(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """The summary CSV, one row per model. It reaches the output folder with `warehouse`."""
    evaluation.require("pass_at_k")
    figures = evaluation.store.scan("pass_at_k").collect()
    table = write_summary(figures, evaluation.store.draft / SUMMARY)
    return dg.MaterializeResult(
        metadata={"dagster/row_count": table.height, "preview": preview(table.lazy())},
        data_version=dg.DataVersion(evaluation.store.fingerprint("pass_at_k")),
    )


@dg.asset(group_name=GROUP, kinds={"csv"}, deps=["outcomes", "pass_at_k"])
def model_csvs(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Outcomes and pass@k of every model as CSV files. They reach the output folder with `warehouse`."""
    evaluation.require("outcomes", "pass_at_k")
    store, wanted = evaluation.store, evaluation.config.publish.csv
    files = write_model_csvs(store, wanted)
    made_from = digest([wanted, store.fingerprint("outcomes"), store.fingerprint("pass_at_k")])
    return dg.MaterializeResult(metadata={"files": len(files)}, data_version=dg.DataVersion(made_from))


@dg.asset(
    group_name=GROUP,
    kinds={"parquet"},
    deps=[
        summary_pass_at_k,
        model_csvs,
        "settings",
        "cross_tier",
        "run_scores",
        "model_statistics",
        "problem_frontier",
        "model_comparison",
        "regressions",
        "regression_counts",
        "reliability",
        "reliability_curve",
        "next_samples",
        "economics",
        "routing",
        "routing_policies",
    ],
    metadata=table_metadata("history"),
)
def history(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Freezes the run as a snapshot, and tells every figure of every snapshot."""
    snapshot, part = evaluation.freeze()
    made = result("history", part)
    return made._replace(metadata={**(made.metadata or {}), "snapshot": snapshot.id})


@dg.asset(group_name=GROUP, kinds={"parquet"}, deps=[history], metadata=table_metadata("problem_history"))
def problem_history(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Adds the problems' figures of the new snapshot to those of the earlier ones."""
    parts = update_problem_history(evaluation.store)
    last = list(parts.values())[-1]
    rows = sum(part.rows for part in parts.values())
    return result("problem_history", replace(last, rows=rows))._replace(
        data_version=dg.DataVersion(evaluation.store.fingerprint("problem_history"))
    )


@dg.asset(group_name=GROUP, kinds={"duckdb", "parquet"}, deps=[problem_history])
def warehouse(context: dg.AssetExecutionContext, evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Publishes the run: tables, summary and the DuckDB file replace the last ones in the output folder in one step."""
    store = evaluation.store
    figures = store.scan("pass_at_k").collect()
    made_from = digest({table: store.fingerprint(table) for table in TABLES})
    made: list[Warehouse] = []

    def fill(generation: Path) -> None:
        limit = evaluation.config.publish.warehouse_max_rows
        made.append(
            publish_warehouse(generation / WAREHOUSE, generation / "tables", store.root / WAREHOUSE, made_from, limit)
        )

    store.publish(fill)
    for model in published_models(evaluation):
        context.log_event(model)
    [published] = made
    rows = {table: store.scan(table).select(pl.len()).collect().item() for table in TABLES}
    return dg.MaterializeResult(
        metadata={
            "path": dg.MetadataValue.path(store.root / WAREHOUSE),
            "tables": ", ".join(published.tables),
            "left out (too many rows)": ", ".join(published.left_out) or "none",
            "rows": sum(rows.values()),
            "leaderboard": preview(summary(figures).lazy()),
        },
        data_version=dg.DataVersion(made_from),
    )
