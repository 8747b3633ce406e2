"""The last stage: summary, CSV files, report and warehouse, and what a run says about its publication.

Making the files belongs in `touchstone.publish`, their location in `touchstone.storage`.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from assets.metadata import leaderboard_table
from assets.models import published_models
from touchstone.errors import shown
from touchstone.evaluation import Evaluation
from touchstone.storage.store import WAREHOUSE, digest
from touchstone.tables import TABLES
from touchstone.text import counted

if TYPE_CHECKING:
    from touchstone.publish.warehouse import Warehouse

Context = dg.AssetExecutionContext | dg.OpExecutionContext

PUBLISH = "publish"
PUBLISHED_IN_ORDER = (
    "summary_pass_at_k",
    "model_csvs",
    "history",
    "failure_modes",
    "trends",
    "change_points",
    "problem_history",
    "run_log",
    "report",
    "warehouse",
)
# A tag of a run: the snapshot that it published.
SNAPSHOT = "touchstone/snapshot"


def make_summary(_: Context, evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """The summary CSV, one row per model. `warehouse` publishes it."""
    table = evaluation.publish.summary()
    return dg.MaterializeResult(
        "summary_pass_at_k",
        metadata={**leaderboard_table(evaluation.store.scan("pass_at_k")), "dagster/row_count": table.height},
        data_version=dg.DataVersion(evaluation.store.fingerprint("pass_at_k")),
    )


def make_csvs(_: Context, evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """Outcomes and pass@k of every model as CSV files. `warehouse` publishes them."""
    files = evaluation.publish.model_csvs()
    store, wanted = evaluation.store, evaluation.config.publish.csv
    made_from = digest([wanted, store.fingerprint("outcomes"), store.fingerprint("pass_at_k")])
    return dg.MaterializeResult("model_csvs", metadata={"files": len(files)}, data_version=dg.DataVersion(made_from))


def make_report(_: Context, evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """The report on the run, one page that needs nothing else. `warehouse` publishes it."""
    page = evaluation.publish.report()
    size = page.stat().st_size if page is not None else 0
    version = dg.DataVersion(digest([evaluation.publish.version(), size > 0]))
    return dg.MaterializeResult("report", metadata={"bytes": size}, data_version=version)


def publish(context: Context, evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """Publishes the run: tables, CSV files and the DuckDB file replace the previous ones in one step."""
    published, store = evaluation.publish.publish(), evaluation.store
    evaluation.published = True
    for model in published_models(evaluation, context.instance):
        context.log_event(model)
    if evaluation.publish.snapshot is not None:
        context.instance.add_run_tags(context.run.run_id, {SNAPSHOT: evaluation.publish.snapshot.id})
    context.log.info(what_was_published(evaluation))
    rows = sum(part.rows for table in TABLES for part in store.all_parts(table).values())
    return dg.MaterializeResult(
        "warehouse",
        metadata={
            **leaderboard_table(store.scan("pass_at_k")),
            **_where_to_look(store.root),
            **(_warehouse(store.root / WAREHOUSE, published) if evaluation.config.publish.warehouse else {}),
            "rows": rows,
        },
        data_version=dg.DataVersion(evaluation.publish.version()),
    )


@dataclass(frozen=True)
class FileAsset:
    """An asset that is not a table: its dependencies and its function."""

    kinds: set[str]
    deps: tuple[str, ...]
    make: Callable[[Context, Evaluation], dg.MaterializeResult[None]]


FILES = {
    "summary_pass_at_k": FileAsset({"csv"}, ("pass_at_k",), make_summary),
    "model_csvs": FileAsset({"csv"}, ("outcomes", "pass_at_k"), make_csvs),
    "report": FileAsset({"html"}, ("failure_modes", "problem_history", "change_points"), make_report),
    "warehouse": FileAsset(
        {"duckdb", "parquet"},
        ("problem_history", "change_points", "summary_pass_at_k", "model_csvs", "report"),
        publish,
    ),
}


def what_was_published(evaluation: Evaluation) -> str:
    """One sentence on what a reader of the output folder finds now."""
    folder, snapshot = shown(str(evaluation.store.root)), evaluation.publish.snapshot
    if not evaluation.published:
        return f"nothing was published; {folder} is as it was"
    return f"{folder} has the results of this run" + (f", snapshot {snapshot.id}" if snapshot else "")


def failed_checks(evaluation: Evaluation) -> str:
    """Which checks of the run failed with an error, and whether its results were published; empty if none did."""
    failed = [check for check in evaluation.checked.values() if check.error and not check.passed]
    if not failed:
        return ""
    listed = "; ".join(f"{check.name}: {check.message}" for check in failed)
    return f"{counted(len(failed), 'check')} failed, and {what_was_published(evaluation)}. {listed}"


def _warehouse(path: Path, published: "Warehouse") -> dict[str, Any]:
    return {
        "path": dg.MetadataValue.path(shown(str(path))),
        "tables": ", ".join(published.tables),
        "left out (too many rows)": ", ".join(published.left_out) or "none",
    }


def _where_to_look(results: Path) -> dict[str, Any]:
    """The report, if the run has one, and the command of the dashboard, if it is installed."""
    report = results / "report.html"
    has_dashboard = find_spec("touchstone.publish.dashboard") is not None
    return {
        **({"report": dg.MetadataValue.path(shown(str(report)))} if report.exists() else {}),
        **({"dashboard": f"touchstone explore --data {shlex.quote(shown(str(results)))}"} if has_dashboard else {}),
    }
