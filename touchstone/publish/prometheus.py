"""The figures of a run for Prometheus, as a file for the textfile collector of its node exporter.

Written whole and renamed, so that the collector never reads half of it. Needs the extra `metrics`.
"""

import calendar
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from touchstone.errors import TouchstoneError
from touchstone.storage.store import Store
from touchstone.tables.checks import CheckOutcome

if TYPE_CHECKING:
    import polars as pl


def client() -> Any:
    """The package prometheus_client; an error if it is not installed."""
    try:
        import prometheus_client
    except ImportError:
        raise TouchstoneError(
            "metrics for Prometheus need another package: pip install 'touchstone[metrics]'"
        ) from None
    return prometheus_client


def write_metrics(file: Path, output: Path, checks: Sequence[CheckOutcome], succeeded: bool) -> None:
    """Write what is published in an output folder, and how the last run ended."""
    prometheus, registry, store = client(), client().CollectorRegistry(), Store(output)

    def gauge(name: str, description: str, labels: Sequence[str] = ()) -> Any:
        return prometheus.Gauge(f"touchstone_{name}", description, labels, registry=registry)

    failed = gauge("checks_failed", "Checks that failed in the last run.", ["severity"])
    for severity in ("error", "warning"):
        of_severity = [check for check in checks if not check.passed and check.error == (severity == "error")]
        failed.labels(severity).set(len(of_severity))
    gauge("run_succeeded", "Whether the last run was published and failed no check.").set(succeeded)
    if store.has_published:
        log = store.scan_published("run_log").collect()
        figures = store.scan_published("pass_at_k").select("model", "tier", "k", "pass_at_k").drop_nulls().collect()
        statuses = store.scan_published("outcomes").group_by("status").len().sort("status").collect()
        gauge("last_success_timestamp_seconds", "When a run last succeeded.").set(_last_success(log, succeeded))
        for name, description, labels, rows in (
            ("pass_at_k", "Published pass@k.", ["model", "tier", "k"], figures),
            ("validations", "Published outcomes by status.", ["status"], statuses),
            ("stage_seconds", "How long each step of the last run took.", ["stage"], _seconds(log)),
        ):
            made = gauge(name, description, labels)
            for *values, figure in rows.iter_rows():
                made.labels(*values).set(figure)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        prometheus.write_to_textfile(str(file), registry)
    except OSError as error:
        raise TouchstoneError(f"{file}: cannot be written ({error.strerror}); choose another file") from None


def _seconds(log: "pl.DataFrame") -> "pl.DataFrame":
    last = log.filter(log["run_id"] == log["run_id"].last()) if log.height else log
    return last.unique("stage", keep="last", maintain_order=True).select("stage", "seconds")


def _last_success(log: "pl.DataFrame", succeeded: bool) -> float:
    """Now, or when the run log last saw a run published."""
    published = log.filter((log["stage"] == "warehouse") & (log["status"] == "made"))
    if succeeded or not published.height:
        return time.time()
    return float(calendar.timegm(time.strptime(str(published["started"].last())[:19], "%Y-%m-%dT%H:%M:%S")))
