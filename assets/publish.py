"""Stage 5: summary, CSV files, snapshot and warehouse, published atomically by `warehouse`.

Making the files belongs in `touchstone.publish`, their location in `touchstone.storage`.
"""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from assets.common import SNAPSHOT, EvaluationParam, materialized, step_order, table_spec
from assets.metadata import Metadata, leaderboard_metadata, result, shown_rows
from assets.models import log_together, published_models
from touchstone.locations import shown
from touchstone.storage.parts import digest
from touchstone.storage.store import WAREHOUSE
from touchstone.tables import TABLES

if TYPE_CHECKING:
    from touchstone.publish.warehouse import Warehouse

GROUP = "publish"


@dg.asset(group_name=GROUP, kinds={"csv"}, deps=["pass_at_k"], op_tags=step_order(GROUP))
def summary_pass_at_k(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """The summary CSV, one row per model. `warehouse` publishes it."""
    table = evaluation.publish.summary()
    figures = evaluation.store.scan("pass_at_k").collect()
    return dg.MaterializeResult(
        metadata={"dagster/row_count": table.height, **leaderboard_metadata(figures)},
        data_version=dg.DataVersion(evaluation.store.fingerprint("pass_at_k")),
    )


@dg.asset(group_name=GROUP, kinds={"csv"}, deps=["outcomes", "pass_at_k"], op_tags=step_order(GROUP))
def model_csvs(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Outcomes and pass@k of every model as CSV files. `warehouse` publishes them."""
    files = evaluation.publish.model_csvs()
    store, wanted = evaluation.store, evaluation.config.publish.csv
    made_from = digest([wanted, store.fingerprint("outcomes"), store.fingerprint("pass_at_k")])
    return dg.MaterializeResult(metadata={"files": len(files)}, data_version=dg.DataVersion(made_from))


@dg.multi_asset(specs=[table_spec(TABLES["history"], "parquet")])
def history(context: dg.AssetExecutionContext, evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Freezes the run as a snapshot."""
    made = materialized(context, evaluation, "history")
    snapshot = evaluation.publish.snapshot
    return made._replace(metadata={**(made.metadata or {}), "snapshot": snapshot.id if snapshot else None})


@dg.multi_asset(specs=[table_spec(TABLES["problem_history"], "parquet"), table_spec(TABLES["run_log"], "parquet")])
def problem_history(evaluation: EvaluationParam) -> Iterator[dg.MaterializeResult[None]]:
    """Adds the new snapshot's problems to those of the earlier ones, and writes the run log."""
    parts = list(evaluation.materialize("problem_history").values())
    rows = sum(part.rows for part in parts)
    yield result("problem_history", replace(parts[-1], rows=rows), {})._replace(
        data_version=dg.DataVersion(evaluation.store.fingerprint("problem_history"))
    )
    [log] = evaluation.materialize("run_log").values()
    shown: Metadata = {
        "dagster/row_count": log.rows,
        "preview": shown_rows(evaluation.store.scan("run_log"), "run_log"),
    }
    yield dg.MaterializeResult("run_log", metadata=shown, data_version=dg.DataVersion(log.fingerprint))


@dg.asset(group_name=GROUP, kinds={"html"}, deps=["problem_history"], op_tags=step_order(GROUP))
def report(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """The report on the run, one page that needs nothing else. `warehouse` publishes it."""
    page = evaluation.publish.report()
    size = page.stat().st_size if page is not None else 0
    return dg.MaterializeResult(
        metadata={"bytes": size}, data_version=dg.DataVersion(digest([evaluation.publish.version(), size > 0]))
    )


@dg.asset(
    group_name=GROUP,
    kinds={"duckdb", "parquet"},
    deps=["problem_history", summary_pass_at_k, model_csvs, report],
)
def warehouse(context: dg.AssetExecutionContext, evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Publishes the run: tables, CSV files and the DuckDB file replace the previous ones in one step."""
    published, store = evaluation.publish.publish(), evaluation.store
    log_together(context, published_models(evaluation, context.instance))
    if evaluation.publish.snapshot is not None:
        context.instance.add_run_tags(context.run.run_id, {SNAPSHOT: evaluation.publish.snapshot.id})
    rows = sum(part.rows for table in TABLES for part in store.all_parts(table).values())
    return dg.MaterializeResult(
        metadata={
            **leaderboard_metadata(store.scan("pass_at_k").collect()),
            **_where_to_look(store.root),
            **(_warehouse(store.root / WAREHOUSE, published) if evaluation.config.publish.warehouse else {}),
            "rows": rows,
        },
        data_version=dg.DataVersion(evaluation.publish.version()),
    )


def _warehouse(path: Path, published: "Warehouse") -> Metadata:
    return {
        "path": dg.MetadataValue.path(shown(str(path))),
        "tables": ", ".join(published.tables),
        "left out (too many rows)": ", ".join(published.left_out) or "none",
    }


def _where_to_look(results: Path) -> Metadata:
    """The report, if the run has one, and the command of the dashboard, if it is installed."""
    report = results / "report.html"
    has_dashboard = find_spec("touchstone.publish.dashboard") is not None
    return {
        **({"report": dg.MetadataValue.path(shown(str(report)))} if report.exists() else {}),
        **({"dashboard": f"touchstone explore --data {shlex.quote(shown(str(results)))}"} if has_dashboard else {}),
    }
